#include "report/compare/words.h"

#include "report/words/results.h"
#include "report/words/causes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

char *hec_quantities_of(char out[192], const struct hec_versus *v) {
    const char *unit = hec_side_unit(v->side);
    const struct hec_steady_blocks *blocks = &v->side[0].runs[0].blocks;
    if (unit[0])
        snprintf(out, 192, "energy per %.64s and %.64ss a second %s", unit, unit,
                 blocks->work == HEC_WORK_BY_STEP ? "in the steady part, after start-up" : "of whole runs");
    else
        snprintf(out, 192, "power while the devices were in use, and whole runs");
    return out;
}

/* ---- what differs, what moved ---- */

char *hec_condition_difference_words(char *out, size_t size, const struct hec_condition_difference *unlike) {
    snprintf(out, size, "%s: %s in A, %s in B", hec_condition_words(unlike->what), unlike->value[0], unlike->value[1]);
    return out;
}

char *hec_delta_per(char out[96], const struct hec_versus *v) {
    snprintf(out, 96, "per %.64s", v->moved.per_unit ? hec_side_unit(v->side) : "run");
    return out;
}

const char *hec_delta_fate(const struct hec_delta_cause *cause) {
    return !cause->runs[1] ? "went" : !cause->runs[0] ? "came" : "stayed";
}

static void saving_words(char *out, size_t size, double saving) {
    text share;
    snprintf(out, size, "%s", isfinite(saving) ? hec_format_share(share, saving) : "an unknown part");
}

char *hec_delta_words(char out[192], const struct hec_versus *v, const struct hec_delta_cause *cause) {
    char saving[2][HEC_FORMAT_SIZE], runs[64] = "";
    int at = cause->runs[1] ? 1 : 0;
    for (int i = 0; i < 2; i++)
        saving_words(saving[i], sizeof saving[i], cause->saving[i]);
    if (cause->runs[at] < v->side[at].count)
        snprintf(runs, sizeof runs, ", in %d of %d runs of %c", cause->runs[at], v->side[at].count, "AB"[at]);
    if (cause->runs[0] && cause->runs[1])
        snprintf(out, 192, "%s: fixing it would save %.40s of A, %.40s of B%s", hec_cause_title(cause->cause),
                 saving[0], saving[1], runs);
    else
        snprintf(out, 192, "%s: fixing it would save %.40s of %c%s", hec_cause_title(cause->cause), saving[at],
                 "AB"[at], runs);
    return out;
}
