/* What a simulated machine keeps between runs, as a device keeps its power limit until the machine restarts: a small file
 * that several runs share at the same time. Named by the key state= or, for machines that name none, by HEC_SIM_STATE. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define SIM_STATE_ENV "HEC_SIM_STATE"
#define SIM_BOOT_SIZE 40

struct sim_setting {
    int32_t cap_mw, clock_mhz; /* clock: locked to at most this; 0: not locked */
};

/* Make the file, each device with `first`, or find it. *fd is for sim_state_read; boot is set. HEC_ERR_USAGE: it is of another
 * profile; HEC_ERR_CORRUPT: it is something else. */
int sim_state_open(const char *path, const char *profile, const struct sim_setting *first, int *fd,
                   char boot[SIM_BOOT_SIZE], struct hec_why *why);
int sim_state_attach(const char *path); /* a descriptor to read with, or -1 */

/* *setting is untouched where it cannot be read. */
void sim_state_read(int fd, int device, struct sim_setting *setting);
int sim_state_write(const char *path, int device, const struct sim_setting *setting); /* HEC_ERR_IO */

/* What a restart of the machine does: all devices are as `first`, and its boot id is another one. */
int sim_state_restart(const char *path, const struct sim_setting *first);

void sim_boot_draw(char boot[SIM_BOOT_SIZE]);
