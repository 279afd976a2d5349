/* Idle: a device is held and not used. */
#include "diagnose/rules/waits.h"

#include <math.h>

/* Everything after the last activity, whether traced or not. NAN: unknown. */
static double held_s(const struct hec_facts *f) {
    double to = f->device->timeline ? f->device->timeline->to_s : f->device->readings.activity.to_s;
    return f->device->ledger ? f->device->ledger->rows[HEC_STATE_TAIL].seconds : f->summary->seconds - to;
}

/* Where the program is meanwhile; NULL unknown. */
static const struct hec_source_line *held_by(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->device->source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_TAIL)
            return &source->lines[i];
    return NULL;
}

/* Nothing ran on it in the whole run. A trace with work on the device goes before what telemetry makes of the little that it
 * sees: a program that gives a device 0.1 ms of work each 30 ms uses it. */
static bool never_used(const struct hec_facts *f) {
    return f->device->ledger ? f->device->ledger->basis == HEC_LEDGER_UNUSED
                             : hec_use_nothing(&f->device->readings) > 0;
}

bool hec_judge_idle(const struct hec_facts *f, struct hec_finding *out) {
    bool never = never_used(f);
    double held = never && !f->device->ledger ? f->run_s : held_s(f), share = held / f->run_s, watts = NAN;
    const struct hec_source_line *line = held_by(f);
    /* Packages' code there is a program that ends: workers are waited for, caches written. */
    bool ends = line && hec_source_rank(line->file) > 0;
    if (f->device->readings.others == HEC_OTHERS_BUSY ||
        (!never && f->device->after.seconds > 0 && f->device->after.engine > HEC_IDLE_MOST_ENGINE) ||
        (!never && !(share >= HEC_IDLE_LEAST && held >= HEC_IDLE_LEAST_S && !ends)))
        return false;
    if (f->device->ledger && f->device->ledger->rows[HEC_STATE_TAIL].watts > 0)
        watts = f->device->ledger->rows[HEC_STATE_TAIL].watts;
    if (never) {
        out->title = HEC_FACT(UNUSED, held);
        hec_finding_add(
            out, HEC_FACT(ENGINE_IN_RUN, hec_use_engine(&f->device->readings), hec_use_seconds(&f->device->readings)));
        struct hec_evidence used = HEC_FACT(USED_BY, NAN);
        used.why = &f->device->readings.used_why;
        hec_finding_add(out, used);
    } else {
        out->title = HEC_FACT(HELD, held, share);
        hec_finding_add(out, HEC_FACT(LAST_ACTIVITY, held));
        if (line && line->line > 0)
            hec_finding_add_of(out, line->function, HEC_FACT(AT_LINE, line->line));
        hec_waits_report_cores(f, out);
    }
    if (isfinite(watts))
        hec_finding_add(out, HEC_FACT(HELD_POWER, watts));
    double most_mhz = f->device->readings.metric[HEC_GPU_SM_CLOCK].maximum;
    if (!never && most_mhz > 0 && f->device->after.sm_mhz >= HEC_IDLE_CLOCKS * most_mhz)
        hec_finding_add(out, HEC_FACT(HELD_CLOCK, f->device->after.sm_mhz, most_mhz));
    out->confidence = never               ? hec_use_nothing(&f->device->readings)
                      : f->device->ledger ? HEC_IDLE_CONFIDENCE
                                          : hec_use_confidence(&f->device->readings);
    hec_waits_save_seconds(f, held, never ? 0 : HEC_IDLE_HELD_LOW, never ? HEC_IDLE_NEVER : HEC_IDLE_HELD, 1, out);
    out->states = f->device->ledger ? 1u << HEC_STATE_TAIL : 0;
    return true;
}
