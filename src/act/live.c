#include "act/live.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_STEPS 3 /* after a switch: memory is allocated anew, code is compiled */
#define STEPS_LEAST 4
#define EDGES_LEAST 2
#define WARM_STEPS 8 /* before the first block; these and those above are of each rank */
#define LONG_TIMES 10
#define LONG_S                                                                                                         \
    0.5 /* a step that takes so long, and so many times those before it, is none of the block's: the block begins anew */
#define LONG_MOST 2         /* times in a block; more are the program's way */
#define PATIENCE_S 100      /* from an order to the end of its block: compilers take that long */
#define UNANSWERED_STEPS 20 /* a boundary comes with each: who has made so many, in so long, carries no order out */
#define UNANSWERED_S 5
#define NAMES 64 /* phases that answer orders: the newest */

struct edges { /* of a device's counter, in a block */
    int64_t value_mj, first_ns, last_ns;
    double first_j, last_j;
    int count;
};

struct hec_live_search {
    struct hec_live_plan plan;
    struct hec_orders orders;
    struct hec_sink sink;
    const struct hec_sink *to;
    pthread_mutex_t lock; /* of what follows */
    atomic_bool enough;
    struct {
        uint32_t id;
        struct hec_orders_answer answer;
    } names[NAMES];
    uint32_t set; /* of the order at hand */
    int answers;  /* to the order at hand: each rank gives one */
    bool carried_out, trains;
    int64_t ordered_ns, switched_ns, warm;
    int unanswered;           /* steps since the order */
    int settle, anew;         /* steps to be left out; times that the block began anew */
    int64_t begin_ns, end_ns; /* of the block's steps */
    double steps, units;
    struct edges edges[HEC_DEVICE_MAX];
    struct hec_search_trial rows[HEC_LIVE_ROWS_MOST];
    struct hec_live_block blocks[HEC_LIVE_ROWS_MOST];
    uint64_t order_of[HEC_LIVE_ROWS_MOST];
    int count;
    bool says_failed; /* the program has said of a lever that it failed */
};

/* ---- orders ---- */

static void begin_block(struct hec_live_search *l, int64_t t_ns) {
    l->begin_ns = l->end_ns = t_ns;
    l->steps = l->units = 0;
    for (int d = 0; d < HEC_DEVICE_MAX; d++)
        l->edges[d].count = 0;
}

static void order(struct hec_live_search *l, uint32_t set, int64_t now_ns) {
    char text[HEC_ORDERS_WANTED_MAX] = "";
    enum hec_lever_risk changes = l->plan.text(l->plan.context, set, text);
    l->set = set;
    l->carried_out = false;
    l->unanswered = l->answers = 0;
    l->ordered_ns = now_ns;
    if (hec_orders_give(&l->orders, text, (uint32_t)changes) < 0)
        atomic_store(&l->enough, true);
}

/* Seconds until the first step of a block counts: as long as any set with a compiler took, where this one has yet to be compiled. */
static double settles_s(const struct hec_live_search *l, uint32_t set) {
    double longest_s = NAN;
    for (int i = 0; i < l->count; i++) {
        const struct hec_live_block *block = &l->blocks[i];
        if (l->rows[i].set == set)
            return 0;
        if (l->rows[i].set & l->plan.compilers)
            longest_s = fmax(longest_s, block->switching_s + block->settling_s); /* a NAN gives way */
    }
    return !(set & l->plan.compilers) ? 0 : isnan(longest_s) ? HEC_LIVE_COMPILE_S : longest_s;
}

static bool is_late(const struct hec_live_search *l, uint32_t set) {
    return hec_clock_mono_ns() + (int64_t)(settles_s(l, set) * HEC_NS_PER_S) > l->plan.until_ns;
}

/* Compilers of a set that were never tried: what they make would come too late, and what else there is may have time. */
static uint32_t untried_compilers(const struct hec_live_search *l, uint32_t set) {
    uint32_t tried = l->plan.search.closed;
    for (int i = 0; i < l->count; i++)
        tried |= l->rows[i].set;
    return set & l->plan.compilers & ~tried;
}

static void decide(struct hec_live_search *l, int64_t now_ns) {
    struct hec_search_step next = hec_search_next(&l->plan.search, l->rows, l->count, false);
    bool late = is_late(l, next.set);
    for (uint32_t closes; !next.done && late && (closes = untried_compilers(l, next.set));
         late = is_late(l, next.set)) {
        l->plan.search.closed |= closes;
        next = hec_search_next(&l->plan.search, l->rows, l->count, false);
    }
    if (next.done || late || l->count == HEC_LIVE_ROWS_MOST)
        atomic_store(&l->enough, true);
    else
        order(l, next.set, now_ns);
}

static void add_row(struct hec_live_search *l, enum hec_search_fate fate, double cost, double speed) {
    struct hec_live_block block = {.switching_s = NAN, .settling_s = NAN, .seconds = NAN};
    if (l->carried_out)
        block.switching_s = (double)(l->switched_ns - l->ordered_ns) / HEC_NS_PER_S;
    if (fate == HEC_SEARCH_RAN) {
        block.settling_s = (double)(l->begin_ns - l->switched_ns) / HEC_NS_PER_S;
        block.seconds = (double)(l->end_ns - l->begin_ns) / HEC_NS_PER_S;
    }
    l->blocks[l->count] = block;
    l->order_of[l->count] = l->orders.number;
    l->rows[l->count++] =
        (struct hec_search_trial){.set = l->set, .fate = fate, .cost = cost, .speed = speed, .part = 1};
}

/* ---- blocks ---- */

static bool counted(const struct hec_live_search *l, int device) {
    return device >= 0 && device < HEC_DEVICE_MAX && l->plan.devices & UINT64_C(1) << device;
}

/* Watts between the first and the last edge of each device's counter; NAN: one has too few. */
static double watts_of(const struct hec_live_search *l) {
    double watts = l->plan.devices ? 0 : NAN;
    for (int d = 0; d < HEC_DEVICE_MAX; d++) {
        const struct edges *e = &l->edges[d];
        if (counted(l, d))
            watts += e->count >= EDGES_LEAST
                         ? (e->last_j - e->first_j) * HEC_NS_PER_S / (double)(e->last_ns - e->first_ns)
                         : NAN;
    }
    return watts;
}

static void end_block(struct hec_live_search *l) {
    double seconds = (double)(l->end_ns - l->begin_ns) / HEC_NS_PER_S;
    double speed = (l->units > 0 ? l->units : l->steps) / seconds, watts = watts_of(l);
    add_row(l, HEC_SEARCH_RAN, isfinite(watts) ? watts / speed : 1 / speed, speed);
    decide(l, l->end_ns);
}

static int ranks_of(const struct hec_live_search *l) {
    return l->plan.ranks > 1 ? l->plan.ranks : 1;
}

static void take_step(struct hec_live_search *l, const struct hec_activity *step) {
    if (step->detail != HEC_STEP_OPTIMIZER && (l->trains || step->detail != HEC_STEP_MODULE))
        return;
    if (step->detail == HEC_STEP_OPTIMIZER && !l->trains) {
        l->trains = true;
        l->warm = 0;
    }
    int64_t t_ns = step->end_ns;
    if (l->orders.number && !l->carried_out)
        hec_orders_agree(&l->orders, ranks_of(l));
    if (!l->orders.number) {
        if (++l->warm >= WARM_STEPS * ranks_of(l))
            decide(l, t_ns);
        return;
    }
    if (!l->carried_out && ++l->unanswered >= UNANSWERED_STEPS * ranks_of(l) &&
        (double)(t_ns - l->ordered_ns) > UNANSWERED_S * 1e9)
        atomic_store(&l->enough, true);
    if (!l->carried_out || t_ns < l->begin_ns)
        return;
    if (l->settle > 0) {
        l->settle--;
        begin_block(l, t_ns);
        return;
    }
    double took_s = (double)(t_ns - l->end_ns) / HEC_NS_PER_S,
           so_far_s = (double)(l->end_ns - l->begin_ns) / HEC_NS_PER_S;
    if (l->anew < LONG_MOST && took_s > LONG_S && l->steps > 0 && took_s > LONG_TIMES * so_far_s / l->steps) {
        l->anew++;
        begin_block(l, t_ns);
        return;
    }
    l->steps++;
    l->units += isfinite(step->amount) && step->amount > 0 ? step->amount : NAN;
    l->end_ns = t_ns;
    if (l->steps >= STEPS_LEAST * ranks_of(l) && so_far_s + took_s >= l->plan.block_s &&
        (isfinite(watts_of(l)) || !l->plan.devices))
        end_block(l);
}

/* The order is carried out, or its set computes something else or fails, and is out. */
static void take_answer(struct hec_live_search *l, const struct hec_orders_answer *answer, int64_t t_ns) {
    if ((answer->wrong || answer->failed) && l->set && l->count < HEC_LIVE_ROWS_MOST) {
        add_row(l, HEC_SEARCH_FAILED, NAN, NAN);
        if (answer->wrong)
            l->blocks[l->count - 1].wrong = *answer;
        decide(l, t_ns);
        return;
    }
    if (++l->answers < ranks_of(l))
        return;
    l->carried_out = true;
    l->switched_ns = t_ns;
    l->settle = SETTLE_STEPS * ranks_of(l);
    l->anew = 0;
    begin_block(l, t_ns);
}

/* A lever failed in a block that has ended since. */
static void take_late(struct hec_live_search *l, uint64_t order) {
    for (int i = 0; i < l->count; i++)
        if (l->order_of[i] == order && l->rows[i].set) {
            l->rows[i].fate = HEC_SEARCH_FAILED;
            l->rows[i].cost = l->rows[i].speed = NAN;
        }
}

static void take_phase(struct hec_live_search *l, const struct hec_activity *phase) {
    for (int i = 0; i < NAMES; i++) {
        const struct hec_orders_answer *answer = &l->names[i].answer;
        if (!phase->name || l->names[i].id != phase->name)
            continue;
        l->says_failed |= answer->failed;
        if (answer->order == l->orders.number)
            take_answer(l, answer, phase->end_ns);
        else if (answer->failed)
            take_late(l, answer->order);
        return;
    }
}

/* An order whose block never ends: a lever that fails again and again, or slows the program down without measure. One that is not even
 * carried out says nothing of its levers: the program has no boundary, or has stopped. */
static void check_patience(struct hec_live_search *l, int64_t t_ns) {
    if (!l->orders.number || atomic_load(&l->enough) || (double)(t_ns - l->ordered_ns) < PATIENCE_S * 1e9)
        return;
    bool blames = l->carried_out && l->set && l->count < HEC_LIVE_ROWS_MOST;
    if (blames) {
        add_row(l, HEC_SEARCH_FAILED, NAN, NAN);
        decide(l, t_ns);
    } else {
        atomic_store(&l->enough, true);
    }
}

/* ---- the sink ---- */

#define HEC_SINK(result, name, parameters, ...)                                                                        \
    static result pass_##name parameters {                                                                             \
        const struct hec_sink *to = ((struct hec_live_search *)context)->to;                                           \
        return to->name(to->context, __VA_ARGS__);                                                                     \
    }
#include "model/sink.def"
#undef HEC_SINK

static void live_sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    struct hec_live_search *l = context;
    pass_sample(context, metric, subject, t_ns, value);
    if (metric != HEC_GPU_ENERGY || !counted(l, subject))
        return;
    pthread_mutex_lock(&l->lock);
    struct edges *e = &l->edges[subject];
    if (value != e->value_mj && t_ns >= l->begin_ns) {
        if (!e->count++) {
            e->first_ns = t_ns;
            e->first_j = (double)value * 1e-3;
        }
        e->last_ns = t_ns;
        e->last_j = (double)value * 1e-3;
    }
    e->value_mj = value;
    check_patience(l, t_ns);
    pthread_mutex_unlock(&l->lock);
}

static uint32_t live_name(void *context, const char *text) {
    struct hec_live_search *l = context;
    uint32_t id = pass_trace_name(context, text);
    struct hec_orders_answer answer = hec_orders_answer(text);
    if (!answer.order)
        return id;
    pthread_mutex_lock(&l->lock);
    l->names[answer.order % NAMES].id = id;
    l->names[answer.order % NAMES].answer = answer;
    pthread_mutex_unlock(&l->lock);
    return id;
}

static void live_activities(void *context, const struct hec_activity *activities, size_t count) {
    struct hec_live_search *l = context;
    pass_trace_activities(context, activities, count);
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < count && !atomic_load(&l->enough); i++) {
        if (activities[i].kind == HEC_ACTIVITY_STEP)
            take_step(l, &activities[i]);
        else if (activities[i].kind == HEC_ACTIVITY_PHASE)
            take_phase(l, &activities[i]);
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- the whole ---- */

int hec_live_search_begin(const struct hec_live_plan *plan, struct hec_live_search **out, struct hec_why *why) {
    struct hec_live_search *l = *out = calloc(1, sizeof *l);
    if (!l)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for a search in the running program");
    l->plan = *plan;
    pthread_mutex_init(&l->lock, NULL);
    return HEC_OK;
}

struct hec_orders *hec_live_search_orders(struct hec_live_search *live) {
    return &live->orders;
}

const atomic_bool *hec_live_search_enough(const struct hec_live_search *live) {
    return &live->enough;
}

const struct hec_sink *hec_live_search_through(void *context, const struct hec_sink *to) {
    struct hec_live_search *l = context;
    l->to = to;
    l->sink = (struct hec_sink){
        .context = l,
#define HEC_SINK(result, name, ...) .name = pass_##name,
#include "model/sink.def"
#undef HEC_SINK
    };
    l->sink.sample = live_sample;
    l->sink.trace_name = live_name;
    l->sink.trace_activities = live_activities;
    return &l->sink;
}

const struct hec_search_trial *hec_live_search_rows(struct hec_live_search *live, int *count) {
    *count = live->count;
    return live->rows;
}

struct hec_live_block hec_live_search_block(const struct hec_live_search *live, int i) {
    return live->blocks[i];
}

bool hec_live_search_says_failed(const struct hec_live_search *live) {
    return live->says_failed;
}

void hec_live_search_free(struct hec_live_search *live) {
    if (!live)
        return;
    pthread_mutex_destroy(&live->lock);
    free(live);
}
