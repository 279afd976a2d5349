/* What a command prints: lines that come in parts, bars that are drawn anew, files that are cut, copies with a gap. */
#include "observe/collector.h"
#include "tests/unit/kept.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct hec_observe_options options;
    struct hec_observe_printed from;
    struct hec_printed_unit units[2];
    void *collector;
    struct hec_why why;
    int write_fd;
} world;

static void begin(bool file) {
    char path[] = "/tmp/hec-printed-XXXXXX";
    int fd[2];
    if (file) {
        fd[0] = world.write_fd = mkstemp(path);
        unlink(path);
    } else {
        assert_int_equal(pipe2(fd, O_NONBLOCK), 0);
        world.write_fd = fd[1];
    }
    world.from = (struct hec_observe_printed){.fd = fd[0], .file = file, .replaced = -1};
    world.options = (struct hec_observe_options){
        .printed = &world.from, .printed_count = 1, .printed_units = world.units, .printed_unit_count = 2};
    assert_int_equal(hec_printed_parse("tok/s=tok/s: ([0-9]+)", &world.units[0], &world.why), HEC_OK);
    assert_int_equal(hec_printed_parse("it/s=tqdm", &world.units[1], &world.why), HEC_OK);
    kept_clear();
    assert_int_equal(hec_collector_printed.open(&world.options, &keeping, &world.collector, &world.why), HEC_OK);
}

static void print(const char *text, int64_t now_ns) {
    assert_int_equal(write(world.write_fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_true(hec_collector_printed.poll(world.collector, now_ns) > now_ns);
}

static void end(void) {
    hec_collector_printed.close(world.collector);
    close(world.write_fd);
    if (!world.from.file)
        close(world.from.fd);
}

/* The nth number of a unit, in millionths; -1: there is none. */
static int64_t number(int unit, int nth) {
    for (int i = 0; i < kept.samples; i++)
        if (kept.sample[i].metric == HEC_PRINTED && kept.sample[i].subject == unit && nth-- == 0)
            return kept.sample[i].value;
    return -1;
}

TEST(test_lines_in_parts_and_bars) {
    begin(false);
    print("tok/s: 12", 100);
    assert_int_equal(number(0, 0), -1);
    print("34\ntok/s: 5\n\r 1%| | 1/9 [00:01<00:08, 2.00it/s]", 200);
    assert_int_equal(number(0, 0), 1234000000);
    assert_int_equal(number(0, 1), 5000000);
    assert_int_equal(number(1, 0), -1);
    print("\r 2%| | 2/9 [00:02<00:07, 3.00it/s]", 300);
    assert_int_equal(number(1, 0), 2000000);
    hec_collector_printed.finish(world.collector, 400);
    assert_int_equal(number(1, 1), 3000000);
    end();
}

TEST(test_a_gap_in_the_copy_makes_no_number) {
    static const char lost[] = "tok/s: 12\0 more\ntok/s: 7\n";
    begin(false);
    assert_int_equal(write(world.write_fd, lost, sizeof lost - 1), (ssize_t)sizeof lost - 1);
    hec_collector_printed.poll(world.collector, 100);
    assert_int_equal(number(0, 0), 7000000);
    assert_int_equal(number(0, 1), -1);
    end();
}

TEST(test_a_file_that_is_cut) {
    begin(true);
    print("tok/s: 1\ntok/s: 2\n", 100);
    assert_int_equal(number(0, 1), 2000000);
    assert_int_equal(ftruncate(world.write_fd, 0), 0);
    assert_int_equal(lseek(world.write_fd, 0, SEEK_SET), 0);
    print("tok/s: 3\n", 200);
    assert_int_equal(number(0, 2), 3000000);
    end();
}

ALL_TESTS(NULL, NULL)
