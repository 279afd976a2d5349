/* Where a program's main threads were: by all their samples, whatever devices did. */
#include "diagnose/states/program_lines.h"
#include "diagnose/timeline/pass.h"
#include "timeline_run.h"

static struct hec_source_lines out;

static void sample(uint32_t track, int64_t at, int64_t stands, uint32_t frame) {
    fake_tl_add(&t, HEC_ACTIVITY_STACK, track, at, at + stands)->name = frame;
}

static int lines(int most) {
    struct hec_pass pass;
    struct hec_pass_consumer consumer;
    hec_source_lines_free(&out);
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    struct hec_program_lines_builder *builder = hec_program_lines_begin(&pass.tables, &consumer);
    assert_non_null(builder);
    int err = hec_pass_run(&pass, &consumer, 1, NULL);
    if (!err)
        err = hec_program_lines_end(builder, most, &out);
    else
        hec_program_lines_abandon(builder);
    hec_pass_close(&pass);
    return err;
}

TEST(by_the_time_that_samples_stand_for) {
    uint32_t load = fake_tl_frame(&t, "/home/ann/train.py", "load", 7),
             step = fake_tl_frame(&t, "/home/ann/train.py", "step", 9);
    sample(thread, 10, 10, load);
    sample(thread, 20, 30, step);
    sample(second_thread, 25, 900, load); /* no main thread */
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 15, 60);
    assert_int_equal(lines(9), 0);
    assert_int_equal(out.count, 2);
    assert_string_equal(out.lines[0].function, "step");
    near(out.lines[0].share, 0.75);
    assert_int_equal(out.lines[0].samples, 1);
    assert_true(isnan(out.lines[0].seconds) && isnan(out.lines[0].joules));
    assert_int_equal(out.lines[1].line, 7);
    assert_int_equal(lines(1), 0);
    assert_int_equal(out.count, 1);
}

/* Of two processes one is in a line for three quarters of the time, and alone in another. */
TEST(whose_lines_they_are) {
    uint32_t other = fake_tl_track(&t, HEC_TRACK_THREAD, 99, -1, 99);
    uint32_t both = fake_tl_frame(&t, "/home/ann/train.py", "step", 9),
             one = fake_tl_frame(&t, "/home/ann/train.py", "late", 8);
    int32_t pid = t.tracks[thread].pid;
    sample(thread, 10, 10, both);
    sample(other, 12, 10, one);
    sample(other, 30, 30, both);
    assert_int_equal(lines(9), 0);
    assert_int_equal(out.count, 2);
    assert_true(out.lines[0].pid == 99 && pid != 99);
    near(out.lines[0].lead, 0.5);
    assert_true(out.lines[1].pid == 99);
    near(out.lines[1].lead, 1);
}

TEST(no_samples) {
    assert_int_equal(lines(9), 0);
    assert_int_equal(out.count, 0);
}

EACH_TEST(timeline_begin, NULL)

static int release(void **state) {
    timeline_begin(state);
    fake_tl_free(&t);
    hec_source_lines_free(&out);
    return 0;
}
ALL_TESTS(NULL, release)
