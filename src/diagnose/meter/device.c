#include "diagnose/meter/device.h"

#include "base/clock.h"
#include "diagnose/meter/energy.h"
#include "diagnose/meter/split.h"
#include "diagnose/meter/telemetry.h"
#include "diagnose/meter/use.h"

#include <math.h>
#include <stdlib.h>

/* The energy, which hands its steps of power on to the split and to the statistics. */
struct measuring {
    struct hec_energy_meter energy;
    struct hec_split *split;
    struct hec_histogram histogram; /* of 0.1 W, exact to 1638 W */
    struct hec_accumulator all, active;
    int64_t end_ns, active_from_ns, active_to_ns;
};

static void take_counter(void *context, const struct hec_counter_reading *reading) {
    hec_energy_counter(&((struct measuring *)context)->energy, reading->t_ns, reading->mj, reading->narrowest_us);
}

static void take_spacing(void *context, int64_t t_ns, int64_t value, bool valid) {
    (void)value;
    if (valid)
        hec_energy_spacing(&((struct measuring *)context)->energy, t_ns);
}

static void take_power(void *context, int64_t t_ns, int64_t value, bool valid) {
    if (valid)
        hec_energy_power(&((struct measuring *)context)->energy, t_ns, value);
}

static void add_within(struct hec_accumulator *to, int64_t start_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns,
                       double value) {
    start_ns = start_ns > from_ns ? start_ns : from_ns;
    end_ns = end_ns < to_ns ? end_ns : to_ns;
    if (end_ns > start_ns)
        hec_accumulator_add(to, value, (double)(end_ns - start_ns));
}

static void power_step(void *context, int64_t start_ns, int64_t end_ns, double watts) {
    struct measuring *m = context;
    hec_split_power(m->split, start_ns, end_ns, watts);
    add_within(&m->all, start_ns, end_ns, 0, m->end_ns, watts);
    add_within(&m->active, start_ns, end_ns, m->active_from_ns, m->active_to_ns, watts);
}

static void activity_step(void *split, int64_t start_ns, int64_t end_ns, double permille) {
    hec_split_activity(split, start_ns, end_ns, permille / 1000);
}

static int feed(struct hec_meter *meter, struct measuring *m, const struct hec_device_summary *d, struct hec_why *why) {
    int subject = d->device.index;
    enum hec_metric engine = d->activity.has_gpm ? HEC_GPM_GR_ACTIVE : HEC_GPU_UTIL;
    if (engine == HEC_GPU_UTIL)
        hec_split_coarse(m->split);
    int err = hec_meter_counter(meter, subject, take_counter, m, why);
    if (!err)
        err = hec_meter_read(meter, HEC_GPU_POWER, subject, take_spacing, m, why);
    if (err)
        return err;
    hec_energy_prepare(&m->energy);
    if ((err = hec_meter_read(meter, HEC_GPU_POWER, subject, take_power, m, why)) != 0 ||
        (err = hec_meter_steps(meter, engine, subject, activity_step, m->split, NULL, why)) != 0 ||
        (err = hec_meter_read(meter, HEC_GPU_CONTEXTS, subject, hec_split_contexts, m->split, why)) != 0)
        return err;
    hec_split_contexts_end(m->split);
    return 0;
}

/* As the collector found it; 0 where that is not plausible. */
static int quantum_ns(struct hec_meter *meter, int subject, int64_t *out, struct hec_why *why) {
    struct hec_range quantum;
    int err = hec_meter_range(meter, HEC_GPU_ENERGY_QUANTUM, subject, &quantum, why);
    bool plausible = quantum.count && quantum.last > 0 && quantum.last < 3600 * 1000000LL;
    *out = plausible ? quantum.last * HEC_NS_PER_US : 0;
    return err;
}

static int measure(struct hec_meter *meter, struct measuring *m, const struct hec_meter_hints *hints,
                   struct hec_device_summary *d, struct hec_why *why) {
    struct hec_energy_options options = {
        .end_ns = meter->end_ns,
        .limit_w = d->power_limit_w,
        .lost_ns = hints->lost_ns,
        .simulated = hints->simulated,
        .has_power_history = d->device.has_power_history != 0,
        .unavailable = hints->unavailable,
        .visit_power = power_step,
        .context = m,
    };
    int err = quantum_ns(meter, d->device.index, &options.quantum_ns, why);
    if (!err)
        err = hec_histogram_init(&m->histogram, 14, 20);
    if (!err)
        err = hec_split_create(meter->end_ns, &m->split);
    if (err)
        return err;
    m->end_ns = meter->end_ns;
    if (isfinite(d->activity.from_s)) {
        m->active_from_ns = llround(d->activity.from_s * HEC_NS_PER_S);
        m->active_to_ns = llround(d->activity.to_s * HEC_NS_PER_S);
    }
    hec_accumulator_init(&m->all, &m->histogram, 10);
    hec_accumulator_init(&m->active, NULL, 1);
    hec_energy_init(&m->energy, &options);
    if ((err = feed(meter, m, d, why)) != 0)
        return err;
    hec_energy_finish(&m->energy, &d->energy);
    if (fmax(d->activity.pcie_rx, d->activity.pcie_tx) >= hec_use_transfers_from(&d->device))
        hec_split_copies(m->split);
    hec_split_result(m->split, &d->energy);
    d->power_w = hec_accumulator_result(&m->all, 1);
    d->activity.power_w = hec_accumulator_result(&m->active, 1).mean;
    return 0;
}

int hec_meter_device(struct hec_meter *meter, const struct hec_meter_hints *hints, struct hec_device_summary *d,
                     struct hec_why *why) {
    int err = hec_telemetry_span(meter, d, why);
    if (!err)
        err = hec_telemetry_fill(meter, d, why);
    if (err)
        return err;
    struct measuring *m = calloc(1, sizeof *m);
    if (!m)
        return HEC_ERR_NOMEM;
    err = measure(meter, m, hints, d, why);
    hec_split_free(m->split);
    hec_histogram_free(&m->histogram);
    free(m);
    return err;
}
