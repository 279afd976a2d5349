/* The page of `hec top`: state and size in, cells out; the keys. */
#include "base/clock.h"
#include "top/json.h"
#include "top/layout.h"
#include "top/top.h"
#include "unit.h"

#include <locale.h>

static struct hec_top_state state;
static struct hec_buf text;

static void add_device(const char *name, double watts) {
    struct hec_top_device *device = &state.devices[state.device_count];
    *device = (struct hec_top_device){.index = state.device_count,
                                      .ordinal = state.device_count,
                                      .up = true,
                                      .power_w = watts,
                                      .limit_w = 700,
                                      .sm = 0.98,
                                      .tensor = 0.61,
                                      .dram = 0.33,
                                      .util = 1,
                                      .pcie_in = 1.25e9,
                                      .pcie_out = 2e6,
                                      .memory_used = 63e9,
                                      .memory_total = 151e9,
                                      .temperature_c = 61,
                                      .verdict = HEC_AGENT_VERDICT_HEALTHY,
                                      .joules = 5000,
                                      .joules_s = 10};
    snprintf(device->name, sizeof device->name, "%s", name);
    for (int i = 0; i < HEC_TOP_COURSE; i++)
        device->course[i] = i < HEC_TOP_COURSE / 2 ? NAN : 700.0 * i / HEC_TOP_COURSE;
    state.device_count++;
}

static void add_process(int pid, int device, double watts, double joules, const char *user, const char *command) {
    struct hec_top_process *process = &state.processes[state.process_count++];
    *process = (struct hec_top_process){
        .pid = pid, .device = device, .watts = watts, .joules = joules, .sm = 0.5, .memory = 2e9 + pid};
    snprintf(process->user, sizeof process->user, "%s", user);
    snprintf(process->command, sizeof process->command, "%s", command);
}

static int set_up(void **unused) {
    (void)unused;
    memset(&state, 0, sizeof state);
    snprintf(state.host, sizeof state.host, "node7");
    state.interval_ns = HEC_NS_PER_S;
    state.wall_ns = 1;
    hec_buf_init(&text, 1 << 20);
    return 0;
}
static int tear_down(void **unused) {
    (void)unused;
    hec_buf_free(&text);
    return 0;
}

static const char *page(struct hec_top_view *view, int rows, int columns, bool utf8) {
    struct hec_sheet sheet;
    hec_buf_clear(&text);
    assert_int_equal(hec_sheet_init(&sheet, rows, columns, utf8), HEC_OK);
    hec_top_layout(&state, view, &sheet);
    hec_sheet_print(&sheet, &text);
    hec_sheet_free(&sheet);
    return hec_buf_text(&text);
}

#define HAS(page_, what) assert_non_null(strstr(page_, what))
#define LACKS(page_, what) assert_null(strstr(page_, what))

TEST(wide_shows_all) {
    struct hec_top_view view = {0};
    add_device("NVIDIA H200", 512);
    add_process(41, 0, 300, 3000, "ann", "/usr/bin/python3 train.py");
    const char *shown = page(&view, 60, 200, true);
    HAS(shown, "node7  1 GPU  512 W of 700 W  5.00 kJ in 10.0 s  every 1 s");
    HAS(shown, "512/700   98    61    33   1.25 GB  2.00 MB   63.0/151  61 healthy        none");
    HAS(shown, "\u2588\u2588");
    HAS(shown, "\u2586\u2587\u2587"); /* the course of power */
    HAS(shown, "     41 ann            0    300  3.00 kJ   50  2.00 GB python3 train.py\n");
    LACKS(shown, "not shown");
}

TEST(narrow_says_what_is_left_out) {
    struct hec_top_view view = {0};
    for (int i = 0; i < 8; i++)
        add_device("NVIDIA H200", 500 + i);
    add_process(41, 0, 300, 3000, "ann", "python3 train.py");
    const char *shown = page(&view, 24, 80, true); /* a line each */
    HAS(shown, "507/700");
    HAS(shown, "python3 train.py");
    HAS(shown, "not shown: PCIe-IN/s OUT/s THROTTLED JOULES POWER SO FAR");
    shown = page(&view, 40, 80, true); /* two */
    HAS(shown, "PCIe in 1.25 GB");
    LACKS(shown, "not shown");
    shown = page(&view, 10, 40, true);
    HAS(shown, "4 more GPUs: d, then arrow keys");
    HAS(shown, "     41");
    HAS(shown, "not shown: ");
    view.devices_only = true;
    view.scroll = 100;
    shown = page(&view, 10, 40, true);
    HAS(shown, "507/700");
    LACKS(shown, "more GPU");
    assert_int_equal(view.scroll, 1);
}

TEST(any_size_will_do) {
    for (int i = 0; i < 5; i++) {
        add_device(i ? "NVIDIA H200" : "\u30c6\u30b9\u30c8 a\u0301 device with a long name", i ? 100 * i : NAN);
        add_process(100 + i, i, 10 * i, NAN, "\u30c6\u30b9\u30c8", "\u30c6\u30b9\u30c8 \u30c6\u30b9\u30c8");
    }
    for (int rows = 1; rows < 45; rows += rows < 12 ? 1 : 8)
        for (int columns = 1; columns < 230; columns += columns < 50 ? 3 : 36)
            for (int how = 0; how < 8; how++) {
                struct hec_top_view view = {.devices_only = how & 1, .help = how & 2, .scroll = 3};
                const char *shown = page(&view, rows, columns, how & 4);
                for (int line = 0; *shown; shown += strcspn(shown, "\n") + 1, line++) {
                    struct hec_sheet sheet = {.utf8 = how & 4};
                    char one[4096];
                    snprintf(one, sizeof one, "%.*s", (int)strcspn(shown, "\n"), shown);
                    assert_true(line < rows && hec_sheet_width(&sheet, one) <= columns);
                    for (const char *at = one; !(how & 4) && *at; at++)
                        assert_true(*at >= ' ' && *at < 0x7f);
                }
            }
}

TEST(missing_is_no_zero) {
    struct hec_top_view view = {0};
    const char *shown = page(&view, 24, 80, true);
    HAS(shown, "looking for GPUs");
    snprintf(state.trouble, sizeof state.trouble, "no driver here");
    HAS(page(&view, 24, 80, true), "no GPU: no driver here");
    add_device("NVIDIA H200", NAN);
    struct hec_top_device *device = &state.devices[0];
    device->up = false;
    device->limit_w = device->sm = device->tensor = device->dram = device->util = device->pcie_in = device->pcie_out =
        NAN;
    device->memory_used = device->memory_total = device->temperature_c = device->joules = device->joules_s = NAN;
    device->throttle = device->verdict = HEC_VERDICT_UNKNOWN;
    add_process(7, 0, NAN, NAN, "ann", "x");
    state.processes[0].sm = state.processes[0].memory = NAN;
    shown = page(&view, 24, 200, false);
    HAS(shown, "1 GPU, 1 LOST  every 1 s");
    HAS(shown, "-/-    -     -     -         -        -        -/-   - LOST           -");
    HAS(shown, "7 ann            0      -        -    -        - x\n");
    HAS(page(&view, 24, 80, true), "LOST");
    struct hec_buf json;
    hec_buf_init(&json, 1 << 20);
    assert_int_equal(hec_top_json(&state, &view, &json), HEC_OK);
    HAS(hec_buf_text(&json), "\"power_w\": null");
    HAS(hec_buf_text(&json), "\"verdict\": null");
    HAS(hec_buf_text(&json), "\"throttled\": null");
    HAS(hec_buf_text(&json), "\"watts\": null");
    hec_buf_free(&json);
}

TEST(hostile_texts_are_shown_harmlessly) {
    struct hec_top_view view = {0};
    add_device("GPU\033[2J", 1);
    add_process(1, 0, 1, 1, "\033]0;x\a", "a\033[31mb\x9b\xff\u202e\nc");
    const char *shown = page(&view, 24, 200, true);
    for (const char *at = shown; *at; at++)
        assert_true((unsigned char)*at >= ' ' || *at == '\n');
    HAS(shown, "?]0;x?");
    HAS(shown, "a?[31mb????c\n");
}

TEST(sorts_and_filters) {
    struct hec_top_view view = {0};
    int order[HEC_TOP_PROCESSES_MAX];
    add_device("NVIDIA H200", 1);
    add_process(3, 0, 5, 100, "ann", "serve");
    add_process(1, 0, NAN, 900, "bob", "train");
    add_process(2, 0, 70, 300, "ann", "eval");
    snprintf(state.processes[2].work, sizeof state.processes[2].work, "ml/pod-1");
    static const struct {
        int key, order[3];
    } keys[] = {{'P', {2, 3, 1}}, {'J', {1, 2, 3}}, {'M', {3, 2, 1}}, {'N', {1, 2, 3}},
                {'R', {3, 2, 1}}, {'>', {2, 3, 1}}, {'<', {1, 2, 3}}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_true(hec_top_key(&view, keys[i].key));
        assert_int_equal(hec_top_order(&state, &view, order), 3);
        for (int p = 0; p < 3; p++)
            assert_int_equal(state.processes[order[p]].pid, keys[i].order[p]);
    }
    HAS(page(&view, 24, 80, false), "vPID");
    for (const char *key = "/POD"; *key; key++)
        assert_true(hec_top_key(&view, *key));
    HAS(page(&view, 24, 80, true), "filter: POD_");
    assert_true(hec_top_key(&view, HEC_TOP_KEY_ENTER));
    assert_int_equal(hec_top_order(&state, &view, order), 1);
    assert_int_equal(order[0], 2);
    HAS(page(&view, 24, 80, true), "filter: POD");
    assert_true(hec_top_key(&view, HEC_TOP_KEY_ESCAPE));
    assert_int_equal(hec_top_order(&state, &view, order), 3);
    assert_false(hec_top_key(&view, 'k')); /* no key ends a process */
    for (int key = 0; key < 128; key++)    /* every name of the option is a key of the view */
        hec_top_key(&view, key);
    char names[] = HEC_TOP_SORTS, *rest = names, *name;
    int sort = 0;
    for (; (name = strsep(&rest, " ")); sort++)
        assert_int_equal(hec_top_sort_find(name), sort);
    assert_int_equal(sort, HEC_TOP_SORT_COUNT);
}

TEST(help_fits) {
    struct hec_top_view view = {.help = true};
    const char *shown = page(&view, 24, 80, true);
    HAS(shown, "not measured; never 0");
    LACKS(shown, "\u2026");
}

TEST(scrolls) {
    struct hec_top_view view = {.sort = HEC_TOP_PID};
    add_device("NVIDIA H200", 1);
    for (int i = 0; i < 50; i++)
        add_process(1000 + i, 0, 1, 1, "ann", "x");
    HAS(page(&view, 24, 80, true), " 1000 ");
    hec_top_key(&view, HEC_TOP_KEY_UP);
    hec_top_key(&view, HEC_TOP_KEY_DOWN);
    hec_top_key(&view, HEC_TOP_KEY_PAGE_DOWN);
    LACKS(page(&view, 24, 80, true), " 1000 ");
    hec_top_key(&view, HEC_TOP_KEY_END);
    HAS(page(&view, 24, 80, true), " 1049 ");
    hec_top_key(&view, HEC_TOP_KEY_HOME);
    HAS(page(&view, 24, 80, true), " 1000 ");
}

static struct hec_top_waste *add_waste(const char *team, const char *job, const char *command, double wasted,
                                       double worked) {
    struct hec_top_waste *row = &state.wastes[state.waste_count++];
    *row = (struct hec_top_waste){
        .joules = 9000, .wasted = wasted, .worked = worked, .said = {.cause = HEC_WASTE_UNKNOWN, .sure = NAN}};
    snprintf(row->team, sizeof row->team, "%s", team);
    snprintf(row->user, sizeof row->user, "ann");
    snprintf(row->job, sizeof row->job, "%s", job);
    snprintf(row->command, sizeof row->command, "%s", command);
    return row;
}

/* Who, of which team and job, why, and whether more is honest: all of it in 80 columns. */
TEST(who_wastes_fits_80_columns) {
    struct hec_top_view view = {.plain = true};
    add_device("NVIDIA H200", 512);
    state.waste = true;
    struct hec_top_waste *row = add_waste("vision", "4711", "train.py --lr 3", 8100, 0.2);
    row->said = (struct hec_node_said){.cause = HEC_WASTE_STARVED, .sure = 0.5};
    row->scale = HEC_SCALE_OPTIMISE;
    row->by_cause[HEC_WASTE_STARVED] = 8100;
    row = add_waste("ann", "", "serve.py", NAN, 0.98);
    row->said = (struct hec_node_said){.cause = HEC_CAUSE_NONE, .by_job = true, .sure = NAN};
    row->scale = HEC_SCALE_OUT;
    state.team_count = 1;
    state.teams[0] = (struct hec_top_waste){.team = "vision", .wasted = 8100, .worked = 0.2, .joules = 9000};
    state.teams[0].said.cause = HEC_WASTE_UNKNOWN;
    const char *shown = page(&view, hec_top_rows(&state), 80, true);
    HAS(shown, "  WASTED USED% NOW                MORE GPUS? TEAM   USER   JOB    POD OR COMMAND");
    HAS(shown, " 8.10 kJ    20 likely starved     tune first vision ann    4711   train.py --lr");
    HAS(shown, "       -    98 healthy            scale out  ann");
    HAS(shown, "By team\n 8.10 kJ    20 -");
    HAS(page(&view, 60, 160, true), "JOULES");
    snprintf(view.filter, sizeof view.filter, "4711");
    LACKS(page(&view, 60, 80, true), "serve.py");
    struct hec_buf json;
    hec_buf_init(&json, 1 << 20);
    assert_int_equal(hec_top_json(&state, &view, &json), HEC_OK);
    HAS(hec_buf_text(&json), "\"wasted_joules\": 8100");
    HAS(hec_buf_text(&json), "\"wasted_by_cause\": [{\"cause\": \"starved\", \"joules\": 8100.0}]");
    HAS(hec_buf_text(&json), "\"processes\": []");
    LACKS(hec_buf_text(&json), "serve.py");
    hec_buf_free(&json);
}

static int set_locale(void **unused) {
    (void)unused;
    return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

ALL_TESTS(set_locale, NULL)
EACH_TEST(set_up, tear_down)
