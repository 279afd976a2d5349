#include "base/clock.h"
#include "diagnose/build.h"
#include "diagnose/states/inferred/inferred.h"
#include "diagnose/states/operations.h"
#include "diagnose/states/program_lines.h"
#include "diagnose/states/stacks.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/result.h"
#include "diagnose/meter/device.h"
#include "diagnose/meter/use.h"
#include "diagnose/view/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the time after the last activity of each device: looked at once, for all passes. */
struct telemetry {
    struct hec_meter *meter;
    struct hec_summary *summary;
    struct hec_why *why;
    int err;
};

/* What is made of the states of one pass. */
struct build {
    const struct hec_pass *pass;
    struct hec_device_steps steps;
    struct hec_steady steady[HEC_DEVICE_MAX]; /* by hec_device.index */
    struct hec_ledger_builder *ledger, *steady_ledger;
    struct hec_inferred *inferred;      /* NULL: CUPTI saw all that is reported */
    const struct hec_summary *reported; /* whose timelines are what was seen, where inferred is not NULL */
    struct hec_states *states;
    struct telemetry *telemetry; /* NULL: not there yet */
    uint64_t active;             /* bits of devices that have pieces */
    struct hec_view *view;       /* NULL: nobody looks, or it is a pass that only widens bounds */
    /* the rest is not of a pass that only widens bounds */
    struct hec_source_builder *source, *steady_source, *setup_source;
    struct hec_stacks stacks;
    int64_t compiling_ns[HEC_DEVICE_MAX], launching_ns[HEC_DEVICE_MAX]; /* by stacks */
    int64_t waiting_ns[HEC_DEVICE_MAX], sharding_ns[HEC_DEVICE_MAX];    /* by samples, of the steady part */
    struct hec_calls *calls;                                            /* NULL: nobody asks for them and for gaps */
    struct hec_gaps gaps;
    struct hec_hold_search hold[HEC_DEVICE_MAX];
    struct hec_operations *operations;
    bool tapes;
    struct hec_tape tape[HEC_DEVICE_MAX];
};

/* What the builders of all devices give, until it is in the dossiers. */
struct found {
    struct hec_ledger ledger, steady;
    struct hec_gaps gaps;
    struct hec_source_lines source, steady_source, setup_source;
    struct hec_source_modules modules;
};

struct hec_diagnosis_builder {
    struct hec_inferred *inferred;
    struct hec_source_modules_builder *modules;
    struct hec_program_lines_builder *lines;
    struct build main;
};

/* ---- the states ---- */

/* 0: out of range, as of a damaged file. */
static const struct hec_steady *steady_of(const struct build *b, int device) {
    static const struct hec_steady unknown = {0};
    return device >= 0 && device < HEC_DEVICE_MAX ? &b->steady[device] : &unknown;
}

/* Part of the time in which kernels ran that the device did nothing but communicate, where it was seen. */
static double comm_share(const struct hec_summary *reported, int device) {
    const struct hec_device_diagnosis *d = reported ? hec_summary_device(reported, device) : NULL;
    const struct hec_device_timeline *t = d ? d->timeline : NULL;
    double alone = t ? t->comm_s * (1 - (isfinite(t->comm_overlap) ? t->comm_overlap : 0)) : 0;
    return alone > 0 ? alone / (t->compute_s + alone) : 0;
}

/* inside: the part in the steady part of the run; NULL: none. */
static inline int give_parts(struct build *b, int device, const struct hec_state_piece *piece,
                             const struct hec_state_piece *inside, bool seen) {
    uint64_t bit = hec_device_bit(device);
    b->active |= bit;
    int err = hec_ledger_piece(b->ledger, device, piece);
    if (!err && b->view)
        err = hec_view_piece(b->view, device, piece);
    if (!err && inside)
        err = hec_ledger_piece(b->steady_ledger, device, inside);
    if (!err && b->calls && inside)
        err = hec_gaps_piece(&b->gaps, device, inside, steady_of(b, device)->steps > 0);
    if (!err && b->calls && bit)
        hec_hold_piece(&b->hold[device], piece);
    if (!err && b->calls)
        err = hec_calls_piece(b->calls, device, piece);
    return !err && b->tapes && bit ? hec_tape_add(&b->tape[device], piece, seen) : err;
}

static __attribute__((noinline)) int give_clipped(struct build *b, int device, const struct hec_state_piece *piece,
                                                  bool seen) {
    struct hec_state_piece inside;
    bool any = hec_steady_clip(steady_of(b, device), piece, &inside);
    return give_parts(b, device, piece, any ? &inside : NULL, seen);
}

static int give_piece(struct build *b, int device, const struct hec_state_piece *piece, bool seen) {
    return hec_steady_holds(steady_of(b, device), piece) ? give_parts(b, device, piece, piece, seen)
                                                         : give_clipped(b, device, piece, seen);
}

static int give_inferred(struct build *b, int device, const struct hec_state_piece *piece) {
    return give_piece(b, device, piece, hec_inferred_seen(b->inferred, device, piece->start_ns, piece->end_ns));
}

/* Of kernels that nobody saw, so much is communication as of those in the glimpse. */
static int take_inferred(struct build *b, int device, const struct hec_state_piece *piece) {
    struct hec_state_piece compute = *piece, comm = *piece;
    bool seen =
        piece->state != HEC_STATE_COMPUTE || hec_inferred_seen(b->inferred, device, piece->start_ns, piece->end_ns);
    double share = seen ? 0 : comm_share(b->reported, device);
    if (!(share > 0))
        return give_inferred(b, device, piece);
    compute.end_ns -= (int64_t)(share * (double)(piece->end_ns - piece->start_ns));
    comm.start_ns = compute.end_ns;
    comm.state = HEC_STATE_COMM;
    comm.kernel_class = HEC_KERNEL_CLASS_COMM;
    int err = compute.start_ns < compute.end_ns ? give_inferred(b, device, &compute) : 0;
    return !err && comm.start_ns < comm.end_ns ? give_inferred(b, device, &comm) : err;
}

static int take_piece(void *context, int device, const struct hec_state_piece *piece) {
    struct build *b = context;
    int64_t lasts_ns = piece->end_ns - piece->start_ns;
    bool startup = piece->state == HEC_STATE_STARTUP;
    bool launches = piece->state == HEC_STATE_LAUNCH && lasts_ns >= HEC_STATE_BRIEF_NS;
    if ((startup || launches) && piece->frame && b->stacks.meaning && hec_device_bit(device)) {
        enum hec_stack_meaning meaning = hec_stacks_meaning(&b->stacks, piece->frame);
        b->compiling_ns[device] += startup && meaning == HEC_STACK_COMPILE ? lasts_ns : 0;
        b->launching_ns[device] += launches && hec_stack_launches(meaning) ? lasts_ns : 0;
    }
    return b->inferred ? take_inferred(b, device, piece) : give_piece(b, device, piece, true);
}

/* ---- after the last activity ---- */

#define STEP_ENDS_NS HEC_NS_PER_S /* the step in which the last activity was */

static int look_after(struct telemetry *t, struct hec_device_diagnosis *d, int64_t from_ns) {
    int device = d->readings.device.index;
    int64_t end_ns = t->meter->end_ns;
    struct hec_after *a = &d->after;
    *a = (struct hec_after){
        .seconds = (double)(end_ns - from_ns) / HEC_NS_PER_S, .engine = NAN, .watts = NAN, .sm_mhz = NAN};
    int err = hec_meter_mean(t->meter, HEC_GPM_GR_ACTIVE, device, from_ns, end_ns, &a->engine, t->why);
    if (!err && isnan(a->engine))
        err = hec_meter_mean(t->meter, HEC_GPU_UTIL, device, from_ns, end_ns, &a->engine, t->why);
    if (!err)
        err = hec_meter_mean(t->meter, HEC_GPU_POWER, device, from_ns, end_ns, &a->watts, t->why);
    if (!err)
        err = hec_meter_mean(t->meter, HEC_GPU_SM_CLOCK, device, from_ns, end_ns, &a->sm_mhz, t->why);
    a->watts /= 1e3;
    a->works = a->seconds >= HEC_HANG_LEAST_S && a->engine >= HEC_HANG_ENGINE && d->readings.others == HEC_OTHERS_IDLE;
    return err;
}

static bool works(void *context, int device, int64_t from_ns) {
    struct telemetry *t = ((struct build *)context)->telemetry;
    struct hec_device_diagnosis *d = t ? hec_summary_device(t->summary, device) : NULL;
    if (d && !(d->after.seconds > 0) && !t->err && from_ns < t->meter->end_ns) {
        const struct hec_step_list *steps = hec_device_steps_of(&((struct build *)context)->steps, device);
        t->err = look_after(t, d, from_ns);
        d->after.goes_on = steps && (steps->beyond || steps->list[steps->count - 1].end_ns > from_ns + STEP_ENDS_NS);
    }
    return d && d->after.works;
}

/* Of what a device waits for, the part that FSDP takes: most of it is in waits so short that few of them have a sample. */
static void count_sharding(struct build *b, int device, const struct hec_state_sample *sample) {
    if (!b->stacks.meaning || !hec_device_bit(device) || !hec_state_sharded((enum hec_state)sample->state))
        return;
    b->waiting_ns[device] += sample->period_ns;
    if (hec_stacks_meaning(&b->stacks, sample->frame) == HEC_STACK_SHARDS)
        b->sharding_ns[device] += sample->period_ns;
}

static int take_sample(void *context, int device, const struct hec_state_sample *sample) {
    struct build *b = context;
    const struct hec_steady *steady = steady_of(b, device);
    bool inside = hec_steady_at(steady, sample->t_ns);
    int err = hec_operations_sample(b->operations, device, sample, hec_source_blame(b->source, sample->frame), inside);
    if (!err)
        err = hec_source_sample(b->source, device, sample);
    if (inside)
        count_sharding(b, device, sample);
    if (!err && inside)
        return hec_source_sample(b->steady_source, device, sample);
    return !err && sample->t_ns < steady->from_ns ? hec_source_sample(b->setup_source, device, sample) : err;
}

static int take_beside(void *context, int device, const struct hec_state_sample *sample) {
    struct build *b = context;
    return hec_steady_at(steady_of(b, device), sample->t_ns)
               ? hec_operations_beside(b->operations, device, sample, hec_source_blame(b->source, sample->frame))
               : 0;
}

static int take_calls(void *context, const struct hec_activity *activities, size_t count) {
    hec_calls_activities(context, activities, count);
    return 0;
}

/* consumers: by stage; the calls, and the states. */
static int start(struct build *b, const struct hec_pass *pass, bool widens, struct hec_pass_consumer *consumers) {
    bool calls = !widens && !pass->input->brief;
    const struct hec_state_visitor visitor = {b, take_piece, widens ? NULL : take_sample, widens ? NULL : take_beside,
                                              works};
    b->pass = pass;
    b->ledger = hec_ledger_begin();
    b->steady_ledger = hec_ledger_begin();
    if (!widens) {
        b->source = hec_source_begin(&pass->tables);
        b->steady_source = hec_source_begin(&pass->tables);
        b->setup_source = hec_source_begin(&pass->tables);
    }
    int err = widens ? 0 : hec_stacks_begin(&b->stacks, &pass->tables);
    if (err)
        return err;
    if (!widens && !(b->operations = hec_operations_begin(&b->stacks)))
        return HEC_ERR_NOMEM;
    if (calls) {
        b->calls = hec_calls_begin(&pass->tables);
        consumers[HEC_STAGE_CALLS] = hec_stage_consumer(HEC_STAGE_CALLS, b->calls, take_calls);
    }
    if (!b->ledger || !b->steady_ledger || (!widens && !(b->source && b->steady_source && b->setup_source)) ||
        (calls && !b->calls) || hec_device_steps_choose(&pass->survey, &pass->tables, &b->steps))
        return HEC_ERR_NOMEM;
    hec_ledger_steps(b->ledger, &b->steps);
    hec_ledger_steps(b->steady_ledger, &b->steps);
    if (b->calls)
        hec_calls_steps(b->calls, &b->steps);
    for (int device = 0; device < HEC_DEVICE_MAX; device++) {
        const struct hec_step_list *steps = hec_device_steps_of(&b->steps, device);
        b->steady[device] = steps || !b->inferred ? hec_steady_of(steps) : hec_inferred_loop(b->inferred, device);
        if (b->calls && !steps && b->steady[device].known)
            hec_calls_loop(b->calls, device, &b->steady[device]);
    }
    return hec_states_begin(pass, NULL, &visitor, &b->states, &consumers[HEC_STAGE_STATES]);
}

/* All pieces are reported. */
static int end_states(struct build *b, struct telemetry *telemetry) {
    struct hec_states *states = b->states;
    b->states = NULL;
    b->telemetry = telemetry;
    int err = hec_states_end(states);
    return err ? err : telemetry->err;
}

static void discard(struct build *b) {
    hec_states_abandon(b->states);
    hec_operations_free(b->operations);
    hec_stacks_free(&b->stacks);
    hec_ledger_abandon(b->ledger);
    hec_ledger_abandon(b->steady_ledger);
    hec_calls_free(b->calls);
    hec_source_abandon(b->source);
    hec_source_abandon(b->steady_source);
    hec_source_abandon(b->setup_source);
    hec_gaps_free(&b->gaps);
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        hec_tape_free(&b->tape[i]);
    *b = (struct build){0};
}

static int end_ledgers(struct build *b, struct hec_ledger *ledger, struct hec_ledger *steady) {
    int err = hec_ledger_end(b->ledger, ledger);
    b->ledger = NULL;
    if (err)
        return err;
    err = hec_ledger_end(b->steady_ledger, steady);
    b->steady_ledger = NULL;
    return err;
}

/* A pass of its own, of what was inferred. */
static int run(struct build *b, struct hec_inferred *inferred, enum hec_inferred_variant variant, bool widens,
               struct hec_why *why) {
    const struct hec_pass *pass;
    struct hec_pass_consumer consumers[HEC_STAGE_COUNT] = {{0}};
    int err = hec_inferred_pass(inferred, variant, &pass, why);
    if (!err)
        err = start(b, pass, widens, consumers);
    return err ? err : hec_pass_run(pass, consumers, HEC_STAGE_COUNT, why);
}

/* The seconds' bounds: the ledgers of the other possibilities. */
static int widen(struct hec_inferred *inferred, struct telemetry *telemetry, struct found *out, struct hec_why *why) {
    int err = 0;
    for (int v = HEC_INFERRED_GUESS + 1; v < HEC_INFERRED_VARIANT_COUNT && !err; v++) {
        struct build b = {.inferred = inferred, .reported = telemetry->summary};
        struct hec_ledger ledger = {0}, steady = {0};
        err = run(&b, inferred, v, true, why);
        if (!err)
            err = end_states(&b, telemetry);
        if (!err)
            err = end_ledgers(&b, &ledger, &steady);
        if (!err) {
            hec_ledger_widen(&out->ledger, &ledger);
            hec_ledger_widen(&out->steady, &steady);
        }
        hec_ledger_free(&ledger);
        hec_ledger_free(&steady);
        discard(&b);
    }
    return err;
}

/* ---- a device that is held and not used ---- */

/* Its bit; 0: it is none of them. */
static uint64_t unused(const struct build *b, const struct hec_device_summary *d) {
    return d->used && hec_use_nothing(d) > 0 ? hec_device_bit(d->device.index) & ~b->active : 0;
}

/* Making the context is all that was done on it: what follows is tail. Where the energy's split does not say when there was
 * one, there was one throughout. */
static int add_unused(struct build *b, const struct hec_device_summary *d, int64_t end_ns) {
    double without_s = isfinite(d->energy.idle_s) ? d->energy.idle_s : 0;
    int64_t held_ns = llround(fmin(without_s * HEC_NS_PER_S, (double)end_ns));
    const struct hec_state_piece pieces[] = {
        {.start_ns = 0, .end_ns = held_ns, .state = HEC_STATE_STARTUP, .traced = true},
        {.start_ns = held_ns, .end_ns = end_ns, .state = HEC_STATE_TAIL, .traced = true}};
    int err = 0;
    for (int k = 0; k < 2 && !err; k++)
        if (pieces[k].start_ns < pieces[k].end_ns) {
            err = hec_ledger_piece(b->ledger, d->device.index, &pieces[k]);
            err = !err && b->view ? hec_view_piece(b->view, d->device.index, &pieces[k]) : err;
        }
    return err;
}

/* ---- what is found ---- */

static void set_basis(const struct hec_inferred *inferred, struct hec_ledger *ledger) {
    for (int i = 0; inferred && i < ledger->device_count; i++)
        ledger->devices[i].basis = hec_inferred_basis(inferred, ledger->devices[i].device);
}

static int finish_ledgers(struct build *b, struct telemetry *telemetry, struct found *out) {
    const struct hec_summary *summary = telemetry->summary;
    uint64_t idle = 0;
    int err = end_states(b, telemetry);
    hec_ledger_steps(b->ledger, NULL);
    hec_gaps_end(&b->gaps);
    hec_operations_divide(b->operations, &b->gaps);
    if (b->calls)
        hec_calls_end(b->calls);
    out->gaps = b->gaps;
    b->gaps = (struct hec_gaps){NULL, 0};
    for (int i = 0; i < summary->device_count && !err; i++) {
        const struct hec_device_summary *d = &summary->devices[i].readings;
        uint64_t bit = unused(b, d);
        err = bit ? add_unused(b, d, b->pass->input->end_ns) : 0;
        idle |= bit;
    }
    if (!err)
        err = end_ledgers(b, &out->ledger, &out->steady);
    if (err)
        return err;
    set_basis(b->inferred, &out->ledger);
    set_basis(b->inferred, &out->steady);
    for (int i = 0; i < out->ledger.device_count; i++)
        if (idle & hec_device_bit(out->ledger.devices[i].device))
            out->ledger.devices[i].basis = HEC_LEDGER_UNUSED;
    return 0;
}

static int finish_device(struct build *b, struct hec_meter *meter, struct hec_ledger_device *ledger,
                         struct hec_device_diagnosis *d, struct hec_why *why) {
    const struct hec_step_list *steps = hec_device_steps_of(&b->steps, ledger->device);
    int err = 0;
    d->calls = calloc(1, sizeof *d->calls);
    d->watts = calloc(1, sizeof *d->watts);
    if (!d->calls || !d->watts)
        return HEC_ERR_NOMEM;
    if (b->calls)
        hec_calls_of(b->calls, ledger->device, d->calls);
    if (steps)
        err = hec_step_survey_result(&b->pass->survey, &b->pass->tables, steps, &d->steps);
    return err ? err
               : hec_watts_price(meter, d->timeline, &d->readings,
                                 hec_device_bit(ledger->device) ? &b->tape[ledger->device] : NULL, ledger, d->watts,
                                 why);
}

/* What the trace says of a device that nobody listed belongs to no dossier. */
static int finish_devices(struct build *b, struct hec_meter *meter, struct found *found, struct hec_summary *out,
                          struct hec_why *why) {
    int err = 0;
    for (int i = 0; i < found->ledger.device_count && !err; i++) {
        struct hec_ledger_device *ledger = &found->ledger.devices[i];
        struct hec_device_diagnosis *d = hec_summary_device(out, ledger->device);
        err = d ? finish_device(b, meter, ledger, d, why) : 0;
    }
    return err;
}

static int finish_lines(struct build *b, struct found *out) {
    struct hec_source_builder *source = b->source, *steady = b->steady_source, *setup = b->setup_source;
    b->source = b->steady_source = b->setup_source = NULL;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        b->hold[i].longest.frame = hec_source_blame(source, b->hold[i].longest.frame);
    int err = hec_source_end(source, &out->ledger, HEC_DIAGNOSIS_LINES, &out->source);
    int other = hec_source_end(steady, &out->steady, HEC_DIAGNOSIS_LINES, &out->steady_source);
    int third = hec_source_end(setup, NULL, HEC_DIAGNOSIS_LINES, &out->setup_source);
    for (int i = 0; i < out->steady_source.count; i++) {
        struct hec_source_line *l = &out->steady_source.lines[i];
        l->owners = hec_operations_owners(b->operations, l->device, l->file, l->line);
    }
    return err ? err : other ? other : third;
}

/* ---- into the dossiers ---- */

static void *kept(const void *value, size_t size, int *err) {
    void *own = malloc(size + 1);
    if (own)
        memcpy(own, value, size);
    else
        *err = HEC_ERR_NOMEM;
    return own;
}

/* Of rows of `size` bytes that are sorted by the device with which each begins, those of one; NULL: it has none. */
static void *rows_of(const void *rows, size_t size, int count, int device, int *found, int *err) {
    const char *first = NULL, *at = rows;
    for (int i = 0; i < count; i++, at += size)
        if (*(const int *)(const void *)at == device) {
            first = first ? first : at;
            ++*found;
        }
    return first ? kept(first, (size_t)*found * size, err) : NULL;
}

/* The lists of source_lines.h and source_modules.h. */
#define HAND_OVER(from, to, rows)                                                                                      \
    (to)->rows =                                                                                                       \
        rows_of((from)->rows, sizeof *(from)->rows, (from)->count, d->readings.device.index, &(to)->count, &err)

static int hand_over(const struct found *found, const struct build *b, struct hec_summary *out) {
    struct hec_device_diagnosis *d;
    int err = 0;
    for (int i = 0; i < found->ledger.device_count; i++)
        if ((d = hec_summary_device(out, found->ledger.devices[i].device)))
            d->ledger = kept(&found->ledger.devices[i], sizeof *d->ledger, &err);
    for (int i = 0; i < found->steady.device_count; i++)
        if ((d = hec_summary_device(out, found->steady.devices[i].device)))
            d->steady = kept(&found->steady.devices[i], sizeof *d->steady, &err);
    for (int i = 0; i < found->gaps.count; i++)
        if ((d = hec_summary_device(out, found->gaps.list[i].device)))
            d->gaps = kept(&found->gaps.list[i], sizeof *d->gaps, &err);
    for (int i = 0; i < out->device_count; i++) {
        d = &out->devices[i];
        if (hec_device_bit(d->readings.device.index)) {
            int64_t waiting_ns = b->waiting_ns[d->readings.device.index];
            d->sharding_share = waiting_ns ? (double)b->sharding_ns[d->readings.device.index] / (double)waiting_ns : 0;
            d->hold = b->hold[d->readings.device.index].longest;
            if (d->hold.frame)
                hec_source_name(&b->pass->tables, d->hold.frame, &d->hold_line);
            d->compiling_s = (double)b->compiling_ns[d->readings.device.index] / HEC_NS_PER_S;
            d->launching_s = (double)b->launching_ns[d->readings.device.index] / HEC_NS_PER_S;
        }
        HAND_OVER(&found->source, &d->source, lines);
        HAND_OVER(&found->steady_source, &d->steady_source, lines);
        HAND_OVER(&found->setup_source, &d->setup_source, lines);
        HAND_OVER(&found->modules, &d->modules, modules);
    }
    return err;
}

/* ---- the whole ---- */

int hec_diagnosis_begin(const struct hec_pass *pass, bool watts, struct hec_view *view,
                        struct hec_diagnosis_builder **out, struct hec_pass_consumer *consumers) {
    struct hec_diagnosis_builder *b = *out = calloc(1, sizeof *b);
    int err = b ? hec_inferred_begin(pass, &b->inferred, &consumers[HEC_STAGE_INFERRED]) : HEC_ERR_NOMEM;
    if (!err && !(b->lines = hec_program_lines_begin(&pass->tables, &consumers[HEC_STAGE_LINES])))
        err = HEC_ERR_NOMEM;
    if (!err && !(b->modules = hec_source_modules_begin(&pass->tables, &consumers[HEC_STAGE_MODULES])))
        err = HEC_ERR_NOMEM;
    if (!err) {
        b->main.tapes = watts;
        b->main.view = view;
        err = start(&b->main, pass, false, consumers);
    }
    if (err) {
        hec_diagnosis_abandon(b);
        *out = NULL;
    }
    return err;
}

int hec_diagnosis_end(struct hec_diagnosis_builder *b, struct hec_meter *meter, struct hec_summary *out,
                      struct hec_why *why) {
    struct hec_source_modules_builder *modules = b->modules;
    struct telemetry telemetry = {.meter = meter, .summary = out, .why = why};
    struct found found = {0};
    uint64_t shared = 0;
    bool any = false, tapes = b->main.tapes;
    struct hec_view *view = b->main.view;
    for (int i = 0; i < out->device_count; i++)
        if (out->devices[i].readings.others != HEC_OTHERS_IDLE)
            shared |= hec_device_bit(out->devices[i].readings.device.index);
    b->modules = NULL;
    int err = hec_source_modules_end(modules, HEC_DIAGNOSIS_MODULES, &found.modules);
    if (!err) {
        err = hec_program_lines_end(b->lines, HEC_DIAGNOSIS_LINES, &out->lines);
        b->lines = NULL;
    }
    if (!err)
        err = hec_inferred_decide(b->inferred, meter, shared, &any, why);
    if (!err && any) { /* what CUPTI saw is not all */
        discard(&b->main);
        b->main = (struct build){.inferred = b->inferred, .reported = out, .tapes = tapes, .view = view};
        if (view)
            hec_view_forget(view);
        err = run(&b->main, b->inferred, HEC_INFERRED_GUESS, false, why);
    }
    if (!err)
        err = finish_ledgers(&b->main, &telemetry, &found);
    if (!err)
        err = finish_devices(&b->main, meter, &found, out, why);
    if (!err)
        err = finish_lines(&b->main, &found);
    if (!err && any)
        err = widen(b->inferred, &telemetry, &found, why);
    if (!err)
        err = hand_over(&found, &b->main, out);
    out->framed = !err && hec_stacks_framed(&b->main.stacks);
    hec_diagnosis_abandon(b);
    hec_ledger_free(&found.ledger);
    hec_ledger_free(&found.steady);
    hec_gaps_free(&found.gaps);
    hec_source_lines_free(&found.source);
    hec_source_lines_free(&found.steady_source);
    hec_source_lines_free(&found.setup_source);
    hec_source_modules_free(&found.modules);
    return err;
}

void hec_diagnosis_abandon(struct hec_diagnosis_builder *b) {
    if (!b)
        return;
    discard(&b->main);
    hec_source_modules_abandon(b->modules);
    hec_program_lines_abandon(b->lines);
    hec_inferred_free(b->inferred);
    free(b);
}
