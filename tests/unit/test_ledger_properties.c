/* The ledger: adds up to the window in nanoseconds and to the total in millijoules whatever it is given, counts what a
 * count of every microsecond counts, and its bounds hold what was left out between windows. */
#include "diagnose/states/ledger.h"
#include "timeline_run.h"

static double random_unit(void) {
    return (double)random_below(1u << 30) / (double)(1u << 30);
}

/* ---- sums ---- */

static void adds_up(const struct hec_ledger_device *d) {
    int64_t ns = 0, traced = 0, compute = 0, traced_compute = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_ledger_row *row = &d->rows[i];
        ns += row->ns;
        traced += row->traced_ns;
        assert_true(row->ns >= row->traced_ns);
        assert_true(row->seconds_low <= row->seconds + 1e-9 && row->seconds <= row->seconds_high + 1e-9);
        assert_true(row->seconds_high <= (double)d->window_ns / 1e9 + 1e-9);
    }
    for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++) {
        compute += d->classes[c].ns;
        traced_compute += d->classes[c].traced_ns;
    }
    assert_int_equal(ns, d->window_ns);
    assert_int_equal(traced, d->traced_ns);
    assert_int_equal(compute, d->rows[HEC_STATE_COMPUTE].ns);
    assert_int_equal(traced_compute, d->rows[HEC_STATE_COMPUTE].traced_ns);
}

TEST(random_pieces) {
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct hec_ledger_builder *b = hec_ledger_begin();
        struct hec_ledger ledger;
        int64_t sums[HEC_STATE_COUNT] = {0}, at = random_below(1000), untraced = 0;
        int64_t start = at;
        random_state = seed * 0x9e3779b97f4a7c15u;
        bool cycled = random_below(2);
        for (uint32_t n = 1 + random_below(60); n > 0; n--) {
            struct hec_state_piece p = {
                .start_ns = at,
                .end_ns = at + 1 + random_below(random_below(2) ? 10 : 1000000007),
                .state = (uint8_t)random_below(HEC_STATE_COUNT),
                .kernel_class = (uint8_t)random_below(HEC_KERNEL_CLASS_COUNT),
                .phase = cycled ? (uint8_t)random_below(HEC_STATE_PHASE_COUNT) : 0,
                .traced = !cycled || random_below(2),
            };
            at = p.end_ns;
            if (!p.traced)
                p.state = HEC_STATE_UNKNOWN;
            sums[p.state] += p.traced ? p.end_ns - p.start_ns : 0;
            untraced += p.traced ? 0 : p.end_ns - p.start_ns;
            assert_int_equal(hec_ledger_piece(b, 3, &p), 0);
        }
        assert_int_equal(hec_ledger_end(b, &ledger), 0);
        assert_int_equal(ledger.device_count, 1);
        struct hec_ledger_device *d = &ledger.devices[0];
        assert_int_equal(d->device, 3);
        assert_int_equal(d->window_ns, at - start);
        assert_int_equal(d->window_ns - d->traced_ns, untraced);
        adds_up(d);
        for (int i = 0; i < HEC_STATE_COUNT; i++) {
            assert_int_equal(d->rows[i].traced_ns, sums[i]);
            if (!untraced)
                assert_int_equal(d->rows[i].ns, sums[i]);
        }
        struct hec_ledger_watts watts[HEC_STATE_COUNT];
        for (int i = 0; i < HEC_STATE_COUNT; i++)
            watts[i] = (struct hec_ledger_watts){1 + 700 * random_unit(), 0, 800};
        int64_t total = random_below(1u << 30) * (int64_t)(1 + random_below(1000)), mj = 0;
        struct hec_ledger_watts classes[HEC_KERNEL_CLASS_COUNT];
        for (int i = 0; i < HEC_KERNEL_CLASS_COUNT; i++)
            classes[i] = (struct hec_ledger_watts){100 + 600 * random_unit(), 0, 800};
        bool by_class = random_below(2);
        assert_true(hec_ledger_power(d, watts, by_class ? classes : NULL, total));
        int64_t compute_mj = 0;
        for (int i = 0; i < HEC_KERNEL_CLASS_COUNT; i++)
            compute_mj += d->classes[i].mj;
        assert_int_equal(compute_mj, by_class ? d->rows[HEC_STATE_COMPUTE].mj : 0);
        assert_true(by_class || isnan(d->classes[0].joules));
        for (int i = 0; i < HEC_STATE_COUNT; i++) {
            mj += d->rows[i].mj;
            assert_true(d->rows[i].mj >= 0 && (d->rows[i].ns || !d->rows[i].mj));
        }
        assert_int_equal(mj, total);
        hec_ledger_free(&ledger);
    }
}

TEST(power_refuses) {
    struct hec_ledger_device d = {0};
    struct hec_ledger_watts watts[HEC_STATE_COUNT] = {{0}};
    d.rows[HEC_STATE_COMPUTE].ns = 1000000000;
    d.rows[HEC_STATE_COMPUTE].seconds = 1;
    assert_false(hec_ledger_power(&d, watts, NULL, 5)); /* 0 W cannot carry 5 mJ */
    watts[HEC_STATE_COMPUTE].watts = NAN;
    assert_false(hec_ledger_power(&d, watts, NULL, 5));
    watts[HEC_STATE_COMPUTE].watts = -1;
    assert_false(hec_ledger_power(&d, watts, NULL, 5));
    watts[HEC_STATE_COMPUTE].watts = 100;
    assert_false(hec_ledger_power(&d, watts, NULL, -1));
    assert_int_equal(d.rows[HEC_STATE_COMPUTE].mj, 0);
    d.rows[HEC_STATE_COMPUTE].step_seconds = 0.25;
    watts[HEC_STATE_DATA].watts = NAN; /* without time it does not matter */
    assert_true(hec_ledger_power(&d, watts, NULL, 99000));
    assert_int_equal(d.rows[HEC_STATE_COMPUTE].mj, 99000);
    assert_true(fabs(d.discrepancy - 1.0 / 99) < 1e-12);
    assert_true(fabs(d.rows[HEC_STATE_COMPUTE].step_joules - 24.75) < 1e-9);
    struct hec_ledger_watts classes[HEC_KERNEL_CLASS_COUNT] = {{0}};
    d.classes[HEC_KERNEL_CLASS_GEMM].ns = 750000000;
    d.classes[HEC_KERNEL_CLASS_NORM].ns = 250000000;
    classes[HEC_KERNEL_CLASS_GEMM] = (struct hec_ledger_watts){600, 580, 620};
    classes[HEC_KERNEL_CLASS_NORM].watts = NAN;
    assert_false(hec_ledger_power(&d, watts, classes, 10000));
    classes[HEC_KERNEL_CLASS_NORM] = (struct hec_ledger_watts){200, 100, 300};
    assert_true(hec_ledger_power(&d, watts, classes, 500000));
    assert_true(fabs(d.rows[HEC_STATE_COMPUTE].watts - 500) < 1e-9 && fabs(d.discrepancy) < 1e-12);
    assert_true(fabs(d.rows[HEC_STATE_COMPUTE].watts_low - 460) < 1e-9);
    assert_int_equal(d.classes[HEC_KERNEL_CLASS_GEMM].mj, 450000);
    assert_int_equal(d.classes[HEC_KERNEL_CLASS_NORM].mj, 50000);
}

TEST(apportions) {
    int64_t shares[3];
    hec_ledger_apportion((double[]){1, 1, 1}, 3, 100, shares);
    assert_int_equal(shares[0], 34);
    assert_int_equal(shares[1], 33);
    assert_int_equal(shares[2], 33);
    hec_ledger_apportion((double[]){0, 0, 0}, 3, 100, shares);
    assert_int_equal(shares[0] + shares[1] + shares[2], 0);
    hec_ledger_apportion((double[]){0.2, 0, 0.8}, 3, INT64_MAX / 2, shares);
    assert_int_equal(shares[0] + shares[2], INT64_MAX / 2);
    assert_int_equal(shares[1], 0);
}

TEST(busy_work_and_widening) {
    struct hec_ledger_device one = {.window_ns = 1000}, other = {.device = 0};
    for (int i = 0; i < HEC_STATE_COUNT; i++)
        one.rows[i].seconds = 1 << i;
    one.rows[HEC_STATE_STARTUP].ns = 100;
    one.rows[HEC_STATE_TAIL].ns = 150;
    one.rows[HEC_STATE_COMPUTE].ns = 300;
    one.rows[HEC_STATE_COMM].ns = 150;
    one.rows[HEC_STATE_HOST].ns = 300;
    assert_near(hec_ledger_busy(&one), 450.0 / 750, 1e-12);
    double all = (1 << HEC_STATE_COUNT) - 1,
           none = (1 << HEC_STATE_COMM) + (1 << HEC_STATE_STARTUP) + (1 << HEC_STATE_WAITING) + (1 << HEC_STATE_PEERS);
    assert_near(hec_ledger_work(&one), all - none - (1 << HEC_STATE_TAIL) - (1 << HEC_STATE_UNKNOWN), 1e-12);
    one.window_ns = 250;
    assert_near(hec_ledger_busy(&one), 0, 0);
    struct hec_ledger a = {&one, 1}, b = {&other, 1};
    one.rows[0].seconds_low = 2, one.rows[0].seconds_high = 3;
    one.rows[1].seconds_low = 2, one.rows[1].seconds_high = 3;
    other.rows[0].seconds_low = 1, other.rows[0].seconds_high = 2.5;
    other.rows[1].seconds_low = 2.5, other.rows[1].seconds_high = 4;
    hec_ledger_widen(&a, &b);
    assert_true(one.rows[0].seconds_low == 1 && one.rows[0].seconds_high == 3);
    assert_true(one.rows[1].seconds_low == 2 && one.rows[1].seconds_high == 4);
    other = (struct hec_ledger_device){.device = 1};
    hec_ledger_widen(&a, &b); /* another device's */
    assert_true(one.rows[1].seconds_low == 2 && one.rows[1].seconds_high == 4);
}

/* ---- a whole timeline against a count of every microsecond ---- */

#define SPAN 4000 /* microseconds */
#define US INT64_C(1000)

TEST(timelines) {
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct hec_ledger ledger;
        static int compute[SPAN], copy[SPAN], data[SPAN];
        memset(compute, 0, sizeof compute);
        memset(copy, 0, sizeof copy);
        memset(data, 0, sizeof data);
        random_state = seed * 0x9e3779b97f4a7c15u;
        timeline_begin(NULL);
        t.input.end_ns = SPAN * US;
        fake_tl_kernel(&t, "ampere_sgemm_128x128_tn", 128);
        uint32_t name = fake_tl_name(&t, "data"), first = SPAN, last = 0;
        for (uint32_t n = 1 + random_below(60); n > 0; n--) {
            uint32_t start = random_below(SPAN - 200), end = start + 1 + random_below(100), kernel = random_below(2);
            struct hec_activity *a = fake_tl_add(&t, kernel ? HEC_ACTIVITY_KERNEL : HEC_ACTIVITY_COPY,
                                                 random_below(2) ? stream : second_stream, start * US, end * US);
            a->name = kernel;
            fake_tl_launched(a, a->start_ns, a->start_ns, thread); /* no latency */
            for (uint32_t i = start; i < end; i++)
                (kernel ? compute : copy)[i]++;
            first = start < first ? start : first;
            last = end > last ? end : last;
        }
        for (uint32_t n = random_below(10); n > 0; n--) {
            uint32_t start = random_below(SPAN - 200), end = start + 1 + random_below(100);
            fake_tl_add(&t, HEC_ACTIVITY_PHASE, thread, start * US, end * US)->name = name;
            for (uint32_t i = start; i < end; i++)
                data[i]++;
        }
        uint32_t period = 100 + random_below(900), steps = 0, step_data = 0;
        for (uint32_t start = 0; start + period <= SPAN; start += period, steps++)
            fake_tl_add(&t, HEC_ACTIVITY_STEP, process, start * US, (start + period) * US)->detail = HEC_STEP_MARKED;
        int64_t count[HEC_STATE_COUNT] = {0};
        for (uint32_t i = 0; i < SPAN; i++) {
            enum hec_state s = compute[i]  ? HEC_STATE_COMPUTE
                               : copy[i]   ? HEC_STATE_COPY
                               : i < first ? HEC_STATE_STARTUP
                               : i >= last ? HEC_STATE_TAIL
                               : data[i]   ? HEC_STATE_DATA
                                           : HEC_STATE_HOST;
            count[s] += US;
            step_data += s == HEC_STATE_DATA && i < steps * period;
        }
        /* nothing is close: the few launches that follow at once would be launch */
        const struct hec_state_limits limits = {.close_ns = 0, .load_ns = 1000000};
        assert_int_equal(fake_pass_ledger(&t.input, &limits, &ledger), 0);
        assert_int_equal(ledger.device_count, 1);
        const struct hec_ledger_device *d = &ledger.devices[0];
        adds_up(d);
        assert_int_equal(d->window_ns, SPAN * US);
        for (int i = 0; i < HEC_STATE_COUNT; i++) {
            if (d->rows[i].ns != count[i])
                fail_msg("seed %d: %s %g, should be %g", (int)seed, hec_state_name(i), (double)d->rows[i].ns,
                         (double)count[i]);
            assert_true(d->rows[i].seconds_low == d->rows[i].seconds_high);
        }
        assert_int_equal(d->steps, steps);
        assert_true(fabs(d->rows[HEC_STATE_DATA].step_seconds - step_data * 1e-6 / steps) < 1e-12);
        hec_ledger_free(&ledger);
    }
}

/* ---- bounds ---- */

/* Windows of 10 ms, of which so much computes, with 30 ms between the first two of them that nobody saw: half an interval is
 * Student's t times the standard error of the share times those 30 ms. */
TEST(bounds_of_few_windows) {
    static const struct {
        int windows;
        int64_t compute_us[4];
        double half_us; /* of what computes, and of what is idle */
        double comm_above_us;
    } cases[] = {
        {2, {4900, 5100}, 30000 * 12.706 * 0.01, 30000},
        {3, {4900, 5000, 5100}, 30000 * 4.303 * 0.1 / 17.3205081, 30000},
        {4, {4900, 5000, 5000, 5100}, 30000 * 3.182 * 0.1 / 24.4948974, 30000 * 0.75},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct hec_ledger_builder *b = hec_ledger_begin();
        struct hec_ledger ledger;
        int64_t at = 0;
        for (int w = 0; w < cases[c].windows; w++) {
            int64_t compute = cases[c].compute_us[w] * US, untraced = w ? 0 : 30000 * US;
            const struct hec_state_piece pieces[] = {
                {.start_ns = at, .end_ns = at + compute, .state = HEC_STATE_COMPUTE, .traced = true},
                {.start_ns = at + compute, .end_ns = at + 10000 * US, .state = HEC_STATE_HOST, .traced = true},
                {.start_ns = at + 10000 * US, .end_ns = at + 10000 * US + untraced, .state = HEC_STATE_UNKNOWN},
            };
            for (int i = 0; i < 3; i++) /* an empty piece closes a window as well */
                assert_int_equal(hec_ledger_piece(b, 0, &pieces[i]), 0);
            at += 10000 * US + untraced;
        }
        assert_int_equal(hec_ledger_end(b, &ledger), 0);
        const struct hec_ledger_device *d = &ledger.devices[0];
        double middle_us = 5000 * cases[c].windows + 15000;
        adds_up(d);
        assert_int_equal(d->windows, cases[c].windows);
        for (int i = 0; i < 2; i++) {
            const struct hec_ledger_row *row = &d->rows[i ? HEC_STATE_HOST : HEC_STATE_COMPUTE];
            assert_near(row->seconds * 1e6, middle_us, 0.01);
            assert_near(row->seconds_low * 1e6, middle_us - cases[c].half_us, 2);
            assert_near(row->seconds_high * 1e6, middle_us + cases[c].half_us, 2);
        }
        /* what was in none of the windows may all the same be outside of them */
        assert_near(d->rows[HEC_STATE_COMM].seconds_high * 1e6, cases[c].comm_above_us, 0.01);
        assert_near(d->rows[HEC_STATE_TAIL].seconds_high, 0, 0);
        hec_ledger_free(&ledger);
    }
}

/* A run of steps of random lengths of data, host and compute; a window in 5 of 20 ms. The truth is known. */
TEST(bounds_hold) {
    static const enum hec_state states[] = {HEC_STATE_DATA, HEC_STATE_HOST, HEC_STATE_COMPUTE};
    int inside = 0, asked = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct hec_ledger_builder *b = hec_ledger_begin();
        struct hec_ledger ledger;
        double truth[HEC_STATE_COUNT] = {0};
        random_state = seed * 0x9e3779b97f4a7c15u;
        int64_t at = 0, cycle = 20000000, open = 4000000, offset = random_below(20000000);
        for (int step = 0; step < 600; step++) {
            for (int k = 0; k < 3; k++) {
                int64_t end = at + 50000 + random_below(k == 2 ? 4000000 : 1500000);
                truth[states[k]] += (double)(end - at) / 1e9;
                while (at < end) {
                    int64_t in_cycle = (at + offset) % cycle;
                    bool traced = in_cycle < open;
                    int64_t border = at + (traced ? open : cycle) - in_cycle, to = border < end ? border : end;
                    struct hec_state_piece p = {
                        .start_ns = at,
                        .end_ns = to,
                        .state = (uint8_t)(traced ? states[k] : HEC_STATE_UNKNOWN),
                        .kernel_class = HEC_KERNEL_CLASS_GEMM,
                        .phase = k == 0 ? HEC_STATE_PHASE_DATA : HEC_STATE_PHASE_NONE,
                        .traced = traced,
                    };
                    assert_int_equal(hec_ledger_piece(b, 0, &p), 0);
                    at = to;
                }
            }
        }
        assert_int_equal(hec_ledger_end(b, &ledger), 0);
        const struct hec_ledger_device *d = &ledger.devices[0];
        adds_up(d);
        assert_true(d->windows > 20);
        /* the phase is known outside of the windows: nothing is left to guess */
        assert_true(fabs(d->rows[HEC_STATE_DATA].seconds - truth[HEC_STATE_DATA]) < 1e-8);
        for (int k = 1; k < 3; k++) {
            const struct hec_ledger_row *row = &d->rows[states[k]];
            asked++;
            inside += row->seconds_low <= truth[states[k]] && truth[states[k]] <= row->seconds_high;
        }
        hec_ledger_free(&ledger);
    }
    if (inside < asked * 0.92 || inside > asked * 0.99)
        fail_msg("%d of %d intervals hold the truth, 95 %% should", inside, asked);
}

/* Communication is divided: nothing is lost, whatever the share. */
TEST(waits_apart) {
    for (int i = 0; i < 2000; i++) {
        struct hec_ledger_device d = {.joules = 1};
        int64_t ns = llround(1e10 * random_unit()), mj = llround(1e6 * random_unit());
        double seconds = random_unit() * (double)ns / 1e9 * 1.1;
        d.rows[HEC_STATE_COMM] = (struct hec_ledger_row){.ns = ns,
                                                         .traced_ns = llround(random_unit() * (double)ns),
                                                         .seconds = (double)ns / 1e9,
                                                         .seconds_low = (double)ns / 2e9,
                                                         .seconds_high = (double)ns / 5e8,
                                                         .step_seconds = 0.01,
                                                         .step_joules = 2,
                                                         .joules = (double)mj / 1e3,
                                                         .watts = 300,
                                                         .mj = mj};
        const struct hec_ledger_row before = d.rows[HEC_STATE_COMM], *comm = &d.rows[HEC_STATE_COMM],
                                    *waiting = &d.rows[HEC_STATE_WAITING];
        hec_ledger_wait(&d, seconds, i % 2);
        assert_int_equal(comm->ns + waiting->ns, before.ns);
        assert_int_equal(comm->mj + waiting->mj, before.mj);
        assert_int_equal(comm->traced_ns + waiting->traced_ns, before.traced_ns);
        assert_true(comm->ns >= 0 && comm->mj >= 0 && waiting->ns >= 0 && waiting->mj >= 0);
        assert_true(fabs(waiting->seconds - fmin(seconds, before.seconds)) < 2e-9);
        assert_true(fabs(comm->step_seconds + waiting->step_seconds - 0.01) < 1e-12);
        assert_true(fabs(comm->joules + waiting->joules - before.joules) < 1e-9);
        if (i % 2)
            assert_true(waiting->seconds_low == 0 && comm->seconds_high == before.seconds_high);
    }
    struct hec_ledger_device none = {0};
    hec_ledger_wait(&none, 1, false); /* it never communicated */
    assert_int_equal(none.rows[HEC_STATE_WAITING].ns, 0);
}
