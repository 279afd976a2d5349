#include "diagnose/diagnosis.h"

#include "base/clock.h"
#include "diagnose/states/inferred/inferred.h"
#include "diagnose/timeline/pass.h"
#include "diagnose/result.h"
#include "diagnose/meter/use.h"
#include "diagnose/view/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is made of the states of one pass. */
struct build {
    const struct hec_pass *pass;
    struct hec_device_steps steps;
    struct hec_steady steady[HEC_DEVICE_MAX]; /* by hec_device.index */
    struct hec_ledger_builder *ledger, *steady_ledger;
    struct hec_inferred *inferred;       /* NULL: CUPTI saw all that is reported */
    const struct hec_timeline *reported; /* where inferred is not NULL */
    struct hec_states *states;
    uint64_t active;       /* bits of devices that have pieces */
    struct hec_view *view; /* NULL: nobody looks, or it is a pass that only widens bounds */
    /* the rest is not of a pass that only widens bounds */
    struct hec_source_builder *source, *steady_source;
    struct hec_calls *calls; /* NULL: nobody asks for them and for gaps */
    struct hec_gaps gaps;
    bool tapes;
    struct hec_tape tape[HEC_DEVICE_MAX];
};

struct hec_diagnosis_builder {
    struct hec_inferred *inferred;
    struct hec_source_modules_builder *modules;
    struct build main;
};

/* ---- the states ---- */

/* 0: out of range, as of a damaged file. */
static uint64_t bit_of(int device) {
    return device >= 0 && device < HEC_DEVICE_MAX ? UINT64_C(1) << device : 0;
}

static const struct hec_steady *steady_of(const struct build *b, int device) {
    static const struct hec_steady unknown = {0};
    return device >= 0 && device < HEC_DEVICE_MAX ? &b->steady[device] : &unknown;
}

/* Part of the time in which kernels ran that the device did nothing but communicate, where it was seen. */
static double comm_share(const struct hec_timeline *reported, int device) {
    for (int i = 0; reported && i < reported->device_count; i++) {
        const struct hec_device_timeline *t = &reported->devices[i];
        double alone = t->comm_s * (1 - (isfinite(t->comm_overlap) ? t->comm_overlap : 0));
        if (t->device == device && alone > 0)
            return alone / (t->compute_s + alone);
    }
    return 0;
}

/* inside: the part in the steady part of the run; NULL: none. */
static inline int give_parts(struct build *b, int device, const struct hec_state_piece *piece,
                             const struct hec_state_piece *inside, bool seen) {
    uint64_t bit = bit_of(device);
    b->active |= bit;
    int err = hec_ledger_piece(b->ledger, device, piece);
    if (!err && b->view)
        err = hec_view_piece(b->view, device, piece);
    if (!err && inside)
        err = hec_ledger_piece(b->steady_ledger, device, inside);
    if (!err && b->calls && inside)
        err = hec_gaps_piece(&b->gaps, device, inside, steady_of(b, device)->known);
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
    return b->inferred ? take_inferred(b, device, piece) : give_piece(b, device, piece, true);
}

static int take_sample(void *context, int device, const struct hec_state_sample *sample) {
    struct build *b = context;
    int err = hec_source_sample(b->source, device, sample);
    return !err && hec_steady_at(steady_of(b, device), sample->t_ns)
               ? hec_source_sample(b->steady_source, device, sample)
               : err;
}

static int take_calls(void *context, const struct hec_activity *activities, size_t count) {
    hec_calls_activities(context, activities, count);
    return 0;
}

/* Two consumers of the pass: the calls, and the states. */
static int start(struct build *b, const struct hec_pass *pass, bool widens, struct hec_pass_consumer consumers[2]) {
    bool calls = !widens && !pass->input->brief;
    const struct hec_state_visitor visitor = {b, take_piece, widens ? NULL : take_sample};
    b->pass = pass;
    b->ledger = hec_ledger_begin();
    b->steady_ledger = hec_ledger_begin();
    consumers[0] = (struct hec_pass_consumer){0};
    if (!widens) {
        b->source = hec_source_begin(&pass->tables);
        b->steady_source = hec_source_begin(&pass->tables);
    }
    if (calls) {
        b->calls = hec_calls_begin(&pass->tables);
        consumers[0] = (struct hec_pass_consumer){b->calls, HEC_ACTIVITY_ALL, take_calls, .apart = true};
    }
    if (!b->ledger || !b->steady_ledger || (!widens && !(b->source && b->steady_source)) || (calls && !b->calls) ||
        hec_device_steps_choose(&pass->survey, &pass->tables, &b->steps))
        return HEC_ERR_NOMEM;
    hec_ledger_steps(b->ledger, &b->steps);
    hec_ledger_steps(b->steady_ledger, &b->steps);
    for (int device = 0; device < HEC_DEVICE_MAX; device++)
        b->steady[device] = hec_steady_of(hec_device_steps_of(&b->steps, device));
    if (b->calls)
        hec_calls_steps(b->calls, &b->steps);
    return hec_states_begin(pass, NULL, &visitor, &b->states, &consumers[1]);
}

/* All pieces are reported. */
static int end_states(struct build *b) {
    struct hec_states *states = b->states;
    b->states = NULL;
    return hec_states_end(states);
}

static void discard(struct build *b) {
    hec_states_abandon(b->states);
    hec_ledger_abandon(b->ledger);
    hec_ledger_abandon(b->steady_ledger);
    hec_calls_free(b->calls);
    hec_source_abandon(b->source);
    hec_source_abandon(b->steady_source);
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
    struct hec_pass_consumer consumers[2];
    int err = hec_inferred_pass(inferred, variant, &pass, why);
    if (!err)
        err = start(b, pass, widens, consumers);
    return err ? err : hec_pass_run(pass, consumers, 2, why);
}

/* The seconds' bounds: the ledgers of the other possibilities. */
static int widen(struct hec_inferred *inferred, const struct hec_timeline *reported, struct hec_diagnosis *out,
                 struct hec_why *why) {
    int err = 0;
    for (int v = HEC_INFERRED_GUESS + 1; v < HEC_INFERRED_VARIANT_COUNT && !err; v++) {
        struct build b = {.inferred = inferred, .reported = reported};
        struct hec_ledger ledger = {0}, steady = {0};
        err = run(&b, inferred, v, true, why);
        if (!err)
            err = end_states(&b);
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
    return d->used && hec_use_nothing(d) > 0 ? bit_of(d->device.index) & ~b->active : 0;
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

/* ---- the whole ---- */

static const struct hec_device_summary *summary_of(const struct hec_device_summary *devices, int count, int device) {
    for (int i = 0; i < count; i++)
        if (devices[i].device.index == device)
            return &devices[i];
    return NULL;
}

static void set_basis(const struct hec_inferred *inferred, struct hec_ledger *ledger) {
    for (int i = 0; inferred && i < ledger->device_count; i++)
        ledger->devices[i].basis = hec_inferred_basis(inferred, ledger->devices[i].device);
}

static int finish_ledgers(struct build *b, const struct hec_device_summary *devices, int device_count,
                          struct hec_diagnosis *out) {
    uint64_t idle = 0;
    int err = end_states(b);
    hec_ledger_steps(b->ledger, NULL);
    hec_gaps_end(&b->gaps);
    if (b->calls)
        hec_calls_end(b->calls);
    out->gaps = b->gaps;
    b->gaps = (struct hec_gaps){NULL, 0};
    for (int i = 0; i < device_count && !err; i++)
        if (unused(b, &devices[i])) {
            idle |= unused(b, &devices[i]);
            err = add_unused(b, &devices[i], b->pass->input->end_ns);
        }
    if (!err)
        err = end_ledgers(b, &out->ledger, &out->steady);
    if (err)
        return err;
    set_basis(b->inferred, &out->ledger);
    set_basis(b->inferred, &out->steady);
    for (int i = 0; i < out->ledger.device_count; i++)
        if (idle & bit_of(out->ledger.devices[i].device))
            out->ledger.devices[i].basis = HEC_LEDGER_UNUSED;
    return 0;
}

static int finish_devices(struct build *b, struct hec_meter *meter, const struct hec_timeline *timeline,
                          const struct hec_device_summary *devices, int device_count, struct hec_diagnosis *out,
                          struct hec_why *why) {
    int count = out->ledger.device_count, err = 0;
    out->results = calloc((size_t)count + 1, sizeof *out->results);
    if (!out->results)
        return HEC_ERR_NOMEM;
    for (int i = 0; i < count && !err; i++) {
        struct hec_ledger_device *d = &out->ledger.devices[i];
        struct hec_device_result *result = &out->results[i];
        const struct hec_device_summary *summary = summary_of(devices, device_count, d->device);
        const struct hec_step_list *steps = hec_device_steps_of(&b->steps, d->device);
        if (b->calls)
            hec_calls_of(b->calls, d->device, &result->calls);
        if (steps)
            err = hec_step_survey_result(&b->pass->survey, &b->pass->tables, steps, &result->steps);
        if (!err && summary)
            err = hec_watts_price(meter, timeline, summary, bit_of(d->device) ? &b->tape[d->device] : NULL, d,
                                  &result->watts, why);
        else if (!err)
            hec_watts_none(d, &result->watts);
    }
    return err;
}

static int finish_lines(struct build *b, struct hec_diagnosis *out) {
    struct hec_source_builder *source = b->source, *steady = b->steady_source;
    b->source = b->steady_source = NULL;
    int err = hec_source_end(source, &out->ledger, HEC_DIAGNOSIS_LINES, &out->source);
    int other = hec_source_end(steady, &out->steady, HEC_DIAGNOSIS_LINES, &out->steady_source);
    return err ? err : other;
}

int hec_diagnosis_begin(const struct hec_pass *pass, bool watts, struct hec_view *view,
                        struct hec_diagnosis_builder **out, struct hec_pass_consumer *consumers) {
    struct hec_diagnosis_builder *b = *out = calloc(1, sizeof *b);
    memset(consumers, 0, HEC_DIAGNOSIS_CONSUMERS * sizeof *consumers);
    int err = b ? hec_inferred_begin(pass, &b->inferred, &consumers[0]) : HEC_ERR_NOMEM;
    if (!err && !(b->modules = hec_source_modules_begin(&pass->tables, &consumers[1])))
        err = HEC_ERR_NOMEM;
    if (!err) {
        b->main.tapes = watts;
        b->main.view = view;
        err = start(&b->main, pass, false, &consumers[2]);
    }
    if (err) {
        hec_diagnosis_abandon(b);
        *out = NULL;
    }
    return err;
}

int hec_diagnosis_end(struct hec_diagnosis_builder *b, struct hec_meter *meter, const struct hec_timeline *timeline,
                      const struct hec_device_summary *devices, int device_count, struct hec_diagnosis *out,
                      struct hec_why *why) {
    struct hec_source_modules_builder *modules = b->modules;
    bool any = false, tapes = b->main.tapes;
    struct hec_view *view = b->main.view;
    memset(out, 0, sizeof *out);
    b->modules = NULL;
    int err = hec_source_modules_end(modules, HEC_DIAGNOSIS_MODULES, &out->modules);
    if (!err)
        err = hec_inferred_decide(b->inferred, meter, devices, device_count, &any, why);
    if (!err && any) { /* what CUPTI saw is not all */
        discard(&b->main);
        b->main = (struct build){.inferred = b->inferred, .reported = timeline, .tapes = tapes, .view = view};
        if (view)
            hec_view_forget(view);
        err = run(&b->main, b->inferred, HEC_INFERRED_GUESS, false, why);
    }
    if (!err)
        err = finish_ledgers(&b->main, devices, device_count, out);
    if (!err)
        err = finish_devices(&b->main, meter, timeline, devices, device_count, out, why);
    if (!err)
        err = finish_lines(&b->main, out);
    if (!err && any)
        err = widen(b->inferred, timeline, out, why);
    hec_diagnosis_abandon(b);
    if (err)
        hec_diagnosis_free(out);
    return err;
}

void hec_diagnosis_abandon(struct hec_diagnosis_builder *b) {
    if (!b)
        return;
    discard(&b->main);
    hec_source_modules_abandon(b->modules);
    hec_inferred_free(b->inferred);
    free(b);
}

void hec_diagnosis_free(struct hec_diagnosis *diagnosis) {
    hec_ledger_free(&diagnosis->ledger);
    hec_source_lines_free(&diagnosis->source);
    hec_ledger_free(&diagnosis->steady);
    hec_source_lines_free(&diagnosis->steady_source);
    hec_source_modules_free(&diagnosis->modules);
    hec_gaps_free(&diagnosis->gaps);
    free(diagnosis->results);
    diagnosis->results = NULL;
}

static int at(const struct hec_diagnosis *diagnosis, int device) {
    for (int i = 0; i < diagnosis->ledger.device_count; i++)
        if (diagnosis->ledger.devices[i].device == device)
            return i;
    return -1;
}

const struct hec_ledger_device *hec_diagnosis_of(const struct hec_diagnosis *diagnosis, int device, const char **why) {
    int i = at(diagnosis, device);
    if (i >= 0 && why)
        *why = diagnosis->results[i].watts.why;
    return i >= 0 ? &diagnosis->ledger.devices[i] : NULL;
}

const char *hec_diagnosis_how(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->results ? diagnosis->results[i].watts.how : "";
}

const struct hec_call_facts *hec_diagnosis_calls(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->results ? &diagnosis->results[i].calls : NULL;
}

const struct hec_step_summary *hec_diagnosis_steps(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->results && diagnosis->results[i].steps.count ? &diagnosis->results[i].steps : NULL;
}

const struct hec_class_profile *hec_diagnosis_profile(const struct hec_diagnosis *diagnosis, int device) {
    int i = at(diagnosis, device);
    return i >= 0 && diagnosis->results ? &diagnosis->results[i].watts.profile : NULL;
}

const struct hec_ledger_device *hec_diagnosis_steady(const struct hec_diagnosis *diagnosis, int device) {
    for (int i = 0; i < diagnosis->steady.device_count; i++)
        if (diagnosis->steady.devices[i].device == device)
            return &diagnosis->steady.devices[i];
    return NULL;
}
