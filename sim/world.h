/* The simulated machine: memory that every process maps, named by the environment variable HEC_SIM_WORLD. It holds
 * the specification, the clock, and per device the contexts and the timeline. A robust process-shared mutex guards it,
 * so a process that is killed while it writes stops nobody.
 *
 * Who uses it: `hec run --sim` creates it; programs on the simulated device (sim/play.h, and doubles of libcuda) open
 * contexts and append segments; the double of libnvidia-ml reads it.
 *
 * A device that is divided (MIG) has a timeline for each instance: they work at the same time, and each adds what the whole device
 * would, in the proportion of its SMs. What is there without work is the device's.
 *
 * History is never rewritten: a segment cannot start in the past, so what was read once stays true. */
#pragma once

#include "sim/dvfs.h"
#include "sim/spec.h"
#include "sim/timeline.h"

#define SIM_WORLD_ENV "HEC_SIM_WORLD"
#define SIM_CONTEXT_MAX 64

struct sim_world;

/* See sim/file.h for where it is. */
int sim_world_create(const struct sim_spec *spec, struct sim_world **world, struct hec_why *why);
/* path NULL: that of HEC_SIM_WORLD. HEC_ERR_NOTFOUND, HEC_ERR_VERSION, HEC_ERR_CORRUPT. */
int sim_world_attach(const char *path, struct sim_world **world, struct hec_why *why);
void sim_world_detach(struct sim_world *world);  /* NULL is fine */
void sim_world_destroy(struct sim_world *world); /* by its maker: nobody finds it any more */

const char *sim_world_path(const struct sim_world *world);
const struct sim_spec *sim_world_spec(const struct sim_world *world);
const struct sim_profile *sim_world_profile(const struct sim_world *world);
int64_t sim_world_epoch_ns(const struct sim_world *world);
/* Add to a monotonic time to get the wall clock; fixed when the world was made, so labels never jitter. */
int64_t sim_world_wall_offset_ns(const struct sim_world *world);

/* Clock: CLOCK_MONOTONIC, or with clock=virtual the value last set (at first the epoch). It never goes back. */
int64_t sim_world_now_ns(const struct sim_world *world);
void sim_world_set_now_ns(struct sim_world *world, int64_t now_ns);
/* Let time pass for a call: sleeps, spins where a sleep would be too coarse, and does nothing in virtual time. */
void sim_world_spend(const struct sim_world *world, int64_t duration_ns);

/* What a machine keeps beyond a run, where it has a file of its state (sim/state.h), and what holds of it. HEC_ERR_USAGE
 * outside the profile's range, HEC_ERR_IO where the file cannot be written. Applies to what is appended afterwards. */
int32_t sim_world_cap_mw(struct sim_world *world, int device);
int sim_world_set_cap_mw(struct sim_world *world, int device, int32_t cap_mw);
/* The SM clock locked to at most so much; 0: not any more. */
int sim_world_set_clock_mhz(struct sim_world *world, int device, int32_t clock_mhz);
/* A limit that comes from neither: a workload brings it with it (as of a device that somebody else has capped). 0: none. */
void sim_world_set_own_mw(struct sim_world *world, int device, int32_t own_mw);
/* The lowest of all limits, and the lock. */
struct sim_limits sim_world_limits(struct sim_world *world, int device);
const char *sim_world_boot(const struct sim_world *world); /* drawn anew when the machine starts */

/* A context of process pid on a device; instance is the MIG instance, 0 without MIG. Opens at now (given back).
 * HEC_ERR_FULL when SIM_CONTEXT_MAX are open. A process has at most one context on a device: opening again is counted. */
int sim_context_open(struct sim_world *world, int device, int instance, pid_t pid, int64_t memory_bytes,
                     int64_t *now_ns);
/* Closes at now (given back) and takes back what the process would still do. */
int sim_context_close(struct sim_world *world, int device, pid_t pid, int64_t *now_ns);

/* How long it takes from start_ns on, under the limits, what is written as duration_ns (sim/dvfs.h). */
int64_t sim_segment_lasts_ns(struct sim_world *world, int device, enum sim_activity activity, int64_t start_ns,
                             int64_t duration_ns);

/* Append an activity at start_ns, or as soon after it as the device is free and the time is not past. Returns the
 * number of pieces of constant power (at most 2), or HEC_ERR_NOTFOUND when pid has no context on the device. */
int sim_segment_append(struct sim_world *world, int device, pid_t pid, enum sim_activity activity, int64_t start_ns,
                       int64_t duration_ns, struct sim_piece pieces[2]);

/* The same with sim_timeline_extend: for kernels of microseconds. */
int sim_segment_extend(struct sim_world *world, int device, pid_t pid, enum sim_activity activity, int64_t start_ns,
                       int64_t duration_ns, struct sim_piece pieces[2]);

struct sim_context {
    pid_t pid;
    int instance, opened; /* times it was opened */
    int64_t open_ns, memory_bytes;
    uint64_t born; /* start time of the process, so that a reused pid is not taken for it */
};

/* Copies of what is open now; contexts of processes that are gone are closed first. Returns the number. */
int sim_world_contexts(struct sim_world *world, int device, struct sim_context contexts[SIM_CONTEXT_MAX]);

/* Questions about the timeline, under the lock; see timeline.h. */
int64_t sim_world_energy_nj(struct sim_world *world, int device, int64_t t_ns);
void sim_world_active(struct sim_world *world, int device, int64_t t_ns, struct sim_active *active);
/* Of one instance of a divided device. */
void sim_world_instance_active(struct sim_world *world, int device, int instance, int64_t t_ns,
                               struct sim_active *active);
struct sim_instant sim_world_at(struct sim_world *world, int device, int64_t t_ns); /* divided: of who draws most */
int64_t sim_world_busy_ns(struct sim_world *world, int device, pid_t pid, int64_t t0_ns, int64_t t1_ns);

/* Has the device fallen off the bus by t; when was its counter last reset (epoch if never). */
bool sim_world_lost(const struct sim_world *world, int device, int64_t t_ns);
/* Is that MIG device there at t. */
bool sim_world_instance_there(const struct sim_world *world, int instance, int64_t t_ns);
int64_t sim_world_reset_ns(const struct sim_world *world, int device, int64_t t_ns, bool *was_reset);
