#include "diagnose/meter/windows.h"

#include "diagnose/physics.h"
#include "base/clock.h"

#include <math.h>

#define MINUTE_NS (60 * HEC_NS_PER_S)
#define SPAN_MOST                                                                                                      \
    3 /* a sample so many usual spacings after the one before follows a gap: what it covers is not known */
#define SLACK_SHARE 4 /* ends of a counter's window are known to at least this fraction of its length */
#define WINDOW_MOST_NS (2 * HEC_NS_PER_S)

struct windows {
    const struct hec_window_visitor *to;
    int64_t every, usual_ns, previous_ns;
    bool previous;
    struct edge {
        int64_t t_ns, slack_ns, mj;
        bool known;
    } edge;
    int err;
};

static bool counts(const struct windows *w, int64_t t_ns) {
    return w->every <= 1 || t_ns / MINUTE_NS % w->every == 0;
}

static void take_power(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct windows *w = context;
    int64_t span = t_ns - w->previous_ns;
    bool follows = w->previous && span > 0 && span <= SPAN_MOST * w->usual_ns;
    w->previous = valid;
    w->previous_ns = t_ns;
    span = 2 * span > 3 * w->usual_ns ? w->usual_ns : span; /* one before was lost */
    if (valid && follows && !w->err && counts(w, t_ns))
        w->err = w->to->power(w->to->context, t_ns, span, (double)value / 1e3);
}

/* A value became current within its slack before t. */
static void take_counter(void *context, const struct hec_counter_reading *reading) {
    int64_t t_ns = reading->t_ns, mj = reading->mj, slack_us = reading->slack_us;
    struct windows *w = context;
    if (w->err || slack_us < 0 || slack_us > WINDOW_MOST_NS / HEC_NS_PER_US || !counts(w, t_ns))
        return; /* where it lies is not known */
    struct edge now = {t_ns, slack_us * HEC_NS_PER_US, mj, true}, *from = &w->edge;
    int64_t start = from->t_ns - from->slack_ns / 2, end = now.t_ns - now.slack_ns / 2;
    if (from->known && now.mj < from->mj)
        from->known = false; /* reset */
    if (from->known && end - start > WINDOW_MOST_NS)
        from->known = false; /* the shares of a long one are all alike */
    if (from->known && SLACK_SHARE * (from->slack_ns + now.slack_ns) / 2 > end - start)
        return; /* wait for one that is far enough off */
    if (from->known) {
        double joules = (double)(now.mj - from->mj) / 1e3, watts = joules * HEC_NS_PER_S / (double)(end - start);
        double a = (double)from->slack_ns / HEC_NS_PER_S, b = (double)now.slack_ns / HEC_NS_PER_S;
        w->err = w->to->counter(w->to->context, start, end, joules, sqrt((a * a + b * b) / 12) * watts);
    }
    *from = now;
}

int hec_meter_windows(struct hec_meter *meter, const struct hec_device_summary *d, int64_t every,
                      const struct hec_window_visitor *visitor, struct hec_why *why) {
    double spacing_s = d->energy.sample_spacing_s;
    struct windows w = {.to = visitor, .every = every};
    w.usual_ns = spacing_s > 0 ? llround(spacing_s * HEC_NS_PER_S) : HEC_POWER_SAMPLE_NS;
    int err = 0;
    if (d->device.has_power_history > 0)
        err = hec_meter_read(meter, HEC_GPU_POWER, d->device.index, take_power, &w, why);
    if (!err)
        err = hec_meter_counter(meter, d->device.index, take_counter, &w, why);
    return err ? err : w.err;
}
