#include "act/candidates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define AMPERE 8 /* the first compute capability with TF32 and bf16 */

/* ---- what the program is ---- */

static bool uses(const struct hec_summary *run, enum hec_lever_place place) {
    switch (place) {
    case HEC_LEVER_PLACE_TORCH:
        return run->pytorch[0] != '\0';
    case HEC_LEVER_PLACE_JAX:
        return strcmp(run->framework, "jax") == 0;
    case HEC_LEVER_PLACE_TENSORFLOW:
        return strcmp(run->framework, "tensorflow") == 0;
    default:
        return true;
    }
}

/* All of its devices have the formats of which numerics levers make use. */
static bool has_half_formats(const struct hec_summary *run) {
    bool all = true;
    for (int i = 0; i < run->device_count; i++)
        if (run->devices[i].readings.used && run->devices[i].readings.device.cuda_major > 0)
            all &= run->devices[i].readings.device.cuda_major >= AMPERE;
    return all;
}

/* The program's PyTorch is older than the lever needs. */
static bool is_old(const struct hec_summary *run, const struct hec_lever_row *row) {
    int has[2], needs[2];
    return row->place == HEC_LEVER_PLACE_TORCH && sscanf(run->pytorch, "%d.%d", &has[0], &has[1]) == 2 &&
           sscanf(row->needs, "PyTorch %d.%d", &needs[0], &needs[1]) == 2 &&
           (has[0] < needs[0] || (has[0] == needs[0] && has[1] < needs[1]));
}

/* But for its version. */
static bool fits(const struct hec_summary *run, const struct hec_lever_row *row) {
    enum hec_step_source steps = run->steps.source; /* calls of modules are steps until an optimizer steps */
    return row->risk != HEC_LEVER_RISK_SEMANTICS && uses(run, row->place) &&
           !(row->inference && steps == HEC_STEP_OPTIMIZER) && !(row->training && steps == HEC_STEP_MODULE) &&
           (row->risk != HEC_LEVER_RISK_NUMERICS || has_half_formats(run));
}

static bool can(const struct hec_summary *run, const struct hec_lever_row *row) {
    return fits(run, row) && !is_old(run, row);
}

static bool answers(const struct hec_lever_row *row, const struct hec_finding *finding) {
    return row->answers & (UINT64_C(1) << finding->lever.id);
}

static bool answers_any(const struct hec_lever_row *row, const struct hec_summary *run) {
    bool any = false;
    for (int f = 0; f < run->job.findings.count; f++)
        any |= answers(row, &run->job.findings.list[f]);
    return any;
}

/* ---- the list ---- */

/* Of a family, one in the framework is better than one around the program: it sees what it does. */
static bool is_covered(const struct hec_candidates *out, const struct hec_lever_row *row) {
    for (int i = 0; i < out->count; i++) {
        const struct hec_lever_row *other = out->list[i].use.row;
        if (other == row || (row->place == HEC_LEVER_PLACE_PROGRAM && other->place != row->place && row->family[0] &&
                             strcmp(row->family, other->family) == 0))
            return true;
    }
    return false;
}

static void add_candidate(struct hec_candidates *out, const struct hec_lever_row *row, double value,
                          enum hec_cause cause) {
    if (is_covered(out, row))
        return;
    bool number = strcmp(row->value, "N") == 0 && value >= 1;
    if (out->count == HEC_SEARCH_MOST || (hec_lever_needs_value(row) && !number))
        return;
    struct hec_candidate *candidate = &out->list[out->count++];
    *candidate = (struct hec_candidate){.use.row = row, .cause = cause};
    if (number)
        snprintf(candidate->use.value, sizeof candidate->use.value, "%.0f", value);
}

/* The number of a lever from that of the finding's answer, where the two mean the same; 0: it chooses. */
static double number_for(const struct hec_lever_row *row, const struct hec_summary *run,
                         const struct hec_lever *answer) {
    if (strcmp(row->name, "loader_workers") == 0 &&
        (answer->id == HEC_LEVER_LOADER_WORKERS || answer->id == HEC_LEVER_LOADER_ALL_CORES))
        return answer->value[0];
    if (strcmp(row->name, "threads") == 0)
        return run->host.cores_usable > 1 ? run->host.cores_usable : 0;
    return 0;
}

void hec_candidates_find(const struct hec_summary *run, struct hec_candidates *out) {
    const struct hec_lever_row *row;
    out->count = 0;
    for (int f = 0; f < run->job.findings.count; f++) {
        const struct hec_finding *finding = &run->job.findings.list[f];
        for (int i = 0; (row = hec_lever_row(i)); i++)
            if (answers(row, finding) && can(run, row))
                add_candidate(out, row, number_for(row, run, &finding->lever), finding->cause);
    }
    for (int i = 0; (row = hec_lever_row(i)); i++)
        if (row->always && can(run, row))
            add_candidate(out, row, 0, HEC_CAUSE_COUNT);
}

bool hec_candidates_foreign(const struct hec_summary *run) {
    const struct hec_lever_row *row;
    bool found = false;
    for (int i = 0; (row = hec_lever_row(i)); i++)
        found |= answers_any(row, run) && !uses(run, row->place);
    return found;
}

void hec_candidates_old(const struct hec_summary *run, char *text, size_t size) {
    const struct hec_lever_row *row;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; (row = hec_lever_row(i)) && length < size; i++)
        if ((row->always || answers_any(row, run)) && fits(run, row) && is_old(run, row))
            length += (size_t)snprintf(text + length, size - length, "%s%s", length ? ", " : "", row->name);
}

void hec_candidates_of(const struct hec_lever_set *set, struct hec_candidates *out) {
    out->count = 0;
    for (int i = 0; i < set->count && i < HEC_SEARCH_MOST; i++)
        out->list[out->count++] = (struct hec_candidate){.use = set->list[i], .cause = HEC_CAUSE_COUNT};
}

/* ---- sets ---- */

void hec_candidates_plan(const struct hec_candidates *candidates, struct hec_search_plan *plan) {
    plan->candidates = candidates->count;
    for (int i = 0; i < candidates->count; i++) {
        const char *family = candidates->list[i].use.row->family;
        plan->excludes[i] = 0;
        for (int k = 0; k < candidates->count; k++)
            if (k != i && family[0] && strcmp(candidates->list[k].use.row->family, family) == 0)
                plan->excludes[i] |= UINT32_C(1) << k;
    }
}

void hec_candidates_set(const struct hec_candidates *candidates, uint32_t bits, struct hec_lever_set *out) {
    out->count = 0;
    for (int i = 0; i < candidates->count; i++)
        if (bits & (UINT32_C(1) << i))
            out->list[out->count++] = candidates->list[i].use;
}
