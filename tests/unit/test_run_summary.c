/* What a summary says of the run: labels, events, its length, totals, units of work, the host's rows and HEC's own; and of its job:
 * what ranks wait for each other in collectives of their hosts, and the model's FLOPs. */
#include "diagnose/build.h"
#include "recorded_run.h"
#include "rule_world.h"
#include "unit.h"

#define GAP_TEXT "the driver did not answer for 3 s"

/* ---- what it says of itself ---- */

TEST(labels_are_copied) {
    run_begin(10);
    struct hec_summary_input *in = &run.input;
    in->simulated = "h200", in->imported = "", in->cpu = "EPYC", in->os = "Debian", in->stopped = "steps",
    in->kernel = "6.1";
    in->pytorch = "2.9.1", in->python = "3.11", in->framework = "jax", in->step_module = "GPT",
    in->samples_by = "loader";
    in->step_part[HEC_STEP_FORWARD] = "2500000000 100";
    in->step_part[HEC_STEP_BACKWARD] = "0 1";
    in->step_part[HEC_STEP_UPDATE] = "-1 5";
    in->exit_code = 3, in->loader_workers = 7, in->ranks = 4, in->joined = "2", in->joined_by = "collectives";
    in->gradients = "1000000 250000", in->gradient_syncs = "30 40 10";
    in->complete = false, in->in_progress = true;
    summarise();
    const struct hec_summary *s = &summary;
    static const struct {
        size_t at;
        const char *is;
    } texts[] = {{offsetof(struct hec_summary, command), "python train.py"},
                 {offsetof(struct hec_summary, file), "train.hec"},
                 {offsetof(struct hec_summary, started), "2026-11-20T23:59:59+00:00"},
                 {offsetof(struct hec_summary, hec_version), "0.1.0"},
                 {offsetof(struct hec_summary, hostname), "host"},
                 {offsetof(struct hec_summary, simulated), "h200"},
                 {offsetof(struct hec_summary, imported), ""},
                 {offsetof(struct hec_summary, cpu), "EPYC"},
                 {offsetof(struct hec_summary, os), "Debian"},
                 {offsetof(struct hec_summary, stopped), "steps"},
                 {offsetof(struct hec_summary, kernel), "6.1"},
                 {offsetof(struct hec_summary, pytorch), "2.9.1"},
                 {offsetof(struct hec_summary, python), "3.11"},
                 {offsetof(struct hec_summary, framework), "jax"},
                 {offsetof(struct hec_summary, step_module), "GPT"},
                 {offsetof(struct hec_summary, samples_by), "loader"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_string_equal((const char *)s + texts[i].at, texts[i].is);
    assert_near(s->step_part[HEC_STEP_FORWARD].seconds, 2.5, 1e-12);
    assert_int_equal(s->step_part[HEC_STEP_FORWARD].count, 100);
    assert_near(s->step_part[HEC_STEP_BACKWARD].seconds, 0, 0);
    assert_int_equal(s->step_part[HEC_STEP_BACKWARD].count, 1);
    assert_true(isnan(s->step_part[HEC_STEP_UPDATE].seconds) && s->step_part[HEC_STEP_UPDATE].count == 0);
    assert_int_equal(s->exit_code, 3);
    assert_int_equal(s->loader_workers, 7);
    assert_int_equal(s->job.size, 4);
    assert_int_equal(s->job.joined, 2);
    assert_string_equal(s->job.joined_by, "collectives");
    assert_int_equal(s->job.gradients.syncs, 30);
    assert_int_equal(s->job.gradients.passes, 40);
    assert_int_equal(s->job.gradients.steps, 10);
    assert_near(s->job.gradients.bytes, 1e6, 0);
    assert_near(s->job.gradients.bucket_bytes, 250e3, 0);
    assert_false(s->complete);
    assert_true(s->in_progress);
    assert_near(s->seconds, 10, 1e-12);
}

TEST(gradients_that_make_sense) {
    static const struct {
        const char *bytes, *syncs;
        bool counted, sized;
    } cases[] = {{"8 4", "1 1 1", true, true},    {"8 0", "0 0 1", true, true},   {"0 4", "1 1 1", true, false},
                 {"8 -1", "1 1 1", true, false},  {"8", "1 1 1", true, false},    {NULL, "1 1 1", true, false},
                 {"8 4", "-1 1 1", false, false}, {"8 4", "2 1 1", false, false}, {"8 4", "1 1 0", false, false},
                 {"8 4", "1 1", false, false},    {"8 4", NULL, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_begin(10);
        run.input.gradients = cases[i].bytes;
        run.input.gradient_syncs = cases[i].syncs;
        summarise();
        if ((summary.job.gradients.steps > 0) != cases[i].counted ||
            (summary.job.gradients.bytes > 0) != cases[i].sized)
            fail_msg("case %zu", i);
    }
}

static const char *left_out(void *context) {
    (void)context;
    return "2 of 9 chunks";
}

/* Of events a grave one takes the place of the last that is not; what was left out of a damaged file is one. */
TEST(grave_events_have_room) {
    run_begin(10);
    fake_event(&run, HEC_EVENT_DEVICE_LOST, 3, 1500000000, "lost");
    for (int i = 0; i < HEC_SUMMARY_EVENTS_MAX; i++)
        fake_event(&run, HEC_EVENT_GAP, i == 5 ? HEC_DEVICE_NONE : 0, 2000000000, i == 5 ? GAP_TEXT : "gap");
    fake_event(&run, HEC_EVENT_HOOKS_OUT, HEC_DEVICE_NONE, 3000000000, "out");
    fake_event(&run, HEC_EVENT_HOOKS_LATE, HEC_DEVICE_NONE, 3000000000, "late");
    fake_event(&run, HEC_EVENT_HOOKS_LATE, HEC_DEVICE_NONE, 3000000000, "late");
    fake_event(&run, HEC_EVENT_COUNTER_RESET, 1, 4000000000, "reset");
    fake_event(&run, HEC_EVENT_STORE_FAILED, HEC_DEVICE_NONE, 5000000000, "full");
    run.input.left_out = left_out;
    summarise();
    const struct hec_event_summary *e = summary.events;
    assert_int_equal(summary.event_count, HEC_SUMMARY_EVENTS_MAX);
    assert_int_equal(summary.events_omitted, 1 + 3 + 2 + 1);
    assert_int_equal(summary.hooks_out, 1);
    assert_int_equal(summary.hooks_late, 2);
    assert_true(e[0].kind == HEC_EVENT_DEVICE_LOST && e[0].device == 3 && !e[0].left_out);
    assert_near(e[0].t_s, 1.5, 1e-12);
    for (int i = 1; i < HEC_SUMMARY_EVENTS_MAX - 3; i++)
        assert_int_equal(e[i].kind, HEC_EVENT_GAP);
    e += HEC_SUMMARY_EVENTS_MAX - 3;
    assert_true(e[0].kind == HEC_EVENT_COUNTER_RESET && e[0].device == 1 && strcmp(e[0].text, "reset") == 0);
    assert_true(e[1].kind == HEC_EVENT_STORE_FAILED && e[1].device == HEC_DEVICE_NONE && !e[1].left_out);
    assert_near(e[1].t_s, 5, 1e-12);
    assert_true(e[2].kind == HEC_EVENT_DAMAGED && e[2].left_out && strcmp(e[2].text, "2 of 9 chunks") == 0);
    assert_near(e[2].t_s, 10, 1e-12);
    run_begin(10); /* all are grave */
    for (int i = 0; i < HEC_SUMMARY_EVENTS_MAX + 2; i++)
        fake_event(&run, HEC_EVENT_SENSOR_FAILED, 0, i, i ? "more" : "first");
    summarise();
    assert_int_equal(summary.event_count, HEC_SUMMARY_EVENTS_MAX);
    assert_int_equal(summary.events_omitted, 2);
    assert_string_equal(summary.events[0].text, "first");
}

static void knob_event(enum hec_event_kind kind, const char *text) {
    fake_event(&run, kind, HEC_DEVICE_NONE, 1000000000, text);
}

TEST(knobs) {
    run_begin(10);
    knob_event(HEC_EVENT_KNOB_RANGE, "batch=128 int [32, 512]");
    knob_event(HEC_EVENT_KNOB, "batch=64");
    knob_event(HEC_EVENT_KNOB, "lr=0.1");
    knob_event(HEC_EVENT_KNOB, "batch=64"); /* of another process */
    knob_event(HEC_EVENT_KNOB_RANGE, "lr=0.1 double [0.01, 1]");
    knob_event(HEC_EVENT_KNOB, "mode=a=b");
    knob_event(HEC_EVENT_KNOB, "lr=0.2");
    knob_event(HEC_EVENT_KNOB, "empty=");
    knob_event(HEC_EVENT_KNOB, "=5");
    knob_event(HEC_EVENT_KNOB, "none");
    knob_event(HEC_EVENT_KNOB_RANGE, "wrong=5 int [9, 1]");
    knob_event(HEC_EVENT_KNOB_RANGE, "mode=1 int [0, nan]");
    summarise();
    const struct hec_knob_summary *k = summary.knobs;
    assert_int_equal(summary.knob_count, 5);
    assert_true(strcmp(k[0].name, "batch") == 0 && strcmp(k[0].value, "64") == 0 && k[0].ranged && k[0].whole);
    assert_true(!k[0].changed && k[0].fallback == 128 && k[0].least == 32 && k[0].most == 512);
    assert_true(strcmp(k[1].name, "lr") == 0 && strcmp(k[1].value, "0.1") == 0 && k[1].ranged && !k[1].whole);
    assert_true(k[1].changed && k[1].most == 1);
    assert_true(strcmp(k[2].name, "mode") == 0 && strcmp(k[2].value, "a=b") == 0 && !k[2].ranged && isnan(k[2].least));
    assert_true(strcmp(k[3].name, "empty") == 0 && !k[3].value[0] && !k[3].changed);
    assert_true(strcmp(k[4].name, "wrong") == 0 && !k[4].ranged);
    run_begin(10);
    for (int i = 0; i < HEC_SUMMARY_KNOBS_MAX + 4; i++) {
        static char names[HEC_SUMMARY_KNOBS_MAX + 4][16];
        snprintf(names[i], sizeof names[i], "k%d=%d", i, i);
        knob_event(HEC_EVENT_KNOB, names[i]);
    }
    summarise();
    assert_int_equal(summary.knob_count, HEC_SUMMARY_KNOBS_MAX);
    assert_string_equal(summary.knobs[HEC_SUMMARY_KNOBS_MAX - 1].value, "31");
}

TEST(units_and_phases) {
    run_begin(10);
    fake_unit(&run, "sample", 640);
    fake_unit(&run, "", 3);
    fake_unit(&run, "token", -1);
    fake_unit(&run, "token", NAN);
    fake_phase(&run, "data", 2.5);
    fake_phase(&run, hec_step_part_phases[HEC_STEP_BACKWARD], 1); /* no phase of the program's */
    fake_phase(&run, "checkpoint", 1.5);
    summarise();
    assert_int_equal(summary.unit_count, 2);
    assert_string_equal(summary.units[0].name, "sample");
    assert_near(summary.units[0].count, 640, 0);
    assert_near(summary.units[0].per_second, 64, 1e-9);
    assert_string_equal(summary.units[1].name, "unit");
    assert_near(summary.units[1].count, 3, 0);
    assert_int_equal(summary.phase_count, 2);
    assert_string_equal(summary.phases[0].name, "data");
    assert_near(summary.phases[0].seconds, 2.5, 1e-9);
    assert_int_equal(summary.phases[0].count, 3);
    assert_string_equal(summary.phases[1].name, "checkpoint");
    assert_near(summary.phases[1].seconds, 1.5, 1e-9);
}

/* A run that was cut off is as long as all was read that was still being read. */
TEST(length_by_the_last_readings) {
    static const struct {
        double self, busy, tree, power, energy, is;
    } cases[] = {
        {10, 9, 9.5, 9.7, 9.6, 9.5},                               /* of one source the later reading counts */
        {9, 10, 9.5, 9.6, 9.7, 9.5}, {10, 0, 9.8, 7.9, 7.95, 9.8}, /* a device that has been silent for longer */
        {10, 0, 9.8, 8.1, 7, 8.1},   {10, 0, 0, 0, 0, 10},         {0, 0, 0, 4, 0, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_begin(0);
        run.devices[run.device_count++] = fake_device(0);
        const struct {
            enum hec_metric metric;
            double t;
        } last[] = {{HEC_SELF_CPU, cases[i].self},
                    {HEC_HOST_CPU_BUSY, cases[i].busy},
                    {HEC_TREE_CPU, cases[i].tree},
                    {HEC_GPU_POWER, cases[i].power},
                    {HEC_GPU_ENERGY, cases[i].energy}};
        for (size_t k = 0; k < sizeof last / sizeof last[0]; k++)
            if (last[k].t > 0) {
                fake_add(&run, last[k].metric, 0, 0.5, 1);
                fake_add(&run, last[k].metric, 0, last[k].t, 2);
            }
        summarise();
        if (fabs(summary.seconds - cases[i].is) > 1e-9)
            fail_msg("case %zu: %g s", i, summary.seconds);
    }
}

/* ---- the host ---- */

TEST(rows_of_the_host) {
    static const struct {
        enum hec_metric metric;
        int64_t values[3];
    } series[] = {{HEC_TREE_CPU, {1000, 3000, 20000}},
                  {HEC_TREE_RSS, {100, 900, 500}},
                  {HEC_TREE_READ, {1, 2, 30}},
                  {HEC_TREE_WRITTEN, {1, 2, 40}},
                  {HEC_TREE_DISK_READ, {1, 2, 50}},
                  {HEC_TREE_SWITCHES_VOLUNTARY, {1, 2, 60}},
                  {HEC_TREE_SWITCHES_INVOLUNTARY, {1, 2, 70}},
                  {HEC_SELF_CPU, {1000, 2000, 100000}},
                  {HEC_SELF_RSS, {10, 90, 50}},
                  {HEC_HOST_CPU_BUSY, {0, 250, 750}}};
    for (int exact = 0; exact < 3; exact++) {
        run_begin(10);
        for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
            for (int k = 0; k < 3; k++)
                fake_add(&run, series[i].metric, 0, 5 * k, series[i].values[k]);
        /* of the operating system, at the end: more, or less than what a poll saw */
        run.input.tree_cpu_seconds = exact == 0 ? NAN : exact == 1 ? 25 : 15;
        run.input.tree_rss_max_bytes = exact == 0 ? NAN : exact == 1 ? 1e6 : 1e5;
        run.input.self_cpu_seconds = exact == 0 ? NAN : 0.2;
        run.input.self_rss_max_bytes = exact == 0 ? NAN : 5e4;
        summarise();
        const struct hec_host_summary *h = &summary.host;
        assert_int_equal(h->cores, 16);
        assert_int_equal(h->cores_usable, 16);
        assert_near(h->cpu_busy, 0.5, 1e-9);
        assert_near(h->tree_cpu_seconds, exact == 1 ? 25 : 20, 1e-9);
        assert_near(h->tree_cores, exact == 1 ? 2.5 : 2, 1e-9);
        assert_near(h->rss_max_bytes, exact == 1 ? 1e6 : 900 * 1024, 1e-9);
        assert_near(h->read_bytes, 30 * 1024, 1e-9);
        assert_near(h->written_bytes, 40 * 1024, 1e-9);
        assert_near(h->disk_read_bytes, 50 * 1024, 1e-9);
        assert_near(h->switches_voluntary, 60, 0);
        assert_near(h->switches_involuntary, 70, 0);
        assert_near(summary.self.cpu_seconds, exact ? 0.2 : 0.1, 1e-12);
        assert_near(summary.self.cpu_share, exact ? 0.02 : 0.01, 1e-12);
        assert_near(summary.self.rss_max_bytes, exact ? 5e4 : 90 * 1024, 1e-9);
        assert_near(summary.self.file_bytes, 123456, 0);
        assert_near(summary.self.start_seconds, 0.031, 0);
        assert_true(isnan(summary.self.joules));
    }
    run_begin(10); /* of nothing nothing is said, but for what the operating system says */
    run.input.tree_cpu_seconds = 12;
    summarise();
    assert_near(summary.host.tree_cpu_seconds, 12, 0);
    assert_true(isnan(summary.host.rss_max_bytes) && isnan(summary.host.read_bytes) && isnan(summary.host.cpu_busy));
}

/* Two packages and one domain of memory: all of each must have been read nearly throughout, and counters do not go back. */
TEST(joules_of_packages) {
    static const struct {
        double first, last, end_j, package;
        enum hec_reason_id why;
    } cases[] = {{0, 10, 300, 700, HEC_REASON_NONE},
                 {0.1, 9.7, 288, 700, HEC_REASON_NONE}, /* by the time that the readings span */
                 {0.1, 9.5, 300, NAN, HEC_REASON_PACKAGE_UNREAD},
                 {0, 10, -1, NAN, HEC_REASON_PACKAGE_BACKWARDS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_begin(10);
        fake_add(&run, HEC_RAPL_PACKAGE_ENERGY, 0, 0, 5000000);
        fake_add(&run, HEC_RAPL_PACKAGE_ENERGY, 0, 10, 405000000);
        fake_add(&run, HEC_RAPL_PACKAGE_ENERGY, 1, cases[i].first, 7000000);
        fake_add(&run, HEC_RAPL_PACKAGE_ENERGY, 1, cases[i].last, 7000000 + llround(cases[i].end_j * 1e6));
        fake_add(&run, HEC_RAPL_DRAM_ENERGY, 0, 0, 0);
        fake_add(&run, HEC_RAPL_DRAM_ENERGY, 0, 10, 90000000);
        fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0, 10, 1, 250);
        run.input.self_cpu_seconds = 0.4; /* of 0.25 of 16 cores for 10 s: a hundredth */
        summarise();
        const struct hec_host_summary *h = &summary.host;
        assert_int_equal(h->package_why.id, cases[i].why);
        assert_near(h->dram_joules, 90, 1e-9);
        assert_int_equal(h->dram_why.id, HEC_REASON_NONE);
        if (cases[i].why == HEC_REASON_NONE) {
            assert_near(h->package_joules, cases[i].package, 1e-6);
            assert_near(summary.self.joules, cases[i].package / 100, 1e-6);
        } else {
            assert_true(isnan(h->package_joules) && isnan(summary.self.joules));
        }
    }
    run_begin(10);
    summarise();
    assert_int_equal(summary.host.package_why.id, HEC_REASON_NO_CPU_COUNTER);
    assert_int_equal(summary.host.dram_why.id, HEC_REASON_NO_DRAM_COUNTER);
    run_begin(10);
    fake_event(&run, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, 0, "nvml: no library");
    fake_event(&run, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, 0, "rapl: may not be read");
    summarise();
    assert_string_equal(summary.host.package_why.text, "may not be read");
    assert_string_equal(summary.host.dram_why.text, "may not be read");
}

/* ---- totals ---- */

/* Devices of 3, 5 and 7 kJ, the second of which is not used; steps of the third count tokens. */
static void totals(double hour) {
    const struct hec_price price = {.dollars_per_kwh = 0.36, .grams_co2_per_kwh = 720, .dollars_per_gpu_hour = hour};
    static struct hec_device_diagnosis devices[3];
    memset(&summary, 0, sizeof summary);
    memset(devices, 0, sizeof devices);
    summary.devices = devices;
    summary.device_count = 3;
    summary.seconds = 1800;
    for (int i = 0; i < 3; i++) {
        devices[i].readings.device.index = i;
        devices[i].readings.used = i != 1;
        devices[i].readings.energy =
            (struct hec_energy){.valid = true, .joules = 3000 + 2000 * i, .bound_joules = 30 + i};
    }
    devices[2].steps = (struct hec_step_summary){.count = 10, .units = 100, .unit = "token"};
    summary.unit_count = 2;
    snprintf(summary.units[0].name, sizeof summary.units[0].name, "sample");
    summary.units[0].count = 20;
    snprintf(summary.units[1].name, sizeof summary.units[1].name, "token");
    summary.units[1].count = 100;
    hec_totals_find(&summary, &price, NULL);
}

/* What a file said of the grid stands for the default, and not for what somebody chose. */
TEST(carbon_of_a_file) {
    static const struct {
        const char *carbon, *from;
        bool chosen;
        double grams;
    } cases[] = {
        {"200.5 average, WattTime, X", "average, WattTime, X", false, 200.5},
        {"200.5 average, WattTime, X", "", true, 720},
        {"0 marginal, Y", "marginal, Y", false, 0},
        {NULL, "", false, 720},
        {"", "", false, 720},
        {"average", "", false, 720},
        {"200", "", false, 720},
        {"200 ", "", false, 720},
        {"-1 average", "", false, 720},
        {"nan average", "", false, 720},
    };
    hec_summary_free(&summary);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct hec_price price = {.grams_co2_per_kwh = 720, .carbon_default = !cases[i].chosen};
        totals(0);
        hec_totals_find(&summary, &price, cases[i].carbon);
        assert_near(summary.grams_co2, 10000 / 3.6e6 * cases[i].grams, 1e-9);
        assert_string_equal(summary.price.carbon_from, cases[i].from);
        assert_int_equal(summary.price.carbon_default, !cases[i].chosen && !cases[i].from[0]);
    }
    memset(&summary, 0, sizeof summary);
}

TEST(totals_and_prices) {
    hec_summary_free(&summary);
    totals(2);
    assert_near(summary.joules, 10000, 0);
    assert_near(summary.bound_joules, 62, 0);
    assert_near(summary.dollars, 10000 / 3.6e6 * 0.36 + 2 * 0.5 * 2, 1e-12);
    assert_near(summary.grams_co2, 2, 1e-12);
    const struct hec_unit_summary *u = &summary.units[0];
    assert_true(u->devices == 5 && !u->part_of_devices && !u->is_default);
    assert_near(u->per_second, 20.0 / 1800, 1e-15);
    assert_near(u->joules_per_unit, 500, 1e-9);
    assert_near(u->joules_per_unit_bound, 3.1, 1e-9);
    assert_near(u->dollars_per_unit, summary.dollars / 20, 1e-12);
    assert_near(u->grams_co2_per_unit, 0.1, 1e-12);
    u = &summary.units[1]; /* of the device whose program counts them */
    assert_true(u->devices == 4 && u->part_of_devices);
    assert_near(u->joules_per_unit, 70, 1e-9);
    assert_near(u->joules_per_unit_bound, 0.32, 1e-9);
    assert_near(u->dollars_per_unit, (7000 / 3.6e6 * 0.36 + 0.5 * 2) / 100, 1e-12);
    assert_near(u->grams_co2_per_unit, 7000 / 3.6e6 * 720 / 100, 1e-12);
    totals(0);
    assert_near(summary.dollars, 10000 / 3.6e6 * 0.36, 1e-12);
    summary.devices[2].readings.energy.valid = false;
    summary.unit_count = 0;
    hec_totals_find(&summary, &(struct hec_price){.dollars_per_kwh = 1}, NULL);
    assert_true(isnan(summary.joules) && isnan(summary.bound_joules) && isnan(summary.dollars));
    assert_int_equal(summary.unit_count, 1);
    assert_true(summary.units[0].is_default && strcmp(summary.units[0].name, "run") == 0 &&
                summary.units[0].devices == 5);
    assert_near(summary.units[0].count, 1, 0);
    assert_true(isnan(summary.units[0].joules_per_unit));
    memset(&summary, 0, sizeof summary);
}

/* ---- ranks that meet on their hosts ---- */

static void peers(int device, double compute_s, double peers_s) {
    world_state(device, HEC_STATE_COMPUTE, compute_s, 500);
    world_state(device, HEC_STATE_PEERS, peers_s, 150);
    w.devices[device].steps = (struct hec_step_summary){.count = 100, .pid = 70 + device, .duration = {.mean = 0.5}};
}

/* Of two ranks the one that waits least for the other is who is waited for. */
TEST(who_is_waited_for_on_the_host) {
    static struct hec_rank ranks[2];
    static const struct hec_rank first = {.pid = 70, .number = 0, .devices = 1},
                                 second = {.pid = 71, .number = 1, .devices = 2};
    for (int slow = 0; slow < 2; slow++) {
        struct hec_job_diagnosis *job = &w.summary.job;
        world_begin(2);
        peers(slow, 60, 2);
        peers(!slow, 30, 32);
        ranks[0] = first;
        ranks[1] = second;
        job->ranks = ranks;
        job->rank_count = job->size = 2;
        assert_int_equal(hec_job_find(&w.summary, &(struct hec_schedule){0}, job), 0);
        assert_true(job->with[0] == 3 && job->with[1] == 3);
        const struct hec_collectives *c = &job->collectives;
        assert_true(c->on_host && !c->matched);
        assert_int_equal(c->count, 2);
        assert_int_equal(c->devices, 3);
        assert_int_equal(c->slowest, slow);
        assert_int_equal(c->waits_most, !slow);
        assert_near(c->waited_s[!slow], 30, 1e-9);
        assert_near(c->waited_s[slow], 0, 1e-9);
        assert_near(c->mean_work_s, (hec_ledger_work(w.devices[0].steady) + hec_ledger_work(w.devices[1].steady)) / 2,
                    1e-9);
        assert_near(ranks[!slow].waited_s, 30, 1e-9);
        assert_near(ranks[!slow].waited_j, 30 * 150, 1e-6);
        assert_near(ranks[!slow].held_s, 0, 0);
        assert_near(ranks[!slow].held_j, 0, 0);
        assert_near(ranks[slow].waited_s, 0, 1e-9);
        assert_near(ranks[slow].held_s, 30, 1e-9);
        assert_near(ranks[slow].held_j, 30 * 150, 1e-6);
        assert_near(c->lost_j, 30 * 150, 1e-6);
        assert_false(c->estimated);
        assert_true(ranks[slow].holds && !ranks[!slow].holds);
        assert_true(ranks[0].in_short_table && ranks[1].in_short_table);
    }
}

/* Of 12 ranks a short table has those that hold others up, the one that waits most, a usual one, and who differs from that. */
TEST(a_short_table_of_ranks) {
    enum { RANKS = 12 };
    static struct hec_rank ranks[RANKS];
    struct hec_summary s = {.seconds = 100};
    struct hec_job_diagnosis job = {.ranks = ranks, .rank_count = RANKS};
    for (int i = 0; i < RANKS; i++)
        ranks[i] = (struct hec_rank){.pid = i, .number = i, .waited_s = 20, .held_s = 1};
    ranks[3].held_s = 60;
    ranks[3].waited_s = 0;
    ranks[7].held_s = 100;
    ranks[7].waited_s = 1;
    ranks[9].waited_s = 30;
    ranks[10].waited_s = 21; /* much the same as the others */
    assert_int_equal(hec_job_alike(&s, &job), 0);
    for (int i = 0; i < RANKS; i++) {
        bool apart = i == 3 || i == 7 || i == 9;
        assert_int_equal(ranks[i].holds, i == 3 || i == 7);
        assert_int_equal(ranks[i].unusual, apart);
        assert_int_equal(ranks[i].in_short_table, apart || i == 0);
    }
    assert_int_equal(job.usual, 0);
    for (int i = 0; i < RANKS; i++) { /* more than there is room for: four that hold others up */
        ranks[i] = (struct hec_rank){.pid = i, .number = i, .waited_s = 10 * (i + 1), .held_s = i >= 6 ? 100 + i : 0};
    }
    assert_int_equal(hec_job_alike(&s, &job), 0);
    int rows = 0;
    for (int i = 0; i < RANKS; i++)
        rows += ranks[i].in_short_table;
    assert_int_equal(rows, 8);
    for (int i = 8; i < RANKS; i++)
        assert_true(ranks[i].in_short_table && ranks[i].holds);
    assert_true(ranks[job.usual].in_short_table && !ranks[job.usual].holds);
    job.rank_count = 0;
    assert_int_equal(hec_job_alike(&s, &job), 0);
}

/* ---- FLOPs ---- */

TEST(flops_as_the_hooks_say) {
    static const struct {
        const char *text;
        double half, fp32, all, error;
        int64_t counted;
    } cases[] = {{"3 0.01 fp16=2e12 fp32=5e11", 2e12, 5e11, 2.5e12, 0.01, 3},
                 {"1 0 fp16=1", 1, 0, 1, 0, 1},
                 {"1 1 fp32=1e30", 0, 1e30, 1e30, 1, 1},
                 {"0 0.01 fp16=2e12", 0, 0, 0, 0, 0},
                 {"3 1.1 fp16=2e12", 0, 0, 0, 0, 0},
                 {"3 -0.1 fp16=2e12", 0, 0, 0, 0, 0},
                 {"3 0.1 fp17=2e12", 0, 0, 0, 0, 0},
                 {"3 0.1 fp16=0", 0, 0, 0, 0, 0},
                 {"3 0.1 fp16=2e30", 0, 0, 0, 0, 0},
                 {"3 0.1 fp16=2x", 0, 0, 0, 0, 0},
                 {"3 0.1 fp16", 0, 0, 0, 0, 0},
                 {"3 0.1", 0, 0, 0, 0, 0},
                 {"", 0, 0, 0, 0, 0},
                 {NULL, 0, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_model_flops f;
        hec_model_flops_read(cases[i].text, "nobody counted", &f);
        if (f.step[HEC_PRECISION_FP16] != cases[i].half || f.step[HEC_PRECISION_FP32] != cases[i].fp32 ||
            f.all != cases[i].all || f.error != cases[i].error || f.counted != cases[i].counted)
            fail_msg("case %zu", i);
        assert_string_equal(f.why, cases[i].all > 0 ? "" : "nobody counted");
    }
}

/* A step of 0.1 s of arithmetic at the peaks, 50 of them in 10 s of loop: half of what the part can, shared out by the devices. */
TEST(utilisation_of_the_model) {
    const struct hec_part *part = hec_part_find("NVIDIA H200");
    world_begin(2);
    w.summary.flops.step[HEC_PRECISION_FP16] = 0.06 * part->peak_tflops[HEC_PRECISION_FP16] * 1e12;
    w.summary.flops.step[HEC_PRECISION_FP32] = 0.04 * part->peak_tflops[HEC_PRECISION_FP32] * 1e12;
    w.summary.flops.all = 1;
    w.summary.loop = (struct hec_loop){.known = true, .steps = 50};
    w.summary.loop.seconds[HEC_RUN_LOOP] = 10;
    hec_mfu_find(&w.summary);
    assert_near(w.devices[0].mfu, 0.25, 1e-9); /* one process uses both */
    assert_near(w.devices[1].mfu, 0.25, 1e-9);
    w.devices[1].readings.used = false;
    hec_mfu_find(&w.summary);
    assert_near(w.devices[0].mfu, 0.5, 1e-9);
    assert_true(isnan(w.devices[1].mfu));
    w.devices[1].readings.used = true;
    static struct hec_rank ranks[2] = {{.number = 0, .devices = 1}, {.number = 1, .devices = 2}};
    w.summary.job.ranks = ranks;
    w.summary.job.rank_count = w.summary.job.size = 2;
    hec_mfu_find(&w.summary);
    assert_near(w.devices[1].mfu, 0.5, 1e-9);
    w.summary.job.size = 1; /* more processes than ranks: whose it is is not known */
    hec_mfu_find(&w.summary);
    assert_true(isnan(w.devices[1].mfu));
    w.summary.job.size = 2;
    w.summary.loop.steps = 101; /* more than the part can */
    hec_mfu_find(&w.summary);
    assert_true(isnan(w.devices[0].mfu));
    w.summary.loop.steps = 100;
    hec_mfu_find(&w.summary);
    assert_near(w.devices[0].mfu, 1, 1e-9);
    w.summary.steps.source = HEC_STEP_MARKED;
    hec_mfu_find(&w.summary);
    assert_true(isnan(w.devices[0].mfu));
    w.summary.steps.source = HEC_STEP_MODULE;
    snprintf(w.devices[0].readings.device.name, sizeof w.devices[0].readings.device.name, "nobody's");
    hec_mfu_find(&w.summary);
    assert_true(isnan(w.devices[0].mfu) && w.devices[1].mfu > 0.99);
    w.summary.loop.known = false;
    hec_mfu_find(&w.summary);
    assert_true(isnan(w.devices[1].mfu));
}
