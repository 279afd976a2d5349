/* What a node's pages say of a made machine: the text that Prometheus reads and the data of the page for a browser, against kept ones
 * (tests/data/agent; HEC_GOLDEN_UPDATE=1 writes them anew), and sums of the jobs that report. Who reports is made up here. */
#include "agent/live.h"
#include "agent/page.h"
#include "tests/unit/agent_clock.h"
#include "tests/unit/folder.h"

#include <ctype.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD_UID "1a2b3c4d_0001_4002_8003_a0b0c0d0e0f0"

/* ---- what stands for the registry of jobs ---- */

#define JOBS_MOST 300
static struct hec_jobs_options given;
static struct hec_job jobs[JOBS_MOST];
static size_t job_count;
static struct hec_jobs_counts counts;

int hec_jobs_open(const struct hec_jobs_options *options, struct hec_jobs **out, struct hec_why *why) {
    if (options->socket)
        return hec_fail(why, HEC_ERR_LIMIT, "the path is too long");
    given = *options;
    *out = (struct hec_jobs *)jobs;
    return HEC_OK;
}
int hec_jobs_fd(const struct hec_jobs *registry) {
    return registry == (struct hec_jobs *)jobs ? 17 : -1;
}
int64_t hec_jobs_poll(struct hec_jobs *registry, int64_t at_ns) {
    (void)registry;
    counts.rings = 5;
    return at_ns + 7;
}
size_t hec_jobs_count(const struct hec_jobs *registry) {
    (void)registry;
    return job_count;
}
const struct hec_job *hec_jobs_at(const struct hec_jobs *registry, size_t at) {
    (void)registry;
    return &jobs[at];
}
void hec_jobs_counts(const struct hec_jobs *registry, struct hec_jobs_counts *out) {
    (void)registry;
    *out = counts;
}
void hec_jobs_close(struct hec_jobs *registry) {
    (void)registry;
    job_count = 0;
}

static struct hec_job *begin_job(int pid, int devices) {
    struct hec_job *job = &jobs[job_count++];
    *job = (struct hec_job){.pid = pid, .row = -1, .since_ns = now_ns, .device_count = devices, .cause = -1};
    return job;
}

/* ---- a machine ---- */

enum { TRAIN = 10, OTHER = 11, JOB = 20, STEP_2 = 21, CLAIMS = 22, POD = 30 };

static struct hec_node *node;
static struct hec_causes *causes;
static int64_t counter_mj[40];

static void put_process(int pid, const char *cgroup, const char *arguments, size_t length, const char *variables,
                        size_t variables_length) {
    char path[64];
    snprintf(path, sizeof path, "%d/stat", pid);
    folder_text(path, "%d (python3) S 1 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 5 1000 100 0 0\n", pid);
    snprintf(path, sizeof path, "%d/cgroup", pid);
    folder_text(path, "0::/%s\n", cgroup);
    snprintf(path, sizeof path, "%d/status", pid);
    folder_text(path, "Name:\tpython3\nUid:\t1234\t1234\t1234\t1234\n");
    snprintf(path, sizeof path, "%d/cmdline", pid);
    folder_write(path, arguments, length);
    snprintf(path, sizeof path, "%d/environ", pid);
    folder_write(path, variables, variables_length);
}
#define PUT(pid, cgroup, arguments, variables)                                                                         \
    put_process(pid, cgroup, arguments, sizeof arguments - 1, variables, sizeof variables - 1)

static int set_up(void **state) {
    static char passwd[64], logs[64];
    struct hec_identity *identity = NULL;
    struct hec_jobs_options options = {.window_s = 5};
    now_ns = 1000 * S;
    job_count = 0;
    counts = (struct hec_jobs_counts){.rings = 0};
    memset(counter_mj, 0, sizeof counter_mj);
    hec_clock_set_source(&fake_clock);
    int err = folder_make(state) || mkdir(in_folder("logs"), 0755) || mkdir(in_folder("map"), 0755);
    folder_text("passwd", "ann:x:1234:1::/:/bin/sh\n");
    snprintf(passwd, sizeof passwd, "%s/passwd", folder);
    snprintf(logs, sizeof logs, "%s/logs", folder);
    PUT(TRAIN, "user.slice/user-1234.slice/session-2.scope", "python3\0train.py\0--lr\0003\0", "");
    PUT(OTHER, "user.slice/user-1234.slice/session-2.scope", "python3\0eval.py\0", "");
    PUT(JOB, "system.slice/slurmstepd.scope/job_77/step_0/user/task_0", "python3\0a.py\0", "");
    PUT(STEP_2, "system.slice/slurmstepd.scope/job_77/step_2/user/task_0", "python3\0a.py\0", "");
    PUT(POD, "kubepods.slice/kubepods-pod" POD_UID ".slice/crio-" ID ".scope", "python3\0serve.py\0", "");
    folder_text("logs/serve-0_ml_main-" ID ".log", "%s", "");
    const struct hec_identity_options of = {.proc_path = folder, .passwd_path = passwd, .containers_path = logs};
    assert_int_equal(hec_identity_open(&of, &identity), HEC_OK);
    node = hec_node_new(S, identity);
    assert_int_equal(hec_causes_open(&options, node, &causes, NULL), HEC_OK);
    return err;
}
static int tear_down(void **state) {
    hec_causes_close(causes);
    hec_node_free(node);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static void see(int index, const char *name) {
    struct hec_device device = {.index = index,
                                .power_limit_mw = 700000,
                                .power_limit_default_mw = 650000,
                                .memory_kib = 1 << 20,
                                .clock_max_mhz = 1980,
                                .simulated = index == 2};
    snprintf(device.uuid, sizeof device.uuid, "GPU-%d", index);
    snprintf(device.name, sizeof device.name, "%s", name);
    snprintf(device.pci_bus_id, sizeof device.pci_bus_id, "00000000:%02d:00.0", index);
    snprintf(device.driver, sizeof device.driver, "570.1");
    snprintf(device.cuda_driver, sizeof device.cuda_driver, "13000");
    snprintf(device.minor_number, sizeof device.minor_number, "%d", index + 3);
    snprintf(device.serial, sizeof device.serial, "15%d", index);
    node->sink.device(node, &device);
}

static void draws(int index, int watts) {
    counter_mj[index] += INT64_C(1000) * watts;
    node->sink.sample(node, HEC_GPU_ENERGY, index, now_ns, 5000000 + counter_mj[index]);
    node->sink.sample(node, HEC_GPU_POWER, index, now_ns, INT64_C(1000) * watts);
}

static void has_context(int index, int pid, int instance, int64_t util_sum, int64_t samples) {
    node->sink.gpu_process(node, &(struct hec_gpu_process){.device = index,
                                                           .pid = pid,
                                                           .last_ns = now_ns,
                                                           .memory_kib = 1000 * pid,
                                                           .sm_util_sum_permille = util_sum,
                                                           .sm_util_samples = samples,
                                                           .gpu_instance = instance});
}

static void in_instance(int id, int compute_id, int engine, int sm) {
    struct hec_gpu_instance record = {.device = 1,
                                      .id = id,
                                      .compute_id = compute_id,
                                      .slices = id,
                                      .slices_of = 7,
                                      .t_ns = now_ns,
                                      .from_ns = now_ns - S,
                                      .until_ns = now_ns,
                                      .memory_used_kib = 1024 * id,
                                      .memory_free_kib = 4096,
                                      .memory_reserved_kib = id == 1 ? -1 : 64};
    snprintf(record.uuid, sizeof record.uuid, "MIG-%d-%d", id, compute_id);
    snprintf(record.profile, sizeof record.profile, "%dg.%dgb", id, 18 * id);
    for (int i = 0; i < HEC_GPM_COUNT; i++)
        record.counters[i] = i % 4 == 3 ? -1 : 10 * i;
    record.counters[0] = engine;
    record.counters[HEC_GPM_SM_ACTIVE - HEC_GPM_GR_ACTIVE] = sm;
    node->sink.gpu_instance(node, &record);
}

/* A second of the machine. 0: two programs of a user and a pod, with all metrics; 1: divided, with a job in it; 2: given to a job by
 * the map, later lost; 32: of another vendor, which tells little. */
static void second(int s) {
    bool works = s >= 20, high = s % 2;
    now_ns += S;
    if (s <= 60) {
        draws(2, 90 + s);
        node->sink.sample(node, HEC_GPU_UTIL, 2, now_ns, s % 10 == 0 ? 500 : 0);
        node->sink.sample(node, HEC_GPU_CONTEXTS, 2, now_ns, 0);
    }
    draws(HEC_VENDOR_DEVICES_MAX, 100);
    draws(1, works ? 300 : 85);
    if (s % 5 == 0) /* a counter that is read more rarely than power */
        draws(0, 0);
    counter_mj[0] += works ? (high ? 520000 : 480000) : 120000;
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, works ? (high ? 520000 : 480000) : 120000);
    for (int metric = 0; metric < HEC_METRIC_COUNT; metric++)
        if (metric > HEC_GPU_POWER && metric <= HEC_GPM_NVLINK_TX && metric != HEC_GPU_XID &&
            metric != HEC_GPU_CONTEXTS && metric != HEC_GPU_THROTTLE)
            node->sink.sample(node, (enum hec_metric)metric, 0, now_ns, works ? 100 + 7 * metric : 3);
    node->sink.sample(node, HEC_GPU_UTIL, 0, now_ns, works ? 900 : 0);
    node->sink.sample(node, HEC_GPU_THROTTLE, 0, now_ns,
                      s > 70   ? HEC_THROTTLED_HARDWARE_THERMAL
                      : s > 60 ? HEC_THROTTLED_POWER_CAP
                               : 0);
    has_context(0, TRAIN, -1, works ? 5 * 600 * (int64_t)(s - 19) : 0, 5 * (int64_t)s);
    has_context(0, OTHER, -1, works ? 5 * 200 * (int64_t)(s - 19) : 0, 5 * (int64_t)s);
    has_context(0, POD, -1, works ? 5 * 50 * (int64_t)(s - 19) : 0, 5 * (int64_t)s);
    node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, 3);
    in_instance(3, 0, works ? 800 : 0, works ? 500 : 0);
    in_instance(1, 0, 0, 0);
    in_instance(1, 1, 0, 0);
    has_context(1, JOB, 3, 0, 0);
    node->sink.sample(node, HEC_GPU_CONTEXTS, 1, now_ns, 1);
    node->sink.sample(node, HEC_RAPL_PACKAGE_ENERGY, 0, now_ns, INT64_C(50000000) * s);
    node->sink.sample(node, HEC_RAPL_DRAM_ENERGY, 1, now_ns, INT64_C(4000000) * s);
    if (s == 30)
        node->sink.sample(node, HEC_GPU_XID, 2, now_ns, 79);
    if (s == 40)
        folder_text("map/2", "41 bob\n43\n");
    if (s == 61)
        node->sink.event(node, HEC_EVENT_DEVICE_LOST, 2, now_ns, "gone");
    hec_node_tick(node, now_ns);
}

static void see_all(void) {
    node->jobs.folder = in_folder("map");
    folder_text("map/2", "41 bob\n");
    assert_int_equal(chmod(in_folder("map/2"), 0644), 0);
    static char kept[300];
    snprintf(kept, sizeof kept, "%s/map", folder);
    node->jobs.folder = kept;
    see(0, "NVIDIA H200");
    see(1, "NVIDIA H200");
    see(2, "Tesla P40");
    see(HEC_VENDOR_DEVICES_MAX, "MI300X");
}

/* ---- against what is kept ---- */

static bool same_number(const char **a, const char **b, const char *line_a, const char *line_b) {
    char *end_a, *end_b;
    while (*a > line_a && *b > line_b && (isalnum((*a)[-1]) || strchr(".+-", (*a)[-1]))) {
        --*a;
        --*b;
    }
    double x = strtod(*a, &end_a), y = strtod(*b, &end_b);
    if (end_a == *a || end_b == *b || !(fabs(x - y) <= 1e-7 * fabs(y)))
        return false;
    *a = end_a;
    *b = end_b;
    return true;
}

/* The texts are the same but for the last digits of numbers. */
static void assert_kept(const char *name, const char *text) {
    static char kept[1 << 20];
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/agent/%s", HEC_SOURCE_DIR, name);
    if (getenv("HEC_GOLDEN_UPDATE")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
    }
    kept[file_read(path, kept, sizeof kept - 1)] = '\0';
    const char *a = text, *b = kept, *line_a = a, *line_b = b;
    while (*a || *b) {
        if (*a == *b) {
            if (*a == '\n') {
                line_a = a + 1;
                line_b = b + 1;
            }
            a++;
            b++;
        } else if (!same_number(&a, &b, line_a, line_b)) {
            fail_msg("%s:\n%.*s\nwas\n%.*s", name, (int)strcspn(line_a, "\n"), line_a, (int)strcspn(line_b, "\n"),
                     line_b);
        }
    }
}

static struct hec_buf text;

static const char *page(bool all, bool current) {
    static struct hec_dcgm_list fields;
    struct hec_page_options options = {.dcgm = &fields,
                                       .devices = {.instances = true, .gpus = ~UINT64_C(0)},
                                       .hostname_label = "Hostname",
                                       .hostname = "n1",
                                       .causes = causes,
                                       .current = current,
                                       .all_series = all};
    struct hec_page_agent agent = {
        .process = {1.5, 2e6, -1, 12, 1024, 1.7e9}, .cpu_seconds = 3.25, .resident_bytes = 4e6, .state_saved = -1};
    hec_page_drop(&agent, "rings", 5);
    hec_page_drop(&agent, "processes", 0);
    hec_dcgm_list_default(&fields, all, all);
    assert_int_equal(hec_page_make(node, &options, &agent, HEC_EXPOSITION_PROMETHEUS, now_ns, &text), HEC_OK);
    char *version = strstr(hec_buf_text(&text), "version=\"" HEC_VERSION "\"");
    assert_non_null(version);
    memset(version + strlen("version=\""), 'V', strlen(HEC_VERSION));
    return hec_buf_text(&text);
}

static struct hec_live live;
static json_t *live_root(void) {
    const struct hec_page_options options = {.hostname = "n1", .causes = causes};
    const struct hec_page_agent agent = {.cpu_seconds = 3.25, .resident_bytes = -1};
    assert_int_equal(hec_live_make(&live, node, &options, &agent, now_ns, &text), HEC_OK);
    json_t *root = json_loads(hec_buf_text(&text), 0, NULL);
    assert_non_null(root);
    json_object_del(root, "hec_version");
    return root;
}

TEST(pages_of_a_busy_node) {
    struct hec_tenant tenant;
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    node->lag_ns = 15 * S;
    see_all();
    for (int s = 1; s <= 100; s++) {
        second(s);
        hec_history_add(&live.history, node, now_ns);
        if (s == 80)
            json_decref(live_root()); /* watts of tenants are those since */
        if (s == 90) {
            hec_identity_of(node->identity, TRAIN, NULL, 0, now_ns, &tenant);
            hec_node_diagnose(node, &tenant, 1, HEC_CAUSE_DATA);
        }
    }
    assert_kept("page.prom", page(true, true));
    assert_kept("scraped.prom", page(false, false));
    json_t *root = live_root();
    char *json = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    assert_kept("live.json", json);
    free(json);
    json_decref(root);
    hec_history_free(&live.history);
    memset(&live, 0, sizeof live);
    hec_buf_free(&text);
}

/* A list of fields may begin with a label: it is one of the others then. */
TEST(a_list_that_begins_with_a_label) {
    static const char list[] = "DCGM_FI_DRIVER_VERSION, label, d\nDCGM_FI_DEV_POWER_USAGE, gauge, p\n";
    static struct hec_dcgm_list fields;
    struct hec_why why;
    const struct hec_page_options options = {.dcgm = &fields,
                                             .devices = {.instances = true, .gpus = ~UINT64_C(0)},
                                             .hostname_label = "Hostname",
                                             .hostname = "n1"};
    const struct hec_page_agent agent = {.resident_bytes = -1, .state_saved = -1};
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    see_all();
    snprintf(node->devices[0]->info.driver, sizeof node->devices[0]->info.driver, "580.1");
    second(1);
    assert_int_equal(hec_dcgm_list_parse(&fields, list, sizeof list - 1, false, &why), HEC_OK);
    assert_int_equal(hec_page_make(node, &options, &agent, HEC_EXPOSITION_PROMETHEUS, now_ns, &text), HEC_OK);
    const char *sample = strstr(hec_buf_text(&text), "DCGM_FI_DEV_POWER_USAGE{");
    assert_non_null(sample);
    const char *label = strstr(sample, ",DCGM_FI_DRIVER_VERSION=\"580.1\"");
    assert_true(label && label < strchr(sample, '\n'));
    hec_buf_free(&text);
}

TEST(fields_that_a_device_does_not_give) {
    static struct hec_dcgm_list fields;
    struct hec_page_options options = {.dcgm = &fields};
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    hec_dcgm_list_default(&fields, true, true);
    see_all();
    assert_int_equal(hec_page_absent(node, &options, 3, now_ns, now_ns, &text), HEC_PAGE_NO_DEVICE);
    int64_t begun_ns = now_ns;
    for (int s = 1; s <= 62; s++)
        second(s);
    assert_int_equal(hec_page_absent(node, &options, 2, now_ns, now_ns, &text), HEC_PAGE_LATER); /* lost */
    assert_int_equal(hec_page_absent(node, &options, 0, now_ns, begun_ns - HEC_NS_PER_S, &text),
                     HEC_PAGE_LATER); /* it came after that */
    assert_int_equal(text.length, 0);
    char said[8192] = "";
    for (int index = 0; index < 2; index++) {
        assert_int_equal(hec_page_absent(node, &options, index, now_ns, now_ns - 30 * HEC_NS_PER_S, &text),
                         HEC_PAGE_JUDGED);
        snprintf(said + strlen(said), sizeof said - strlen(said), "%d: %s\n", index, hec_buf_text(&text));
    }
    assert_kept("absent.txt", said);
    hec_buf_free(&text);
}

/* ---- jobs that report ---- */

static struct hec_window_result window(int index, double seconds, double joules) {
    struct hec_window_result result = {
        .device_count = 1, .cause = HEC_CAUSE_DATA, .recoverable = 0.25, .unit_count = 1};
    result.device[0].index = index;
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        result.device[0].joules[state] = NAN;
    result.device[0].seconds[HEC_STATE_COMPUTE] = seconds;
    result.device[0].seconds[HEC_STATE_DATA] = 2 * seconds;
    result.device[0].joules[HEC_STATE_COMPUTE] = joules;
    result.device[0].joules[HEC_STATE_DATA] = isnan(joules) ? NAN : joules / 2;
    snprintf(result.unit[0].name, sizeof result.unit[0].name, "sample");
    result.unit[0].count = 64;
    return result;
}

static struct hec_causes_job seen[HEC_CAUSES_ROWS_MAX];
static size_t seen_count;
static void take(void *context, const struct hec_causes_job *list, size_t count) {
    (void)context;
    memcpy(seen, list, count * sizeof *list);
    seen_count = count;
}
static const struct hec_causes_job *read_causes(void) {
    hec_causes_read(causes, take, NULL);
    return seen;
}

TEST(jobs_have_an_id_by_what_the_kernel_says) {
    static const struct {
        int pid;
        const char *id;
    } row[] = {{JOB, "slurm-77"}, {STEP_2, "slurm-77"}, {POD, "pod-ml-serve-0"}, {TRAIN, ""}, {99, ""}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char id[HEC_JOB_ID] = "";
        assert_int_equal(given.identify(given.context, row[i].pid, id), row[i].id[0] != '\0');
        assert_string_equal(id, row[i].id);
    }
}

TEST(a_claimed_number_is_another_job) {
    char id[HEC_JOB_ID] = "";
    PUT(CLAIMS, "user.slice/user-1234.slice/session-2.scope", "python3\0a.py\0", "SLURM_JOB_ID=78\0");
    assert_true(given.identify(given.context, CLAIMS, id));
    assert_string_equal(id, "slurm-78-user-ann");
}

/* Seconds and joules by state, units and devices are the sums of the windows; jobs and steps of one tenant are one row. */
TEST(windows_add_up_by_tenant) {
    hec_causes_poll(causes, now_ns);
    struct hec_job *one = begin_job(JOB, 2), *other = begin_job(STEP_2, 1), *pod = begin_job(POD, 1);
    now_ns += 10 * S;
    hec_causes_poll(causes, now_ns);
    assert_int_equal(read_causes() - seen + (long)seen_count, 0); /* nothing was seen of them */
    struct hec_window_result result = window(3, 1.5, 300);
    result.device_count = 2;
    result.device[1] = result.device[0];
    result.device[1].index = 64; /* no bit for that */
    given.observed(given.context, one, &result);
    result = window(0, 1, NAN);
    result.unit_count = 2;
    snprintf(result.unit[1].name, sizeof result.unit[1].name, "token");
    result.unit[1].count = 7;
    result.cause = HEC_CAUSE_HOST;
    result.recoverable = 0.5;
    given.observed(given.context, other, &result);
    result = window(1, 1, NAN);
    given.observed(given.context, pod, &result);
    assert_int_equal(read_causes() - seen + (long)seen_count, 2);
    assert_string_equal(seen[0].tenant->job, "77");
    assert_string_equal(seen[0].tenant->step, "");
    assert_true(seen[0].devices == 9 && seen[1].devices == 2);
    assert_near(seen[0].seconds[HEC_STATE_COMPUTE], 4, 1e-9);
    assert_near(seen[0].seconds[HEC_STATE_DATA], 8, 1e-9);
    assert_near(seen[0].joules[HEC_STATE_COMPUTE], 600, 1e-9);
    assert_near(seen[0].joules[HEC_STATE_DATA], 300, 1e-9);
    assert_near(seen[0].joules[HEC_STATE_HOST], 0, 0);
    assert_true(seen[0].priced && !seen[1].priced);
    assert_int_equal(seen[0].cause, HEC_CAUSE_HOST); /* of the newest */
    assert_near(seen[0].recoverable, 0.5, 0);
    assert_int_equal(seen[0].unit_count, 2);
    assert_string_equal(seen[0].units[0].name, "sample");
    assert_near(seen[0].units[0].count, 128, 0);
    assert_string_equal(seen[0].units[1].name, "token");
    assert_near(seen[0].units[1].count, 7, 0);
    assert_near(seen[0].device_s, 2 * 10 + 10, 1e-9); /* since they came */
    assert_near(seen[1].device_s, 10, 1e-9);
    assert_int_equal(node->diagnosed_count, 2); /* told to the node */
    assert_int_equal(node->diagnosed[0].cause, HEC_CAUSE_HOST);
    assert_true(node->diagnosed[0].devices == 9);
    now_ns += 5 * S;
    assert_true(hec_causes_poll(causes, now_ns) == now_ns + 7);
    read_causes();
    assert_near(seen[0].device_s, 45, 1e-9);
    assert_true(seen[0].running);
    other->ended_ns = now_ns;
    now_ns += 5 * S;
    hec_causes_poll(causes, now_ns); /* one that has ended holds no device */
    read_causes();
    assert_near(seen[0].device_s, 55, 1e-9);
    given.ended(given.context, other);
    assert_true(read_causes()->running);
    assert_int_equal(node->diagnosed_count, 2);
    given.ended(given.context, one);
    assert_false(read_causes()->running);
    assert_true(seen[1].running);
    assert_int_equal(node->diagnosed_count, 1); /* nothing is said of it any more */
    struct hec_job *never = begin_job(TRAIN, 1);
    given.ended(given.context, never); /* it ended before its first window */
    read_causes();
    assert_int_equal(seen_count, 2);
}

TEST(a_job_that_ended_before_its_window_held_devices_until_then) {
    hec_causes_poll(causes, now_ns);
    struct hec_job *job = begin_job(JOB, 3);
    job->ended_ns = now_ns + 4 * S;
    now_ns += 10 * S;
    hec_causes_poll(causes, now_ns);
    const struct hec_window_result result = window(0, 1, 1);
    given.observed(given.context, job, &result);
    assert_near(read_causes()->device_s, 12, 1e-9);
}

/* A new tenant's counters begin with 0 on the page, for a lag. */
TEST(a_row_is_fresh_for_a_lag) {
    node->lag_ns = 15 * S;
    struct hec_job *job = begin_job(JOB, 1);
    const struct hec_window_result result = window(0, 1, 1);
    given.observed(given.context, job, &result);
    now_ns += 15 * S - 1;
    assert_true(read_causes()->fresh);
    now_ns += 1;
    assert_false(read_causes()->fresh);
}

TEST(units_beyond_the_room_are_left_out) {
    struct hec_job *job = begin_job(JOB, 1);
    struct hec_window_result result = window(0, 1, 1);
    for (int i = 0; i < HEC_WINDOW_UNITS + 3; i++) {
        snprintf(result.unit[0].name, sizeof result.unit[0].name, "u%d", i);
        given.observed(given.context, job, &result);
    }
    assert_int_equal(read_causes()->unit_count, HEC_WINDOW_UNITS);
    snprintf(result.unit[0].name, sizeof result.unit[0].name, "u0");
    given.observed(given.context, job, &result);
    assert_near(read_causes()->units[0].count, 128, 0);
    assert_near(seen[0].units[1].count, 64, 0);
}

/* Where the table is full, the tenant whose last job ended first makes room; one that runs never does. */
TEST(who_ended_first_makes_room) {
    char cgroup[128];
    const struct hec_window_result result = window(0, 1, 1);
    for (int i = 0; i < HEC_CAUSES_ROWS_MAX + 2; i++) {
        snprintf(cgroup, sizeof cgroup, "system.slice/slurmstepd.scope/job_%d/step_0", 1000 + i);
        put_process(1000 + i, cgroup, "a", 2, "", 0);
        struct hec_job *job = begin_job(1000 + i, 1);
        if (i == HEC_CAUSES_ROWS_MAX) { /* full of jobs that run: no row */
            given.observed(given.context, job, &result);
            assert_int_equal(job->row, -1);
            for (int ends = 7; ends >= 5; ends--) { /* 7 first, 5 last */
                now_ns += S;
                given.ended(given.context, &jobs[ends]);
            }
        }
        given.observed(given.context, job, &result);
        assert_int_equal(job->row, i < HEC_CAUSES_ROWS_MAX ? i : 7 - (i - HEC_CAUSES_ROWS_MAX));
    }
    read_causes();
    assert_int_equal(seen_count, HEC_CAUSES_ROWS_MAX);
    assert_string_equal(seen[7].tenant->job, "1256");
    assert_string_equal(seen[5].tenant->job, "1005");
    assert_near(seen[7].seconds[HEC_STATE_COMPUTE], 1, 0); /* its own alone */
}

TEST(what_the_registry_says_is_passed_on) {
    struct hec_jobs_counts said;
    struct hec_causes *none;
    struct hec_why why;
    const struct hec_jobs_options refused = {.socket = "x"};
    assert_int_equal(hec_causes_open(&refused, node, &none, &why), HEC_ERR_LIMIT);
    assert_null(none);
    hec_causes_close(NULL);
    assert_int_equal(hec_causes_fd(causes), 17);
    hec_causes_counts(causes, &said);
    assert_int_equal(said.rings, 0);
    hec_causes_poll(causes, now_ns);
    hec_causes_counts(causes, &said);
    assert_int_equal(said.rings, 5);
    assert_true(given.window_s == 5);
}

TEST(pages_of_jobs_that_report) {
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    node->lag_ns = 15 * S;
    hec_causes_poll(causes, now_ns);
    struct hec_job *one = begin_job(JOB, 2), *pod = begin_job(POD, 1);
    now_ns += 10 * S;
    hec_causes_poll(causes, now_ns);
    struct hec_window_result result = window(0, 1, 30);
    given.observed(given.context, pod, &result);
    result = window(3, 2, 300);
    given.observed(given.context, one, &result);
    begin_job(TRAIN, 1);
    result = window(1, 2, NAN);
    result.cause = -1;
    now_ns += 20 * S;
    given.observed(given.context, &jobs[2], &result);
    given.ended(given.context, pod);
    assert_kept("jobs.prom", page(true, false));
    json_t *root = live_root(), *list = json_object_get(root, "jobs");
    char *json = json_dumps(list, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    assert_kept("jobs.json", json);
    free(json);
    json_decref(root);
    hec_buf_free(&text);
}
