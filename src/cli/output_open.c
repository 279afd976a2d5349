#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hec_output_own(const char *path) {
    static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i < 3; i++)
        if (strcmp(path, names[i]) == 0)
            return i;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        size_t length = strlen(folders[i]);
        const char *number = path + length;
        if (strncmp(path, folders[i], length) == 0 && *number && strlen(number) < 7 &&
            strspn(number, "0123456789") == strlen(number))
            return atoi(number);
    }
    return -1;
}

int hec_output_there(const char *path, int flags) {
    struct stat there;
    int own = hec_output_own(path);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (own < 0 ? O_NOFOLLOW : 0) | flags, 0666);
    if (fd < 0 || own >= 0 || fstat(fd, &there) != 0 || S_ISCHR(there.st_mode) || there.st_uid == geteuid())
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}
