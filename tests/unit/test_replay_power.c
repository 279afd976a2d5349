/* What devices draw in a replay: their joules over the recorded stretch go to waiting, copies, communication and work by what the ledger
 * says; and how far proofs widen a replayed saving. */
#include "diagnose/limits.h"
#include "diagnose/meter/meter.h"
#include "diagnose/replay/power.h"
#include "fake_run.h"
#include "unit.h"

#define DEVICES 2

static struct fake_run run;
static struct hec_meter meter;
static struct hec_summary summary;
static struct hec_device_diagnosis devices[DEVICES];
static struct hec_ledger_device ledger[DEVICES];
static struct hec_replay_power power;
static struct hec_schedule schedule;
static struct hec_schedule_call first_call;
static struct hec_replay recorded;

/* Of a state: seconds, and watts within so much. */
static void state(int device, enum hec_state of, double seconds, double watts, double give) {
    struct hec_ledger_row *row = &ledger[device].rows[of];
    row->ns = llround(seconds * 1e9);
    row->watts = watts;
    row->watts_low = watts - give;
    row->watts_high = watts + give;
}

/* A stretch of 10 s that begins 5 s into a run, in which the devices drew watts each; nothing is known of any state. */
static void begin(const double *watts) {
    memset(&summary, 0, sizeof summary);
    memset(devices, 0, sizeof devices);
    memset(ledger, 0, sizeof ledger);
    fake_free(&run);
    hec_meter_close(&meter);
    fake_init(&run, 30);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    summary.devices = devices;
    summary.device_count = DEVICES;
    for (int i = 0; i < DEVICES; i++) {
        struct hec_device_summary *r = &devices[i].readings;
        r->device = fake_device(i);
        r->used = true;
        r->energy = (struct hec_energy){.method = HEC_ENERGY_INTEGRAL, .valid = true, .joules = 30 * watts[i]};
        fake_fill(&run, HEC_GPU_POWER, i, -1, 31, 0.02, llround(1000 * watts[i]));
        devices[i].ledger = &ledger[i];
        ledger[i].device = i;
        for (int s = 0; s < HEC_STATE_COUNT; s++)
            ledger[i].rows[s].watts = ledger[i].rows[s].watts_low = ledger[i].rows[s].watts_high = NAN;
    }
    first_call = (struct hec_schedule_call){.begin_ns = 4000000000};
    schedule = (struct hec_schedule){.calls = &first_call, .count = 1, .lag_ns = 1000000000};
    recorded = (struct hec_replay){.recorded_s = 10, .seconds = 10, .work = 1};
}

/* Seconds of the stretch: busy at all, in kernels, of these without waiting for others, of these in work. */
static void spends(int device, double busy, double kernels, double active, double work) {
    recorded.busy_s[device] = busy;
    recorded.kernels_s[device] = kernels;
    recorded.active_s[device] = active;
    recorded.work_s[device] = work;
}

static void find(void) {
    assert_int_equal(hec_replay_power_find(&meter, &summary, &schedule, &recorded, &power, NULL), 0);
}

static void near3(const double *found, double low, double best, double high) {
    assert_near(found[0], low, 1e-6 * fabs(low));
    assert_near(found[1], best, 1e-6 * fabs(best));
    assert_near(found[2], high, 1e-6 * fabs(high));
}

/* 4500 J: 2 s of idling at 100 +- 10 W, 1 s of copies at 150, 3 s of communication at 300, 4 s of work. */
TEST(work_has_the_rest) {
    begin((double[]){450, 80});
    state(0, HEC_STATE_DATA, 1, 100, 10);
    state(0, HEC_STATE_HOST, 0.5, 400, 10);
    state(0, HEC_STATE_COPY, 1, 150, 5);
    state(0, HEC_STATE_COMM, 3, 300, 75);
    spends(0, 8, 7, 7, 4);
    spends(1, 0, 0, 0, 0);
    find();
    assert_int_equal(power.count, 1); /* the other did nothing */
    assert_int_equal(power.of[0].device, 0);
    assert_near(power.joules[0], 4500, 1e-3);
    assert_true(isnan(power.joules[1]) && isnan(power.joules[5]));
    assert_near(power.of[0].joules, 4500, 1e-3);
    assert_true(power.of[0].comm_known);
    near3(power.of[0].idle, 90, 100, 110);
    near3(power.of[0].copy, 150, 150, 150);
    near3(power.of[0].comm, 300, 300, 300);
    near3(power.of[0].work, (4500 - 180 - 150 - 900) / 4.0, (4500 - 200 - 150 - 900) / 4.0,
          (4500 - 220 - 150 - 900) / 4.0);
    near3(power.of[0].wait, 90, 100, (4500 - 220 - 150) / 7.0); /* as the host's, and at most as all kernels */
}

/* Where it is not known well what communication or copies draw: as work does, and as waiting does. */
TEST(what_is_not_known_well) {
    begin((double[]){450, 80});
    state(0, HEC_STATE_DATA, 1, 100, 10);
    state(0, HEC_STATE_COPY, 1, 150, 40);
    state(0, HEC_STATE_COMM, 3, 300, 80);
    spends(0, 8, 7, 7, 4);
    find();
    assert_false(power.of[0].comm_known);
    near3(power.of[0].copy, 90, 100, 110);
    near3(power.of[0].work, (4500 - 270) / 7.0, (4500 - 300) / 7.0, (4500 - 330) / 7.0);
    near3(power.of[0].comm, (4500 - 270) / 7.0, (4500 - 300) / 7.0, (4500 - 330) / 7.0);
    begin((double[]){450, 80}); /* a copy draws no less than waiting */
    state(0, HEC_STATE_DATA, 1, 100, 10);
    state(0, HEC_STATE_COPY, 1, 95, 1);
    spends(0, 8, 7, 7, 4);
    find();
    near3(power.of[0].copy, 95, 100, 110);
    begin((double[]){450, 80}); /* communication that is said to have taken more than there was draws as work does */
    state(0, HEC_STATE_DATA, 1, 100, 10);
    state(0, HEC_STATE_COMM, 3, 2000, 10);
    spends(0, 8, 8, 8, 4);
    find();
    assert_false(power.of[0].comm_known);
    near3(power.of[0].comm, (4500 - 180) / 8.0, (4500 - 200) / 8.0, (4500 - 220) / 8.0);
    begin((double[]){90, 80}); /* nothing draws less than a device that waits: all are the mean at most */
    state(0, HEC_STATE_DATA, 1, 100, 10);
    spends(0, 8, 8, 8, 8);
    find();
    near3(power.of[0].idle, 90, 90, 90);
    near3(power.of[0].work, 90, 90, 90);
}

/* The longest of the states of waiting says what it draws; of launching what is a framework's code counts for the host. */
TEST(the_longest_wait_says_it) {
    static const enum hec_state waits[] = {HEC_STATE_DATA,  HEC_STATE_CHECKPOINT, HEC_STATE_HOST,     HEC_STATE_SYNC,
                                           HEC_STATE_ALLOC, HEC_STATE_LAUNCH,     HEC_STATE_REQUESTS, HEC_STATE_PEERS};
    for (size_t longest = 0; longest < sizeof waits / sizeof waits[0]; longest++) {
        begin((double[]){450, 80});
        for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
            state(0, waits[i], i == longest ? 2 : 1, 100 + (double)i, 0);
        state(0, HEC_STATE_TAIL, 9, 50, 0);
        spends(0, 8, 8, 8, 8);
        find();
        near3(power.of[0].idle, 100 + (double)longest, 100 + (double)longest, 100 + (double)longest);
    }
    begin((double[]){450, 80});
    state(0, HEC_STATE_HOST, 1, 110, 0);
    state(0, HEC_STATE_LAUNCH, 2.5, 130, 0);
    state(0, HEC_STATE_SYNC, 9, NAN, 0); /* nobody knows */
    spends(0, 8, 8, 8, 8);
    find();
    near3(power.of[0].idle, 130, 130, 130);
    devices[0].launching_s = 0.8;
    find();
    near3(power.of[0].idle, 110, 110, 110);
}

/* Without a state that waits, without work, without a ledger, or without readings nothing is said. */
TEST(nothing_is_made_up) {
    begin((double[]){450, 80});
    spends(0, 8, 8, 8, 8);
    find();
    assert_true(isnan(power.of[0].work[1]) && isnan(power.of[0].idle[1]));
    assert_near(power.joules[0], 4500, 1e-3);
    state(0, HEC_STATE_DATA, 1, 100, 10);
    spends(0, 8, 8, 8, 0);
    find();
    assert_true(isnan(power.of[0].work[1]) && isnan(power.of[0].idle[1]));
    devices[0].ledger = NULL;
    find();
    assert_int_equal(power.count, 0);
    assert_true(isnan(power.joules[0]));
    run.fail = HEC_ERR_CORRUPT;
    devices[0].ledger = &ledger[0];
    hec_meter_close(&meter);
    hec_meter_open(&meter, &run.input, run.input.end_ns);
    assert_int_equal(hec_replay_power_find(&meter, &summary, &schedule, &recorded, &power, NULL), HEC_ERR_CORRUPT);
}

/* Two devices alike but for how long they wait in collectives: their joules say that working takes 500 W and waiting 200. */
TEST(who_waits_more_says_what_it_draws) {
    begin((double[]){(7 * 500 + 1 * 200 + 2 * 100) / 10.0, (5 * 500 + 3 * 200 + 2 * 100) / 10.0});
    for (int i = 0; i < DEVICES; i++)
        state(i, HEC_STATE_DATA, 1, 100, 0);
    spends(0, 8, 8, 7, 7);
    spends(1, 8, 8, 5, 5);
    find();
    assert_int_equal(power.count, 2);
    for (int i = 0; i < DEVICES; i++) {
        near3(power.of[i].wait, 200, 200, 200);
        near3(power.of[i].work, 500, 500, 500);
        near3(power.of[i].idle, 100, 100, 100);
    }
    struct hec_replay after = recorded; /* none waits any more: that saves their seconds and what they drew */
    after.seconds = 8;
    for (int i = 0; i < DEVICES; i++) {
        after.busy_s[i] = after.kernels_s[i] = after.active_s[i] = after.work_s[i] = 6;
    }
    struct hec_saving saved = hec_replay_power_saved(&power, &recorded, &after);
    /* the same work, of which one did more and the other less; what works less keeps some of its dynamic joules only where more is done */
    double from = 3900 + 3300, to = 2 * (6 * 500 + 2 * 100);
    assert_near(saved.best, 1 - to / from, 1e-6);
}

/* More work at once: above idle it takes nearly the joules that it took before. */
TEST(larger_kernels_keep_their_joules) {
    begin((double[]){450, 80});
    state(0, HEC_STATE_DATA, 1, 100, 0);
    spends(0, 8, 8, 8, 8);
    find();
    double work = (4500 - 200) / 8.0;
    struct hec_replay after = recorded;
    after.work = 2;
    after.seconds = 7;
    after.busy_s[0] = after.kernels_s[0] = after.active_s[0] = after.work_s[0] = 5;
    struct hec_saving saved = hec_replay_power_saved(&power, &recorded, &after);
    double stays[3] = {1, HEC_DYNAMIC_STAYS, HEC_DYNAMIC_STAYS_LEAST}, of[3];
    for (int i = 0; i < 3; i++)
        of[i] = 1 - (5 * 100 + (work - 100) * (5 + stays[i] * 3) + 2 * 100) / 4500;
    assert_near(saved.low, of[0], 1e-6);
    assert_near(saved.best, of[1], 1e-6);
    assert_near(saved.high, of[2], 1e-6);
    assert_true(isnan(hec_replay_power_saved(&(struct hec_replay_power){.count = 0}, &recorded, &after).best));
}

/* What stays of a device's work fills it more, as its rule knows: it draws more. */
TEST(what_stays_draws_more) {
    begin((double[]){450, 80});
    state(0, HEC_STATE_DATA, 1, 100, 0);
    spends(0, 8, 8, 8, 8);
    find();
    double work = (4500 - 200) / 8.0;
    struct hec_replay after = recorded;
    after.seconds = 7;
    after.busy_s[0] = after.kernels_s[0] = after.active_s[0] = after.work_s[0] = 5;
    assert_near(hec_replay_power_saved(&power, &recorded, &after).best, 1 - (5 * work + 200) / 4500, 1e-6);
    after.hotter = 0.3;
    assert_near(hec_replay_power_saved(&power, &recorded, &after).best, 1 - (5 * 1.3 * work + 200) / 4500, 1e-6);
}

/* ---- proofs ---- */

/* L = 0.05 - ln(1 - s): by one e-fold e times as much. */
TEST(savings_are_scaled) {
    assert_near(hec_proofs_scaled(0.3, 0), 0.3, 1e-12);
    assert_near(hec_proofs_scaled(0.3, 1), 1 - exp(0.05 - exp(1) * (0.05 - log(0.7))), 1e-12);
    assert_near(hec_proofs_scaled(0, 1), 1 - exp(0.05 - exp(1) * 0.05), 1e-12);
    assert_near(hec_proofs_scaled(0, -1), 0, 1e-12); /* not below nothing */
    assert_near(hec_proofs_scaled(-2, 1), hec_proofs_scaled(0, 1), 1e-12);
    assert_near(hec_proofs_scaled(2, 0), 0.999, 1e-12);
}

/* A row of proofs.def, and an edit that none is of: twice a spread of its own, about its mean or none. */
TEST(savings_are_widened_by_proofs) {
    static const struct {
        enum hec_edit edit;
        double mean, spread, joules_mean, joules_spread;
    } rows[] = {
#define HEC_REPLAY_PROOF(edit, count, seconds_mean, seconds_spread, joules_mean, joules_spread)                        \
    {HEC_EDIT_##edit, seconds_mean, seconds_spread, joules_mean, joules_spread},
#define HEC_PROOF_DEVICE(name)
#include "diagnose/replay/proofs.def"
    };
    const struct hec_saving replayed = {0.2, 0.3, 0.35};
    int unknown = 0;
    for (int edit = 0; edit < HEC_EDIT_COUNT; edit++) {
        double of[4] = {0, HEC_PROOFS_NONE, 0, HEC_PROOFS_NONE};
        bool known = false;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            if ((int)rows[i].edit == edit) {
                memcpy(of, (double[]){rows[i].mean, rows[i].spread, rows[i].joules_mean, rows[i].joules_spread},
                       sizeof of);
                known = true;
            }
        unknown += !known;
        assert_int_equal(hec_proofs_known((enum hec_edit)edit), known);
        for (int widen = 1; widen < 3; widen++)
            for (int joules = 0; joules < 2; joules++) {
                struct hec_saving s = joules ? hec_proofs_joules((enum hec_edit)edit, replayed, widen)
                                             : hec_proofs_seconds((enum hec_edit)edit, replayed, widen);
                double mean = of[2 * joules], spread = 2 * widen * of[2 * joules + 1];
                assert_near(s.low, fmin(0.3, hec_proofs_scaled(0.2, mean - spread)), 1e-12);
                assert_near(s.best, 0.3, 0);
                assert_near(s.high, fmax(0.3, hec_proofs_scaled(0.35, mean + spread)), 1e-12);
            }
    }
    assert_true(unknown > 0);
}

/* Proofs are of H100 and H200 with PyTorch: of others they say less. */
TEST(proofs_of_other_devices) {
    static const struct {
        const char *names[DEVICES], *pytorch;
        bool used[DEVICES], known;
    } cases[] = {{{"NVIDIA H200", "NVIDIA A100"}, "2.9", {true, true}, true},
                 {{"NVIDIA A100", "NVIDIA H100 80GB HBM3"}, "2.9", {true, true}, true},
                 {{"NVIDIA A100", "NVIDIA H100 80GB HBM3"}, "2.9", {true, false}, false},
                 {{"NVIDIA H200", "NVIDIA H200"}, "", {true, true}, false},
                 {{"NVIDIA A100", "NVIDIA L40S"}, "2.9", {true, true}, false}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        begin((double[]){450, 80});
        snprintf(summary.pytorch, sizeof summary.pytorch, "%s", cases[c].pytorch);
        for (int i = 0; i < DEVICES; i++) {
            snprintf(devices[i].readings.device.name, sizeof devices[i].readings.device.name, "%s", cases[c].names[i]);
            devices[i].readings.used = cases[c].used[i];
        }
        assert_near(hec_proofs_widen(&summary), cases[c].known ? 1 : HEC_PROOFS_ELSEWHERE, 0);
    }
    hec_meter_close(&meter);
    fake_free(&run);
}
