/* The report for people: width, colour, and that each thing is said. */
#include "report/run/report.h"
#include "recorded_run.h"
#include "report_text.h"

static struct hec_report_style style;

static void start(double seconds) {
    run_begin(seconds);
    style = (struct hec_report_style){.utf8 = true};
}

static void print(void) {
    summarise();
    assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
}

static void full_run(void) {
    style = (struct hec_report_style){.utf8 = true};
    run_begin_with(63, 620, 1000, 920, 450);
    fake_worker(&run, 1, 150, 0, 0, 0);
    fake_unit(&run, "sample", 300000);
    fake_phase(&run, "load", 12.5);
    fake_event(&run, HEC_EVENT_KNOB, HEC_DEVICE_NONE, 2000000000, "batch=128");
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0.5, 63, 0.5, 120);
    fake_fill(&run, HEC_TREE_CPU, 0, 1, 63, 1, 114000);
    fake_fill(&run, HEC_TREE_RSS, 0, 1, 63, 1, 3000000);
    fake_fill(&run, HEC_TREE_READ, 0, 1, 63, 1, 700000);
    fake_fill(&run, HEC_TREE_WRITTEN, 0, 1, 63, 1, 1200);
    fake_fill(&run, HEC_GPU_THROTTLE, 0, 1, 63, 1, 4);
}

TEST(test_full) {
    full_run();
    style.all = true;
    print();
    lines(80);
    SAYS("python train.py", "kJ \u00b1 ", "of 700 W", "300000 samples, 4762 a second",
         "(defaults: 0.13 $/kWh, 473 g/kWh)", "by the counter", "healthy: the device is kept busy (confidence 0.",
         "SMs are active 92 %", "idle with a context", "clocks held down by the power limit in 100 %", "not charged",
         "load: 12.5 s (20 %), 3 times, energy unknown: no power was read", "knobs      batch=128", "0.05 CPU seconds");
    SAYS_NOT("\033", "nan");
}

TEST(test_chosen_prices) {
    struct hec_price price = hec_price_default();
    full_run();
    print();
    price.dollars_per_kwh = 0.2;
    price.dollars_default = false;
    price.dollars_per_gpu_hour = 3.5;
    summary.price = price;
    assert_int_equal(hec_report_terminal(&summary, &style, page()), 0);
    SAYS("(0.2 $/kWh, 473 g/kWh by default, 3.5 $ a GPU");
}

TEST(test_colour_and_ascii) {
    full_run();
    style.color = true;
    print();
    SAYS("\033[1m");
    style.color = style.utf8 = false;
    print();
    SAYS("kJ +- ");
    for (const char *c = hec_buf_text(&out); *c; c++)
        assert_true((unsigned char)*c < 0x80);
}

TEST(test_narrow) {
    full_run();
    style.columns = 50;
    print();
    lines(50);
}

TEST(test_brief) {
    full_run();
    style.brief = true;
    print();
    assert_true(lines(80) <= 15);
    SAYS("kJ \u00b1 ", "mJ per\n             sample", "found      healthy: ", "hec run --trace auto -- python train.py",
         "hec's cost");
    fake_event(&run, HEC_EVENT_DEVICE_LOST, 0, 30000000000, "GPU 0 is lost");
    print();
    assert_true(lines(80) <= 15);
    SAYS("invalid: the device was lost at 30.00 s");
}

TEST(test_no_gpu) {
    start(2);
    fake_event(&run, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, 0,
               "nvml: there is no NVIDIA driver on this machine");
    style.all = true;
    print();
    SAYS("unavailable: there is no NVIDIA driver on this machine", "CPU energy", "more       hec doctor");
    SAYS_NOT(" 0.00 J", "nan");
}

TEST(test_nothing_used) {
    start(8);
    fake_worker(&run, 0, 120, 0, 0, 0);
    run.devices[0].visible = 0;
    print();
    SAYS("none charged: the command used no GPU");
}

/* Devices that nobody used for the same reason share a row. */
TEST(test_several_unused) {
    full_run();
    fake_worker(&run, 2, 150, 0, 0, 0);
    fake_worker(&run, 3, 150, 0, 0, 0);
    print();
    SAYS("GPU 1 to 3   not charged (28.0 kJ in all): the command had no context on it",
         "more       hec explain none; hec report -v train.hec");
    SAYS_NOT("\nGPUs");
}

TEST(test_invalid) {
    start(0.1);
    fake_worker(&run, 0, 120, 0, 0, 0);
    fake_used(&run, 0, 7);
    run.gpu_processes[0].first_ns = 0;
    for (int i = 0; i < run.series_count; i++)
        if (run.series[i].metric == HEC_GPU_ENERGY || run.series[i].metric == HEC_GPU_POWER)
            run.series[i].count = 1;
    print();
    SAYS("invalid: ");
    SAYS_NOT("CO2");
}

/* Text from outside cannot write to the terminal. */
TEST(test_hostile_text) {
    full_run();
    run.input.command = "evil\033]0;title\007\r\n\x9b"
                        "2J";
    run.phases[0].name = "\033[2J";
    run.events[0].text = "\033[31m\n\n";
    style.columns = 79;
    print();
    lines(79);
    SAYS_NOT("\033");
}

TEST(test_buffer_too_small) {
    full_run();
    print();
    hec_buf_free(&out);
    hec_buf_init(&out, 100);
    assert_true(hec_report_terminal(&summary, &style, &out) < 0);
}
