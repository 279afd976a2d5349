#include "diagnose/timeline/align.h"

#include "base/list.h"
#include "diagnose/limits.h"

#include <stdlib.h>

#define BIN_NS INT64_C(50000) /* ends of one collective on two devices: 60 us apart at most, clocks set right */
#define BINS (2 * HEC_ALIGN_WITHIN_NS / BIN_NS + 1)
#define NEARLY 0.9

/* visit(to, apart_ns) for each pair within reach. */
static void each_pair(const int64_t *one, size_t one_count, const int64_t *other, size_t other_count, int64_t guess_ns,
                      void (*visit)(void *to, int64_t apart_ns), void *to) {
    size_t first = 0;
    for (size_t k = 0; k < other_count; k++) {
        int64_t t_ns = other[k] + guess_ns;
        while (first < one_count && one[first] < t_ns - HEC_ALIGN_WITHIN_NS)
            first++;
        for (size_t i = first; i < one_count && one[i] <= t_ns + HEC_ALIGN_WITHIN_NS; i++)
            visit(to, one[i] - t_ns);
    }
}

static void count_pair(void *to, int64_t apart_ns) {
    ((uint32_t *)to)[(apart_ns + HEC_ALIGN_WITHIN_NS) / BIN_NS]++;
}

struct near {
    int64_t from_ns, to_ns;
    int64_t *list;
    size_t count, most;
};

static void keep_near(void *to, int64_t apart_ns) {
    struct near *n = to;
    if (apart_ns >= n->from_ns && apart_ns < n->to_ns && n->count < n->most)
        n->list[n->count++] = apart_ns;
}

/* Two bins beside each other, for a shift near the edge of one. */
static uint32_t both(const uint32_t *bins, int64_t at) {
    return bins[at] + bins[at + 1];
}

static int64_t choose(const uint32_t *bins) {
    uint32_t most = 0;
    int64_t best = BINS / 2, middle = BINS / 2;
    for (int64_t at = 0; at + 1 < BINS; at++)
        most = both(bins, at) > most ? both(bins, at) : most;
    for (int64_t at = 0, off = INT64_MAX; at + 1 < BINS; at++)
        if (both(bins, at) >= NEARLY * most && llabs(at - middle) < off) {
            off = llabs(at - middle);
            best = at;
        }
    return best;
}

bool hec_align(const int64_t *one, size_t one_count, const int64_t *other, size_t other_count, int64_t guess_ns,
               struct hec_alignment *out) {
    *out = (struct hec_alignment){guess_ns, 0};
    one_count = one_count < HEC_ALIGN_MOST ? one_count : HEC_ALIGN_MOST;
    other_count = other_count < HEC_ALIGN_MOST ? other_count : HEC_ALIGN_MOST;
    size_t fewer = one_count < other_count ? one_count : other_count;
    if (fewer < HEC_COLLECTIVES_LEAST)
        return false;
    uint32_t *bins = calloc((size_t)BINS + 1, sizeof *bins);
    struct near near = {.list = malloc(2 * fewer * sizeof *near.list), .most = 2 * fewer};
    if (bins && near.list) {
        each_pair(one, one_count, other, other_count, guess_ns, count_pair, bins);
        near.from_ns = choose(bins) * BIN_NS - HEC_ALIGN_WITHIN_NS;
        near.to_ns = near.from_ns + 2 * BIN_NS;
        each_pair(one, one_count, other, other_count, guess_ns, keep_near, &near);
        qsort(near.list, near.count, sizeof *near.list, hec_by_int64);
    }
    bool fits = near.list && near.count >= HEC_COLLECTIVES_LEAST && 2 * near.count >= fewer;
    if (fits)
        *out = (struct hec_alignment){guess_ns + near.list[near.count / 2], (int64_t)near.count};
    free(bins);
    free(near.list);
    return fits;
}
