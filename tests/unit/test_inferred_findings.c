/* What is inferred from calls against what the device did: programs that are simulated call by call, reported once as CUPTI reports
 * them and once as calls alone do. The truth lies within the bounds of every state, what most of the idle time is due to is the
 * same, and so is the first finding, with the engine's counter, with a glimpse of the device and with neither; what it says is
 * evidence that calls give. */
#include "base/trace.h"
#include "diagnose/rules/waits.h"
#include "diagnose/result.h"
#include "inferred_world.h"
#include "unit.h"

static struct inferred_world world;
static struct fake_run run;

/* Of the run as `timeline` reports it. */
static void summarise_beside(const struct fake_timeline *timeline, bool stranger, struct hec_summary *out) {
    const struct hec_price price = hec_price_default();
    run = world.run;
    struct fake_run made;
    fake_init(&made, (double)timeline->input.end_ns / 1e9);
    made.input.context = &run;
    made.input.timeline = timeline->input;
    run.input = made.input;
    run.devices[0] = fake_device(0);
    run.device_count = 1;
    run.processes[0] = (struct hec_process){.pid = 7};
    if (stranger) { /* with a context on the device */
        fake_used(&run, 0, 7);
        fake_on_device(&run, 0, 99, 0, 1);
    }
    assert_int_equal(hec_summary_build(&run.input, &price, out, NULL), 0);
    assert_true(out->devices[0].readings.used);
}

static void summarise(const struct fake_timeline *timeline, struct hec_summary *out) {
    summarise_beside(timeline, false, out);
}

static void done(struct hec_summary *one, struct hec_summary *other) {
    hec_summary_free(one);
    hec_summary_free(other);
    inferred_free(&world);
}

static void print_findings(const char *of, const struct hec_summary *s) {
    for (int i = 0; i < s->job.findings.count; i++) {
        const struct hec_finding *f = &s->job.findings.list[i];
        print_message("%s: %s (%.2f)\n", of, hec_evidence_name(f->title.what), f->confidence);
        for (int k = 0; k < f->evidence_count; k++)
            print_message("    %s %g\n", hec_evidence_name(f->evidence[k].what), f->evidence[k].value[0]);
    }
}

static enum hec_cause first(const struct hec_summary *s) {
    return s->job.findings.count ? s->job.findings.list[0].cause : HEC_CAUSE_COUNT;
}

static enum hec_state most_of(const struct hec_ledger_device *d) {
    enum hec_state most = HEC_STATE_COMPUTE;
    double least = 0.1 * (double)d->window_ns / 1e9;
    for (int s = HEC_STATE_COPY; s < HEC_STATE_STARTUP; s++)
        if (d->rows[s].seconds > least && (most == HEC_STATE_COMPUTE || d->rows[s].seconds > d->rows[most].seconds))
            most = s;
    return most;
}

/* The true time of each state, and what most of the idle time is due to. */
static void check_times(const struct program *p, enum how how, const struct hec_ledger_device *is,
                        const struct hec_ledger_device *by) {
    enum hec_state truly = most_of(is), most = most_of(by);
    assert_int_equal(by->basis, how == GLIMPSE ? HEC_LEDGER_GLIMPSE : HEC_LEDGER_CALLS);
    assert_int_equal(is->window_ns, by->window_ns);
    if (truly != p->most || ((how == ENGINE || p->certain) && most != truly))
        fail_msg("%s, %s: most is %s, told %s", p->name, how_names[how], hec_state_name(truly), hec_state_name(most));
    assert_int_equal(out_of_bounds(p->name, how, is, by), 0);
}

static void check(const struct program *p, enum how how, uint64_t seed) {
    struct hec_summary truth, reported;
    bool told = how == ENGINE || p->certain;
    enum hec_cause expected = p->cause == HEC_CAUSE_NONE && how != GLIMPSE
                                  ? HEC_CAUSE_COUNT
                                  : p->cause; /* kernels show health; no counter of arithmetic is read here */
    simulate(&world, p, how, seed);
    summarise(&world.truth, &truth);
    summarise(&world.view, &reported);
    check_times(p, how, truth.devices[0].ledger, reported.devices[0].ledger);
    if (first(&truth) != p->cause || (told && first(&reported) != expected) || getenv("HEC_TEST_VERBOSE")) {
        print_message("---- %s, %s\n", p->name, how_names[how]);
        print_findings("seen", &truth);
        print_findings("told", &reported);
    }
    assert_int_equal(first(&truth), p->cause);
    assert_int_equal(told ? first(&reported) : expected, expected);
    const struct hec_call_facts *is = truth.devices[0].calls;
    const struct hec_call_facts *by = reported.devices[0].calls;
    const int classes[] = {HEC_API_LAUNCH, HEC_API_COPY, HEC_API_SYNC, HEC_API_ALLOC, HEC_API_FREE};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        double n = (double)is->api[classes[i]].count, m = (double)by->api[classes[i]].count;
        if (fabs(n - m) > 0.01 * n + 2)
            print_message("%s: %s %.0f, told %.0f\n", p->name, hec_api_class_name(classes[i]), n, m);
        assert_true(fabs(n - m) <= 0.01 * n + 2);
    }
    assert_true(fabs(is->pageable_bytes - by->pageable_bytes) <= 0.01 * is->pageable_bytes);
    assert_true(llabs(is->reads - by->reads) <= 2);
    assert_true(llabs(is->small_copies - by->small_copies) <= 2);
    done(&truth, &reported);
}

static void assert_same_times(const struct hec_summary *a, const struct hec_summary *b) {
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_ledger_row *one = &a->devices[0].ledger->rows[i], *other = &b->devices[0].ledger->rows[i];
        assert_true(one->ns == other->ns && one->seconds_low == other->seconds_low &&
                    one->seconds_high == other->seconds_high);
    }
}

/* Each record is read once, of telemetry too; and what is inferred of it does not depend on whether it was kept or read
 * again. */
TEST(records_are_read_once) {
    struct hec_summary once, again;
    simulate(&world, &programs[0], GLIMPSE, 7);
    summarise(&world.view, &again);
    assert_true(world.view.reads[HEC_ACTIVITY_BURST] > 2);
    memset(world.view.reads, 0, sizeof world.view.reads);
    fake_assert_reads(&run, 1);
    world.view.tracers[world.view.tracer_count++] = (struct hec_tracer){.pid = 7, .mode = HEC_TRACE_AUTO};
    summarise(&world.view, &once);
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        assert_int_equal(world.view.reads[kind], 1);
    fake_assert_reads(&run, 1);
    assert_same_times(&once, &again);
    done(&once, &again);
}

/* ---- programs with two sides: which causes, and in what size ---- */

#define ROW_S 2.0

/* 4 to 6 ms of the program's own code around each wait. */
static void step_around_waits(struct inferred_world *w) {
    for (int i = 0; i < 2; i++) {
        kernels(w, 20, 60, 140, 2, 15);
        inferred_sync(w, 0);
        inferred_line(w, 11);
        inferred_work(w, inferred_between(w, 4000, 6000));
        inferred_line(w, 12);
    }
}

/* 20 ms of sampling, and a pageable copy of 3 ms. */
static void step_sampling(struct inferred_world *w) {
    inferred_line(w, 21);
    inferred_work(w, inferred_between(w, 19000, 21000));
    inferred_line(w, 22);
    inferred_copy(w, 18e6, true);
    kernels(w, 40, 60, 140, 2, 15);
    inferred_sync(w, 0);
}

/* Cells at the border visit the host, where other ranks' come from. */
static void step_halo(struct inferred_world *w) {
    kernels(w, 5, 900, 1100, 1, 3);
    inferred_copy(w, 130e3, false);
    inferred_sync(w, 0);
    inferred_line(w, 31);
    inferred_work(w, inferred_between(w, 1400, 1600));
    inferred_line(w, 32);
    inferred_copy(w, 130e3, true);
}

static void step_copy_and_host(struct inferred_world *w) {
    inferred_copy(w, 30e6, true);
    kernels(w, 60, 60, 140, 2, 15);
    inferred_sync(w, 0);
    inferred_work(w, inferred_between(w, 6500, 7500));
}

/* 256 rows go to the device one at a time, in a step of 600 launches. */
static void step_rows(struct inferred_world *w) {
    inferred_line(w, 51);
    for (int i = 0; i < 256; i++) {
        inferred_upload(w, 4096);
        inferred_work(w, inferred_between(w, 6, 14));
    }
    inferred_line(w, 52);
    kernels(w, 600, 15, 35, 2, 10);
}

/* Launch-bound, and then the norm of each parameter's gradient is read; or one of the two is fixed. */
static bool graphed, kept;

static void some_kernels(struct inferred_world *w, int count, double low_us, double high_us) {
    if (graphed)
        kernels(w, 1, count * low_us, count * high_us, 4, 12);
    else
        kernels(w, count, low_us, high_us, 4, 12);
}

static void step_norms(struct inferred_world *w) {
    inferred_line(w, 62);
    some_kernels(w, 200, 2, 6);
    inferred_line(w, 61);
    for (int i = 0; i < 64; i++) {
        some_kernels(w, 2, 2, 4);
        if (!kept) {
            inferred_copy(w, 4, false);
            inferred_work(w, inferred_between(w, 10, 30));
        }
    }
    if (kept)
        inferred_sync(w, 0);
}

struct expected {
    enum hec_cause cause;
    double low, high; /* share of the steps' time; high 0: no such finding */
    int line;         /* the first; 0 any */
};
static const struct {
    struct program program; /* cause: of the first finding */
    struct expected expected[3];
} rows[] = {
    {{"host code around waits", step_around_waits, HEC_STATE_HOST, true, HEC_CAUSE_HOST},
     {{HEC_CAUSE_HOST, 0.66, 0.74, 11}, {HEC_CAUSE_SYNC, 0, 0, 0}}},
    {{"sampling and a copy", step_sampling, HEC_STATE_HOST, true, HEC_CAUSE_HOST},
     {{HEC_CAUSE_HOST, 0.70, 0.77, 21}, {HEC_CAUSE_COPY, 0.09, 0.13, 22}, {HEC_CAUSE_SYNC, 0, 0, 0}}},
    {{"halo exchange", step_halo, HEC_STATE_HOST, true, HEC_CAUSE_HOST},
     {{HEC_CAUSE_HOST, 0.20, 0.25, 31}, {HEC_CAUSE_COPY, 0, 0, 0}, {HEC_CAUSE_SYNC, 0, 0, 0}}},
    {{"copy and host code", step_copy_and_host, HEC_STATE_HOST, true, HEC_CAUSE_HOST},
     {{HEC_CAUSE_HOST, 0.36, 0.42, 0}, {HEC_CAUSE_COPY, 0.25, 0.31, 0}, {HEC_CAUSE_SYNC, 0, 0, 0}}},
    {{"rows one at a time", step_rows, HEC_STATE_COPY, true, HEC_CAUSE_COPY},
     {{HEC_CAUSE_COPY, 0.20, 0.45, 51}, {HEC_CAUSE_SYNC, 0, 0, 0}, {HEC_CAUSE_LAUNCH, 0, 0, 0}}},
    {{"norms that are read", step_norms, HEC_STATE_LAUNCH, false, HEC_CAUSE_COUNT},
     {{HEC_CAUSE_SYNC, 0.20, 0.55, 61}, {HEC_CAUSE_LAUNCH, 0.20, 0.55, 0}}},
};

static const struct hec_finding *found(const struct hec_summary *s, enum hec_cause cause) {
    for (int i = 0; i < s->job.findings.count; i++)
        if (s->job.findings.list[i].cause == cause)
            return &s->job.findings.list[i];
    return NULL;
}

static int check_row(size_t row, enum how how) {
    int wrong = 0;
    const struct program *p = &rows[row].program;
    simulate_for(&world, p, how, false, ROW_S, 3);
    for (int view = 0; view < 2; view++) {
        struct hec_summary s;
        struct hec_facts facts;
        struct hec_waits waits;
        double owned = 0;
        bool right;
        summarise(view ? &world.view : &world.truth, &s);
        hec_facts_gather(&s, &s.devices[0], &facts);
        hec_waits_gather(&facts, &waits);
        right = first(&s) == p->cause || p->cause == HEC_CAUSE_COUNT;
        for (size_t i = 0; i < 3; i++) {
            const struct expected *e = &rows[row].expected[i];
            const struct hec_finding *f = found(&s, e->cause);
            double share = hec_waits_share(&waits, e->cause);
            if (e->low < e->high)
                right &= f && share >= e->low && share <= e->high &&
                         (!e->line || (f->line_count && f->lines[0].line == e->line));
            else
                right &= !f;
        }
        for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++)
            owned += waits.owned_s[cause];
        right &= owned <= waits.idle_s + facts.device->steady->rows[HEC_STATE_COPY].seconds + 1e-6;
        if (!right || getenv("HEC_TEST_VERBOSE")) {
            print_message("---- %s, %s\n", p->name, how_names[how]);
            print_findings(view ? "told" : "seen", &s);
            for (int cause = 0; cause < HEC_CAUSE_COUNT; cause++)
                if (waits.owned_s[cause] > 0)
                    print_message("    %s %.3f\n", hec_cause_name((enum hec_cause)cause),
                                  hec_waits_share(&waits, (enum hec_cause)cause));
        }
        wrong += !right;
        hec_summary_free(&s);
    }
    inferred_free(&world);
    return wrong;
}

/* What a cause is said to own is what its own fix brings: the same program, simulated without it. */
TEST(test_fixes) {
    const struct program *p = &rows[sizeof rows / sizeof rows[0] - 1].program;
    struct hec_summary s;
    struct hec_facts facts;
    struct hec_waits waits;
    int steps = simulate_for(&world, p, ENGINE, false, ROW_S, 3);
    summarise(&world.truth, &s);
    hec_facts_gather(&s, &s.devices[0], &facts);
    hec_waits_gather(&facts, &waits);
    inferred_free(&world);
    for (int fix = 0; fix < 2; fix++) {
        double share = hec_waits_share(&waits, fix ? HEC_CAUSE_SYNC : HEC_CAUSE_LAUNCH);
        graphed = !fix;
        kept = fix;
        double brings = 1 - (double)steps / simulate_for(&world, p, ENGINE, false, ROW_S, 3);
        inferred_free(&world);
        if (fabs(share - brings) > 0.08)
            print_message("%s: %.3f, brings %.3f\n", fix ? "sync" : "launch", share, brings);
        assert_true(fabs(share - brings) <= 0.08);
    }
    graphed = kept = false;
    hec_summary_free(&s);
}

TEST(test_rows) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wrong += check_row(i, ENGINE);
        if (rows[i].program.certain)
            wrong += check_row(i, NEITHER);
    }
    assert_int_equal(wrong, 0);
}

/* For sanitizers each program in one of the worlds, once. */
TEST(test_programs) {
    bool few = getenv("HEC_TEST_RUNS") != NULL;
    for (enum how how = ENGINE; how <= NEITHER; how++)
        for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
            for (uint64_t seed = 1; seed <= (few ? 1 : 2) && (!few || i % (NEITHER + 1) == (size_t)how); seed++)
                check(&programs[i], how, seed);
}

/* ---- calls that are recorded for half of the time ---- */

#define REST_NS (INFERRED_S / 2)

/* Every second half second, from the third second on. */
static bool rests(int64_t t_ns) {
    return t_ns >= 2 * INFERRED_S && t_ns / REST_NS % 2 == 1;
}

/* What of a burst is recorded: not the launches in rests. */
static bool cut(struct hec_activity *a) {
    int64_t from = a->start_ns, to = a->end_ns;
    if (rests(from) && rests(to))
        return false;
    if (rests(from))
        from = (from / REST_NS + 1) * REST_NS;
    if (rests(to))
        to = to / REST_NS * REST_NS;
    if (a->kind == HEC_ACTIVITY_BURST && to > from) {
        a->amount = fmax(1, round(a->amount * (double)(to - from) / (double)(a->end_ns - a->start_ns)));
        a->start_ns = from;
        a->end_ns = to;
    }
    return to > from;
}

static void let_rest(struct fake_timeline *view) {
    size_t count = 0;
    for (size_t i = 0; i < view->count; i++) {
        struct hec_activity a = view->activities[i];
        bool call = a.kind == HEC_ACTIVITY_BURST || a.kind == HEC_ACTIVITY_SYNC || a.kind == HEC_ACTIVITY_API;
        if (!call || (a.kind == HEC_ACTIVITY_BURST ? cut(&a) : !rests(a.start_ns)))
            view->activities[count++] = a;
    }
    view->count = count;
    for (int64_t t = 0; t < view->input.end_ns; t += REST_NS)
        if (rests(t))
            fake_tl_add(view, HEC_ACTIVITY_WINDOW, world.process[1], t, t + REST_NS)->detail = HEC_TRACE_OFF;
    view->tracers[view->tracer_count++] = (struct hec_tracer){
        .pid = 7, .mode = HEC_TRACE_AUTO, .first_ns = 100 * INFERRED_MS, .last_ns = view->input.end_ns};
}

/* The shares of time are those of before, and so is what the run is found to lose by. */
TEST(test_rests) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const struct program *p = &programs[i];
        struct hec_summary whole, rested;
        enum how how = i % 2 ? ENGINE : NEITHER;
        /* of a few long checkpoints it is chance how much is recorded */
        double off = p->step == step_checkpoint ? 0.1 : 0.05;
        simulate(&world, p, how, 5);
        summarise(&world.view, &whole);
        let_rest(&world.view);
        summarise(&world.view, &rested);
        const struct hec_ledger_device *is = whole.devices[0].ledger, *by = rested.devices[0].ledger;
        double recorded = (double)by->traced_ns / (double)by->window_ns;
        bool right =
            first(&rested) == first(&whole) && recorded > 0.55 && recorded < 0.7 && is->traced_ns == is->window_ns;
        for (int s = 0; s < HEC_STATE_COUNT; s++) {
            double share = (double)is->rows[s].ns / (double)is->window_ns;
            double other = (double)by->rows[s].ns / (double)by->window_ns;
            if (fabs(share - other) > off || getenv("HEC_TEST_VERBOSE"))
                print_message("%s, %s: %-10s %.3f, with rests %.3f\n", p->name, how_names[how], hec_state_name(s),
                              share, other);
            right &= fabs(share - other) <= off;
        }
        if (!right || getenv("HEC_TEST_VERBOSE")) {
            print_message("---- %s, %s: %.3f recorded\n", p->name, how_names[how], recorded);
            print_findings("whole", &whole);
            print_findings("rests", &rested);
        }
        wrong += !right;
        done(&whole, &rested);
    }
    assert_int_equal(wrong, 0);
}

/* ---- somebody else on the device ---- */

/* known: the driver lists the neighbour; in a container it may not. */
static int check_busy_neighbour(const struct program *p, enum how how, bool known) {
    struct hec_summary truth, reported;
    simulate_for(&world, p, how, true, STEP_S, 7);
    summarise_beside(&world.truth, known, &truth);
    summarise_beside(&world.view, known, &reported);
    int wrong = out_of_bounds(p->name, how, truth.devices[0].ledger, reported.devices[0].ledger);
    for (int view = 0; view < 2; view++) {
        const struct hec_summary *s = view ? &reported : &truth;
        bool right = !found(s, HEC_CAUSE_NONE) && !found(s, HEC_CAUSE_IDLE) &&
                     s->job.findings.scale_out.verdict == HEC_SCALE_UNKNOWN;
        if (!right || getenv("HEC_TEST_VERBOSE"))
            print_findings(view ? "told" : "seen", s);
        wrong += !right;
    }
    /* what calls alone decide stays decided, unless the neighbour's turns hide it */
    if (p->certain && first(&truth) != HEC_CAUSE_COUNT && first(&reported) != first(&truth)) {
        print_message("%s, %s: seen %s, told %s\n", p->name, how_names[how], hec_cause_name(first(&truth)),
                      hec_cause_name(first(&reported)));
        wrong++;
    }
    done(&truth, &reported);
    return wrong;
}

/* Each program in one of the four worlds: each in all would take 10 s more. */
TEST(test_busy_neighbour) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i += 2)
        wrong += check_busy_neighbour(&programs[i], i % 4 ? ENGINE : BOTH, true);
    assert_int_equal(wrong, 0);
}

TEST(test_unseen_neighbour) {
    int wrong = 0;
    for (size_t i = 1; i < sizeof programs / sizeof programs[0]; i += 4)
        wrong += check_busy_neighbour(&programs[i], BOTH, false);
    assert_int_equal(wrong, 0);
}

/* A forgotten notebook: nothing is reported in another way than without it. */
TEST(test_idle_neighbour) {
    for (size_t i = 3; i < sizeof programs / sizeof programs[0]; i += 4) {
        struct hec_summary alone, beside;
        simulate(&world, &programs[i], BOTH, 7);
        summarise_beside(&world.view, false, &alone);
        summarise_beside(&world.view, true, &beside);
        assert_same_times(&alone, &beside);
        assert_int_equal(alone.job.findings.count, beside.job.findings.count);
        assert_int_equal(first(&beside), programs[i].cause);
        assert_true(alone.job.findings.list[0].confidence == beside.job.findings.list[0].confidence);
        assert_int_equal(alone.job.findings.scale_out.verdict, beside.job.findings.scale_out.verdict);
        done(&alone, &beside);
    }
}

/* The same where CUPTI never looks: who works on the device is not known, and the finding is the same, less sure. */
TEST(test_unknown_neighbour) {
    const struct program *p = &programs[3];
    struct hec_summary alone, beside;
    simulate(&world, p, ENGINE, 7);
    summarise_beside(&world.view, false, &alone);
    summarise_beside(&world.view, true, &beside);
    const struct hec_ledger_row *one = alone.devices[0].ledger->rows;
    const struct hec_ledger_row *other = beside.devices[0].ledger->rows;
    for (int s = 0; s < HEC_STATE_COUNT; s++)
        assert_true(one[s].ns == other[s].ns);
    assert_true(one[HEC_STATE_COMPUTE].seconds_low > 1 && other[HEC_STATE_COMPUTE].seconds_low < 0.1);
    assert_true(one[HEC_STATE_UNKNOWN].seconds_high < 0.1 && other[HEC_STATE_UNKNOWN].seconds_high > 1);
    assert_int_equal(first(&beside), p->cause);
    assert_true(beside.job.findings.list[0].confidence < alone.job.findings.list[0].confidence);
    done(&alone, &beside);
}
