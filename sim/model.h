/* The tables of the simulated GPU (activities.def, profiles.def) and the arithmetic of power on them. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum sim_activity {
#define SIM_ACTIVITY(id, ...) SIM_##id,
#include "sim/activities.def"
#undef SIM_ACTIVITY
    SIM_ACTIVITY_COUNT
};

/* Counters are permille, PCIe and NVLink MiB/s. */
struct sim_counters {
    double util, mem_util, gr, sm, occupancy, integer, tensor, dfma, hmma, dmma, imma, dram, fp64, fp32, fp16;
    double pcie_tx, pcie_rx, nvlink_rx, nvlink_tx;
};

#define SIM_COUNTER_FIELDS (sizeof(struct sim_counters) / sizeof(double))

struct sim_activity_info {
    const char *name;
    int32_t power_mw; /* on the h200 profile */
    bool work;
    int measured; /* 1 alone, 2 as the mean of a training loop, 0 modelled */
    struct sim_counters counters;
    int sm_clock_permille, clock_share_permille;
    const char *meaning;
};

struct sim_profile {
    const char *name, *title, *known, *architecture;
    unsigned nvml_architecture;
    int cuda_major, cuda_minor;
    int64_t memory_mib, reserved_mib;
    int32_t power_min_mw, power_max_mw, power_default_mw, idle_mw, context_mw;
    int held_permille;  /* power while the cap holds an activity, of the cap */
    int burst_ms;       /* an activity may exceed the cap for this long */
    int64_t quantum_ns; /* the energy counter takes a new value this often */
    bool averages;      /* PowerUsage is a mean of 1 s (GA100 and older: momentary) */
    bool has_counter, has_history, has_gpm;
    int sm_clock_mhz, memory_clock_mhz, pcie_generation, pcie_width;
    int scale_permille;
};

const struct sim_activity_info *sim_activity_info(enum sim_activity activity);
enum sim_activity sim_activity_find(const char *name); /* SIM_ACTIVITY_COUNT if unknown */

int sim_profile_count(void);
const struct sim_profile *sim_profile_at(int index);
const struct sim_profile *sim_profile_find(const char *name); /* NULL if unknown */

struct sim_limits; /* sim/dvfs.h */

/* Power of an activity with no cap. */
int32_t sim_activity_power_mw(const struct sim_profile *profile, enum sim_activity activity);
/* Power at which the controller holds an activity that would exceed the cap. */
int32_t sim_held_power_mw(const struct sim_profile *profile, int32_t cap_mw);

/* Energy of constant power, in nJ: 1 mW for 1 ns is 1 pJ. */
int64_t sim_energy_of(int32_t power_mw, int64_t duration_ns);

/* State of the cap controller after the last activity. */
struct sim_controller {
    int64_t end_ns;
    int64_t over_ns; /* how long power has wanted to exceed the cap without a pause of SIM_CONTROLLER_PAUSE_NS */
};

/* A shorter pause does not make the controller forget. Modelled. */
#define SIM_CONTROLLER_PAUSE_NS INT64_C(5000000)

struct sim_piece {
    int64_t start_ns, end_ns, over_ns;
    int32_t power_mw;
    bool held;
};

/* How long an activity that starts then may exceed the limit. */
int64_t sim_burst_left_ns(const struct sim_profile *profile, const struct sim_controller *controller, int64_t start_ns);

/* Split [start, end) of an activity into at most two pieces of constant power: the burst above the cap, and the rest
 * that is held under it. Returns the number of pieces and advances *controller. */
int sim_power_split(const struct sim_profile *profile, const struct sim_limits *limits,
                    struct sim_controller *controller, enum sim_activity activity, int64_t start_ns, int64_t end_ns,
                    struct sim_piece pieces[2]);

/* Time spent in each activity, and the work done in it: as the time that it takes at full pace (sim_pace). */
struct sim_active {
    int64_t ns[SIM_ACTIVITY_COUNT], work_ns[SIM_ACTIVITY_COUNT];
};

/* What came between two such sums, of which `before` is the earlier one. */
struct sim_active sim_active_between(const struct sim_active *before, const struct sim_active *after);

/* Mean counters of a window; window_ns > 0. Traffic of memory and links goes with the work, all else with the time. PCIe
 * rates scale with the link. */
void sim_counters_mean(const struct sim_profile *profile, const struct sim_active *active, int64_t window_ns,
                       struct sim_counters *mean);

/* A reproducible number in [0, 1) from three others (splitmix64). */
double sim_hash_unit(uint64_t a, uint64_t b, uint64_t c);
