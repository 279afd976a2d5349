#include "diagnose/timeline/pass.h"

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
        err = a[i].kind == HEC_ACTIVITY_WINDOW
                  ? hec_windows_add(&pass->windows,
                                    &(struct hec_window){a[i].track, track->pid, a[i].start_ns, a[i].end_ns})
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
    hec_step_survey_free(&pass->survey);
    hec_timeline_tables_free(&pass->tables);
}

struct part {
    const struct hec_pass_consumer *consumers;
    size_t count;
    bool all, apart; /* which of them */
};

static int take_activities(void *to, const struct hec_activity *activities, size_t count) {
    const struct part *part = to;
    int err = 0;
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
    struct part all = {consumers, count, .all = true};
    struct part parts[2] = {{consumers, count, .apart = false}, {consumers, count, .apart = true}};
    const struct hec_activity_visitor visitors[2] = {{&parts[0], take_activities}, {&parts[1], take_activities}};
    uint32_t kinds = 0;
    for (size_t i = 0; i < count; i++)
        kinds |= consumers[i].kinds;
    kinds &= ~hec_stages[HEC_STAGE_TRACE].kinds;
    if (!input->beside || !kinds)
        return visit_kinds(input, kinds, take_activities, &all, why);
    return found(input->beside(input->context, kinds, visitors, 2, why));
}
