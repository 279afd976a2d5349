/* The replay against the machine of replay_machine.h: programs as they are, and with the change that an edit stands for. */
#include "replay_machine.h"

/* Rows: an edit and its value, a program, and the one that the edit makes of it. */
#define P(...)                                                                                                         \
    { __VA_ARGS__ }
#define ROW(edit, value, what, program, changed)                                                                       \
    { what, {HEC_EDIT_##edit, value}, program, changed }
static const struct {
    const char *what;
    struct hec_whatif_edit edit;
    struct program program, changed;
} rows[] = {
    ROW(WAITS, NAN, "a wait after each layer", P(40, 1, 30, 5, 50, .wait_every = 1, .last_wait = true),
        P(40, 1, 30, 5, 50)),
    ROW(WAITS, NAN, "a wait after each layer, by two threads in turns", P(40, 2, 30, 5, 50, .wait_every = 2),
        P(40, 2, 30, 5, 50)),
    ROW(WAITS, NAN, "one wait a step, which costs nothing", P(40, 1, 10, 5, 200, .last_wait = true),
        P(40, 1, 10, 5, 200)),
    ROW(DATA, 0, "starved", P(20, 1, 10, 5, 100, .data = 8000, .last_wait = true),
        P(20, 1, 10, 5, 100, .last_wait = true)),
    ROW(DATA, 0.5, "a loader of half the time", P(20, 1, 10, 5, 100, .data = 8000, .last_wait = true),
        P(20, 1, 10, 5, 100, .data = 4000, .last_wait = true)),
    ROW(DATA, 0, "a loader that the device hides", P(20, 1, 10, 5, 400, .data = 2000), P(20, 1, 10, 5, 400)),
    ROW(CHECKPOINT, NAN, "checkpoints", P(20, 1, 10, 5, 100, .checkpoint = 5000, .last_wait = true),
        P(20, 1, 10, 5, 100, .last_wait = true)),
    ROW(GRAPHS, NAN, "tiny kernels", P(200, 1, 10, 6, 4, .last_wait = true), P(200, 1, 0, 0, 4, .last_wait = true)),
    ROW(HOST, NAN, "the program's own code", P(20, 1, 10, 5, 100, .own_code = 5000, .last_wait = true),
        P(20, 1, 10, 5, 100, .last_wait = true)),
    ROW(PINNED, 50, "pageable copies", P(20, 1, 10, 5, 100, .copy = 4000, .pageable = true, .last_wait = true),
        P(20, 1, 10, 5, 100, .copy = 800, .last_wait = true)),
    ROW(ROUND_TRIPS, 0, "data that goes to the host and comes back",
        P(20, 1, 10, 5, 100, .trip = 700, .last_wait = true), P(20, 1, 10, 5, 100, .last_wait = true)),
    ROW(COMPUTE, 0.2, "which return before they end", P(20, 1, 10, 5, 100, .copy = 4000, .pageable = true, .early = 18),
        P(20, 1, 10, 5, 20, .copy = 4000, .pageable = true, .early = 18)),
    ROW(COMPUTE, 0.5, "returns that once in a while take much longer",
        P(40, 1, 30, 5, 50, .wait_every = 4, .rare = true), P(40, 1, 30, 5, 25, .wait_every = 4, .rare = true)),
    ROW(ALLOC, NAN, "allocations", P(20, 1, 10, 5, 100, .alloc_every = 2), P(20, 1, 10, 5, 100)),
    ROW(ALLOC, NAN, "allocations in the midst of code of their own",
        P(20, 1, 10, 5, 20, .alloc_every = 2, .around = 30), P(20, 1, 10, 5, 20)),
    ROW(ALLOC, NAN, "allocations in the midst of the program's own code",
        P(10, 1, 20, 5, 10, .alloc_every = 5, .around = 300), P(10, 1, 20, 5, 10, .own_code = 1200)),
    ROW(WAITS, NAN, "waits with the calls that make them, and not the code around",
        P(40, 1, 20, 5, 10, .wait_every = 2, .around = 50), P(40, 1, 20, 5, 10, .own_code = 1600)),
    ROW(WAITS, NAN, "waits in the midst of the program's own code", P(10, 1, 20, 5, 10, .wait_every = 5, .around = 300),
        P(10, 1, 20, 5, 10, .own_code = 1200)),
    ROW(WAITS, NAN, "numbers read in a row", P(40, 1, 15, 5, 10, .reads = 30),
        P(40, 1, 15, 5, 10, .reads = 30, .one_go = true)),
    ROW(WAITS, NAN, "a number read a step, whose sum is still launched", P(2, 1, 15, 5, 10, .reads = 1),
        P(2, 1, 15, 5, 10, .reads = 1, .one_go = true)),
    ROW(WAITS, NAN, "a number read a step, and not the wait for a copy of data",
        P(20, 1, 15, 5, 50, .copy = 500, .copy_waits = true, .reads = 1),
        P(20, 1, 15, 5, 50, .copy = 500, .copy_waits = true, .reads = 1, .one_go = true)),
    ROW(COMPUTE, 0.5, "kernels of half the time where the host sets the pace", P(100, 1, 20, 5, 10),
        P(100, 1, 20, 5, 5)),
    ROW(PRODUCTS, 0.5, "and where the device does", P(100, 1, 2, 5, 100, .last_wait = true),
        P(100, 1, 2, 5, 50, .last_wait = true)),
    ROW(COMPUTE, 0.1, "far ahead of the device, which is behind by more than a step all the while",
        P(20, 1, 5, 5, 2000), P(20, 1, 5, 5, 200)),
    ROW(COMPUTE, 0.01, "and whose queue is full", P(20, 1, 5, 5, 2000, .queue = 100), P(20, 1, 5, 5, 20, .queue = 100)),
    ROW(BATCH, 4, "four times the samples, for which the device has room",
        P(40, 1, 15, 5, 10, .data = 1000, .copy = 100, .last_wait = true, .blocks = 264),
        P(40, 1, 15, 5, 10, .data = 4000, .copy = 400, .last_wait = true)),
    ROW(BATCH, 4, "which fill the device twice", P(40, 1, 15, 5, 50, .last_wait = true, .blocks = 1056),
        P(40, 1, 15, 5, 100, .last_wait = true)),
    ROW(BATCH, 4, "of a device that is full", P(40, 1, 15, 5, 50, .last_wait = true, .blocks = 5000),
        P(40, 1, 15, 5, 200, .last_wait = true)),
    ROW(COMM, NAN, "communication, and kernels that leave it room",
        P(40, 1, 2, 5, 50, .last_wait = true, .blocks = 264, .comm = 1000), P(40, 1, 2, 5, 50, .last_wait = true)),
    ROW(COMM, NAN, "and kernels that need two rounds beside it",
        P(40, 1, 2, 5, 50, .last_wait = true, .blocks = 2112, .comm = 1000),
        P(40, 1, 2, 5, 62.5, .last_wait = true)), /* half of their work is done in that time */
};

struct asked {
    int64_t calls, guessed;
};

/* The edits save as much as the machine says; of how many calls, and how many of them were guessed. */
static struct asked check(struct fake_timeline *t, const char *what, const struct hec_whatif_edit *edits, int count,
                          double truth, double within) {
    struct hec_whatif whatif;
    struct hec_whatif_question question = {.count = count};
    memcpy(question.edits, edits, (size_t)count * sizeof *edits);
    double saved = ask(t, &question, &whatif);
    const struct asked asked = {whatif.calls, whatif.guessed};
    if (fabs(saved - truth) > within)
        fail_msg("%s: saves %.3f, and %.3f by the replay", what, truth, saved);
    hec_whatif_free(&whatif);
    fake_tl_free(t);
    return asked;
}

TEST(test_programs) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_timeline t;
        double before = play(&rows[i].program, &t), after = play(&rows[i].changed, NULL);
        double times = rows[i].edit.edit == HEC_EDIT_BATCH ? rows[i].edit.value : 1;
        check(&t, rows[i].what, &rows[i].edit, 1, 1 - after / before / times, 0.02);
    }
}

/* Two causes: each alone saves less than both together, and both together what the machine says. */
TEST(test_together) {
    static const struct program both = {40, 1, 30, 5, 50, .data = 2000, .wait_every = 1}, neither = {40, 1, 30, 5, 50};
    const struct hec_whatif_edit edits[] = {{HEC_EDIT_WAITS, NAN}, {HEC_EDIT_DATA, NAN}};
    struct fake_timeline t;
    double truth = 1 - play(&neither, NULL) / play(&both, &t);
    check(&t, "both", edits, 2, truth, 0.02);
}

/* The steps of a program become those that were found in its kernels; one that sets up for a second. every: only so many of them are found;
 * slow: that second was taken for two. */
static void hide_steps(struct fake_timeline *t, int every, bool slow, struct hec_step_list *found) {
    int steps = 0;
    struct hec_activity *first = NULL;
    for (size_t i = 0; i < t->count; i++) {
        struct hec_activity *a = &t->activities[i];
        if (a->kind == HEC_ACTIVITY_KERNEL && !first)
            first = a;
        if (a->kind != HEC_ACTIVITY_STEP)
            continue;
        for (int left = 2; left > 0 && steps == 0 && slow; left--) {
            int64_t end_ns = a->start_ns - (left - 1) * 450 * MS;
            assert_int_equal(hec_step_list_add(found, end_ns - 450 * MS, end_ns, NAN), 0);
        }
        if (steps++ % every == 0)
            assert_int_equal(hec_step_list_add(found, a->start_ns, a->end_ns, NAN), 0);
        a->kind = HEC_ACTIVITY_VALUE;
    }
    first->start_ns -= 900 * MS;
    first->end_ns -= 900 * MS;
    first->launch_ns -= 900 * MS;
    first->launch_end_ns -= 900 * MS;
}

TEST(test_found_steps) {
    static const struct program program = {40, 1, 10, 5, 50, .last_wait = true};
    for (int round = 1; round <= 3; round++) {
        int every = round == 2 ? 2 : 1;
        struct fake_timeline t;
        struct hec_schedule told, found;
        struct hec_step_list steps = {.pid = 5, .source = HEC_STEP_PERIODIC};
        play(&program, &t);
        assert_int_equal(read_schedule(&t, &told), 0);
        hide_steps(&t, every, round == 3, &steps);
        assert_int_equal(read_schedule_of(&t, &steps, &found), 0);
        if (round == 3) { /* three steps are set-up: now two of them came before */
            assert_int_equal(found.steps, told.steps + 2);
            assert_true(found.from_ns < told.from_ns && found.from_ns > told.from_ns - 100 * MS);
            assert_true(found.to_ns == told.to_ns);
        } else if (every == 1) { /* the same stretch, without the set-up */
            assert_int_equal(found.steps, told.steps);
            assert_true(found.from_ns == told.from_ns && found.to_ns == told.to_ns && found.count == told.count);
        } else { /* half of the time lies outside of steps: nobody knows what that is */
            assert_int_equal(found.steps, 0);
            assert_true(found.from_ns < told.from_ns);
        }
        hec_schedule_free(&told);
        hec_schedule_free(&found);
        free(steps.list);
        fake_tl_free(&t);
    }
}

/* A share of the waits stays. */
TEST(test_share) {
    static const struct program p = {40, 1, 30, 5, 50, .wait_every = 1};
    struct fake_timeline t;
    double last = 1;
    play(&p, &t);
    for (int tenths = 0; tenths <= 10; tenths += 5) {
        struct hec_whatif whatif;
        struct hec_whatif_question question = {.edits = {{HEC_EDIT_WAITS, tenths / 10.0}}, .count = 1};
        double saved = ask(&t, &question, &whatif);
        assert_true(saved < last && (tenths < 10 || fabs(saved) < 1e-9));
        last = saved;
        hec_whatif_free(&whatif);
    }
    fake_tl_free(&t);
}

/* As full traces of CUPTI are: kernels and calls apart, in order. The device is far behind the host. Every 97th kernel was not
 * recorded, or every 13th call was put to the kernel after the next. */
static void take_apart(struct fake_timeline *t, bool lose) {
    size_t count = t->count, kernels = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        struct hec_activity *a = &t->activities[i];
        if (a->kind != HEC_ACTIVITY_KERNEL)
            continue;
        kernels++;
        if (!lose) {
            struct hec_activity own = *a, *before = &t->activities[last];
            if (kernels % 13 == 0) {
                a->launch_ns = before->launch_ns;
                a->launch_end_ns = before->launch_end_ns;
                before->launch_ns = own.launch_ns;
                before->launch_end_ns = own.launch_end_ns;
            }
            last = i;
            continue;
        }
        struct hec_activity kernel = *a;
        struct hec_activity *call =
            fake_tl_add(t, HEC_ACTIVITY_API, kernel.launch_track, kernel.launch_ns, kernel.launch_end_ns);
        call->detail = HEC_API_LAUNCH;
        a = &t->activities[i]; /* the list may have moved */
        a->launch_ns = a->launch_end_ns = HEC_TIME_UNKNOWN;
        if (kernels % 97 == 0)
            a->kind = HEC_ACTIVITY_KIND_COUNT;
    }
}

TEST(test_calls_apart) {
    static const struct program ahead = {100, 1, 2, 5, 100, .last_wait = true},
                                faster = {100, 1, 2, 5, 50, .last_wait = true},
                                tiny = {200, 1, 10, 6, 4, .last_wait = true},
                                graph = {200, 1, 0, 0, 4, .last_wait = true};
    static const struct {
        const struct program *before, *after;
        struct hec_whatif_edit edit;
        bool lose;
    } cases[] = {{&ahead, &faster, {HEC_EDIT_COMPUTE, 0.5}, true},
                 {&ahead, &faster, {HEC_EDIT_COMPUTE, 0.5}, false},
                 {&tiny, &graph, {HEC_EDIT_GRAPHS, NAN}, true},
                 {&tiny, &graph, {HEC_EDIT_GRAPHS, NAN}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_timeline t;
        double before = play(cases[i].before, &t), truth = 1 - play(cases[i].after, NULL) / before;
        take_apart(&t, cases[i].lose);
        struct asked asked = check(&t, hec_edit_info(cases[i].edit.edit)->name, &cases[i].edit, 1, truth, 0.03);
        assert_true(asked.guessed <= asked.calls / 100);
    }
}

/* Where launches wait for a full queue, a launch that nobody recorded is not in the midst of the wait of another. */
TEST(test_launches_missing) {
    static const struct program full = {20, 1, 5, 5, 2000, .queue = 100}, faster = {20, 1, 5, 5, 100, .queue = 100};
    struct fake_timeline t;
    double truth = 1 - play(&faster, NULL) / play(&full, &t);
    for (size_t i = 0, kernels = 0; i < t.count; i++)
        if (t.activities[i].kind == HEC_ACTIVITY_KERNEL && ++kernels % 61 == 0)
            t.activities[i].launch_ns = t.activities[i].launch_end_ns = HEC_TIME_UNKNOWN;
    assert_true(check(&t, "a full queue", &(struct hec_whatif_edit){HEC_EDIT_COMPUTE, 0.05}, 1, truth, 0.03).guessed >
                0);
}

#define GRAPHS 400
#define NODES 12
#define AHEAD 8 /* graphs that the queue holds */

/* A program that launches one graph again and again, ahead of the device; which launch is whose nobody recorded. lost: a node is missing
 * now and then. Seconds of it. */
static double play_graphs(struct fake_timeline *t, int64_t node_ns, bool lost) {
    int64_t now = START, tail = START, ended[GRAPHS];
    uint32_t process = 0, thread = 0, stream = 0, kernel[2] = {0, 0};
    if (t) {
        fake_tl_init(t);
        process = fake_tl_track(t, HEC_TRACK_PROCESS, 5, -1, 0);
        thread = fake_tl_track(t, HEC_TRACK_THREAD, 5, -1, 5);
        stream = fake_tl_track(t, HEC_TRACK_STREAM, 5, 0, 7);
        kernel[0] = fake_tl_kernel(t, "sgemm", 128);
        kernel[1] = fake_tl_kernel(t, "void at::native::vectorized_elementwise_kernel<4>", 128);
    }
    for (int g = 0; g < GRAPHS; g++) {
        int64_t begin = now + 20 * US, start = begin + 8 * US > tail + 6 * US ? begin + 8 * US : tail + 6 * US;
        now = begin + 30 * US;
        if (g >= AHEAD && ended[g - AHEAD] + 2 * US > now)
            now = ended[g - AHEAD] + 2 * US;
        if (t) {
            fake_tl_add(t, HEC_ACTIVITY_API, thread, begin, now)->detail = HEC_API_GRAPH;
            fake_tl_add(t, HEC_ACTIVITY_STEP, process, g ? begin : START, now)->detail = HEC_STEP_MODULE;
        }
        for (int k = 0; k < NODES; k++, start = tail + US) {
            tail = start + node_ns;
            if (!t || (lost && k == 5 && g % 150 == 149))
                continue;
            struct hec_activity *a = fake_tl_add(t, HEC_ACTIVITY_KERNEL, stream, start, tail);
            a->name = kernel[k % 5 == 0];
            a->flags = HEC_ACTIVITY_IN_GRAPH;
        }
        ended[g] = tail;
    }
    return (double)((now > tail ? now : tail) - START) * 1e-9;
}

/* Kernels of half the time: then the host sets the pace. */
TEST(test_graphs_apart) {
    double before = play_graphs(NULL, 5 * US, false), after = play_graphs(NULL, 5 * US / 2, false);
    for (int lost = 0; lost < 2; lost++) {
        struct fake_timeline t;
        play_graphs(&t, 5 * US, lost);
        struct asked asked =
            check(&t, "graphs", &(struct hec_whatif_edit){HEC_EDIT_COMPUTE, 0.5}, 1, 1 - after / before, 0.03);
        assert_true(asked.guessed <= 4 * NODES * (1 + 3 * lost));
    }
}

/* A loop that launches a graph and waits for it: 60 us a launch, and 250 in CUPTI's window, where nodes are recorded. */
TEST(test_graphs_in_a_window) {
    static const int64_t call_ns[] = {60 * US, 250 * US};
    struct fake_timeline t;
    struct hec_schedule schedule;
    struct hec_replay recorded, alone;
    fake_tl_init(&t);
    uint32_t process = fake_tl_track(&t, HEC_TRACK_PROCESS, 5, -1, 0);
    uint32_t thread = fake_tl_track(&t, HEC_TRACK_THREAD, 5, -1, 5);
    uint32_t stream = fake_tl_track(&t, HEC_TRACK_STREAM, 5, 0, 7);
    uint32_t kernel = fake_tl_kernel(&t, "sgemm", 128);
    int64_t now = START, window = 0, each[2] = {0};
    for (int g = 0; g < 3 * GRAPHS; g++) {
        bool inside = g >= GRAPHS && g < 2 * GRAPHS;
        int64_t begin = now + 20 * US, tail = begin + call_ns[inside] * 4 / 5;
        window = g == GRAPHS ? now : window;
        fake_tl_add(&t, HEC_ACTIVITY_API, thread, begin, begin + call_ns[inside])->detail = HEC_API_GRAPH;
        for (int k = 0; k < NODES; k++) {
            struct hec_activity *a = inside ? fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, tail, tail + 40 * US) : NULL;
            if (a) {
                a->name = kernel;
                a->flags = HEC_ACTIVITY_IN_GRAPH;
                fake_tl_launched(a, begin, begin + call_ns[inside], thread);
            }
            tail += 41 * US;
        }
        int64_t done = tail + 5 * US;
        fake_tl_add(&t, HEC_ACTIVITY_SYNC, thread, begin + call_ns[inside] + US, done)->detail = HEC_SYNC_STREAM;
        each[inside] = done - now;
        now = done;
        if (g == 2 * GRAPHS - 1)
            fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, window, now);
    }
    assert_int_equal(read_schedule(&t, &schedule), 0);
    assert_near(schedule.graph_left, 60 / 250.0, 0.01);
    struct hec_replay_edit edit = hec_edit_untraced(&schedule);
    assert_int_equal(hec_replay_run(&schedule, NULL, 0, false, NULL, &recorded), 0);
    assert_int_equal(hec_replay_run(&schedule, &edit, 1, false, NULL, &alone), 0);
    assert_near(alone.seconds / recorded.seconds, (double)each[0] / (double)each[1], 0.02);
    assert_near(schedule.untraced, (double)each[0] / (double)each[1], 0.01);
    hec_schedule_free(&schedule);
    for (size_t i = 0; i < t.count; i++) /* nobody saw one outside of the window */
        if (t.activities[i].kind == HEC_ACTIVITY_API &&
            (t.activities[i].start_ns < window || t.activities[i].start_ns > window + GRAPHS * each[1]))
            t.activities[i].detail = HEC_API_OTHER;
    assert_int_equal(read_schedule(&t, &schedule), 0);
    assert_true(schedule.graph_left == 1 && isnan(schedule.untraced));
    hec_schedule_free(&schedule);
    fake_tl_free(&t);
}

/* Without the calls of half of the operations, and with times that make no sense: an answer, or a sentence. */
TEST(test_damaged) {
    static const struct program p = {.kernels = 40,
                                     .threads = 2,
                                     .code = 30,
                                     .launch = 5,
                                     .kernel = 50,
                                     .data = 1000,
                                     .wait_every = 4,
                                     .copy = 1000,
                                     .alloc_every = 5,
                                     .around = 9,
                                     .reads = 8};
    struct hec_whatif_question question = {
        .edits = {{HEC_EDIT_GRAPHS, NAN}, {HEC_EDIT_WAITS, NAN}, {HEC_EDIT_ALLOC, NAN}}, .count = 3};
    static struct hec_summary summary;
    uint64_t random = 3;
    summary.seconds = 100;
    for (int round = 0; round < 50; round++) {
        struct fake_timeline t;
        struct hec_whatif whatif;
        struct hec_why why = {""};
        play(&p, &t);
        for (size_t i = 0; i < t.count; i++) {
            struct hec_activity *a = &t.activities[i];
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            switch (random >> 60) {
            case 0:
                a->launch_ns = a->launch_end_ns = HEC_TIME_UNKNOWN;
                break;
            case 1:
                a->launch_ns = (int64_t)(random >> 8) - (INT64_C(1) << 54);
                break;
            case 2:
                a->end_ns = a->start_ns + (int64_t)(random >> 20);
                break;
            case 3:
                a->detail = (uint8_t)(random >> 8);
                a->from = a->to = (uint8_t)(random >> 16);
                break;
            case 4:
                a->amount = round % 2 ? NAN : -1e300;
                a->flags = HEC_ACTIVITY_IN_GRAPH;
                break;
            default:
                break;
            }
        }
        struct hec_schedule schedule;
        struct hec_summary_input input = {.timeline = t.input, .schedule = &schedule};
        read_schedule(&t, &schedule);
        int err = hec_whatif_ask(&input, &summary, &question, 1, &whatif, &why);
        hec_schedule_free(&schedule);
        assert_true(err == 0 || err == HEC_ERR_UNSUPPORTED); /* why: the verb says it, e2e.golden */
        if (err == 0)
            assert_true(whatif.calls > 0 && whatif.answers[0].replay.seconds >= 0);
        hec_whatif_free(&whatif);
        fake_tl_free(&t);
    }
}
