/* The timeline of small cases that can be worked out by hand. */
#include "base/trace.h"
#include "diagnose/timeline/device.h"
#include "timeline_run.h"

#define US INT64_C(1000)

TEST(no_trace) {
    struct hec_timeline_input none = {0};
    assert_int_equal(fake_pass_timeline(&none, &made, NULL), 0);
    assert_int_equal(made.device_count, 0);
    assert_int_equal(made.trace.mode, HEC_TRACE_OFF);
    assert_int_equal(made.trace.why.id, HEC_REASON_NO_TRACE);
    assert_true(isnan(made.trace.coverage) && isnan(made.trace.overhead));
    assert_int_equal(made.steps.source, HEC_STEP_NONE);
    assert_null(build()); /* functions, but nothing in them */
    assert_int_equal(made.kernel_count, 0);
}

TEST(one_activity) {
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 5 * US, 5 * US)->name = fake_tl_kernel(&t, "k", 64);
    const struct hec_device_timeline *d = build();
    near(d->window_s, 0);
    near(d->busy_s, 0);
    assert_int_equal(d->kernels, 1);
    assert_int_equal(d->streams, 1);
    assert_int_equal(d->gap.count, 0);
    assert_true(isnan(d->gap.median) && isnan(d->comm_overlap) && isnan(d->queue_max) && isnan(d->launch_delay.mean));
    assert_int_equal(made.kernel_count, 1);
    near(made.kernels[0].mean_us, 0);
}

/* Two streams: 0-10 and 4-6 compute, 8-20 comm, 30-40 copy, 35-50 compute. */
TEST(overlaps) {
    uint32_t gemm = fake_tl_kernel(&t, "gemm", 256), nccl = fake_tl_kernel(&t, "ncclKernel_AllReduce", 512);
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 0, 10 * US)->name = gemm;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 4 * US, 6 * US)->name = gemm;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, second_stream, 8 * US, 20 * US)->name = nccl;
    fake_tl_copy(&t, second_stream, 30 * US, 40 * US, 5e6, HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE);
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 35 * US, 50 * US)->name = gemm;
    const struct hec_device_timeline *d = build();
    near(d->window_s, 50e-6);
    near(d->busy_s, 40e-6);
    near(d->idle_s, 10e-6);
    near(d->compute_s, 25e-6);
    near(d->non_compute_s, 15e-6);
    near(d->comm_s, 12e-6);
    near(d->comm_overlap, 2.0 / 12);
    near(d->copy_s, 10e-6);
    near(d->copy_overlap, 0.5);
    near(d->traced_s, 50e-6);
    near(d->kernel_sum_s, 39e-6);
    assert_int_equal(d->streams, 2);
    assert_int_equal(d->gap.count, 1);
    near(d->gap.maximum, 10e-6);
    const struct hec_copy_total *pinned = &d->copied[HEC_COPY_HOST_TO_DEVICE][HEC_COPY_PINNED];
    assert_int_equal(pinned->count, 1);
    near(pinned->bytes, 5e6);
    near(pinned->seconds, 10e-6);
}

TEST(copies_by_direction) {
    static const struct {
        uint8_t from, to, flags;
        enum hec_copy_direction direction;
        enum hec_copy_host host;
    } rows[] = {
        {HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 0, HEC_COPY_HOST_TO_DEVICE, HEC_COPY_PAGEABLE},
        {HEC_MEMORY_PINNED, HEC_MEMORY_ARRAY, 0, HEC_COPY_HOST_TO_DEVICE, HEC_COPY_PINNED},
        {HEC_MEMORY_HOST, HEC_MEMORY_MANAGED, 0, HEC_COPY_HOST_TO_DEVICE, HEC_COPY_HOST_OTHER},
        {HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 0, HEC_COPY_DEVICE_TO_HOST, HEC_COPY_PAGEABLE},
        {HEC_MEMORY_DEVICE, HEC_MEMORY_PINNED, 0, HEC_COPY_DEVICE_TO_HOST, HEC_COPY_PINNED},
        {HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 0, HEC_COPY_DEVICE_TO_DEVICE, HEC_COPY_HOST_OTHER},
        {HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, HEC_ACTIVITY_PEER, HEC_COPY_PEER, HEC_COPY_HOST_OTHER},
        {HEC_MEMORY_UNKNOWN, HEC_MEMORY_DEVICE, 0, HEC_COPY_OTHER, HEC_COPY_HOST_OTHER},
        {200, HEC_MEMORY_DEVICE, 0, HEC_COPY_OTHER, HEC_COPY_HOST_OTHER},
    };
    int64_t expected[HEC_COPY_DIRECTION_COUNT][HEC_COPY_HOST_COUNT] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_COPY, stream, (int64_t)i * 10, (int64_t)i * 10 + 5);
        a->from = rows[i].from;
        a->to = rows[i].to;
        a->flags = rows[i].flags;
        a->amount = i ? 1000 : NAN;
        expected[rows[i].direction][rows[i].host]++;
    }
    fake_tl_add(&t, HEC_ACTIVITY_MEMSET, stream, 1000, 1010)->amount = 64;
    const struct hec_device_timeline *d = build();
    for (int i = 0; i < HEC_COPY_DIRECTION_COUNT; i++)
        for (int k = 0; k < HEC_COPY_HOST_COUNT; k++)
            assert_int_equal(d->copied[i][k].count, expected[i][k]);
    near(d->copied[HEC_COPY_HOST_TO_DEVICE][HEC_COPY_PAGEABLE].bytes, 0); /* unknown bytes add nothing */
    near(d->memset_bytes, 64);
    assert_int_equal(d->copies, 9);
    assert_int_equal(d->memsets, 1);
}

/* Two configurations of one name make one row, with the numbers of the more frequent one. */
TEST(kernel_rows) {
    uint32_t small = fake_tl_kernel(&t, "_ZN2at6native6kernelIfEEvPT_", 64);
    uint32_t large = fake_tl_kernel(&t, "_ZN2at6native6kernelIfEEvPT_", 1024);
    uint32_t nccl = fake_tl_kernel(&t, "_Z20ncclDevKernel_Gather4Args", 512);
    t.kernels[large - 1].registers = 64;
    for (int i = 0; i < 5; i++)
        fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, i * 100 * US, i * 100 * US + (i + 1) * US)->name =
            i < 2 ? small : large;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 600 * US, 685 * US)->name = nccl;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 700 * US, 701 * US)->name = 1000; /* never defined */
    build();
    assert_int_equal(made.kernel_count, 3);
    const struct hec_kernel_row *row = &made.kernels[1];
    assert_string_equal(made.kernels[0].name, "ncclDevKernel_Gather");
    assert_int_equal(made.kernels[0].kernel_class, HEC_KERNEL_CLASS_COMM);
    near(made.kernels[0].share, 85.0 / 101);
    assert_string_equal(row->name, "at::native::kernel<float>");
    assert_int_not_equal(row->kernel_class, HEC_KERNEL_CLASS_COMM);
    assert_int_equal(row->count, 5);
    assert_int_equal(row->configurations, 2);
    assert_int_equal(row->block[0], 1024);
    near(row->seconds, 15e-6);
    near(row->mean_us, 3);
    near(row->minimum_us, 1);
    near(row->maximum_us, 5);
    near(row->occupancy_limit, 0.5); /* 64 registers x 1024 threads are all that there are */
    assert_string_equal(row->occupancy_limiter, "registers");
    assert_string_equal(made.kernels[2].name, "(no name)");
    assert_true(isnan(made.kernels[2].occupancy_limit));
    assert_int_equal(made.kernels[2].grid[0], -1);
}

/* Launches: unknown and impossible ones are left out; of a graph the first node alone waits for the launch. */
TEST(launches) {
    uint32_t k = fake_tl_kernel(&t, "k", 64);
    int64_t launch[] = {0, 2, HEC_TIME_UNKNOWN, 99, 50, 50, 50};
    for (int i = 0; i < 7; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, (10 + i * 10) * US, (19 + i * 10) * US);
        a->name = k;
        a->launch_ns = launch[i] == HEC_TIME_UNKNOWN ? launch[i] : launch[i] * US;
        a->flags = i >= 4 ? HEC_ACTIVITY_IN_GRAPH : 0;
    }
    const struct hec_device_timeline *d = build();
    assert_int_equal(d->launch_delay.count, 3); /* 10, 18 and 0 us */
    near(d->launch_delay.minimum, 0);
    near(d->launch_delay.maximum, 18e-6);
    near(d->launch_delay.mean, 28e-6 / 3);
    near(d->queue_max, 3);
    near(d->queue_mean, (9 + 19 + 9 + 19 + 29) / 69.0);
}

static void queued(int64_t launch_ns, int64_t end_ns) {
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, end_ns - 1, end_ns);
    a->launch_ns = launch_ns;
}

/* A graph of 20000 nodes, launched at once. */
TEST(deep_queue_of_a_graph) {
    for (int64_t i = 0; i < 20000; i++)
        queued(5, 10 + i);
    assert_in_range(build()->queue_max, HEC_QUEUE_WINDOW / 2, 20000);
}

/* As many kernels, each launched far ahead of its start. */
TEST(deep_queue_of_kernels) {
    for (int64_t i = 0; i < 20000; i++)
        queued(i, 1000000 + i);
    assert_in_range(build()->queue_max, HEC_QUEUE_WINDOW / 2, 20000);
}

TEST(queue_of_a_thousand) {
    for (int64_t i = 0; i < 100000; i++)
        queued(10 * i, 10 * i + 10000);
    near(build()->queue_max, 1000);
}

/* Launches that come in no order: two streams, one of them a thousand launches behind. */
TEST(queue_of_launches_in_no_order) {
    for (int64_t i = 0; i < 100000; i++)
        queued(i % 2 ? 10 * i : 10 * i - 10000, 10 * i + 5);
    near(build()->queue_max, 501);
}

/* Windows 0-100 and 200-300; activity goes on beyond a border, and nothing is known between. */
TEST(duty_cycle) {
    uint32_t k = fake_tl_kernel(&t, "k", 64);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 0, 100 * US);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 200 * US, 300 * US);
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 10 * US, 40 * US)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 90 * US, 120 * US)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 250 * US, 260 * US)->name = k;
    const struct hec_device_timeline *d = build();
    near(d->window_s, 250e-6);
    near(d->traced_s, 150e-6); /* 10-100 and 200-260 */
    near(d->busy_s, 50e-6);
    near(d->idle_s, 100e-6);
    near(d->kernel_sum_s, 70e-6); /* whole activities */
    assert_int_equal(d->gap.count, 2);
    near(d->gap.mean, 50e-6);
}

/* Of the last replay of a graph in a window CUPTI gives the ends of a later one: its nodes last until the next one, the last of
 * them no longer than the window. Nodes side by side within the window stay as they are, as does what is no node. */
TEST(ends_of_a_later_replay) {
    uint32_t k = fake_tl_kernel(&t, "k", 64);
    static const int64_t nodes[][2] = {{10, 40}, {20, 30}, {70, 80}, {80, 5080}, {90, 5090}, {100, 5100}, {110, 5112}};
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 0, 100 * US);
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, nodes[i][0] * US, nodes[i][1] * US);
        a->name = k;
        a->flags = HEC_ACTIVITY_IN_GRAPH;
    }
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, second_stream, 115 * US, 150 * US)->name = k;
    const struct hec_device_timeline *d = build();
    assert_int_equal(d->kernels, 8);
    near(d->kernel_sum_s, (30 + 10 + 10 + 10 + 10 + 10 + 0 + 35) * 1e-6);
    near(d->busy_s, 60e-6); /* 10 to 40 and 70 to 100 */
}

/* Times and ids that make no sense are left out; the rest counts. */
TEST(nonsense) {
    uint32_t k = fake_tl_kernel(&t, "k", 64);
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, INT64_MIN, INT64_MAX)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, -5, INT64_MAX)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, 4000000000u, 0, 10)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, 0, 0, 10)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, thread, 0, 10)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 100, 110)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 120, 110)->name = k;
    t.tracks[t.track_count++] = (struct hec_track){.id = 4000000000u, .kind = HEC_TRACK_STREAM, .pid = 1, .device = 3};
    const struct hec_device_timeline *d = build();
    assert_int_equal(made.device_count, 1);
    assert_int_equal(d->kernels, 1);
    near(d->busy_s, 10e-9);
}

TEST(errors_are_passed_on) {
    uint32_t k = fake_tl_kernel(&t, "k", 64);
    for (int i = 0; i < 100; i++)
        fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, i * 10, i * 10 + 5)->name = k;
    for (int pass = 1; pass <= 2; pass++) { /* windows and steps, then all else */
        struct hec_why why = {""};
        t.passes = 0;
        t.fail_pass = pass;
        assert_int_equal(fake_pass_timeline(&t.input, &made, &why), HEC_ERR_CORRUPT);
        assert_string_equal(why.text, "the file is damaged");
        assert_null(made.devices);
        assert_null(made.kernels);
    }
}

/* Devices of several processes come by index, each with its own numbers. */
TEST(two_devices) {
    uint32_t k = fake_tl_kernel(&t, "k", 64), far = fake_tl_track(&t, HEC_TRACK_STREAM, 11, 3, 7);
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, far, 0, 10 * US)->name = k;
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 5 * US, 25 * US)->name = k;
    build();
    assert_int_equal(made.device_count, 2);
    assert_int_equal(made.devices[0].device, 0);
    near(made.devices[0].busy_s, 20e-6);
    assert_int_equal(made.devices[1].device, 3);
    near(made.devices[1].busy_s, 10e-6);
    assert_int_equal(made.kernel_count, 2);
    assert_int_equal(made.kernels[1].device, 3);
    for (int i = 0; i < 2; i++)
        assert_true(made.devices[i].row_count == 1 && made.devices[i].rows == &made.kernels[i]);
    near(made.kernels[1].share, 1);
}

/* Quantiles are within 1 % of the exact ones. */
TEST(quantiles) {
    uint32_t k = fake_tl_kernel(&t, "k", 64);
    int64_t at = 0;
    for (int i = 1; i <= 999; i++) {
        fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, at, at + i * US)->name = k;
        at += i * US;
    }
    const struct hec_quantiles q = build()->kernel;
    assert_int_equal(q.count, 999);
    assert_true(fabs(q.median / 500e-6 - 1) < 0.01);
    assert_true(fabs(q.p90 / 900e-6 - 1) < 0.01);
    assert_true(fabs(q.p99 / 990e-6 - 1) < 0.01);
    near(q.minimum, 1e-6);
    near(q.maximum, 999e-6);
    near(q.mean, 500e-6);
}

EACH_TEST(timeline_begin, NULL)
