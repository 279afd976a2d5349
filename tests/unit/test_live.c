/* The line of `hec run --live`: made of what goes to the run file. */
#include "base/clock.h"
#include "cli/live.h"
#include "model/trace.h"
#include "folder.h"

#define S HEC_NS_PER_S

static int passed;
static void sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    (void)context, (void)metric, (void)subject, (void)t_ns, (void)value;
    passed++;
}
static void device(void *context, const struct hec_device *info) {
    (void)context, (void)info;
    passed++;
}
static void process(void *context, const struct hec_process *record) {
    (void)context, (void)record;
    passed++;
}
static void gpu_process(void *context, const struct hec_gpu_process *record) {
    (void)context, (void)record;
    passed++;
}
static void units(void *context, const char *name, double count) {
    (void)context, (void)name, (void)count;
    passed++;
}
static uint32_t trace_name(void *context, const char *text) {
    (void)context, (void)text;
    return (uint32_t)++passed;
}
static void activities(void *context, const struct hec_activity *list, size_t count) {
    (void)context, (void)list, (void)count;
    passed++;
}

static struct hec_live *live;
static const struct hec_sink *sink;

static int set_up(void **state) {
    static const struct hec_sink to = {.sample = sample,
                                       .device = device,
                                       .process = process,
                                       .gpu_process = gpu_process,
                                       .units = units,
                                       .trace_name = trace_name,
                                       .trace_activities = activities};
    struct hec_why why;
    passed = 0;
    folder_make(state);
    /* it began just now by the clock, so that the thread says nothing while the test lasts */
    if (hec_live_open(folder_write("live", "", 0), hec_clock_mono_ns() + 3600 * S, &live, &why) < 0)
        return -1;
    sink = hec_live_through(live, &to);
    for (int i = 0; i < 2; i++)
        sink->device(sink->context, &(struct hec_device){.index = i, .power_limit_mw = 700000});
    return 0;
}
static int tear_down(void **state) {
    hec_live_end(live);
    hec_live_free(live);
    return folder_remove(state);
}

/* Without the time at its end, "  N s". */
static const char *line(int64_t at_ns) {
    static char text[HEC_LIVE_TEXT];
    hec_live_line(live, at_ns, text);
    size_t end = strlen(text);
    while (end > 2 && (text[end - 1] != ' ' || text[end - 2] != ' '))
        end--;
    text[end - 2] = '\0';
    return text;
}
#define LINE(at_ns, text) assert_string_equal(line(at_ns), "hec: " text)
#define SAMPLE(metric, index, at_ns, value) sink->sample(sink->context, metric, index, at_ns, value)

static void use(int index, int32_t pid) {
    sink->gpu_process(sink->context, &(struct hec_gpu_process){.device = index, .pid = pid, .visible = 1});
}

TEST(only_the_commands_devices_count) {
    for (int i = 0; i < 2; i++)
        SAMPLE(HEC_GPU_ENERGY, i, S, 1000000), SAMPLE(HEC_GPU_POWER, i, S, 100000 * (i + 1));
    LINE(S, "- W  - J");
    use(0, 50);
    use(1, 60);
    LINE(S, "- W  - J"); /* whose they are is not known yet */
    sink->process(sink->context, &(struct hec_process){.pid = 60});
    SAMPLE(HEC_GPU_ENERGY, 1, 2 * S, 1250000);
    LINE(2 * S, "200 W  250 J");
    SAMPLE(HEC_GPU_ENERGY, 1, 3 * S, 5000); /* the counter began anew */
    SAMPLE(HEC_GPU_ENERGY, 1, 4 * S, 105000);
    LINE(4 * S, "200 W  350 J");
    assert_int_equal(passed, 2 + 4 + 2 + 1 + 3); /* all of it went on */
}

TEST(without_a_counter_it_is_an_estimate) {
    sink->process(sink->context, &(struct hec_process){.pid = 60});
    use(0, 60);
    for (int i = 0; i <= 10; i++)
        SAMPLE(HEC_GPU_POWER, 0, i * S / 10 + S, 300000);
    LINE(2 * S, "300 W  about 300 J");
}

TEST(units_are_rates_and_joules) {
    sink->process(sink->context, &(struct hec_process){.pid = 60});
    use(0, 60);
    SAMPLE(HEC_GPU_POWER, 0, S, 500000);
    for (int i = 0; i <= 6; i++) { /* 500 W, 1250 tokens a second, from the third second on */
        SAMPLE(HEC_GPU_ENERGY, 0, i * S, 500000 * i);
        if (i >= 2)
            sink->units(sink->context, "token", 1250);
        const char *shown = line(i * S);
        if (i == 1)
            assert_string_equal(shown, "hec: 500 W  500 J");
        if (i == 6)
            assert_string_equal(shown, "hec: 500 W  3.00 kJ  1.25 k token/s  400 mJ/token");
    }
}

static void step(enum hec_step_source source, double amount, uint32_t name) {
    sink->trace_activities(
        sink->context,
        &(struct hec_activity){.kind = HEC_ACTIVITY_STEP, .detail = (uint8_t)source, .amount = amount, .name = name},
        1);
}

TEST(steps_that_hooks_find_are_units) {
    uint32_t name = sink->trace_name(sink->context, "sample\033[2J");
    step(HEC_STEP_MODULE, 64, name);
    LINE(S, "- W  - J"); /* a rate needs two readings */
    step(HEC_STEP_MODULE, 64, name);
    assert_non_null(strstr(line(2 * S), "  64.0 sample?[2J/s"));
    step(HEC_STEP_OPTIMIZER, NAN, 0); /* steps of an optimizer count from here on, and its samples are not known */
    line(3 * S);
    step(HEC_STEP_MODULE, 64, name);
    step(HEC_STEP_OPTIMIZER, NAN, 0);
    assert_non_null(strstr(line(4 * S), "  1.00 step/s"));
    sink->units(sink->context, "batch", 10); /* and what the program marks itself from here on */
    line(5 * S);
    sink->units(sink->context, "batch", 10);
    step(HEC_STEP_OPTIMIZER, NAN, 0);
    assert_non_null(strstr(line(6 * S), "  10.0 batch/s"));
}

TEST(the_verdict_of_all_devices) {
    sink->process(sink->context, &(struct hec_process){.pid = 60});
    use(0, 60);
    use(1, 60);
    for (int t = 0; t < 10; t++)
        for (int i = 0; i < 2; i++) {
            SAMPLE(HEC_GPM_GR_ACTIVE, i, t * S, 990);
            SAMPLE(HEC_GPM_SM_ACTIVE, i, t * S, 950);
            SAMPLE(HEC_GPM_SM_OCCUPANCY, i, t * S, 600);
            SAMPLE(HEC_GPM_TENSOR_ACTIVE, i, t * S, 500);
            SAMPLE(HEC_GPU_POWER, i, t * S, 650000);
        }
    assert_non_null(strstr(line(9 * S), "  healthy"));
    SAMPLE(HEC_GPU_THROTTLE, 1, 9 * S, 0x40); /* heat, on one of them: no word holds for both */
    assert_null(strstr(line(9 * S), "  healthy"));
    assert_null(strstr(line(9 * S), "  throttled"));
}

EACH_TEST(set_up, tear_down)
