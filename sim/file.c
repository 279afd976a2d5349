#include "sim/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_PREFIX "hec-sim-"

static const char *writable_folder(void) {
    const char *tmp = getenv("TMPDIR");
    if (tmp && *tmp && access(tmp, W_OK) == 0)
        return tmp;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* Remove one file if it is the caller's, bears the magic number and nobody holds its lock. */
static void remove_abandoned(int folder_fd, const char *name, uint64_t magic) {
    struct stat status;
    uint64_t found;
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        pread(fd, &found, sizeof found, 0) == (ssize_t)sizeof found && found == magic &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder_fd, name, 0);
    close(fd);
}

static void sweep(const char *folder, uint64_t magic) {
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) == 0)
            remove_abandoned(dirfd(dir), entry->d_name, magic);
    closedir(dir);
}

static int map(struct sim_file *file) {
    file->memory = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    return file->memory == MAP_FAILED ? errno : 0;
}

int sim_file_create(size_t size, uint64_t magic, struct sim_file *file, struct hec_why *why) {
    const char *folder = writable_folder();
    sweep(folder, magic);
    file->size = size;
    int length = snprintf(file->path, sizeof file->path, "%s/" FILE_PREFIX "XXXXXX", folder);
    if (length < 0 || length >= (int)sizeof file->path)
        return hec_fail(why, HEC_ERR_LIMIT, "the name of the folder for temporary files is too long");
    file->fd = mkostemp(file->path, O_CLOEXEC);
    if (file->fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot create %s: %s", file->path, strerror(errno));
    int err = flock(file->fd, LOCK_SH) < 0 ? errno : 0;
    if (!err) /* allocated, not sparse: a full disk must fail here and not as SIGBUS later */
        err = posix_fallocate(file->fd, 0, (off_t)size);
    if (!err)
        err = map(file);
    if (err) {
        unlink(file->path);
        close(file->fd);
        return hec_fail(why, hec_err_from_errno(err), "cannot set up %s: %s", file->path, strerror(err));
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
    int err = HEC_OK;
    if (fstat(file->fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size < (off_t)minimum_size)
        err = hec_fail(why, HEC_ERR_CORRUPT, "%s is not a simulated machine", path);
    else if (flock(file->fd, LOCK_SH) < 0 || fstat(file->fd, &status) < 0 || status.st_nlink == 0)
        err = hec_fail(why, HEC_ERR_NOTFOUND, "the simulated machine %s has just been removed", path);
    if (!err) {
        file->size = (size_t)status.st_size;
        int errnum = map(file);
        if (errnum)
            err = hec_fail(why, hec_err_from_errno(errnum), "cannot map %s: %s", path, strerror(errnum));
    }
    if (err)
        close(file->fd);
    return err;
}

void sim_file_close(struct sim_file *file, bool remove_it) {
    if (remove_it)
        unlink(file->path);
    munmap(file->memory, file->size);
    close(file->fd);
}
