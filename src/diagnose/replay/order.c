/* Calls by one of their times. A place in the order is 8 bytes, the time above the number of the call: of ten millions the least memory
 * that still sorts in linear time. */
#include "diagnose/replay/parts.h"

#include <stdlib.h>
#include <string.h>

#define AT_BITS 24
#define TIME_BITS                                                                                                      \
    40 /* 18 minutes in ns; a longer stretch is ordered to some ns, in the order of the records within them */
#define DIGIT 10
#define BUCKETS (1u << DIGIT)

_Static_assert(HEC_SCHEDULE_CALLS_MAX <= 1u << AT_BITS, "the number of a call fits");

uint32_t hec_order_at(uint64_t place) {
    return (uint32_t)(place & ((1u << AT_BITS) - 1));
}

/* Least digit first; the numbers of the calls ascend already. */
static int sort(uint64_t *list, size_t count, int bits) {
    uint64_t *other = malloc((count + 1) * sizeof *other), *from = list, *to = other;
    if (!other)
        return HEC_ERR_NOMEM;
    for (int shift = AT_BITS; shift < AT_BITS + bits; shift += DIGIT) {
        size_t first[BUCKETS] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            first[from[i] >> shift & (BUCKETS - 1)]++;
        for (size_t b = 0; b < BUCKETS; b++) {
            size_t n = first[b];
            first[b] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            to[first[from[i] >> shift & (BUCKETS - 1)]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, count * sizeof *list);
    free(other);
    return HEC_OK;
}

/* Of a stretch that is longer than the bits hold. */
static void put_shifted(const struct hec_schedule *s, bool (*key)(const struct hec_schedule_call *call, int64_t *key),
                        int64_t least_ns, int shift, uint64_t *list) {
    int64_t t_ns;
    for (size_t i = 0; i < s->count; i++)
        if (key(&s->calls[i], &t_ns))
            *list++ = ((uint64_t)t_ns - (uint64_t)least_ns) >> shift << AT_BITS | i;
}

/* The calls are read once where the bits hold their times as they are: most of the cost is their memory. */
int hec_order_calls(const struct hec_schedule *s, bool (*key)(const struct hec_schedule_call *call, int64_t *key),
                    uint64_t **list, size_t *count) {
    const int64_t range_ns = INT64_C(1) << TIME_BITS, from_ns = s->count ? s->calls[0].begin_ns - range_ns / 2 : 0;
    uint64_t *all = malloc((s->count + 1) * sizeof *all);
    int64_t least = INT64_MAX, most = INT64_MIN, t_ns;
    int bits = 0, shift;
    size_t n = 0;
    bool sorted = true;
    *list = all;
    *count = 0;
    if (!all)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < s->count; i++)
        if (key(&s->calls[i], &t_ns)) {
            all[n++] = ((uint64_t)t_ns - (uint64_t)from_ns) << AT_BITS | i;
            sorted = sorted && t_ns >= most;
            least = t_ns < least ? t_ns : least;
            most = t_ns > most ? t_ns : most;
        }
    *count = n;
    while (bits < 64 && n && ((uint64_t)most - (uint64_t)least) >> bits)
        bits++;
    shift = bits > TIME_BITS ? bits - TIME_BITS : 0;
    if (n > 0 && (least < from_ns || most - from_ns >= range_ns))
        put_shifted(s, key, least, shift, all);
    else
        for (size_t i = 0; i < n; i++)
            all[i] -= ((uint64_t)least - (uint64_t)from_ns) << AT_BITS;
    return sorted ? HEC_OK : sort(all, n, bits - shift);
}

static bool by_begin(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->begin_ns;
    return true;
}

bool hec_order_key_start(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->start_ns;
    return hec_call_launched(call);
}

/* In place, cycle by cycle. */
int hec_order_by_begin(struct hec_schedule *s) {
    uint64_t *list;
    size_t count;
    int err = hec_order_calls(s, by_begin, &list, &count);
    for (size_t i = 0; i < count && !err; i++) {
        struct hec_schedule_call first = s->calls[i];
        size_t to = i, from = hec_order_at(list[i]);
        for (; from != i; from = hec_order_at(list[to])) {
            s->calls[to] = s->calls[from];
            list[to] = to;
            to = from;
        }
        s->calls[to] = first;
        list[to] = to;
    }
    free(list);
    return err;
}
