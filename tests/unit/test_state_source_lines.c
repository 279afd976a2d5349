/* Which frame of a stack is blamed, and how samples become shares, seconds and joules of lines. */
#include "diagnose/states/source_lines.h"
#include "diagnose/timeline/tables.h"
#include "fake_timeline.h"
#include "unit.h"

static const struct hec_frame *frames;
static uint32_t frame_count;

static int give_frames(void *context, int (*visit)(void *to, const struct hec_frame *frame), void *to,
                       struct hec_why *why) {
    int err = 0;
    (void)context, (void)why;
    for (uint32_t i = 0; i < frame_count && !err; i++)
        err = visit(to, &frames[i]);
    return err;
}

static struct fake_timeline t;
static struct hec_timeline_tables tables;
static struct hec_source_builder *b;
static struct hec_source_lines out;

TEST(ranks) {
    assert_int_equal(hec_source_rank("/home/ann/train.py"), 0);
    assert_int_equal(hec_source_rank("<stdin>"), 0);
    assert_int_equal(hec_source_rank("/tmp/ipykernel_12/34.py"), 0);
    assert_int_equal(hec_source_rank("/home/ann/torch_things/train.py"), 0);
    assert_int_equal(hec_source_rank("/usr/lib/python3/dist-packages/numpy/core.py"), 1);
    assert_int_equal(hec_source_rank("/venv/lib/python3.11/site-packages/transformers/trainer.py"), 1);
    assert_int_equal(hec_source_rank("/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"), 2);
    assert_int_equal(hec_source_rank("/usr/lib/python3.11/threading.py"), 2);
    assert_int_equal(hec_source_rank("<frozen importlib._bootstrap>"), 2);
    assert_int_equal(hec_source_rank(""), 2);
}

enum { STEP = 1, LOADER, QUEUE, HELPER, TRAINER, THREAD, DEEP };

static void begin(struct hec_frame list[8]) {
    fake_tl_init(&t);
    uint32_t train = fake_tl_name(&t, "/home/ann/train.py"),
             thread = fake_tl_name(&t, "/usr/lib/python3.11/threading.py");
    uint32_t torch = fake_tl_name(&t, "/v/lib/python3.11/site-packages/torch/utils/data/dataloader.py");
    uint32_t trainer = fake_tl_name(&t, "/v/lib/python3.11/site-packages/transformers/trainer.py");
    uint32_t main = fake_tl_name(&t, "main"), next = fake_tl_name(&t, "__next__"), wait = fake_tl_name(&t, "wait");
    const struct hec_frame made[] = {
        {.id = STEP, .file = train, .function = main, .line = 40},
        {.id = LOADER, .parent = STEP, .file = torch, .function = next, .line = 700},
        {.id = QUEUE, .parent = LOADER, .file = thread, .function = wait, .line = 320},
        {.id = HELPER, .parent = STEP, .file = train, .function = next, .line = 12},
        {.id = TRAINER, .file = trainer, .function = next, .line = 1900},
        {.id = THREAD, .parent = TRAINER, .file = thread, .function = wait, .line = 320},
        {.id = DEEP, .file = thread, .function = wait, .line = 99},
        {.id = 8, .parent = HELPER, .file = train, .function = main, .line = 40}, /* the same place, another stack */
    };
    memcpy(list, made, sizeof made);
    frames = list;
    frame_count = 8;
    t.input.frames = give_frames;
}

/* A builder, of the frames that there are now. */
static void start(void) {
    hec_timeline_tables_free(&tables);
    assert_int_equal(hec_timeline_tables_load(&t.input, &tables, NULL), 0);
    assert_non_null(b = hec_source_begin(&tables));
}

static void end(const struct hec_ledger *ledger, int most, int count) {
    hec_source_lines_free(&out);
    assert_int_equal(hec_source_end(b, ledger, most, &out), 0);
    assert_int_equal(out.count, count);
}

static int sample(int device, enum hec_state state, uint32_t frame, int64_t period) {
    const struct hec_state_sample s = {.t_ns = 5, .period_ns = period, .frame = frame, .state = (uint8_t)state};
    return hec_source_sample(b, device, &s);
}

TEST(lines) {
    struct hec_frame list[8];
    struct hec_ledger_device ledger_device = {.device = 1};
    const struct hec_ledger ledger = {&ledger_device, 1};
    ledger_device.rows[HEC_STATE_DATA].seconds = 8;
    ledger_device.rows[HEC_STATE_DATA].joules = 960;
    begin(list);
    start();
    for (int i = 0; i < 100; i++) { /* the loader waits below line 40 of train.py: that line is blamed */
        assert_int_equal(sample(1, HEC_STATE_DATA, QUEUE, 20), 0);
        assert_int_equal(sample(1, HEC_STATE_DATA, 8, 20), 0);
        assert_int_equal(sample(1, HEC_STATE_DATA, HELPER, 40), 0);
        assert_int_equal(sample(0, HEC_STATE_HOST, THREAD, 20), 0);
    }
    assert_int_equal(sample(0, HEC_STATE_HOST, DEEP, 20), 0);
    assert_int_equal(sample(0, HEC_STATE_HOST, 77, 20), 0); /* no such frame: nobody is blamed */
    assert_int_equal(sample(0, HEC_STATE_HOST, 0, 20), 0);
    end(&ledger, 5, 4);
    assert_int_equal(out.lines[0].device, 0);
    assert_string_equal(out.lines[0].file, "/v/lib/python3.11/site-packages/transformers/trainer.py");
    assert_true(fabs(out.lines[0].share - 100.0 / 101) < 1e-12 && isnan(out.lines[0].seconds));
    assert_string_equal(out.lines[1].file, "/usr/lib/python3.11/threading.py");
    assert_int_equal(out.lines[1].line, 99);
    const struct hec_source_line *first = &out.lines[2], *second = &out.lines[3];
    if (first->line != 12) {
        first = &out.lines[3];
        second = &out.lines[2];
    }
    assert_int_equal(second->line, 40);
    assert_int_equal(second->samples, 200);
    assert_string_equal(second->function, "main");
    assert_int_equal(first->samples, 100);
    for (int i = 2; i < 4; i++) {
        assert_int_equal(out.lines[i].state, HEC_STATE_DATA);
        assert_true(out.lines[i].share == 0.5 && out.lines[i].seconds == 4 && out.lines[i].joules == 480);
    }
    start();
    for (uint32_t i = 0; i < 3; i++)
        sample(0, HEC_STATE_HOST, 1 + 3 * i, 10);
    end(NULL, 2, 2); /* the most that was asked for */
}

/* The line of the call that waited is blamed, not what ran after it; that only where nothing better is known. */
TEST(waiting) {
    for (int known = 0; known < 2; known++) {
        struct hec_frame list[8];
        begin(list);
        start();
        for (int i = 0; i < 9; i++)
            sample(0, HEC_STATE_SYNC, STEP, 20);
        sample(1, HEC_STATE_SYNC, STEP, 20); /* another device */
        const struct hec_state_sample in_call = {
            .period_ns = 20, .frame = HELPER, .state = HEC_STATE_SYNC, .waiting = true};
        if (known)
            assert_int_equal(hec_source_sample(b, 0, &in_call), 0);
        end(NULL, 5, 2);
        assert_int_equal(out.lines[0].line, known ? 12 : 40);
        assert_true(out.lines[0].share == 1 && out.lines[0].state == HEC_STATE_SYNC);
        assert_int_equal(out.lines[1].device, 1);
        assert_int_equal(out.lines[1].line, 40);
    }
}

/* Thousands of places and states: nothing is lost in the table. */
TEST(many) {
    static struct hec_frame list[5000];
    fake_tl_init(&t);
    uint32_t file = fake_tl_name(&t, "train.py"), function = fake_tl_name(&t, "f");
    for (uint32_t i = 0; i < 5000; i++)
        list[i] = (struct hec_frame){.id = i + 1, .parent = i, .file = file, .function = function, .line = (int)i};
    frames = list;
    frame_count = 5000;
    t.input.frames = give_frames;
    start();
    for (uint32_t i = 0; i < 15000; i++)
        assert_int_equal(sample((int)(i % 2), (enum hec_state)(3 + i % 3), 1 + i % 5000, 10 + i % 5000), 0);
    hec_source_lines_free(&out);
    assert_int_equal(hec_source_end(b, NULL, 10000, &out), 0);
    double sums[2][HEC_STATE_COUNT] = {{0}};
    int64_t samples = 0;
    for (int i = 0; i < out.count; i++) {
        const struct hec_source_line *l = &out.lines[i];
        sums[l->device][l->state] += l->share;
        samples += l->samples;
        if (i && out.lines[i - 1].device == l->device && out.lines[i - 1].state == l->state)
            assert_true(out.lines[i - 1].share >= l->share);
    }
    assert_int_equal(samples, 15000);
    for (int d = 0; d < 2; d++)
        for (int s = 3; s < 6; s++)
            assert_true(fabs(sums[d][s] - 1) < 1e-9);
}

/* Parents that go in circles, and none at all. */
TEST(damaged) {
    static const struct hec_frame list[] = {{.id = 1, .parent = 2, .file = 1},
                                            {.id = 2, .parent = 1, .file = 1},
                                            {.id = 3, .parent = 9000000, .file = 900},
                                            {.id = 4000000000u}};
    fake_tl_init(&t);
    fake_tl_name(&t, "<frozen importlib._bootstrap>");
    frames = list;
    frame_count = 4;
    t.input.frames = give_frames;
    start();
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(sample(0, HEC_STATE_HOST, i, 10), 0);
    assert_int_equal(sample(0, HEC_STATE_HOST, 4000000000u, 10), 0);
    end(NULL, 9, 2);
}
