/* What states took, with what is known of them beforehand: where there is little work, and the readings say almost nothing of it. */
#include "diagnose/watts/pricing.h"

#include "diagnose/meter/meter.h"
#include "diagnose/physics.h"
#include "diagnose/result.h"
#include "diagnose/watts/unmix_state.h"
#include "diagnose/watts/watts.h"
#include "fake_run.h"
#include "unit.h"

#define MS INT64_C(1000000)
#define STEPS 1000 /* of 10 ms */
#define IDLE_W 120.0
#define LIMIT_W 700.0

/* Steps of 10 ms, of which kernels take a part; the counter is read once in 100 ms, so that all its windows are alike. Of an idle device
 * idle_w are known (NAN: nothing); lowest_w: the least that was read, with none at rest. */
static void price_of(const char *device, double idle_w, double lowest_w, double busy_ms, double work_w, double fill,
                     struct hec_ledger_device *d) {
    struct hec_unmix *unmix;
    const struct hec_unmix_sensor sensor = {0, 0};
    const struct hec_unmix_options options = hec_pricing_options(LIMIT_W, &sensor);
    struct hec_pricing_order order = {0};
    const double step_j = ((10 - busy_ms) * IDLE_W + busy_ms * work_w) / 1e3;
    struct hec_energy energy = {.valid = true, .joules = STEPS * step_j, .bound_joules = 1};
    energy.idle_context_watts = lowest_w;
    energy.idle_source = isfinite(lowest_w) ? HEC_BECAUSE(LEVEL_LOWEST) : HEC_BECAUSE(NONE);
    const struct hec_pricing pricing = {&energy, LIMIT_W, device, idle_w, fill, &order, 0};
    struct hec_reason why = HEC_BECAUSE(NONE), how = why;
    memset(d, 0, sizeof *d);
    assert_int_equal(hec_unmix_begin(&options, &unmix), 0);
    for (int step = 0; step < STEPS; step++) {
        int64_t start_ns = step * 10 * MS, work_ns = start_ns + llround((10 - busy_ms) * 1e6);
        if (step % 10 == 9)
            assert_int_equal(hec_unmix_window(unmix, start_ns - 90 * MS, start_ns + 10 * MS, 10 * step_j, 0.05), 0);
        const struct hec_state_piece pieces[] = {
            {.start_ns = start_ns, .end_ns = work_ns, .state = HEC_STATE_DATA, .traced = true},
            {.start_ns = work_ns, .end_ns = start_ns + 10 * MS, .state = HEC_STATE_COMPUTE, .traced = true}};
        for (int i = 0; i < 2; i++) {
            struct hec_ledger_row *row = &d->rows[pieces[i].state];
            row->ns += pieces[i].end_ns - pieces[i].start_ns;
            row->traced_ns = row->ns;
            row->seconds = (double)row->ns / 1e9;
            assert_int_equal(
                hec_unmix_piece(unmix, hec_pricing_class(&order, &pieces[i]), pieces[i].start_ns, pieces[i].end_ns), 0);
        }
    }
    d->window_ns = d->traced_ns = STEPS * 10 * MS;
    assert_int_equal(hec_price_device(d, unmix, &pricing, &why, &how), 0);
    assert_int_equal(why.id, HEC_REASON_NONE);
    hec_unmix_free(unmix);
}

/* 105 W are known, as it takes them at lower clocks. */
static void price(double busy_ms, double work_w, double fill, struct hec_ledger_device *d) {
    price_of("a device", 105, NAN, busy_ms, work_w, fill, d);
}

static double watts(const struct hec_ledger_device *d, enum hec_state state) {
    return d->rows[state].watts;
}

static bool holds(const struct hec_ledger_device *d, enum hec_state state, double truth) {
    return d->rows[state].watts_low <= truth && truth <= d->rows[state].watts_high;
}

/* 1 % of the time in kernels that fill 14 % of the device, at 200 W: all that the idle level is off by would make 1500 of it. */
TEST(test_little_work) {
    struct hec_ledger_device d;
    price(0.1, 200, 0.14, &d);
    assert_true(watts(&d, HEC_STATE_COMPUTE) < 450 && holds(&d, HEC_STATE_COMPUTE, 200));
    assert_true(fabs(watts(&d, HEC_STATE_DATA) - IDLE_W) < 4 && holds(&d, HEC_STATE_DATA, IDLE_W));
}

/* Where most of the time is work, what it took is known, whatever the counters say. */
TEST(test_much_work) {
    struct hec_ledger_device d;
    for (int full = 0; full < 2; full++) {
        price(8, 600, full ? 1 : 0.14, &d);
        assert_true(fabs(watts(&d, HEC_STATE_COMPUTE) - 600) < 20);
    }
}

/* It works for 8 ms of 10: no sample is of rest, and the least is three times what rest takes. What is known of the part goes before, and
 * where nothing is, the level is not sure. */
TEST(test_lowest_is_a_bound) {
    struct hec_ledger_device d;
    price_of("NVIDIA H200", NAN, 351, 8, 600, 1, &d);
    assert_true(fabs(watts(&d, HEC_STATE_DATA) - IDLE_W) < 15 && holds(&d, HEC_STATE_DATA, IDLE_W));
    price_of("a device", NAN, 351, 8, 600, 1, &d);
    assert_true(holds(&d, HEC_STATE_DATA, IDLE_W) && d.rows[HEC_STATE_DATA].watts_high > 300);
    price_of("NVIDIA H200", NAN, 90, 8, 600, 1, &d); /* lower than what is known of the part */
    assert_true(watts(&d, HEC_STATE_DATA) < 105);
}

/* ---- without a reading: what is believed, under the total ---- */

/* What is believed of a state: watts within sd, and how far it follows the common level. */
struct belief {
    double seconds, watts, sd, factor, floor;
    bool edge;
};

struct known {
    double watts, sd, least; /* the level of idling */
};

static struct hec_energy of_joules(double joules) {
    struct hec_energy energy = {.valid = true, .joules = joules, .bound_joules = 30};
    energy.idle_context_watts = energy.idle_context_s = energy.idle_unknown_max_joules = NAN;
    energy.idle_source = HEC_BECAUSE(NONE);
    return energy;
}

static const double state_s[HEC_STATE_COUNT] = {
    [HEC_STATE_COMPUTE] = 40, [HEC_STATE_COMM] = 10,    [HEC_STATE_COPY] = 6, [HEC_STATE_HOST] = 20,
    [HEC_STATE_LAUNCH] = 8,   [HEC_STATE_STARTUP] = 12, [HEC_STATE_TAIL] = 4};

/* The mean and the covariance of beliefs under the condition that all joules add up to the total, as of normal distributions. */
static void check_beliefs(const struct hec_pricing *pricing, int64_t window_ns, struct known level) {
    struct belief b[HEC_STATE_COUNT] = {{0}};
    struct hec_ledger_device d = {.basis = HEC_LEDGER_MEASURED};
    struct hec_reason why = HEC_BECAUSE(NONE), how = why;
    struct hec_unmix *unmix;
    const struct hec_unmix_sensor sensor = {window_ns, window_ns};
    const struct hec_unmix_options options = hec_pricing_options(pricing->limit_w, &sensor);
    double w = level.watts, sd = level.sd * w, total = pricing->energy->joules, busy_s = 50, idle_s = 50;
    double floor = 0.9 * fmax(w - sd, level.least);
    /* work: what the rest leaves, weighed with how full the device is between idling and its limit */
    double left_j = total - w * (44 + 6 * HEC_COPY_BY_IDLE), most = fmax(HEC_WORK_BY_LIMIT * pricing->limit_w, w);
    double left = fmin(fmax(left_j / busy_s, w), most), left_sd = fmax(left, 0.5 * pricing->limit_w);
    double above = pricing->limit_w - w, fill = isfinite(pricing->fill) ? pricing->fill : 0.5;
    double usual = w + above * fill, usual_sd = above * (isfinite(pricing->fill) ? 0.25 : 0.5),
           off = sd * idle_s / busy_s;
    double weight = usual_sd * usual_sd / (off * off + usual_sd * usual_sd);
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        d.rows[i].seconds = state_s[i];
        d.rows[i].ns = llround(state_s[i] * 1e9);
        b[i] = (struct belief){state_s[i], w, HEC_IDLE_SPREAD * w, 1, floor, false};
    }
    b[HEC_STATE_COMPUTE] = (struct belief){
        40, weight * left + (1 - weight) * usual, weight * left_sd + (1 - weight) * usual_sd, 0, floor, false};
    b[HEC_STATE_COMM] = (struct belief){10, w + HEC_COMM_FILL * above, HEC_COMM_FILL_SD * above, 0, floor, false};
    b[HEC_STATE_COPY] = (struct belief){6, HEC_COPY_BY_IDLE * w, HEC_COPY_SPREAD * w, HEC_COPY_BY_IDLE, floor, false};
    b[HEC_STATE_LAUNCH].sd = 0.1 * w;
    b[HEC_STATE_STARTUP].sd = b[HEC_STATE_TAIL].sd = HEC_IDLE_EDGE_SPREAD * w;
    b[HEC_STATE_STARTUP].edge = b[HEC_STATE_TAIL].edge = true;
    double of_mean = 0, of_sd2 = 0, by[HEC_STATE_COUNT], common = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        of_mean += b[i].seconds * b[i].watts;
        common += b[i].seconds * b[i].factor * sd;
    }
    for (int i = 0; i < HEC_STATE_COUNT; i++) { /* the covariance of a state's watts with the total */
        by[i] = b[i].seconds * b[i].sd * b[i].sd + b[i].factor * sd * common;
        of_sd2 += b[i].seconds * by[i];
    }
    assert_int_equal(hec_unmix_begin(&options, &unmix), 0);
    assert_int_equal(hec_price_device(&d, unmix, pricing, &why, &how), 0);
    hec_unmix_free(unmix);
    assert_int_equal(why.id, HEC_REASON_NONE);
    assert_int_equal(how.id, HEC_REASON_ROUGH_LEVEL);
    int64_t mj = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_ledger_row *row = &d.rows[i];
        mj += row->mj;
        if (!(state_s[i] > 0))
            continue;
        double is = b[i].watts + by[i] / of_sd2 * (total - of_mean);
        double own2 = b[i].sd * b[i].sd + b[i].factor * b[i].factor * sd * sd;
        double total_sd = pricing->energy->bound_joules / 1.959964;
        double variance = own2 - by[i] * by[i] / of_sd2 + by[i] * by[i] / (of_sd2 * of_sd2) * total_sd * total_sd;
        double half = 1.96 * fmin(sqrt(variance), hypot(sqrt(own2), is - b[i].watts)),
               unseen = b[i].edge ? 0.35 * is : 0;
        if (!(fabs(row->watts - is) <= 1e-3 * is))
            fail_msg("%s: %g instead of %g W", hec_state_name((enum hec_state)i), row->watts, is);
        double least = b[i].edge ? 0.65 * floor : floor;
        assert_near(row->watts_low, fmax(fmax(is - half, least) - unseen, 0), 0.004 * is);
        assert_near(row->watts_high, is + half + unseen, 0.004 * is);
    }
    assert_int_equal(mj, llround(total * 1e3));
}

/* Where the level of idling comes from, each in turn. */
TEST(test_levels) {
    struct hec_pricing_order order = {0};
    struct hec_energy energy = of_joules(34000);
    struct hec_pricing p = {&energy, LIMIT_W, "a device", NAN, NAN, &order, 0};
    check_beliefs(&p, 0, (struct known){HEC_IDLE_BY_LIMIT * LIMIT_W, 0.5, 0}); /* nothing is known */
    p.device = "NVIDIA H200";
    check_beliefs(&p, 0, (struct known){HEC_IDLE_H200_W, 0.08, 0});
    p.device = "NVIDIA H100 80GB HBM3";
    check_beliefs(&p, 0, (struct known){HEC_IDLE_H100_W, 0.08, 0});
    p.idle_w = 130; /* this device was measured */
    check_beliefs(&p, 0, (struct known){130, 0.05, 0});
    p.fill = 0.7;
    check_beliefs(&p, 0, (struct known){130, 0.05, 0});
    energy.idle_context_watts = 110; /* in this run; its sensor is fast enough for that, or it is not known to be */
    check_beliefs(&p, 20 * MS, (struct known){110, 0.05, 0});
    check_beliefs(&p, 0, (struct known){130, 0.05, 0});
    check_beliefs(&p, 500 * MS, (struct known){130, 0.05, 0});
    p.idle_w = NAN;
    p.device = "a device";
    energy = of_joules(34000); /* no more than was seen with a context */
    energy.idle_context_s = 10;
    energy.idle_unknown_max_joules = 700;
    check_beliefs(&p, 0, (struct known){70, 0.15, 0});
    p.idle_w = 130; /* which that contradicts */
    check_beliefs(&p, 0, (struct known){70, 0.15, 0});
    p.idle_w = 77;
    check_beliefs(&p, 0, (struct known){77, 0.05, 0});
    p.idle_w = NAN;
    energy = of_joules(34000); /* the lowest of one that never rests is a bound */
    energy.idle_context_watts = 250;
    energy.idle_source = HEC_BECAUSE(LEVEL_LOWEST);
    check_beliefs(&p, 20 * MS, (struct known){250, fmax(0.15, 1 - HEC_IDLE_BY_LIMIT * LIMIT_W / 250), 0});
}

TEST(test_idle_of_parts) {
    assert_near(hec_watts_idle_of_part("NVIDIA H200"), HEC_IDLE_H200_W, 0);
    assert_near(hec_watts_idle_of_part("NVIDIA H100 80GB HBM3"), HEC_IDLE_H100_W, 0);
    assert_true(isnan(hec_watts_idle_of_part("NVIDIA A100-SXM4-80GB")) && isnan(hec_watts_idle_of_part("")));
}

/* A device that is held and not used: its energy is split already, in that without a context and the rest. */
TEST(test_unused) {
    for (int others = 0; others < 3; others++)
        for (int held = 0; held < 2; held++) {
            struct fake_run run;
            struct hec_meter meter;
            struct hec_device_summary device = {
                .device = fake_device(0), .power_limit_w = 700, .others = (enum hec_others)others};
            struct hec_ledger_device d = {.basis = HEC_LEDGER_UNUSED};
            struct hec_watts out = {.why = HEC_BECAUSE(NONE)};
            fake_init(&run, 10);
            hec_meter_open(&meter, &run.input, run.input.end_ns);
            device.energy = of_joules(1000);
            device.energy.idle_joules = 600;
            d.rows[HEC_STATE_STARTUP].seconds = held ? 3 : 0;
            d.rows[HEC_STATE_STARTUP].ns = held ? 3000000000 : 0;
            d.rows[HEC_STATE_TAIL].seconds = held ? 7 : 10;
            d.rows[HEC_STATE_TAIL].ns = held ? 7000000000 : 10000000000;
            assert_int_equal(hec_watts_price(&meter, NULL, &device, NULL, &d, &out, NULL), 0);
            assert_int_equal(out.why.id, HEC_REASON_NONE);
            assert_int_equal(out.how.id, others == HEC_OTHERS_IDLE    ? HEC_REASON_MEASURED_CONTEXT
                                         : others == HEC_OTHERS_MAYBE ? HEC_REASON_ROUGH_MAYBE_OTHERS
                                                                      : HEC_REASON_ROUGH_OTHERS);
            double tail = held ? 400.0 / 7 : 100;
            if (held)
                assert_near(d.rows[HEC_STATE_STARTUP].watts, 200, 1e-3);
            assert_near(d.rows[HEC_STATE_TAIL].watts, tail, 1e-3);
            assert_near(d.rows[HEC_STATE_TAIL].joules, held ? 400 : 1000, 1e-3);
            if (others == HEC_OTHERS_IDLE) {
                assert_near(d.rows[HEC_STATE_TAIL].watts_low, tail, 1e-3);
                assert_near(d.rows[HEC_STATE_TAIL].watts_high, tail, 1e-3);
            } else {
                assert_true(isnan(d.rows[HEC_STATE_TAIL].watts_low) && isnan(d.rows[HEC_STATE_TAIL].watts_high));
            }
            device.energy.valid = false;
            assert_int_equal(hec_watts_price(&meter, NULL, &device, NULL, &d, &out, NULL), 0);
            assert_int_equal(out.why.id, HEC_REASON_NO_DEVICE_ENERGY);
            device.energy.why = HEC_BECAUSE(NO_READING);
            assert_int_equal(hec_watts_price(&meter, NULL, &device, NULL, &d, &out, NULL), 0);
            assert_int_equal(out.why.id, HEC_REASON_NO_READING);
            hec_meter_close(&meter);
            fake_free(&run);
        }
}

/* What is "measured" of a device is known within 10 %, of each state that has 2 % of the joules. */
TEST(test_judged_by_the_widest) {
    static const struct {
        double joules, watts, low, high, widest;
    } cases[] = {
        {10, 100, 80, 110, 0.15}, {10, 100, 91, 109, NAN}, {1.9, 100, 10, 300, NAN}, {2.1, 100, 10, 300, 1.45}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_ledger_device d = {.joules = 100};
        d.rows[HEC_STATE_COMPUTE] =
            (struct hec_ledger_row){.joules = 90, .watts = 500, .watts_low = 480, .watts_high = 520};
        d.rows[HEC_STATE_HOST] = (struct hec_ledger_row){
            .joules = cases[i].joules, .watts = cases[i].watts, .watts_low = cases[i].low, .watts_high = cases[i].high};
        struct hec_reason how = HEC_BECAUSE(MEASURED_SAMPLES), rough = HEC_BECAUSE(ROUGH_LEVEL);
        hec_price_judge(&d, &how);
        assert_int_equal(how.id, isnan(cases[i].widest) ? HEC_REASON_MEASURED_SAMPLES : HEC_REASON_ROUGH_WIDE);
        if (!isnan(cases[i].widest))
            assert_true(fabs(how.number[0] - cases[i].widest) < 1e-12);
        hec_price_judge(&d, &rough); /* is so already */
        assert_int_equal(rough.id, HEC_REASON_ROUGH_LEVEL);
    }
}
