#include "diagnose/meter/meter.h"

#include "base/clock.h"
#include "base/list.h"

#include <math.h>
#include <stdlib.h>

#define PLAUSIBLE_NS (INT64_C(1) << 60)
#define READING_BYTES 20 /* at most: two numbers of 64 bits, 7 in a byte */

void hec_meter_open(struct hec_meter *meter, const struct hec_summary_input *input, int64_t end_ns) {
    *meter = (struct hec_meter){.input = input, .end_ns = end_ns};
}

void hec_meter_close(struct hec_meter *meter) {
    for (size_t i = 0; i < meter->series_count; i++)
        free(meter->series[i].bytes);
    free(meter->series);
    *meter = (struct hec_meter){0};
}

/* ---- packed readings: what time and value are more than those before ---- */

static void put(struct hec_meter_series *s, uint64_t number) {
    for (; number >= 128; number >>= 7)
        s->bytes[s->size++] = (uint8_t)(number | 128);
    s->bytes[s->size++] = (uint8_t)number;
}

static uint64_t get(const uint8_t **at) {
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        number |= (uint64_t)(**at & 127) << shift;
        if (!(*(*at)++ & 128))
            return number;
    }
}

/* Small numbers of either sign are small. */
static uint64_t fold(int64_t number) {
    return (uint64_t)number << 1 ^ -(uint64_t)(number < 0);
}

static int64_t unfold(uint64_t number) {
    return (int64_t)(number >> 1 ^ (0 - (number & 1)));
}

static void keep(struct hec_meter_series *s, int64_t t_ns, int64_t value, bool valid) {
    put(s, fold((int64_t)((uint64_t)t_ns - (uint64_t)s->last_ns)) << 1 | valid);
    put(s, fold((int64_t)((uint64_t)value - (uint64_t)s->last)));
    s->last_ns = t_ns;
    s->last = value;
    s->readings++;
}

/* Where reading a series has come to. */
struct cursor {
    const uint8_t *at;
    size_t left;
    int64_t t_ns, value;
    bool valid;
};

static struct cursor begin_of(const struct hec_meter_series *s) {
    return (struct cursor){.at = s->bytes, .left = s->readings};
}

static bool next(struct cursor *c) {
    if (!c->left)
        return false;
    uint64_t word = get(&c->at);
    c->left--;
    c->t_ns += unfold(word >> 1);
    c->valid = word & 1;
    c->value = (int64_t)((uint64_t)c->value + (uint64_t)unfold(get(&c->at)));
    return true;
}

/* ---- the first reading of a series ---- */

static void widen(struct hec_range *range, int64_t t_ns, int64_t value) {
    if (!range->count) {
        range->first_ns = t_ns;
        range->first = range->maximum = value;
    }
    range->last_ns = t_ns;
    range->last = value;
    range->maximum = value > range->maximum ? value : range->maximum;
    range->count++;
}

struct feed {
    hec_reading_visitor visit; /* NULL: nobody waits for it */
    void *context;
    struct hec_meter_series *series; /* NULL: it is known already */
    size_t room;                     /* bytes; 0: it is not kept */
};

static void drop(struct feed *feed) {
    free(feed->series->bytes);
    feed->series->bytes = NULL;
    feed->series->size = feed->series->capacity = 0;
    feed->room = 0;
}

static void note(struct feed *feed, int64_t t_ns, int64_t value, bool valid) {
    struct hec_meter_series *s = feed->series;
    if (valid)
        widen(&s->range, t_ns, value);
    if (feed->room &&
        (s->size + READING_BYTES > feed->room || !hec_list_room(s->bytes, s->size + READING_BYTES, s->capacity, 1024)))
        drop(feed);
    if (feed->room)
        keep(s, t_ns, value, valid);
    else
        s->readings++;
}

static int take_readings(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    struct feed *feed = context;
    for (size_t i = 0; i < count; i++) {
        if (t_ns[i] <= -PLAUSIBLE_NS || t_ns[i] >= PLAUSIBLE_NS)
            continue;
        if (feed->series)
            note(feed, t_ns[i], value[i], valid[i] != 0);
        if (feed->visit)
            feed->visit(feed->context, t_ns[i], value[i], valid[i] != 0);
    }
    return 0;
}

static int read_input(const struct hec_meter *meter, enum hec_metric metric, int32_t subject, struct feed *feed,
                      struct hec_why *why) {
    const struct hec_summary_input *in = meter->input;
    int err = in->series ? in->series(in->context, metric, subject, take_readings, feed, why) : 0;
    return err == HEC_ERR_NOTFOUND || err > 0 ? 0 : err;
}

static struct hec_meter_series *known(const struct hec_meter *meter, enum hec_metric metric, int32_t subject) {
    for (size_t i = 0; i < meter->series_count; i++)
        if (meter->series[i].metric == metric && meter->series[i].subject == subject)
            return &meter->series[i];
    return NULL;
}

/* For the first time; visit may be NULL. */
static int read_first(struct hec_meter *meter, enum hec_metric metric, int32_t subject, hec_reading_visitor visit,
                      void *context, struct hec_why *why) {
    struct hec_meter_series series = {.metric = metric, .subject = subject};
    struct feed feed = {visit, context, &series, HEC_METER_KEPT_BYTES - meter->kept_bytes};
    int err = read_input(meter, metric, subject, &feed, why);
    if (!err && !hec_list_room(meter->series, meter->series_count, meter->series_capacity, 32))
        err = HEC_ERR_NOMEM;
    if (err) {
        free(series.bytes);
        return err;
    }
    uint8_t *fits = series.bytes ? realloc(series.bytes, series.size) : NULL;
    series.bytes = fits ? fits : series.bytes;
    meter->kept_bytes += series.size;
    meter->series[meter->series_count++] = series;
    return 0;
}

int hec_meter_read(struct hec_meter *meter, enum hec_metric metric, int32_t subject, hec_reading_visitor visit,
                   void *context, struct hec_why *why) {
    const struct hec_meter_series *s = known(meter, metric, subject);
    if (!s)
        return read_first(meter, metric, subject, visit, context, why);
    if (s->readings && !s->bytes)
        return read_input(meter, metric, subject, &(struct feed){.visit = visit, .context = context}, why);
    for (struct cursor c = begin_of(s); next(&c);)
        visit(context, c.t_ns, c.value, c.valid);
    return 0;
}

static void take_step(void *steps, int64_t t_ns, int64_t value, bool valid) {
    if (valid)
        hec_steps_add(steps, t_ns, (double)value);
}

int hec_meter_steps(struct hec_meter *meter, enum hec_metric metric, int32_t subject, hec_step_visitor visit,
                    void *context, double *usual_ns, struct hec_why *why) {
    struct hec_steps steps;
    hec_steps_init(&steps, hec_metric_info(metric)->kind, visit, context);
    int err = hec_meter_read(meter, metric, subject, take_step, &steps, why);
    if (!err)
        hec_steps_end(&steps, meter->end_ns);
    if (usual_ns)
        *usual_ns = steps.usual_ns;
    return err;
}

int hec_meter_range(struct hec_meter *meter, enum hec_metric metric, int32_t subject, struct hec_range *range,
                    struct hec_why *why) {
    int err = known(meter, metric, subject) ? 0 : read_first(meter, metric, subject, NULL, NULL, why);
    static const struct hec_range none;
    *range = none;
    if (!err)
        *range = known(meter, metric, subject)->range;
    return err;
}

/* ---- the energy counter ---- */

struct counting {
    hec_counter_visitor visit;
    void *context;
    struct cursor slack;
    bool more; /* the cursor stands on one */
};

static void take_counter(void *context, int64_t t_ns, int64_t mj, bool valid) {
    struct counting *c = context;
    if (!valid)
        return;
    while (c->more && c->slack.t_ns < t_ns)
        c->more = next(&c->slack);
    struct hec_counter_reading reading = {t_ns, mj, HEC_SLACK_UNKNOWN, HEC_SLACK_UNKNOWN};
    struct cursor at = c->slack;
    for (bool more = c->more; more && at.t_ns == t_ns; more = next(&at)) {
        if (!at.valid)
            continue;
        if (reading.slack_us == HEC_SLACK_UNKNOWN)
            reading.slack_us = reading.narrowest_us = at.value;
        if (at.value < reading.narrowest_us)
            reading.narrowest_us = at.value;
    }
    c->visit(c->context, &reading);
}

int hec_meter_counter(struct hec_meter *meter, int device, hec_counter_visitor visit, void *context,
                      struct hec_why *why) {
    struct hec_range range;
    struct hec_meter_series again = {0};
    int err = hec_meter_range(meter, HEC_GPU_ENERGY_SLACK, device, &range, why);
    const struct hec_meter_series *slacks = known(meter, HEC_GPU_ENERGY_SLACK, device);
    if (!err && slacks->readings && !slacks->bytes) { /* they go beside the counter */
        struct feed feed = {.series = &again, .room = SIZE_MAX};
        err = read_input(meter, HEC_GPU_ENERGY_SLACK, device, &feed, why);
        err = !err && again.readings && !again.bytes ? HEC_ERR_NOMEM : err;
        slacks = &again;
    }
    if (!err) {
        struct counting counting = {.visit = visit, .context = context, .slack = begin_of(slacks)};
        counting.more = next(&counting.slack);
        err = hec_meter_read(meter, HEC_GPU_ENERGY, device, take_counter, &counting, why);
    }
    free(again.bytes);
    return err;
}

void hec_running_counter(struct hec_running_joules *r, int64_t mj) {
    if (!r->counted || mj < r->last_mj) /* the first, or it began anew: what was is kept */
        r->first_mj = mj - (r->counted ? r->last_mj - r->first_mj : 0);
    r->counted = true;
    r->last_mj = mj;
}

void hec_running_power(struct hec_running_joules *r, int64_t t_ns, double watts) {
    if (r->last_power_ns && t_ns > r->last_power_ns)
        r->power_j += watts * (double)(t_ns - r->last_power_ns) / HEC_NS_PER_S;
    r->last_power_ns = t_ns;
}

double hec_running_joules(const struct hec_running_joules *r) {
    return r->counted ? (double)(r->last_mj - r->first_mj) * 1e-3 : r->last_power_ns ? r->power_j : NAN;
}
