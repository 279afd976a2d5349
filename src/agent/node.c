#include "agent/node.h"

#include "base/clock.h"
#include "base/log.h"
#include "diagnose/watts/watts.h"
#include "model/throttle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No sample of a device for so long, and for some intervals: it does not answer. One slow call of the driver is no loss. */
#define SILENT_NS (5 * HEC_NS_PER_S)
#define SILENT_INTERVALS 3

/* A value that was not renewed for so long, and for some intervals, is not the newest any more. GPM and the counter are read more
 * rarely, by what they cost: up to a minute. */
#define STALE_NS (120 * HEC_NS_PER_S)

/* For the idle floor: power is of work for so long after the last kernel, and one reading stands for so much time at most. */
#define IDLE_SETTLES_NS (2 * HEC_NS_PER_S)
#define IDLE_READING_NS (1 * HEC_NS_PER_S)

/* More than this between two readings was not drawn: the counter was set. Devices exceed their limit for milliseconds. */
#define POWER_FACTOR 3
#define POWER_UNKNOWN_MW INT64_C(2000000)
#define POWER_SLACK_MJ INT64_C(2000000) /* one late value of a counter, and what a wrong limit makes of short times */

static const char *const total_names[] = {
#define HEC_NODE_TOTAL(id, name) name,
#include "agent/totals.def"
#undef HEC_NODE_TOTAL
};

_Static_assert(HEC_NODE_THROTTLED_THERMAL_NS == HEC_NODE_THROTTLED_POWER_NS + HEC_THROTTLE_THERMAL &&
                   HEC_NODE_THROTTLED_HARDWARE_NS == HEC_NODE_THROTTLED_POWER_NS + HEC_THROTTLE_HARDWARE &&
                   HEC_THROTTLE_UNASKED == 3,
               "totals.def has a row for each, in the order of model/throttle.def");

static const struct {
    enum hec_metric metric; /* KiB/s */
    enum hec_node_total total;
} integrals[] = {
    {HEC_GPM_PCIE_TX, HEC_NODE_PCIE_TX},
    {HEC_GPM_PCIE_RX, HEC_NODE_PCIE_RX},
    {HEC_GPM_NVLINK_TX, HEC_NODE_NVLINK_TX},
    {HEC_GPM_NVLINK_RX, HEC_NODE_NVLINK_RX},
};

const char *hec_node_total_name(enum hec_node_total total) {
    return total_names[total];
}

double hec_node_value_of(const struct hec_node *node, const struct hec_node_device *device, enum hec_metric metric,
                         int64_t now_ns) {
    if (metric == HEC_GPU_XID && device->xid)
        return (double)device->xid;
    if (metric >= HEC_METRIC_COUNT || device->newest[metric].t_ns == INT64_MIN ||
        now_ns - device->newest[metric].t_ns > STALE_NS + SILENT_INTERVALS * node->interval_ns)
        return NAN;
    /* in the middle of a round of readings the counter is as the totals know it: a page adds up */
    return (double)(metric == HEC_GPU_ENERGY ? device->settled_mj : device->newest[metric].value);
}

double hec_node_idle_w(const struct hec_node *node, const struct hec_node_device *device, int64_t now_ns) {
    struct hec_shares_floor floor = {HEC_SHARES_UNKNOWN, HEC_SHARES_UNKNOWN};
    if (device->shares)
        floor = hec_shares_floor(device->shares);
    bool held = hec_node_value_of(node, device, HEC_GPU_CONTEXTS, now_ns) > 0;
    int64_t mw = held ? floor.held_mw : floor.free_mw;
    return mw == HEC_SHARES_UNKNOWN ? NAN : (double)mw / 1e3;
}

static int64_t newest(const struct hec_node_device *device, enum hec_metric metric) {
    return device->newest[metric].t_ns == INT64_MIN ? -1 : device->newest[metric].value;
}

bool hec_node_instance_first(const struct hec_node_device *device, int i) {
    int first = 0;
    while (device->instances[first].now.id != device->instances[i].now.id)
        first++;
    return first == i;
}

/* Permille of the time in which a kernel ran; -1: not known. NVML does not say it of a divided device: then that of the GPU instance
 * with most, which is the least that it can be. */
static int64_t utilisation(const struct hec_node_device *device) {
    int64_t most = newest(device, HEC_GPU_UTIL);
    for (int i = 0; i < device->instance_count; i++)
        most = device->instances[i].engine_permille > most ? device->instances[i].engine_permille : most;
    return most;
}

/* Adds to the states from `first` on (joules or time), and divides it where the device was busy for a part of it. */
static void add_to_states(struct hec_node_device *device, enum hec_node_total first, int64_t amount, int64_t busy,
                          bool observed) {
    bool held = newest(device, HEC_GPU_CONTEXTS) > 0 || device->allocated;
    if (!observed) {
        device->total[first + HEC_AGENT_STATE_UNOBSERVED] += amount;
        return;
    }
    device->total[first + HEC_AGENT_STATE_BUSY] += busy;
    device->total[first + (held ? HEC_AGENT_STATE_IDLE_ALLOCATED : HEC_AGENT_STATE_IDLE_FREE)] += amount - busy;
}

/* What was drawn in the part of the time that a full clock, the highest one seen, would have spared. An estimate: work does not
 * follow the clock everywhere. */
static int64_t throttle_lost_uj(const struct hec_node_device *device, int64_t reasons, int64_t past_ns) {
    int64_t clock_mhz = newest(device, HEC_GPU_SM_CLOCK), power_mw = newest(device, HEC_GPU_POWER);
    if (reasons <= 0 || !hec_throttle_slowed(reasons) || clock_mhz < 0 || power_mw <= 0 ||
        clock_mhz >= device->clock_most_mhz)
        return 0;
    double lost_s = (double)past_ns / 1e9 * (1 - (double)clock_mhz / (double)device->clock_most_mhz);
    return (int64_t)((double)power_mw * 1e3 * lost_s);
}

/* The time since the last call, by what the device does now; what lies too long after its last sample, by nothing. */
static void account_time(struct hec_node_device *device, int64_t now_ns) {
    if (device->up && now_ns > device->known_until_ns) {
        int64_t from_ns = device->known_until_ns > device->accounted_ns ? device->known_until_ns : device->accounted_ns;
        int64_t unseen_ns = now_ns > from_ns ? now_ns - from_ns : 0;
        add_to_states(device, HEC_NODE_BUSY_NS, unseen_ns, 0, false);
        device->accounted_ns += unseen_ns;
        device->gap = true;
    }
    int64_t past_ns = now_ns - device->accounted_ns, util = utilisation(device);
    if (past_ns <= 0)
        return;
    int64_t busy_ns = util <= 0 ? 0 : util >= 1000 ? past_ns : (int64_t)((double)past_ns * (double)util / 1000);
    add_to_states(device, HEC_NODE_BUSY_NS, past_ns, busy_ns, device->up);
    int64_t reasons = device->up ? newest(device, HEC_GPU_THROTTLE) : 0;
    device->total[HEC_NODE_THROTTLE_LOST_UJ] += throttle_lost_uj(device, reasons, past_ns);
    for (int i = 0; i < HEC_THROTTLE_UNASKED && reasons > 0; i++)
        if (hec_throttle_has(reasons, (enum hec_throttle)i))
            device->total[HEC_NODE_THROTTLED_POWER_NS + i] += past_ns;
    device->accounted_ns = now_ns;
}

/* ---- joules ---- */

/* What each GPU instance did since the last division; where no window ended meanwhile, what it did last. */
static size_t list_instances(struct hec_node_device *device, struct hec_shares_instance out[HEC_GPU_INSTANCES_MAX]) {
    size_t count = 0;
    for (int i = 0; i < device->instance_count; i++) {
        struct hec_node_instance *instance = &device->instances[i];
        if (instance->window_ns > 0) {
            instance->sm_permille = (int)(instance->sm_sum / (double)instance->window_ns + 0.5);
            instance->engine_permille = (int)(instance->engine_sum / (double)instance->window_ns + 0.5);
        }
        instance->sm_sum = instance->engine_sum = 0;
        instance->window_ns = 0;
        if (hec_node_instance_first(device, i))
            out[count++] = (struct hec_shares_instance){instance->now.id, instance->sm_permille};
    }
    return count;
}

/* The part of an increment that is above what the device draws without work, for the time in which it had none. */
static int64_t busy_part(const struct hec_node_device *device, const struct hec_node_increment *increment, int util) {
    if (util <= 0)
        return 0;
    int64_t floor_mw = device->shares ? hec_shares_held_floor(device->shares) : HEC_SHARES_UNKNOWN;
    if (floor_mw <= 0 || util >= 1000)
        return increment->mj;
    double idle_s = (double)(increment->end_ns - increment->begin_ns) / 1e9 * (1000 - util) / 1000;
    int64_t idle_mj = (int64_t)((double)floor_mw * idle_s);
    return idle_mj < increment->mj ? increment->mj - idle_mj : 0;
}

/* The processes are those of the reading; listed: they are known. */
static void settle(struct hec_node *node, struct hec_node_device *device, bool listed) {
    struct hec_node_increment *increment = &device->increment;
    if (!increment->waits)
        return;
    bool observed = !increment->gap;
    int util = increment->util_count ? (int)(increment->util_sum / increment->util_count) : HEC_SHARES_UNKNOWN;
    struct hec_shares_instance instances[HEC_GPU_INSTANCES_MAX];
    size_t instance_count = list_instances(device, instances);
    int busy = util < 0 && instance_count ? (int)utilisation(device) : util;
    int64_t before[HEC_AGENT_STATES];
    memcpy(before, &device->total[HEC_NODE_BUSY_MJ], sizeof before);
    device->total[HEC_NODE_ENERGY_MJ] += increment->mj;
    add_to_states(device, HEC_NODE_BUSY_MJ, increment->mj, busy_part(device, increment, busy), observed);
    for (size_t state = 0; state < HEC_AGENT_STATES; state++)
        hec_late_add(device->late, state, device->total[HEC_NODE_BUSY_MJ + state] - before[state], increment->end_ns);
    if (device->shares)
        hec_shares_add(device->shares, &(struct hec_shares_interval){
                                           .end_ns = increment->end_ns,
                                           .duration_ns = increment->end_ns - increment->begin_ns,
                                           .energy_mj = increment->mj,
                                           .observed = observed && listed,
                                           .busy_permille = util,
                                           .holders = node->holders,
                                           .holder_count = hec_node_list_holders(node, device, util, increment->end_ns),
                                           .instances = instances,
                                           .instance_count = instance_count,
                                       });
    device->settled_mj = device->counter_mj;
    device->settled_ns = increment->end_ns;
    device->divided |= listed;
    *increment = (struct hec_node_increment){0};
}

static bool drawn(const struct hec_node_device *device, int64_t mj, int64_t past_ns) {
    int64_t limit_mw = device->info.power_limit_mw > 0 ? device->info.power_limit_mw : POWER_UNKNOWN_MW;
    return (double)mj <= (double)limit_mw * POWER_FACTOR * (double)past_ns / 1e9 + (double)POWER_SLACK_MJ;
}

static void take_counter(struct hec_node *node, struct hec_node_device *device, int64_t t_ns, int64_t value_mj) {
    settle(node, device, false); /* the processes of the last reading were never listed */
    if (device->counter_ns != INT64_MIN) {
        int64_t added_mj = value_mj - device->counter_mj;
        bool back = added_mj < 0;
        if (back)
            added_mj = value_mj;
        bool leap = !drawn(device, added_mj, t_ns - device->counter_ns);
        device->total[HEC_NODE_RESETS] += back || leap;
        device->increment.waits = true;
        device->increment.gap = device->gap;
        device->increment.mj = leap ? 0 : added_mj;
        device->increment.begin_ns = device->counter_ns;
        device->increment.end_ns = t_ns;
    } else {
        device->settled_mj = value_mj;
        device->first_ns = device->settled_ns = t_ns;
    }
    device->counter_mj = value_mj;
    device->counter_ns = t_ns;
    device->gap = false;
}

/* A mean over the window that ends at t: the window began where the one before ended. */
static void integrate(struct hec_node_device *device, enum hec_metric metric, int64_t t_ns, int64_t value) {
    int64_t before_ns = device->newest[metric].t_ns;
    for (size_t i = 0; i < sizeof integrals / sizeof integrals[0]; i++)
        if (integrals[i].metric == metric && before_ns != INT64_MIN && t_ns > before_ns && !device->gap)
            device->total[integrals[i].total] += (int64_t)((double)value * 1024 * (double)(t_ns - before_ns) / 1e9);
}

static struct hec_node_device *device_at(struct hec_node *node, int index) {
    return index >= 0 && index < HEC_DEVICE_MAX ? node->devices[index] : NULL;
}

/* Until the device has idled: what devices like it were measured to draw, and no more than it was seen to. */
static void assume_idle(struct hec_node_device *device, int64_t power_mw) {
    double watts = hec_watts_idle_of_part(device->info.name);
    if (newest(device, HEC_GPU_CONTEXTS) <= 0 || power_mw <= 0)
        return;
    if (device->least_held_mw == 0 || power_mw < device->least_held_mw)
        device->least_held_mw = power_mw;
    if (device->shares && !isnan(watts))
        hec_shares_assume(device->shares, (int64_t)fmin(1e3 * watts, (double)device->least_held_mw));
}

/* Power while no kernel runs. */
static void learn_idle(struct hec_node_device *device, int64_t t_ns, int64_t power_mw) {
    if (!device->shares || device->newest[HEC_GPU_POWER].t_ns == INT64_MIN || device->idle_ns == INT64_MAX ||
        t_ns - device->idle_ns < IDLE_SETTLES_NS)
        return;
    int64_t past_ns = t_ns - device->newest[HEC_GPU_POWER].t_ns;
    hec_shares_idle(device->shares, newest(device, HEC_GPU_CONTEXTS) > 0, power_mw,
                    past_ns < IDLE_READING_NS ? past_ns : IDLE_READING_NS);
}

static void note_idle(struct hec_node_device *device, int64_t t_ns, bool idle) {
    device->idle_ns = !idle ? INT64_MAX : device->idle_ns == INT64_MAX ? t_ns : device->idle_ns;
}

static int64_t silent_ns(const struct hec_node *node) {
    return SILENT_NS + SILENT_INTERVALS * node->interval_ns;
}

static void sampled(const struct hec_node *node, struct hec_node_device *device, int64_t t_ns) {
    device->sampled_ns = t_ns;
    device->known_until_ns = t_ns + silent_ns(node);
    device->late_ns = hec_rounds_late_ns(&node->rounds, t_ns);
}

static void answers(const struct hec_node *node, struct hec_node_device *device, int64_t t_ns) {
    if (!device->up || t_ns > device->known_until_ns)
        account_time(device, t_ns);
    if (!device->up) {
        device->up = true;
        device->up_ns = t_ns;
    }
    sampled(node, device, t_ns);
}

static void take_domain(struct hec_node *node, enum hec_metric metric, int index, int64_t value_uj) {
    struct hec_node_domain *domain = NULL;
    for (int i = 0; i < node->domain_count && !domain; i++)
        if (node->domains[i].metric == metric && node->domains[i].index == index)
            domain = &node->domains[i];
    if (!domain && node->domain_count < HEC_NODE_DOMAINS_MAX) {
        domain = &node->domains[node->domain_count++];
        *domain = (struct hec_node_domain){.metric = metric, .index = index};
    }
    if (!domain)
        return;
    if (domain->fresh && value_uj > domain->counter_uj)
        domain->total_uj += value_uj - domain->counter_uj;
    domain->counter_uj = value_uj;
    domain->fresh = true;
}

static void sink_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    struct hec_node *node = context;
    pthread_mutex_lock(&node->lock);
    struct hec_node_device *device =
        hec_metric_info(metric)->subject == HEC_SUBJECT_DEVICE ? device_at(node, subject) : NULL;
    if (device) {
        answers(node, device, t_ns);
        if (metric == HEC_GPU_UTIL || metric == HEC_GPU_THROTTLE || metric == HEC_GPU_CONTEXTS)
            account_time(device, t_ns);
        if (metric == HEC_GPU_ENERGY)
            take_counter(node, device, t_ns, value);
        integrate(device, metric, t_ns, value);
        hec_verdict_add(&device->verdict, metric, t_ns, value);
        if (metric == HEC_GPU_SM_CLOCK && value > device->clock_most_mhz)
            device->clock_most_mhz = value;
        if (metric == HEC_GPU_POWER) {
            assume_idle(device, value);
            learn_idle(device, t_ns, value);
        }
        if (metric == HEC_GPU_UTIL)
            note_idle(device, t_ns, value == 0);
        if (metric == HEC_GPU_CONTEXTS && device->instance_count)
            note_idle(device, t_ns, utilisation(device) == 0);
        if (metric == HEC_GPU_XID && value > 0) {
            device->xid = value;
            hec_xids_add(&device->xids, value, 1);
        }
        device->throttles |= metric == HEC_GPU_THROTTLE;
        device->newest[metric] = (struct hec_node_value){t_ns, value};
        if (metric == HEC_GPU_UTIL) {
            device->increment.util_sum += value;
            device->increment.util_count++;
        }
        if (metric == HEC_GPU_CONTEXTS) { /* the last of a round of readings */
            settle(node, device, true);
            device->listed_ns[1] = device->listed_ns[0];
            device->listed_ns[0] = t_ns;
        }
    } else if (metric == HEC_RAPL_PACKAGE_ENERGY || metric == HEC_RAPL_DRAM_ENERGY) {
        take_domain(node, metric, subject, value);
    }
    pthread_mutex_unlock(&node->lock);
}

static void sink_missing(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns) {
    struct hec_node *node = context;
    (void)t_ns;
    pthread_mutex_lock(&node->lock);
    struct hec_node_device *device =
        hec_metric_info(metric)->subject == HEC_SUBJECT_DEVICE ? device_at(node, subject) : NULL;
    if (device && metric != HEC_GPU_ENERGY)
        device->newest[metric].t_ns = INT64_MIN; /* missing is absent, not what it was */
    if (device && metric == HEC_GPU_UTIL)
        device->idle_ns = INT64_MAX;
    pthread_mutex_unlock(&node->lock);
}

static void lose(struct hec_node *node, struct hec_node_device *device, int64_t now_ns) {
    account_time(device, now_ns);
    settle(node, device, false);
    device->up = false;
    device->gap = true;
    device->process_count = device->instance_count = 0;
    device->idle_ns = INT64_MAX;
    for (int i = 0; i < HEC_METRIC_COUNT; i++)
        device->newest[i].t_ns = INT64_MIN;
}

static void sink_event(void *context, enum hec_event_kind kind, int index, int64_t t_ns, const char *text) {
    struct hec_node *node = context;
    pthread_mutex_lock(&node->lock);
    struct hec_node_device *device = device_at(node, index);
    if (kind == HEC_EVENT_DEVICE_LOST && device)
        lose(node, device, t_ns);
    const char *trouble = hec_vendor_event(text);
    if (kind == HEC_EVENT_SOURCE_UNAVAILABLE && index == HEC_DEVICE_NONE && trouble)
        snprintf(node->trouble, sizeof node->trouble, "%s", trouble);
    pthread_mutex_unlock(&node->lock);
}

static struct hec_node_kept *find_kept(struct hec_node *node, const char *uuid) {
    for (int i = 0; i < node->kept_count; i++)
        if (strcmp(node->kept[i].uuid, uuid) == 0)
            return &node->kept[i];
    return NULL;
}

static void keep(struct hec_node *node, struct hec_node_device *device) {
    struct hec_node_kept *kept = find_kept(node, device->info.uuid);
    if (!kept && node->kept_count < HEC_DEVICE_MAX)
        kept = &node->kept[node->kept_count++];
    if (!kept || !device->info.uuid[0]) {
        node->dropped_devices++;
        return;
    }
    snprintf(kept->uuid, sizeof kept->uuid, "%s", device->info.uuid);
    hec_shares_free(kept->shares);
    kept->shares = device->shares;
    device->shares = NULL;
    kept->counter_mj = device->counter_ns == INT64_MIN ? -1 : device->settled_mj;
    kept->counter_ns = device->counter_ns;
    kept->accounted_ns = device->accounted_ns;
    memcpy(kept->total, device->total, sizeof kept->total);
    kept->xids = device->xids;
}

/* A device goes on where it was when it was last seen: by an agent before this one, or at another index. */
static void adopt(struct hec_node *node, struct hec_node_device *device, int64_t now_ns) {
    struct hec_node_kept *kept = find_kept(node, device->info.uuid);
    memset(device->total, 0, sizeof device->total);
    hec_verdict_clear(&device->verdict);
    device->clock_most_mhz = device->xid = device->least_held_mw = 0;
    device->xids = (struct hec_xids){0};
    device->idle_ns = INT64_MAX;
    device->up = false;
    device->counter_ns = INT64_MIN;
    device->accounted_ns = now_ns;
    device->increment = (struct hec_node_increment){0};
    hec_shares_free(device->shares);
    device->shares = kept ? kept->shares : NULL;
    if (!device->shares && hec_shares_create(&device->shares) < 0)
        device->shares = NULL;
    hec_late_free(device->late);
    device->late = device->shares ? hec_late_new(HEC_AGENT_STATES, node->lag_ns) : NULL;
    if (device->shares)
        hec_shares_lag(device->shares, node->lag_ns);
    if (!kept)
        return;
    memcpy(device->total, kept->total, sizeof device->total);
    device->xids = kept->xids;
    device->accounted_ns = kept->accounted_ns;
    account_time(device, now_ns); /* it is not up: unobserved */
    if (kept->counter_mj >= 0) {
        device->counter_mj = device->settled_mj = kept->counter_mj;
        device->counter_ns = kept->counter_ns;
    }
    device->gap = true;
    *kept = node->kept[--node->kept_count];
}

static void sink_device(void *context, const struct hec_device *info) {
    struct hec_node *node = context;
    int64_t now_ns = hec_clock_mono_ns();
    if (info->index < 0 || info->index >= HEC_DEVICE_MAX)
        return;
    pthread_mutex_lock(&node->lock);
    struct hec_node_device *device = node->devices[info->index];
    if (!device) {
        device = node->devices[info->index] = calloc(1, sizeof *device);
        if (!device) {
            node->dropped_devices++;
            pthread_mutex_unlock(&node->lock);
            return;
        }
        for (int i = 0; i < HEC_METRIC_COUNT; i++)
            device->newest[i].t_ns = INT64_MIN;
        device->counter_ns = INT64_MIN;
        device->listed_ns[0] = device->listed_ns[1] = INT64_MIN;
        device->accounted_ns = now_ns;
        sampled(node, device, now_ns);
        device->info = *info;
    }
    node->driver = true;
    if (info->simulated && node->identity)
        hec_identity_trust(node->identity);
    node->trouble[0] = '\0';
    /* one that fell off the bus has no name: it is still the one that was there */
    if (info->uuid[0] && (!device->seen || strcmp(info->uuid, device->info.uuid) != 0)) {
        if (device->seen)
            keep(node, device);
        device->info = *info;
        adopt(node, device, now_ns);
        device->seen = true;
    } else if (info->uuid[0]) {
        device->info = *info;
    }
    pthread_mutex_unlock(&node->lock);
}

static void sink_gpu_process(void *context, const struct hec_gpu_process *process) {
    struct hec_node *node = context;
    pthread_mutex_lock(&node->lock);
    struct hec_node_device *device = device_at(node, process->device);
    int i = 0;
    while (device && i < device->process_count && device->processes[i].now.pid != process->pid)
        i++;
    if (device && i < HEC_NODE_PROCESSES_MAX) {
        /* sums that begin anew are another process' with the same number, or another recorder's */
        if (i == device->process_count || process->sm_util_samples < device->processes[i].util_samples)
            device->processes[i] = (struct hec_node_process){0};
        device->processes[i].now = *process;
        device->process_count += i == device->process_count;
    } else if (device) {
        node->dropped_processes++;
    }
    pthread_mutex_unlock(&node->lock);
}

/* The window that has ended since the last record. */
static void add_window(struct hec_node_instance *instance, const struct hec_gpu_instance *record) {
    int64_t sm = record->counters[HEC_GPM_SM_ACTIVE - HEC_GPM_GR_ACTIVE], engine = record->counters[0];
    int64_t window_ns = record->until_ns == INT64_MIN ? 0 : record->until_ns - record->from_ns;
    double part = record->slices_of > 0 ? (double)record->slices / record->slices_of : 0;
    if (record->until_ns == instance->now.until_ns)
        return;
    sm = sm < 0 ? engine : sm;
    if (window_ns <= 0 || sm < 0 || part <= 0) {
        instance->sm_permille = instance->engine_permille = HEC_SHARES_UNKNOWN;
        return;
    }
    instance->sm_permille = (int)((double)sm * part + 0.5);
    instance->engine_permille = (int)(engine < 0 ? sm : engine);
    instance->sm_sum += (double)sm * part * (double)window_ns;
    instance->engine_sum += (double)instance->engine_permille * (double)window_ns;
    instance->window_ns += window_ns;
}

static void sink_gpu_instance(void *context, const struct hec_gpu_instance *record) {
    struct hec_node *node = context;
    pthread_mutex_lock(&node->lock);
    struct hec_node_device *device = device_at(node, record->device);
    int i = 0;
    while (device && i < device->instance_count && strcmp(device->instances[i].now.uuid, record->uuid) != 0)
        i++;
    if (device && i < HEC_GPU_INSTANCES_MAX) {
        struct hec_node_instance *instance = &device->instances[i];
        if (i == device->instance_count) {
            *instance =
                (struct hec_node_instance){.sm_permille = HEC_SHARES_UNKNOWN, .engine_permille = HEC_SHARES_UNKNOWN};
            instance->now.until_ns = INT64_MIN;
            device->instance_count++;
        }
        add_window(instance, record);
        instance->now = *record;
    }
    pthread_mutex_unlock(&node->lock);
}

static void sink_process(void *context, const struct hec_process *process) {
    (void)context;
    (void)process;
}
static void sink_units(void *context, const char *name, double count) {
    (void)context;
    (void)name;
    (void)count;
}
static void sink_meta(void *context, const char *key, const char *value) {
    (void)context;
    (void)key;
    (void)value;
}

struct hec_node *hec_node_new(int64_t interval_ns, struct hec_identity *identity) {
    struct hec_node *node = calloc(1, sizeof *node);
    if (!node) {
        hec_identity_close(identity);
        return NULL;
    }
    node->identity = identity;
    if (identity)
        hec_identity_map(identity, &node->jobs);
    pthread_mutex_init(&node->lock, NULL);
    node->interval_ns = interval_ns;
    node->rounds.due_ns = INT64_MAX;
    /* nothing that it records draws a timeline: those functions are never called */
    node->sink = (struct hec_sink){.context = node,
                                   .sample = sink_sample,
                                   .missing = sink_missing,
                                   .event = sink_event,
                                   .device = sink_device,
                                   .process = sink_process,
                                   .gpu_process = sink_gpu_process,
                                   .gpu_instance = sink_gpu_instance,
                                   .units = sink_units,
                                   .meta = sink_meta};
    return node;
}

void hec_node_free(struct hec_node *node) {
    if (!node)
        return;
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        if (node->devices[i]) {
            hec_shares_free(node->devices[i]->shares);
            hec_late_free(node->devices[i]->late);
        }
        free(node->devices[i]);
    }
    for (int i = 0; i < node->kept_count; i++)
        hec_shares_free(node->kept[i].shares);
    hec_identity_close(node->identity);
    hec_kubelet_free(node->kubelet);
    pthread_mutex_destroy(&node->lock);
    free(node);
}

void hec_node_recorded(struct hec_node *node) {
    pthread_mutex_lock(&node->lock);
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        if (node->devices[i])
            settle(node, node->devices[i], false);
    pthread_mutex_unlock(&node->lock);
}

void hec_node_restart(struct hec_node *node) {
    pthread_mutex_lock(&node->lock);
    node->driver = false;
    for (int i = 0; i < node->domain_count; i++)
        node->domains[i].fresh = false;
    pthread_mutex_unlock(&node->lock);
}

/* For how long it was asked and gave nothing: while this process was given no time, nothing was asked. */
static int64_t silence_ns(const struct hec_node *node, const struct hec_node_device *device, int64_t now_ns) {
    return now_ns - device->sampled_ns - (hec_rounds_late_ns(&node->rounds, now_ns) - device->late_ns);
}

/* Processes and instances are reported at every reading of a device: who is not named any more has left it. */
static void forget_gone(struct hec_node_device *device, int64_t before_ns, int64_t interval_ns) {
    int kept = 0;
    for (int i = 0; i < device->process_count; i++)
        if (device->processes[i].now.last_ns >= before_ns)
            device->processes[kept++] = device->processes[i];
    device->process_count = kept;
    kept = 0;
    /* Those of a round whose first readings are there come later in it, on a busy machine much later. */
    int64_t after_ns = device->listed_ns[1] > INT64_MIN ? device->listed_ns[1] : before_ns - interval_ns - 1;
    for (int i = 0; i < device->instance_count; i++)
        if (device->instances[i].now.t_ns > after_ns)
            device->instances[kept++] = device->instances[i];
    device->instance_count = kept;
}

/* Said once: it is asked again and again. Where there is no kubelet there is nothing to say. */
static void ask_kubelet(struct hec_node *node, int64_t now_ns) {
    struct hec_why why;
    int got = node->kubelet ? hec_kubelet_poll(node->kubelet, now_ns, &why) : 0;
    if (got == 0 || got == HEC_ERR_NOTFOUND)
        return;
    if (got < 0 && !node->pods_failing)
        hec_warn("which pod holds which device is not known: %s", why.text);
    else if (got > 0 && node->pods_failing)
        hec_info("the kubelet answers again");
    node->pods_failing = got < 0;
}

static void read_jobs(struct hec_node *node, int64_t now_ns) {
    struct hec_why why;
    int err = hec_job_map_poll(&node->jobs, now_ns, &why);
    if (err == HEC_ERR_NOTFOUND && !node->jobs.expected)
        return;
    if (err < 0 && !node->jobs_failing)
        hec_warn("which job holds which device is not known: %s", why.text);
    node->jobs_failing = err < 0;
}

void hec_node_tick(struct hec_node *node, int64_t now_ns) {
    pthread_mutex_lock(&node->lock);
    ask_kubelet(node, now_ns);
    read_jobs(node, now_ns);
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        struct hec_node_device *device = node->devices[i];
        if (!device)
            continue;
        device->allocated = device->verdict.allocated = hec_node_is_allocated(node, device);
        account_time(device, now_ns);
        if (!device->increment.waits)
            forget_gone(device, device->sampled_ns - node->interval_ns / 2, node->interval_ns);
        if (device->up && silence_ns(node, device, now_ns) > silent_ns(node))
            lose(node, device, now_ns);
    }
    pthread_mutex_unlock(&node->lock);
}

bool hec_node_divided(struct hec_node *node) {
    pthread_mutex_lock(&node->lock);
    bool divided = true;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        divided &= !node->devices[i] || !node->devices[i]->up || node->devices[i]->divided;
    pthread_mutex_unlock(&node->lock);
    return divided;
}

bool hec_node_troubled(struct hec_node *node) {
    pthread_mutex_lock(&node->lock);
    bool troubled = !node->driver;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        troubled |= node->devices[i] && !node->devices[i]->up;
    pthread_mutex_unlock(&node->lock);
    return troubled;
}
