/* What is inferred from calls against what the device did: programs that are simulated call by call, told once as CUPTI
 * tells them and once as calls alone do. The truth lies within the bounds of every state, and what most of the idle time
 * is due to is the same, with the engine's counter, with a glimpse of the device and with neither. */
#include "diagnose/inferred.h"
#include "inferred_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define STEP_S 8.0 /* of each program, seconds */

/* ---- programs: one step each ---- */

static void kernels(struct inferred_world *w, int count, double low_us, double high_us, double pause_low,
                    double pause_high) {
    for (int i = 0; i < count; i++) {
        inferred_launch(w, 0, inferred_between(w, low_us, high_us));
        inferred_work(w, inferred_between(w, pause_low, pause_high));
    }
}

/* Far ahead of the device: launches wait for room in the queue. */
static void step_healthy(struct inferred_world *w, int step) {
    kernels(w, 120, 40, 400, 1, 12);
    if (step % 20 == 19)
        inferred_sync(w, 0);
}

static void step_data_waited(struct inferred_world *w, int step) {
    (void)step;
    inferred_phase(w, w->data, inferred_between(w, 15000, 25000));
    inferred_copy(w, 4e6, true);
    kernels(w, 100, 50, 150, 2, 15);
    inferred_copy(w, 4, false); /* reads the loss */
}

static void step_data_ahead(struct inferred_world *w, int step) {
    (void)step;
    inferred_phase(w, w->data, inferred_between(w, 15000, 25000));
    kernels(w, 100, 50, 150, 2, 15);
}

static void step_host(struct inferred_world *w, int step) {
    (void)step;
    inferred_work(w, inferred_between(w, 6000, 14000));
    kernels(w, 60, 50, 110, 2, 15);
    inferred_sync(w, 0);
}

static void step_host_ahead(struct inferred_world *w, int step) {
    (void)step;
    kernels(w, 20, 60, 140, 2, 15);
    inferred_work(w, inferred_between(w, 5000, 8000));
}

static void step_launch(struct inferred_world *w, int step) {
    (void)step;
    kernels(w, 600, 1.5, 4, 2, 14);
    inferred_sync(w, 0);
}

static void step_launch_ahead(struct inferred_world *w, int step) {
    (void)step;
    kernels(w, 600, 1.5, 4, 2, 14);
}

/* A value read after every few kernels. */
static void step_sync(struct inferred_world *w, int step) {
    (void)step;
    for (int i = 0; i < 20; i++) {
        kernels(w, 6, 30, 90, 1, 5);
        inferred_sync(w, 0);
        inferred_work(w, inferred_between(w, 200, 600));
    }
}

static void step_copy(struct inferred_world *w, int step) {
    (void)step;
    inferred_copy(w, 64e6, true);
    kernels(w, 25, 50, 150, 2, 15);
    inferred_sync(w, 0);
}

static void step_alloc(struct inferred_world *w, int step) {
    (void)step;
    for (int i = 0; i < 10; i++) {
        inferred_alloc(w, inferred_between(w, 300, 900));
        kernels(w, 4, 40, 90, 1, 8);
        inferred_release(w, inferred_between(w, 200, 600));
    }
}

static void step_checkpoint(struct inferred_world *w, int step) {
    kernels(w, 100, 60, 140, 2, 12);
    inferred_sync(w, 0);
    if (step % 40 == 39) {
        inferred_copy(w, 100e6, false);
        inferred_phase(w, w->checkpoint, inferred_between(w, 500000, 700000));
    }
}

/* Two streams, joined at the end. */
static void step_streams(struct inferred_world *w, int step) {
    (void)step;
    for (int i = 0; i < 40; i++) {
        inferred_launch(w, i % 2, inferred_between(w, 50, 200));
        inferred_work(w, inferred_between(w, 2, 12));
    }
    inferred_sync(w, w->free_ns[0] > w->free_ns[1] ? 0 : 1);
    inferred_phase(w, w->data, inferred_between(w, 3000, 6000));
}

struct program {
    const char *name;
    void (*step)(struct inferred_world *w, int step);
    enum hec_state most; /* of the idle time; COMPUTE: no idle state has more than 10 % */
    bool certain;        /* calls alone tell it */
};
static const struct program programs[] = {
    {"healthy", step_healthy, HEC_STATE_COMPUTE, true},
    {"data, waited for", step_data_waited, HEC_STATE_DATA, true},
    {"data, never waiting", step_data_ahead, HEC_STATE_DATA, false},
    {"host, waited for", step_host, HEC_STATE_SYNC, true},
    {"host, never waiting", step_host_ahead, HEC_STATE_HOST, false},
    {"launch, waited for", step_launch, HEC_STATE_LAUNCH, false},
    {"launch, never waiting", step_launch_ahead, HEC_STATE_LAUNCH, false},
    {"sync", step_sync, HEC_STATE_SYNC, true},
    {"copy", step_copy, HEC_STATE_COPY, true},
    {"alloc", step_alloc, HEC_STATE_ALLOC, true},
    {"checkpoint", step_checkpoint, HEC_STATE_CHECKPOINT, true},
    {"two streams", step_streams, HEC_STATE_DATA, true},
};

/* ---- what comes of it ---- */

enum how { ENGINE, GLIMPSE, NEITHER, HOW_COUNT };
static const char *const how_names[] = {"engine", "glimpse", "neither"};

static void simulate(struct inferred_world *w, const struct program *p, enum how how, uint64_t seed) {
    inferred_begin(w, seed);
    if (how == GLIMPSE)
        inferred_glimpse(w, 4 * INFERRED_S, 5 * INFERRED_S);
    for (int step = 0; (double)w->now < STEP_S * 1e9; step++) {
        int64_t from = w->now;
        p->step(w, step);
        inferred_step(w, from);
    }
    inferred_sync(w, 0);
    inferred_end(w, how == ENGINE);
}

static const struct hec_ledger_device *infer(struct inferred_world *w, struct hec_ledger *out,
                                             enum hec_ledger_basis *basis) {
    struct hec_inferred *inferred;
    memset(out, 0, sizeof *out);
    assert_int_equal(hec_inferred_begin(&w->run.input, &w->view.input, &inferred, NULL), 0);
    assert_non_null(inferred);
    for (int v = 0; v < HEC_INFERRED_VARIANT_COUNT; v++) {
        const struct hec_timeline_input *input;
        struct hec_ledger ledger;
        assert_int_equal(hec_inferred_input(inferred, v, &input, NULL), 0);
        assert_int_equal(hec_ledger_build(input, NULL, &ledger, NULL), 0);
        if (v == HEC_INFERRED_GUESS) {
            *out = ledger;
            continue;
        }
        hec_ledger_widen(out, &ledger);
        hec_ledger_free(&ledger);
    }
    *basis = hec_inferred_basis(inferred, 0);
    hec_inferred_free(inferred);
    assert_int_equal(out->device_count, 1);
    return &out->devices[0];
}

static enum hec_state most_of(const struct hec_ledger_device *d) {
    enum hec_state most = HEC_STATE_COMPUTE;
    double least = 0.1 * (double)d->window_ns / 1e9;
    for (int s = HEC_STATE_COPY; s < HEC_STATE_STARTUP; s++)
        if (d->rows[s].seconds > least && (most == HEC_STATE_COMPUTE || d->rows[s].seconds > d->rows[most].seconds))
            most = s;
    return most;
}

static void check(const struct program *p, enum how how, uint64_t seed) {
    static struct inferred_world w;
    struct hec_ledger truth, told;
    enum hec_ledger_basis basis;
    simulate(&w, p, how, seed);
    assert_int_equal(hec_ledger_build(&w.truth.input, NULL, &truth, NULL), 0);
    const struct hec_ledger_device *is = &truth.devices[0], *by = infer(&w, &told, &basis);
    double whole = (double)is->window_ns / 1e9, slack = 0.004 * whole;
    int out = 0;
    assert_int_equal(basis, how == GLIMPSE ? HEC_LEDGER_GLIMPSE : HEC_LEDGER_CALLS);
    assert_int_equal(is->window_ns, by->window_ns);
    for (int s = 0; s < HEC_STATE_COUNT; s++) {
        const struct hec_ledger_row *row = &by->rows[s];
        bool within =
            is->rows[s].seconds >= row->seconds_low - slack && is->rows[s].seconds <= row->seconds_high + slack;
        out += !within;
        if (!within || getenv("HEC_TEST_VERBOSE"))
            print_message("%s, %s: %-10s is %.3f s, told %.3f (%.3f to %.3f)%s\n", p->name, how_names[how],
                          hec_state_name(s), is->rows[s].seconds, row->seconds, row->seconds_low, row->seconds_high,
                          within ? "" : "  OUT");
    }
    enum hec_state truly = most_of(is), most = most_of(by);
    if (truly != p->most || ((how == ENGINE || p->certain) && most != truly))
        print_message("%s, %s: most is %s, told %s\n", p->name, how_names[how], hec_state_name(truly),
                      hec_state_name(most));
    if (getenv("HEC_TEST_ON"))
        goto done;
    assert_int_equal(truly, p->most);
    if (how == ENGINE || p->certain)
        assert_int_equal(most, truly);
    assert_int_equal(out, 0);
done:
    hec_ledger_free(&truth);
    hec_ledger_free(&told);
    inferred_free(&w);
}

static void run_all(enum how how) {
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        for (uint64_t seed = 1; seed <= 2; seed++)
            check(&programs[i], how, seed);
}

static void test_engine(void **state) {
    (void)state;
    run_all(ENGINE);
}
static void test_glimpse(void **state) {
    (void)state;
    run_all(GLIMPSE);
}
static void test_neither(void **state) {
    (void)state;
    run_all(NEITHER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine),
        cmocka_unit_test(test_glimpse),
        cmocka_unit_test(test_neither),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
