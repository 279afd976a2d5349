/* The report for people: width, colour, and that each thing is said. */
#include "report/run/report.h"
#include "unit/fake_run.h"
#include "unit.h"

static struct fake_run run;
static struct hec_summary summary;
static struct hec_buf out;
static struct hec_report_style style;

static void start(double seconds) {
    fake_init(&run, seconds);
    style = (struct hec_report_style){.utf8 = true};
}

static void print(void) {
    struct hec_price price = hec_price_default();
    hec_summary_free(&summary);
    assert_int_equal(hec_summary_build(&run.input, &price, &summary, NULL), 0);
    hec_buf_free(&out);
    hec_buf_init(&out, 1 << 20);
    assert_int_equal(hec_report_terminal(&summary, &style, &out), 0);
}

static void finish(void) {
    if (getenv("SHOW"))
        print_message("%s\n", hec_buf_text(&out));
    hec_buf_free(&out);
    hec_summary_free(&summary);
    fake_free(&run);
}

static void assert_says(const char *words) {
    if (!strstr(hec_buf_text(&out), words))
        fail_msg("\"%s\" is missing in:\n%s", words, hec_buf_text(&out));
}

static void assert_says_not(const char *words) {
    if (strstr(hec_buf_text(&out), words))
        fail_msg("\"%s\" is in:\n%s", words, hec_buf_text(&out));
}

static int lines(int widest) {
    int count = 0, width = 0;
    for (const char *c = hec_buf_text(&out); *c; c++) {
        if (*c == '\n') {
            count++;
            width = 0;
        } else if (((unsigned char)*c & 0xc0) != 0x80 && ++width > widest) {
            fail_msg("a line is wider than %d:\n%s", widest, hec_buf_text(&out));
        }
        assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
    }
    return count;
}

static void full_run(void) {
    start(63);
    fake_worker(&run, 0, 620, 1000, 920, 450);
    fake_worker(&run, 1, 150, 0, 0, 0);
    fake_used(&run, 0, 4321);
    run.units[run.unit_count].name = "sample";
    run.units[run.unit_count++].count = 300000;
    run.phases[run.phase_count].name = "load";
    run.phases[run.phase_count++].count = 12.5;
    run.events[run.event_count++] = (struct fake_event){HEC_EVENT_KNOB, HEC_DEVICE_NONE, 2000000000, "batch=128"};
    fake_fill(&run, HEC_HOST_CPU_BUSY, 0, 0.5, 63, 0.5, 120);
    fake_fill(&run, HEC_TREE_CPU, 0, 1, 63, 1, 114000);
    fake_fill(&run, HEC_TREE_RSS, 0, 1, 63, 1, 3000000);
    fake_fill(&run, HEC_TREE_READ, 0, 1, 63, 1, 700000);
    fake_fill(&run, HEC_TREE_WRITTEN, 0, 1, 63, 1, 1200);
    fake_fill(&run, HEC_GPU_THROTTLE, 0, 1, 63, 1, 4);
}

TEST(test_full) {
    full_run();
    print();
    lines(80);
    assert_says("python train.py");
    assert_says("kJ \u00b1 ");
    assert_says("of 700 W");
    assert_says("300000 samples, 4762 a second");
    assert_says("(defaults: 0.13 $/kWh, 473 g/kWh)");
    assert_says("by the counter");
    assert_says("healthy: the device is kept busy (confidence 0.");
    assert_says("SMs are active 92 %");
    assert_says("idle with a context");
    assert_says("clocks held down by the power limit in 100 %");
    assert_says("not charged");
    assert_says("load: 12.5 s (20 %), 3 times, energy unknown: no power was read");
    assert_says("batch=128");
    assert_says("0.05 CPU seconds");
    assert_says_not("\033");
    assert_says_not("nan");
    finish();
}

TEST(test_chosen_prices) {
    struct hec_price price = hec_price_default();
    full_run();
    print();
    price.dollars_per_kwh = 0.2;
    price.dollars_default = false;
    price.dollars_per_gpu_hour = 3.5;
    summary.price = price;
    hec_buf_clear(&out);
    assert_int_equal(hec_report_terminal(&summary, &style, &out), 0);
    assert_says("(0.2 $/kWh, 473 g/kWh by default, 3.5 $ a GPU");
    finish();
}

TEST(test_colour_and_ascii) {
    full_run();
    style.color = true;
    print();
    assert_says("\033[1m");
    style.color = style.utf8 = false;
    print();
    assert_says("kJ +- ");
    for (const char *c = hec_buf_text(&out); *c; c++)
        assert_true((unsigned char)*c < 0x80);
    finish();
}

TEST(test_narrow) {
    full_run();
    style.columns = 50;
    print();
    lines(50);
    finish();
}

TEST(test_brief) {
    full_run();
    style.brief = true;
    print();
    assert_true(lines(80) <= 15);
    assert_says("kJ \u00b1 ");
    assert_says("per sample");
    assert_says("found      healthy: ");
    assert_says("hec run --trace auto -- python train.py");
    assert_says("hec's cost");
    run.events[run.event_count++] = (struct fake_event){HEC_EVENT_DEVICE_LOST, 0, 30000000000, "GPU 0 is lost"};
    print();
    assert_true(lines(80) <= 15);
    assert_says("invalid: the device was lost at 30.00 s");
    finish();
}

TEST(test_no_gpu) {
    start(2);
    run.events[run.event_count++] = (struct fake_event){HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, 0,
                                                        "nvml: there is no NVIDIA driver on this machine"};
    print();
    assert_says("unavailable: there is no NVIDIA driver on this machine");
    assert_says("CPU energy");
    assert_says("Next         hec doctor");
    assert_says_not(" 0.00 J");
    assert_says_not("nan");
    finish();
}

TEST(test_nothing_used) {
    start(8);
    fake_worker(&run, 0, 120, 0, 0, 0);
    run.devices[0].visible = 0;
    print();
    assert_says("none charged: the command used no GPU");
    finish();
}

/* Devices that nobody used for the same reason share a row. */
TEST(test_several_unused) {
    full_run();
    fake_worker(&run, 2, 150, 0, 0, 0);
    fake_worker(&run, 3, 150, 0, 0, 0);
    print();
    assert_says("GPU 1 to 3   not charged (28.0 kJ in all): the command had no context on it");
    assert_says("Next         hec explain words");
    assert_says_not("\nGPUs");
    finish();
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
    assert_says("invalid: ");
    assert_says_not("CO2");
    finish();
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
    assert_says_not("\033");
    finish();
}

TEST(test_buffer_too_small) {
    full_run();
    print();
    hec_buf_free(&out);
    hec_buf_init(&out, 100);
    assert_true(hec_report_terminal(&summary, &style, &out) < 0);
    finish();
}
