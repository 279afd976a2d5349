/* Which range or operator launched the kernels of a device: by hand, and for random nested ranges by asking every one. */
#include "diagnose/states/source_modules.h"
#include "timeline_run.h"

static struct hec_source_modules out;

static int begin(void **state) {
    timeline_begin(state);
    fake_tl_kernel(&t, "sgemm", 128);
    return 0;
}

static void range(enum hec_activity_kind kind, uint32_t on, const char *name, int64_t start, int64_t end) {
    uint32_t id = fake_tl_name(&t, name);
    fake_tl_add(&t, kind, on, start, end)->name = id;
}

static void launch(enum hec_activity_kind kind, uint32_t by, int64_t at, int64_t start, int64_t end) {
    struct hec_activity *a = fake_tl_add(&t, kind, stream, start, end);
    a->name = kind == HEC_ACTIVITY_KERNEL;
    fake_tl_launched(a, at, at + 1, by);
}

static int modules(int most) {
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    hec_source_modules_free(&out);
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    struct hec_source_modules_builder *builder = hec_source_modules_begin(&pass.tables, &consumer);
    assert_non_null(builder);
    int err = hec_pass_run(&pass, &consumer, 1, NULL);
    if (!err)
        err = hec_source_modules_end(builder, most, &out);
    else
        hec_source_modules_abandon(builder);
    hec_pass_close(&pass);
    return err;
}

TEST(by_hand) {
    range(HEC_ACTIVITY_RANGE, thread, "forward", 0, 100);
    range(HEC_ACTIVITY_RANGE, thread, "layer1", 10, 50);
    range(HEC_ACTIVITY_OPERATOR, thread, "aten::conv2d", 20, 40); /* the range around it is the better name */
    range(HEC_ACTIVITY_OPERATOR, second_thread, "backward", 0, 100);
    range(HEC_ACTIVITY_OPERATOR, second_thread, "aten::mm", 10, 40);
    launch(HEC_ACTIVITY_KERNEL, thread, 25, 1000, 1100); /* long after its range has ended */
    launch(HEC_ACTIVITY_KERNEL, thread, 50, 1100, 1110); /* layer1 has just ended */
    launch(HEC_ACTIVITY_GRAPH, second_thread, 30, 1110, 1150);
    launch(HEC_ACTIVITY_KERNEL, thread, 100, 1150, 1200); /* no range */
    launch(HEC_ACTIVITY_COPY, thread, 25, 1200, 1900);
    assert_int_equal(modules(9), 0);
    assert_int_equal(out.count, 3);
    assert_string_equal(out.modules[0].name, "layer1");
    assert_int_equal(out.modules[0].by, HEC_ACTIVITY_RANGE);
    assert_true(out.modules[0].share == 0.5 && out.modules[0].launches == 1);
    assert_string_equal(out.modules[1].name, "backward");
    assert_int_equal(out.modules[1].by, HEC_ACTIVITY_OPERATOR);
    assert_string_equal(out.modules[2].name, "forward");
    assert_int_equal(modules(1), 0);
    assert_int_equal(out.count, 1);
    t.fail_pass = t.passes + 2;
    assert_int_equal(modules(1), HEC_ERR_CORRUPT);
}

struct node {
    int64_t start, end;
    char name[8];
};

static int nest(struct node *nodes, int count, int64_t from, int64_t to, int depth) {
    while (from < to && count < 40 && depth < 6) {
        int64_t start = from + random_below(6), end = start + 1 + random_below(60);
        if (end > to)
            break;
        struct node *n = &nodes[count++];
        n->start = start;
        n->end = end;
        snprintf(n->name, sizeof n->name, "n%u", random_below(12));
        range(HEC_ACTIVITY_RANGE, thread, n->name, start, end);
        count = nest(nodes, count, start + 1, end, depth + 1);
        from = end;
    }
    return count;
}

TEST(by_asking) {
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct node nodes[40];
        int64_t sums[12] = {0};
        random_state = seed * 0x9e3779b97f4a7c15u;
        begin(NULL);
        int count = nest(nodes, 0, 0, 300, 0);
        for (int k = 0; k < 60; k++) {
            int64_t at = random_below(300), start = at + random_below(200), length = random_below(9),
                    shortest = INT64_MAX;
            int best = -1;
            launch(HEC_ACTIVITY_KERNEL, thread, at, start, start + length);
            for (int i = 0; i < count; i++)
                if (nodes[i].start <= at && at < nodes[i].end && nodes[i].end - nodes[i].start < shortest) {
                    shortest = nodes[i].end - nodes[i].start;
                    best = atoi(nodes[i].name + 1);
                }
            if (best >= 0)
                sums[best] += length;
        }
        assert_int_equal(modules(99), 0);
        for (int i = 0; i < out.count; i++)
            sums[atoi(out.modules[i].name + 1)] -= llround(out.modules[i].seconds * 1e9);
        for (int i = 0; i < 12; i++)
            assert_int_equal(sums[i], 0);
    }
}

EACH_TEST(begin, NULL)
