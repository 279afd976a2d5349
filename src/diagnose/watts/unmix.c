#include "diagnose/watts/unmix.h"

#include "base/list.h"
#include "base/error.h"
#include "diagnose/watts/unmix_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COVERED 0.995 /* of a reading's window by pieces: less is no evidence */
#define STEP_NS                                                                                                        \
    INT64_C(                                                                                                           \
        500000000) /* a long piece goes on in such steps, so that readings are used while their time is in the ring */
/* Readings of more time are left out: more than of 10000 s and the ends of 167 minutes (diagnosis.c) is given by
 * damaged files only. */
#define RESOLVED_MAX_NS INT64_C(12000000000000)
/* Shares of a sample that differ less between delays: 0.1 ms of 20, or 2 W where classes differ by 500. */
#define SAME 0.005
/* Standard deviation of 100 ms of power that no sigma covers, of the power limit: a class itself varies by some per
 * cent. A window's sigma goes with its power; were that all, the part of a class that takes least would count most. */
#define WINDOW_FLOOR 0.01
#define WINDOW_FLOOR_W 3.0 /* where the limit is not known */
#define WINDOW_UNIT_S 0.1
#define FILTERED 2.6      /* samples: a sensor that averages longer is no filter of its own samples */
#define DELAY_OFF_NS 15e6 /* of a fitted delay from the calibrated one */
#define POWER_TIMING                                                                                                   \
    0.03 /* of HEC_TIMING_NS, squared: the mean delay of power samples is fitted, their single ones jitter */

int hec_unmix_begin(const struct hec_unmix_options *options, struct hec_unmix **out) {
    *out = NULL;
    if (options->classes < 1 || options->classes > HEC_UNMIX_CLASSES || options->counters < 0 ||
        options->counters > HEC_UNMIX_COUNTERS)
        return HEC_ERR_USAGE;
    struct hec_unmix *unmix = calloc(1, sizeof *unmix);
    if (!unmix)
        return HEC_ERR_NOMEM;
    unmix->options = *options;
    unmix->total_j = unmix->total_bound_j = NAN;
    unmix->ready_ns = INT64_MAX;
    unmix->block_ns = HEC_BLOCKS_FIRST_NS;
    int n = options->classes;
    int err = hec_unmix_shares_init(&unmix->shares, n);
    if (!err)
        err = hec_gram_init(&unmix->power, n + HEC_TAPS - 1 + 1);
    if (!err)
        err = hec_gram_init(&unmix->pure, n + 1);
    for (int i = 0; i < HEC_UNMIX_QUIETS && !err; i++)
        err = hec_gram_init(&unmix->quiet[i], n + 1);
    if (!err)
        err = hec_gram_init(&unmix->window, n + 1);
    if (!err && options->counters) {
        unmix->counter = calloc((size_t)options->counters, sizeof *unmix->counter);
        err = unmix->counter ? 0 : HEC_ERR_NOMEM;
        for (int i = 0; !err && i < options->counters; i++)
            err = hec_gram_init(&unmix->counter[i], n + 1);
    }
    unmix->power.classes = unmix->pure.classes = unmix->window.classes = n;
    for (int i = 0; i < HEC_UNMIX_QUIETS; i++)
        unmix->quiet[i].classes = n;
    for (int i = 0; !err && i < options->counters; i++)
        unmix->counter[i].classes = n;
    if (!err) {
        *out = unmix;
        return 0;
    }
    hec_unmix_free(unmix);
    return err;
}

void hec_unmix_free(struct hec_unmix *unmix) {
    if (!unmix)
        return;
    hec_unmix_shares_free(&unmix->shares);
    hec_gram_free(&unmix->power);
    hec_gram_free(&unmix->pure);
    for (int i = 0; i < HEC_UNMIX_QUIETS; i++)
        hec_gram_free(&unmix->quiet[i]);
    hec_gram_free(&unmix->window);
    for (int i = 0; unmix->counter && i < unmix->options.counters; i++)
        hec_gram_free(&unmix->counter[i]);
    free(unmix->counter);
    for (int kind = 0; kind < HEC_UNMIX_KINDS; kind++)
        free(unmix->queue[kind].items);
    free(unmix->held_z);
    free(unmix->held_y);
    free(unmix->held_covered);
    free(unmix->held_t);
    free(unmix->held_own);
    free(unmix);
}

static int block_of(struct hec_unmix *unmix, int64_t t_ns) {
    while ((t_ns - unmix->shares.origin_ns) / unmix->block_ns >= HEC_BLOCKS_MAX) {
        unmix->block_ns *= 2;
        hec_gram_halve(&unmix->power);
        hec_gram_halve(&unmix->pure);
        for (int i = 0; i < HEC_UNMIX_QUIETS; i++)
            hec_gram_halve(&unmix->quiet[i]);
        hec_gram_halve(&unmix->window);
        for (int i = 0; i < unmix->options.counters; i++)
            hec_gram_halve(&unmix->counter[i]);
    }
    return (int)((t_ns - unmix->shares.origin_ns) / unmix->block_ns);
}

/* Shares of each class over a window into out, as many as classes; false when pieces do not cover it. */
static bool shares_of(const struct hec_unmix *unmix, int64_t start_ns, int64_t end_ns, double *out) {
    double seconds[HEC_UNMIX_CLASSES + 1], span = (double)(end_ns - start_ns) * 1e-9;
    int n = unmix->options.classes;
    if (!hec_unmix_shares_between(&unmix->shares, start_ns, end_ns, seconds) || seconds[n] < COVERED * span)
        return false;
    for (int c = 0; c < n; c++)
        out[c] = seconds[c] / seconds[n];
    return true;
}

/* What an error of time would do to a reading, into gram. */
static void add_timing(const struct hec_unmix *unmix, struct hec_gram *gram, int64_t start_ns, int64_t end_ns,
                       double weight) {
    double from[HEC_UNMIX_CLASSES], to[HEC_UNMIX_CLASSES];
    if (shares_of(unmix, start_ns, start_ns + HEC_TIMING_NS, from) &&
        shares_of(unmix, end_ns - HEC_TIMING_NS, end_ns, to))
        hec_gram_time(gram, unmix->options.classes, from, to, weight, (double)(end_ns - start_ns) * 1e-9);
}

/* One sample of mixed classes; z: taps x classes of its window. */
static void add_power(struct hec_unmix *unmix, int64_t t_ns, double seconds, const double *z, double watts) {
    int n = unmix->options.classes, column = n;
    double row[HEC_UNMIX_CLASSES + HEC_TAPS] = {0}, tap[HEC_TAPS] = {0};
    for (int k = 0; k < HEC_TAPS; k++)
        for (int c = 0; c < n; c++) {
            row[c] += unmix->response.weight[k] * z[k * n + c];
            tap[k] += unmix->watts[c] * z[k * n + c];
        }
    for (int k = 0; k < HEC_TAPS; k++)
        if (k != unmix->reference)
            row[column++] = tap[k] - tap[unmix->reference];
    row[column] = watts;
    hec_gram_add(&unmix->power, block_of(unmix, t_ns), row, 1, seconds);
}

/* A sample that is the same for any response. True: it is of quiet classes, and done with. */
static bool use_pure(struct hec_unmix *unmix, int64_t t_ns, double seconds, const double *z, double watts) {
    double row[HEC_UNMIX_CLASSES + 1];
    int n = unmix->options.classes;
    struct hec_gram *gram = &unmix->pure;
    memcpy(row, z, (size_t)n * sizeof *z);
    row[n] = watts;
    for (int i = 0; i < HEC_UNMIX_QUIETS; i++) {
        double part = 0;
        for (int c = 0; c < n; c++)
            part += unmix->options.quiet[i] >> c & 1 ? z[c] : 0;
        if (part > 1 - SAME)
            gram = &unmix->quiet[i];
    }
    hec_gram_add(gram, block_of(unmix, t_ns), row, 1, seconds);
    for (int c = 0; c < n; c++)
        if (z[c] > 1 - SAME) {
            unmix->alone_s[c] += seconds;
            unmix->alone_j[c] += seconds * watts;
        }
    return gram != &unmix->pure;
}

static bool alike(const double *x, const double *y, int n) {
    for (int c = 0; c < n; c++)
        if (fabs(x[c] - y[c]) >= SAME)
            return false;
    return true;
}

/* z: taps x classes of the sensor's window; far: the same of the longest that it may have, NULL: it is that one, or all
 * that far is not known. */
static void take_power(struct hec_unmix *unmix, int64_t t_ns, double seconds, const double *z, const double *far,
                       double watts) {
    int n = unmix->options.classes;
    bool same = far != NULL;
    for (int k = 0; k < HEC_TAPS && same; k++)
        same = alike(z + k * n, z, n) && alike(far + k * n, z, n);
    unmix->used[HEC_UNMIX_POWER]++;
    if (!same || !use_pure(unmix, t_ns, seconds, z, watts))
        add_power(unmix, t_ns, seconds, z, watts);
}

/* Shares over the taps of a window; false when pieces do not cover it. */
static bool taps_of(const struct hec_unmix *unmix, int64_t t_ns, int64_t window_ns, double *z) {
    for (int k = 0; k < HEC_TAPS; k++) {
        int64_t end_ns = t_ns + HEC_TAP_FIRST_NS + k * HEC_TAP_NS;
        if (!shares_of(unmix, end_ns - window_ns, end_ns, z + k * unmix->options.classes))
            return false;
    }
    return true;
}

static int64_t window_of(const struct hec_unmix *unmix, int window, int64_t own_ns) {
    int64_t ns = unmix->options.sensor.window_ns;
    if (ns <= 0)
        return hec_response_window_ns(window, own_ns);
    return window ? -1 : (double)ns > FILTERED * (double)own_ns ? ns : own_ns; /* taps make a filter of some samples */
}

static bool held_taps(const struct hec_unmix *unmix, int i, int window, double *z) {
    size_t size = (size_t)(HEC_TAPS * unmix->options.classes);
    const float *from = unmix->held_z + ((size_t)i * HEC_WINDOWS + (size_t)window) * size;
    for (size_t k = 0; k < size; k++)
        z[k] = (double)from[k];
    return unmix->held_covered[i] >> window & 1;
}

static int fit_response(struct hec_unmix *unmix) {
    int n = unmix->options.classes, held = unmix->held;
    const struct hec_unmix_sensor *sensor = &unmix->options.sensor;
    struct hec_response_rows rows = {held, n, unmix->held_z, unmix->held_y, unmix->held_covered, 0};
    double *work = malloc(sizeof *work * (size_t)(HEC_TAPS + n) * (size_t)(held ? held : 1));
    if (!work)
        return HEC_ERR_NOMEM;
    if (held) {
        int64_t *sorted = (int64_t *)(void *)work;
        memcpy(sorted, unmix->held_own, (size_t)held * sizeof *sorted);
        qsort(sorted, (size_t)held, sizeof *sorted, hec_by_int64);
        rows.own_ns = sorted[held / 2];
    }
    rows.own_ns = window_of(unmix, 0, rows.own_ns);
    hec_response_fit(&rows, &unmix->response, unmix->watts, work);
    double delay_ns = (double)rows.own_ns / 2 - hec_response_lag_ns(unmix->response.weight);
    if (sensor->window_ns > 0 && fabs(delay_ns - (double)sensor->delay_ns) > DELAY_OFF_NS)
        unmix->response.distinct = 0; /* the steps themselves were taken for a delay */
    free(work);
    for (int k = 0; k < HEC_TAPS; k++)
        if (unmix->response.weight[k] > unmix->response.weight[unmix->reference])
            unmix->reference = k;
    unmix->fitted = true;
    unmix->held = 0;
    for (int i = 0; i < held; i++) {
        double z[HEC_TAPS * HEC_UNMIX_CLASSES], far[HEC_TAPS * HEC_UNMIX_CLASSES];
        double seconds = (double)unmix->held_own[i] * 1e-9;
        bool known = held_taps(unmix, i, unmix->response.reach, far);
        if (held_taps(unmix, i, unmix->response.window, z))
            take_power(unmix, unmix->held_t[i], seconds, z, known ? far : NULL, unmix->held_y[i]);
        else
            unmix->left[HEC_UNMIX_POWER]++;
    }
    return 0;
}

/* Until the response is known a sample waits, with its shares by any. */
static int hold(struct hec_unmix *unmix, const struct hec_unmix_reading *reading) {
    double z[HEC_TAPS * HEC_UNMIX_CLASSES], first[HEC_UNMIX_CLASSES];
    int64_t own_ns = reading->end_ns - reading->start_ns;
    size_t n = (size_t)unmix->options.classes, size = HEC_TAPS * n;
    bool pure = true;
    if (!unmix->held_z) {
        unmix->held_z = malloc(HEC_UNMIX_HELD * HEC_WINDOWS * size * sizeof *unmix->held_z);
        unmix->held_y = malloc(HEC_UNMIX_HELD * sizeof *unmix->held_y);
        unmix->held_covered = malloc(HEC_UNMIX_HELD * sizeof *unmix->held_covered);
        unmix->held_t = malloc(HEC_UNMIX_HELD * sizeof *unmix->held_t);
        unmix->held_own = malloc(HEC_UNMIX_HELD * sizeof *unmix->held_own);
    }
    if (!unmix->held_z || !unmix->held_y || !unmix->held_covered || !unmix->held_t || !unmix->held_own)
        return HEC_ERR_NOMEM;
    float *to = unmix->held_z + (size_t)unmix->held * HEC_WINDOWS * size;
    uint8_t covered = 0;
    for (int w = 0; w < HEC_WINDOWS; w++) {
        int64_t ns = window_of(unmix, w, own_ns);
        if (ns < 0)
            continue;
        bool known = taps_of(unmix, reading->end_ns, ns, z);
        pure = pure && known;
        if (!known)
            continue;
        covered |= (uint8_t)(1u << w);
        if (w == 0)
            memcpy(first, z, n * sizeof *first);
        for (size_t k = 0; k < HEC_TAPS && pure; k++)
            pure = alike(z + k * n, first, (int)n);
        for (size_t k = 0; k < size; k++)
            to[(size_t)w * size + k] = (float)z[k];
    }
    if (!(covered & 1)) {
        unmix->left[HEC_UNMIX_POWER]++;
        return 0;
    }
    add_timing(unmix, &unmix->power, reading->start_ns, reading->end_ns, POWER_TIMING);
    if (pure) { /* for any response */
        double row[HEC_UNMIX_CLASSES + HEC_TAPS] = {0}, seconds = (double)own_ns * 1e-9;
        memcpy(row, first, n * sizeof *row);
        row[n + HEC_TAPS - 1] = reading->value;
        unmix->used[HEC_UNMIX_POWER]++;
        if (!use_pure(unmix, reading->end_ns, seconds, first, reading->value))
            hec_gram_add(&unmix->power, block_of(unmix, reading->end_ns), row, 1, seconds);
        return 0;
    }
    unmix->held_covered[unmix->held] = covered;
    unmix->held_y[unmix->held] = reading->value;
    unmix->held_own[unmix->held] = own_ns;
    unmix->held_t[unmix->held++] = reading->end_ns;
    return unmix->held == HEC_UNMIX_HELD ? fit_response(unmix) : 0;
}

static int use_power(struct hec_unmix *unmix, const struct hec_unmix_reading *reading) {
    double z[HEC_TAPS * HEC_UNMIX_CLASSES], far[HEC_TAPS * HEC_UNMIX_CLASSES];
    int64_t own_ns = reading->end_ns - reading->start_ns, t_ns = reading->end_ns;
    if (!unmix->fitted)
        return hold(unmix, reading);
    int64_t ns = window_of(unmix, unmix->response.window, own_ns),
            far_ns = window_of(unmix, unmix->response.reach, own_ns);
    ns = ns < 0 ? own_ns : ns;
    if (!taps_of(unmix, t_ns, ns, z)) {
        unmix->left[HEC_UNMIX_POWER]++;
        return 0;
    }
    int64_t shift_ns = HEC_TAP_FIRST_NS + unmix->reference * HEC_TAP_NS;
    add_timing(unmix, &unmix->power, t_ns - ns + shift_ns, t_ns + shift_ns, POWER_TIMING);
    bool known = taps_of(unmix, t_ns, far_ns < 0 ? own_ns : far_ns, far);
    take_power(unmix, t_ns, (double)own_ns * 1e-9, z, known ? far : NULL, reading->value);
    return 0;
}

static void use_window(struct hec_unmix *unmix, enum hec_unmix_kind kind, const struct hec_unmix_reading *reading) {
    double row[HEC_UNMIX_CLASSES + 1], seconds = (double)(reading->end_ns - reading->start_ns) * 1e-9;
    if (!shares_of(unmix, reading->start_ns, reading->end_ns, row)) {
        unmix->left[kind]++;
        return;
    }
    unmix->used[kind]++;
    row[unmix->options.classes] = reading->value;
    double limit = unmix->options.limit_w, floor = limit > 0 ? WINDOW_FLOOR * limit : WINDOW_FLOOR_W;
    double floor2 = floor * floor, sigma2 = (double)reading->sigma * (double)reading->sigma;
    double weight =
        kind == HEC_UNMIX_WINDOW ? floor2 / (floor2 * WINDOW_UNIT_S / seconds + sigma2) : seconds / WINDOW_UNIT_S;
    struct hec_gram *gram = kind == HEC_UNMIX_WINDOW ? &unmix->window : &unmix->counter[reading->counter];
    gram->reading2 += weight * sigma2;
    /* of each end, in HEC_TIMING_NS: the reading's own error is one of time */
    double ends =
        reading->value > 0 ? (double)reading->sigma / reading->value * seconds / sqrt(2) * 1e9 / HEC_TIMING_NS : 0;
    add_timing(unmix, gram, reading->start_ns, reading->end_ns, weight * (1 + ends * ends));
    hec_gram_add(gram, block_of(unmix, reading->end_ns), row, weight, seconds);
}

/* How far the pieces must have gone before a reading can be used. */
static int64_t ready_at(enum hec_unmix_kind kind, const struct hec_unmix_reading *reading) {
    return reading->end_ns + (kind == HEC_UNMIX_POWER ? -HEC_TAP_FIRST_NS : 0);
}

static int use_ready(struct hec_unmix *unmix) {
    unmix->ready_ns = INT64_MAX;
    for (int kind = 0; kind < HEC_UNMIX_KINDS; kind++) {
        struct hec_unmix_queue *queue = &unmix->queue[kind];
        while (queue->first < queue->count) {
            const struct hec_unmix_reading *reading = &queue->items[queue->first];
            int64_t at_ns = ready_at((enum hec_unmix_kind)kind, reading);
            if (at_ns > unmix->shares.now_ns) {
                unmix->ready_ns = at_ns < unmix->ready_ns ? at_ns : unmix->ready_ns;
                break;
            }
            queue->first++;
            if (kind != HEC_UNMIX_POWER)
                use_window(unmix, (enum hec_unmix_kind)kind, reading);
            else if (use_power(unmix, reading))
                return HEC_ERR_NOMEM;
        }
    }
    return 0;
}

/* Up to where no reading begins that can still be used. A damaged file may say decades. */
static int64_t quiet_until(const struct hec_unmix *unmix, int64_t to_ns) {
    if (unmix->resolved_ns > RESOLVED_MAX_NS)
        return to_ns;
    int64_t next_ns = unmix->options.readings_first || unmix->ready_ns < to_ns ? unmix->ready_ns : to_ns;
    int64_t begins_ns = next_ns - HEC_SHARES_BINS * HEC_SHARES_BIN_NS;
    return begins_ns < to_ns ? begins_ns : to_ns;
}

static int advance(struct hec_unmix *unmix, int class, int64_t to_ns) {
    int err = 0;
    while (!err && unmix->shares.now_ns < to_ns) {
        hec_unmix_shares_skip(&unmix->shares, class, quiet_until(unmix, to_ns));
        int64_t step_ns = to_ns - unmix->shares.now_ns < STEP_NS ? to_ns : unmix->shares.now_ns + STEP_NS;
        unmix->resolved_ns += step_ns - unmix->shares.now_ns;
        hec_unmix_shares_advance(&unmix->shares, class, step_ns);
        if (step_ns >= unmix->ready_ns)
            err = use_ready(unmix);
    }
    return err;
}

int hec_unmix_advance(struct hec_unmix *unmix, int class, int64_t start_ns, int64_t end_ns) {
    int err = 0;
    if (!unmix->shares.begun && start_ns < end_ns) {
        hec_unmix_shares_begin(&unmix->shares, start_ns);
        err = use_ready(unmix); /* those from before */
    }
    if (!err && start_ns > unmix->shares.now_ns)
        err = advance(unmix, -1, start_ns);
    return err ? err : advance(unmix, class, end_ns);
}

int hec_unmix_extra(struct hec_unmix *unmix, int class, double seconds) {
    if (class < 0 || class >= unmix->options.classes || !(seconds >= 0) || !isfinite(seconds))
        return HEC_ERR_USAGE;
    unmix->extra_s[class] += seconds;
    return 0;
}

static int push(struct hec_unmix *unmix, enum hec_unmix_kind kind, struct hec_unmix_reading reading) {
    struct hec_unmix_queue *queue = &unmix->queue[kind];
    if (!isfinite(reading.value) || reading.start_ns >= reading.end_ns)
        return 0;
    if (reading.end_ns - reading.start_ns > HEC_SHARES_BACK_NS - STEP_NS - 2 * -HEC_TAP_FIRST_NS ||
        (queue->count > queue->first && reading.end_ns < queue->items[queue->count - 1].end_ns)) {
        unmix->left[kind]++;
        return 0;
    }
    if (queue->count == queue->capacity && queue->first >= queue->capacity / 2 && queue->first) {
        queue->count -= queue->first;
        memmove(queue->items, queue->items + queue->first, (size_t)queue->count * sizeof *queue->items);
        queue->first = 0;
    }
    if (queue->count == queue->capacity) {
        int64_t capacity = queue->capacity ? 2 * queue->capacity : 256;
        struct hec_unmix_reading *items = realloc(queue->items, (size_t)capacity * sizeof *items);
        if (!items)
            return HEC_ERR_NOMEM;
        queue->items = items;
        queue->capacity = capacity;
    }
    queue->items[queue->count++] = reading;
    int64_t at_ns = ready_at(kind, &reading);
    unmix->ready_ns = at_ns < unmix->ready_ns ? at_ns : unmix->ready_ns;
    return unmix->shares.begun && at_ns <= unmix->shares.now_ns ? use_ready(unmix) : 0;
}

int hec_unmix_power(struct hec_unmix *unmix, int64_t t_ns, int64_t span_ns, double watts) {
    return push(unmix, HEC_UNMIX_POWER, (struct hec_unmix_reading){t_ns - span_ns, t_ns, watts, 0, 0});
}

int hec_unmix_window(struct hec_unmix *unmix, int64_t start_ns, int64_t end_ns, double joules, double sigma_j) {
    double seconds = (double)(end_ns - start_ns) * 1e-9;
    return push(unmix, HEC_UNMIX_WINDOW,
                (struct hec_unmix_reading){start_ns, end_ns, joules / seconds,
                                           (float)(isfinite(sigma_j) ? sigma_j / seconds : 0), 0});
}

int hec_unmix_counter(struct hec_unmix *unmix, int counter, int64_t start_ns, int64_t end_ns, double share) {
    if (counter < 0 || counter >= unmix->options.counters)
        return HEC_ERR_USAGE;
    return push(unmix, HEC_UNMIX_COUNTER, (struct hec_unmix_reading){start_ns, end_ns, share, 0, counter});
}

int hec_unmix_believe(struct hec_unmix *unmix, int class, const struct hec_unmix_belief *belief) {
    if (class < 0 || class >= unmix->options.classes || !(belief->watts >= 0) || !isfinite(belief->watts) ||
        !(belief->sd > 0) || !isfinite(belief->sd) || !isfinite(belief->factor) || !(belief->floor >= 0) ||
        !isfinite(belief->floor))
        return HEC_ERR_USAGE;
    unmix->belief[class] = *belief;
    return 0;
}

void hec_unmix_level(struct hec_unmix *unmix, double sd) {
    unmix->level_sd = sd;
}

void hec_unmix_repeats(struct hec_unmix *unmix, double part) {
    unmix->repeats = part;
}

int hec_unmix_alone(struct hec_unmix *unmix, int class, double *watts, double *seconds) {
    if (class < 0 || class >= unmix->options.classes)
        return HEC_ERR_USAGE;
    int err = hec_unmix_settle(unmix);
    *seconds = unmix->alone_s[class];
    *watts = *seconds > 0 ? unmix->alone_j[class] / *seconds : NAN;
    return err;
}

int hec_unmix_reach(struct hec_unmix *unmix, int64_t *reach_ns) {
    int err = hec_unmix_settle(unmix);
    int64_t known_ns = unmix->options.sensor.window_ns;
    *reach_ns = known_ns > 0 ? known_ns : hec_response_windows_ns[unmix->response.reach];
    return err;
}

void hec_unmix_total(struct hec_unmix *unmix, double joules, double bound_j) {
    unmix->total_j = joules;
    unmix->total_bound_j = bound_j;
}

int hec_unmix_settle(struct hec_unmix *unmix) {
    int err = unmix->shares.begun ? use_ready(unmix) : 0;
    return err || unmix->fitted ? err : fit_response(unmix);
}
