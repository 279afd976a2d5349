#include "diagnose/timeline/steps.h"

#include "base/clock.h"
#include "base/list.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int pass_over(struct hec_step_list *steps, double amount) {
    steps->beyond++;
    steps->beyond_amount += isfinite(amount) ? amount : 0;
    return 0;
}

int hec_step_list_add(struct hec_step_list *steps, int64_t start_ns, int64_t end_ns, double amount) {
    if (steps->count >= HEC_STEPS_KEPT)
        return pass_over(steps, amount);
    if (!hec_list_room(steps->list, steps->count, steps->capacity, 64))
        return HEC_ERR_NOMEM;
    steps->list[steps->count++] = (struct hec_step){start_ns, end_ns, amount};
    return 0;
}

int hec_step_list_thin(const struct hec_step_list *steps, size_t most, struct hec_thin_steps *out) {
    size_t room = steps->count < most ? steps->count : most;
    size_t groups = most / 2, group = steps->count <= most ? 1 : (steps->count + groups - 1) / groups;
    out->start_ns = malloc((room + 2) * sizeof *out->start_ns);
    out->ns = malloc((room + 2) * sizeof *out->ns);
    out->total = (int64_t)steps->count + steps->beyond;
    if (!out->start_ns || !out->ns)
        return HEC_ERR_NOMEM;
    for (size_t from = 0; from < steps->count; from += group) {
        size_t least = from, greatest = from;
        for (size_t i = from; i < steps->count && i < from + group; i++) {
            const struct hec_step *s = &steps->list[i], *l = &steps->list[least], *g = &steps->list[greatest];
            least = s->end_ns - s->start_ns < l->end_ns - l->start_ns ? i : least;
            greatest = s->end_ns - s->start_ns > g->end_ns - g->start_ns ? i : greatest;
        }
        for (size_t i = from; i < steps->count && i < from + group; i++)
            if (i == least || i == greatest) {
                out->start_ns[out->count] = steps->list[i].start_ns;
                out->ns[out->count++] = steps->list[i].end_ns - steps->list[i].start_ns;
            }
    }
    return 0;
}

static int add_step(struct hec_step_survey *survey, int32_t pid, const struct hec_activity *a) {
    enum hec_step_source source = a->detail;
    struct hec_step_list *steps = NULL;
    if (source <= HEC_STEP_NONE || source >= HEC_STEP_PERIODIC)
        return 0;
    for (size_t i = 0; i < survey->list_count && !steps; i++)
        if (survey->lists[i].pid == pid && survey->lists[i].source == source)
            steps = &survey->lists[i];
    if (!steps && survey->list_count == HEC_STEP_LISTS_MAX)
        return 0;
    if (!steps) {
        struct hec_step_list *grown = realloc(survey->lists, (survey->list_count + 1) * sizeof *grown);
        if (!grown)
            return HEC_ERR_NOMEM;
        survey->lists = grown;
        steps = &grown[survey->list_count++];
        *steps = (struct hec_step_list){.pid = pid, .source = source};
    }
    if (!steps->unit)
        steps->unit = a->name;
    double amount = a->amount >= 0 ? a->amount : NAN;
    if (survey->kept >= 2 * (size_t)HEC_STEPS_KEPT)
        return pass_over(steps, amount);
    survey->kept += steps->count < HEC_STEPS_KEPT;
    return hec_step_list_add(steps, a->start_ns, a->end_ns, amount);
}

static struct hec_step_values *values_of(const struct hec_step_survey *survey, int32_t pid, bool gradients) {
    for (size_t i = 0; i < survey->value_count; i++)
        if (survey->values[i].pid == pid && survey->values[i].gradients == gradients)
            return &survey->values[i];
    return NULL;
}

static int add_value(struct hec_step_survey *survey, int32_t pid, bool gradients, int part,
                     const struct hec_activity *a) {
    struct hec_step_values *values = values_of(survey, pid, gradients);
    if (!values && survey->value_count == HEC_STEP_LISTS_MAX)
        return 0;
    if (!values) {
        struct hec_step_values *grown = realloc(survey->values, (survey->value_count + 1) * sizeof *grown);
        if (!grown)
            return HEC_ERR_NOMEM;
        survey->values = grown;
        values = &grown[survey->value_count++];
        *values =
            (struct hec_step_values){.pid = pid, .gradients = gradients, .first = a->amount, .last_ns = INT64_MIN};
    }
    if (!isfinite(a->amount) && (values->nonfinite++ == 0 || isfinite(values->last))) {
        values->nonfinite_ns = a->start_ns;
        values->finite_ns = values->last_ns;
    }
    values->count++;
    values->last = a->amount;
    values->last_ns = a->start_ns;
    if (values->kept_count == HEC_STEP_VALUES_KEPT)
        return 0;
    if (!hec_list_room(values->kept, values->kept_count, values->kept_capacity, 64))
        return HEC_ERR_NOMEM;
    values->kept[values->kept_count++] = (struct hec_step_value){a->start_ns, part, a->amount};
    return 0;
}

/* "gradient_norm": of all; "gradient_norm/3": of a part. */
static bool is_gradient(const char *name, int *part) {
    static const char all[] = "gradient_norm";
    const char *more = name + sizeof all - 1;
    char *end;
    if (strncmp(name, all, sizeof all - 1) != 0 || (*more && *more != '/'))
        return false;
    *part = -1;
    if (!*more)
        return true;
    long number = strtol(more + 1, &end, 10);
    *part = (int)number;
    return end > more + 1 && !*end && number >= 0 && number < INT_MAX;
}

int hec_step_survey_add(struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                        const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(tables, a->track);
    if (!track)
        return 0;
    if (a->kind == HEC_ACTIVITY_STEP)
        return add_step(survey, track->pid, a);
    if (a->kind == HEC_ACTIVITY_VALUE) {
        const char *name = hec_timeline_name(tables, a->name);
        int part = -1;
        bool gradients = is_gradient(name, &part);
        return gradients || strcmp(name, "loss") == 0 ? add_value(survey, track->pid, gradients, part, a) : 0;
    }
    if (a->kind == HEC_ACTIVITY_PHASE && strcmp(hec_timeline_name(tables, a->name), "data") == 0) {
        survey->phases_cut |= survey->phase_count == HEC_DATA_PHASES_KEPT;
        if (survey->phases_cut)
            return 0;
        if (!hec_list_room(survey->phases, survey->phase_count, survey->phase_capacity, 64))
            return HEC_ERR_NOMEM;
        survey->phases[survey->phase_count++] = (struct hec_data_phase){a->track, a->start_ns, a->end_ns};
    }
    return 0;
}

void hec_step_survey_free(struct hec_step_survey *survey) {
    for (size_t i = 0; i < survey->list_count; i++)
        free(survey->lists[i].list);
    free(survey->lists);
    free(survey->phases);
    for (size_t i = 0; i < survey->value_count; i++)
        free(survey->values[i].kept);
    free(survey->values);
    memset(survey, 0, sizeof *survey);
}

#define SPAN_LEAST 0.1

static int64_t number_of(const struct hec_step_list *steps) {
    return (int64_t)steps->count + steps->beyond;
}

static bool only_warm_up(const struct hec_step_list *steps, const struct hec_timeline_tables *tables) {
    int64_t last_ns = 0;
    if (steps->source != HEC_STEP_OPTIMIZER && steps->source != HEC_STEP_MODULE)
        return false;
    for (size_t i = 0; i < tables->tracer_count; i++)
        if (tables->tracers[i].pid == steps->pid)
            last_ns = tables->tracers[i].last_ns;
    double first_end = (double)steps->list[0].end_ns, last_end = (double)steps->list[steps->count - 1].end_ns;
    return last_end - first_end < SPAN_LEAST * ((double)last_ns - first_end);
}

/* The enum of sources is in the order of trust. */
static bool better(const struct hec_step_list *steps, const struct hec_step_list *than) {
    if (!than || steps->source != than->source)
        return !than || steps->source < than->source;
    return number_of(steps) > number_of(than) || (number_of(steps) == number_of(than) && steps->pid < than->pid);
}

/* Of the lists of the processes that are (wanted), or are not, among the pids. */
static const struct hec_step_list *best_of(const struct hec_step_survey *survey,
                                           const struct hec_timeline_tables *tables, const struct hec_pids *pids,
                                           bool wanted) {
    const struct hec_step_list *best = NULL;
    for (size_t i = 0; i < survey->list_count; i++) {
        const struct hec_step_list *steps = &survey->lists[i];
        if (steps->count && hec_pids_have(pids, steps->pid) == wanted && !only_warm_up(steps, tables) &&
            better(steps, best))
            best = steps;
    }
    return best;
}

const struct hec_step_list *hec_step_survey_best(const struct hec_step_survey *survey,
                                                 const struct hec_timeline_tables *tables) {
    return best_of(survey, tables, &(struct hec_pids){NULL, 0}, false);
}

int hec_device_steps_choose(const struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                            struct hec_device_steps *out) {
    struct hec_pids all;
    *out = (struct hec_device_steps){.survey = survey, .tables = tables};
    int err = hec_timeline_pids(tables, HEC_DEVICE_NONE, &all);
    const struct hec_step_list *of_nobody = err ? NULL : best_of(survey, tables, &all, false);
    for (int device = 0; device < HEC_DEVICE_MAX && !err; device++) {
        struct hec_pids pids;
        err = hec_timeline_pids(tables, device, &pids);
        if (err)
            break;
        out->of[device] = pids.count ? best_of(survey, tables, &pids, true) : NULL;
        if (!out->of[device])
            out->of[device] = of_nobody;
        free(pids.list);
    }
    free(all.list);
    return err;
}

const struct hec_step_list *hec_device_steps_of(const struct hec_device_steps *steps, int device) {
    return steps && device >= 0 && device < HEC_DEVICE_MAX ? steps->of[device] : NULL;
}

/* ---- time in the loader ---- */

/* The thread of the process that loads: the main one if it does, else the one with most time. 0: none. */
static uint32_t loading_thread(const struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                               int32_t pid) {
    uint32_t best = 0;
    double most = -1;
    double *spent = calloc(tables->track_count + 1, sizeof *spent);
    for (size_t i = 0; spent && i < survey->phase_count; i++) {
        const struct hec_data_phase *p = &survey->phases[i];
        const struct hec_track *track = hec_timeline_track(tables, p->track);
        if (track->pid != pid)
            continue;
        spent[p->track] += (double)(p->end_ns - p->start_ns);
        if (track->stream == pid)
            spent[p->track] = INFINITY;
    }
    for (uint32_t i = 1; spent && i < tables->track_count; i++)
        if (spent[i] > 0 && spent[i] > most) {
            most = spent[i];
            best = i;
        }
    free(spent);
    return best;
}

static int data_seconds(const struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                        const struct hec_step_list *steps, double *out) {
    struct hec_intervals inside = {0}, data = {0};
    uint32_t thread = loading_thread(survey, tables, steps->pid);
    int64_t sum = 0;
    int err = 0;
    *out = NAN;
    if (!thread || survey->phases_cut)
        return 0;
    for (size_t i = 0; i < steps->count && !err; i++)
        err = hec_intervals_append(&inside, steps->list[i].start_ns, steps->list[i].end_ns);
    for (size_t i = 0; i < survey->phase_count && !err; i++)
        if (survey->phases[i].track == thread)
            err = hec_intervals_append(&data, survey->phases[i].start_ns, survey->phases[i].end_ns);
    for (size_t i = 0; i < data.count && !err; i++)
        sum += hec_intervals_within(&inside, data.list[i].start_ns, data.list[i].end_ns);
    hec_intervals_free(&inside);
    hec_intervals_free(&data);
    if (!err) /* of the steps in the list, and as much of those beyond */
        *out = (double)sum / HEC_NS_PER_S * (double)number_of(steps) / (double)steps->count;
    return err;
}

/* ---- the summary ---- */

/* The number of the step in which t lies, or after which it comes first: steps end in about the order of their starts. */
static int64_t step_at(const struct hec_step_list *steps, int64_t t_ns) {
    size_t low = 0, high = steps->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (steps->list[middle].end_ns < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return (int64_t)low;
}

/* From 1 on; what comes after the last step is of that one. */
static int64_t number_at(const struct hec_step_list *steps, int64_t t_ns) {
    int64_t at = step_at(steps, t_ns), count = (int64_t)steps->count;
    return at < count ? at + 1 : count;
}

static void add_values(const struct hec_step_survey *survey, bool any, struct hec_step_summary *out) {
    const struct hec_step_values *best = NULL;
    for (size_t i = 0; i < survey->value_count; i++) {
        const struct hec_step_values *v = &survey->values[i];
        if (!v->gradients && (any || v->pid == out->pid) && (!best || v->count > best->count))
            best = v;
    }
    if (!best)
        return;
    out->values = best->count;
    out->value_first = best->first;
    out->value_last = best->last;
}

static void add_nonfinite(const struct hec_step_survey *survey, const struct hec_step_list *steps,
                          struct hec_step_summary *out) {
    const struct hec_step_values *first = NULL;
    for (size_t i = 0; i < survey->value_count; i++) {
        const struct hec_step_values *v = &survey->values[i];
        if (!v->gradients && v->nonfinite && (!first || v->nonfinite_ns < first->nonfinite_ns))
            first = v;
    }
    if (!first)
        return;
    out->nonfinite = first->nonfinite;
    out->nonfinite_ns = first->nonfinite_ns;
    out->nonfinite_last = first->last;
    if (!steps || !steps->count)
        return;
    out->nonfinite_step = number_at(steps, first->nonfinite_ns);
    out->finite_step = first->finite_ns == INT64_MIN ? 0 : number_at(steps, first->finite_ns);
}

static int take_values(const struct hec_step_survey *survey, const struct hec_step_list *steps, bool gradients,
                       struct hec_step_number **list, int64_t *count) {
    const struct hec_step_values *of = values_of(survey, steps->pid, gradients);
    size_t kept = of ? of->kept_count : 0;
    struct hec_step_number *grown = kept ? realloc(*list, ((size_t)*count + kept) * sizeof **list) : *list;
    if (kept && !grown)
        return HEC_ERR_NOMEM;
    *list = grown;
    for (size_t i = 0; i < kept; i++)
        grown[(*count)++] =
            (struct hec_step_number){steps->pid, step_at(steps, of->kept[i].t_ns), of->kept[i].part, of->kept[i].value};
    return 0;
}

static int take_losses(const struct hec_step_survey *survey, const struct hec_step_list *steps,
                       struct hec_step_summary *out) {
    int err = take_values(survey, steps, false, &out->losses, &out->loss_count);
    return err ? err : take_values(survey, steps, true, &out->gradients, &out->gradient_count);
}

int hec_step_survey_losses(const struct hec_step_survey *survey, const struct hec_step_list *steps,
                           struct hec_step_summary *out) {
    int err = take_losses(survey, steps, out);
    for (size_t i = 0; i < survey->list_count && !err; i++)
        if (survey->lists[i].pid != steps->pid && survey->lists[i].source == steps->source)
            err = take_losses(survey, &survey->lists[i], out);
    return err;
}

int hec_step_survey_result(const struct hec_step_survey *survey, const struct hec_timeline_tables *tables,
                           const struct hec_step_list *steps, struct hec_step_summary *out) {
    *out = (struct hec_step_summary){
        .source = HEC_STEP_NONE,
        .confidence = NAN,
        .duration = hec_quantiles_none(),
        .samples_per_step = NAN,
        .units = NAN,
        .data_s = NAN,
        .busy_share = NAN,
        .value_first = NAN,
        .value_last = NAN,
    };
    add_nonfinite(survey, steps, out);
    if (!steps || !steps->count) {
        add_values(survey, true, out);
        return 0;
    }
    double *numbers = malloc(steps->count * sizeof *numbers);
    if (!numbers)
        return HEC_ERR_NOMEM;
    out->source = steps->source;
    out->confidence = 1;
    out->pid = steps->pid;
    out->count = number_of(steps);
    out->examined = (int64_t)steps->count;
    snprintf(out->unit, sizeof out->unit, "%s", hec_timeline_name(tables, steps->unit));
    for (size_t i = 0; i < steps->count; i++)
        numbers[i] = (double)(steps->list[i].end_ns - steps->list[i].start_ns) / HEC_NS_PER_S;
    out->duration = hec_quantiles_of(numbers, steps->count);
    size_t known = 0;
    double sum = 0;
    for (size_t i = 0; i < steps->count; i++) {
        double amount = steps->list[i].amount;
        if (!isfinite(amount))
            continue;
        numbers[known++] = amount;
        sum += amount;
    }
    if (known) {
        out->units = sum + steps->beyond_amount;
        out->samples_per_step = hec_quantiles_of(numbers, known).median;
    }
    free(numbers);
    add_values(survey, false, out);
    return data_seconds(survey, tables, steps, &out->data_s);
}
