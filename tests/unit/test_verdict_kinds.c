/* The verdicts on figures measured on an H200 (700 W, Gen5 x16) and on what lies between. */
#include "diagnose/verdict.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct hec_device_summary device;
static struct hec_verdict verdict;

static void telemetry(double engine, double sm, double occupancy, double dram, double rx_gb, double watts) {
    memset(&device, 0, sizeof device);
    device.used = true;
    device.device.pcie_kib_per_s = 61523437; /* 63 GB/s */
    device.power_limit_w = 700;
    device.activity = (struct hec_use){.from_s = 5,
                                       .to_s = 65,
                                       .has_gpm = true,
                                       .readings = 500,
                                       .busiest = engine,
                                       .engine = engine,
                                       .sm = sm,
                                       .occupancy = occupancy,
                                       .tensor = 0.1,
                                       .dram = dram,
                                       .pcie_rx = rx_gb * 1e9,
                                       .pcie_tx = 1e7,
                                       .mem_util = dram,
                                       .power_w = watts};
}

static void without_gpm(void) {
    struct hec_use *a = &device.activity;
    a->has_gpm = false;
    a->sm = a->occupancy = a->tensor = a->dram = a->pcie_rx = a->pcie_tx = NAN;
}

static void expect(enum hec_verdict_kind kind) {
    hec_verdict_decide(&device, &verdict);
    if (verdict.kind != kind)
        fail_msg("%s instead of %s", hec_verdict_name(verdict.kind), hec_verdict_name(kind));
    assert_true(verdict.confidence >= 0 && verdict.confidence <= 0.7);
    assert_true(strlen(verdict.sentence) > 10 && strlen(verdict.sentence) < sizeof verdict.sentence - 1);
    for (int i = 0; i < verdict.evidence_count; i++)
        assert_true(isfinite(verdict.evidence[i].value[0]));
    if (kind != HEC_VERDICT_NONE && kind != HEC_VERDICT_UNUSED) {
        assert_true(verdict.evidence_count >= 2);
        assert_null(strstr(verdict.sentence, "trace")); /* the report says once what one would add */
    }
}

static void test_compute_bound(void **state) {
    (void)state;
    telemetry(1, 0.95, 0.4, 0.3, 0.05, 690); /* GEMM */
    expect(HEC_VERDICT_COMPUTE_BOUND);
    assert_true(verdict.confidence > 0.65);
    telemetry(1, 0.85, 0.5, 0.4, 0.1, 531); /* ResNet-18, batch 128 */
    expect(HEC_VERDICT_COMPUTE_BOUND);
    telemetry(1, 0.78, 0.5, 0.4, 0.1, 398); /* the same in bf16 */
    expect(HEC_VERDICT_COMPUTE_BOUND);
    assert_true(verdict.confidence < 0.6);
}

static void test_memory_bandwidth(void **state) {
    (void)state;
    telemetry(1, 0.95, 0.9, 0.85, 0.05, 593); /* element-wise bf16 */
    expect(HEC_VERDICT_COMPUTE_BOUND);
    assert_non_null(strstr(verdict.sentence, "memory bandwidth"));
}

static void test_transfer_starved(void **state) {
    (void)state;
    telemetry(0.02, 0.01, 0.01, 0.05, 50, 130); /* pinned copies */
    expect(HEC_VERDICT_TRANSFER_STARVED);
    double sure = verdict.confidence;
    telemetry(0.4, 0.35, 0.2, 0.2, 5, 220); /* pageable copies and little work */
    expect(HEC_VERDICT_TRANSFER_STARVED);
    assert_true(verdict.confidence < sure);
    device.device.pcie_kib_per_s = -1; /* the link's speed is unknown */
    expect(HEC_VERDICT_TRANSFER_STARVED);
}

static void test_small_kernels(void **state) {
    (void)state;
    telemetry(0.31, 0, 0, 0, 0.29, 121); /* tiny element-wise kernels on an H200, launched from Python */
    expect(HEC_VERDICT_SMALL_KERNELS);
    assert_true(verdict.confidence > 0.6);
    telemetry(0.8, 0.45, 0.15, 0.1, 0.1, 220);
    expect(HEC_VERDICT_SMALL_KERNELS);
}

static void test_waiting(void **state) {
    (void)state;
    telemetry(0.012, 0.008, 0.004, 0.004, 0.05, 123); /* a slow loader in the main process, on an H200 */
    expect(HEC_VERDICT_WAITING);
    assert_true(verdict.confidence > 0.6);
    telemetry(0.4, 0.3, 0.2, 0.1, 0.2, 260);
    expect(HEC_VERDICT_WAITING);
    assert_true(verdict.confidence < 0.6);
}

static void test_unclear(void **state) {
    (void)state;
    telemetry(1, 0.6, 0.5, 0.3, 0.2, 330);
    expect(HEC_VERDICT_UNCLEAR);
    telemetry(1, 0.95, 0.5, 0.3, 0.2, NAN);
    expect(HEC_VERDICT_UNCLEAR);
    assert_non_null(strstr(verdict.sentence, "power"));
}

static void test_without_gpm(void **state) {
    (void)state;
    telemetry(1, 0, 0, 0, 0, 600);
    without_gpm();
    expect(HEC_VERDICT_COMPUTE_BOUND);
    assert_true(verdict.confidence <= 0.45);
    telemetry(1, 0, 0, 0, 0, 124);
    without_gpm();
    expect(HEC_VERDICT_SMALL_KERNELS);
    assert_true(verdict.confidence <= 0.45);
    assert_non_null(strstr(verdict.sentence, "PCIe rates are unknown"));
    telemetry(0.3, 0, 0, 0, 0, 200);
    without_gpm();
    expect(HEC_VERDICT_UNCLEAR);
    assert_non_null(strstr(verdict.sentence, "PCIe rates are unknown"));
}

/* GPM without the PCIe metrics: low SM activity is not called starved. */
static void test_pcie_unknown(void **state) {
    (void)state;
    telemetry(0.3, 0.2, 0.1, 0.1, NAN, 200);
    device.activity.pcie_tx = NAN;
    expect(HEC_VERDICT_UNCLEAR);
    assert_non_null(strstr(verdict.sentence, "PCIe rates are unknown"));
}

static void test_unused(void **state) {
    (void)state;
    telemetry(0, 0, 0, 0, 0.0001, 82);
    device.activity.from_s = device.activity.to_s = NAN;
    expect(HEC_VERDICT_UNUSED);
    device.activity.from_s = 1; /* a context was made */
    device.activity.to_s = 1.82;
    device.energy.window_s = 19;
    device.activity.busiest = 0.25;
    device.metric[HEC_GPM_GR_ACTIVE].mean = 0.007;
    expect(HEC_VERDICT_UNUSED);
    device.activity.readings = 0;
    expect(HEC_VERDICT_NONE);
}

static void test_too_brief(void **state) {
    (void)state;
    telemetry(1, 0.9, 0.4, 0.3, 0, 600);
    device.activity.to_s = 5.3;
    device.metric[HEC_GPM_GR_ACTIVE].mean = 0.1;
    expect(HEC_VERDICT_NONE);
}

/* Every threshold says what it is compared with and where it comes from. */
static void test_thresholds_have_sources(void **state) {
    (void)state;
    for (int i = 0; i < HEC_THRESHOLD_COUNT; i++) {
        const struct hec_threshold *t = hec_threshold((enum hec_threshold_id)i);
        assert_true(strlen(t->compared) > 5 && strlen(t->source) > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compute_bound),
        cmocka_unit_test(test_memory_bandwidth),
        cmocka_unit_test(test_transfer_starved),
        cmocka_unit_test(test_small_kernels),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_unclear),
        cmocka_unit_test(test_without_gpm),
        cmocka_unit_test(test_pcie_unknown),
        cmocka_unit_test(test_unused),
        cmocka_unit_test(test_too_brief),
        cmocka_unit_test(test_thresholds_have_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
