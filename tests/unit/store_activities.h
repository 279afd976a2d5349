/* Random activities of every kind, and what a reader must make of them. */
#pragma once

#include "store_file.h"

#include <math.h>

static uint64_t store_random_state = 88172645463325252u;

static inline uint64_t store_random(uint64_t below) { /* xorshift64 (Marsaglia 2003): the same every time */
    store_random_state ^= store_random_state << 13;
    store_random_state ^= store_random_state >> 7;
    store_random_state ^= store_random_state << 17;
    return store_random_state % below;
}

struct store_list {
    struct hec_activity *all;
    size_t count, capacity;
};

static inline void store_list_add(struct store_list *list, const struct hec_activity *activities, size_t count) {
    if (list->count + count > list->capacity) {
        list->capacity = 2 * (list->count + count);
        list->all = realloc(list->all, list->capacity * sizeof *list->all);
        assert_non_null(list->all);
    }
    memcpy(list->all + list->count, activities, count * sizeof *activities);
    list->count += count;
}

static inline void store_list_free(struct store_list *list) {
    free(list->all);
    memset(list, 0, sizeof *list);
}

static inline int store_list_collect(void *context, const struct hec_activity *activities, size_t count) {
    assert_true(count >= 1 && count <= 4096);
    store_list_add(context, activities, count);
    return 0;
}

static inline int store_list_order(const void *a, const void *b) {
    const struct hec_activity *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return memcmp(x, y, sizeof *x);
}

/* The reader's list is in order of start, and holds exactly the wanted ones. */
static inline void store_list_check(struct hec_reader *reader, const struct store_list *wanted, uint32_t kinds) {
    struct store_list got = {0}, expected = {0};
    struct hec_why why = {""};
    if (hec_reader_activities(reader, kinds, store_list_collect, &got, &why) != HEC_OK)
        fail_msg("%s", why.text);
    for (size_t i = 1; i < got.count; i++)
        assert_true(got.all[i].start_ns >= got.all[i - 1].start_ns);
    for (size_t i = 0; i < wanted->count; i++)
        if (kinds & HEC_ACTIVITY_BIT(wanted->all[i].kind))
            store_list_add(&expected, &wanted->all[i], 1);
    assert_int_equal(got.count, expected.count);
    if (got.count > 0) {
        qsort(got.all, got.count, sizeof *got.all, store_list_order);
        qsort(expected.all, expected.count, sizeof *expected.all, store_list_order);
        for (size_t i = 0; i < got.count; i++)
            assert_memory_equal(&got.all[i], &expected.all[i], sizeof got.all[i]);
    }
    store_list_free(&got);
    store_list_free(&expected);
}

static inline void store_list_check_file(const char *path, const struct store_list *wanted) {
    struct hec_reader *reader = store_open(path);
    store_list_check(reader, wanted, HEC_ACTIVITY_ALL);
    hec_reader_close(reader);
}

static inline int store_count(void *context, const struct hec_activity *activities, size_t count) {
    (void)activities;
    *(size_t *)context += count;
    return 0;
}

static inline int store_stop_at_once(void *context, const struct hec_activity *activities, size_t count) {
    (void)activities, (void)count;
    ++*(int *)context;
    return 42;
}

#define STORE_TRACKS 7
#define STORE_NAMES 40

/* Names, tracks, kernels and frames for store_random_activity: ids 1 to STORE_NAMES, and so on. */
static inline void store_define(const struct hec_sink *s) {
    for (uint32_t i = 1; i <= STORE_NAMES; i++) {
        char text[32];
        snprintf(text, sizeof text, "name %u", i);
        assert_int_equal(s->trace_name(s->context, text), i);
        struct hec_kernel kernel = {.name = i, .grid = {i, 1, 1}, .block = {128, 1, 1}, .registers = 32};
        assert_int_equal(s->trace_kernel(s->context, &kernel), i);
        struct hec_frame frame = {.parent = i / 2, .file = i, .function = 1, .line = (int32_t)i};
        assert_int_equal(s->trace_frame(s->context, &frame), i);
    }
    for (uint32_t i = 1; i <= STORE_TRACKS; i++) {
        struct hec_track track = {.kind = (enum hec_track_kind)(i % 3), .pid = 100, .rank = -1, .device = -1};
        track.stream = i;
        assert_int_equal(s->trace_track(s->context, &track), i);
    }
}

/* Times from origin_ns on, some far away; now and then everything at its limits. */
static inline struct hec_activity store_random_activity(int64_t origin_ns, int64_t t_ns) {
    struct hec_activity a = {.kind = (uint8_t)store_random(HEC_ACTIVITY_KIND_COUNT)};
    a.track = 1 + (uint32_t)store_random(STORE_TRACKS);
    a.name = (uint32_t)store_random(STORE_NAMES + 1);
    a.start_ns = origin_ns + t_ns;
    a.end_ns = a.start_ns + (int64_t)store_random(3) * (int64_t)store_random(20000);
    a.detail = (uint8_t)store_random(store_random(8) ? 2 : 256);
    a.flags = (uint8_t)store_random(4);
    static const double amounts[] = {0, 4096, 1e300, -0.0, 0.1, -5, 9007199254740992.0};
    a.amount = amounts[store_random(sizeof amounts / sizeof amounts[0])];
    if (store_random(10) == 0)
        a.amount = (double)NAN;
    if (store_random(1000) == 0)
        a.end_ns = (INT64_C(1) << 59) - 1;
    if (a.kind == HEC_ACTIVITY_SYNC || a.kind == HEC_ACTIVITY_API || a.kind == HEC_ACTIVITY_BURST)
        a.device = (uint8_t)store_random(store_random(8) ? 3 : 256);
    if (a.kind == HEC_ACTIVITY_API || a.kind == HEC_ACTIVITY_BURST) { /* of a burst they are shares */
        a.from = (uint8_t)store_random(256);
        a.to = (uint8_t)store_random(256);
    }
    if (!(HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a.kind)))
        return a;
    a.launch_ns = a.launch_end_ns = HEC_TIME_UNKNOWN;
    a.from = (uint8_t)store_random(HEC_MEMORY_KIND_COUNT);
    a.to = (uint8_t)store_random(HEC_MEMORY_KIND_COUNT);
    if (store_random(4) == 0)
        return a;
    a.launch_track = (uint32_t)store_random(STORE_TRACKS + 1);
    a.launch_ns = a.start_ns - (int64_t)store_random(100000);
    if (store_random(4) == 0)
        return a;
    a.launch_end_ns = a.launch_ns + (int64_t)store_random(5000);
    return a;
}

/* As the reader gives it. */
static inline struct hec_activity store_relative(struct hec_activity a, int64_t origin_ns) {
    a.start_ns -= origin_ns;
    a.end_ns -= origin_ns;
    if (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a.kind)) {
        a.launch_ns -= a.launch_ns == HEC_TIME_UNKNOWN ? 0 : origin_ns;
        a.launch_end_ns -= a.launch_end_ns == HEC_TIME_UNKNOWN ? 0 : origin_ns;
    }
    return a;
}

/* Into the file and into the list. */
static inline void store_put(const struct hec_sink *s, struct store_list *list, struct hec_activity a,
                             int64_t origin_ns) {
    s->trace_activities(s->context, &a, 1);
    a = store_relative(a, origin_ns);
    store_list_add(list, &a, 1);
}

/* The file is closed, and has what is in the list. */
static inline void store_finish(struct hec_writer *writer, const char *path, struct store_list *list) {
    store_close(writer);
    store_list_check_file(path, list);
    store_list_free(list);
}
