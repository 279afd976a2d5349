/* What each edit makes of a call and of what it launched: of calls in a row, of one process or two. */
#include "diagnose/limits.h"
#include "diagnose/physics.h"
#include "diagnose/replay/parts.h"
#include "diagnose/meter/meter.h"
#include "diagnose/replay/power.h"
#include "diagnose/replay/replay.h"
#include "diagnose/replay/whatif.h"
#include "diagnose/states/state.h"
#include "unit.h"

#define US INT64_C(1000)
#define CALLS 600

static struct hec_schedule_call calls[CALLS];
static struct hec_schedule_kernel kernels[8];
static struct hec_schedule_group groups[64];
static struct hec_schedule s;
static uint32_t last_of[2]; /* call of each process */

static int begin(void **unused) {
    (void)unused;
    memset(calls, 0, sizeof calls);
    s = (struct hec_schedule){
        .calls = calls, .kernels = kernels, .kernel_count = 8, .groups = groups, .graph_left = 0.25};
    last_of[0] = last_of[1] = HEC_SCHEDULE_NONE;
    for (int i = 0; i < 8; i++)
        kernels[i] = (struct hec_schedule_kernel){.fill = NAN, .share = NAN};
    for (int i = 0; i < 64; i++)
        groups[i].least_ns = 100 * US;
    return 0;
}

/* Brief code of 5 us before it, a call of 2 us, and what it launched 10 us later for 40 us. */
static struct hec_schedule_call *add_of(int process, enum hec_call_kind kind) {
    struct hec_schedule_call *c = &calls[s.count];
    int64_t at = last_of[process] == HEC_SCHEDULE_NONE ? 0 : calls[last_of[process]].end_ns;
    *c = (struct hec_schedule_call){.begin_ns = at + 5 * US,
                                    .end_ns = at + 7 * US,
                                    .start_ns = HEC_TIME_UNKNOWN,
                                    .finish_ns = HEC_TIME_UNKNOWN,
                                    .after = last_of[process],
                                    .behind = HEC_SCHEDULE_NONE,
                                    .awaits = HEC_SCHEDULE_NONE,
                                    .process = (uint8_t)process,
                                    .kind = (uint8_t)kind};
    if (kind < HEC_CALL_WAIT) {
        c->start_ns = c->begin_ns + 10 * US;
        c->finish_ns = c->start_ns + 40 * US;
    }
    last_of[process] = (uint32_t)s.count++;
    return c;
}

static struct hec_schedule_call *add(enum hec_call_kind kind) {
    return add_of(0, kind);
}

static struct hec_schedule_call *kernel(enum hec_kernel_class class) {
    struct hec_schedule_call *c = add(HEC_CALL_KERNEL);
    c->kernel_class = (uint8_t) class;
    return c;
}

static struct hec_schedule_call *copy(enum hec_memory_kind from, enum hec_memory_kind to, uint32_t kib) {
    struct hec_schedule_call *c = add(HEC_CALL_COPY);
    c->from = (uint8_t)from;
    c->to = (uint8_t)to;
    c->what = kib;
    return c;
}

/* Long code before the call, in place of brief one; what comes later stays. */
static struct hec_schedule_call *late(struct hec_schedule_call *c) {
    int64_t by = 2 * HEC_STATE_BRIEF_NS;
    c->begin_ns += by;
    c->end_ns += by;
    if (c->start_ns != HEC_TIME_UNKNOWN) {
        c->start_ns += by;
        c->finish_ns += by;
    }
    return c;
}

#define UNCHANGED                                                                                                      \
    ((struct hec_replay_change){                                                                                       \
        .code = 1, .data = 1, .checkpoint = 1, .call = 1, .operation = 1, .launch = 1, .waits = true})

static struct hec_replay_change applied(struct hec_replay_edit edit, const struct hec_schedule_call *c) {
    struct hec_replay_change change = UNCHANGED;
    edit.apply(&s, c, edit.value, &change);
    return change;
}

static void same(int line, struct hec_replay_change found, struct hec_replay_change is) {
    const double numbers[][2] = {
        {found.code, is.code}, {found.data, is.data},           {found.checkpoint, is.checkpoint},
        {found.call, is.call}, {found.operation, is.operation}, {found.launch, is.launch}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!(fabs(numbers[i][0] - numbers[i][1]) <= 1e-12))
            fail_msg("line %d: number %zu is %g instead of %g", line, i, numbers[i][0], numbers[i][1]);
    if (found.waits != is.waits || found.beside != is.beside || found.graphed != is.graphed)
        fail_msg("line %d: waits %d, beside %d, graphed %d", line, found.waits, found.beside, found.graphed);
}

/* The fields that the edit makes another of; all others stay. */
#define MAKES(edit, value, call, ...)                                                                                  \
    do {                                                                                                               \
        struct hec_replay_change is = UNCHANGED;                                                                       \
        __VA_ARGS__;                                                                                                   \
        same(__LINE__, applied(hec_edit_with(HEC_EDIT_##edit, value), call), is);                                      \
    } while (0)
#define GONE is.call = is.operation = 0, is.waits = false

TEST(names_and_values) {
    for (int e = 0; e < HEC_EDIT_COUNT; e++) {
        const struct hec_edit_info *info = hec_edit_info((enum hec_edit)e);
        assert_int_equal(hec_edit_find(info->name, strlen(info->name)), e);
        assert_int_equal(hec_edit_find(info->name, strlen(info->name) - 1), HEC_EDIT_COUNT);
        struct hec_replay_edit usual = hec_edit_with((enum hec_edit)e, NAN),
                               given = hec_edit_with((enum hec_edit)e, 0.5);
        assert_true(usual.value == info->value || (isnan(usual.value) && isnan(info->value)));
        assert_true(given.value == 0.5 && given.apply == usual.apply);
        assert_true(given.work == (e == HEC_EDIT_BATCH ? 0.5 : 1));
    }
    assert_int_equal(hec_edit_find("waitsx", 6), HEC_EDIT_COUNT);
    assert_int_equal(hec_edit_find("waits=1", 5), HEC_EDIT_WAITS);
    assert_true(hec_edit_with(HEC_EDIT_BATCH, NAN).work == 2);
}

TEST(phases_and_code) {
    struct hec_schedule_call *brief = kernel(HEC_KERNEL_CLASS_GEMM), *long_one = late(add(HEC_CALL_OTHER));
    MAKES(DATA, 0.5, brief, is.data = 0.5);
    MAKES(CHECKPOINT, 0.5, brief, is.checkpoint = 0.5);
    MAKES(HOST, 0.5, brief, );
    MAKES(HOST, 0.5, long_one, is.code = 0.5);
    struct hec_schedule_call *saved = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 400), *wait = add(HEC_CALL_WAIT);
    saved->flags = wait->flags = HEC_CALL_IN_CHECKPOINT;
    double fast = 1024.0 * 400 / HEC_LINK_PINNED_GB_PER_S / (40.0 * 1000);
    assert_true(fast < 1);
    MAKES(CHECKPOINT, 0.5, saved, is.checkpoint = is.call = 0.5, is.waits = false, is.operation = fast);
    MAKES(CHECKPOINT, 0.5, wait, is.checkpoint = is.call = 0.5, is.waits = false);
    saved->what = 4000; /* faster than that already */
    MAKES(CHECKPOINT, 0.5, saved, is.checkpoint = is.call = 0.5, is.waits = false);
}

TEST(graphs_hold_kernels) {
    struct hec_schedule_call *list[] = {kernel(HEC_KERNEL_CLASS_GEMM), add(HEC_CALL_MEMSET)};
    for (int i = 0; i < 2; i++)
        MAKES(GRAPHS, 0.25, list[i], is.code = is.call = 0.25, is.graphed = true);
    MAKES(GRAPHS, 0.25, late(kernel(HEC_KERNEL_CLASS_GEMM)), is.call = 0.25, is.graphed = true);
    MAKES(GRAPHS, 0.25, copy(HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 9), );
    MAKES(GRAPHS, 0.25, add(HEC_CALL_WAIT), );
    struct hec_schedule_call *graph = kernel(HEC_KERNEL_CLASS_GRAPH);
    struct hec_replay_change is = UNCHANGED;
    same(__LINE__, applied(hec_edit_untraced(&s), graph), is);
    graph->flags = HEC_CALL_GRAPH;
    is.call = is.launch = 0.25;
    same(__LINE__, applied(hec_edit_untraced(&s), graph), is);
}

/* ---- copies ---- */

TEST(copies_from_pinned_memory) {
    struct hec_schedule_call *up = copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1000), *wait = add(HEC_CALL_WAIT),
                             *down = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 2);
    double fast = 1024.0 * 1000 / 40 / 40e3;
    MAKES(PINNED, 40, up, is.operation = fast, is.call = 0, is.waits = false);
    MAKES(PINNED, 10, up, is.call = 0, is.waits = false); /* it was faster */
    MAKES(PINNED, 40, wait, is.call = 0, is.waits = false);
    MAKES(PINNED, 40, down, is.operation = 1024.0 * 2 / 40 / 40e3, is.call = 0, is.waits = false);
    MAKES(PINNED, 40, copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1), ); /* a number */
    MAKES(PINNED, 40, copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 1000), );
    MAKES(PINNED, 40, add(HEC_CALL_WAIT), );
    MAKES(PINNED, 40, kernel(HEC_KERNEL_CLASS_GEMM), );
}

TEST(copies_that_are_put_together) {
    double fast = 1024.0 * 256 / 40 / 40e3;
    struct hec_schedule_call *small = copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 256), *wait = add(HEC_CALL_WAIT);
    MAKES(BATCHED, 40, small, is.operation = fast, is.call = is.code = 0, is.waits = false);
    MAKES(BATCHED, 40, wait, is.call = is.code = 0, is.waits = false);
    MAKES(BATCHED, 40, late(copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 256)), is.operation = fast, is.call = 0,
          is.waits = false);
    MAKES(BATCHED, 40, copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 257), );
    MAKES(BATCHED, 40, copy(HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 256), );
    MAKES(BATCHED, 40, copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PINNED, 1), ); /* a number */
}

TEST(copies_beside) {
    MAKES(BESIDE, 0, copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 9), is.beside = true);
    MAKES(BESIDE, 0, copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PINNED, 9), is.beside = true);
    MAKES(BESIDE, 0, copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 9), );
    MAKES(BESIDE, 0, kernel(HEC_KERNEL_CLASS_GEMM), );
}

TEST(there_and_back) {
    struct hec_schedule_call *there = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 9), *wait = add(HEC_CALL_WAIT);
    for (int i = 0; i < 254; i++)
        add(HEC_CALL_OTHER);
    struct hec_schedule_call *back = copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 9), *after = add(HEC_CALL_OTHER);
    MAKES(ROUND_TRIPS, 0, there, GONE);
    MAKES(ROUND_TRIPS, 0, wait, GONE);
    MAKES(ROUND_TRIPS, 0, back, GONE);
    MAKES(ROUND_TRIPS, 0, after, );
    back->what = 8;
    MAKES(ROUND_TRIPS, 0, there, );
    MAKES(ROUND_TRIPS, 0, back, );
    back->what = 9;
    back->process = 1;
    MAKES(ROUND_TRIPS, 0, there, );
    begin(NULL); /* 257 calls later */
    there = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 9);
    for (int i = 0; i < 256; i++)
        add(HEC_CALL_OTHER);
    back = copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 9);
    MAKES(ROUND_TRIPS, 0, there, );
    MAKES(ROUND_TRIPS, 0, back, );
    begin(NULL); /* numbers */
    there = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1);
    back = copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 1);
    MAKES(ROUND_TRIPS, 0, there, );
    MAKES(ROUND_TRIPS, 0, back, );
}

/* ---- waits ---- */

TEST(waits_go) {
    struct hec_schedule_call *first = kernel(HEC_KERNEL_CLASS_GEMM), *wait = add(HEC_CALL_WAIT);
    MAKES(WAITS, 0, first, );
    MAKES(WAITS, 0, wait, GONE, is.code = 0); /* its brief code is the framework's */
    MAKES(WAITS, 1, wait, );                  /* all stay */
    wait->begin_ns += 45 * US, wait->end_ns += 45 * US;
    MAKES(WAITS, 0, wait, GONE, is.code = 30.0 / 50); /* 20 us of 50 */
    MAKES(WAITS, 0, late(wait), GONE);                /* all of it is the program's */
    begin(NULL);
    struct hec_schedule_call *number = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PINNED, 1), *of_it = add(HEC_CALL_WAIT);
    MAKES(WAITS, 0, number, GONE, is.code = 0);
    MAKES(WAITS, 0, of_it, GONE, is.code = 0);
    struct hec_schedule_call *data = copy(HEC_MEMORY_PINNED, HEC_MEMORY_DEVICE, 2), *of_data = add(HEC_CALL_WAIT);
    MAKES(WAITS, 0, data, );
    MAKES(WAITS, 0, of_data, ); /* another cause's */
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_DEVICE, 9);
    MAKES(WAITS, 0, add(HEC_CALL_WAIT), GONE, is.code = 0);
    int stay = 0, together = 0;
    begin(NULL);
    for (int i = 0; i < 250; i++) { /* some stay: a read and the wait for it together */
        number = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_HOST, 0);
        of_it = add(HEC_CALL_WAIT);
        bool stays = applied(hec_edit_with(HEC_EDIT_WAITS, 0.4), number).waits;
        stay += stays;
        together += stays == applied(hec_edit_with(HEC_EDIT_WAITS, 0.4), of_it).waits;
    }
    assert_in_range(stay, 85, 115);
    assert_int_equal(together, 250);
}

/* A sum between two numbers that are read goes with the second. */
TEST(numbers_in_a_row) {
    copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1);
    add(HEC_CALL_WAIT);
    struct hec_schedule_call *set = add(HEC_CALL_MEMSET), *point = kernel(HEC_KERNEL_CLASS_ELEMENTWISE),
                             *sum = kernel(HEC_KERNEL_CLASS_REDUCTION),
                             *number = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1);
    MAKES(WAITS, 0, set, is.code = is.call = 0);
    MAKES(WAITS, 0, point, is.code = is.call = 0);
    MAKES(WAITS, 0, sum, is.code = is.call = 0);
    MAKES(WAITS, 0, number, GONE, is.code = 0);
    MAKES(WAITS, 1, sum, );
    sum->kernel_class = HEC_KERNEL_CLASS_ELEMENTWISE; /* nothing is summed */
    MAKES(WAITS, 0, point, );
    sum->kernel_class = HEC_KERNEL_CLASS_GEMM; /* something else is computed */
    MAKES(WAITS, 0, sum, );
    MAKES(WAITS, 0, point, );
    sum->kernel_class = HEC_KERNEL_CLASS_REDUCTION;
    calls[0].what = 2; /* the first is no number */
    MAKES(WAITS, 0, sum, );
}

/* ---- allocations ---- */

TEST(code_around_allocations) {
    s.usual[HEC_SHAPE_KERNEL].code_ns = 6 * US;
    kernel(HEC_KERNEL_CLASS_GEMM);
    struct hec_schedule_call *first = add(HEC_CALL_ALLOC), *second = add(HEC_CALL_ALLOC),
                             *kept = kernel(HEC_KERNEL_CLASS_GEMM), *other = kernel(HEC_KERNEL_CLASS_GEMM);
    MAKES(ALLOC, 0, first, is.code = 6.0 / 15, is.call = 0,
          is.waits = false); /* three pieces of 5 us become one of 6 */
    MAKES(ALLOC, 0, second, is.code = 6.0 / 15, is.call = 0, is.waits = false);
    MAKES(ALLOC, 0, kept, is.code = 6.0 / 15);
    MAKES(ALLOC, 0, other, );
    MAKES(ALLOC, 0.5, kept, is.code = 0.5 + 0.5 * 6 / 15);
    MAKES(ALLOC, 2, first, is.call = 2, is.waits = false); /* more of them do not change the code around */
    s.usual[HEC_SHAPE_KERNEL].code_ns = 16 * US;           /* no less than usual */
    MAKES(ALLOC, 0, kept, );
    s.usual[HEC_SHAPE_KERNEL].code_ns = 6 * US;
    second->begin_ns += HEC_STATE_BRIEF_NS, second->end_ns += HEC_STATE_BRIEF_NS; /* long code is the program's */
    kept->begin_ns += HEC_STATE_BRIEF_NS, kept->end_ns += HEC_STATE_BRIEF_NS;
    MAKES(ALLOC, 0, second, is.call = 0, is.waits = false);
    MAKES(ALLOC, 0, kept, is.code = 6.0 / 10);
}

/* ---- the device's work ---- */

TEST(kernels_by_class) {
    struct hec_schedule_call *gemm = kernel(HEC_KERNEL_CLASS_GEMM), *conv = kernel(HEC_KERNEL_CLASS_CONV),
                             *layout = kernel(HEC_KERNEL_CLASS_LAYOUT), *comm = kernel(HEC_KERNEL_CLASS_COMM),
                             *data = copy(HEC_MEMORY_PAGEABLE, HEC_MEMORY_DEVICE, 9),
                             *number = copy(HEC_MEMORY_DEVICE, HEC_MEMORY_PAGEABLE, 1);
    MAKES(COMPUTE, 0.5, gemm, is.operation = 0.5);
    MAKES(COMPUTE, 0.5, comm, );
    MAKES(COMPUTE, 0.5, data, );
    struct hec_schedule_call *add = kernel(HEC_KERNEL_CLASS_ELEMENTWISE);
    MAKES(FUSE, 0.25, add, is.operation = is.call = is.code = 0.25);
    MAKES(FUSE, 0.25, late(add), is.operation = is.call = 0.25); /* the program's own code stays */
    MAKES(FUSE, 0.25, gemm, );
    MAKES(FUSE, 0.25, data, );
    MAKES(PRODUCTS, 0.5, gemm, is.operation = 0.5);
    MAKES(PRODUCTS, 0.5, conv, is.operation = 0.5);
    MAKES(PRODUCTS, 0.5, layout, );
    MAKES(PRODUCTS, 0.5, data, );
    MAKES(LAYOUT, 0.5, layout, is.operation = 0.5);
    MAKES(LAYOUT, 0.5, gemm, );
    MAKES(LAYOUT, 0.5, data, );
    MAKES(COMM, 0, comm, is.beside = true);
    MAKES(COMM, 0, gemm, );
    MAKES(BATCH, 4, gemm, is.data = is.operation = 4); /* it is not known how full it makes the device */
    gemm->what = 1;
    kernels[1].fill = 0.5;
    MAKES(BATCH, 4, gemm, is.data = 4, is.operation = 2);
    MAKES(BATCH, 2, gemm, is.data = 2);
    kernels[1].fill = 3;
    MAKES(BATCH, 4, gemm, is.data = is.operation = 4);
    MAKES(BATCH, 4, comm, is.data = 4);
    MAKES(BATCH, 4, kernel(HEC_KERNEL_CLASS_OPTIMIZER), is.data = 4);
    MAKES(BATCH, 4, data, is.data = is.operation = 4);
    MAKES(BATCH, 4, number, is.data = 4);
}

/* ---- ranks ---- */

TEST(ranks_are_evened_out) {
    struct hec_schedule_call *first = kernel(HEC_KERNEL_CLASS_GEMM), *other = add_of(1, HEC_CALL_KERNEL),
                             *wait = add_of(1, HEC_CALL_WAIT), *blocked = add_of(1, HEC_CALL_OTHER),
                             *comm = add_of(1, HEC_CALL_KERNEL);
    blocked->end_ns = blocked->begin_ns + HEC_LAUNCH_BLOCKED_NS;
    comm->flags = HEC_CALL_COLLECTIVE;
    s.even[0] = (struct hec_schedule_even){1, 1, 1};
    s.even[1] = (struct hec_schedule_even){.code = 0.5, .operation = 0.8, .usual_code = 0.6};
    MAKES(RANKS, 0, first, );
    MAKES(RANKS, 0, other, is.code = is.data = is.checkpoint = is.call = 0.5, is.operation = 0.8);
    MAKES(RANKS, 0.5, other, is.code = is.data = is.checkpoint = is.call = 0.75, is.operation = 0.9);
    MAKES(RANKS, 0, wait, is.code = is.data = is.checkpoint = 0.5, is.operation = 0.8);
    MAKES(RANKS, 0, blocked, is.code = is.data = is.checkpoint = 0.5, is.operation = 0.8);
    MAKES(RANKS, 0, comm, is.code = is.data = is.checkpoint = is.call = 0.5);
    MAKES(LATE, 0, other, is.code = is.data = is.checkpoint = is.call = 0.6);
    MAKES(LATE, 0.5, wait, is.code = is.data = is.checkpoint = 0.8);
}

/* 8 collectives a step of 4 steps: a quarter of each step's stay, the last ones; or all go as one in four. */
TEST(collectives) {
    s.steps = 4;
    s.group_count = 32;
    for (uint32_t i = 0; i < 32; i++) {
        struct hec_schedule_call *c = kernel(HEC_KERNEL_CLASS_COMM);
        c->flags = HEC_CALL_COLLECTIVE;
        c->what = i;
        if (i % 8 >= 6)
            MAKES(SYNC_ONCE, 0.25, c, );
        else
            MAKES(SYNC_ONCE, 0.25, c, is.code = is.call = is.operation = 0, is.beside = true);
        double part = 1 - (double)HEC_COLLECTIVE_LATENCY_NS / (100e3);
        if (i % 4 == 3)
            MAKES(BUCKETS, 0.25, c, is.operation = 1 + 3 * part);
        else
            MAKES(BUCKETS, 0.25, c, is.code = is.call = is.operation = 0, is.beside = true);
    }
    struct hec_schedule_call *c = late(kernel(HEC_KERNEL_CLASS_COMM));
    c->flags = HEC_CALL_COLLECTIVE;
    c->what = 0;
    MAKES(BUCKETS, 0.25, c, is.call = is.operation = 0, is.beside = true); /* its code is the program's */
    c->what = 3;
    groups[3].least_ns = HEC_COLLECTIVE_LATENCY_NS / 2; /* nothing but latency */
    MAKES(BUCKETS, 0.25, c, );
    c->flags = 0; /* it has no counterparts */
    MAKES(BUCKETS, 0.25, c, );
    MAKES(SYNC_ONCE, 1, c, );
    MAKES(SYNC_ONCE, 0, c, is.call = is.operation = 0, is.beside = true);
    MAKES(SYNC_ONCE, 0, kernel(HEC_KERNEL_CLASS_GEMM), );
    MAKES(BUCKETS, 0.25, kernel(HEC_KERNEL_CLASS_GEMM), );
}

/* ---- events between streams ---- */

TEST(what_an_operation_comes_after) {
    struct hec_schedule_event events[] = {{1, 0}, {4, 2}, {5, 3}, {9, 7}};
    for (int i = 0; i < 10; i++)
        kernel(HEC_KERNEL_CLASS_GEMM)->awaits = 6;
    s.events = events;
    s.event_count = 4;
    for (uint32_t count = 1; count <= 4; count++) {
        s.event_count = count;
        for (uint32_t i = 0; i < count; i++) {
            calls[events[i].at].flags = HEC_CALL_WAITED | HEC_CALL_EVENT;
            assert_int_equal(hec_schedule_event_at(&s, events[i].at), events[i].awaits);
            assert_int_equal(hec_schedule_event(&s, events[i].at), events[i].awaits);
        }
    }
    assert_int_equal(hec_schedule_event(&s, 2), 6); /* its return waits for nothing: `awaits` is that */
    calls[2].flags = HEC_CALL_WAITED;
    assert_int_equal(hec_schedule_event(&s, 2), HEC_SCHEDULE_NONE);
}

TEST(kernels_that_are_not_known) {
    kernels[7].fill = 0.5;
    assert_true(hec_schedule_kernel(&s, 7).fill == 0.5);
    assert_true(isnan(hec_schedule_kernel(&s, 8).fill) && isnan(hec_schedule_kernel(&s, 8).share));
    assert_true(hec_schedule_kernel(&s, 8).name == 0 && hec_schedule_kernel(&s, 8).communicator == 0);
}

/* ---- what is asked of a schedule ---- */

/* 20 steps of a kernel, 300 us of the program's own code, another kernel and a wait for it. */
static void ask(struct hec_summary *summary, const struct hec_whatif_question *questions, size_t count,
                struct hec_whatif *out) {
    static struct hec_schedule_stream stream = {.pid = 1, .device = 0};
    static struct hec_summary_input input;
    static uint32_t following[CALLS];
    for (uint32_t i = 0; i < CALLS; i++)
        following[i] = i + 1;
    s.following = following;
    s.streams = &stream;
    s.stream_count = s.process_count = 1;
    for (int step = 0; step < 20; step++)
        for (int k = 0; k < 2; k++) {
            struct hec_schedule_call *c = k ? late(kernel(HEC_KERNEL_CLASS_GEMM)) : kernel(HEC_KERNEL_CLASS_GEMM);
            c->behind = s.count > 1 ? c->after - (k ? 0 : 1) : HEC_SCHEDULE_NONE;
            if (k) {
                struct hec_schedule_call *wait = add(HEC_CALL_WAIT);
                wait->awaits = wait->after;
                wait->flags = HEC_CALL_WAITED;
                wait->end_ns = c->finish_ns + 5 * US;
            }
        }
    s.reach = 4;
    s.steps = 20;
    s.guessed = 7;
    s.communication = 30;
    s.alone = 2;
    s.group_count = 1;
    s.from_ns = 1500000000;
    s.to_ns = 2500000000;
    s.step_from_ns = calls[0].begin_ns;
    s.step_to_ns = calls[3].begin_ns;
    input = (struct hec_summary_input){.schedule = &s};
    summary->seconds = 3;
    assert_int_equal(hec_whatif_ask(&input, summary, questions, count, out, NULL), 0);
}

TEST(what_is_answered) {
    static const struct hec_whatif_question questions[2] = {
        {.edits = {{HEC_EDIT_HOST, 0.5}}, .count = 1},
        {.edits = {{HEC_EDIT_WAITS, NAN}, {HEC_EDIT_HOST, 0}}, .count = 2}};
    for (int imported = 0; imported < 2; imported++) {
        struct hec_summary summary = {.imported = ""};
        struct hec_whatif w;
        begin(NULL);
        snprintf(summary.imported, sizeof summary.imported, "%s", imported ? "n" : "");
        s.cut = imported;
        ask(&summary, questions, 2, &w);
        assert_int_equal(w.calls, 60);
        assert_int_equal(w.guessed, 7);
        assert_int_equal(w.steps, 20);
        assert_int_equal(w.communication, 30);
        assert_int_equal(w.alone, 2);
        assert_true(w.cut == imported && w.imported == imported);
        assert_true(w.from_s == 1.5 && w.to_s == 2.5);
        assert_false(w.apart); /* of two in thirty */
        assert_int_equal(w.count, 2);
        assert_int_equal(w.step.device, -1); /* of one question alone a step is drawn */
        struct hec_replay plain, usual, edited;
        assert_int_equal(hec_replay_run(&s, NULL, 0, false, NULL, &plain), 0);
        assert_int_equal(hec_replay_run(&s, NULL, 0, true, NULL, &usual), 0);
        assert_true(w.unchanged.replay.seconds == plain.seconds && w.unchanged.replay.recorded_s == plain.recorded_s);
        assert_true(fabs(plain.seconds / plain.recorded_s - 1) < 1e-9);
        assert_true(fabs(w.error - (usual.seconds / plain.recorded_s - 1)) < 1e-12);
        assert_int_equal(w.trusted, fabs(w.error) <= HEC_REPLAY_TRUST);
        const double elsewhere = HEC_PROOFS_ELSEWHERE;
        for (int q = 0; q < 2; q++) {
            const struct hec_whatif_answer *a = &w.answers[q];
            struct hec_replay_edit edits[2];
            struct hec_saving is = {INFINITY, NAN, 0};
            for (int k = 0; k < questions[q].count; k++)
                edits[k] = hec_edit_with(questions[q].edits[k].edit, questions[q].edits[k].value);
            assert_int_equal(hec_replay_run(&s, edits, (size_t)questions[q].count, false, NULL, &edited), 0);
            assert_true(a->replay.seconds == edited.seconds);
            double saved = 1 - edited.seconds / plain.seconds;
            assert_true(saved > 0.1 && fabs(a->seconds_replayed - saved) < 1e-12);
            for (int k = 0; k < questions[q].count; k++) { /* the widest of all edits */
                struct hec_saving one =
                    hec_proofs_seconds(questions[q].edits[k].edit, (struct hec_saving){saved, saved, saved}, elsewhere);
                is = (struct hec_saving){fmin(is.low, one.low), one.best, fmax(is.high, one.high)};
            }
            assert_true(fabs(a->seconds.low - is.low) < 1e-12 && fabs(a->seconds.best - is.best) < 1e-12 &&
                        fabs(a->seconds.high - is.high) < 1e-12);
            assert_true(isnan(a->joules_replayed) && isnan(a->joules.best)); /* no device is known */
        }
        hec_whatif_free(&w);
        assert_null(w.answers);
    }
}

/* Of processes that were recorded at different times nothing is trusted; of no calls nothing is said. */
TEST(what_cannot_be_answered) {
    struct hec_summary summary = {.seconds = 3};
    struct hec_whatif w;
    const struct hec_whatif_question question = {.edits = {{HEC_EDIT_HOST, 0.5}}, .count = 1};
    const struct hec_summary_input input = {.schedule = &s};
    assert_int_equal(hec_whatif_ask(&input, &summary, &question, 1, &w, NULL), HEC_ERR_UNSUPPORTED);
    ask(&summary, &question, 1, &w);
    hec_whatif_free(&w);
    s.alone = 3;
    assert_int_equal(hec_whatif_ask(&input, &summary, &question, 1, &w, NULL), 0);
    assert_true(w.apart && !w.trusted);
    hec_whatif_free(&w);
}

EACH_TEST(begin, NULL)
