#include "sim/model.h"

#include "sim/dvfs.h"

#include <stddef.h>
#include <string.h>

static const struct sim_activity_info activities[] = {
#define SIM_ACTIVITY(id, name, mw, work, measured, util, memutil, gr, sm, occ, integer, tensor, dfma, hmma, dmma,      \
                     imma, dram, fp64, fp32, fp16, tx, rx, nvrx, nvtx, clock, share, meaning)                          \
    {name,                                                                                                             \
     mw,                                                                                                               \
     work,                                                                                                             \
     measured,                                                                                                         \
     {util, memutil, gr, sm, occ, integer, tensor, dfma, hmma, dmma, imma, dram, fp64, fp32, fp16, tx, rx, nvrx,       \
      nvtx},                                                                                                           \
     clock,                                                                                                            \
     share,                                                                                                            \
     meaning},
#include "sim/activities.def"
#undef SIM_ACTIVITY
};

static const struct sim_profile profiles[] = {
#define SIM_PROFILE(id, name, title, known, arch, nvml_arch, major, minor, mem, reserved, pmin, pmax, pdef, idle, ctx, \
                    held, burst, quantum, averages, counter, history, gpm, smclk, memclk, gen, width, scale)           \
    {name, title, known, arch,    nvml_arch, major,   minor,   mem, reserved, pmin,   pmax, pdef,  idle,               \
     ctx,  held,  burst, quantum, averages,  counter, history, gpm, smclk,    memclk, gen,  width, scale},
#include "sim/profiles.def"
#undef SIM_PROFILE
};

const struct sim_activity_info *sim_activity_info(enum sim_activity activity) {
    return &activities[activity];
}

enum sim_activity sim_activity_find(const char *name) {
    for (int i = 0; i < SIM_ACTIVITY_COUNT; i++)
        if (strcmp(activities[i].name, name) == 0)
            return (enum sim_activity)i;
    return SIM_ACTIVITY_COUNT;
}

int sim_profile_count(void) {
    return (int)(sizeof profiles / sizeof profiles[0]);
}

const struct sim_profile *sim_profile_at(int index) {
    return &profiles[index];
}

const struct sim_profile *sim_profile_find(const char *name) {
    for (int i = 0; i < sim_profile_count(); i++)
        if (strcmp(profiles[i].name, name) == 0)
            return &profiles[i];
    return NULL;
}

int32_t sim_activity_power_mw(const struct sim_profile *profile, enum sim_activity activity) {
    if (activity == SIM_IDLE)
        return profile->idle_mw;
    int64_t above = activities[activity].power_mw - activities[SIM_CONTEXT].power_mw;
    return profile->context_mw + (int32_t)(above * profile->scale_permille / 1000);
}

int32_t sim_held_power_mw(const struct sim_profile *profile, int32_t cap_mw) {
    int32_t held = (int32_t)((int64_t)cap_mw * profile->held_permille / 1000);
    return held > profile->context_mw ? held : profile->context_mw;
}

int64_t sim_energy_of(int32_t power_mw, int64_t duration_ns) {
    return (int64_t)((__int128)power_mw * duration_ns / 1000);
}

int64_t sim_burst_left_ns(const struct sim_profile *profile, const struct sim_controller *controller,
                          int64_t start_ns) {
    int64_t burst_ns = profile->burst_ms * INT64_C(1000000);
    int64_t over_ns = start_ns - controller->end_ns <= SIM_CONTROLLER_PAUSE_NS ? controller->over_ns : 0;
    return over_ns < burst_ns ? burst_ns - over_ns : 0;
}

int sim_power_split(const struct sim_profile *profile, const struct sim_limits *limits,
                    struct sim_controller *controller, enum sim_activity activity, int64_t start_ns, int64_t end_ns,
                    struct sim_piece pieces[2]) {
    int32_t wanted = sim_wanted_mw(profile, limits, activity);
    int count = 0;
    if (wanted <= limits->cap_mw) {
        pieces[count++] = (struct sim_piece){start_ns, end_ns, 0, wanted, false};
    } else {
        int64_t burst_ns = profile->burst_ms * INT64_C(1000000);
        int64_t left_ns = sim_burst_left_ns(profile, controller, start_ns);
        int64_t over_ns = burst_ns - left_ns, split_ns = start_ns + left_ns;
        if (split_ns > end_ns)
            split_ns = end_ns;
        if (split_ns > start_ns)
            pieces[count++] = (struct sim_piece){start_ns, split_ns, over_ns + split_ns - start_ns, wanted, false};
        if (end_ns > split_ns)
            pieces[count++] =
                (struct sim_piece){split_ns, end_ns, burst_ns, sim_held_power_mw(profile, limits->cap_mw), true};
    }
    /* light work and waiting leave the controller's memory alone: only the length of the pause matters */
    if (count && pieces[count - 1].over_ns > 0)
        *controller = (struct sim_controller){pieces[count - 1].end_ns, pieces[count - 1].over_ns};
    return count;
}

struct sim_active sim_active_between(const struct sim_active *before, const struct sim_active *after) {
    struct sim_active between = {.ns = {0}};
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++) {
        between.ns[a] = after->ns[a] - before->ns[a];
        between.work_ns[a] = after->work_ns[a] - before->work_ns[a];
    }
    return between;
}

#define COUNTER(member) (offsetof(struct sim_counters, member) / sizeof(double))

/* Traffic of memory and links goes with the work; the rest says how much of the time units are in use. */
static const bool is_traffic[SIM_COUNTER_FIELDS] = {
    [COUNTER(mem_util)] = true, [COUNTER(dram)] = true,      [COUNTER(pcie_tx)] = true,
    [COUNTER(pcie_rx)] = true,  [COUNTER(nvlink_rx)] = true, [COUNTER(nvlink_tx)] = true,
};

void sim_counters_mean(const struct sim_profile *profile, const struct sim_active *active, int64_t window_ns,
                       struct sim_counters *mean) {
    double sums[SIM_COUNTER_FIELDS] = {0};
    for (int a = 0; a < SIM_ACTIVITY_COUNT; a++) {
        double row[SIM_COUNTER_FIELDS];
        memcpy(row, &activities[a].counters, sizeof row);
        for (unsigned i = 0; i < SIM_COUNTER_FIELDS; i++)
            sums[i] += row[i] * (double)(is_traffic[i] ? active->work_ns[a] : active->ns[a]);
    }
    for (unsigned i = 0; i < SIM_COUNTER_FIELDS; i++)
        sums[i] /= (double)window_ns;
    memcpy(mean, sums, sizeof sums);
    /* the rows are for generation 5; each older generation halves them */
    double link = 1.0 / (double)(1 << (5 - profile->pcie_generation));
    mean->pcie_tx *= link;
    mean->pcie_rx *= link;
}

static uint64_t splitmix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

double sim_hash_unit(uint64_t a, uint64_t b, uint64_t c) {
    return (double)(splitmix(splitmix(splitmix(a) ^ b) ^ c) >> 11) * 0x1.0p-53;
}
