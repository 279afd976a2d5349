/* Single cases of what calls say of a device: threads, events, frees, processes whose calls were not timed. */
#include "diagnose/states/inferred/inferred.h"
#include "fake_timeline.h"
#include "unit.h"

#include <math.h>

#define US INT64_C(1000)

static struct fake_timeline t;
static uint32_t process, one, other;
static char text[4096];

static int setup(void **state) {
    (void)state;
    fake_tl_init(&t);
    t.input.device_count = 1;
    t.input.end_ns = 10000 * US;
    process = fake_tl_track(&t, HEC_TRACK_PROCESS, 7, -1, 0);
    one = fake_tl_track(&t, HEC_TRACK_THREAD, 7, -1, 7);
    other = fake_tl_track(&t, HEC_TRACK_THREAD, 7, -1, 8);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fake_tl_free(&t);
    return 0;
}

static void burst(uint32_t thread, int64_t from, int64_t to, int count) {
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_BURST, thread, from * US, to * US);
    a->amount = count;
    a->to = 255;
    a->device = 1;
}

static void wait_for(uint32_t thread, enum hec_sync_type type, int64_t from, int64_t to) {
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_SYNC, thread, from * US, to * US);
    a->detail = (uint8_t)type;
    a->device = 1;
}

/* A burst of 20 launches, which the device is done with 5 us before the wait for it returns. */
static void work(int64_t from, enum hec_sync_type type, int64_t to) {
    burst(one, from, from + 100, 20);
    wait_for(one, type, from + 100, to);
}

static struct hec_activity *call(uint32_t thread, enum hec_api_class class, const char *name, int64_t from,
                                 int64_t to) {
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_API, thread, from * US, to * US);
    a->detail = (uint8_t) class;
    a->name = fake_tl_name(&t, name);
    a->device = 1;
    return a;
}

static int report(void *context, int device, const struct hec_state_piece *p) {
    size_t at = strlen(text);
    (void)context;
    (void)device;
    snprintf(text + at, sizeof text - at, "%s%s %.0f-%.0f", at ? ", " : "", hec_state_name(p->state),
             (double)p->start_ns / 1e3, (double)p->end_ns / 1e3);
    return 0;
}

/* Pieces from the first launch to the last call. */
static const char *reported(enum hec_inferred_variant variant) {
    const struct hec_state_visitor visitor = {.piece = report};
    const struct hec_pass *pieces;
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    struct hec_inferred *inferred;
    bool any = false;
    text[0] = '\0';
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    assert_int_equal(hec_inferred_begin(&pass, &inferred, &consumer), 0);
    assert_int_equal(hec_pass_run(&pass, &consumer, 1, NULL), 0);
    assert_int_equal(hec_inferred_decide(inferred, NULL, 0, &any, NULL), 0);
    if (any) {
        assert_int_equal(hec_inferred_pass(inferred, variant, &pieces, NULL), 0);
        assert_int_equal(fake_pass_states_of(pieces, NULL, &visitor, NULL, NULL), 0);
    }
    hec_inferred_free(inferred);
    hec_pass_close(&pass);
    return any ? text : "nothing inferred";
}

/* The device was behind: without a counter, 95 % of the launching time was busy. */
TEST(a_wait) {
    work(1000, HEC_SYNC_STREAM, 2105);
    work(4000, HEC_SYNC_STREAM, 5005);
    assert_string_equal(
        reported(HEC_INFERRED_GUESS),
        "startup 0-1006, compute 1006-1095, launch 1095-1100, compute 1100-2100, sync 2100-2105, "
        "host 2105-4000, launch 4000-4006, compute 4006-4095, launch 4095-4100, compute 4100-5000, tail 5000-10000");
}

/* What another thread launches meanwhile is not waited for. */
TEST(another_thread) {
    work(1000, HEC_SYNC_STREAM, 2105);
    burst(other, 1900, 2000, 20);
    wait_for(other, HEC_SYNC_STREAM, 2600, 3005);
    assert_string_equal(reported(HEC_INFERRED_MOST_BETWEEN), "startup 0-1000, compute 1000-3004, tail 3004-10000");
}

/* An event may lie before what was launched last. */
TEST(an_event) {
    work(1000, HEC_SYNC_EVENT, 2105);
    work(4000, HEC_SYNC_STREAM, 5005);
    assert_string_equal(reported(HEC_INFERRED_MOST_BETWEEN), "startup 0-1000, compute 1000-5004, tail 5004-10000");
    assert_non_null(strstr(reported(HEC_INFERRED_LEAST_BETWEEN), "sync 2090-2105, host 2105-4000"));
}

/* A call that frees waits; one that frees in stream order does not. */
TEST(a_free) {
    burst(one, 1000, 1100, 20);
    call(one, HEC_API_FREE, "cudaFree", 1100, 2005);
    work(4000, HEC_SYNC_STREAM, 5005);
    assert_non_null(strstr(reported(HEC_INFERRED_MOST_BETWEEN), "compute 1000-2004, "));
    snprintf(t.names[0], sizeof t.names[0], "cudaFreeAsync");
    assert_non_null(strstr(reported(HEC_INFERRED_MOST_BETWEEN), "compute 1000-5004, "));
}

/* Calls that neither give work nor wait cut nothing: it works off what it has, and then rests to the next launch. */
TEST(allocations_after_work) {
    burst(one, 1000, 1100, 20);
    call(one, HEC_API_ALLOC, "cudaMalloc", 1100, 2100);
    call(one, HEC_API_ALLOC, "cudaMalloc", 2100, 3100);
    work(3100, HEC_SYNC_STREAM, 4005);
    assert_non_null(strstr(reported(HEC_INFERRED_GUESS), "compute 1100-2500, alloc 2500-3100, "));
}

/* A long call on an empty queue loads code: the device starts when it returns. */
TEST(a_load) {
    work(1000, HEC_SYNC_STREAM, 2105);
    call(one, HEC_API_LAUNCH, "cudaLaunchKernel", 3000, 8000);
    wait_for(one, HEC_SYNC_STREAM, 8000, 9005);
    assert_string_equal(reported(HEC_INFERRED_GUESS),
                        "startup 0-1006, compute 1006-1095, launch 1095-1100, compute 1100-2100, sync 2100-2105, "
                        "host 2105-3000, startup 3000-8000, launch 8000-8006, compute 8006-9000, tail 9000-10000");
}

/* Behind work, a copy is at the end of its call. */
TEST(a_copy_behind_work) {
    burst(one, 1000, 1100, 20);
    for (int k = 0; k < 2; k++) {
        struct hec_activity *a = call(one, HEC_API_COPY, "cudaMemcpyAsync", k ? 4000 : 1100, k ? 4011 + 500 : 2605);
        a->amount = 5e6;
        a->from = HEC_MEMORY_DEVICE;
        a->to = HEC_MEMORY_PAGEABLE;
    }
    reported(HEC_INFERRED_GUESS);
    /* the second, on an idle device, tells the rate: 5 MB in 511 us */
    assert_non_null(strstr(text, "compute 1100-2089, copy 2089-2600, "));
    assert_non_null(strstr(text, "copy 4006-4506"));
}

/* A copy that CUPTI saw tells the rate of those that no call waits for. */
TEST(a_copy_seen_tells_the_rate) {
    uint32_t stream = fake_tl_track(&t, HEC_TRACK_STREAM, 7, 0, 7);
    struct hec_inferred_survey survey;
    struct hec_pass pass;
    work(1000, HEC_SYNC_STREAM, 2005);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 7000 * US, 9000 * US);
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_COPY, stream, 7500 * US, 8500 * US);
    a->amount = 40e6;
    a->from = HEC_MEMORY_PINNED;
    a->to = HEC_MEMORY_DEVICE;
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    assert_int_equal(hec_inferred_survey_begin(&survey, &pass), 0);
    assert_int_equal(hec_inferred_survey_take(&survey, t.activities, t.count), 0);
    assert_int_equal(hec_inferred_survey_decide(&survey), 0);
    assert_int_equal(hec_inferred_survey_seen(&survey, t.activities, t.count), 0);
    assert_true(fabs(survey.rates.bytes_per_s[HEC_MEMORY_PINNED][HEC_MEMORY_DEVICE] - 40e9) < 1);
    hec_inferred_survey_free(&survey);
    hec_pass_close(&pass);
}

/* Calls without a device, as run files had them before they were timed; a window that covers them. */
TEST(nothing_to_infer) {
    wait_for(one, HEC_SYNC_STREAM, 1100, 2105);
    t.activities[0].device = 0;
    assert_string_equal(reported(HEC_INFERRED_GUESS), "nothing inferred");
    burst(one, 3000, 3100, 20);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 1000 * US, 9000 * US);
    assert_string_equal(reported(HEC_INFERRED_GUESS), "nothing inferred");
}

/* What CUPTI saw in a window stays as it is; work from before the window is behind its first record. */
TEST(a_window) {
    uint32_t stream = fake_tl_track(&t, HEC_TRACK_STREAM, 7, 0, 7);
    burst(one, 1000, 1100, 20);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 2000 * US, 3000 * US);
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 2500 * US, 2900 * US);
    fake_tl_launched(a, 2100 * US, 2105 * US, one);
    wait_for(one, HEC_SYNC_STREAM, 2110, 2905);
    work(4000, HEC_SYNC_STREAM, 5005);
    assert_string_equal(reported(HEC_INFERRED_MOST_BETWEEN),
                        "startup 0-1000, compute 1000-2900, sync 2900-2905, host 2905-4000, compute 4000-5004, "
                        "tail 5004-10000");
}

EACH_TEST(setup, teardown)
