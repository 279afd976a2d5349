/* What is made of replays: steps that are drawn, predictions of findings, joules, intervals, processes that communicate. */
#include "diagnose/rules/facts.h"
#include "diagnose/meter/meter.h"
#include "diagnose/replay/power.h"
#include "replay_machine.h"

static int columns_of(const uint8_t lane[HEC_WHATIF_COLUMNS], enum hec_lane what) {
    int count = 0;
    for (int i = 0; i < HEC_WHATIF_COLUMNS; i++)
        count += lane[i] == what;
    return count;
}

/* A step as it was and without its data: 8 ms of loading, and 20 kernels of 100 us. */
TEST(test_lanes) {
    static const struct program p = {20, 1, 10, 5, 100, .data = 8000, .last_wait = true};
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_DATA, 0}}, .count = 1};
    struct fake_timeline t;
    struct hec_whatif whatif;
    play(&p, &t);
    ask(&t, &question, &whatif);
    const struct hec_step_lanes *before = &whatif.step, *after = &whatif.edited;
    assert_int_equal(before->device, 0);
    assert_true(before->seconds > 0.008 && before->seconds < 0.0125 && after->seconds < before->seconds - 0.006);
    int data = columns_of(before->host, HEC_LANE_DATA), kernels = columns_of(before->on_device, HEC_LANE_KERNEL);
    assert_true(data >= 42 && data <= 52);      /* 80 % of 60 */
    assert_true(kernels >= 8 && kernels <= 16); /* 20 % */
    assert_int_equal(columns_of(after->host, HEC_LANE_DATA), 0);
    assert_true(abs(columns_of(after->on_device, HEC_LANE_KERNEL) - kernels) <= 2); /* at the same scale */
    assert_true(columns_of(before->host, HEC_LANE_WAIT) > 0);
    for (int i = 0; i < before->columns; i++)
        assert_true(before->device_percent[i] <= 100 && (before->device_percent[i] > 0 || !before->on_device[i]));
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* Without its waits the host is steps ahead of the device: what is drawn is as long as a step, and the device works in all of it. */
TEST(test_lanes_of_one_ahead) {
    static const struct program p = {20, 1, 10, 5, 100, .wait_every = 1};
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_WAITS, NAN}}, .count = 1};
    struct fake_timeline t;
    struct hec_whatif whatif;
    play(&p, &t);
    ask(&t, &question, &whatif);
    double step_s = whatif.answers[0].replay.seconds / (double)whatif.steps;
    assert_true(fabs(whatif.edited.seconds / step_s - 1) < 0.1 && whatif.edited.seconds < whatif.step.seconds);
    int kernels = columns_of(whatif.edited.on_device, HEC_LANE_KERNEL);
    assert_true(fabs(kernels * whatif.edited.column_s / whatif.edited.seconds - 1) < 0.1);
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* What predicts findings of a program. */
static struct prediction {
    struct fake_timeline t;
    struct hec_schedule schedule;
    struct hec_summary_input input;
    struct hec_meter meter;
    struct hec_summary summary;
    struct hec_predictor *predictor;
} of;

/* Outside of windows a step takes so much of what it was recorded to take; NAN: not known. */
static void predictor_begin_untraced(const struct program *p, double untraced) {
    struct hec_why why = {""};
    play(p, &of.t);
    assert_int_equal(read_schedule(&of.t, &of.schedule), 0);
    of.schedule.untraced = untraced;
    of.input = (struct hec_summary_input){.timeline = of.t.input};
    of.meter = (struct hec_meter){.input = &of.input};
    assert_int_equal(hec_predictor_begin(&of.meter, &of.summary, &of.schedule, &of.predictor, &why), 0);
    assert_non_null(of.predictor);
}

static void predictor_begin(const struct program *p) {
    predictor_begin_untraced(p, NAN);
}

static void predictor_end(void) {
    hec_predictor_end(of.predictor);
    hec_meter_close(&of.meter);
    fake_tl_free(&of.t);
    memset(&of.summary, 0, sizeof of.summary);
}

static double saved_by(enum hec_lever_id lever, const struct program *p, double untraced) {
    struct hec_finding finding = {.lever = {.id = lever}, .seconds = {0.1, 0.1, 0.1}, .edit_value = NAN};
    predictor_begin_untraced(p, untraced);
    assert_int_equal(hec_predict(of.predictor, NULL, &finding), 0);
    predictor_end();
    return finding.step_seconds.best;
}

/* 20 kernels of 100 us, and a wait for each. Where a step goes faster than it was recorded, by half of what the device waits in it, half
 * as much is saved, of the shorter step; where it goes as fast as the device works, nothing; and never more than was recorded. */
TEST(test_steps_go_faster_than_recorded) {
    static const struct program p = {20, 1, 100, 5, 100, .wait_every = 1};
    struct fake_timeline t;
    struct hec_schedule schedule;
    struct hec_replay replay;
    play(&p, &t);
    assert_int_equal(read_schedule(&t, &schedule), 0);
    assert_int_equal(hec_replay_run(&schedule, NULL, 0, false, NULL, &replay), 0);
    hec_schedule_free(&schedule);
    fake_tl_free(&t);
    double busy = replay.busy_s[0] / replay.seconds, half = (1 + busy) / 2;
    double recorded = saved_by(HEC_LEVER_WAIT_SELDOM, &p, NAN);
    assert_true(recorded > 0.1 && recorded < 1 - busy);
    assert_near(saved_by(HEC_LEVER_WAIT_SELDOM, &p, half), recorded / 2 / half, 0.005);
    assert_near(saved_by(HEC_LEVER_WAIT_SELDOM, &p, busy / 2), 0, 1e-9);
    assert_near(saved_by(HEC_LEVER_WAIT_SELDOM, &p, 1.5), recorded, 1e-9);
}

/* 8 ms of loading on one core, and 2 ms of kernels. More workers are more cores: a program that has 2 loads in 4 ms at best, which is
 * no shorter step than that, and no step to be drawn. */
TEST(test_cores) {
    static const struct program p = {20, 1, 10, 5, 100, .data = 8000, .last_wait = true};
    static const struct {
        int usable;
        double saves;
    } machines[] = {{16, 0.80}, {2, 0.60}, {1, 0.20}};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        struct hec_finding finding = {.cause = HEC_CAUSE_DATA, .seconds = {0.7, 0.8, 0.9}};
        struct hec_findings findings = {.list = &finding, .count = 1};
        struct hec_step_lanes recorded, answered;
        int drawn;
        of.summary.host.tree_cores = 1;
        of.summary.host.cores_usable = machines[i].usable;
        predictor_begin(&p);
        assert_int_equal(hec_predict(of.predictor, NULL, &finding), 0);
        assert_true(finding.replayed);
        if (fabs(finding.step_seconds.best - machines[i].saves) > 0.02)
            fail_msg("%d cores: saves %.3f", machines[i].usable, finding.step_seconds.best);
        assert_int_equal(hec_predict_rest(of.predictor, &findings), 0);
        assert_true(fabs(findings.together_seconds - finding.step_seconds.best) < 1e-9);
        assert_int_equal(hec_predict_lanes(of.predictor, &findings, &recorded, &answered, &drawn), 0);
        assert_int_equal(drawn, machines[i].usable == 16);
        assert_int_equal(recorded.device, drawn ? 0 : -1);
        predictor_end();
    }
}

/* Loading is hidden behind kernels, until they take a fifth of their time: then it is the limit. Where it takes little even so, nothing is.
 * */
TEST(test_next) {
    static const struct {
        struct program program;
        enum hec_cause next;
        double saves;
    } cases[] = {{{20, 1, 10, 5, 400, .data = 6000}, HEC_CAUSE_DATA, 0.55},
                 {{20, 1, 2, 2, 400, .data = 200}, HEC_CAUSE_NONE, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_finding finding = {
            .cause = HEC_CAUSE_MEMORY, .lever = {.id = HEC_LEVER_FUSED_ATTENTION}, .seconds = {0.7, 0.8, 0.9}};
        struct hec_findings findings = {.list = &finding, .count = 1, .next = HEC_CAUSE_NONE, .next_seconds = NAN};
        struct hec_ledger_device ledger = {.device = 0};
        struct hec_device_diagnosis device = {.ledger = &ledger};
        struct hec_facts facts = {.device = &device, .run_s = 1};
        ledger.rows[HEC_STATE_COMPUTE].seconds = 1;
        predictor_begin(&cases[i].program);
        assert_int_equal(hec_predict(of.predictor, &facts, &finding), 0);
        assert_int_equal(hec_predict_rest(of.predictor, &findings), 0);
        assert_int_equal(findings.next, cases[i].next);
        if (cases[i].next != HEC_CAUSE_NONE && fabs(findings.next_seconds - cases[i].saves) > 0.03)
            fail_msg("then saves %.3f", findings.next_seconds);
        assert_true(findings.together_seconds > 0.2);
        predictor_end();
    }
}

/* 8 ms of saving in each step of the schedule, of 10 ms. Where the ledger has as much of it the replay answers; where it has far more, or
 * far less, a state is saved more seldom than a schedule is long. */
TEST(test_checkpoints_of_the_schedule_and_of_the_run) {
    static const struct {
        double schedule_us, ledger;
        bool replayed;
    } cases[] = {{8000, 0.8, true}, {8000, 0.5, true}, {8000, 0.05, false},
                 {0, 0.3, false},   {400, 0.5, false}, {8000, 0, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program p = {20, 1, 10, 5, 100, .checkpoint = cases[i].schedule_us, .last_wait = true};
        struct hec_ledger_device steady = {.window_ns = 1000 * MS};
        struct hec_device_diagnosis device = {.steady = &steady};
        struct hec_facts facts = {.device = &device, .run_s = 1};
        struct hec_finding finding = {
            .cause = HEC_CAUSE_CHECKPOINT, .lever = {.id = HEC_LEVER_ASYNC_CHECKPOINT}, .seconds = {0.1, 0.2, 0.3}};
        steady.rows[HEC_STATE_CHECKPOINT].seconds = cases[i].ledger;
        predictor_begin(&p);
        assert_int_equal(hec_predict(of.predictor, &facts, &finding), 0);
        if (finding.replayed != cases[i].replayed)
            fail_msg("%zu: replayed %d", i, finding.replayed);
        predictor_end();
    }
}

/* The best guess stays, more proofs that agree make it narrower, nothing is more than all. */
TEST(test_proofs) {
    for (int edit = 0; edit < HEC_EDIT_COUNT; edit++)
        for (double saving = -0.1; saving < 1; saving += 0.05) {
            struct hec_saving s =
                hec_proofs_seconds((enum hec_edit)edit, (struct hec_saving){saving, saving, saving}, 1);
            struct hec_saving wide = hec_proofs_seconds(
                (enum hec_edit)edit, (struct hec_saving){saving, saving, saving}, HEC_PROOFS_ELSEWHERE);
            assert_true(fabs(s.best - fmax(0, saving)) < 1e-12);
            assert_true(s.low >= 0 && s.low <= s.best && s.best <= s.high && s.high <= 1);
            assert_true(wide.low <= s.low && wide.high >= s.high);
            assert_true(s.high > s.low);
        }
    assert_true(isnan(hec_proofs_joules(HEC_EDIT_WAITS, (struct hec_saving){NAN, NAN, NAN}, 1).best));
}

/* Milliseconds of code of the second process of test_ranks; of the first it is 1. */
static int code_ms(int step) {
    return step < 8 ? 1 : 3 + step % 3; /* at first they come together */
}

/* Seconds of a step from `first` on, where both have the mean of their work: the second still has longer ones and shorter ones. */
static double even_step(int first) {
    const double rest = 0.113;
    double own[2] = {0, 0}, sum = 0;
    for (int step = first; step < STEPS; step++) {
        own[0] += 1 + rest;
        own[1] += code_ms(step) + rest;
    }
    double mean = (own[0] + own[1]) / 2;
    for (int step = first; step < STEPS; step++)
        sum += fmax(mean / own[0], code_ms(step) * mean / own[1]) + rest;
    return (sum - mean / own[0]) / (STEPS - first) * 1e-3; /* a replay begins with the first call */
}

/* Two processes, whose clocks are 45 us apart, that meet in a collective each step, of which the second takes longer to come: the first
 * one's lasts so much longer. The replay is to know that this is waiting: with the code of both gone a step is the data's way and the
 * calls, and with as much for each it takes about the mean. */
TEST(test_ranks) {
    struct fake_timeline t;
    struct hec_whatif whatif;
    struct hec_whatif_question question = {.edits = {{HEC_EDIT_HOST, 0}}, .count = 1};
    uint32_t process[2], thread[2], stream[2];
    int64_t now[2] = {START, START}, step_ns = 8 * US + 100 * US + 5 * US;
    fake_tl_init(&t);
    uint32_t kernel = fake_tl_kernel(&t, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 512);
    for (int p = 0; p < 2; p++) {
        process[p] = fake_tl_track(&t, HEC_TRACK_PROCESS, 5 + p, -1, 0);
        thread[p] = fake_tl_track(&t, HEC_TRACK_THREAD, 5 + p, -1, 5 + p);
        stream[p] = fake_tl_track(&t, HEC_TRACK_STREAM, 5 + p, p, 7);
    }
    for (int step = 0; step < STEPS; step++) {
        int64_t begin[2] = {now[0] + MS, now[1] + code_ms(step) * MS};
        int64_t finish = (begin[0] > begin[1] ? begin[0] : begin[1]) + 108 * US;
        for (int p = 0; p < 2; p++) {
            struct hec_activity *a =
                fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream[p], begin[p] + 8 * US, finish - p * 45 * US);
            a->launch_ns = begin[p];
            a->launch_end_ns = begin[p] + 5 * US;
            a->name = kernel;
            fake_tl_add(&t, HEC_ACTIVITY_SYNC, thread[p], begin[p] + 5 * US, finish + 5 * US)->detail = HEC_SYNC_STREAM;
            fake_tl_add(&t, HEC_ACTIVITY_STEP, process[p], now[p], finish + 5 * US)->detail = HEC_STEP_OPTIMIZER;
            now[p] = finish + 5 * US;
        }
    }
    /* the second one has launched more, whose counterparts come after the stretch */
    for (int more = 0; more < 4; more++) {
        int64_t start = now[1] + (1 + more) * 200 * US;
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream[1], start, start + 150 * US);
        a->launch_ns = now[1] - (10 - more) * US;
        a->launch_end_ns = a->launch_ns + US / 2;
        a->name = kernel;
    }
    ask(&t, &question, &whatif);
    double a_step = whatif.answers[0].replay.seconds / (double)whatif.steps;
    assert_true(fabs(a_step - (double)step_ns * 1e-9) < 0.03 * (double)step_ns * 1e-9);
    hec_whatif_free(&whatif);
    question = (struct hec_whatif_question){.edits = {{HEC_EDIT_RANKS, 0}}, .count = 1};
    ask(&t, &question, &whatif);
    a_step = whatif.answers[0].replay.seconds / (double)whatif.steps;
    assert_true(fabs(a_step / even_step(STEPS - (int)whatif.steps) - 1) < 0.02);
    hec_whatif_free(&whatif);
    question.edits[0].value = 1; /* all of the difference stays */
    assert_true(fabs(ask(&t, &question, &whatif)) < 1e-9);
    const struct hec_replay *replay =
        &whatif.unchanged.replay;                /* the first process comes sooner, and waits on its device */
    double way_s = 55e-6 * (double)whatif.steps; /* as the second one has it */
    for (int device = 0; device < 2; device++)
        assert_true(fabs(replay->active_s[device] - way_s) < way_s / 20);
    assert_true(replay->kernels_s[0] > 2 * way_s && fabs(replay->kernels_s[1] - way_s) < way_s / 20);
    assert_true(whatif.trusted && !whatif.apart && whatif.alone == 0 && whatif.communication >= 2 * whatif.steps);
    hec_whatif_free(&whatif);
    for (size_t i = 0, n = 0; i < t.count; i++) { /* the second one was recorded for less time */
        n += t.activities[i].kind == HEC_ACTIVITY_KERNEL;
        if (n > 2 * STEPS - STEPS / 2 && n % 2 == 0 && t.activities[i].kind != HEC_ACTIVITY_STEP)
            t.activities[i].kind = HEC_ACTIVITY_KIND_COUNT;
    }
    ask_any(&t, &question, &whatif);
    assert_true(!whatif.trusted && whatif.apart && whatif.alone > 0);
    hec_whatif_free(&whatif);
    fake_tl_free(&t);
}

/* A device that waits 1 s in collectives, works 2 s and communicates 0.2 s. Evened out, it works 0.5 s more instead, and its communication
 * is hidden: nobody knows what that draws then, and where it is a large part nothing is said. */
TEST(test_watts) {
    struct hec_replay_power power = {.count = 1};
    struct hec_replay_watts *w = &power.of[0];
    *w = (struct hec_replay_watts){.joules = 2 * 700 + 0.2 * 600 + 1.1 * 100};
    struct hec_replay before = {.work = 1, .seconds = 3.3}, after = {.work = 1, .seconds = 2.7};
    for (int end = 0; end < 3; end++) {
        w->work[end] = 700;
        w->comm[end] = 600;
        w->idle[end] = w->wait[end] = w->copy[end] = 100;
    }
    before.busy_s[0] = before.kernels_s[0] = 3.2;
    before.active_s[0] = 2.2;
    before.work_s[0] = 2;
    after.busy_s[0] = after.kernels_s[0] = after.active_s[0] = after.work_s[0] = 2.5;
    const double from = 1630, to = 2.5 * 700 + 0.2 * 100;
    struct hec_saving saved = hec_replay_power_saved(&power, &before, &after);
    assert_true(fabs(saved.low - (1 - (to + 0.2 * 500) / from)) < 1e-9);
    assert_true(fabs(saved.best - (1 - (to + 0.1 * 500) / from)) < 1e-9);
    assert_true(fabs(saved.high - (1 - to / from)) < 1e-9);
    w->comm_known = true;
    saved = hec_replay_power_saved(&power, &before, &after);
    assert_true(fabs(saved.low - (1 - to / from)) < 1e-9 && fabs(saved.high - saved.low) < 1e-9);
    w->comm_known = false;
    before.active_s[0] = 2.4;
    assert_true(isnan(hec_replay_power_saved(&power, &before, &after).best));
}
