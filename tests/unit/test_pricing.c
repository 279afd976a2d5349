/* What states took, with what is known of them beforehand: where there is little work, and the readings say almost nothing of it. */
#include "diagnose/watts/pricing.h"

#include "diagnose/result.h"
#include "diagnose/watts/unmix_state.h"
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
