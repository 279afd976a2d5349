/* Calls by one of their times. Records come nearly in order, so most are ordered in windows, which stay in the processor's cache. While it
 * is ordered a call is 8 bytes, its time above its number. */
#include "diagnose/replay/parts.h"

#include <stdlib.h>
#include <string.h>

#define AT_BITS 24
#define TIME_BITS                                                                                                      \
    40 /* 18 minutes in ns; what is longer and cannot be ordered in windows is ordered to some ns, in the order of the \
          records within them */
#define RANGE_NS (UINT64_C(1) << TIME_BITS)
#define DIGIT 10
#define BUCKETS (1u << DIGIT)
#define WINDOW 32768u /* calls that are ordered at a time, */
#define OVERLAP 4096u /* and of those in the next one again: hosts are ahead of devices by some 1000 */

_Static_assert(HEC_SCHEDULE_CALLS_MAX <= 1u << AT_BITS, "the number of a call fits");

typedef bool (*hec_key)(const struct hec_schedule_call *call, int64_t *key);

static uint32_t at(uint64_t place) {
    return (uint32_t)(place & ((1u << AT_BITS) - 1));
}

/* By time, least digit first; those of one time stay as they are. other: as much room. */
static void sort(uint64_t *list, uint64_t *other, size_t count) {
    uint64_t least = UINT64_MAX, most = 0, *from = list, *to = other;
    bool ascending = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t t = list[i] >> AT_BITS;
        ascending = ascending && t >= most;
        least = t < least ? t : least;
        most = t > most ? t : most;
    }
    for (int shift = 0; !ascending && (most - least) >> shift; shift += DIGIT) {
        size_t first[BUCKETS] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            first[((from[i] >> AT_BITS) - least) >> shift & (BUCKETS - 1)]++;
        for (size_t b = 0; b < BUCKETS; b++) {
            size_t n = first[b];
            first[b] = sum;
            sum += n;
        }
        for (size_t i = 0; i < count; i++)
            to[first[((from[i] >> AT_BITS) - least) >> shift & (BUCKETS - 1)]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, count * sizeof *list);
}

/* False: it is too far from the first call. */
static bool place(int64_t first_ns, int64_t t_ns, size_t i, uint64_t *out) {
    uint64_t after_ns = (uint64_t)t_ns - (uint64_t)first_ns + RANGE_NS / 2;
    *out = after_ns << AT_BITS | i;
    return after_ns < RANGE_NS;
}

/* A window after the other; the last of each are ordered again with those that come next. False: that is not enough. room: for two. */
static bool order_near(const struct hec_schedule *s, hec_key key, uint32_t *list, size_t *count, uint64_t *room) {
    uint64_t last = 0;
    int64_t t_ns;
    size_t n = 0;
    bool good = true;
    *count = 0;
    for (size_t i = 0; i < s->count && good; i++) {
        if (key(&s->calls[i], &t_ns))
            good = place(s->calls[0].begin_ns, t_ns, i, &room[n++]);
        if (n < WINDOW && i + 1 < s->count)
            continue;
        size_t done = i + 1 < s->count ? WINDOW - OVERLAP : n;
        sort(room, room + WINDOW, n);
        good = good && (n == 0 || room[0] >= last);
        for (size_t k = 0; k < done; k++)
            list[(*count)++] = at(room[k]);
        last = done > 0 ? room[done - 1] : last;
        n -= done;
        memmove(room, room + done, n * sizeof *room);
    }
    return good;
}

/* All at once. */
static int order_far(const struct hec_schedule *s, hec_key key, uint32_t *list, size_t *count) {
    uint64_t *all = malloc(2 * (s->count + 1) * sizeof *all);
    int64_t least = INT64_MAX, most = INT64_MIN, t_ns;
    size_t n = 0;
    int shift = 0;
    if (!all)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < s->count; i++)
        if (key(&s->calls[i], &t_ns)) {
            least = t_ns < least ? t_ns : least;
            most = t_ns > most ? t_ns : most;
        }
    while (most > least && ((uint64_t)most - (uint64_t)least) >> shift >= RANGE_NS)
        shift++;
    for (size_t i = 0; i < s->count; i++)
        if (key(&s->calls[i], &t_ns))
            all[n++] = ((uint64_t)t_ns - (uint64_t)least) >> shift << AT_BITS | i;
    sort(all, all + n, n);
    for (size_t k = 0; k < n; k++)
        list[k] = at(all[k]);
    *count = n;
    free(all);
    return HEC_OK;
}

int hec_order_calls(const struct hec_schedule *s, hec_key key, uint32_t **list, size_t *count) {
    uint64_t *room = malloc((size_t)2 * WINDOW * sizeof *room);
    int err = HEC_ERR_NOMEM;
    *count = 0;
    *list = malloc((s->count + 1) * sizeof **list);
    if (room && *list)
        err = order_near(s, key, *list, count, room) ? HEC_OK : order_far(s, key, *list, count);
    free(room);
    return err;
}

bool hec_order_key_start(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->start_ns;
    return hec_call_launched(call);
}

bool hec_order_key_finish(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->finish_ns;
    return hec_call_launched(call);
}

/* ---- in place ---- */

static bool by_begin(const struct hec_schedule_call *call, int64_t *key) {
    *key = call->begin_ns;
    return true;
}

/* To the places of a list, which is used up: cycle by cycle. */
static void permute(struct hec_schedule_call *calls, uint32_t *list, size_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct hec_schedule_call first = calls[i];
        uint32_t to = i;
        for (uint32_t from = list[i]; from != i; from = list[to]) {
            calls[to] = calls[from];
            list[to] = to;
            to = from;
        }
        calls[to] = first;
        list[to] = to;
    }
}

/* False: that is not enough. */
static bool order_window(struct hec_schedule_call *calls, size_t count, uint64_t *room, uint32_t *list) {
    for (size_t i = 0; i < count; i++)
        if (!place(calls[0].begin_ns, calls[i].begin_ns, i, &room[i]))
            return false;
    sort(room, room + WINDOW, count);
    for (size_t i = 0; i < count; i++)
        list[i] = at(room[i]);
    permute(calls, list, count);
    return true;
}

int hec_order_by_begin(struct hec_schedule *s) {
    uint64_t *room = malloc((size_t)2 * WINDOW * sizeof *room);
    uint32_t *list = malloc(WINDOW * sizeof *list);
    bool good = room && list;
    int err = good ? HEC_OK : HEC_ERR_NOMEM;
    for (size_t from = 0; from < s->count && good; from += WINDOW - OVERLAP) {
        good = order_window(s->calls + from, s->count - from < WINDOW ? s->count - from : WINDOW, room, list);
        good = good && (from == 0 || s->calls[from - 1].begin_ns <= s->calls[from].begin_ns);
    }
    free(room);
    free(list);
    if (good || err)
        return err;
    size_t count;
    list = malloc((s->count + 1) * sizeof *list);
    err = list ? order_far(s, by_begin, list, &count) : HEC_ERR_NOMEM;
    if (!err)
        permute(s->calls, list, count);
    free(list);
    return err;
}
