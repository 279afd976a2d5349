/* Host: the program's own code runs between launches, and the device waits for it. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.08    /* of the steady part */
#define TELEMETRY 0.4 /* confidence without a trace: it may be data, synchronisation or checkpoints as well */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in state host, in pieces of 0.2 ms and more",
     "measured on an H200: programs that count or tokenise in Python 82 to 87 %, healthy ones under 2 %"},
    {HEC_GAP_LONG_S, "s", "from which a wait is taken for set-up, where no steps separate the two",
     "a loop rarely has steps that wait for so long"},
    {1e-6 * HEC_STATE_BRIEF_NS, "ms", "shorter pieces are the framework's, between two launches",
     "an operator takes 10 to 100 us"},
    {100 * HEC_USE_WAITS_ENGINE, "%", "most engine activity in the time in use, where nothing was traced",
     "idle for more than half of that time, and neither transfers nor small kernels explain it"},
    {TELEMETRY, "", "confidence at most then: it may be data, synchronisation or checkpoints as well", "ours"},
};

static const struct hec_rule_advice advice[] = {
    {"any",
     "Move the work out of the loop, to a thread or process that works ahead, or to the device; replace loops over "
     "elements by calls on arrays.",
     NULL},
    {"PyTorch", "Element by element in Python is 100 times slower than one call.",
     "counts = torch.bincount(tokens, minlength=1000)\n"
     "# not: for token in tokens.tolist(): ...\n"},
    {"serving", "Tokenise in processes of their own, batched, with a compiled tokenizer.",
     "tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True)\n"},
};

static const struct hec_source_line *held_by(const struct hec_facts *f) {
    const struct hec_source_lines *source = &f->summary->diagnosis.steady_source;
    for (int i = 0; i < source->count; i++) /* the largest share is first */
        if (source->lines[i].device == f->device->device.index && source->lines[i].state == HEC_STATE_HOST)
            return &source->lines[i];
    return NULL;
}

static bool judge_telemetry(const struct hec_facts *f, struct hec_finding *out) {
    double sure = hec_use_waits(f->device);
    if (!sure)
        return false;
    out->title = HEC_FACT(ENGINE_IDLE, 1 - f->device->activity.engine);
    hec_waits_report_use(f, true, out);
    hec_waits_report_cores(f, out);
    hec_finding_add(out, HEC_FACT(UNTRACED, NAN));
    out->confidence = fmin(TELEMETRY, sure);
    hec_waits_save_telemetry(f, f->device->activity.engine, 0.5, out);
    return true;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if (!hec_waits_claim(f, LEAST, &w, out))
        return !w.known && judge_telemetry(f, out);
    const struct hec_source_line *line = held_by(f);
    if (line && line->line > 0) {
        struct hec_evidence held = HEC_FACT(HELD_BY_LINE, line->seconds, line->line);
        held.file = line->file;
        hec_finding_add_of(out, line->function, held);
    }
    hec_waits_report_cores(f, out);
    return true;
}

const struct hec_rule hec_rule_host = {
    .cause = HEC_CAUSE_HOST,
    .meaning =
        "Between two launches the program does something of its own: Python loops, tokenising, logging, post-processing. "
        "The device has done all that was launched and waits.",
    .detection =
        "idle time in which the launching thread is in no call that is known, in pieces of 0.2 ms or more; stack samples "
        "name the line. Without a trace: an engine that idles more than half of the time in use with no transfers.",
    .saving = "the work is done elsewhere, or by a call on arrays.",
    .goes = {0.4, 0.92, 1},
    .confidence = 0.9,
    .lever = HEC_LEVER_MOVE_CODE,
    HEC_RULE_TABLES,
    .judge = judge,
};
