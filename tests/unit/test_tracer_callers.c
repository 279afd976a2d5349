/* What is made of the calls that trampolines and simulators tell of: bursts, records, totals; and the slots of threads. */
#include "tracer/tracer.h"
#include "tracer/trampolines.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace_ring.h"
#include "unit.h"

#define US INT64_C(1000)
#define MS HEC_NS_PER_MS
#define NEAR_NS 2 /* times are counted in ticks */

static int64_t begin_ns; /* of each test's calls: in the past, where they belong */
static int fake_device;

static int get_device(int *device) {
    *device = fake_device;
    return 0;
}

static int set_up(void **state) {
    (void)state;
    ring_open();
    hec_callers_forget();
    hec_callers_open();
    hec_callers_record(true);
    hec_trampolines_set_real(hec_trampolines_row("cuCtxGetDevice"), (void *)get_device);
    fake_device = 3;
    begin_ns = hec_out_now_ns() - 500 * MS;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hec_callers_forget();
    ring_close();
    return 0;
}

static uint64_t tick(int64_t since_begin_ns) {
    return hec_ticks_of(begin_ns + since_begin_ns);
}

static void launch_as(enum hec_trace_call_class call_class, int64_t at_ns, int64_t took_ns) {
    const struct hec_caller_call call = {.call_class = call_class, .function = hec_trampolines_row("cuLaunchKernel")};
    struct hec_caller *caller = hec_caller_enter();
    if (!hec_caller_joined(caller, tick(at_ns), tick(at_ns + took_ns), call_class == HEC_TRACE_CALL_GRAPH))
        hec_caller_alone(caller, tick(at_ns), tick(at_ns + took_ns), &call);
}

static void launch(int64_t at_ns, int64_t took_ns) {
    launch_as(HEC_TRACE_CALL_LAUNCH, at_ns, took_ns);
}

static void synchronise(int64_t at_ns, int64_t took_ns) {
    const struct hec_caller_call call = {.call_class = HEC_TRACE_CALL_SYNC,
                                         .function = hec_trampolines_row("cuStreamSynchronize"),
                                         .from = HEC_TRACE_WAIT_STREAM,
                                         .stream = 77,
                                         .result = 5};
    hec_caller_leave(hec_caller_enter(), tick(at_ns), tick(at_ns + took_ns), &call);
}

static void assert_line_near(int64_t value, int64_t expected) {
    if (value < expected - NEAR_NS || value > expected + NEAR_NS)
        fail_msg("%lld instead of %lld ns", (long long)value, (long long)expected);
}

static struct hec_trace_burst burst(size_t n) {
    return payload(nth(HEC_TRACE_BURST, n)).burst;
}

static struct hec_trace_call call(size_t n) {
    return payload(nth(HEC_TRACE_CALL, n)).call;
}

TEST(test_a_burst) {
    launch(0, 4 * US);
    launch(10 * US, 4 * US);                            /* after 6 us: no pause */
    launch(34 * US, 6 * US);                            /* after 20 us: one */
    launch_as(HEC_TRACE_CALL_GRAPH, 539 * US, 10 * US); /* after 499 us: one */
    launch_as(HEC_TRACE_CALL_MEMSET, 550 * US, 1 * US);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST) + count(HEC_TRACE_CALL), 0);
    synchronise(600 * US, 300 * US);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    assert_int_equal(burst(0).launches, 5);
    assert_int_equal(burst(0).graphs, 1);
    assert_int_equal(burst(0).device, 3);
    assert_line_near(burst(0).duration_ns, 551 * US);
    assert_line_near(burst(0).in_calls_ns, 25 * US);
    assert_line_near(burst(0).pauses_ns, 519 * US);
    assert_int_equal(nth(HEC_TRACE_BURST, 0)->tid, syscall(SYS_gettid));
    /* the call that ended it comes after it */
    assert_int_equal(count(HEC_TRACE_CALL), 1);
    assert_true(nth(HEC_TRACE_CALL, 0) > nth(HEC_TRACE_BURST, 0));
    assert_line_near(call(0).duration_ns, 300 * US);
    assert_int_equal(call(0).call_class, HEC_TRACE_CALL_SYNC);
    assert_int_equal(call(0).from, HEC_TRACE_WAIT_STREAM);
    assert_int_equal(call(0).stream, 77);
    assert_int_equal(call(0).result, 5);
    assert_int_equal(call(0).device, 3);
    assert_int_equal(call(0).domain, 1);
}

/* The names are defined when the tracer starts. */
TEST(test_names) {
    synchronise(0, US);
    read_ring();
    assert_string_equal(name_of(call(0).function), "cuStreamSynchronize");
    uint32_t names = 0;
    for (size_t i = 0; i < count(HEC_RING_NAME); i++)
        names += nth(HEC_RING_NAME, i)->u.name.piece == 0; /* long ones come in two */
    assert_int_equal(names, hec_trampolines_count());
}

TEST(test_times) {
    launch(100 * MS, 4 * US);
    synchronise(200 * MS, US);
    read_ring();
    /* two clocks are read one after the other */
    assert_in_range(nth(HEC_TRACE_BURST, 0)->t_ns - begin_ns - 100 * MS + 100 * US, 0, 200 * US);
    assert_in_range(nth(HEC_TRACE_CALL, 0)->t_ns - begin_ns - 200 * MS + 100 * US, 0, 200 * US);
}

TEST(test_where_a_burst_ends) {
    launch(0, 4 * US);
    launch(504 * US + 100, 4 * US); /* 500 us and a little apart */
    launch(520 * US, 49 * US);      /* slow, but not for want of room */
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    assert_int_equal(burst(0).launches, 1);
    assert_line_near(burst(0).duration_ns, 4 * US);
    launch(600 * US, 50 * US + 100); /* this one waited: a call of its own */
    launch(700 * US, 4 * US);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    assert_int_equal(burst(0).launches, 2);
    assert_int_equal(count(HEC_TRACE_CALL), 1);
    assert_int_equal(call(0).call_class, HEC_TRACE_CALL_LAUNCH);
    assert_line_near(call(0).duration_ns, 50 * US + 100);
    /* another device is current; the same context again is no other device */
    static int context;
    fake_device = 1;
    hec_caller_moved(&context);
    launch(710 * US, 4 * US);
    fake_device = 2;
    hec_caller_moved(&context);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    assert_int_equal(burst(0).launches, 1);
    assert_int_equal(burst(0).device, 3);
    synchronise(800 * US, US);
    read_ring();
    assert_int_equal(burst(0).device, 1);
    /* after 100 ms, however many */
    for (int64_t at = MS; at < 104 * MS; at += 400 * US)
        launch(at, 4 * US);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    assert_in_range(burst(0).duration_ns, 99 * MS, 100 * MS);
    assert_int_equal(burst(0).launches, 250);
}

TEST(test_single) {
    launch(0, 4 * US);
    hec_callers_single(true);
    launch(10 * US, 4 * US);
    launch_as(HEC_TRACE_CALL_GRAPH, 20 * US, 9 * US);
    hec_callers_single(false);
    launch(40 * US, 4 * US);
    hec_callers_sweep(true);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 2);
    assert_int_equal(count(HEC_TRACE_CALL), 2);
    assert_int_equal(call(1).call_class, HEC_TRACE_CALL_GRAPH);
    assert_int_equal(burst(0).launches + burst(1).launches, 2);
}

TEST(test_sweep) {
    launch(0, 4 * US); /* 500 ms ago */
    hec_callers_sweep(false);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    begin_ns = hec_out_now_ns();
    launch(3600 * HEC_NS_PER_S, 4 * US); /* as if just now, however slow this machine is */
    hec_callers_sweep(false);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 0);
    hec_callers_sweep(true);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    hec_callers_sweep(true);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 0);
}

static struct hec_callers_totals totals(void) {
    struct hec_callers_totals now;
    hec_callers_read(&now);
    return now;
}

TEST(test_totals) {
    const struct hec_caller_call copies = {.call_class = HEC_TRACE_CALL_COPY},
                                 gets = {.call_class = HEC_TRACE_CALL_ALLOC};
    struct hec_caller *caller = hec_caller_enter();
    launch(0, 4 * US);
    launch(10 * US, 60 * US); /* waits */
    launch_as(HEC_TRACE_CALL_GRAPH, 100 * US, 4 * US);
    launch_as(HEC_TRACE_CALL_MEMSET, 200 * US, 90 * US); /* queues are not for these */
    synchronise(300 * US, 1000 * US);
    hec_caller_leave(caller, tick(2 * MS), tick(2 * MS + 20 * US), &copies);
    hec_caller_leave(caller, tick(3 * MS), tick(3 * MS + 200 * US), &copies); /* waits */
    hec_caller_leave(caller, tick(4 * MS), tick(5 * MS), &gets);
    struct hec_callers_totals now = totals();
    assert_int_equal(now.calls, 8);
    assert_int_equal(now.launches, 3);
    assert_int_equal(now.graphs, 1);
    assert_int_equal(now.copies, 2);
    assert_line_near(now.waited_ns, 1260 * US);
    assert_int_equal(now.waits, 2); /* not the launches: then the queue is full */
    /* a wait that is under way counts so far */
    __atomic_store_n(&caller->waiting_since, tick(10 * MS), __ATOMIC_RELAXED);
    assert_true(totals().waited_ns >= 1260 * US + 490 * MS);
    synchronise(10 * MS, 20 * MS);
    assert_line_near(totals().waited_ns, 1260 * US + 20 * MS);
    hec_callers_record(false);
    assert_null(hec_caller_enter());
}

/* A kernel each of two handles, in turn; one has a name. */
static void launch_in_turn(int launches) {
    for (int i = 0; i < launches; i++) {
        const struct hec_caller_call call = {.call_class = HEC_TRACE_CALL_LAUNCH, .amount = i % 2 ? 0x100 : 0x200};
        struct hec_caller *caller = hec_caller_enter();
        if (!hec_caller_joined(caller, tick(10 * US * i), tick(10 * US * i + 4 * US), false))
            hec_caller_alone(caller, tick(10 * US * i), tick(10 * US * i + 4 * US), &call);
    }
}

/* Which kernels are launched is drawn at random; nothing else changes by that. */
TEST(test_drawn) {
    enum { DRAWS = 200, EACH = 150 };
    int named = 0, nameless = 0;
    assert_int_equal(hec_functions_open(), 0);
    hec_functions_named(0x100, "a kernel");
    for (int i = 0; i < DRAWS; i++) {
        begin_ns = hec_out_now_ns() - 3 * MS;
        launch_in_turn(EACH);
        hec_callers_sweep(true);
        hec_callers_draw();
        read_ring();
        assert_int_equal(count(HEC_TRACE_CALL), 0);
        assert_int_equal(count(HEC_TRACE_BURST), 1);
        assert_int_equal(burst(0).launches, EACH);
        static char known[HEC_TRAMPOLINES_MAX + 8][16]; /* each is defined once */
        for (uint32_t defined = 1; defined < HEC_TRAMPOLINES_MAX + 8; defined++)
            if (name_of(defined)[0])
                snprintf(known[defined], sizeof known[defined], "%.15s", name_of(defined));
        uint32_t id = burst(0).name;
        assert_int_equal(id != 0, i > 1); /* asked for at first, then drawn, then told */
        named += strcmp(known[id], "a kernel") == 0;
        nameless += strcmp(known[id], "?") == 0;
    }
    assert_int_equal(named + nameless, DRAWS - 2);
    assert_in_range(named, DRAWS / 4, 3 * DRAWS / 4);
    assert_int_equal(totals().launches, DRAWS * EACH);
    /* nobody is asked while each launch is recorded by itself, nor who launches nothing */
    launch_in_turn(EACH);
    hec_callers_single(true);
    hec_callers_draw();
    launch_in_turn(EACH);
    hec_callers_single(false);
    hec_callers_draw();
    hec_callers_draw();
    hec_callers_sweep(true);
    read_ring();
    assert_int_equal(count(HEC_TRACE_CALL), EACH);
    /* of graphs and memsets nothing is drawn, and they do not wait for it for ever */
    for (int draws = 0; draws < 3; draws++) {
        for (int i = 0; i < 70; i++)
            launch_as(i % 2 ? HEC_TRACE_CALL_GRAPH : HEC_TRACE_CALL_MEMSET, i * 10 * US, 4 * US);
        assert_int_equal(hec_caller_enter()->taken, HEC_CALLER_FREE);
        hec_callers_sweep(true);
        hec_callers_draw();
        read_ring();
        assert_int_equal(burst(0).name, 0);
    }
    hec_functions_forget();
}

static struct hec_trace_reported reported(const char *function, enum hec_trace_call_class call_class, int64_t at_ns,
                                          int64_t took_ns) {
    return (struct hec_trace_reported){.start_ns = begin_ns + at_ns,
                                       .end_ns = begin_ns + at_ns + took_ns,
                                       .function = function,
                                       .tid = 4321,
                                       .call_class = (uint16_t)call_class,
                                       .device = 2};
}

TEST(test_reported) {
    begin_ns = hec_out_now_ns() - 2 * MS; /* a simulator tells soon */
    struct hec_trace_reported one = reported("cuLaunchKernel", HEC_TRACE_CALL_LAUNCH, 0, 4 * US);
    hec_callers_reported(&one);
    one = reported("cuLaunchKernel", HEC_TRACE_CALL_LAUNCH, 10 * US, 4 * US);
    hec_callers_reported(&one);
    one = reported("cuMemcpyHtoD_v2", HEC_TRACE_CALL_COPY, 20 * US, 400 * US);
    one.amount = 4096;
    one.stream = 9;
    one.from = HEC_TRACE_MEMORY_PAGEABLE;
    one.to = HEC_TRACE_MEMORY_DEVICE;
    hec_callers_reported(&one);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 1);
    assert_int_equal(burst(0).launches, 2);
    assert_int_equal(burst(0).device, 2);
    assert_int_equal(nth(HEC_TRACE_BURST, 0)->tid, 4321);
    assert_in_range(burst(0).duration_ns, 14 * US - 200, 14 * US + 200); /* the rate is refined meanwhile */
    assert_int_equal(count(HEC_TRACE_CALL), 1);
    assert_string_equal(name_of(call(0).function), "cuMemcpyHtoD_v2");
    assert_int_equal(call(0).amount, 4096);
    assert_int_equal(call(0).stream, 9);
    assert_int_equal(call(0).from, HEC_TRACE_MEMORY_PAGEABLE);
    assert_int_equal(call(0).to, HEC_TRACE_MEMORY_DEVICE);
    assert_int_equal(call(0).device, 2);
    assert_int_equal(totals().calls, 3);
    assert_in_range(totals().waited_ns, 399 * US, 401 * US);
    /* a slot of one's own, though others have come free */
    launch(0, 4 * US);
    one = reported("cuLaunchKernel", HEC_TRACE_CALL_LAUNCH, 600 * US, 4 * US);
    hec_callers_reported(&one);
    one = reported("cuLaunchKernel", HEC_TRACE_CALL_LAUNCH, 610 * US, 4 * US);
    hec_callers_reported(&one);
    hec_callers_sweep(true);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST), 2);
    hec_callers_record(false);
    hec_callers_reported(&one);
    assert_int_equal(totals().calls, 6);
}

/* ---- slots ---- */

#define THREADS (HEC_CALLERS_MAX + 20)

static struct {
    pthread_barrier_t entered, leave;
    struct hec_caller *slots[THREADS];
    bool going; /* atomic */
} group;

static void *enter_twice(void *number) {
    uintptr_t at = (uintptr_t)number;
    group.slots[at] = hec_caller_enter();
    if (hec_caller_enter() != group.slots[at])
        group.slots[at] = (struct hec_caller *)1;
    pthread_barrier_wait(&group.entered);
    pthread_barrier_wait(&group.leave);
    return NULL;
}

static void start_group(pthread_t threads[THREADS], uintptr_t count) {
    pthread_barrier_init(&group.entered, NULL, (unsigned)count + 1);
    pthread_barrier_init(&group.leave, NULL, (unsigned)count + 1);
    for (uintptr_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, enter_twice, (void *)i), 0);
    pthread_barrier_wait(&group.entered);
}

static void end_group(pthread_t threads[THREADS], uintptr_t count) {
    pthread_barrier_wait(&group.leave);
    for (uintptr_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

TEST(test_more_threads_than_slots) {
    static pthread_t threads[THREADS];
    uint32_t none = 0;
    start_group(threads, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        none += group.slots[i] == NULL;
        assert_true(group.slots[i] != (struct hec_caller *)1);
        for (uint32_t k = 0; group.slots[i] && k < i; k++)
            assert_ptr_not_equal(group.slots[i], group.slots[k]);
    }
    assert_int_equal(none, THREADS - HEC_CALLERS_MAX);
    assert_int_equal(hec_callers_left_out(), none);
    hec_attach_report_counts();
    read_ring();
    assert_int_equal(payload(nth(HEC_TRACE_COUNTS, 0)).counts.threads_left_out, none);
    end_group(threads, THREADS);
    /* they have ended, but not for long: a slot may be looked at yet */
    for (uint32_t i = 0; i < THREADS; i++)
        if (group.slots[i])
            group.slots[i]->last_tick = hec_ticks_of(hec_out_now_ns() + 3600 * HEC_NS_PER_S);
    hec_callers_sweep(false);
    assert_null(hec_caller_enter());
}

TEST(test_slots_are_used_again) {
    static pthread_t threads[THREADS];
    launch(0, 4 * US); /* this thread lives on */
    struct hec_caller *mine = hec_caller_enter();
    start_group(threads, 200);
    struct hec_caller *ended = group.slots[0];
    ended->others = 7;
    /* cancelled in a wait, with a burst, while it had the burst */
    ended->burst.launches = 2;
    ended->waiting_since = tick(0);
    ended->busy = true;
    for (int i = 0; i < 200; i++)
        group.slots[i]->last_tick = 1;
    mine->last_tick = 1;
    hec_callers_sweep(false);
    for (int i = 0; i < 200; i++)
        assert_int_not_equal(group.slots[i]->tid, 0); /* all of them live */
    end_group(threads, 200);
    hec_callers_sweep(false);
    assert_int_equal(mine->tid, syscall(SYS_gettid));
    assert_int_equal(ended->tid, 0);
    read_ring();
    assert_int_equal(burst(count(HEC_TRACE_BURST) - 1).launches, 2);
    assert_int_equal(totals().waited_ns, 0);
    assert_int_equal(totals().calls, 1 + 7); /* over the life of the process */
    start_group(threads, 200);
    for (int i = 0; i < 200; i++)
        assert_true(group.slots[i] && !group.slots[i]->busy && !group.slots[i]->taken &&
                    group.slots[i]->burst.launches == 0);
    assert_int_equal(hec_callers_left_out(), 0);
    end_group(threads, 200);
}

static void *enter_once(void *unused) {
    (void)unused;
    return hec_caller_enter();
}

/* In the child nothing is recorded, and what the parent had is forgotten. */
TEST(test_fork) {
    launch(0, 4 * US);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void *theirs;
        hec_callers_forget();
        if (hec_caller_enter() || totals().calls != 0)
            _exit(1);
        hec_callers_record(true);
        /* the first slot is another thread's now */
        if (pthread_create(&thread, NULL, enter_once, NULL) != 0 || pthread_join(thread, &theirs) != 0)
            _exit(2);
        struct hec_caller *mine = hec_caller_enter();
        _exit(!mine || mine == theirs || mine->tid != (uint32_t)syscall(SYS_gettid) ? 3 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(totals().calls, 1);
}

/* Two threads that only call, on one core: each waits for it half of the time, and that is no wait for the device. */
static void *call_on_one_core(void *core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*(int *)core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    pthread_barrier_wait(&group.entered);
    while (__atomic_load_n(&group.going, __ATOMIC_RELAXED))
        launch(0, 1);
    return NULL;
}

TEST(test_delays) {
    if (access("/proc/self/schedstat", R_OK) != 0)
        skip();
    pthread_t threads[2];
    int core = sched_getcpu();
    hec_delay_forget();
    pthread_barrier_init(&group.entered, NULL, 3);
    __atomic_store_n(&group.going, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_on_one_core, &core), 0);
    pthread_barrier_wait(&group.entered);
    int64_t start_ns = hec_out_now_ns(), delay_ns = hec_delay_ns();
    while (hec_out_now_ns() - start_ns < 300 * MS) {
        usleep(50000);
        delay_ns = hec_delay_ns();
    }
    __atomic_store_n(&group.going, false, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_true(delay_ns > 50 * MS);
    /* who calls nothing is not asked */
    assert_true(hec_delay_ns() >= delay_ns);
    delay_ns = hec_delay_ns();
    assert_true(hec_delay_ns() == delay_ns);
    hec_delay_forget();
}

TEST(test_cost) {
    assert_true(hec_callers_cost_ps() > 0);
    read_ring();
    assert_int_equal(count(HEC_TRACE_BURST) + count(HEC_TRACE_CALL), 0);
    assert_int_equal(totals().calls, 0);
}

EACH_TEST(set_up, tear_down)
