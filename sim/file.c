#include "sim/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

static int map(struct sim_file *file) {
    file->memory = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    return file->memory == MAP_FAILED ? errno : 0;
}

/* Allocated, not sparse: where memory is short it must fail here and not as SIGBUS later. The limit on the size of files
 * (ulimit -f) is meant for disks, but counts for a memfd too: it is lifted as far as this process may. An errno. */
static int allocate(const struct sim_file *file) {
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (limited && setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) != 0)
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit.rlim_max, limit.rlim_max});
    int err = posix_fallocate(file->fd, 0, (off_t)file->size);
    if (limited)
        setrlimit(RLIMIT_FSIZE, &limit);
    return err;
}

int sim_file_create(size_t size, struct sim_file *file, struct hec_why *why) {
    file->size = size;
    file->fd = memfd_create("hec-sim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file->fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot make a simulated machine: %s", strerror(errno));
    snprintf(file->path, sizeof file->path, "/proc/%ld/fd/%d", (long)getpid(), file->fd);
    int err = allocate(file);
    if (!err && fcntl(file->fd, F_ADD_SEALS, SEALS) != 0)
        err = errno;
    if (!err)
        err = map(file);
    if (err) {
        close(file->fd);
        if (err == EFBIG) /* a limit that leaves no memory, as others do */
            return hec_fail(why, HEC_ERR_NOMEM, "a simulated machine takes a file of %zu KiB in memory (ulimit -f)",
                            size / 1024);
        return hec_fail(why, hec_err_from_errno(err), "cannot set up a simulated machine: %s", strerror(err));
    }
    return HEC_OK;
}

int sim_file_open(const char *path, size_t minimum_size, struct sim_file *file, struct hec_why *why) {
    struct stat status;
    if (strlen(path) >= sizeof file->path)
        return hec_fail(why, HEC_ERR_NOTFOUND, "the name of the simulated machine is too long: %.60s...", path);
    snprintf(file->path, sizeof file->path, "%s", path);
    file->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot open the simulated machine %s: %s", path,
                        strerror(errno));
    int err = HEC_OK, seals = fcntl(file->fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(file->fd, &status) < 0 || status.st_size < (off_t)minimum_size) {
        err = hec_fail(why, HEC_ERR_CORRUPT, "%s is not a simulated machine", path);
    } else {
        file->size = (size_t)status.st_size;
        int errnum = map(file);
        if (errnum)
            err = hec_fail(why, hec_err_from_errno(errnum), "cannot map %s: %s", path, strerror(errnum));
    }
    if (err)
        close(file->fd);
    return err;
}

void sim_file_close(struct sim_file *file) {
    munmap(file->memory, file->size);
    close(file->fd);
}
