/* Whether anybody else was at work on a device, by what was measured of real programs on an H100: those that were alone, also
 * beside a process that does nothing, and one that was not. */
#include "diagnose/build.h"
#include "fake_run.h"
#include "unit.h"

#define WINDOW_FROM 4.0

/* While CUPTI saw the device: for how long, what part of that it was busy, and with kernels; its copies (and memsets), gaps, and
 * the engine's activity. */
static const struct measured {
    const char *name;
    double traced_s, busy, kernels;
    int64_t copies, gaps;
    double engine;
    bool beside; /* another program was at work */
} measured[] = {
    {"recurrent net, small kernels", 8.814, 0.2895, 0.2808, 46150, 559236, 0.3867, false},
    {"one image at a time", 0.502, 0.8704, 0.8704, 0, 162224, 0.9940, false},
    {"rows copied one at a time", 2.021, 0.0551, 0.0044, 108698, 111347, 0.1496, false},
    {"pageable copies", 2.007, 0.8628, 0.2599, 60, 13872, 0.2575, false},
    {"reads after each layer", 2.016, 0.4897, 0.4828, 17246, 51737, 0.5421, false},
    {"masks", 2.013, 0.6276, 0.5096, 22840, 86792, 0.6813, false},
    {"generation, one token at a time", 25.59, 0.0282, 0.0270, 22714, 277738, 0.0509, false},
    {"two ranks", 2.012, 0.2666, 0.2645, 20, 21195, 0.2906, false},
    {"training", 2.015, 0.9957, 0.9875, 1440, 3170, 0.9462, false},
    {"recurrent net beside another program", 1.340, 0.2336, 0.2310, 12115, 35082, 0.9679, true},
};

static struct hec_device_summary device;

static enum hec_others find(const struct measured *m, int shared_with, double engine) {
    struct hec_interval window = {llround(WINDOW_FROM * 1e9), llround((WINDOW_FROM + m->traced_s) * 1e9), 0};
    struct hec_device_timeline row = {.from_s = WINDOW_FROM,
                                      .to_s = WINDOW_FROM + m->traced_s,
                                      .traced_s = m->traced_s,
                                      .busy_s = m->busy * m->traced_s,
                                      .idle_s = (1 - m->busy) * m->traced_s,
                                      .compute_s = m->kernels * m->traced_s,
                                      .copy_s = (m->busy - m->kernels) * m->traced_s,
                                      .comm_overlap = NAN,
                                      .copies = m->copies,
                                      .gap.count = m->gaps,
                                      .traced = {.list = &window, .count = 1}};
    struct fake_run run;
    struct hec_meter meter;
    fake_init(&run, 60);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    for (int i = 1; i <= 120; i++) { /* outside of the window it says nothing */
        bool inside = i / 2.0 > WINDOW_FROM && (i - 1) / 2.0 < WINDOW_FROM + m->traced_s;
        fake_add(&run, HEC_GPM_GR_ACTIVE, 0, i / 2.0, llround(1000 * (inside ? engine : 1)));
    }
    device = (struct hec_device_summary){.shared_with = shared_with, .activity.engine = 0.9};
    assert_int_equal(hec_others_find(&meter, &row, &device, NULL), 0);
    hec_meter_close(&meter);
    fake_free(&run);
    return device.others;
}

TEST(test_real_programs) {
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++)
        for (int listed = 0; listed < 2; listed++) {
            enum hec_others expected = measured[i].beside ? HEC_OTHERS_BUSY : HEC_OTHERS_IDLE;
            if (find(&measured[i], listed, measured[i].engine) != expected)
                fail_msg("%s, %d listed: %s (%.3f, seen %.3f)", measured[i].name, listed,
                         hec_others_name(device.others), device.others_engine, device.others_seen);
            assert_true(fabs(device.others_engine - measured[i].engine) < 0.001);
        }
}

/* One that is known may do less before it is noticed. */
TEST(test_bands) {
    const struct measured *two_ranks = &measured[7]; /* 26.7 %, and pauses of 3.2 % at most */
    assert_int_equal(find(two_ranks, 1, 0.34), HEC_OTHERS_IDLE);
    assert_int_equal(find(two_ranks, 1, 0.36), HEC_OTHERS_BUSY);
    assert_int_equal(find(two_ranks, 0, 0.58), HEC_OTHERS_IDLE);
    assert_int_equal(find(two_ranks, 0, 0.61), HEC_OTHERS_BUSY);
    struct measured little = measured[6]; /* many times as much, and still little */
    assert_int_equal(find(&little, 0, 0.20), HEC_OTHERS_IDLE);
    /* a large copy is not the engine's: it hides nobody */
    assert_int_equal(find(&measured[3], 1, 0.60), HEC_OTHERS_BUSY);
}

/* CUPTI saw nothing, or for too short a time: somebody may be at work, unless nobody is. */
TEST(test_not_seen) {
    struct measured brief = measured[0];
    struct fake_run run;
    struct hec_meter meter;
    brief.traced_s = 0.1;
    assert_int_equal(find(&brief, 1, 0.3), HEC_OTHERS_MAYBE);
    assert_int_equal(find(&brief, 0, 1), HEC_OTHERS_IDLE);
    fake_init(&run, 60);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    device = (struct hec_device_summary){.shared_with = 2, .activity.engine = 0.9};
    static const struct {
        double engine;
        enum hec_others others;
    } cases[] = {{0.9, HEC_OTHERS_MAYBE}, {0.04, HEC_OTHERS_IDLE}, {NAN, HEC_OTHERS_MAYBE}}; /* idle: whoever it was */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        device.activity.engine = cases[i].engine;
        assert_int_equal(hec_others_find(&meter, NULL, &device, NULL), 0);
        assert_int_equal(device.others, cases[i].others);
    }
    assert_true(isnan(device.others_engine) && isnan(device.others_seen));
    hec_meter_close(&meter);
    fake_free(&run);
}
