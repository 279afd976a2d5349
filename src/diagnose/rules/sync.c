/* Sync: the host waits for the device, the queue runs dry, and then the device waits for the host. */
#include "diagnose/rules/waits.h"

#include <math.h>

/* Without the wait the device works while the program's own code behind it runs. */
static void save_code(const struct hec_facts *f, const struct hec_waits *w, struct hec_finding *out) {
    struct hec_finding code = {.cause = HEC_CAUSE_SYNC};
    double best = hec_goes_of(HEC_CAUSE_SYNC)->part.best;
    hec_waits_save_seconds(f, w->awaited_s, 0, best, 1, &code);
    hec_saving_add(&out->seconds, code.seconds);
    hec_saving_add(&out->joules, code.joules);
}

bool hec_judge_sync(const struct hec_facts *f, struct hec_finding *out) {
    struct hec_waits w;
    if (!hec_waits_claim(f, HEC_SYNC_LEAST, &w, out))
        return false;
    save_code(f, &w, out);
    if (w.syncs > 0)
        hec_finding_add(out, HEC_FACT(WAITS, w.syncs));
    if (w.reads >= 1)
        hec_finding_add(out, HEC_FACT(READS, w.reads));
    double waits = fmax(w.syncs, w.reads);
    if (waits >= 1 && w.per == HEC_PER_STEP)
        out->lever = w.reads >= 1 ? HEC_ANSWER(READ_SELDOM, waits) : HEC_ANSWER(DROP_WAITS, waits);
    if (!f->device->calls) /* imported: nobody counted the waits */
        out->confidence *= HEC_WAITS_UNCOUNTED;
    return true;
}
