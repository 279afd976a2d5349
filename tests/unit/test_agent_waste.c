/* What tenants make of devices, from telemetry alone: joules while they worked and while they only held them, why, and whether more
 * would be of use. A node that is fed by hand, with processes of a made /proc. */
#include "agent/live.h"
#include "agent/node.h"
#include "agent/state_file.h"
#include "tests/unit/agent_clock.h"
#include "tests/unit/folder.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define STARVED 10
#define OTHER 11

static struct hec_node *node;
static char passwd[64];
static int64_t counter_mj;

static void put_process(int pid, const char *arguments, size_t length) {
    char path[64];
    snprintf(path, sizeof path, "%d/stat", pid);
    folder_text(path, "%d (python3) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 5 1000 100 0 0\n", pid);
    snprintf(path, sizeof path, "%d/cgroup", pid);
    folder_text(path, "%s", "0::/user.slice/user-1234.slice/session-2.scope\n");
    snprintf(path, sizeof path, "%d/status", pid);
    folder_text(path, "Name:\tpython3\nUid:\t1234\t1234\t1234\t1234\n");
    snprintf(path, sizeof path, "%d/cmdline", pid);
    folder_write(path, arguments, length);
    snprintf(path, sizeof path, "%d/environ", pid);
    folder_write(path, "", 0);
}
#define PUT(pid, arguments) put_process(pid, arguments, sizeof arguments - 1)

static struct hec_node *new_node(void) {
    struct hec_identity *identity = NULL;
    snprintf(passwd, sizeof passwd, "%s/passwd", folder);
    const struct hec_identity_options options = {.proc_path = folder, .passwd_path = passwd, .containers_path = folder};
    assert_int_equal(hec_identity_open(&options, &identity), HEC_OK);
    return hec_node_new(S, identity);
}

static int set_up(void **state) {
    now_ns = 1000 * S;
    counter_mj = 0;
    hec_clock_set_source(&fake_clock);
    int err = folder_make(state);
    folder_text("passwd", "ann:x:1234:1::/:/bin/sh\n");
    PUT(STARVED, "python3\0train.py\0--lr\0"
                 "3\0");
    PUT(OTHER, "python3\0train.py\0--lr\0"
               "4\0");
    node = new_node();
    return err;
}
static int tear_down(void **state) {
    hec_node_free(node);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static void see(const char *name) {
    struct hec_device device = {.power_limit_mw = 700000, .clock_max_mhz = 2000};
    snprintf(device.uuid, sizeof device.uuid, "GPU-1");
    snprintf(device.name, sizeof device.name, "%s", name);
    node->sink.device(node, &device);
}

/* What a device does for so long, with a reading a second; permille, W, MHz. */
struct doing {
    int util, sm, occupancy, watts, clock, pids[2], share[2]; /* share: of the SMs, by process */
};
static void goes_on(int seconds, const struct doing *d) {
    static int64_t sums[2], samples;
    for (int s = 0; s < seconds; s++) {
        const struct {
            enum hec_metric metric;
            int64_t value;
        } shown[] = {{HEC_GPU_UTIL, d->util},     {HEC_GPM_GR_ACTIVE, d->util},
                     {HEC_GPM_SM_ACTIVE, d->sm},  {HEC_GPM_SM_OCCUPANCY, d->occupancy},
                     {HEC_GPM_PCIE_RX, 0},        {HEC_GPM_PCIE_TX, 0},
                     {HEC_GPU_THROTTLE, 0},       {HEC_GPM_TENSOR_ACTIVE, d->sm / 2},
                     {HEC_GPU_SM_CLOCK, d->clock}};
        now_ns += S;
        counter_mj += INT64_C(1000) * d->watts;
        samples += 5;
        node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, counter_mj);
        for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
            node->sink.sample(node, shown[i].metric, 0, now_ns, shown[i].value);
        int count = 0;
        for (; count < 2 && d->pids[count]; count++) {
            sums[count] += 5 * d->share[count];
            node->sink.gpu_process(node, &(struct hec_gpu_process){.pid = d->pids[count],
                                                                   .last_ns = now_ns,
                                                                   .sm_util_sum_permille = sums[count],
                                                                   .sm_util_samples = samples});
        }
        node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, count);
        node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, INT64_C(1000) * d->watts);
        hec_node_tick(node, now_ns);
    }
}

static const struct doing fifth = {200, 150, 100, 240, 1800, {STARVED}, {200}};

static struct hec_waste_row rows[HEC_WASTE_TENANTS];
static const struct hec_waste_row *row_of(const char *command) {
    int count = hec_waste_rows(node, rows);
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].of->command, command) == 0)
            return &rows[i];
    fail_msg("no row of %s", command);
    return NULL;
}

static json_t *live_of(const char *list, size_t i) {
    static struct hec_live live;
    struct hec_buf text;
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    const struct hec_page_options options = {.hostname = "n"};
    assert_int_equal(hec_live_make(&live, node, &options, &(struct hec_page_agent){0}, now_ns, &text), 0);
    json_t *root = json_loads(hec_buf_text(&text), 0, NULL), *row = json_array_get(json_object_get(root, list), i);
    json_incref(row);
    json_decref(root);
    hec_buf_free(&text);
    assert_non_null(row);
    return row;
}

/* It never idles long enough to be seen idling: what an H200 draws with a context stands for that. */
TEST(a_fifth_of_the_time_used_is_no_unused_0_joules) {
    see("NVIDIA H200");
    goes_on(70, &fifth);
    const struct hec_waste_row *row = row_of("train.py --lr 3");
    assert_in_range(hec_use_made_wasted_uj(&row->use) / 1000000, 69 * 0.8 * 120 - 100, 69 * 0.8 * 120 + 100);
    assert_true(fabs(hec_use_made_worked(&row->use) - 0.2) < 0.01);
    assert_true(row->use.wasted_uj[HEC_WASTE_STARVED] > 9 * row->use.wasted_uj[HEC_WASTE_UNKNOWN]);
    assert_in_range(node->devices[0]->total[HEC_NODE_IDLE_ALLOCATED_MJ], 6400000, 6900000); /* nor an all-busy chart */
    struct hec_node_said said = hec_waste_said(node, row, now_ns);
    assert_int_equal(said.cause, HEC_WASTE_STARVED);
    assert_false(said.by_job);
    assert_true(said.sure > 0.3 && said.sure < 0.75);
    json_t *tenant = live_of("tenants", 0);
    assert_string_equal(json_string_value(json_object_get(tenant, "cause")), "starved");
    assert_string_equal(json_string_value(json_object_get(tenant, "by")), "telemetry");
    assert_string_equal(json_string_value(json_object_get(tenant, "user")), "ann");
    double worked = json_real_value(json_object_get(tenant, "worked_joules")),
           wasted = json_real_value(json_object_get(tenant, "wasted_joules"));
    assert_true(fabs(worked + wasted - 69 * 240) < 1);
    assert_true(json_is_null(json_object_get(tenant, "advice"))); /* a minute is not sustained */
    json_decref(tenant);
}

/* Of a part that nobody measured joules are not known, and not 0; how long it worked is. */
TEST(of_an_unknown_part_only_the_time_is_known) {
    see("Some GPU");
    goes_on(70, &fifth);
    json_t *tenant = live_of("tenants", 0);
    assert_true(json_is_null(json_object_get(tenant, "wasted_joules")));
    assert_true(fabs(json_real_value(json_object_get(tenant, "worked_share")) - 0.2) < 0.01);
    json_decref(tenant);
}

TEST(what_a_job_said_goes_before_telemetry) {
    see("NVIDIA H200");
    goes_on(70, &fifth);
    const struct hec_tenant tenant = *row_of("train.py --lr 3")->of;
    int64_t starved = row_of("train.py --lr 3")->use.wasted_uj[HEC_WASTE_STARVED];
    hec_node_diagnose(node, &tenant, 1, HEC_CAUSE_DATA);
    goes_on(10, &fifth);
    struct hec_node_said said = hec_node_says(node, node->devices[0], NULL, now_ns);
    assert_int_equal(said.cause, HEC_CAUSE_DATA);
    assert_true(said.by_job);
    const struct hec_waste_row *row = row_of("train.py --lr 3");
    assert_int_equal(row->use.wasted_uj[HEC_WASTE_STARVED], starved);
    assert_in_range(row->use.wasted_uj[HEC_CAUSE_DATA] / 1000000, 950, 970);
    hec_node_diagnose(node, &tenant, 2, HEC_CAUSE_DATA); /* of another device */
    assert_false(hec_node_says(node, node->devices[0], NULL, now_ns).by_job);
    hec_node_diagnose(node, &tenant, 0, -1);
    assert_int_equal(node->diagnosed_count, 0);
}

/* Each has what it held; of two that share a device counters do not say who waits. */
TEST(two_of_one_user_are_two) {
    see("NVIDIA H200");
    goes_on(70, &(struct doing){300, 250, 100, 240, 1800, {STARVED, OTHER}, {50, 250}});
    const struct hec_waste_row *a = row_of("train.py --lr 3");
    double worked = hec_use_made_worked(&a->use);
    int64_t wasted = hec_use_made_wasted_uj(&a->use);
    assert_int_equal(hec_waste_said(node, a, now_ns).cause, HEC_WASTE_UNKNOWN);
    assert_true(fabs(worked - 0.05) < 0.01);
    a = row_of("train.py --lr 4");
    assert_true(fabs(hec_use_made_worked(&a->use) - 0.25) < 0.01);
    assert_true(hec_use_made_wasted_uj(&a->use) < wasted);
}

/* The driver gives new samples of processes every few seconds: until then what they were; of a device that stands still, or where others
 * have new ones, nothing. */
TEST(what_a_process_used_stays_until_there_are_samples) {
    static const struct {
        int util, more[2]; /* samples since the last reading: STARVED, OTHER */
        int used[2];
    } step[] = {{500, {5, 5}, {400, 100}}, {500, {0, 0}, {400, 100}}, {500, {0, 5}, {0, 100}},
                {500, {5, 5}, {400, 100}}, {0, {0, 0}, {0, 0}},       {500, {5, 0}, {400, 0}}};
    static const int share[2] = {400, 100}, pids[2] = {STARVED, OTHER};
    int64_t sums[2] = {0, 0}, samples[2] = {0, 0};
    see("NVIDIA H200");
    for (size_t s = 0; s < 1 + sizeof step / sizeof step[0]; s++) {
        size_t at = s ? s - 1 : 0; /* the first reading divides nothing */
        now_ns += S;
        counter_mj += 300000;
        node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, counter_mj);
        node->sink.sample(node, HEC_GPU_UTIL, 0, now_ns, step[at].util);
        for (int i = 0; i < 2; i++) {
            sums[i] += step[at].more[i] * share[i];
            samples[i] += step[at].more[i];
            node->sink.gpu_process(node, &(struct hec_gpu_process){.pid = pids[i],
                                                                   .last_ns = now_ns,
                                                                   .sm_util_sum_permille = sums[i],
                                                                   .sm_util_samples = samples[i]});
        }
        node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, 2);
        hec_node_tick(node, now_ns);
        for (int i = 0; i < 2 && s; i++)
            if (node->devices[0]->processes[i].sm_permille != step[at].used[i])
                fail_msg("step %zu: process %d used %d", at, i, node->devices[0]->processes[i].sm_permille);
    }
}

/* A model that stays resident and clocks that stay high. */
TEST(clocks_that_stay_high_are_named) {
    see("Tesla P40");
    goes_on(70, &(struct doing){0, 0, 0, 45, 1800, {STARVED}, {0}});
    assert_int_equal(hec_waste_said(node, row_of("train.py --lr 3"), now_ns).cause, HEC_WASTE_CLOCKS);
    assert_true(row_of("train.py --lr 3")->use.wasted_uj[HEC_WASTE_CLOCKS] > 60 * INT64_C(45000000));
    goes_on(70, &(struct doing){0, 0, 0, 33, 405, {STARVED}, {0}});
    assert_int_equal(hec_waste_said(node, row_of("train.py --lr 3"), now_ns).cause, HEC_CAUSE_IDLE);
}

TEST(more_devices_are_honest_from_70_percent_on) {
    const struct {
        int64_t held_s, worked_s;
        int cause;
        enum hec_scale scale;
    } cases[] = {
        {299, 290, HEC_CAUSE_NONE, HEC_SCALE_UNKNOWN},  {300, 210, HEC_CAUSE_NONE, HEC_SCALE_OUT},
        {300, 209, HEC_CAUSE_NONE, HEC_SCALE_OPTIMISE}, {300, 290, HEC_CAUSE_LAUNCH, HEC_SCALE_OPTIMISE},
        {300, 290, HEC_WASTE_UNKNOWN, HEC_SCALE_OUT},   {900, 0, HEC_CAUSE_IDLE, HEC_SCALE_OPTIMISE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_use_made use = {.held_ns = cases[i].held_s * S, .worked_ns = cases[i].worked_s * S};
        assert_int_equal(hec_waste_scale(&use, cases[i].cause), cases[i].scale);
    }
    see("NVIDIA H200");
    goes_on(310, &(struct doing){900, 850, 400, 600, 1800, {STARVED}, {900}});
    json_t *team = live_of("teams", 0);
    assert_string_equal(json_string_value(json_object_get(team, "team")), "ann");
    assert_string_equal(json_string_value(json_object_get(team, "advice")), "scale out");
    json_decref(team);
}

TEST(it_goes_on_after_a_restart) {
    struct hec_state_file file;
    struct hec_why why = {""};
    mkdir(in_folder("kept"), 0700);
    assert_int_equal(hec_state_file_open(&file, in_folder("kept"), geteuid(), &why), HEC_OK);
    see("NVIDIA H200");
    goes_on(70, &fifth);
    const struct hec_use_made before = row_of("train.py --lr 3")->use;
    assert_int_equal(hec_state_file_save(&file, node, false), HEC_OK);
    hec_node_free(node);
    node = new_node();
    if (hec_state_file_load(&file, node, &why) < 0)
        fail_msg("%s", why.text);
    see("NVIDIA H200");
    assert_memory_equal(&before, &row_of("train.py --lr 3")->use, sizeof before);
    hec_state_file_close(&file);
    /* more wasted than the floor it had, or more time worked than held, is no state */
    struct hec_use_made use = before;
    assert_true(hec_use_made_valid(&use, hec_use_made_wasted_uj(&use)));
    assert_false(hec_use_made_valid(&use, hec_use_made_wasted_uj(&use) - 1));
    use.worked_ns = use.held_ns + 1;
    assert_false(hec_use_made_valid(&use, INT64_MAX));
}
