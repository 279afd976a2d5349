#include "diagnose/build.h"

/* Ends stages, in the order of what they need. */
struct ending {
    struct hec_build *b;
    const struct hec_stage_functions *stages;
    uint32_t taken, ended; /* bits of stages */
    enum hec_stage stage;  /* that ends alone */
    struct hec_why why;
    int err;
};

static bool next(const struct ending *e, enum hec_stage *stage) {
    for (int s = 0; s < HEC_STAGE_COUNT; s++)
        if (!(e->taken >> s & 1) && !(hec_stages[s].needs & ~e->ended)) {
            *stage = (enum hec_stage)s;
            return true;
        }
    return false;
}

static void end_alone(void *to) {
    struct ending *e = to;
    e->err = e->stages[e->stage].end(e->b, &e->why);
}

static void end_ready(void *to);

/* A stage that ends alone, and beside it all that do not need it. */
static void end_beside(struct ending *e, enum hec_stage stage) {
    struct ending alone = {.b = e->b, .stages = e->stages, .stage = stage};
    const struct hec_task tasks[2] = {{end_ready, e}, {end_alone, &alone}};
    hec_tasks_run(e->b->input->together, tasks, 2);
    if (!e->err && alone.err) {
        e->err = alone.err;
        e->why = alone.why;
    }
}

static void end_ready(void *to) {
    struct ending *e = to;
    enum hec_stage stage;
    while (!e->err && next(e, &stage)) {
        e->taken |= UINT32_C(1) << stage;
        if (hec_stages[stage].beside == HEC_STAGE_ALONE)
            end_beside(e, stage);
        else if (e->stages[stage].end)
            e->err = e->stages[stage].end(e->b, &e->why);
        e->ended |= UINT32_C(1) << stage;
    }
}

int hec_stages_run(struct hec_build *b, const struct hec_stage_functions *stages, struct hec_why *why) {
    struct ending ending = {.b = b, .stages = stages};
    int err = 0;
    for (int s = 0; s < HEC_STAGE_COUNT && !err; s++)
        err = stages[s].begin ? stages[s].begin(b, why) : 0;
    if (!err)
        err = hec_pass_run(&b->pass, b->consumers, HEC_STAGE_COUNT, why);
    if (err)
        return err;
    end_ready(&ending);
    if (ending.err && why)
        *why = ending.why;
    return ending.err;
}
