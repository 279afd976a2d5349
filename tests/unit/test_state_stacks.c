/* What a stack says of its thread (stacks.def), and what becomes of the states with it. */
#include "diagnose/states/stacks.h"
#include "diagnose/states/state.h"
#include "timeline_run.h"

#define MS INT64_C(1000000)
#define LIB "/usr/lib/python3.11"
#define SITE "/v/lib/python3.11/site-packages"

static char text[4096];
static char samples[512];
static bool busy; /* by telemetry, after the last activity */

static int begin(void **state) {
    timeline_begin(state);
    t.input.end_ns = 1000 * MS;
    fake_tl_kernel(&t, "ampere_sgemm_128x128_tn", 128);
    busy = false;
    return 0;
}

/* Of the frames from the outermost on, "FILE:FUNCTION": the id of the innermost. */
static uint32_t stack(const char *const *frames) {
    uint32_t parent = 0;
    for (; *frames; frames++) {
        char file[128];
        const char *colon = strrchr(*frames, ':');
        snprintf(file, sizeof file, "%.*s", (int)(colon - *frames), *frames);
        uint32_t id = fake_tl_frame(&t, file, colon + 1, 1);
        t.frames[id - 1].parent = parent;
        parent = id;
    }
    return parent;
}
#define STACK(...) stack((const char *const[]){"/home/ann/program.py:main", __VA_ARGS__, NULL})

static enum hec_stack_meaning meaning(uint32_t leaf) {
    struct hec_timeline_tables tables = {0};
    struct hec_stacks stacks;
    assert_int_equal(hec_timeline_tables_load(&t.input, &tables, NULL), 0);
    assert_int_equal(hec_stacks_begin(&stacks, &tables), 0);
    enum hec_stack_meaning found = hec_stacks_meaning(&stacks, leaf);
    assert_int_equal(hec_stacks_meaning(&stacks, leaf), found); /* the second time it is known */
    assert_int_equal(hec_stacks_meaning(&stacks, 4000), HEC_STACK_CODE);
    hec_stacks_free(&stacks);
    hec_timeline_tables_free(&tables);
    begin(NULL);
    return found;
}

static bool framed(uint32_t leaf) {
    struct hec_timeline_tables tables = {0};
    assert_true(leaf > 0);
    assert_int_equal(hec_timeline_tables_load(&t.input, &tables, NULL), 0);
    struct hec_stacks stacks = {.tables = &tables};
    bool is = hec_stacks_framed(&stacks);
    hec_timeline_tables_free(&tables);
    begin(NULL);
    return is;
}

TEST(loop_of_a_framework) {
    assert_true(framed(
        STACK(SITE "/lightning/pytorch/loops/fit_loop.py:_FitLoop.advance", "/home/ann/program.py:training_step")));
    assert_true(framed(STACK(SITE "/pytorch_lightning/loops/fit_loop.py:advance")));
    assert_true(
        framed(STACK(SITE "/transformers/trainer.py:Trainer._inner_training_loop", SITE "/torch/optim/adamw.py:step")));
    assert_false(framed(STACK(SITE "/lightning/pytorch/loops/fit_loop.py:<module>"))); /* is imported */
    assert_false(framed(STACK(SITE "/transformers/trainer.py:predict")));
    assert_false(framed(STACK("/home/ann/fit.py:advance")));
}

TEST(waits_for_requests) {
    assert_int_equal(meaning(STACK(LIB "/queue.py:get", LIB "/threading.py:wait")), HEC_STACK_REQUESTS);
    assert_int_equal(meaning(STACK(LIB "/queue.py:Queue.get", LIB "/threading.py:Condition.wait")), HEC_STACK_REQUESTS);
    assert_int_equal(
        meaning(STACK(LIB "/asyncio/base_events.py:BaseEventLoop._run_once", LIB "/selectors.py:EpollSelector.select")),
        HEC_STACK_REQUESTS);
    assert_int_equal(meaning(STACK(LIB "/socketserver.py:serve_forever", LIB "/selectors.py:select")),
                     HEC_STACK_REQUESTS);
    assert_int_equal(meaning(STACK(LIB "/socket.py:accept")), HEC_STACK_REQUESTS);
    assert_int_equal(meaning(STACK(LIB "/multiprocessing/connection.py:poll", LIB "/multiprocessing/connection.py:wait",
                                   LIB "/selectors.py:select")),
                     HEC_STACK_REQUESTS);
    assert_int_equal(meaning(STACK(LIB "/concurrent/futures/thread.py:_worker")), HEC_STACK_REQUESTS);
}

TEST(does_not_wait_for_requests) {
    assert_int_equal(meaning(STACK(LIB "/queue.py:get")), HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(LIB "/threading.py:wait")), HEC_STACK_CODE); /* who is to set that is not known */
    assert_int_equal(meaning(STACK(LIB "/threading.py:join", LIB "/threading.py:wait")), HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(LIB "/subprocess.py:wait", LIB "/selectors.py:select")), HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(LIB "/asyncio/base_events.py:_run_once", "/home/ann/program.py:handle")),
                     HEC_STACK_CODE);
    assert_int_equal(meaning(0), HEC_STACK_CODE);
    /* a loader's own queue */
    assert_int_equal(
        meaning(STACK(SITE "/torch/utils/data/dataloader.py:__next__", LIB "/multiprocessing/queues.py:get",
                      LIB "/multiprocessing/connection.py:wait", LIB "/selectors.py:select")),
        HEC_STACK_DATA);
}

TEST(shards) {
    assert_int_equal(meaning(STACK("/home/ann/train.py:main", SITE "/torch/nn/modules/module.py:_call_impl",
                                   SITE "/torch/distributed/fsdp/_fully_shard/_fsdp_state.py:_pre_forward",
                                   SITE "/torch/distributed/distributed_c10d.py:all_gather_into_tensor")),
                     HEC_STACK_SHARDS);
    assert_int_equal(meaning(STACK(SITE "/torch/distributed/fsdp/_runtime_utils.py:_pre_forward_unshard",
                                   SITE "/torch/_ops.py:__call__")),
                     HEC_STACK_SHARDS);
    /* what FSDP 1 wraps is the model's own */
    assert_int_equal(meaning(STACK(SITE "/torch/distributed/fsdp/fully_sharded_data_parallel.py:forward",
                                   "/home/ann/model.py:forward")),
                     HEC_STACK_CODE);
    assert_int_equal(
        meaning(STACK("/home/ann/train.py:main", SITE "/torch/distributed/distributed_c10d.py:all_reduce")),
        HEC_STACK_PEERS);
}

TEST(compiles) {
    assert_int_equal(
        meaning(STACK(SITE "/torch/_dynamo/eval_frame.py:_fn", SITE "/torch/_dynamo/convert_frame.py:_compile",
                      SITE "/torch/fx/graph.py:python_code")),
        HEC_STACK_COMPILE);
    assert_int_equal(meaning(STACK(SITE "/torch/_inductor/codegen/triton.py:codegen_kernel")), HEC_STACK_COMPILE);
    assert_int_equal(meaning(STACK(SITE "/triton/compiler/compiler.py:compile", LIB "/subprocess.py:run")),
                     HEC_STACK_COMPILE);
    assert_int_equal(meaning(STACK(SITE "/jax/_src/compiler.py:backend_compile")), HEC_STACK_COMPILE);
    assert_int_equal(
        meaning(STACK(SITE "/torch/_inductor/async_compile.py:wait", LIB "/queue.py:get", LIB "/threading.py:wait")),
        HEC_STACK_COMPILE); /* of the worker that compiles */
    /* code that was compiled runs below these */
    assert_int_equal(meaning(STACK(SITE "/torch/_dynamo/eval_frame.py:_fn", "/home/ann/program.py:forward")),
                     HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(SITE "/torch/_inductor/output_code.py:__call__")), HEC_STACK_CODE);
    /* it is imported */
    assert_int_equal(meaning(STACK(SITE "/torch/_dynamo/convert_frame.py:<module>")), HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(SITE "/torch/_dynamo/variables/base.py:<module>",
                                   SITE "/torch/_dynamo/variables/base.py:VariableTracker")),
                     HEC_STACK_CODE);
}

TEST(launches) {
    assert_int_equal(
        meaning(STACK(SITE "/jax/_src/core.py:Primitive.bind", SITE "/jax/_src/dispatch.py:apply_primitive")),
        HEC_STACK_OPERATION);
    assert_int_equal(meaning(STACK(SITE "/jax/_src/api.py:device_put", SITE "/jax/_src/dispatch.py:_device_put_impl")),
                     HEC_STACK_PUT);
    assert_true(hec_stack_launches(HEC_STACK_LAUNCH) && hec_stack_launches(HEC_STACK_OPERATION) &&
                hec_stack_launches(HEC_STACK_PUT) && !hec_stack_launches(HEC_STACK_SYNC));
    assert_int_equal(meaning(STACK(SITE "/torch/nn/modules/module.py:Module._call_impl",
                                   SITE "/torch/nn/modules/linear.py:Linear.forward")),
                     HEC_STACK_LAUNCH);
    assert_int_equal(meaning(STACK(SITE "/transformers/trainer.py:Trainer._run_epoch")), HEC_STACK_LAUNCH);
    /* what it calls does something else, or it does so itself */
    assert_int_equal(meaning(STACK(SITE "/torch/nn/modules/module.py:_call_impl", "/home/ann/program.py:forward")),
                     HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(SITE "/transformers/trainer.py:Trainer.log", SITE "/tqdm/std.py:write")),
                     HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(SITE "/transformers/models/bert/tokenization_bert.py:tokenize")), HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(SITE "/torch/serialization.py:save")), HEC_STACK_CODE);
    assert_int_equal(meaning(STACK(SITE "/torch/nn/modules/__init__.py:<module>")), HEC_STACK_CODE); /* is imported */
}

TEST(waits_for_arrays) {
    assert_int_equal(meaning(STACK(SITE "/jax/_src/array.py:ArrayImpl.__float__", SITE "/jax/_src/profiler.py:wrapper",
                                   SITE "/jax/_src/array.py:ArrayImpl._value")),
                     HEC_STACK_SYNC);
    assert_int_equal(meaning(STACK(SITE "/jax/_src/array.py:ArrayImpl.__array__", SITE "/jax/_src/array.py:_value")),
                     HEC_STACK_FETCH);
    assert_int_equal(meaning(STACK(SITE "/jax/_src/api.py:block_until_ready")), HEC_STACK_SYNC);
}

TEST(a_circle_of_parents_ends) {
    uint32_t leaf = STACK(LIB "/selectors.py:select");
    t.frames[0].parent = leaf;
    assert_int_equal(meaning(leaf), HEC_STACK_CODE);
}

/* ---- states ---- */

static void kernel(int64_t start, int64_t end, uint32_t by) {
    struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, start * MS, end * MS);
    a->name = 1;
    fake_tl_launched(a, start * MS - 5000, start * MS, by);
}

static void sample_of(uint32_t track, int64_t at, uint32_t frame) {
    fake_tl_add(&t, HEC_ACTIVITY_STACK, track, at * MS, (at + 10) * MS)->name = frame;
}

static void sample(int64_t at, uint32_t frame) {
    sample_of(thread, at, frame);
}

static int take_piece(void *context, int index, const struct hec_state_piece *p) {
    static enum hec_state last;
    size_t at = strlen(text);
    (void)context, (void)index;
    if (p->end_ns - p->start_ns < MS || (at && p->state == last)) /* launching; cut by a sample */
        return 0;
    last = p->state;
    snprintf(text + at, sizeof text - at, "%s%s %.0f", at ? ", " : "", hec_state_name(p->state),
             (double)p->start_ns / (double)MS);
    return 0;
}

static int take_sample(void *context, int index, const struct hec_state_sample *s) {
    size_t at = strlen(samples);
    (void)context, (void)index;
    snprintf(samples + at, sizeof samples - at, "%s%s %.0f", at ? ", " : "", hec_state_name(s->state),
             (double)s->t_ns / (double)MS);
    return 0;
}

static char besides[256];

static int take_beside(void *context, int index, const struct hec_state_sample *s) {
    size_t at = strlen(besides);
    (void)context, (void)index;
    assert_int_equal(s->state, HEC_STATE_COMPUTE);
    snprintf(besides + at, sizeof besides - at, "%s%.0f", at ? ", " : "", (double)s->t_ns / (double)MS);
    return 0;
}

static bool works(void *context, int index, int64_t from_ns) {
    (void)context, (void)index;
    assert_true(from_ns > 0 && from_ns < t.input.end_ns);
    return busy;
}

/* States of 1 ms and more, each with where it begins. */
static void expect(const char *expected) {
    const struct hec_state_visitor visitor = {
        .piece = take_piece, .sample = take_sample, .beside = take_beside, .works = works};
    text[0] = samples[0] = besides[0] = '\0';
    assert_int_equal(fake_pass_states(&t.input, NULL, &visitor, NULL), 0);
    assert_string_equal(text, expected);
    begin(NULL);
}

/* A stretch goes by its samples: its beginning by the first, each moment by the last. One without a sample goes by the stretch
 * before. */
TEST(no_work_to_do) {
    uint32_t get = STACK(LIB "/queue.py:get", LIB "/threading.py:wait"), own = STACK("/home/ann/program.py:decode");
    kernel(10, 100, thread);
    sample(110, get);
    sample(150, own);
    kernel(200, 300, thread);
    sample(350, get);
    kernel(400, 410, thread);
    kernel(420, 430, thread); /* too short to be sampled */
    sample(700, own);
    kernel(900, 1000, thread);
    expect(
        "startup 0, compute 10, requests 100, host 150, compute 200, requests 300, compute 400, requests 410, compute 420, "
        "host 430, compute 900");
    assert_string_equal(samples, "requests 110, host 150, requests 350, host 700");
}

/* Each once, however many pieces its stretch is in. */
TEST(while_the_device_computes) {
    uint32_t own = STACK("/home/ann/program.py:decode");
    sample(5, own);
    kernel(10, 20, thread);
    kernel(20, 30, thread);
    kernel(30, 60, thread);
    sample(35, own);
    sample(45, own);
    sample(50, own);
    sample(60, own);
    kernel(100, 130, thread);
    sample(129, own);
    kernel(130, 200, thread);
    kernel(300, 400, thread);
    sample(399, own);
    expect("startup 0, compute 10, host 60, compute 100, host 200, compute 300, tail 400");
    assert_string_equal(besides, "35, 45, 50, 129, 399");
    assert_string_equal(samples, "startup 5, host 60");
}

TEST(only_of_the_thread_that_launches) {
    uint32_t get = STACK(LIB "/queue.py:get", LIB "/threading.py:wait");
    kernel(10, 100, second_thread);
    sample(110, get);
    kernel(200, 1000, second_thread); /* another thread held the device up, and nobody looked at it */
    expect("startup 0, compute 10, host 100, compute 200");
}

/* A server's main thread waits for its workers, which wait for requests. */
TEST(a_worker_that_launches_explains) {
    uint32_t get = STACK(LIB "/queue.py:get", LIB "/threading.py:wait"), join = STACK(LIB "/threading.py:join");
    for (int at = 0; at < 1000; at += 10) {
        sample_of(thread, at, join);
        sample_of(second_thread, at + 1, get);
    }
    kernel(10, 100, second_thread);
    kernel(200, 1000, second_thread);
    expect("startup 0, compute 10, requests 100, compute 200");
}

/* A thread of C that calls Python now and then, as autograd's do. */
TEST(a_thread_that_seldom_runs_python_explains_nothing) {
    uint32_t get = STACK(LIB "/queue.py:get", LIB "/threading.py:wait"), own = STACK("/home/ann/program.py:decode");
    sample_of(second_thread, 5, get);
    for (int at = 0; at < 1000; at += 10)
        sample(at, own);
    kernel(10, 100, second_thread);
    kernel(200, 1000, second_thread);
    expect("startup 0, compute 10, host 100, compute 200");
}

TEST(who_trains_waits_for_input) {
    uint32_t get = STACK(LIB "/queue.py:get", LIB "/threading.py:wait");
    for (int i = 0; i < 2; i++)
        fake_tl_add(&t, HEC_ACTIVITY_STEP, process, (20 + 100 * i) * MS, (90 + 100 * i) * MS)->detail =
            HEC_STEP_OPTIMIZER;
    kernel(10, 100, thread);
    sample(110, get);
    kernel(200, 300, thread);
    sample(400, get); /* the end is no input */
    expect("startup 0, compute 10, data 100, compute 200, tail 300");
}

TEST(frameworks_launch_and_wait) {
    uint32_t dispatch = STACK(SITE "/jax/_src/dispatch.py:apply_primitive"), own = STACK("/home/ann/program.py:main");
    uint32_t value = STACK(SITE "/jax/_src/array.py:__float__", SITE "/jax/_src/array.py:_value");
    kernel(10, 100, thread);
    sample(110, dispatch);
    kernel(200, 300, thread);
    sample(310, value);
    kernel(400, 500, thread);
    sample(510, own);
    kernel(600, 1000, thread);
    expect("startup 0, compute 10, launch 100, compute 200, sync 300, compute 400, host 500, compute 600");
}

/* What a framework's operators are sampled in says nothing of what the program does between its steps. */
TEST(a_brief_stretch_stands_for_no_long_one) {
    uint32_t dispatch = STACK(SITE "/torch/nn/functional.py:layer_norm"), own = STACK("/home/ann/program.py:ordered");
    kernel(10, 100, thread);
    sample(110, own);
    kernel(200, 300, thread);
    fake_tl_add(&t, HEC_ACTIVITY_STACK, thread, 300 * MS + 50000, 310 * MS)->name = dispatch;
    struct hec_activity *next = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 300 * MS + 100000, 400 * MS);
    next->name = 1;
    fake_tl_launched(next, 300 * MS + 95000, 300 * MS + 100000, thread);
    kernel(500, 600, thread); /* no sample between */
    kernel(610, 1000, thread);
    expect("startup 0, compute 10, host 100, compute 200, host 400, compute 500, host 600, compute 610");
}

TEST(compiling_is_startup) {
    uint32_t compile = STACK("/x/torch/_dynamo/convert_frame.py:_compile");
    kernel(10, 100, thread);
    sample(110, compile);
    kernel(200, 210, thread);
    kernel(220, 300, thread); /* nobody knows */
    sample(400, compile);     /* the run was cut in it */
    expect("startup 0, compute 10, startup 100, compute 200, host 210, compute 220, startup 300");
}

/* It still waits for requests; and it has begun something that has not ended. */
TEST(after_the_last_activity) {
    for (busy = false;; busy = true) {
        bool was = busy;
        uint32_t get = STACK(LIB "/queue.py:get", LIB "/threading.py:wait");
        sample(5, get); /* the device is not yet used */
        kernel(10, 100, thread);
        sample(200, get);
        expect(was ? "startup 0, compute 10" : "startup 0, compute 10, requests 100");
        assert_string_equal(samples, was ? "startup 5, tail 200" : "startup 5, requests 200");
        if (was)
            break;
    }
}

EACH_TEST(begin, NULL)
