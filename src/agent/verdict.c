#include "agent/verdict.h"

#include "base/clock.h"
#include "diagnose/meter/use.h"
#include "model/throttle.h"

#include <math.h>
#include <string.h>

#define HALF_NS (30 * HEC_NS_PER_S)
#define THROTTLED_SHARE 0.5 /* of readings: for most of the time */
#define SURE_READ 0.9       /* of what the driver says outright: reasons for low clocks, and that nothing ran */

enum input { UTIL, ENGINE, SM, OCCUPANCY, TENSOR, RX, TX, POWER, SLOW, HELD, CLOCK };

static const struct {
    enum hec_metric metric;
    double factor;
} inputs[HEC_VERDICT_INPUTS] = {
    [UTIL] = {HEC_GPU_UTIL, 1e-3},
    [ENGINE] = {HEC_GPM_GR_ACTIVE, 1e-3},
    [SM] = {HEC_GPM_SM_ACTIVE, 1e-3},
    [OCCUPANCY] = {HEC_GPM_SM_OCCUPANCY, 1e-3},
    [TENSOR] = {HEC_GPM_TENSOR_ACTIVE, 1e-3},
    [RX] = {HEC_GPM_PCIE_RX, 1024},
    [TX] = {HEC_GPM_PCIE_TX, 1024},
    [POWER] = {HEC_GPU_POWER, 1e-3},
    [SLOW] = {HEC_GPU_THROTTLE, 1},
    [HELD] = {HEC_GPU_CONTEXTS, 1},
    [CLOCK] = {HEC_GPU_SM_CLOCK, 1},
};

void hec_verdict_clear(struct hec_verdict *verdict) {
    *verdict = (struct hec_verdict){.begun_ns = INT64_MIN};
}

static void turn(struct hec_verdict *verdict, int64_t t_ns) {
    if (verdict->begun_ns != INT64_MIN && t_ns - verdict->begun_ns < HALF_NS)
        return;
    bool follows = verdict->begun_ns != INT64_MIN && t_ns - verdict->begun_ns < 2 * HALF_NS;
    if (follows)
        memcpy(verdict->half[0], verdict->half[1], sizeof verdict->half[0]);
    else
        memset(verdict->half[0], 0, sizeof verdict->half[0]);
    memset(verdict->half[1], 0, sizeof verdict->half[1]);
    verdict->begun_ns = follows ? verdict->begun_ns + HALF_NS : t_ns;
}

void hec_verdict_add(struct hec_verdict *verdict, enum hec_metric metric, int64_t t_ns, int64_t value) {
    for (int i = 0; i < HEC_VERDICT_INPUTS; i++)
        if (inputs[i].metric == metric) {
            turn(verdict, t_ns);
            verdict->half[1][i].sum += i == SLOW ? hec_throttle_slowed(value) : (double)value * inputs[i].factor;
            verdict->half[1][i].count++;
        }
}

static int64_t count_of(const struct hec_verdict *verdict, enum input input) {
    return verdict->half[0][input].count + verdict->half[1][input].count;
}

static double mean_of(const struct hec_verdict *verdict, enum input input) {
    int64_t count = count_of(verdict, input);
    return count ? (verdict->half[0][input].sum + verdict->half[1][input].sum) / (double)count : NAN;
}

/* Counters where there are enough of them, else the driver's utilisation. */
static void fill(const struct hec_verdict *verdict, const struct hec_device *device, struct hec_device_summary *out) {
    bool gpm = count_of(verdict, ENGINE) >= HEC_USE_READINGS;
    *out = (struct hec_device_summary){.device = *device, .others = HEC_OTHERS_IDLE};
    out->power_limit_w = device->power_limit_mw > 0 ? (double)device->power_limit_mw / 1000 : NAN;
    out->metric[HEC_GPM_GR_ACTIVE].mean = mean_of(verdict, ENGINE);
    out->metric[HEC_GPU_UTIL].mean = mean_of(verdict, UTIL);
    out->energy.window_s = 2.0 * HALF_NS / HEC_NS_PER_S;
    out->activity = (struct hec_use){
        .to_s = 2.0 * HALF_NS / HEC_NS_PER_S,
        .has_gpm = gpm,
        .readings = count_of(verdict, gpm ? ENGINE : UTIL),
        .engine = mean_of(verdict, gpm ? ENGINE : UTIL),
        .sm = gpm ? mean_of(verdict, SM) : NAN,
        .occupancy = gpm ? mean_of(verdict, OCCUPANCY) : NAN,
        .tensor = gpm ? mean_of(verdict, TENSOR) : NAN,
        .pcie_rx = gpm ? mean_of(verdict, RX) : NAN,
        .pcie_tx = gpm ? mean_of(verdict, TX) : NAN,
        .power_w = mean_of(verdict, POWER),
    };
}

static double transfers(const struct hec_device_summary *d) {
    return hec_use_copies_explain(d) ? hec_use_transfers(d) : 0;
}

/* The device waits for its host: for what, counters do not say. Data on the bus may be copies that it waits for, or what a slow loader
 * brings; the driver's utilisation alone says less, and that it idles all the same. */
static double starved(const struct hec_device_summary *d) {
    if (!(d->activity.engine <= HEC_USE_WAITS_ENGINE) || hec_use_thin(d))
        return 0;
    if (!d->activity.has_gpm)
        return hec_use_confidence(d);
    return hec_use_waits(d);
}

static int idle_verdict(const struct hec_verdict *verdict, const struct hec_device *device) {
    if (!(mean_of(verdict, HELD) > 0))
        return verdict->allocated ? HEC_AGENT_VERDICT_IDLE_ALLOCATED : HEC_AGENT_VERDICT_IDLE_FREE;
    return device->clock_max_mhz > 0 && mean_of(verdict, CLOCK) >= HEC_IDLE_CLOCKS * (double)device->clock_max_mhz
               ? HEC_AGENT_VERDICT_IDLE_CLOCKS
               : HEC_AGENT_VERDICT_IDLE_ALLOCATED;
}

int hec_verdict_of(const struct hec_verdict *verdict, const struct hec_device *device, int64_t now_ns, double *sure) {
    static const struct {
        double (*holds)(const struct hec_device_summary *device);
        enum hec_agent_verdict verdict;
    } patterns[] = {
        {hec_use_dense, HEC_AGENT_VERDICT_HEALTHY},
        {transfers, HEC_AGENT_VERDICT_TRANSFER_BOUND},
        {hec_use_thin, HEC_AGENT_VERDICT_OVERHEAD_BOUND},
        {starved, HEC_AGENT_VERDICT_STARVED},
    };
    struct hec_device_summary summary;
    double unused = NAN;
    sure = sure ? sure : &unused;
    *sure = NAN;
    if (verdict->begun_ns == INT64_MIN || now_ns - verdict->begun_ns >= 2 * HALF_NS)
        return HEC_VERDICT_UNKNOWN;
    fill(verdict, device, &summary);
    if (summary.activity.readings < HEC_USE_READINGS)
        return HEC_VERDICT_UNKNOWN;
    *sure = SURE_READ;
    if (mean_of(verdict, SLOW) >= THROTTLED_SHARE)
        return HEC_AGENT_VERDICT_THROTTLED;
    if (hec_use_engine(&summary) < HEC_USE_NOTHING_MEAN)
        return idle_verdict(verdict, device);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if ((*sure = patterns[i].holds(&summary)) > 0)
            return patterns[i].verdict;
    *sure = NAN;
    return HEC_VERDICT_UNKNOWN;
}
