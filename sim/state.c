#include "sim/state.h"

#include "sim/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "HEC sim state 1\n"

struct state {
    char magic[sizeof MAGIC];
    char boot[SIM_BOOT_SIZE], profile[16];
    struct sim_setting device[SIM_DEVICE_MAX];
};

void sim_boot_draw(char boot[SIM_BOOT_SIZE]) {
    int fd = open("/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, boot, SIM_BOOT_SIZE - 1);
    boot[length > 0 ? length : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

static struct state fresh(const char *profile, const struct sim_setting *first) {
    struct state state = {.magic = MAGIC};
    sim_boot_draw(state.boot);
    snprintf(state.profile, sizeof state.profile, "%s", profile);
    for (int i = 0; i < SIM_DEVICE_MAX; i++)
        state.device[i] = *first;
    return state;
}

/* It gets its name when it is complete. An errno. */
static int make(const char *path, const char *profile, const struct sim_setting *first) {
    char temporary[300];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC), errnum = fd < 0 ? errno : 0;
    if (errnum)
        return errnum;
    struct state state = fresh(profile, first);
    if (write(fd, &state, sizeof state) != (ssize_t)sizeof state || (link(temporary, path) != 0 && errno != EEXIST))
        errnum = errno ? errno : EIO;
    close(fd);
    unlink(temporary);
    return errnum;
}

int sim_state_attach(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool load(int fd, struct state *state) {
    return pread(fd, state, sizeof *state, 0) == (ssize_t)sizeof *state &&
           memcmp(state->magic, MAGIC, sizeof MAGIC) == 0 && memchr(state->boot, '\0', sizeof state->boot) &&
           memchr(state->profile, '\0', sizeof state->profile);
}

int sim_state_open(const char *path, const char *profile, const struct sim_setting *first, int *fd,
                   char boot[SIM_BOOT_SIZE], struct hec_why *why) {
    struct state state;
    *fd = sim_state_attach(path);
    if (*fd < 0 && errno == ENOENT) {
        int errnum = make(path, profile, first);
        *fd = errnum ? -1 : sim_state_attach(path);
        errno = errnum ? errnum : errno;
    }
    if (*fd < 0)
        return hec_fail(why, hec_err_from_errno(errno), "state=%s: %s", path, strerror(errno));
    int err = HEC_OK;
    if (!load(*fd, &state))
        err = hec_fail(why, HEC_ERR_CORRUPT, "state=%s is not the state of a simulated machine", path);
    else if (strcmp(state.profile, profile) != 0)
        err = hec_fail(why, HEC_ERR_USAGE, "state=%s is of a machine with other devices (%s)", path, state.profile);
    else
        memcpy(boot, state.boot, SIM_BOOT_SIZE);
    if (err < 0) {
        close(*fd);
        *fd = -1;
    }
    return err;
}

static off_t place(int device) {
    return (off_t)(offsetof(struct state, device) + (size_t)device * sizeof(struct sim_setting));
}

void sim_state_read(int fd, int device, struct sim_setting *setting) {
    struct sim_setting found;
    if (pread(fd, &found, sizeof found, place(device)) == (ssize_t)sizeof found)
        *setting = found;
}

static int put(const char *path, const void *bytes, size_t length, off_t at) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return HEC_ERR_IO;
    bool done = pwrite(fd, bytes, length, at) == (ssize_t)length;
    close(fd);
    return done ? HEC_OK : HEC_ERR_IO;
}

int sim_state_write(const char *path, int device, const struct sim_setting *setting) {
    return put(path, setting, sizeof *setting, place(device));
}

int sim_state_restart(const char *path, const struct sim_setting *first) {
    struct state state;
    int fd = sim_state_attach(path);
    bool loaded = fd >= 0 && load(fd, &state);
    if (fd >= 0)
        close(fd);
    if (!loaded)
        return HEC_ERR_IO;
    struct state next = fresh(state.profile, first);
    return put(path, &next, sizeof next, 0);
}
