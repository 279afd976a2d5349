/* Sync: the host waits for the device, the queue runs dry, and then the device waits for the host. */
#include "diagnose/rules/waits.h"

#include <math.h>

#define LEAST 0.05 /* of the steady part */

static const struct hec_rule_limit limits[] = {
    {100 * LEAST, "%", "least share of the steady part in which the device is dry because of it",
     "measured on an H200: a value read or a synchronisation a layer 38 to 43 %, read every 50 steps under 1 %"},
    {1e-6 * HEC_STATE_BRIEF_NS, "ms", "from a wait to the next launch: what takes longer is the program's own code",
     "measured on an H100: 99 % take 5 to 60 us"},
    {HEC_STATE_READ_BYTES, "bytes", "that a copy to the host has at most where a number is read", "ours: 32 doubles"},
};

static const struct hec_rule_advice advice[] = {
    {"PyTorch", "Find what waits, keep numbers on the device, and read them every N steps.",
     "torch.cuda.set_sync_debug_mode(\"warn\")  # names each line that waits\n"
     "losses.append(loss.detach())             # not loss.item()\n"
     "if step % 50 == 0: log(torch.stack(losses).tolist()); losses.clear()\n"},
    {"PyTorch", "Masks whose size the host must know (nonzero, boolean indexing, unique): torch.where keeps the shape.",
     "hidden = torch.where(mask, layer(hidden), hidden)\n"},
    {"PyTorch", "Numbers of many tensors (norms, sums): compute them in one go, and keep them on the device.",
     "norms = torch.stack(torch._foreach_norm([p.grad for p in model.parameters()]))\n"},
    {"JAX", "float(x), np.asarray(x) and block_until_ready wait: keep results as arrays and read them every N steps.",
     NULL},
    {"TensorFlow", "Keep metrics in tensors; .numpy() waits.", NULL},
    {"CUDA", "cudaStreamWaitEvent orders streams without the host.", NULL},
};

static bool judge(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if (!hec_waits_claim(f, LEAST, &w, out))
        return false;
    if (w.syncs > 0)
        hec_finding_add(out, HEC_FACT(WAITS, w.syncs));
    if (w.reads >= 1)
        hec_finding_add(out, HEC_FACT(READS, w.reads));
    double waits = fmax(w.syncs, w.reads);
    if (waits >= 1 && w.per == HEC_PER_STEP)
        out->lever = w.reads >= 1 ? HEC_ANSWER(READ_SELDOM, waits) : HEC_ANSWER(DROP_WAITS, waits);
    if (!f->calls) /* imported: nobody counted the waits */
        out->confidence *= HEC_WAITS_UNCOUNTED;
    return true;
}

const struct hec_rule hec_rule_sync = {
    .cause = HEC_CAUSE_SYNC,
    .meaning =
        "A program launches work far faster than a device does it, so the device always has a queue. Each time that the "
        "program waits for a result (a value read, a mask's size, a synchronisation) the queue runs dry, and the device "
        "waits until the program has launched again.",
    .detection =
        "idle time in calls that wait and from there to the next launch; and launching after it, for as long as the wait "
        "had lasted while the device still worked: without it the program would be ahead by so much.",
    .saving =
        "what the host does between two waits is hidden once it runs ahead; the last wait of a step may be needed. What "
        "computing the synchronised values costs is not in it; where a replay predicts, numbers that are read in a row "
        "are taken to be computed in one go.",
    .goes = {0.4, 0.85, 1},
    .confidence = 0.9,
    .lever = HEC_LEVER_WAIT_SELDOM,
    HEC_RULE_TABLES,
    .judge = judge,
};
