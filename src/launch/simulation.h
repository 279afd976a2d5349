/* --sim: a simulated machine for the length of a run. Only the driver library that is loaded differs from a real one. */
#pragma once

#include "launch/environ.h"

struct hec_simulation;

/* Make the machine that spec describes, and let this process see it. HEC_ERR_USAGE with a sentence for a wrong spec. */
int hec_simulation_begin(const char *spec, struct hec_simulation **out, struct hec_why *why);
/* The driver library to load. */
const char *hec_simulation_nvml(const struct hec_simulation *simulation);
const char *hec_simulation_cuda(const struct hec_simulation *simulation);
/* The folder of libcupti; "": this machine has none. */
const char *hec_simulation_cupti(const struct hec_simulation *simulation);
/* "h200x2,state=PATH": by it another process finds the same devices with the limits that they have; HEC_ERR_NOTFOUND where
 * the machine keeps nothing. */
#define HEC_SIMULATION_SPEC 400
int hec_simulation_spec(const struct hec_simulation *simulation, char spec[HEC_SIMULATION_SPEC]);
/* As /proc/sys/kernel/random/boot_id. */
const char *hec_simulation_boot(const struct hec_simulation *simulation);
/* Machines that this process makes from now on, and name no file of their state, have this one. NULL: none. */
void hec_simulation_keep_state(const char *path);
/* Let a command see the machine. */
int hec_simulation_environ(const struct hec_simulation *simulation, struct hec_environ *env);
/* The same for one that may not look into this process, as it is in a user namespace of its own: it has to inherit the descriptor, and
 * to write its path in /proc into *path, which has room for HEC_SIMULATION_PATH. */
#define HEC_SIMULATION_PATH 40
int hec_simulation_hand_down(const struct hec_simulation *simulation, struct hec_environ *env, int *fd, char **path);
void hec_simulation_end(struct hec_simulation *simulation); /* NULL is fine */
