/* Workloads: their tables, their truth, and that playing one leaves exactly the energy that the truth says. */
#include "sim/play.h"
#include "tests/unit/sim_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const causes[] = {
#define HEC_CAUSE(id, name, lever) #name,
#include "diagnose/cause.def"
};
static const char *const untraced[] = {"none", "copy", "launch", "host", "idle", ""};

static bool is_one_of(const char *text, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

TEST(tables_are_sane) {
    assert_true(sim_case_count() >= 13);
    for (int i = 0; i < sim_case_count(); i++) {
        const struct sim_case *c = sim_case_at(i);
        assert_ptr_equal(sim_case_find(c->name), c);
        assert_true(is_one_of(c->cause, causes, sizeof causes / sizeof causes[0]));
        assert_true(is_one_of(c->untraced, untraced, sizeof untraced / sizeof untraced[0]));
        assert_true(c->segment_count > 0);
        for (int s = 0; s < c->segment_count; s++)
            assert_true(c->segments[s].times > 0 && c->segments[s].duration_us > 0);
    }
    assert_null(sim_case_find("no-such-case"));
}

TEST(a_case_is_read_from_text) {
    struct sim_case_written written;
    struct hec_why why;
    assert_int_equal(sim_case_read("train_tf32:25700x20,wait_checkpoint:900000", &written, &why), HEC_OK);
    assert_int_equal(written.workload.segment_count, 2);
    assert_int_equal(written.segments[0].activity, SIM_TRAIN_TF32);
    assert_int_equal(written.segments[0].times, 20);
    assert_int_equal(written.segments[1].duration_us, 900000);
    struct sim_truth truth;
    assert_int_equal(sim_case_truth(&written.workload, 2 * 1.414 + 0.02, sim_profile_find("h200"), 0, 0, &truth),
                     HEC_OK);
    assert_int_equal(truth.steps, 2);
    assert_near(truth.activity[SIM_WAIT_CHECKPOINT].seconds, 1.8, 1e-6);
    static const char *const wrong[] = {
        "",           "train_tf32",       "train_tf32:",   "train_tf32:0",  "train_tf32:5x0",
        "no_such:50", "train_tf32:5x1.5", "train_tf32:5,", "train_tf32:-5", ":5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(sim_case_read(wrong[i], &written, &why), HEC_ERR_USAGE);
    char many[SIM_CASE_WRITTEN_MAX * 16 + 32] = "comm:1";
    for (int i = 0; i < SIM_CASE_WRITTEN_MAX; i++)
        strcat(many, ",comm:1");
    assert_int_equal(sim_case_read(many, &written, &why), HEC_ERR_USAGE);
    char long_text[4000];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    assert_int_equal(sim_case_read(long_text, &written, &why), HEC_ERR_USAGE);
}

TEST(parts_sum_to_the_whole) {
    for (int i = 0; i < sim_case_count(); i++)
        for (int p = 0; p < sim_profile_count(); p++)
            for (uint64_t seed = 0; seed < 3; seed++) {
                struct sim_truth truth;
                assert_int_equal(sim_case_truth(sim_case_at(i), 10, sim_profile_at(p), 0, seed, &truth), HEC_OK);
                double seconds = 0, joules = 0;
                for (int a = 0; a < SIM_ACTIVITY_COUNT; a++) {
                    seconds += truth.activity[a].seconds;
                    joules += truth.activity[a].joules;
                }
                assert_near(truth.seconds, 10, 1e-9);
                assert_near(seconds, truth.seconds, 1e-6);
                assert_near(joules, truth.joules, 1e-6);
                assert_near(truth.work_seconds + truth.idle_seconds, truth.seconds, 1e-6);
                assert_near(truth.work_joules + truth.idle_joules, truth.joules, 1e-6);
                assert_near(truth.idle_joules, truth.idle_seconds * sim_profile_at(p)->context_mw / 1000.0, 1e-5);
                assert_true(truth.joules < 10 * sim_profile_at(p)->power_max_mw / 1000.0 * 1.01);
            }
}

/* By hand. */
TEST(truth_is_what_the_tables_say) {
    const struct sim_profile *h200 = sim_profile_find("h200");
    struct sim_truth truth;
    /* 20 ms startup, then steps of 103.7 ms: 70 waiting, 8 copying, 25.7 training */
    assert_int_equal(sim_case_truth(sim_case_find("data-starved"), 0.020 + 10 * 0.1037, h200, 0, 0, &truth), HEC_OK);
    assert_int_equal(truth.steps, 10);
    assert_near(truth.units, 1280, 0);
    assert_near(truth.idle_seconds, 0.020 + 0.7, 1e-9);
    assert_near(truth.work_joules, 0.08 * 130 + 0.257 * 531, 1e-6);
    /* held but for a burst of 50 ms */
    assert_int_equal(sim_case_truth(sim_case_find("healthy-gemm"), 1.02, h200, 0, 0, &truth), HEC_OK);
    assert_near(truth.capped_seconds, 0.95, 1e-9);
    assert_near(truth.joules, 0.02 * 120 + 0.05 * 846 + 0.95 * 690.9, 1e-6);
    assert_int_equal(sim_case_truth(sim_case_find("power-capped"), 1.02, h200, 0, 0, &truth), HEC_OK);
    assert_near(truth.joules, 0.02 * 120 + 0.05 * 846 + 0.95 * 394.8, 1e-6);
    /* less than the startup */
    assert_int_equal(sim_case_truth(sim_case_find("fp32"), 0.01, h200, 0, 0, &truth), HEC_OK);
    assert_near(truth.joules, 1.2, 1e-9);
    assert_int_equal(truth.steps, 0);
    assert_int_equal(sim_case_truth(sim_case_find("fp32"), -1, h200, 0, 0, &truth), HEC_ERR_USAGE);
    assert_int_equal(sim_case_truth(sim_case_find("fp32"), NAN, h200, 0, 0, &truth), HEC_ERR_USAGE);
}

TEST(seeds_jitter_and_reproduce) {
    const struct sim_profile *h200 = sim_profile_find("h200");
    struct sim_truth a, b, c, plain;
    const struct sim_case *mixed = sim_case_find("mixed");
    sim_case_truth(mixed, 30, h200, 0, 5, &a);
    sim_case_truth(mixed, 30, h200, 0, 5, &b);
    sim_case_truth(mixed, 30, h200, 0, 6, &c);
    sim_case_truth(mixed, 30, h200, 0, 0, &plain);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.joules != c.joules && a.joules != plain.joules);
    assert_near(a.joules / plain.joules, 1, 0.02); /* jitter, not another workload */
}

/* Energy and time of a window that holds the play: what exceeds idling is the play's, to a nanojoule a segment. */
static void check_against_world(int device, const struct sim_truth *truth) {
    const struct sim_profile *profile = sim_world_profile(world);
    int64_t now = sim_world_now_ns(world), epoch = sim_world_epoch_ns(world);
    double whole = (double)sim_world_energy_nj(world, device, now) * 1e-9;
    double outside = ((double)(now - epoch) * 1e-9 - truth->seconds) * profile->idle_mw / 1000.0;
    assert_near(whole, truth->joules + outside, 1e-4);
    struct sim_active active;
    sim_world_active(world, device, now, &active);
    for (int a = SIM_WAIT_DATA; a < SIM_ACTIVITY_COUNT; a++)
        assert_near((double)active.ns[a] * 1e-9, truth->activity[a].seconds, 1e-8);
}

static void count_steps(void *context, double units) {
    *(double *)context += units;
}

TEST(playing_leaves_the_energy_that_truth_says) {
    static const char *const played[] = {"mixed", "healthy-gemm", "power-capped"};
    for (int i = 0; i < 3; i++) {
        make_world("h200x2");
        double units = 0;
        struct sim_play_options options = {.seconds = 0.4,
                                           .device = 1,
                                           .seed = (uint64_t)i,
                                           .on_step = count_steps,
                                           .context = &units,
                                           .world_path = sim_world_path(world)};
        struct sim_truth truth, predicted;
        struct hec_why why = {""};
        if (sim_play(played[i], &options, &truth, &why) != HEC_OK)
            fail_msg("%s", why.text);
        check_against_world(1, &truth);
        assert_near(units, truth.units, 0);
        /* where the player was never late, it did what was predicted, but for closing the context a moment later */
        sim_case_truth(sim_case_find(played[i]), 0.4, sim_world_profile(world), 0, (uint64_t)i, &predicted);
        if (truth.late_seconds == 0) {
            assert_near(truth.work_joules, predicted.work_joules, 1e-6);
            assert_near(truth.units, predicted.units, 0);
        }
        assert_int_equal(sim_world_cap_mw(world, 1), 700000); /* put back */
        struct sim_context contexts[SIM_CONTEXT_MAX];
        assert_int_equal(sim_world_contexts(world, 1, contexts), 0);
    }
}

/* A cap has its price: fewer units a second; and its gain: fewer joules a unit, until it is too low. Where the device waits for the host
 * most of the time, it has neither. */
TEST(a_cap_has_its_price) {
    const struct sim_profile *h200 = sim_profile_find("h200");
    const struct sim_case *tuned = sim_case_find("healthy-train"), *starved = sim_case_find("data-starved");
    struct sim_truth full, low, least;
    assert_int_equal(sim_case_truth(tuned, 60, h200, 0, 0, &full), HEC_OK);
    assert_int_equal(sim_case_truth(tuned, 60, h200, 350000, 0, &low), HEC_OK);
    assert_int_equal(sim_case_truth(tuned, 60, h200, 200000, 0, &least), HEC_OK);
    assert_near(full.seconds, low.seconds, 1e-6);
    assert_true(low.units < 0.9 * full.units && low.units > 0.5 * full.units);
    assert_true(low.joules / low.units < 0.85 * full.joules / full.units);
    assert_true(least.joules / least.units > low.joules / low.units);
    assert_int_equal(sim_case_truth(starved, 60, h200, 0, 0, &full), HEC_OK);
    assert_int_equal(sim_case_truth(starved, 60, h200, 350000, 0, &low), HEC_OK);
    assert_near(low.units, full.units, 0);
    assert_near(low.joules, full.joules, 1e-6);
}

TEST(playing_under_a_cap_is_exact_too) {
    make_world("h200x2,cap=300");
    struct sim_play_options options = {.seconds = 0.4, .device = 1, .world_path = sim_world_path(world)};
    struct sim_truth truth, predicted;
    struct hec_why why = {""};
    if (sim_play("fp32", &options, &truth, &why) != HEC_OK)
        fail_msg("%s", why.text);
    check_against_world(1, &truth);
    sim_case_truth(sim_case_find("fp32"), 0.4, sim_world_profile(world), 300000, 0, &predicted);
    if (truth.late_seconds == 0) {
        assert_near(truth.work_joules, predicted.work_joules, 1e-6);
        assert_near(truth.units, predicted.units, 0);
    }
}

static void take_start(void *context, const char *name, int64_t start_ns, int64_t end_ns) {
    int64_t *first_ns = context;
    (void)name, (void)end_ns;
    if (*first_ns == 0)
        *first_ns = start_ns;
}

/* After the last edge of the sensors, modulo the 100 ms after which they are where they were. */
static int64_t phase_of_first_step(uint64_t seed, int64_t begun_ns) {
    for (;;) { /* again where this machine was too busy to play in time, which the truth tells */
        make_world("h200");
        int64_t first_ns = 0;
        struct sim_play_options options = {.seconds = 0.1,
                                           .seed = seed,
                                           .on_phase = take_start,
                                           .context = &first_ns,
                                           .world_path = sim_world_path(world)};
        struct sim_truth truth;
        sim_world_spend(world, begun_ns);
        assert_int_equal(sim_play("data-starved", &options, &truth, NULL), HEC_OK);
        int64_t phase = (first_ns - sim_world_epoch_ns(world)) % 100000000;
        if (truth.late_seconds == 0)
            return phase;
    }
}

TEST(a_seed_decides_where_the_sensors_are) {
    for (uint64_t seed = 0; seed < 2; seed++)
        assert_int_equal(phase_of_first_step(seed, 0), phase_of_first_step(seed, 37000000));
    assert_int_not_equal(phase_of_first_step(0, 0), phase_of_first_step(1, 0));
}

static volatile sig_atomic_t enough;

static void stop_soon(void *context, double units) {
    (void)units;
    if (++*(int *)context == 3)
        enough = 1;
}

TEST(early_end_is_exact_too) {
    make_world("h200");
    int steps = 0;
    struct sim_play_options options = {
        .seconds = 1000, .on_step = stop_soon, .context = &steps, .stop = &enough, .world_path = sim_world_path(world)};
    struct sim_truth truth;
    assert_int_equal(sim_play("data-starved", &options, &truth, NULL), HEC_OK);
    assert_true(truth.steps >= 3 && truth.seconds < 500);
    check_against_world(0, &truth);
}

TEST(sigterm_ends_a_play) {
    make_world("h200");
    pid_t child = fork();
    if (child == 0) {
        struct sim_play_options options = {.seconds = 1000, .world_path = sim_world_path(world)};
        struct sim_truth truth;
        _exit(sim_play("fp32", &options, &truth, NULL) == HEC_OK && truth.seconds < 900 ? 7 : 1);
    }
    struct sim_context contexts[SIM_CONTEXT_MAX];
    while (sim_world_contexts(world, 0, contexts) == 0)
        usleep(2000);
    int status;
    kill(child, SIGTERM);
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(sim_world_contexts(world, 0, contexts), 0);
}

TEST(refuses) {
    make_world("h200");
    struct sim_play_options options = {.seconds = 1, .world_path = sim_world_path(world)};
    struct hec_why why = {""};
    assert_int_equal(sim_play("no-such-case", &options, NULL, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "--list"));
    options.seconds = 0;
    assert_int_equal(sim_play("fp32", &options, NULL, &why), HEC_ERR_USAGE);
    options = (struct sim_play_options){.seconds = 1, .device = 1, .world_path = sim_world_path(world)};
    assert_int_equal(sim_play("fp32", &options, NULL, &why), HEC_ERR_NOTFOUND);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    options.device = 0;
    assert_int_equal(sim_play("fp32", &options, NULL, &why), HEC_ERR_NOTFOUND);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(lists_as_json) {
    json_t *root = sim_cases_json(), *entry;
    assert_non_null(root);
    size_t i;
    assert_int_equal(json_array_size(json_object_get(root, "cases")), sim_case_count());
    json_array_foreach(json_object_get(root, "cases"), i, entry) {
        assert_true(json_is_string(json_object_get(entry, "name")));
        assert_true(json_is_string(json_object_get(entry, "planted")));
        assert_true(json_array_size(json_object_get(entry, "segments")) > 0);
        assert_true(json_number_value(json_object_get(entry, "step_seconds")) > 0);
    }
    json_decref(root);
    struct sim_truth truth;
    sim_case_truth(sim_case_find("mixed"), 5, sim_profile_find("h200"), 0, 0, &truth);
    root = sim_truth_json(&truth, NULL);
    assert_near(json_number_value(json_object_get(root, "joules")), truth.joules, 0);
    assert_near(json_number_value(json_object_get(json_object_get(root, "work"), "seconds")), truth.work_seconds, 0);
    assert_non_null(json_object_get(json_object_get(root, "activities"), "wait_data"));
    json_decref(root);
}

/* States of the ledger are predicted for every case, and add up to its seconds and joules. */
TEST(states_are_predicted) {
    const struct sim_profile *h200 = sim_profile_find("h200");
    for (int i = 0; i < sim_case_count(); i++) {
        struct sim_truth truth;
        struct sim_show_truth shown;
        double seconds = 0, joules = 0;
        assert_int_equal(sim_case_truth(sim_case_at(i), 10, h200, 0, 3, &truth), HEC_OK);
        assert_int_equal(sim_show_predict(sim_case_at(i), 10, h200, 0, 3, &shown), HEC_OK);
        for (int s = 0; s < SIM_STATE_COUNT; s++) {
            seconds += shown.state[s].seconds;
            joules += shown.state[s].joules;
        }
        assert_near(seconds, truth.seconds, 1e-6);
        assert_near(joules, truth.joules, 1e-3);
        assert_near(shown.state[SIM_STATE_DATA].seconds, truth.activity[SIM_WAIT_DATA].seconds, 1e-9);
        assert_near(shown.state[SIM_STATE_ALLOC].joules, truth.activity[SIM_WAIT_ALLOC].joules, 1e-6);
        json_t *root = sim_ledger_json(&shown);
        assert_null(json_object_get(root, "queue"));
        assert_near(json_number_value(json_object_get(json_object_get(root, "startup"), "seconds")), 0.02, 1e-9);
        json_decref(root);
    }
}

/* docs/simulated-gpu.md has a row for each case, with what is planted and what telemetry alone tells. */
TEST(are_documented) {
    static char text[1 << 16];
    FILE *file = fopen(HEC_SOURCE_DIR "/docs/simulated-gpu.md", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int i = 0; i < sim_case_count(); i++) {
        char row[256];
        const struct sim_case *c = sim_case_at(i);
        snprintf(row, sizeof row, "| `%s` | %s | %s | %s |", c->name, c->cause, c->untraced[0] ? c->untraced : "-",
                 c->meaning);
        if (!strstr(text, row))
            fail_msg("not in docs/simulated-gpu.md: %s", row);
    }
}

EACH_TEST(NULL, destroy_world)
