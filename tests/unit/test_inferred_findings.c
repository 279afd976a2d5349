/* The first finding of a program of which calls alone are known is that of one that CUPTI saw throughout, and what it says
 * is evidence that calls give. */
#include "diagnose/summary.h"
#include "inferred_programs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct inferred_world world;
static struct fake_run run;

/* Of the run as `timeline` tells it. */
static void summarise(const struct fake_timeline *timeline, struct hec_summary *out) {
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
    assert_int_equal(hec_summary_build(&run.input, &price, out, NULL), 0);
    assert_true(out->devices[0].used);
}

static void print_findings(const char *of, const struct hec_summary *s) {
    for (int i = 0; i < s->findings.count; i++) {
        print_message("%s: %s (%.2f)\n", of, s->findings.list[i].title, s->findings.list[i].confidence);
        for (int k = 0; k < s->findings.list[i].evidence_count; k++)
            print_message("    %s\n", s->findings.list[i].evidence[k]);
    }
}

static enum hec_cause first(const struct hec_summary *s) {
    return s->findings.count ? s->findings.list[0].cause : HEC_CAUSE_COUNT;
}

static void check(const struct program *p, enum how how) {
    struct hec_summary truth, told;
    simulate(&world, p, how, 7);
    summarise(&world.truth, &truth);
    summarise(&world.view, &told);
    if (first(&truth) != p->cause || first(&told) != p->cause || getenv("HEC_TEST_VERBOSE")) {
        print_message("---- %s, %s\n", p->name, how_names[how]);
        print_findings("seen", &truth);
        print_findings("told", &told);
    }
    assert_int_equal(first(&truth), p->cause);
    assert_int_equal(first(&told), p->cause);
    const struct hec_call_facts *is = hec_diagnosis_calls(&truth.diagnosis, 0);
    const struct hec_call_facts *by = hec_diagnosis_calls(&told.diagnosis, 0);
    const int classes[] = {HEC_API_LAUNCH, HEC_API_COPY, HEC_API_SYNC, HEC_API_ALLOC, HEC_API_FREE};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        double n = (double)is->api[classes[i]].count, m = (double)by->api[classes[i]].count;
        if (fabs(n - m) > 0.01 * n + 2)
            print_message("%s: %s %.0f, told %.0f\n", p->name, hec_api_class_name(classes[i]), n, m);
        assert_true(fabs(n - m) <= 0.01 * n + 2);
    }
    assert_true(fabs(is->pageable_bytes - by->pageable_bytes) <= 0.01 * is->pageable_bytes);
    assert_true(llabs(is->blocking_copies - by->blocking_copies) <= 2);
    assert_true(llabs(is->small_copies - by->small_copies) <= 2);
    hec_summary_free(&truth);
    hec_summary_free(&told);
    inferred_free(&world);
}

static void run_all(enum how how) {
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (how == ENGINE || programs[i].certain)
            check(&programs[i], how);
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
