/* Samples and activities of many threads, while the file is written and read. */
#include "store_activities.h"

#include <pthread.h>

struct worker {
    const struct hec_sink *sink;
    int number;
};

static void *work_samples(void *argument) {
    const struct worker *w = argument;
    const struct hec_sink *s = w->sink;
    for (int i = 0; i < 20000; i++) {
        s->sample(s->context, HEC_STEP_UNITS, w->number, i * 1000, i);
        s->sample(s->context, HEC_TREE_CPU, 0, i * 4000 + w->number * 1000, i);
        if (i % 100 == 0) {
            s->units(s->context, "step", 100);
            s->meta(s->context, "last", "x");
            s->event(s->context, HEC_EVENT_NOTE, -1, i, "note");
        }
    }
    return NULL;
}

static int count_units(void *context, const char *name, double count) {
    assert_string_equal(name, "step");
    *(double *)context = count;
    return 0;
}

TEST(samples_of_many_threads) {
    STORE_BEGIN("threads.hec", 0);
    pthread_t threads[4];
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){s, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work_samples, &workers[i]), 0);
    }
    for (int i = 0; i < 30; i++)
        assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    int64_t lost = -1;
    assert_int_equal(hec_writer_close(writer, &lost, &why), HEC_OK);
    struct hec_reader *reader = store_open(path);
    size_t kept = 0;
    for (int i = 0; i < 4; i++) {
        struct store_values v = store_series(reader, HEC_STEP_UNITS, i);
        kept += v.count;
    }
    struct store_values v = store_series(reader, HEC_TREE_CPU, 0);
    kept += v.count;
    for (size_t i = 1; i < v.count; i++)
        assert_true(v.t_ns[i] >= v.t_ns[i - 1]);
    /* samples, units, meta and events: what is not there was counted */
    if (lost == 0) {
        double units = 0;
        assert_int_equal(kept, 8 * 20000);
        assert_int_equal(hec_reader_units(reader, count_units, &units, NULL), 0);
        assert_true(units == 4 * 20000);
    } else {
        assert_true(kept <= 8 * 20000 && kept + (size_t)lost >= 8 * 20000);
    }
    hec_reader_close(reader);
}

static void *work_activities(void *argument) {
    const struct worker *w = argument;
    const struct hec_sink *s = w->sink;
    struct hec_track own = {.kind = HEC_TRACK_THREAD, .pid = 1, .rank = -1, .device = -1, .stream = w->number};
    struct hec_track shared = {.kind = HEC_TRACK_STREAM, .pid = 1, .rank = -1, .context = 1, .stream = 7};
    for (int i = 0; i < 4000; i++) {
        char text[32];
        snprintf(text, sizeof text, "name %d", i % 100);
        uint32_t name = s->trace_name(s->context, text);
        snprintf(shared.name, sizeof shared.name, "thread %d", w->number);
        uint32_t kernel = s->trace_kernel(s->context, &(struct hec_kernel){.name = name, .grid = {i % 10, 1, 1}});
        uint32_t frame = s->trace_frame(s->context, &(struct hec_frame){.file = name, .line = i % 50});
        struct hec_activity a[3] = {{.kind = HEC_ACTIVITY_KERNEL, .name = kernel},
                                    {.kind = HEC_ACTIVITY_STACK, .name = frame},
                                    {.kind = HEC_ACTIVITY_API, .name = name}};
        a[0].track = s->trace_track(s->context, &shared);
        a[1].track = a[2].track = s->trace_track(s->context, &own);
        for (int k = 0; k < 3; k++)
            a[k].start_ns = a[k].end_ns = i * 4000 + w->number * 1000;
        s->trace_activities(s->context, a, 3);
    }
    return NULL;
}

TEST(activities_of_many_threads) {
    STORE_BEGIN("threads.hec", 0);
    pthread_t threads[4];
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){s, i};
        assert_int_equal(pthread_create(&threads[i], NULL, work_activities, &workers[i]), 0);
    }
    for (int i = 0; i < 30; i++) {
        assert_int_equal(hec_writer_flush(writer, NULL), HEC_OK);
        if (i % 10 != 5)
            continue;
        /* whatever is committed refers to what is there */
        struct hec_reader *reader = store_open(path);
        int64_t values;
        if (store_read_all(reader, &values, &why) != HEC_OK)
            fail_msg("%s", why.text);
        hec_reader_close(reader);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    store_close(writer);
    struct hec_reader *reader = store_open(path);
    size_t count = 0;
    assert_int_equal(hec_reader_activities(reader, HEC_ACTIVITY_ALL, store_count, &count, NULL), 0);
    assert_int_equal(count, 4 * 4000 * 3);
    hec_reader_close(reader);
}
