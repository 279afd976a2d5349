/* Steps from what the program, the hooks or a profiler say; what tracing cost. */
#include "base/trace.h"
#include "diagnose/states/state.h"
#include "diagnose/timeline/trace_cost.h"
#include "timeline_run.h"

#define MS INT64_C(1000000)

static const struct hec_step_summary *steps(void) {
    build();
    return &made.steps;
}

static void add_steps(uint32_t of, enum hec_step_source source, int count, int64_t length, double amount) {
    for (int i = 0; i < count; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_STEP, of, i * length, (i + 1) * length);
        a->detail = (uint8_t)source;
        a->amount = amount;
        a->name = isfinite(amount) ? fake_tl_name(&t, "sample") : 0;
    }
}

TEST(sources_by_trust) {
    uint32_t other = fake_tl_track(&t, HEC_TRACK_PROCESS, 11, -1, 0);
    assert_int_equal(steps()->source, HEC_STEP_NONE);
    assert_true(isnan(made.steps.confidence) && isnan(made.steps.units));
    add_steps(process, HEC_STEP_ANNOTATED, 9, 10 * MS, NAN);
    assert_int_equal(steps()->source, HEC_STEP_ANNOTATED);
    assert_true(isnan(made.steps.samples_per_step));
    assert_string_equal(made.steps.unit, "");
    add_steps(process, HEC_STEP_MODULE, 8, 11 * MS, 4);
    assert_int_equal(steps()->source, HEC_STEP_MODULE);
    add_steps(process, HEC_STEP_OPTIMIZER, 4, 22 * MS, 8);
    assert_int_equal(steps()->source, HEC_STEP_OPTIMIZER);
    add_steps(other, HEC_STEP_OPTIMIZER, 5, 20 * MS, 16); /* the process with most */
    assert_int_equal(steps()->pid, 11);
    assert_int_equal(made.steps.count, 5);
    add_steps(process, HEC_STEP_MARKED, 2, 40 * MS, 128);
    const struct hec_step_summary *s = steps();
    assert_int_equal(s->source, HEC_STEP_MARKED);
    near(s->confidence, 1);
    assert_int_equal(s->pid, 10);
    assert_int_equal(s->count, 2);
    near(s->duration.median, 0.04);
    near(s->samples_per_step, 128);
    near(s->units, 256);
    assert_string_equal(s->unit, "sample");
    /* what says itself to be found in kernels is no source of its own */
    add_steps(process, HEC_STEP_PERIODIC, 50, MS, NAN);
    add_steps(process, (enum hec_step_source)77, 50, MS, NAN);
    assert_int_equal(steps()->source, HEC_STEP_MARKED);
}

TEST(exact_quantiles) {
    for (int i = 0; i < 101; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_STEP, process, i * 1000 * MS, i * 1001 * MS);
        a->detail = HEC_STEP_MARKED;
        a->amount = i % 10 ? 64 : 10; /* a short batch now and then */
    }
    const struct hec_step_summary *s = steps();
    near(s->duration.median, 0.05);
    near(s->duration.p99, 0.099);
    near(s->duration.minimum, 0);
    near(s->duration.maximum, 0.1);
    near(s->samples_per_step, 64);
    near(s->units, 90 * 64 + 11 * 10);
}

/* 10 steps of 10 ms; the main thread loads 2 ms in each, another thread more; before and after the steps it counts not. */
TEST(time_in_the_loader) {
    uint32_t data = fake_tl_name(&t, "data"), forward = fake_tl_name(&t, "forward");
    for (int i = 0; i < 10; i++) {
        fake_tl_add(&t, HEC_ACTIVITY_STEP, process, (100 + i * 10) * MS, (110 + i * 10) * MS)->detail =
            HEC_STEP_OPTIMIZER;
        fake_tl_add(&t, HEC_ACTIVITY_PHASE, second_thread, (100 + i * 10) * MS, (109 + i * 10) * MS)->name = data;
    }
    assert_true(fabs(steps()->data_s - 0.09) < 1e-12); /* no other thread loads */
    for (int i = -3; i < 13; i++) {
        fake_tl_add(&t, HEC_ACTIVITY_PHASE, thread, (101 + i * 10) * MS, (103 + i * 10) * MS)->name = data;
        fake_tl_add(&t, HEC_ACTIVITY_PHASE, thread, (101 + i * 10) * MS, (102 + i * 10) * MS)->name = data; /* nested */
        fake_tl_add(&t, HEC_ACTIVITY_PHASE, thread, (104 + i * 10) * MS, (109 + i * 10) * MS)->name = forward;
    }
    near(steps()->data_s, 0.02);
}

/* Steps of 10 ms with 4 ms of work; where the trace was off in part of a step, the step is left out. */
TEST(busy_within_steps) {
    uint32_t kernel = fake_tl_kernel(&t, "k", 64);
    for (int i = 0; i < 10; i++) {
        fake_tl_add(&t, HEC_ACTIVITY_STEP, process, i * 10 * MS, (i + 1) * 10 * MS)->detail = HEC_STEP_MARKED;
        for (int k = 0; k < 2; k++)
            fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, (i * 10 + 3 * k) * MS, (i * 10 + 3 * k + 2) * MS)->name =
                kernel;
    }
    near(steps()->busy_share, 0.4);
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, 0, 25 * MS); /* all of two steps, and the busy half of a third */
    near(steps()->busy_share, 0.4);
    fake_tl_add(&t, HEC_ACTIVITY_KERNEL, stream, 26 * MS, 90 * MS)->name = kernel;
    near(steps()->busy_share, 0.4);
    t.count = 0;
    add_steps(process, HEC_STEP_MARKED, 3, 10 * MS, 1);
    assert_true(isnan(steps()->busy_share)); /* no device */
}

TEST(losses) {
    uint32_t loss = fake_tl_name(&t, "loss"), lr = fake_tl_name(&t, "lr");
    for (int i = 0; i < 4; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_VALUE, process, i, i);
        a->name = loss;
        a->amount = 2.5 - i;
        a = fake_tl_add(&t, HEC_ACTIVITY_VALUE, process, i, i);
        a->name = lr;
        a->amount = 1;
    }
    const struct hec_step_summary *s = steps();
    assert_int_equal(s->values, 4);
    near(s->value_first, 2.5);
    near(s->value_last, -0.5);
    assert_int_equal(s->nonfinite, 0);
}

/* Of ranks: each process's losses by its own steps, those of the process that the steps are of first; not of another source. */
TEST(losses_of_several_processes) {
    uint32_t loss = fake_tl_name(&t, "loss"), other = fake_tl_track(&t, HEC_TRACK_PROCESS, 11, -1, 0),
             third = fake_tl_track(&t, HEC_TRACK_PROCESS, 12, -1, 0);
    add_steps(other, HEC_STEP_OPTIMIZER, 3, 20 * MS, 1);
    add_steps(process, HEC_STEP_OPTIMIZER, 4, 10 * MS, 1);
    add_steps(third, HEC_STEP_MODULE, 4, 10 * MS, 1);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            int64_t at = (k == 1 ? 20 : 10) * i * MS + MS;
            struct hec_activity *a =
                fake_tl_add(&t, HEC_ACTIVITY_VALUE, (uint32_t[]){process, other, third}[k], at, at);
            a->name = loss;
            a->amount = 10 * k + i;
        }
    const struct hec_step_summary *s = steps();
    assert_int_equal(s->loss_count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(s->losses[i].pid, i < 3 ? s->pid : 11);
        assert_int_equal(s->losses[i].step, i % 3);
        near(s->losses[i].value, 10 * (i / 3) + i % 3);
    }
}

/* Norms of gradients, of all and of parts, by steps; not what is called nearly so. */
TEST(gradients_of_parts) {
    static const struct {
        const char *name;
        int part; /* -2: none */
    } rows[] = {{"gradient_norm", -1},
                {"gradient_norm/0", 0},
                {"gradient_norm/17", 17},
                {"gradient_norm/", -2},
                {"gradient_norm/-1", -2},
                {"gradient_norm/3x", -2},
                {"gradient_normal", -2},
                {"gradient", -2},
                {"gradient_norm/2147483647", -2},
                {"gradient_norm/2147483646", 2147483646}};
    add_steps(process, HEC_STEP_MARKED, 10, 10 * MS, 1);
    for (int i = 0; i < 10; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_VALUE, process, (10 * i + 5) * MS, (10 * i + 5) * MS);
        a->name = fake_tl_name(&t, rows[i].name);
        a->amount = i ? 100 + i : NAN;
    }
    const struct hec_step_summary *s = steps();
    int at = 0;
    for (int i = 0; i < 10; i++) {
        if (rows[i].part == -2)
            continue;
        assert_true(at < s->gradient_count);
        assert_int_equal(s->gradients[at].pid, PID);
        assert_int_equal(s->gradients[at].step, i);
        assert_int_equal(s->gradients[at].part, rows[i].part);
        if (i)
            near(s->gradients[at].value, 100 + i);
        else
            assert_true(isnan(s->gradients[at].value));
        at++;
    }
    assert_int_equal(s->gradient_count, at);
    assert_int_equal(s->loss_count, 0);
    assert_true(s->values == 0 && isnan(s->value_first) && isnan(s->value_last)); /* they are no losses */
    assert_int_equal(s->nonfinite, 0);
}

/* Of more steps than are kept the rest is counted, and their units; what is said of single ones is said of the first. */
TEST(steps_beyond_those_kept) {
    struct hec_step_list list = {.source = HEC_STEP_MARKED, .pid = PID};
    for (size_t i = 0; i < HEC_STEPS_KEPT; i++)
        assert_int_equal(hec_step_list_add(&list, (int64_t)i * 10, (int64_t)i * 10 + 10, 2), 0);
    assert_int_equal(list.count, HEC_STEPS_KEPT);
    assert_int_equal(list.beyond, 0);
    assert_int_equal(hec_step_list_add(&list, 1, 2, 5), 0);
    assert_int_equal(hec_step_list_add(&list, 1, 2, NAN), 0);
    assert_int_equal(hec_step_list_add(&list, 1, 2, 7), 0);
    assert_int_equal(list.count, HEC_STEPS_KEPT);
    assert_int_equal(list.beyond, 3);
    near(list.beyond_amount, 12);
    struct hec_step_survey survey = {0};
    struct hec_timeline_tables tables = {0};
    struct hec_step_summary s;
    assert_int_equal(hec_step_survey_result(&survey, &tables, &list, &s), 0);
    assert_int_equal(s.count, HEC_STEPS_KEPT + 3);
    assert_int_equal(s.examined, HEC_STEPS_KEPT);
    near(s.units, 2.0 * HEC_STEPS_KEPT + 12);
    near(s.samples_per_step, 2);
    near(s.duration.maximum, 1e-8);
    free(list.list);
}

/* Of sources alike the process with more steps, and of those the one of the lower number, whichever comes first. */
TEST(steps_of_equal_processes) {
    for (int swapped = 0; swapped < 2; swapped++) {
        timeline_begin(NULL);
        uint32_t other = fake_tl_track(&t, HEC_TRACK_PROCESS, 9, -1, 0);
        add_steps(swapped ? other : process, HEC_STEP_MARKED, 5, 10 * MS, 1);
        add_steps(swapped ? process : other, HEC_STEP_MARKED, 5, 10 * MS, 1);
        assert_int_equal(steps()->pid, 9);
        add_steps(process, HEC_STEP_MARKED, 1, 10 * MS, 1);
        assert_int_equal(steps()->pid, PID);
        assert_int_equal(made.steps.count, 6);
    }
}

/* Losses every other step of 10 ms, the last two as given. */
static const struct hec_step_summary *losses_end(double before, double last) {
    uint32_t loss = fake_tl_name(&t, "loss");
    add_steps(process, HEC_STEP_MARKED, 8, 10 * MS, 1);
    for (int i = 0; i < 4; i++) {
        struct hec_activity *a = fake_tl_add(&t, HEC_ACTIVITY_VALUE, process, (20 * i + 5) * MS, (20 * i + 5) * MS);
        a->name = loss;
        a->amount = i == 2 ? before : i == 3 ? last : 1;
    }
    return steps();
}

TEST(loss_ends_in_nan) {
    const struct hec_step_summary *s = losses_end(NAN, -INFINITY);
    assert_int_equal(s->nonfinite, 2);
    assert_int_equal(s->nonfinite_step, 5);
    assert_int_equal(s->finite_step, 3);
    assert_true(isinf(s->nonfinite_last));
}

TEST(loss_is_infinite_once) {
    const struct hec_step_summary *s = losses_end(INFINITY, 1);
    assert_int_equal(s->nonfinite, 1);
    assert_int_equal(s->nonfinite_step, 5);
    near(s->nonfinite_last, 1);
}

/* ---- cost ---- */

static void add_tracer(int64_t traced_ns, int64_t estimate_ppm) {
    t.tracers[t.tracer_count] = (struct hec_tracer){
        .pid = 10 + t.tracer_count,
        .mode = HEC_TRACE_AUTO,
        .cupti_version = 130000,
        .last_ns = 4000 * MS,
        .traced_ns = traced_ns,
        .records = 1000,
        .dropped = 1,
        .lost = 2,
        .bad = 3,
        .windows = 10,
        .self_ns = 20 * MS,
        .estimate_ppm = estimate_ppm,
        .budget_ppm = 10000,
    };
    t.tracer_count++;
}

TEST(estimated_cost) {
    add_tracer(1000 * MS, 8000);
    add_tracer(3000 * MS, 4000);
    snprintf(t.tracers[0].holder, sizeof t.tracers[0].holder, "torch.profiler");
    t.tracers[0].holder_ns = 500 * MS;
    snprintf(t.tracers[1].why, sizeof t.tracers[1].why, "no libcupti");
    build();
    const struct hec_trace_cost *c = &made.trace;
    assert_int_equal(c->mode, HEC_TRACE_AUTO);
    assert_int_equal(c->processes, 2);
    assert_int_equal(c->records, 2000);
    assert_int_equal(c->dropped, 2);
    assert_int_equal(c->lost, 4);
    assert_int_equal(c->bad, 6);
    near(c->coverage, 0.5);
    assert_true(isnan(c->overhead) && c->overhead_unknown); /* CUPTI was there, and no steps show what it cost */
    assert_false(c->overhead_measured);
    near(c->self_cpu_s, 0.04);
    assert_string_equal(c->holder, "torch.profiler");
    near(c->holder_s, 0.5);
    assert_string_equal(c->why.text, "no libcupti");
}

TEST(hostile_tracers) {
    for (int i = 0; i < 4; i++) {
        add_tracer(INT64_MAX, i ? INT64_MAX : -1);
        t.tracers[i].first_ns = i & 1 ? INT64_MIN : INT64_MAX;
        t.tracers[i].last_ns = i & 2 ? INT64_MIN : INT64_MAX;
        t.tracers[i].records = i & 1 ? INT64_MAX : INT64_MIN;
        t.tracers[i].self_ns = INT64_MIN;
        t.tracers[i].mode = i ? 1000000 : -5;
    }
    build();
    assert_true(made.trace.records >= 0);
    assert_true(isnan(made.trace.coverage) || (made.trace.coverage >= 0 && made.trace.coverage <= 1));
}

/* No CUPTI: the tracers' own estimate, by how long each lived, and at most three times that. */
TEST(no_cupti) {
    add_tracer(0, 8000);
    add_tracer(0, 4000);
    for (int i = 0; i < 2; i++)
        t.tracers[i].windows = 0;
    t.tracers[1].last_ns = 12000 * MS;
    build();
    near(made.trace.overhead, 0.005);
    near(made.trace.overhead_low, 0);
    near(made.trace.overhead_high, 0.015);
    assert_false(made.trace.overhead_measured || made.trace.overhead_unknown);
}

struct program {
    double inside, after; /* of a step, in the window and after it */
    double noise, memory; /* of a step's length; how much of it the next one keeps */
    double drift;         /* over the run */
    double from_s;        /* of the window, 2 s long, in 20 s */
    bool odd;             /* every 40th step takes ten times as long */
};

/* Steps of about 10 ms. The run's true slowdown. */
static double simulate(const struct program *p, uint64_t seed) {
    int64_t at = 0, from = (int64_t)(p->from_s * 1e9), steps = 0;
    double kept = 0, lost = 0;
    t.count = 0;
    t.tracer_count = 0;
    fake_tl_add(&t, HEC_ACTIVITY_WINDOW, process, from, from + 2000 * MS);
    for (; at < 20000 * MS; steps++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        kept = p->memory * kept + p->noise * ((double)(seed >> 33) / 2147483648.0 - 0.5);
        double slow = at < from ? 0 : at < from + 2000 * MS ? p->inside : p->after;
        double own = 10e6 * (1 + kept + p->drift * (double)at / 20e9) * (p->odd && steps % 40 == 39 ? 10 : 1);
        int64_t length = (int64_t)(own * (1 + slow));
        fake_tl_add(&t, HEC_ACTIVITY_STEP, process, at, at + length)->detail = HEC_STEP_OPTIMIZER;
        at += length;
        lost += slow;
    }
    add_tracer(2000 * MS, 0);
    t.tracers[0].last_ns = at;
    return lost / (double)steps;
}

TEST(measured_cost) {
    const struct hec_trace_cost *c = &made.trace;
    double truth = simulate(&(struct program){.inside = 0.4, .after = 0.1, .noise = 0.02, .from_s = 8}, 1);
    build();
    assert_true(c->overhead_measured && !c->overhead_unknown);
    assert_true(fabs(c->overhead_inside - 0.4) < 0.01 && fabs(c->overhead_after - 0.1) < 0.01);
    assert_true(fabs(c->overhead - truth) < 0.01);
    assert_true(c->overhead_low < truth && truth < c->overhead_high);
    assert_true(c->overhead_high - c->overhead_low < 0.03);
    t.tracers[0].estimate_ppm = 2000; /* what stands in front of calls was there before, too */
    double alone = c->overhead, high = c->overhead_high;
    build();
    near(c->overhead, alone + 0.002);
    near(c->overhead_high, high + 0.006);
    t.input.hooks_share = 0.01; /* nor were the hooks absent then */
    build();
    near(c->overhead, alone + 0.012);
    near(c->overhead_high, high + 0.036);
}

/* The 95 % interval holds the truth in about 95 of 100 runs, also where steps resemble those before them, the program
 * grows slower by itself or some steps are quite unlike the others. */
TEST(interval_is_honest) {
    static const struct program programs[] = {
        {.inside = 0, .after = 0, .noise = 0.5, .from_s = 8},
        {.inside = 0.4, .after = 0.05, .noise = 0.1, .memory = 0.9, .from_s = 8},
        {.inside = 0.2, .after = 0.1, .noise = 0.1, .memory = 0.5, .drift = 0.2, .from_s = 8},
        {.inside = 0.1, .after = 0.02, .noise = 0.1, .from_s = 8, .odd = true},
        {.inside = 0.3, .after = 0.1, .noise = 0.2, .from_s = 2},
    };
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        int held = 0;
        for (uint64_t seed = 1; seed <= 100; seed++) {
            double truth = simulate(&programs[i], seed * 77777);
            build();
            assert_true(made.trace.overhead_measured);
            held += made.trace.overhead_low <= truth && truth <= made.trace.overhead_high;
        }
        if (held < 88)
            print_message("program %zu: %d of 100\n", i, held);
        assert_in_range(held, 88, 100);
    }
}

/* CUPTI from the first step on: nothing shows it. */
TEST(no_baseline) {
    simulate(&(struct program){.inside = 0.4, .noise = 0.02, .from_s = 0}, 1);
    t.tracers[0].estimate_ppm = 3000;
    build();
    assert_true(made.trace.overhead_unknown && !made.trace.overhead_measured);
    assert_true(isnan(made.trace.overhead) && isnan(made.trace.overhead_low));
}

/* A warm-up calls a module twice; what follows for 2 s is not made of its calls. */
TEST(warm_up_alone) {
    add_tracer(2000 * MS, -1);
    add_steps(process, HEC_STEP_MODULE, 2, 100 * MS, 4);
    assert_int_equal(steps()->source, HEC_STEP_NONE);
    add_steps(process, HEC_STEP_OPTIMIZER, 4, 200 * MS, 8); /* these go on for 600 ms after the first */
    assert_int_equal(steps()->source, HEC_STEP_OPTIMIZER);
}

static int32_t chosen[4];

static void choose(void) {
    struct hec_device_steps chosen_steps;
    struct hec_pass pass;
    assert_int_equal(hec_pass_open(&t.input, &pass, NULL), 0);
    assert_int_equal(hec_device_steps_choose(&pass.survey, &pass.tables, &chosen_steps), 0);
    for (int device = 0; device < 4; device++) {
        const struct hec_step_list *of = hec_device_steps_of(&chosen_steps, device);
        chosen[device] = of ? of->pid : 0;
    }
    assert_null(hec_device_steps_of(&chosen_steps, -1));
    assert_null(hec_device_steps_of(&chosen_steps, HEC_DEVICE_MAX));
    hec_pass_close(&pass);
}

/* A device goes by the steps of its own processes; only those of a process without a device are for all others. */
TEST(steps_of_each_device) {
    uint32_t second = fake_tl_track(&t, HEC_TRACK_PROCESS, 20, -1, 0);
    fake_tl_track(&t, HEC_TRACK_STREAM, 20, 1, 7);
    fake_tl_track(&t, HEC_TRACK_STREAM, 20, 3, 7);
    fake_tl_track(&t, HEC_TRACK_STREAM, 30, 2, 7); /* makes no steps */
    add_steps(process, HEC_STEP_MARKED, 9, 10 * MS, 4);
    add_steps(second, HEC_STEP_ANNOTATED, 5, 20 * MS, 1);
    choose();
    assert_true(chosen[0] == 10 && chosen[1] == 20 && chosen[2] == 0 && chosen[3] == 20);
    uint32_t driver = fake_tl_track(&t, HEC_TRACK_PROCESS, 40, -1, 0);
    add_steps(driver, HEC_STEP_MARKED, 7, 10 * MS, 4);
    choose();
    assert_true(chosen[0] == 10 && chosen[1] == 20 && chosen[2] == 40 && chosen[3] == 20);
}

EACH_TEST(timeline_begin, NULL)
