/* What telemetry alone shows of a device, on figures measured on an H200 (700 W, Gen5 x16) and on what lies between: one
 * pattern at most. */
#include "diagnose/meter/use.h"
#include "unit.h"

static struct hec_device_summary device;

static void telemetry(double engine, double sm, double occupancy, double dram, double rx_gb, double watts) {
    memset(&device, 0, sizeof device);
    device.used = true;
    device.device.pcie_kib_per_s = 61523437; /* 63 GB/s */
    device.power_limit_w = 700;
    device.activity = (struct hec_use){.from_s = 5,
                                       .to_s = 65,
                                       .has_gpm = true,
                                       .readings = 500,
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

typedef double pattern(const struct hec_device_summary *device);

/* That one holds, NULL: none does, and how sure that is. */
static double only(pattern *expected) {
    pattern *const all[] = {hec_use_nothing, hec_use_full, hec_use_transfers, hec_use_thin, hec_use_waits};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        double sure = all[i](&device);
        assert_true(sure >= 0 && sure <= HEC_USE_CONFIDENCE);
        if ((all[i] == expected) != (sure > 0))
            fail_msg("pattern %zu: %g", i, sure);
    }
    return expected ? expected(&device) : 0;
}

TEST(test_full) {
    telemetry(1, 0.95, 0.4, 0.3, 0.05, 690); /* GEMM */
    assert_true(only(hec_use_full) > 0.65);
    telemetry(1, 0.85, 0.5, 0.4, 0.1, 531); /* ResNet-18, batch 128 */
    only(hec_use_full);
    telemetry(1, 0.78, 0.5, 0.4, 0.1, 398); /* the same in bf16 */
    assert_true(only(hec_use_full) < 0.6);
    telemetry(1, 0.95, 0.9, 0.85, 0.05, 593); /* element-wise bf16 */
    only(hec_use_full);
}

/* Kept busy, and its tensor pipes show dense work: a given part of the engine's activity. */
TEST(test_dense) {
    telemetry(0.8, 0.95, 0.4, 0.3, 0.05, 690);
    device.activity.tensor = 0.8 * HEC_NONE_LEAST_TENSOR;
    assert_true(hec_use_full(&device) > 0 && hec_use_dense(&device) == hec_use_full(&device));
    device.activity.tensor -= 0.001;
    assert_true(hec_use_dense(&device) == 0);
    device.activity.tensor = NAN;
    assert_true(hec_use_dense(&device) == 0);
    device.activity.tensor = 0.5;
    device.activity.sm = 0.3;
    assert_true(hec_use_dense(&device) == 0);
}

TEST(test_transfers) {
    telemetry(0.02, 0.01, 0.01, 0.05, 50, 130); /* pinned copies */
    double sure = only(hec_use_transfers);
    telemetry(0.6, 0.55, 0.2, 0.2, 5, 300); /* pageable copies, which count as activity of the engine */
    assert_true(only(hec_use_transfers) < sure);
    device.device.pcie_kib_per_s = -1; /* the link's speed is unknown */
    only(hec_use_transfers);
}

/* At the link's best rate copies would take a small part of the idle time: a loader that brings the data shows the same. */
TEST(test_copies_that_do_not_explain_it) {
    telemetry(0.4, 0.35, 0.2, 0.2, 5, 220);
    only(hec_use_waits);
    device.device.pcie_kib_per_s = -1;
    only(hec_use_waits);
    telemetry(0.25, 0.2, 0.2, 0.2, 18, 220);
    only(hec_use_waits);
    telemetry(0.25, 0.2, 0.2, 0.2, 20, 220); /* 40 % of the time, where it idles for 75 % */
    only(hec_use_transfers);
}

TEST(test_thin) {
    telemetry(0.31, 0, 0, 0, 0.29, 121); /* tiny element-wise kernels on an H200, launched from Python */
    assert_true(only(hec_use_thin) > 0.6);
    telemetry(0.8, 0.45, 0.15, 0.1, 0.1, 220);
    only(hec_use_thin);
}

TEST(test_waits) {
    telemetry(0.012, 0.008, 0.004, 0.004, 0.05, 123); /* a slow loader in the main process, on an H200 */
    assert_true(only(hec_use_waits) > 0.6);
    telemetry(0.4, 0.3, 0.2, 0.1, 0.2, 260);
    assert_true(only(hec_use_waits) < 0.6);
}

TEST(test_none_of_them) {
    telemetry(1, 0.6, 0.5, 0.3, 0.2, 330);
    only(NULL);
    telemetry(1, 0.95, 0.5, 0.3, 0.2, NAN); /* the power is unknown */
    only(NULL);
    telemetry(0.3, 0.2, 0.1, 0.1, NAN, 200); /* PCIe rates are: transfers may be what it waits for */
    device.activity.pcie_tx = NAN;
    only(NULL);
    telemetry(1, 0.9, 0.4, 0.3, 0, 600); /* too brief */
    device.activity.to_s = 5.3;
    device.metric[HEC_GPM_GR_ACTIVE].mean = 0.1;
    only(NULL);
}

/* What others do as well shows nothing. */
TEST(test_shared) {
    for (int others = HEC_OTHERS_MAYBE; others <= HEC_OTHERS_BUSY; others++) {
        telemetry(1, 0.95, 0.4, 0.3, 0.05, 690);
        only(hec_use_full);
        device.others = (enum hec_others)others;
        only(NULL);
        telemetry(0.31, 0.3, 0, 0.0, 0.05, 124);
        only(hec_use_thin);
        device.others = (enum hec_others)others;
        only(NULL);
    }
}

TEST(test_without_gpm) {
    telemetry(1, 0, 0, 0, 0, 600);
    without_gpm();
    assert_true(only(hec_use_full) <= HEC_USE_CONFIDENCE_DRIVER);
    telemetry(1, 0, 0, 0, 0, 124);
    without_gpm();
    assert_true(only(hec_use_thin) <= HEC_USE_CONFIDENCE_DRIVER);
    telemetry(0.3, 0, 0, 0, 0, 200);
    without_gpm();
    only(NULL);
}

TEST(test_nothing) {
    telemetry(0, 0, 0, 0, 0.0001, 82);
    device.activity.from_s = device.activity.to_s = NAN;
    only(hec_use_nothing);
    device.activity.from_s = 1; /* a context was made */
    device.activity.to_s = 1.82;
    device.energy.window_s = 19;
    device.metric[HEC_GPM_GR_ACTIVE].mean = 0.007;
    only(hec_use_nothing);
    device.activity.readings = 0;
    only(NULL);
}
