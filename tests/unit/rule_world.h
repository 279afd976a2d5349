/* A finished diagnosis for rules, findings and reports, built by hand: two devices at most, a ledger, kernels and counters; and what
 * a finding says of it, by ids and numbers: never by its words, which are the report's. */
#pragma once

#include "diagnose/build.h"
#include "diagnose/result.h"
#include "diagnose/rules/facts.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the dossier of a device: what it points to lies in one struct ---- */

struct fake_dossier {
    struct hec_device_timeline timeline;
    struct hec_kernel_row rows[8];
    struct hec_ledger_device ledger, steady;
    struct hec_gap_facts gaps;
    struct hec_call_facts calls;
    struct hec_watts watts;
    struct hec_source_line lines[8]; /* of both lists, which are empty */
};

/* All zero, and all there: a test takes away what its device does not have. */
static inline struct hec_device_diagnosis fake_dossier(struct fake_dossier *of, int device) {
    memset(of, 0, sizeof *of);
    of->timeline.device = of->ledger.device = of->steady.device = of->gaps.device = of->calls.device = device;
    of->timeline.rows = of->rows;
    return (struct hec_device_diagnosis){.readings.device.index = device,
                                         .timeline = &of->timeline,
                                         .ledger = &of->ledger,
                                         .steady = &of->steady,
                                         .gaps = &of->gaps,
                                         .calls = &of->calls,
                                         .watts = &of->watts,
                                         .source.lines = of->lines,
                                         .steady_source.lines = of->lines};
}

/* Nothing of it was traced. */
static inline void fake_dossier_untraced(struct hec_device_diagnosis *d) {
    d->timeline = NULL;
    d->ledger = d->steady = NULL;
    d->gaps = NULL;
    d->calls = NULL;
    d->watts = NULL;
}

/* So many seconds in calls of mean_us; of a name that tells class and precision. */
static inline struct hec_kernel_row *fake_kernel(struct fake_dossier *of, const char *name, double seconds,
                                                 double mean_us) {
    struct hec_kernel_row *k = &of->rows[of->timeline.row_count++];
    *k = (struct hec_kernel_row){
        .device = of->timeline.device, .seconds = seconds, .mean_us = mean_us, .grid = {-1, -1, -1}};
    k->count = llround(seconds * 1e6 / mean_us);
    k->kernel_class = hec_kernel_class_of(name);
    k->precision = hec_kernel_precision_of(name);
    snprintf(k->name, sizeof k->name, "%s", name);
    return k;
}

/* ---- a run ---- */

#define RULE_WORLD_RUN_S 100.0
#define RULE_WORLD_RUN_J 50000.0

struct rule_world {
    struct hec_summary summary;
    struct hec_device_diagnosis devices[2];
    struct fake_dossier of[2];
    struct hec_facts facts;
    struct hec_finding finding;
};

/* The one of a test, and the readings of its first device. */
static struct rule_world w;
static struct hec_device_summary *const d = &w.devices[0].readings;

/* Of a device's state: seconds at these watts (NAN: not unmixed). */
static inline void world_state(int device, enum hec_state state, double seconds, double watts) {
    struct hec_ledger_row *row = &w.of[device].ledger.rows[state];
    row->ns = row->traced_ns = llround(seconds * 1e9);
    row->seconds = row->seconds_low = row->seconds_high = row->step_seconds = seconds;
    row->watts = row->watts_low = row->watts_high = watts;
    row->joules = seconds * watts;
    w.of[device].steady = w.of[device].ledger;
    for (int i = 0; i < HEC_STATE_COUNT; i++) { /* the whole run's alone is priced */
        struct hec_ledger_row *steady = &w.of[device].steady.rows[i];
        steady->watts = steady->watts_low = steady->watts_high = steady->joules = NAN;
    }
}

static inline void world_device(int at) {
    w.devices[at] = fake_dossier(&w.of[at], at);
    w.devices[at].gaps = NULL;
    w.devices[at].calls = NULL; /* nobody counted */
    w.devices[at].watts = NULL;
    struct hec_device_summary *r = &w.devices[at].readings;
    snprintf(r->device.name, sizeof r->device.name, "NVIDIA H200");
    r->device.memory_kib = 141 << 20;
    r->device.power_limit_default_mw = 700000;
    r->used = true;
    r->energy = (struct hec_energy){
        .valid = true, .joules = RULE_WORLD_RUN_J, .window_s = RULE_WORLD_RUN_S, .idle_context_watts = 120};
    r->power_limit_w = 700;
    r->power_w = (struct hec_stat){500, 550, 82, 700, 5000};
    for (int i = 0; i < HEC_METRIC_COUNT; i++)
        r->metric[i] = (struct hec_stat){NAN, NAN, NAN, NAN, 0};
    for (int i = 0; i < HEC_THROTTLE_COUNT; i++)
        r->throttled_share[i] = NAN;
    r->activity = (struct hec_use){.engine = NAN, .sm = NAN, .tensor = NAN, .dram = NAN, .power_w = NAN};
    struct hec_device_timeline *t = &w.of[at].timeline;
    t->busy_s = t->compute_s = 85;
    t->idle_s = 5;
    t->comm_overlap = t->copy_overlap = NAN;
    w.of[at].ledger.window_ns = llround(RULE_WORLD_RUN_S * 1e9);
    w.of[at].ledger.joules = RULE_WORLD_RUN_J;
    world_state(at, HEC_STATE_COMPUTE, 80, 550);
    world_state(at, HEC_STATE_HOST, 5, 300);
    world_state(at, HEC_STATE_STARTUP, 15, 300);
}

/* 100 s and 50 kJ on an H200: 80 s of compute at 550 W; no kernels yet, no counters. */
static inline void world_begin(int devices) {
    memset(&w, 0, sizeof w);
    w.summary.devices = w.devices;
    w.summary.device_count = devices;
    w.summary.seconds = RULE_WORLD_RUN_S;
    w.summary.joules = devices * RULE_WORLD_RUN_J;
    w.summary.steps = (struct hec_step_summary){
        .source = HEC_STEP_OPTIMIZER, .count = 1000, .samples_per_step = NAN, .busy_share = 0.95};
    for (int i = 0; i < devices; i++)
        world_device(i);
}

/* Nothing was traced: telemetry alone. */
static inline void world_untraced(void) {
    for (int i = 0; i < w.summary.device_count; i++)
        fake_dossier_untraced(&w.devices[i]);
    w.summary.steps.source = HEC_STEP_NONE;
    w.summary.steps.busy_share = NAN;
}

/* Hardware counters, means over the run; the engine was active 80 % of it. */
static inline void world_counters(int device, double sm, double occupancy, double tensor, double fp32, double dram) {
    struct hec_device_summary *r = &w.devices[device].readings;
    double engine = 0.8;
    r->activity.has_gpm = true;
    r->activity.engine = 0.9;
    r->activity.power_w = 560;
    r->metric[HEC_GPM_GR_ACTIVE].mean = engine;
    r->metric[HEC_GPM_SM_ACTIVE].mean = sm * engine;
    r->metric[HEC_GPM_SM_OCCUPANCY].mean = occupancy * engine;
    r->metric[HEC_GPM_TENSOR_ACTIVE].mean = tensor * engine;
    r->metric[HEC_GPM_FP32_ACTIVE].mean = fp32 * engine;
    r->metric[HEC_GPM_DRAM_ACTIVE].mean = dram * engine;
}

/* Adds a kernel of 80 s x share in calls of mean_us. */
static inline struct hec_kernel_row *world_kernel(int device, const char *name, double share, double mean_us) {
    return fake_kernel(&w.of[device], name, 80 * share, mean_us);
}

static inline bool world_judge(int device, enum hec_cause cause) {
    const struct hec_rule *rule = hec_rule_of(cause);
    hec_job_find(&w.summary, &(struct hec_schedule){0}, &w.summary.job);
    hec_facts_gather(&w.summary, &w.devices[device], &w.facts);
    w.finding = hec_finding_begin(rule, device);
    return rule->judge(&w.facts, &w.finding);
}

/* ---- what a finding says ---- */

/* The fact in a finding's title or evidence; NULL: it does not say that. */
static inline const struct hec_evidence *fact_of(const struct hec_finding *f, enum hec_evidence_id id) {
    for (int i = 0; i < f->evidence_count; i++)
        if (f->evidence[i].what == id)
            return &f->evidence[i];
    return f->title.what == id ? &f->title : NULL;
}

static inline bool is_near(double value, double expected) {
    return fabs(value - expected) <= 1e-9 + 1e-6 * fabs(expected);
}

/* That fact, and its first number is this. */
static inline bool shows(const struct hec_finding *f, enum hec_evidence_id id, double value) {
    const struct hec_evidence *fact = fact_of(f, id);
    return fact && is_near(fact->value[0], value);
}

/* The lever, and its first parameter is this (0 where it has none). */
static inline bool answers(const struct hec_finding *f, enum hec_lever_id id, double parameter) {
    return f->lever.id == id && is_near(f->lever.value[0], parameter);
}

/* Each fact has a number that is known, unless it is about no number at all. */
static inline bool has_numbers(const struct hec_finding *f) {
    for (int i = 0; i < f->evidence_count; i++)
        if (!isfinite(f->evidence[i].value[0]) && hec_evidence_unit(f->evidence[i].what)[0])
            return false;
    return f->evidence_count > 0 && f->evidence_count <= HEC_EVIDENCE_MAX && isfinite(f->title.value[0]);
}
