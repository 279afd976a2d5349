/* Idle: a device is held and not used. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.20  /* of the run, after the last activity */
#define LEAST_S 2.0 /* leaving Python takes 0.3 to 0.5 s, with worker processes up to 2 s */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the run after the device's last activity", "ours"},
    {LEAST_S, "s", "least time of that",
     "measured on an H200: leaving PyTorch takes 0.3 to 0.5 s, with loader workers 2 s"},
    {100 * HEC_USE_NOTHING_MEAN, "%", "engine activity over the run below which the device was not used at all",
     "measured on an H200: a context held for 19 s 0.7 %; a starved loop also 0.3 %, but spread over the run"},
    {100 * HEC_USE_NOTHING_SHARE, "%", "of the run in which all of that lies",
     "a context that is made and then held is one moment"},
    {100 * HEC_USE_NOISE, "%", "the same engine activity where all of it lies within half a second",
     "the counters read in steps of 0.1 %; 0.5 % is their noise when idle"},
};

static const struct hec_rule_advice advice[] = {
    {"any",
     "End the process, or at least its context, when its work is done: a context alone keeps an H200 at 120 W "
     "instead of 82 W, and nobody else gets the device.",
     NULL},
    {"serving", "Scale to zero, or share the device between models.", NULL},
};

/* Everything after the last activity, whether traced or not. NAN: unknown. */
static double held_s(const struct hec_facts *f) {
    double to = f->timeline ? f->timeline->to_s : f->device->activity.to_s;
    return f->ledger ? f->ledger->rows[HEC_STATE_TAIL].seconds : f->summary->seconds - to;
}

/* Where the program is meanwhile; NULL unknown. */
static const struct hec_source_line *held_by(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->summary->diagnosis.source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].device == f->device->device.index && source->lines[i].state == HEC_STATE_TAIL)
            return &source->lines[i];
    return NULL;
}

/* Nothing ran on it in the whole run. A trace with work on the device goes before what telemetry makes of the little that it
 * sees: a program that gives a device 0.1 ms of work each 30 ms uses it. */
static bool never_used(const struct hec_facts *f) {
    return f->ledger ? f->ledger->basis == HEC_LEDGER_UNUSED : hec_use_nothing(f->device) > 0;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    bool never = never_used(f);
    double held = never && !f->ledger ? f->run_s : held_s(f), share = held / f->run_s, watts = NAN;
    const struct hec_source_line *line = held_by(f);
    /* Packages' code there is a program that ends: workers are waited for, caches written. */
    bool ends = line && hec_source_rank(line->file) > 0;
    if (f->device->others == HEC_OTHERS_BUSY || (!never && !(share >= LEAST && held >= LEAST_S && !ends)))
        return false;
    if (f->ledger && f->ledger->rows[HEC_STATE_TAIL].watts > 0)
        watts = f->ledger->rows[HEC_STATE_TAIL].watts;
    if (never) {
        out->title = HEC_FACT(UNUSED, held);
        hec_finding_add(out, HEC_FACT(ENGINE_IN_RUN, hec_use_engine(f->device), hec_use_seconds(f->device)));
        hec_finding_add_of(out, f->device->used_why, HEC_FACT(USED_BY, NAN));
    } else {
        out->title = HEC_FACT(HELD, held, share);
        hec_finding_add(out, HEC_FACT(LAST_ACTIVITY, held));
        if (line && line->line > 0)
            hec_finding_add_of(out, line->function, HEC_FACT(AT_LINE, line->line));
        hec_waits_report_cores(f, out);
    }
    if (isfinite(watts))
        hec_finding_add(out, HEC_FACT(HELD_POWER, watts));
    out->confidence = never ? hec_use_nothing(f->device) : f->ledger ? 0.9 : hec_use_confidence(f->device);
    hec_waits_save_seconds(f, held, never ? 0 : 0.7, never ? 0.9 : 0.95, 1, out);
    out->states = f->ledger ? 1u << HEC_STATE_TAIL : 0;
    return true;
}

const struct hec_rule hec_rule_idle = {
    .cause = HEC_CAUSE_IDLE,
    .meaning =
        "The program holds the device and gives it nothing to do: it has ended its work and lives on, or never began.",
    .detection =
        "time after the device's last activity in which the program's own code runs (packages' code there is a "
        "program that ends); or no activity in the whole run. A device that works now and then is used.",
    .saving = "the time held without use, at what the device draws then.",
    .lever = HEC_LEVER_GIVE_BACK,
    HEC_RULE_TABLES,
    .judge = judge,
};
