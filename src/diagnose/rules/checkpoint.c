/* Checkpoint: the program saves its state, and the device waits. */
#include "diagnose/rules/waits.h"

#include <math.h>
#include <string.h>

#define LEAST 0.05 /* of the steady part */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in checkpoints, copies of the weights to the host included",
     "measured on an H200: 0.27 GB every 10 steps 87 %, every 100 steps 25 %"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Copy to the host, and write from there while training goes on.",
     "import torch.distributed.checkpoint as dcp\n"
     "saving = dcp.async_save(state_dict, checkpoint_id=path)\n"
     "saving.result()  # before the next one\n"},
    {"JAX", "Orbax saves asynchronously.",
     "manager = orbax.checkpoint.CheckpointManager(\n"
     "    path, options=orbax.checkpoint.CheckpointManagerOptions(\n"
     "        save_interval_steps=N, enable_async_checkpointing=True))\n"},
    {"any",
     "Save as often as the time that a failure may cost is worth: sqrt(2 x time to save x time between failures) "
     "(Young 1974).",
     NULL},
};

static const struct hec_phase_summary *phase_of(const struct hec_facts *f) {
    for (int i = 0; i < f->summary->phase_count; i++)
        if (strcmp(f->summary->phases[i].name, "checkpoint") == 0)
            return &f->summary->phases[i];
    return NULL;
}

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_phase_summary *phase = phase_of(f);
    struct hec_waits w;
    if (!hec_waits_claim(f, LEAST, &w, out)) {
        if (w.known || !phase || !(phase->seconds >= LEAST * f->run_s))
            return false;
        out->title = HEC_FACT(WAIT_SHARE, phase->seconds / f->run_s);
        hec_finding_add(out, HEC_FACT(CHECKPOINT_TIME, phase->seconds, (double)phase->count));
        out->confidence = HEC_TELEMETRY_CONFIDENCE;
        hec_waits_save_seconds(f, phase->seconds, 0.3, 0.8, 1, out);
        return true;
    }
    if (phase && phase->count > 0)
        hec_finding_add(out, HEC_FACT(CHECKPOINTS, (double)phase->count, phase->seconds / (double)phase->count));
    return true;
}

const struct hec_rule hec_rule_checkpoint = {
    .cause = HEC_CAUSE_CHECKPOINT,
    .meaning = "Weights and optimiser state are copied to the host and written to a disk while training stands still.",
    .detection =
        "time in which the device is idle and the program is in a phase called checkpoint (torch.save is found by the "
        "hooks), and copies that follow it at once. Without a trace, the phase's time alone.",
    .saving = "saving goes on beside the training, or is ten times rarer.",
    .goes = {0.5, 0.9, 1},
    .confidence = 0.95,
    .lever = HEC_LEVER_ASYNC_CHECKPOINT,
    HEC_RULE_TABLES,
    .judge = judge,
};
