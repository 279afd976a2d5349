/* Idle: a device is held and not used. */
#include "base/clock.h"
#include "diagnose/rules/waits.h"

#include <math.h>
#include <string.h>

/* Everything after the last activity, whether traced or not. NAN: unknown. */
static double held_s(const struct hec_facts *f) {
    double to = f->device->timeline ? f->device->timeline->to_s : f->device->readings.activity.to_s;
    return f->device->ledger ? f->device->ledger->rows[HEC_STATE_TAIL].seconds : f->summary->seconds - to;
}

/* Where the program is after its last work; NULL unknown. */
static const struct hec_source_line *held_by(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->device->source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].state == HEC_STATE_TAIL)
            return &source->lines[i];
    return NULL;
}

static void report_line(const struct hec_source_line *line, struct hec_finding *out) {
    if (line && line->line > 0)
        hec_finding_add_of(out, line->function, HEC_FACT(AT_LINE, line->line));
}

static void report_watts(const struct hec_facts *f, enum hec_state state, struct hec_finding *out) {
    const struct hec_ledger_device *ledger = f->device->ledger;
    if (ledger && ledger->rows[state].watts > 0)
        hec_finding_add(out, HEC_FACT(HELD_POWER, ledger->rows[state].watts));
}

/* It works again afterwards. What steps are made of is theirs. */
static bool judge_between(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_hold *hold = &f->device->hold;
    const struct hec_ledger_device *steady = f->device->steady, *ledger = f->device->ledger;
    double held = (double)(hold->to_ns - hold->from_ns) / HEC_NS_PER_S, share = held / f->run_s;
    bool in_steps = steady && f->device->steps.count && hold->from_ns < steady->from_ns + steady->window_ns &&
                    hold->to_ns > steady->from_ns;
    if (!ledger || in_steps || !(share >= HEC_IDLE_LEAST && held >= HEC_IDLE_LEAST_S))
        return false;
    out->title = HEC_FACT(HELD_BETWEEN, held, share);
    const struct hec_source_line *line = &f->device->hold_line;
    report_line(line, out);
    if (line->line > 0) {
        struct hec_finding_line *at = &out->lines[out->line_count++];
        memcpy(at->file, line->file, sizeof at->file);
        memcpy(at->function, line->function, sizeof at->function);
        at->line = line->line;
        at->share = 1;
    }
    hec_waits_report_cores(f, out);
    report_watts(f, HEC_STATE_HOST, out);
    const struct hec_stat *clock = &f->device->readings.metric[HEC_GPU_SM_CLOCK];
    if (share > HEC_QUIET_MOSTLY && clock->maximum > 0 && clock->median >= HEC_IDLE_CLOCKS * clock->maximum)
        hec_finding_add(out, HEC_FACT(HELD_CLOCK, clock->median, clock->maximum));
    out->confidence = HEC_IDLE_CONFIDENCE;
    double made_again = fmin(1, ledger->rows[HEC_STATE_STARTUP].seconds / held);
    hec_waits_save_seconds(f, held, 0, HEC_IDLE_HELD * (1 - made_again), 1, out);
    return true;
}

/* Nothing ran on it in the whole run. A trace with work on the device goes before what telemetry makes of the little that it
 * sees: a program that gives a device 0.1 ms of work each 30 ms uses it. */
static bool never_used(const struct hec_facts *f) {
    return f->device->ledger ? f->device->ledger->basis == HEC_LEDGER_UNUSED
                             : hec_use_nothing(&f->device->readings) > 0;
}

/* How a command comes to fail by itself: it waits in vain, says where it was, cleans up. */
static bool fails(const struct hec_facts *f) {
    return hec_summary_failed(f->summary) && f->summary->exit_code < HEC_EXIT_SIGNAL;
}

bool hec_judge_idle(const struct hec_facts *f, struct hec_finding *out) {
    bool never = never_used(f);
    double held = never && !f->device->ledger ? f->run_s : held_s(f), share = held / f->run_s;
    const struct hec_source_line *line = held_by(f);
    /* Packages' code there is a program that ends: workers are waited for, caches written. */
    bool ends = line && hec_source_rank(line->file) > 0;
    if (f->device->readings.others == HEC_OTHERS_BUSY)
        return false;
    if (!never && !(share >= HEC_IDLE_LEAST && held >= HEC_IDLE_LEAST_S && !ends && !fails(f)))
        return judge_between(f, out);
    if (!never && f->device->after.seconds > 0 && f->device->after.engine > HEC_IDLE_MOST_ENGINE)
        return false;
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
        report_line(line, out);
        hec_waits_report_cores(f, out);
    }
    report_watts(f, HEC_STATE_TAIL, out);
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
