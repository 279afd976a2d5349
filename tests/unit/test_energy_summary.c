/* A whole run in memory to its summary. */
#include "diagnose/meter/device.h"
#include "diagnose/meter/use.h"
#include "recorded_run.h"
#include "report/words/reasons.h"

/* A context held for 5 s: its ledger adds up to the run and to the counter, exactly. */
TEST(test_held_context) {
    run_begin_with(6, 120, 0, 0, 0);
    summarise();
    const struct hec_ledger_device *d = summary.devices[0].ledger;
    assert_non_null(d);
    assert_string_equal(HEC_SAY(&summary.devices[0].watts->why), "");
    int64_t ns = 0, mj = 0;
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        ns += d->rows[i].ns;
        mj += d->rows[i].mj;
    }
    assert_int_equal(ns, 6000000000);
    assert_int_equal(mj, llround(summary.devices[0].readings.energy.joules * 1e3));
    assert_near(d->rows[HEC_STATE_STARTUP].seconds, 1, 0.15);
    assert_near(d->rows[HEC_STATE_STARTUP].watts, 82, 4);
    assert_near(d->rows[HEC_STATE_TAIL].seconds, 5, 0.15);
    assert_near(d->rows[HEC_STATE_TAIL].watts, 120, 2);

    assert_int_equal(d->basis, HEC_LEDGER_UNUSED);
    assert_int_equal(summary.job.findings.count, 1);
    assert_int_equal(summary.job.findings.list[0].cause, HEC_CAUSE_IDLE);
    assert_near(summary.job.findings.list[0].seconds.best, 0.9 * 5 / 6, 0.03);
}

static struct fake_series *series_of(enum hec_metric metric) {
    for (int i = 0; i < run.series_count; i++)
        if (run.series[i].metric == metric)
            return &run.series[i];
    fail_msg("no counter");
    return NULL;
}

/* Reinforcement learning: 0.1 ms of the policy each 30 ms of the environment. The counter reads 3 permille again and again: the
 * program works, and the device waits for it. A context without work reads 1 to 3 permille now and then, as an H100 did. */
TEST(test_little_steady_work) {
    run_begin_with(23, 123, 3, 1, 0);
    memset(series_of(HEC_GPU_UTIL)->v, 0, series_of(HEC_GPU_UTIL)->count * sizeof(int64_t)); /* it misses all of it */
    summarise();
    assert_true(hec_use_waits(&summary.devices[0].readings) > 0);
    for (int i = 0; i < summary.job.findings.count; i++)
        assert_int_not_equal(summary.job.findings.list[i].cause, HEC_CAUSE_IDLE);
    assert_null(summary.devices[0].ledger); /* it works, and nobody saw when */
    run_begin_with(23, 120, 0, 0, 0);
    struct fake_series *engine = series_of(HEC_GPM_GR_ACTIVE);
    for (size_t k = 30; k < engine->count; k += 12)
        engine->v[k] = 1 + (int64_t)k / 12 % 3;
    summarise();
    assert_true(hec_use_nothing(&summary.devices[0].readings) > 0);
    assert_int_equal(summary.job.findings.list[0].cause, HEC_CAUSE_IDLE);
}

TEST(test_one_gpu) {
    run_begin_with(23, 620, 1000, 920, 450);
    fake_unit(&run, "sample", 46000);
    fake_phase(&run, "train", 20);
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0.5, 23, 0.5, 250);
    fake_fill(&run, HEC_TREE_CPU, 0, 1, 23, 1, 46000);
    summarise();
    const struct hec_device_summary *d = &summary.devices[0].readings;
    double truth = 82 + 2 * 120 + 20 * 620;
    assert_int_equal(summary.device_count, 1);
    assert_true(d->used);
    assert_string_equal(HEC_SAY(&d->used_why), "process 4321 (python) of the command had a context on it");
    assert_true(d->energy.valid);
    assert_near(d->energy.joules, truth, d->energy.bound_joules);
    assert_near(d->energy.work_joules + d->energy.idle_context_joules + d->energy.idle_joules, d->energy.joules, 1e-6);
    assert_near(d->energy.idle_context_watts, 120, 1);
    assert_near(d->energy.idle_joules, 82, 10);
    assert_near(d->power_w.median, 620, 0.1);
    assert_near(d->power_w.mean, truth / 23, 2);
    assert_near(d->power_w.maximum, 620, 0);
    assert_near(d->power_limit_w, 700, 0);
    assert_near(d->metric[HEC_GPM_SM_ACTIVE].mean, 0.92 * 20 / 23, 0.01);
    assert_near(d->metric[HEC_GPM_PCIE_RX].maximum, 1.024e8, 0);
    assert_near(d->activity.from_s, 3.5, 0.13); /* 2 % of 20 s of activity later, and from the next reading on */
    assert_near(d->activity.sm, 0.92, 0.001);
    assert_true(hec_use_full(d) > 0.5);
    assert_near(summary.joules, d->energy.joules, 0);
    assert_near(summary.dollars, summary.joules / 3.6e6 * 0.13, 1e-12);
    assert_near(summary.grams_co2, summary.joules / 3.6e6 * 473, 1e-9);
    assert_near(summary.units[0].joules_per_unit, summary.joules / 46000, 1e-9);
    assert_near(summary.units[0].per_second, 2000, 1e-6);
    assert_false(summary.units[0].is_default);
    assert_near(summary.host.cpu_busy, 0.25, 1e-9);
    assert_near(summary.host.tree_cores, 2, 1e-9);
    assert_true(isnan(summary.host.package_joules));
    assert_non_null(strstr(HEC_SAY(&summary.host.package_why), "powercap"));
    assert_near(summary.self.cpu_share, 0.05 / 23, 1e-9);
    assert_int_equal(summary.phase_count, 1);
}

/* The same input twice: the same result, bit for bit. */
TEST(test_deterministic) {
    run_begin(8);
    fake_worker(&run, 0, 620, 1000, 920, 450);
    summarise();
    struct hec_device_diagnosis again = summary.devices[0];
    summarise();
    assert_memory_equal(&again, &summary.devices[0], sizeof again);
}

TEST(test_others_are_not_charged) {
    run_begin(13);
    fake_worker(&run, 0, 500, 1000, 900, 400);
    fake_worker(&run, 1, 300, 1000, 900, 400);
    fake_used(&run, 0, 10);
    fake_on_device(&run, 1, 99, -1, 1);
    summarise();
    assert_true(summary.devices[0].readings.used);
    assert_false(summary.devices[1].readings.used);
    assert_int_equal(summary.devices[1].readings.shared_with, 1);
    assert_true(summary.devices[1].readings.energy.valid);
    assert_near(summary.joules, summary.devices[0].readings.energy.joules, 0);
}

TEST(test_assumed_where_pids_are_hidden) {
    run_begin(8);
    fake_worker(&run, 0, 500, 1000, 900, 400);
    fake_on_device(&run, 0, 10, 0, 0);
    /* a member of the tree that happens to have the same number: of another namespace, so no proof */
    run.processes[run.process_count++] = (struct hec_process){.pid = 10, .end_ns = -1, .name = "sh"};
    summarise();
    assert_true(summary.devices[0].readings.used);
    assert_non_null(strstr(HEC_SAY(&summary.devices[0].readings.used_why), "assumed: "));
}

TEST(test_hidden_device_is_not_assumed) {
    run_begin(8);
    fake_worker(&run, 0, 500, 1000, 900, 400);
    run.devices[0].visible = 0;
    summarise();
    assert_false(summary.devices[0].readings.used);
    assert_true(isnan(summary.joules));
}

/* A pid that is used again, long after the member of the tree ended, is a stranger. */
TEST(test_reused_pid) {
    run_begin(60);
    fake_worker(&run, 0, 500, 1000, 900, 400);
    run.processes[run.process_count++] =
        (struct hec_process){.pid = 10, .start_ns = 0, .end_ns = 2000000000, .name = "sh"};
    fake_on_device(&run, 0, 10, 30000000000, 1);
    summarise();
    assert_false(summary.devices[0].readings.used);
    assert_int_equal(summary.devices[0].readings.shared_with, 1);
}

/* ---- who used a device, of many ---- */

#define USERS 65536

static struct {
    struct hec_gpu_process on_device[USERS];
    struct hec_process members[USERS];
    int on_device_count, member_count;
    struct hec_attribution *attribution;
    int tree_processes;
} users;

static int users_on_devices(void *context, int (*visit)(void *, const struct hec_gpu_process *), void *to,
                            struct hec_why *why) {
    (void)context, (void)why;
    int stop = 0;
    for (int i = 0; i < users.on_device_count && !stop; i++)
        stop = visit(to, &users.on_device[i]);
    return stop;
}

static int users_members(void *context, int (*visit)(void *, const struct hec_process *), void *to,
                         struct hec_why *why) {
    (void)context, (void)why;
    int stop = 0;
    for (int i = 0; i < users.member_count && !stop; i++)
        stop = visit(to, &users.members[i]);
    return stop;
}

static void attribute(void) {
    struct hec_summary_input input = {.gpu_processes = users_on_devices, .processes = users_members};
    assert_int_equal(hec_attribution_create(&input, 100000000000, &users.attribution, &users.tree_processes, NULL), 0);
    assert_int_equal(users.tree_processes, users.member_count);
}

/* Each process on a device is compared with each member of the tree: the first whose life overlaps, by a second, has it. */
static void expect_device(int device) {
    const int64_t second = 1000000000;
    const char *names[64] = {NULL};
    bool ours[64] = {false}, again[64] = {false};
    int own = 0, strangers = 0, hidden = 0, first = -1;
    for (int i = 0; i < users.on_device_count; i++) {
        const struct hec_gpu_process *p = &users.on_device[i];
        for (int k = 0; k < users.member_count && !ours[i]; k++) {
            const struct hec_process *m = &users.members[k];
            ours[i] = p->visible && m->pid == p->pid && (m->end_ns < 0 || p->first_ns <= m->end_ns + second) &&
                      p->last_ns >= m->start_ns - second;
            names[i] = m->name;
        }
        for (int k = 0; k < i; k++)
            again[i] |=
                users.on_device[k].device == p->device && users.on_device[k].pid == p->pid && ours[k] == ours[i];
        if (p->device != device || again[i])
            continue;
        first = ours[i] && first < 0 ? i : first;
        own += ours[i];
        strangers += !ours[i] && p->visible;
        hidden += !ours[i] && !p->visible;
    }
    struct hec_device_summary found = {.device = {.index = device, .visible = 1}, .activity.from_s = 1};
    char why[200] = "";
    hec_attribution_apply(users.attribution, &found);
    assert_int_equal(found.shared_with, strangers + (own ? hidden : 0));
    if (own == 1)
        snprintf(why, sizeof why, "process %d (%s) of the command had", users.on_device[first].pid, names[first]);
    else if (own)
        snprintf(why, sizeof why, "%d processes of the command had a context on it, first %d (%s)", own,
                 users.on_device[first].pid, names[first]);
    if (own ? !strstr(HEC_SAY(&found.used_why), why) : strstr(HEC_SAY(&found.used_why), "(m") != NULL)
        fail_msg("\"%s\", not \"%s\"", HEC_SAY(&found.used_why), why);
}

/* Numerical Recipes, 7.1 */
static int next_random(uint32_t *random, int below) {
    *random = *random * 1664525 + 1013904223;
    return (int)(*random >> 8) % below;
}
#define RANDOM(below) next_random(&random, below)

TEST(test_many_processes) {
    uint32_t random = 1;
    for (int round = 0; round < 300; round++) {
        users.on_device_count = RANDOM(40);
        users.member_count = RANDOM(30);
        for (int i = 0; i < users.on_device_count; i++) {
            struct hec_gpu_process *p = &users.on_device[i];
            *p = (struct hec_gpu_process){.device = RANDOM(3)};
            p->pid = 10 + RANDOM(6);
            p->visible = RANDOM(5) > 0;
            p->first_ns = RANDOM(40) * INT64_C(1000000000);
            p->last_ns = p->first_ns + RANDOM(10) * INT64_C(1000000000);
        }
        for (int i = 0; i < users.member_count; i++) {
            struct hec_process *m = &users.members[i];
            *m = (struct hec_process){.pid = 10 + RANDOM(6)};
            m->start_ns = RANDOM(40) * INT64_C(1000000000);
            m->end_ns = RANDOM(8) ? m->start_ns + RANDOM(10) * INT64_C(1000000000) : -1;
            snprintf(m->name, sizeof m->name, "m%d", i);
        }
        attribute();
        for (int device = 0; device < 3; device++)
            expect_device(device);
        hec_attribution_free(users.attribution);
    }
    /* as many as there can be, of one pid, none of which ever meet: not one by one */
    users.on_device_count = users.member_count = USERS;
    for (int i = 0; i < USERS; i++) {
        users.on_device[i] = (struct hec_gpu_process){.pid = 7, .first_ns = 50000000000 + i, .visible = 1};
        users.on_device[i].last_ns = users.on_device[i].first_ns;
        users.members[i] = (struct hec_process){.pid = 7, .start_ns = i, .end_ns = i + 1};
    }
    attribute();
    struct hec_device_summary found = {.activity.from_s = 1};
    hec_attribution_apply(users.attribution, &found);
    assert_int_equal(found.shared_with, 1);
    hec_attribution_free(users.attribution);
}

TEST(test_lost_device) {
    run_begin_with(8, 500, 1000, 900, 400);
    fake_event(&run, HEC_EVENT_DEVICE_LOST, 0, 7990000000, "GPU 0 is lost");
    summarise();
    assert_false(summary.devices[0].readings.energy.valid);
    assert_non_null(strstr(HEC_SAY(&summary.devices[0].readings.energy.why), "lost at 7.99 s"));
    assert_true(isnan(summary.joules));
    assert_true(isnan(summary.dollars));
    assert_true(isnan(summary.units[0].joules_per_unit));
}

TEST(test_no_gpu) {
    run_begin(5);
    fake_event(&run, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, 0,
               "nvml: there is no NVIDIA driver on this machine");
    run.events[run.event_count++] =
        (struct fake_event){HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, 0, "rapl: the counters are for root only"};
    summarise();
    assert_int_equal(summary.device_count, 0);
    assert_string_equal(HEC_SAY(&summary.energy_unavailable), "there is no NVIDIA driver on this machine");
    assert_string_equal(HEC_SAY(&summary.host.package_why), "the counters are for root only");
    assert_true(isnan(summary.joules));
    assert_int_equal(summary.unit_count, 1);
    assert_true(summary.units[0].is_default);
}

TEST(test_rapl) {
    run_begin(10);
    for (int t = 0; t <= 10; t++) {
        fake_add(&run, HEC_RAPL_PACKAGE_ENERGY, 0, t, 1000000000 + t * 50000000LL);
        fake_add(&run, HEC_RAPL_PACKAGE_ENERGY, 1, t, t * 30000000LL);
    }
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0.5, 10, 0.5, 500);
    fake_fill(&run, HEC_RAPL_DRAM_ENERGY, 0, 0, 5, 1, 7);
    summarise();
    assert_near(summary.host.package_joules, 800, 1e-6);
    assert_true(isnan(summary.host.dram_joules));
    assert_non_null(strstr(HEC_SAY(&summary.host.dram_why), "only 50 %"));
    assert_near(summary.self.joules, 800 * 0.05 / (0.5 * 16 * 10), 1e-9);
}

/* hec was killed, or the run goes on: the length comes from the readings, and what of the device is still to be read is no
 * gap. */
TEST(test_cut_off) {
    run_begin_with(12, 500, 1000, 900, 400);
    fake_fill(&run, HEC_SELF_CPU, 0, 0, 13, 1, 10);
    run.input.end_ns = 0;
    run.input.complete = false;
    run.input.exit_code = -1;
    summarise();
    assert_near(summary.seconds, 12.03, 0.02);
    assert_true(summary.devices[0].readings.energy.valid);
    assert_near(summary.joules, 82 + 240 + (summary.seconds - 3) * 500, summary.bound_joules);
}

TEST(test_events_are_bounded) {
    run_begin(1);
    for (int i = 0; i < 99; i++)
        fake_event(&run, HEC_EVENT_KNOB, HEC_DEVICE_NONE, i, "batch=32");
    fake_event(&run, HEC_EVENT_DEVICE_LOST, 0, 750000000, "lost");
    summarise();
    assert_int_equal(summary.event_count, HEC_SUMMARY_EVENTS_MAX);
    assert_int_equal(summary.events_omitted, 100 - HEC_SUMMARY_EVENTS_MAX);
    assert_int_equal(summary.events[HEC_SUMMARY_EVENTS_MAX - 1].kind, HEC_EVENT_DEVICE_LOST);
    assert_int_equal(summary.events[HEC_SUMMARY_EVENTS_MAX - 1].device, 0);
    assert_string_equal(summary.events[HEC_SUMMARY_EVENTS_MAX - 1].text, "lost");
    assert_near(summary.events[HEC_SUMMARY_EVENTS_MAX - 1].t_s, 0.75, 1e-9);
    assert_near(summary.events[1].t_s, 1e-9, 1e-12);
}

TEST(test_gpu_hours) {
    struct hec_price price = hec_price_default();
    run_begin_with(36, 500, 1000, 900, 400);
    price.dollars_per_gpu_hour = 4;
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, NULL), 0);
    assert_near(summary.dollars, 0.04 + summary.joules / 3.6e6 * 0.13, 1e-9);
}

TEST(test_errors_are_passed_on) {
    struct hec_price price = hec_price_default();
    struct hec_why why;
    run_begin(8);
    fake_worker(&run, 0, 500, 1000, 900, 400);
    run.fail = HEC_ERR_CORRUPT;
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, &why), HEC_ERR_CORRUPT);
    assert_string_equal(why.text, "the file is damaged");
    assert_null(summary.devices);
}

/* Without GPM the driver's utilisation serves, and is trusted less. */
TEST(test_without_gpm) {
    run_begin_with(13, 620, 1000, 920, 450);
    for (int i = 0; i < run.series_count; i++)
        if (strncmp(hec_metric_info(run.series[i].metric)->name, "gpm", 3) == 0)
            run.series[i].count = 0;
    summarise();
    assert_false(summary.devices[0].readings.activity.has_gpm);
    assert_true(hec_use_full(&summary.devices[0].readings) > 0 && hec_use_full(&summary.devices[0].readings) < 0.5);
    assert_near(summary.devices[0].readings.energy.idle_context_watts, 120, 1);
}
