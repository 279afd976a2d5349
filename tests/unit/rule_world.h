/* A run for the rules, built by hand: two devices at most, a ledger, kernels and counters. */
#ifndef TESTS_UNIT_RULE_WORLD_H
#define TESTS_UNIT_RULE_WORLD_H

#include "diagnose/job.h"
#include "diagnose/rules/rule.h"
#include "fake_dossier.h"

#define RULE_WORLD_RUN_S 100.0
#define RULE_WORLD_RUN_J 50000.0

struct rule_world {
    struct hec_summary summary;
    struct hec_device_diagnosis devices[2];
    struct fake_dossier of[2];
    struct hec_facts facts;
    struct hec_finding finding;
};

/* Of a device's state: seconds at these watts (NAN: not unmixed). */
static inline void world_state(struct rule_world *w, int device, enum hec_state state, double seconds, double watts) {
    struct hec_ledger_row *row = &w->of[device].ledger.rows[state];
    row->ns = row->traced_ns = llround(seconds * 1e9);
    row->seconds = row->seconds_low = row->seconds_high = row->step_seconds = seconds;
    row->watts = row->watts_low = row->watts_high = watts;
    row->joules = seconds * watts;
    w->of[device].steady = w->of[device].ledger;
}

static inline void world_device(struct rule_world *w, int at) {
    w->devices[at] = fake_dossier(&w->of[at], at);
    w->devices[at].gaps = NULL;
    w->devices[at].calls = NULL; /* nobody counted */
    w->devices[at].watts = NULL;
    struct hec_device_summary *d = &w->devices[at].readings;
    snprintf(d->device.name, sizeof d->device.name, "NVIDIA H200");
    d->device.memory_kib = 141 << 20;
    d->device.power_limit_default_mw = 700000;
    d->used = true;
    d->energy = (struct hec_energy){
        .valid = true, .joules = RULE_WORLD_RUN_J, .window_s = RULE_WORLD_RUN_S, .idle_context_watts = 120};
    d->power_limit_w = 700;
    d->power_w = (struct hec_stat){500, 550, 82, 700, 5000};
    for (int i = 0; i < HEC_METRIC_COUNT; i++)
        d->metric[i] = (struct hec_stat){NAN, NAN, NAN, NAN, 0};
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        d->throttled_share[i] = NAN;
    d->activity = (struct hec_use){.engine = NAN, .sm = NAN, .tensor = NAN, .dram = NAN, .power_w = NAN};
    struct hec_device_timeline *t = &w->of[at].timeline;
    t->busy_s = t->compute_s = 85;
    t->idle_s = 5;
    t->comm_overlap = t->copy_overlap = NAN;
    w->of[at].ledger.window_ns = llround(RULE_WORLD_RUN_S * 1e9);
    w->of[at].ledger.joules = RULE_WORLD_RUN_J;
    world_state(w, at, HEC_STATE_COMPUTE, 80, 550);
    world_state(w, at, HEC_STATE_HOST, 5, 300);
    world_state(w, at, HEC_STATE_STARTUP, 15, 300);
}

/* 100 s and 50 kJ on an H200: 80 s of compute at 550 W; no kernels yet, no counters. */
static inline void world_begin(struct rule_world *w, int devices) {
    memset(w, 0, sizeof *w);
    w->summary.devices = w->devices;
    w->summary.device_count = devices;
    w->summary.seconds = RULE_WORLD_RUN_S;
    w->summary.joules = devices * RULE_WORLD_RUN_J;
    w->summary.steps = (struct hec_step_summary){
        .source = HEC_STEP_OPTIMIZER, .count = 1000, .samples_per_step = NAN, .busy_share = 0.95};
    for (int i = 0; i < devices; i++)
        world_device(w, i);
}

/* Nothing was traced: telemetry alone. */
static inline void world_untraced(struct rule_world *w) {
    for (int i = 0; i < w->summary.device_count; i++)
        fake_dossier_untraced(&w->devices[i]);
    w->summary.steps.source = HEC_STEP_NONE;
    w->summary.steps.busy_share = NAN;
}

/* Hardware counters, means over the run; the engine was active 80 % of it. */
static inline void world_counters(struct rule_world *w, int device, double sm, double occupancy, double tensor,
                                  double fp32, double dram) {
    struct hec_device_summary *d = &w->devices[device].readings;
    double engine = 0.8;
    d->activity.has_gpm = true;
    d->activity.engine = 0.9;
    d->activity.power_w = 560;
    d->metric[HEC_GPM_GR_ACTIVE].mean = engine;
    d->metric[HEC_GPM_SM_ACTIVE].mean = sm * engine;
    d->metric[HEC_GPM_SM_OCCUPANCY].mean = occupancy * engine;
    d->metric[HEC_GPM_TENSOR_ACTIVE].mean = tensor * engine;
    d->metric[HEC_GPM_FP32_ACTIVE].mean = fp32 * engine;
    d->metric[HEC_GPM_DRAM_ACTIVE].mean = dram * engine;
}

/* Adds a kernel of 80 s x share in calls of mean_us. */
static inline struct hec_kernel_row *world_kernel(struct rule_world *w, int device, const char *name, double share,
                                                  double mean_us) {
    return fake_kernel(&w->of[device], name, 80 * share, mean_us);
}

static inline bool world_judge(struct rule_world *w, int device, enum hec_cause cause) {
    const struct hec_rule *rule = hec_rule_of(cause);
    hec_job_find(&w->summary, &w->summary.job);
    hec_facts_gather(&w->summary, &w->devices[device], &w->facts);
    w->finding = hec_finding_begin(rule, device);
    return rule->judge(&w->facts, &w->finding);
}

#endif
