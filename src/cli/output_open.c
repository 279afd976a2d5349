#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MEMORY = 1, TERMINAL = 4, CONSOLE = 5, FIRST_PSEUDO = 136, LAST_PSEUDO = 143 }; /* major numbers of Linux */

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

bool hec_output_is_sink(const struct stat *there) {
    unsigned kind = major(there->st_rdev), which = minor(there->st_rdev);
    return S_ISCHR(there->st_mode) &&
           ((kind == MEMORY && (which == 3 || which == 5 || which == 7)) /* null, zero, full */ || kind == TERMINAL ||
            kind == CONSOLE || (kind >= FIRST_PSEUDO && kind <= LAST_PSEUDO));
}

int hec_output_there(const char *path, int flags) {
    struct stat there;
    int own = hec_output_own(path);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (own < 0 ? O_NOFOLLOW : 0) | flags, 0666);
    if (fd < 0 || own >= 0 || fstat(fd, &there) != 0 || hec_output_is_sink(&there) ||
        (there.st_uid == geteuid() && !S_ISCHR(there.st_mode) && !S_ISBLK(there.st_mode)))
        return fd;
    close(fd);
    errno = EACCES;
    return -1;
}
