#include "report/compare/words.h"

#include "report/words/reasons.h"
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

/* What a comparison shows, and what limits it. */

/* ---- what is known ---- */

static bool by_step(const struct hec_versus *v) {
    return hec_side_unit(v->side)[0] && v->side[0].runs[0].blocks.work == HEC_WORK_BY_STEP;
}

/* Of whole runs: figures of other amounts of work are not comparable. */
static bool equal_work(const struct hec_versus *v) {
    double a = v->side[0].runs[0].units[0].count;
    if (!hec_side_unit(v->side)[0])
        return true; /* as far as is known */
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < v->side[at].count; i++)
            if (fabs(v->side[at].runs[i].units[0].count - a) > 0.001 * a)
                return false;
    return true;
}

/* Several runs show by how much runs vary, and steps by how much the steady part does; with neither there is no interval. */
static bool has_interval(const struct hec_versus *v, enum hec_quantity quantity) {
    const struct hec_comparison *c = &v->quantity[quantity];
    return hec_quantity_of_whole_runs(quantity) ? c->between_runs && equal_work(v) : c->between_runs || by_step(v);
}

struct hec_answer hec_versus_answer(const struct hec_versus *v) {
    struct hec_answer answer = {.unit = hec_side_unit(v->side),
                                .two_runs = v->side[0].count == 1 && v->side[1].count == 1,
                                .no_interval = by_step(v)
                                                   ? "the runs are too short to tell by how much their steps vary"
                                                   : "one run a side does not tell by how much runs vary"};
    for (int q = 0; q < HEC_QUANTITY_COUNT; q++)
        hec_answer_put(&answer, q, &v->quantity[q], has_interval(v, q));
    return answer;
}

/* ---- notes ---- */

static const struct hec_reason *why_no_joules(const struct hec_versus *v, int at) {
    for (int i = 0; i < v->side[at].count; i++) {
        const struct hec_summary *s = &v->side[at].runs[i];
        for (int d = 0; d < s->device_count; d++)
            if (s->devices[d].readings.used && !s->devices[d].readings.energy.valid &&
                s->devices[d].readings.energy.why.id)
                return &s->devices[d].readings.energy.why;
        if (s->energy_unavailable.id)
            return &s->energy_unavailable;
    }
    return NULL;
}

int hec_versus_notes(const struct hec_versus *v, char out[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE]) {
    const struct hec_steady_blocks *blocks = &v->side[0].runs[0].blocks;
    struct hec_answer answer = hec_versus_answer(v);
    int count = 0;
    if (v->unlikes.grave)
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "these runs are unlike: what differs (below) may be all that this shows");
    for (int at = 0; at < 2 && answer.quantity[hec_answer_energy(&answer)].shown == HEC_SHOWN_UNKNOWN; at++) {
        const struct hec_reason *why = why_no_joules(v, at);
        if (why)
            snprintf(out[count++], HEC_VERSUS_NOTE, "no joules of %c: %.250s", "AB"[at], HEC_SAY(why));
    }
    if (answer.two_runs && hec_answer_has_interval(&answer, hec_answer_time(&answer)))
        snprintf(
            out[count++], HEC_VERSUS_NOTE,
            "one run a side: the interval holds what steps of these runs vary by, and runs may differ by more than "
            "their steps do; several runs of each would tell (hec compare A... -- B...)");
    else if (v->side[0].count == 1 || v->side[1].count == 1)
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "one run of %s: several of each side would tell by how much runs vary (hec compare A... -- B...)",
                 v->side[0].count > 1   ? "B"
                 : v->side[1].count > 1 ? "A"
                                        : "each");
    if (hec_side_unit(v->side)[0] && blocks->work == HEC_WORK_EVENLY)
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "no steps: figures per %.64s are of whole runs, their start and end included", blocks->unit);
    else if (!hec_side_unit(v->side)[0])
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "no unit of work is known of all runs: --units N says how many were done");
    if (!equal_work(v))
        snprintf(out[count++], HEC_VERSUS_NOTE,
                 "the runs did not do equal work: figures of whole runs are not comparable");
    return count;
}
