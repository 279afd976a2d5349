#include "diagnose/timeline/pass.h"

#include "base/trace.h"

#include <stdlib.h>
#include <string.h>

#define K(kind) HEC_ACTIVITY_BIT(HEC_ACTIVITY_##kind)
#define DEVICE HEC_ACTIVITY_DEVICE
#define AFTER(stage) (UINT32_C(1) << HEC_STAGE_##stage)
const struct hec_stage_info hec_stages[HEC_STAGE_COUNT] = {
#define STAGE(id, kinds, needs, apart) [HEC_STAGE_##id] = {kinds, needs, HEC_STAGE_##apart},
#include "diagnose/stages.def"
};

struct hec_pass_consumer hec_stage_consumer(enum hec_stage stage, void *context,
                                            int (*take)(void *context, const struct hec_activity *activities,
                                                        size_t count)) {
    const struct hec_stage_info *info = &hec_stages[stage];
    return (struct hec_pass_consumer){context, context ? info->kinds : 0, take, info->beside != HEC_STAGE_TOGETHER};
}

static int take_first(void *to, const struct hec_activity *a, size_t count) {
    struct hec_pass *pass = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        const struct hec_track *track = hec_timeline_track(&pass->tables, a[i].track);
        if (!track || !hec_timeline_plausible(&a[i]))
            continue;
        struct hec_windows *windows = a[i].detail == HEC_TRACE_OFF ? &pass->rests : &pass->windows;
        err = a[i].kind == HEC_ACTIVITY_WINDOW
                  ? hec_windows_add(windows, &(struct hec_window){a[i].track, track->pid, a[i].start_ns, a[i].end_ns})
                  : hec_step_survey_add(&pass->survey, &pass->tables, &a[i]);
    }
    return err;
}

/* A file without activities has none. */
static int found(int err) {
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

static int visit_kinds(const struct hec_timeline_input *input, uint32_t kinds,
                       int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to,
                       struct hec_why *why) {
    return input->activities && kinds ? found(input->activities(input->context, kinds, visit, to, why)) : 0;
}

int hec_pass_open(const struct hec_timeline_input *input, struct hec_pass *out, struct hec_why *why) {
    *out = (struct hec_pass){.input = input};
    int err = hec_timeline_tables_load(input, &out->tables, why);
    if (!err)
        err = visit_kinds(input, hec_stages[HEC_STAGE_TRACE].kinds, take_first, out, why);
    if (err)
        hec_pass_close(out);
    return err;
}

void hec_pass_close(struct hec_pass *pass) {
    hec_windows_free(&pass->windows);
    hec_windows_free(&pass->rests);
    hec_step_survey_free(&pass->survey);
    hec_timeline_tables_free(&pass->tables);
}

struct part {
    const struct hec_pass *pass;
    const struct hec_pass_consumer *consumers;
    size_t count;
    bool all, apart; /* which of them */
    /* A chunk with other ends than recorded. */
    struct hec_activity *corrected;
    size_t room;
};

/* CUPTI keeps two times for each node of a graph and hands out the nodes of the last replay in a window late: by then a later replay,
 * of which it records nothing else, has overwritten their ends. Such a node would last for many replays. So a node that ends outside
 * of its window lasts until the next one of its stream, the last one no longer than the window. */
static int64_t end_of(const struct hec_pass *pass, const struct hec_activity *a, const struct hec_activity *chunk_end) {
    const struct hec_track *track = hec_timeline_track(&pass->tables, a->track);
    int64_t window_ns = track ? hec_windows_end(&pass->windows, track->pid, a->start_ns) : INT64_MAX;
    if (a->end_ns <= window_ns)
        return a->end_ns;
    for (const struct hec_activity *next = a + 1; next < chunk_end; next++)
        if (next->track == a->track && (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(next->kind)))
            return next->start_ns < a->end_ns ? next->start_ns : a->end_ns;
    return a->start_ns > window_ns ? a->start_ns : window_ns;
}

/* Whether it ends after what begins next, or may: what does not is as recorded. */
static bool lasts(const struct hec_activity *a, const struct hec_activity *chunk_end) {
    return (a->flags & HEC_ACTIVITY_IN_GRAPH) && (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind)) &&
           (a + 1 == chunk_end || a[1].start_ns < a->end_ns);
}

static int correct_ends(struct part *part, const struct hec_activity **activities, size_t count) {
    const struct hec_activity *list = *activities, *chunk_end = list + count;
    for (size_t i = 0; i < count && part->pass->windows.count; i++) {
        int64_t end_ns = lasts(&list[i], chunk_end) ? end_of(part->pass, &list[i], chunk_end) : list[i].end_ns;
        if (end_ns == list[i].end_ns)
            continue;
        if (*activities == list) {
            if (part->room < count) {
                struct hec_activity *grown = realloc(part->corrected, count * sizeof *grown);
                if (!grown)
                    return HEC_ERR_NOMEM;
                part->corrected = grown;
                part->room = count;
            }
            memcpy(part->corrected, list, count * sizeof *list);
            *activities = part->corrected;
        }
        part->corrected[i].end_ns = end_ns;
    }
    return 0;
}

static int take_activities(void *to, const struct hec_activity *activities, size_t count) {
    struct part *part = to;
    int err = correct_ends(part, &activities, count);
    for (size_t i = 0; i < part->count && !err; i++) {
        const struct hec_pass_consumer *c = &part->consumers[i];
        if (c->kinds && (part->all || c->apart == part->apart))
            err = c->take(c->context, activities, count);
    }
    return err;
}

int hec_pass_run(const struct hec_pass *pass, const struct hec_pass_consumer *consumers, size_t count,
                 struct hec_why *why) {
    const struct hec_timeline_input *input = pass->input;
    struct part all = {pass, consumers, count, .all = true};
    struct part parts[2] = {{pass, consumers, count, .apart = false}, {pass, consumers, count, .apart = true}};
    const struct hec_activity_visitor visitors[2] = {{&parts[0], take_activities}, {&parts[1], take_activities}};
    uint32_t kinds = 0;
    for (size_t i = 0; i < count; i++)
        kinds |= consumers[i].kinds;
    kinds &= ~hec_stages[HEC_STAGE_TRACE].kinds;
    int err = !input->beside || !kinds ? visit_kinds(input, kinds, take_activities, &all, why)
                                       : found(input->beside(input->context, kinds, visitors, 2, why));
    free(all.corrected);
    free(parts[0].corrected);
    free(parts[1].corrected);
    return err;
}
