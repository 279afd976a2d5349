#include "diagnose/states/ledger.h"

#include "base/names.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void hec_ledger_apportion(const double *weights, int count, int64_t total, int64_t *shares) {
    double sum = 0;
    int64_t left = total;
    for (int i = 0; i < count; i++) {
        sum += weights[i];
        shares[i] = 0;
    }
    if (!(sum > 0))
        return;
    for (int i = 0; i < count; i++) {
        shares[i] = (int64_t)floor((double)total * (weights[i] / sum));
        left -= shares[i];
    }
    /* one each for the largest remainders; rounding in double may leave one more or less than there are remainders */
    while (left != 0) {
        int best = -1;
        double most = 0;
        for (int i = 0; i < count; i++) {
            double remainder = (double)total * (weights[i] / sum) - (double)shares[i];
            double want = left > 0 ? remainder : -remainder;
            if (weights[i] > 0 && (left > 0 || shares[i] > 0) && (best < 0 || want > most)) {
                best = i;
                most = want;
            }
        }
        int64_t step = left > 0 ? 1 : -1;
        if (left > count || left < -count)
            step = left; /* totals beyond 2^53: the first takes what double cannot distinguish */
        shares[best] += step;
        left -= step;
    }
}

/* The mean over the classes, by time. */
static struct hec_ledger_watts mean_of(const struct hec_ledger_device *device, const struct hec_ledger_watts *classes) {
    struct hec_ledger_watts sum = {0};
    double ns = 0;
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        double weight = (double)device->classes[c].ns;
        if (!(weight > 0))
            continue;
        ns += weight;
        sum.watts += weight * classes[c].watts;
        sum.low += weight * classes[c].low;
        sum.high += weight * classes[c].high;
    }
    if (!(ns > 0))
        return (struct hec_ledger_watts){NAN, NAN, NAN};
    return (struct hec_ledger_watts){sum.watts / ns, sum.low / ns, sum.high / ns};
}

static void price(struct hec_ledger_row *row, const struct hec_ledger_watts *watts, int64_t mj) {
    row->mj = mj;
    row->joules = (double)mj / 1e3;
    row->watts = watts->watts;
    row->watts_low = watts->low;
    row->watts_high = watts->high;
    row->step_joules = row->ns ? row->step_seconds * row->joules / row->seconds : row->step_seconds * 0;
}

bool hec_ledger_power(struct hec_ledger_device *device, const struct hec_ledger_watts watts[HEC_STATE_COUNT],
                      const struct hec_ledger_watts *classes, int64_t total_mj) {
    /* the states; behind them the classes, which then stand for compute */
    double raw[HEC_STATE_COUNT + HEC_KERNEL_CLASS_COUNT], sum = 0;
    int64_t shares[HEC_STATE_COUNT + HEC_KERNEL_CLASS_COUNT];
    int count = HEC_STATE_COUNT + (classes ? HEC_KERNEL_CLASS_COUNT : 0);
    for (int i = 0; i < count; i++) {
        int c = i - HEC_STATE_COUNT;
        int64_t ns = i < HEC_STATE_COUNT ? device->rows[i].ns : device->classes[c].ns;
        double power = i < HEC_STATE_COUNT ? watts[i].watts : classes[c].watts;
        raw[i] = ns && !(classes && i == HEC_STATE_COMPUTE) ? power * (double)ns / HEC_NS_PER_S : 0;
        if (!isfinite(raw[i]) || raw[i] < 0)
            return false;
        sum += raw[i];
    }
    if (total_mj < 0 || (total_mj > 0 && !(sum > 0)))
        return false;
    hec_ledger_apportion(raw, count, total_mj, shares);
    for (int c = 0; classes && c < HEC_KERNEL_CLASS_COUNT; c++) {
        struct hec_ledger_class *row = &device->classes[c];
        row->mj = shares[HEC_STATE_COUNT + c];
        row->joules = (double)row->mj / 1e3;
        row->watts = classes[c].watts;
        row->watts_low = classes[c].low;
        row->watts_high = classes[c].high;
        shares[HEC_STATE_COMPUTE] += row->mj;
    }
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        bool mean = classes && i == HEC_STATE_COMPUTE;
        struct hec_ledger_watts own = mean ? mean_of(device, classes) : watts[i];
        price(&device->rows[i], &own, shares[i]);
    }
    device->joules = (double)total_mj / 1e3;
    device->discrepancy = total_mj > 0 ? sum / ((double)total_mj / 1e3) - 1 : NAN;
    return true;
}

/* Sums over the windows of a trace, for one phase of the program: m is a window's length, y its time in a state. */
struct stratum {
    int64_t untraced_ns;
    int64_t windows;
    double m, mm;
    double y[HEC_STATE_COUNT], yy[HEC_STATE_COUNT], ym[HEC_STATE_COUNT];
    int64_t class_ns[HEC_KERNEL_CLASS_COUNT];
    int64_t now_ns[HEC_STATE_COUNT]; /* of the window at hand */
};

struct device {
    int device;
    int64_t from_ns, to_ns;
    int64_t traced_ns[HEC_STATE_COUNT]; /* of the windows before */
    int64_t windows;
    int64_t requests_ns, requests_steps;
    struct stratum strata[HEC_STATE_PHASE_COUNT];
    size_t step; /* the first that ends after the last piece */
    bool step_untraced;
    /* Pieces that end before it change nothing of which step is at hand: what they add to it follows from the sums. */
    int64_t same_step_ns;
    bool in_step;
    int64_t before_ns[HEC_STATE_COUNT]; /* the sums of what the step at hand has already, or does not have */
    int64_t step_ns[HEC_STATE_COUNT], step_sum_ns[HEC_STATE_COUNT], steps;
};

struct hec_ledger_builder {
    struct device *devices;
    int device_count;
    struct device *last;                  /* of the last piece; NULL: none yet */
    const struct hec_device_steps *steps; /* while pieces come */
    bool stepped[HEC_DEVICE_MAX];         /* which of them have any, for the end */
};

struct hec_ledger_builder *hec_ledger_begin(void) {
    return calloc(1, sizeof(struct hec_ledger_builder));
}

void hec_ledger_steps(struct hec_ledger_builder *builder, const struct hec_device_steps *steps) {
    builder->steps = steps;
    for (int device = 0; steps && device < HEC_DEVICE_MAX; device++)
        builder->stepped[device] = hec_device_steps_of(steps, device) != NULL;
}

void hec_ledger_abandon(struct hec_ledger_builder *builder) {
    if (builder)
        free(builder->devices);
    free(builder);
}

static struct device *device_of(struct hec_ledger_builder *b, int device, int64_t from_ns) {
    for (int i = 0; i < b->device_count; i++)
        if (b->devices[i].device == device)
            return &b->devices[i];
    struct device *grown = realloc(b->devices, ((size_t)b->device_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    b->devices = grown;
    struct device *d = &grown[b->device_count++];
    memset(d, 0, sizeof *d);
    d->device = device;
    d->from_ns = from_ns;
    d->same_step_ns = INT64_MIN;
    return d;
}

/* ---- windows ---- */

/* Startup and tail are known, and stand for no other time. */
static bool stands_for_others(int state) {
    return state != HEC_STATE_STARTUP && state != HEC_STATE_TAIL;
}

static void close_window(struct device *d) {
    bool any = false;
    for (int p = 0; p < HEC_STATE_PHASE_COUNT; p++) {
        struct stratum *s = &d->strata[p];
        double m = 0;
        for (int i = 0; i < HEC_STATE_COUNT; i++)
            m += stands_for_others(i) ? (double)s->now_ns[i] : 0;
        any |= m > 0;
        s->windows += m > 0;
        s->m += m;
        s->mm += m * m;
        for (int i = 0; i < HEC_STATE_COUNT; i++) {
            double now = stands_for_others(i) ? (double)s->now_ns[i] : 0;
            s->y[i] += now;
            s->yy[i] += now * now;
            s->ym[i] += now * m;
            d->traced_ns[i] += s->now_ns[i];
            s->now_ns[i] = 0;
        }
    }
    d->windows += any;
}

/* ---- steps ---- */

static void close_step(struct device *d) {
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        d->step_sum_ns[i] += d->step_untraced ? 0 : d->step_ns[i];
        d->step_ns[i] = 0;
    }
    d->steps += !d->step_untraced;
    d->step_untraced = false;
    d->step++;
}

static int64_t traced_so_far(const struct device *d, int state) {
    int64_t sum = d->traced_ns[state];
    for (int p = 0; p < HEC_STATE_PHASE_COUNT; p++)
        sum += d->strata[p].now_ns[state];
    return sum;
}

/* Before the piece is in the sums: those before it are of the step at hand. */
static void settle_step(struct device *d) {
    for (int i = 0; i < HEC_STATE_COUNT && d->in_step; i++)
        d->step_ns[i] += traced_so_far(d, i) - d->before_ns[i];
}

/* After. */
static void add_to_steps(struct device *d, const struct hec_step_list *steps, const struct hec_state_piece *piece) {
    for (; d->step < steps->count; close_step(d)) {
        const struct hec_step *s = &steps->list[d->step];
        int64_t from = s->start_ns > piece->start_ns ? s->start_ns : piece->start_ns;
        int64_t to = s->end_ns < piece->end_ns ? s->end_ns : piece->end_ns;
        if (from < to && piece->traced)
            d->step_ns[piece->state] += to - from;
        if (from < to && !piece->traced)
            d->step_untraced = true;
        if (s->start_ns < d->from_ns)
            d->step_untraced = true; /* begins before all that is known */
        if (s->end_ns > piece->end_ns)
            break;
    }
    const struct hec_step *s = d->step < steps->count ? &steps->list[d->step] : NULL;
    d->in_step = s && s->start_ns <= piece->end_ns;
    d->same_step_ns = d->in_step ? s->end_ns : s ? s->start_ns : INT64_MAX;
    for (int i = 0; i < HEC_STATE_COUNT && d->in_step; i++)
        d->before_ns[i] = traced_so_far(d, i);
}

static inline void add_traced(struct device *d, const struct hec_state_piece *piece) {
    struct stratum *s = &d->strata[piece->phase];
    int64_t length = piece->end_ns - piece->start_ns;
    d->to_ns = piece->end_ns;
    s->now_ns[piece->state] += length;
    if (piece->state == HEC_STATE_REQUESTS) {
        d->requests_ns = piece->end_ns;
        d->requests_steps = d->steps;
    }
    if (piece->state == HEC_STATE_COMPUTE)
        s->class_ns[piece->kernel_class] += length;
}

static __attribute__((noinline)) int add_piece(struct hec_ledger_builder *builder, int device,
                                               const struct hec_state_piece *piece) {
    struct device *d = builder->last = device_of(builder, device, piece->start_ns);
    if (!d)
        return HEC_ERR_NOMEM;
    if (piece->traced && piece->end_ns < d->same_step_ns) {
        add_traced(d, piece);
        return 0;
    }
    const struct hec_step_list *steps = hec_device_steps_of(builder->steps, device);
    settle_step(d);
    d->in_step = false;
    d->same_step_ns = INT64_MAX;
    if (piece->traced) {
        add_traced(d, piece);
    } else {
        close_window(d);
        d->strata[piece->phase].untraced_ns += piece->end_ns - piece->start_ns;
        d->to_ns = piece->end_ns;
    }
    if (steps)
        add_to_steps(d, steps, piece);
    return 0;
}

/* Most of tens of millions change but two sums: add_piece is apart so that those need no registers saved. */
int hec_ledger_piece(struct hec_ledger_builder *builder, int device, const struct hec_state_piece *piece) {
    struct device *d = builder->last;
    if (!d || d->device != device || !piece->traced || piece->end_ns >= d->same_step_ns)
        return add_piece(builder, device, piece);
    add_traced(d, piece);
    return 0;
}

/* ---- the end ---- */

/* Student's t, two-sided 95 %. */
static double student(int64_t degrees) {
    static const double few[] = {12.706, 4.303};
    return degrees <= 2 ? few[degrees - 1] : hec_student_975((double)degrees);
}

struct estimate {
    double ns[HEC_STATE_COUNT], variance[HEC_STATE_COUNT]; /* variance: of half an interval */
    double class_ns[HEC_KERNEL_CLASS_COUNT];
    double below[HEC_STATE_COUNT], above[HEC_STATE_COUNT]; /* bounds that do not add in squares */
};

static void extrapolate(const struct stratum *s, struct estimate *e) {
    double u = (double)s->untraced_ns, n = (double)s->windows;
    if (!(u > 0))
        return;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        double share = s->m > 0 ? s->y[i] / s->m : i == HEC_STATE_UNKNOWN;
        e->ns[i] += share * u;
        if (s->windows < 2) {
            e->below[i] += share * u;
            e->above[i] += stands_for_others(i) ? (1 - share) * u : 0;
            continue;
        }
        double squares = s->yy[i] - 2 * share * s->ym[i] + share * share * s->mm;
        double variance = squares > 0 ? n / (n - 1) * squares / (s->m * s->m) : 0;
        double half = u * student(s->windows - 1) * sqrt(variance);
        e->variance[i] += half * half;
        if (!(s->y[i] > 0) && stands_for_others(i))
            e->above[i] += u * (n > 3 ? 3 / n : 1);
    }
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
        e->class_ns[c] += s->m > 0 ? (double)s->class_ns[c] / s->m * u : 0;
}

static void finish(const struct device *d, bool has_steps, struct hec_ledger_device *out) {
    struct estimate e = {0};
    int64_t untraced = 0, shares[HEC_STATE_COUNT], class_shares[HEC_KERNEL_CLASS_COUNT];
    *out = (struct hec_ledger_device){
        .device = d->device,
        .from_ns = d->from_ns,
        .to_ns = d->to_ns,
        .window_ns = d->to_ns - d->from_ns,
        .steps = has_steps ? d->steps : 0,
        .requests_ns = d->requests_ns,
        .requests_steps = has_steps ? d->requests_steps : 0,
        .joules = NAN,
        .discrepancy = NAN,
    };
    for (int p = 0; p < HEC_STATE_PHASE_COUNT; p++) {
        extrapolate(&d->strata[p], &e);
        untraced += d->strata[p].untraced_ns;
        for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
            out->classes[c].traced_ns += d->strata[p].class_ns[c];
    }
    out->windows = untraced ? d->windows : 0;
    hec_ledger_apportion(e.ns, HEC_STATE_COUNT, untraced, shares);
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        struct hec_ledger_row *row = &out->rows[i];
        row->traced_ns = d->traced_ns[i];
        row->ns = row->traced_ns + shares[i];
        out->traced_ns += row->traced_ns;
        double half = sqrt(e.variance[i]), least = (double)row->traced_ns, most = least + (double)untraced;
        row->seconds = (double)row->ns / HEC_NS_PER_S;
        row->seconds_low = fmax((double)row->ns - half - e.below[i], least) / HEC_NS_PER_S;
        row->seconds_high = fmin((double)row->ns + half + e.above[i], most) / HEC_NS_PER_S;
        row->step_seconds = out->steps ? (double)d->step_sum_ns[i] / (double)out->steps / HEC_NS_PER_S : NAN;
        row->joules = row->watts = row->watts_low = row->watts_high = row->step_joules = NAN;
    }
    hec_ledger_apportion(e.class_ns, HEC_KERNEL_CLASS_COUNT, shares[HEC_STATE_COMPUTE], class_shares);
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        struct hec_ledger_class *row = &out->classes[c];
        row->ns = row->traced_ns + class_shares[c];
        row->joules = row->watts = row->watts_low = row->watts_high = NAN;
    }
}

int hec_ledger_end(struct hec_ledger_builder *builder, struct hec_ledger *out) {
    memset(out, 0, sizeof *out);
    out->devices = calloc((size_t)builder->device_count + 1, sizeof *out->devices);
    int err = out->devices ? 0 : HEC_ERR_NOMEM;
    for (int i = 0; i < builder->device_count && !err; i++) {
        close_window(&builder->devices[i]);
        int device = builder->devices[i].device;
        bool stepped = device >= 0 && device < HEC_DEVICE_MAX && builder->stepped[device];
        finish(&builder->devices[i], stepped, &out->devices[out->device_count++]);
    }
    hec_ledger_abandon(builder);
    return err;
}

double hec_ledger_busy(const struct hec_ledger_device *device) {
    int64_t busy = 0, used = device->window_ns - device->rows[HEC_STATE_STARTUP].ns - device->rows[HEC_STATE_TAIL].ns;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        busy += hec_state_idle((enum hec_state)s) ? 0 : device->rows[s].ns;
    return used > 0 ? (double)busy / (double)used : 0;
}

double hec_ledger_work(const struct hec_ledger_device *device) {
    double seconds = 0;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        if (s != HEC_STATE_COMM && s != HEC_STATE_WAITING && s != HEC_STATE_PEERS && s != HEC_STATE_STARTUP &&
            s != HEC_STATE_TAIL && s != HEC_STATE_UNKNOWN)
            seconds += device->rows[s].seconds;
    return seconds;
}

double hec_ledger_shared(const struct hec_ledger_device *device) {
    return device->rows[HEC_STATE_COMM].seconds + device->rows[HEC_STATE_PEERS].seconds;
}

/* So much of a row, of what is not counted in whole numbers. */
static void scale(struct hec_ledger_row *row, double share) {
    row->seconds = (double)row->ns / HEC_NS_PER_S;
    row->joules = isfinite(row->joules) ? (double)row->mj / 1e3 : NAN;
    row->seconds_low *= share;
    row->seconds_high *= share;
    row->step_seconds *= share;
    row->step_joules *= share;
}

void hec_ledger_wait(struct hec_ledger_device *device, double seconds, bool likely) {
    struct hec_ledger_row *comm = &device->rows[HEC_STATE_COMM], *waiting = &device->rows[HEC_STATE_WAITING];
    double share = comm->ns > 0 ? fmin(seconds * HEC_NS_PER_S / (double)comm->ns, 1) : 0, most_s = comm->seconds_high;
    if (!(share > 0))
        return;
    *waiting = *comm;
    waiting->ns = llround(share * (double)comm->ns);
    waiting->traced_ns = llround(share * (double)comm->traced_ns);
    waiting->mj = llround(share * (double)comm->mj);
    comm->ns -= waiting->ns;
    comm->traced_ns -= waiting->traced_ns;
    comm->mj -= waiting->mj;
    scale(waiting, share);
    scale(comm, 1 - share);
    if (likely) {
        waiting->seconds_low = 0;
        comm->seconds_high = most_s;
    }
    device->waiting_likely = likely;
}

void hec_ledger_widen(struct hec_ledger *ledger, const struct hec_ledger *other) {
    for (int i = 0; i < ledger->device_count; i++)
        for (int k = 0; k < other->device_count; k++)
            for (int s = 0; s < HEC_STATE_COUNT && ledger->devices[i].device == other->devices[k].device; s++) {
                struct hec_ledger_row *row = &ledger->devices[i].rows[s];
                const struct hec_ledger_row *by = &other->devices[k].rows[s];
                row->seconds_low = fmin(row->seconds_low, by->seconds_low);
                row->seconds_high = fmax(row->seconds_high, by->seconds_high);
            }
}

HEC_NAME_OF(hec_ledger_basis_name, enum hec_ledger_basis, "measured", "glimpse", "calls", "unused")

void hec_ledger_free(struct hec_ledger *ledger) {
    free(ledger->devices);
    memset(ledger, 0, sizeof *ledger);
}
