#include "base/error.h"
#include "diagnose/states/device.h"

#include <stdlib.h>
#include <string.h>

struct hec_host_thread *hec_host_thread_new(void) {
    struct hec_host_thread *t = calloc(1, sizeof *t);
    if (t)
        t->at_ns = t->copied_ns = INT64_MIN;
    return t;
}

void hec_host_thread_free(struct hec_host_thread *t) {
    if (!t)
        return;
    free(t->segments);
    free(t->samples);
    free(t);
}

/* Room for one more; the oldest half goes when there are too many. Returns the list, NULL when there is no memory. */
static void *room(void *list, size_t size, size_t *count, size_t *capacity) {
    if (*count < *capacity)
        return list;
    if (list && *capacity >= HEC_HOST_KEPT) {
        size_t kept = *count / 2;
        memmove(list, (char *)list + (*count - kept) * size, kept * size);
        *count = kept;
        return list;
    }
    size_t grown_to = *capacity ? 2 * *capacity : 64;
    void *grown = realloc(list, grown_to * size);
    if (grown)
        *capacity = grown_to;
    return grown;
}

static int keep(struct hec_host_thread *t, int64_t start_ns, int64_t end_ns, enum hec_host_label label) {
    struct hec_host_segment *last = t->segment_count ? &t->segments[t->segment_count - 1] : NULL;
    if (last && last->label == label && last->end_ns == start_ns) {
        last->end_ns = end_ns;
        return 0;
    }
    struct hec_host_segment *list = room(t->segments, sizeof *list, &t->segment_count, &t->segment_capacity);
    if (!list)
        return HEC_ERR_NOMEM;
    t->segments = list;
    list[t->segment_count++] = (struct hec_host_segment){start_ns, end_ns, label};
    return 0;
}

int hec_host_keep(struct hec_host_thread *t, int64_t t_ns) {
    int err = 0;
    while (t->open && t->at_ns < t_ns && !err) {
        int first = __builtin_ctz(t->open);
        int64_t end = t->open_end_ns[first] < t_ns ? t->open_end_ns[first] : t_ns;
        if (end <= t->at_ns) {
            t->open &= t->open - 1;
            continue;
        }
        err = keep(t, t->at_ns, end, (enum hec_host_label)first);
        t->at_ns = end;
    }
    if (t->at_ns < t_ns)
        t->at_ns = t_ns;
    return err;
}

int hec_host_hold(struct hec_host_thread *t, enum hec_host_label label, int64_t start_ns, int64_t end_ns) {
    int err = hec_host_advance(t, start_ns);
    uint32_t bit = UINT32_C(1) << label;
    if (!(t->open & bit) || t->open_end_ns[label] < end_ns)
        t->open_end_ns[label] = end_ns;
    t->open |= bit;
    t->seen = true;
    return err;
}

/* Two samplers had the thread: in the program, where it gives up the interpreter's lock, and from outside, which is oftener there.
 * What stands for the same time counts once. */
static bool sampled_already(struct hec_host_thread *t, const struct hec_host_sample *s) {
    struct hec_host_sample *last = t->sample_count ? &t->samples[t->sample_count - 1] : NULL;
    if (!last || 2 * (s->t_ns - last->t_ns) >= (s->period_ns < last->period_ns ? s->period_ns : last->period_ns))
        return false;
    if (s->period_ns < last->period_ns)
        *last = *s;
    return true;
}

int hec_host_sampled(struct hec_host_thread *t, int64_t t_ns, int64_t period_ns, uint32_t frame) {
    struct hec_host_sample sample = {t_ns, period_ns, frame};
    t->seen = true;
    if (sampled_already(t, &sample))
        return 0;
    struct hec_host_sample *list = room(t->samples, sizeof *list, &t->sample_count, &t->sample_capacity);
    if (!list)
        return HEC_ERR_NOMEM;
    t->samples = list;
    list[t->sample_count++] = sample;
    return 0;
}

static void note_copy(struct hec_host_thread *t, const struct hec_host_launch *l) {
    if (l->wait && l->end_ns > t->copied_ns)
        t->copied_ns = l->end_ns;
}

void hec_host_launched(struct hec_host_thread *t, int64_t start_ns, int64_t end_ns, bool copy, uint8_t wait) {
    size_t at = t->launch_count;
    t->seen = true;
    while (at && t->launches[at - 1].start_ns > start_ns)
        at--;
    if (at && t->launches[at - 1].start_ns == start_ns) { /* the call, then what it launched */
        if (t->launches[at - 1].copy && copy) {
            t->launches[at - 1].wait = wait;
            note_copy(t, &t->launches[at - 1]);
        }
        return;
    }
    if (t->launch_count == 2 * HEC_HOST_LAUNCHES) {
        if (at < HEC_HOST_LAUNCHES)
            return;
        memmove(t->launches, t->launches + HEC_HOST_LAUNCHES, HEC_HOST_LAUNCHES * sizeof *t->launches);
        t->launch_count -= HEC_HOST_LAUNCHES;
        at -= HEC_HOST_LAUNCHES;
    }
    if (at < t->launch_count)
        memmove(&t->launches[at + 1], &t->launches[at], (t->launch_count - at) * sizeof *t->launches);
    t->launches[at] = (struct hec_host_launch){start_ns, end_ns < start_ns ? start_ns : end_ns, copy, wait};
    t->launch_count++;
    note_copy(t, &t->launches[at]);
}

/* The first index of [0, count) at which `later` is true, which it stays: from the end in leaps, then by halves. */
#define FIRST(count, later)                                                                                            \
    do {                                                                                                               \
        size_t high = (count), leap = 1, low;                                                                          \
        for (low = high; low > 0; leap *= 2) {                                                                         \
            size_t i = low - 1;                                                                                        \
            if (!(later))                                                                                              \
                break;                                                                                                 \
            high = i;                                                                                                  \
            low = i + 1 > leap ? i + 1 - leap : 0;                                                                     \
        }                                                                                                              \
        while (low < high) {                                                                                           \
            size_t i = low + (high - low) / 2;                                                                         \
            if (later)                                                                                                 \
                high = i;                                                                                              \
            else                                                                                                       \
                low = i + 1;                                                                                           \
        }                                                                                                              \
        return high;                                                                                                   \
    } while (0)

size_t hec_host_segment_search(const struct hec_host_thread *t, int64_t t_ns) {
    FIRST(t->segment_count, t->segments[i].end_ns > t_ns);
}

size_t hec_host_sample_search(const struct hec_host_thread *t, int64_t t_ns) {
    FIRST(t->sample_count, t->samples[i].t_ns >= t_ns);
}

size_t hec_host_launch_search(const struct hec_host_thread *t, int64_t t_ns) {
    FIRST(t->launch_count, t->launches[i].start_ns >= t_ns);
}
