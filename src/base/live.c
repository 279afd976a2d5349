#include "base/live.h"

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

static struct flock byte_of(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = INT64_C(1) << 62, .l_len = 1};
}

bool hec_live_hold(int fd) {
    struct flock lock = byte_of(F_WRLCK);
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool hec_live_held(int fd) {
    struct flock lock = byte_of(F_RDLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
