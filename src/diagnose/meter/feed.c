#include "diagnose/meter/feed.h"

#define PLAUSIBLE_NS (INT64_C(1) << 60)

struct feed {
    hec_reading_visitor visit;
    void *context;
};

static int pass_chunk(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    const struct feed *feed = context;
    for (size_t i = 0; i < count; i++)
        if (t_ns[i] > -PLAUSIBLE_NS && t_ns[i] < PLAUSIBLE_NS)
            feed->visit(feed->context, t_ns[i], value[i], valid[i] != 0);
    return 0;
}

int hec_feed(const struct hec_summary_input *input, enum hec_metric metric, int32_t subject, hec_reading_visitor visit,
             void *context, struct hec_why *why) {
    struct feed feed = {visit, context};
    int err = input->series ? input->series(input->context, metric, subject, pass_chunk, &feed, why) : 0;
    return err == HEC_ERR_NOTFOUND || err > 0 ? 0 : err;
}

static void widen(void *context, int64_t t_ns, int64_t value, bool valid) {
    struct hec_range *range = context;
    if (!valid)
        return;
    if (!range->count) {
        range->first_ns = t_ns;
        range->first = range->maximum = value;
    }
    range->last_ns = t_ns;
    range->last = value;
    range->maximum = value > range->maximum ? value : range->maximum;
    range->count++;
}

int hec_feed_range(const struct hec_summary_input *input, enum hec_metric metric, int32_t subject,
                   struct hec_range *range, struct hec_why *why) {
    *range = (struct hec_range){0};
    return hec_feed(input, metric, subject, widen, range, why);
}
