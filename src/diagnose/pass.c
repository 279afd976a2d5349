#include "diagnose/pass.h"

#include <string.h>

#define FIRST_KINDS (HEC_ACTIVITY_BIT(HEC_ACTIVITY_WINDOW) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_STEP))

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
static int visit_kinds(const struct hec_timeline_input *input, uint32_t kinds,
                       int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to,
                       struct hec_why *why) {
    int err = input->activities && kinds ? input->activities(input->context, kinds, visit, to, why) : 0;
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

int hec_pass_open(const struct hec_timeline_input *input, struct hec_pass *out, struct hec_why *why) {
    *out = (struct hec_pass){.input = input};
    int err = hec_timeline_tables_load(input, &out->tables, why);
    if (!err)
        err = visit_kinds(input, FIRST_KINDS, take_first, out, why);
    if (err)
        hec_pass_close(out);
    return err;
}

void hec_pass_close(struct hec_pass *pass) {
    hec_windows_free(&pass->windows);
    hec_step_survey_free(&pass->survey);
    hec_timeline_tables_free(&pass->tables);
}

struct all {
    const struct hec_pass_consumer *consumers;
    size_t count;
};

static int take(void *to, const struct hec_activity *activities, size_t count) {
    const struct all *all = to;
    int err = 0;
    for (size_t i = 0; i < all->count && !err; i++)
        if (all->consumers[i].kinds)
            err = all->consumers[i].take(all->consumers[i].context, activities, count);
    return err;
}

int hec_pass_run(const struct hec_pass *pass, const struct hec_pass_consumer *consumers, size_t count,
                 struct hec_why *why) {
    struct all all = {consumers, count};
    uint32_t kinds = 0;
    for (size_t i = 0; i < count; i++)
        kinds |= consumers[i].kinds;
    return visit_kinds(pass->input, kinds & ~FIRST_KINDS, take, &all, why);
}
