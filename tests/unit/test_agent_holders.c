/* Whom devices were given to, by the kubelet and by the map of jobs: whose joules and labels are whose, and what is said where nobody
 * knows. The kubelet, and who processes belong to, are made up. */
#include "agent/live.h"
#include "agent/node.h"
#include "agent/page.h"
#include "base/log.h"
#include "tests/unit/agent_clock.h"
#include "tests/unit/folder.h"

static char logged[4096];
void hec_log_set_level(enum hec_log_level level) {
    (void)level;
}
bool hec_log_has_error(void) {
    return false;
}
void hec_log(enum hec_log_level level, const char *format, ...) {
    va_list list;
    size_t length = strlen(logged);
    va_start(list, format);
    length += (size_t)snprintf(logged + length, sizeof logged - length, "%d ", level);
    vsnprintf(logged + length, sizeof logged - length, format, list);
    va_end(list);
    strncat(logged, "\n", sizeof logged - strlen(logged) - 1);
}

/* ---- the kubelet ---- */

#define POD(name_)                                                                                                     \
    { .pod_namespace = "ml", .pod = name_, .container = "main" }
static struct hec_pod_device rows[] = {
    {{"GPU-0", -1, -1}, POD("a")},   {{"GPU-1", -1, -1}, POD("b")},   {{"GPU-1", -1, -1}, POD("c")},
    {{"MIG-1-0", -1, -1}, POD("d")}, {{"MIG-1-1", -1, -1}, POD("d")}, {{"MIG-2-0", -1, -1}, POD("e")},
    {{"MIG-2-1", -1, -1}, POD("f")},
};
static const struct hec_pod_devices held = {.rows = rows, .count = sizeof rows / sizeof rows[0]};
static const struct hec_pod_devices nothing;
static bool gives;
static int polled;
static char one_kubelet, one_identity;

int hec_kubelet_poll(struct hec_kubelet *kubelet, int64_t at_ns, struct hec_why *why) {
    assert_ptr_equal(kubelet, &one_kubelet);
    assert_int_equal(at_ns, now_ns);
    return polled < 0 ? hec_fail(why, polled, "no answer") : polled;
}
const struct hec_pod_devices *hec_kubelet_devices(const struct hec_kubelet *kubelet) {
    assert_ptr_equal(kubelet, &one_kubelet);
    return gives ? &held : &nothing;
}
void hec_kubelet_free(struct hec_kubelet *kubelet) {
    (void)kubelet;
}

/* ---- who a process belongs to ---- */

static struct hec_tenant of_process; /* any */
static char own[256];                /* whose it may be, by the node */
static bool trusted, closed;
void hec_identity_of(struct hec_identity *identity, int32_t pid, const struct hec_tenant *const *holders, size_t count,
                     int64_t at_ns, struct hec_tenant *out) {
    assert_ptr_equal(identity, &one_identity);
    assert_int_equal(at_ns, now_ns);
    snprintf(own + strlen(own), sizeof own - strlen(own), "%d:", pid);
    for (size_t i = 0; i < count; i++)
        strcat(own, holders[i]->pod);
    strcat(own, " ");
    *out = of_process;
}
bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b) {
    return strcmp(a->pod, b->pod) == 0 && strcmp(a->job, b->job) == 0 && strcmp(a->user, b->user) == 0 &&
           strcmp(a->command, b->command) == 0;
}
uint64_t hec_tenant_id(const struct hec_tenant *t) {
    return (uint64_t)t->pod[0] << 16 | (uint64_t)t->job[0] << 8 | (uint64_t)t->user[0];
}
void hec_identity_close(struct hec_identity *identity) {
    closed |= identity != NULL;
}
void hec_identity_map(struct hec_identity *identity, const struct hec_job_map *jobs) {
    (void)identity, (void)jobs;
}
void hec_identity_trust(struct hec_identity *identity) {
    assert_ptr_equal(identity, &one_identity);
    trusted = true;
}

static struct hec_node *node;

static int set_up(void **state) {
    now_ns = 1000 * S;
    hec_clock_set_source(&fake_clock);
    logged[0] = own[0] = '\0';
    gives = true;
    polled = 0;
    trusted = closed = false;
    of_process = (struct hec_tenant){.user = "ann", .command = "train"};
    node = hec_node_new(S, (struct hec_identity *)&one_identity);
    node->kubelet = (struct hec_kubelet *)&one_kubelet;
    return node ? folder_make(state) : -1;
}
static int tear_down(void **state) {
    hec_node_free(node);
    assert_true(closed);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static void see(int index) {
    struct hec_device device = {.index = index, .power_limit_mw = 700000, .power_limit_default_mw = 650000};
    snprintf(device.uuid, sizeof device.uuid, "GPU-%d", index);
    snprintf(device.name, sizeof device.name, "NVIDIA H200 X");
    node->sink.device(node, &device);
}

static void instance(int id, int compute) {
    struct hec_gpu_instance record = {.device = 2, .id = id, .compute_id = compute, .slices = 2, .slices_of = 7};
    record.t_ns = now_ns;
    record.from_ns = now_ns - S;
    record.until_ns = now_ns;
    snprintf(record.uuid, sizeof record.uuid, "MIG-%d-%d", id, compute);
    snprintf(record.profile, sizeof record.profile, "2g");
    node->sink.gpu_instance(node, &record);
}

static int64_t counter_mj[HEC_DEVICE_MAX];

/* A round of readings of one device: 100 W, nothing runs; pid 0: nobody has a context. */
static void reads(int index, int pid, int in_instance) {
    counter_mj[index] += 100000;
    node->sink.sample(node, HEC_GPU_ENERGY, index, now_ns, 1000000 + counter_mj[index]);
    node->sink.sample(node, HEC_GPU_UTIL, index, now_ns, 0);
    if (index == 2)
        for (int i = 0; i < 4; i++)
            instance(1 + i / 2, i % 2);
    if (pid)
        node->sink.gpu_process(node, &(struct hec_gpu_process){
                                         .device = index, .pid = pid, .gpu_instance = in_instance, .last_ns = now_ns});
    node->sink.sample(node, HEC_GPU_CONTEXTS, index, now_ns, pid != 0);
}

static void second(void (*with)(void)) {
    now_ns += S;
    with();
    hec_node_tick(node, now_ns);
}

/* By tenant: idle joules on the device; -1: no row. */
static double idle_j(int index, const char *pod, const char *job) {
    const struct hec_shares *shares = node->devices[index]->shares;
    for (size_t i = HEC_SHARES_NAMED; i < hec_shares_count(shares); i++) {
        const struct hec_shares_row *row = hec_shares_row(shares, i);
        if (strcmp(row->tenant.pod, pod) == 0 && strcmp(row->tenant.job, job) == 0)
            return (double)row->uj[HEC_SHARES_IDLE] / 1e6;
    }
    return -1;
}

/* ---- the kubelet's ---- */

static void nobody_works(void) {
    for (int i = 0; i < 4; i++)
        reads(i, 0, -1);
}
static void one_works_on_each(void) {
    for (int i = 0; i < 4; i++)
        reads(i, 70 + i, i == 2 ? 1 : -1);
}
static void one_works_in_the_second(void) {
    reads(2, 80, 2);
}

TEST(what_the_kubelet_gave_is_allocated_and_theirs) {
    for (int i = 0; i < 4; i++)
        see(i);
    assert_false(trusted);
    for (int s = 0; s < 3; s++)
        second(nobody_works); /* in the first one it is not known yet to whom */
    for (int i = 0; i < 4; i++)
        assert_int_equal(node->devices[i]->allocated, i < 3);
    assert_string_equal(hec_node_instance_pod(node, node->devices[0], HEC_SHARES_WHOLE)->pod, "a");
    assert_null(hec_node_instance_pod(node, node->devices[1], HEC_SHARES_WHOLE)); /* two */
    assert_string_equal(hec_node_instance_pod(node, node->devices[2], 1)->pod, "d");
    assert_null(hec_node_instance_pod(node, node->devices[2], 2));
    assert_null(hec_node_instance_pod(node, node->devices[2], 3));
    assert_null(hec_node_instance_pod(node, node->devices[3], HEC_SHARES_WHOLE));
    /* two seconds of 100 W, in equal parts */
    static const struct {
        int device;
        const char *pod;
        double joules;
    } row[] = {{0, "a", 200},       {1, "b", 100},       {1, "c", 100},
               {2, "d", 200.0 / 3}, {2, "e", 200.0 / 3}, {2, "f", 200.0 / 3}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        assert_near(idle_j(row[i].device, row[i].pod, ""), row[i].joules, 1e-3);
    assert_int_equal(hec_shares_count(node->devices[3]->shares), HEC_SHARES_NAMED);
    assert_int_equal(node->devices[3]->total[HEC_NODE_IDLE_FREE_MJ], 200000);
    for (int i = 0; i < 3; i++)
        assert_true(node->devices[i]->total[HEC_NODE_IDLE_ALLOCATED_MJ] >= 100000);
    node->kubelet = NULL; /* where it is not asked */
    assert_null(hec_node_instance_pod(node, node->devices[0], HEC_SHARES_WHOLE));
    hec_node_tick(node, now_ns);
    assert_false(node->devices[0]->allocated);
}

/* A process may be of those alone who hold what it uses. */
TEST(whose_a_process_may_be) {
    for (int i = 0; i < 4; i++)
        see(i);
    second(one_works_on_each);
    assert_string_equal(own, ""); /* the first reading of a counter divides nothing */
    second(one_works_on_each);
    assert_string_equal(own, "70:a 71:bc 72:d 73: ");
    own[0] = '\0';
    for (int s = 0; s < 3; s++)
        second(one_works_in_the_second);
    assert_non_null(strstr(own, "80:ef "));
    assert_null(strstr(own, "80:d"));
}

TEST(a_simulated_device_is_trusted) {
    node->sink.device(node, &(struct hec_device){.index = 0, .uuid = "GPU-0", .simulated = true});
    assert_true(trusted);
}

/* ---- the map's ---- */

static char map[64];
static void map_of_jobs(const char *device, const char *jobs) {
    folder_text(device, "%s", jobs);
    assert_int_equal(chmod(in_folder(device), 0644), 0);
    snprintf(map, sizeof map, "%s", folder);
    node->jobs.folder = map;
}
static void third_works(void) {
    reads(3, 90, -1);
}
static void third_idles(void) {
    reads(3, 0, -1);
}
static void zeroth_idles(void) {
    reads(0, 0, -1);
}

/* A job that has a process there needs no other row; one that is only claimed is another. */
TEST(a_job_that_is_there_has_one_row) {
    static const struct {
        const char *job;
        bool claimed;
        double listed; /* joules of the map's row; -1: there is none */
    } row[] = {{"41", false, -1}, {"41", true, 50}, {"42", false, 50}, {"", false, 50}};
    map_of_jobs("3", "41 bob\n");
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        see(3);
        of_process = (struct hec_tenant){.user = "ann", .claimed = row[i].claimed};
        strcpy(of_process.job, row[i].job);
        second(third_works);
        second(third_works);
        const struct hec_shares *shares = node->devices[3]->shares;
        assert_int_equal(hec_shares_count(shares), HEC_SHARES_NAMED + (row[i].listed < 0 ? 1 : 2));
        const struct hec_shares_row *first = hec_shares_row(shares, HEC_SHARES_NAMED);
        assert_string_equal(first->tenant.user, "ann");
        assert_near((double)first->uj[HEC_SHARES_IDLE] / 1e6, row[i].listed < 0 ? 100 : 50, 1e-3);
        if (row[i].listed >= 0)
            assert_string_equal(hec_shares_row(shares, HEC_SHARES_NAMED + 1)->tenant.user, "bob");
        struct hec_node *fresh = hec_node_new(S, (struct hec_identity *)&one_identity);
        fresh->kubelet = node->kubelet;
        fresh->jobs.folder = map;
        hec_node_free(node);
        node = fresh;
        memset(counter_mj, 0, sizeof counter_mj);
    }
}

TEST(a_job_in_a_container_is_the_containers) {
    map_of_jobs("0", "41 bob\n");
    see(0);
    for (int s = 0; s < 3; s++)
        second(zeroth_idles);
    assert_near(idle_j(0, "a", ""), 200, 1e-3);
    assert_near(idle_j(0, "", "41"), -1, 0);
    gives = false;
    second(zeroth_idles);
    assert_near(idle_j(0, "", "41"), 100, 1e-3);
    assert_true(node->devices[0]->allocated);
}

/* More than HEC_NODE_PODS_MAX jobs hold it: none is left out of those that fit. */
TEST(jobs_beyond_the_room) {
    char text[4096] = "";
    for (int i = 0; i < HEC_NODE_PODS_MAX + 5; i++)
        sprintf(text + strlen(text), "%d bob\n", 100 + i);
    map_of_jobs("3", text);
    see(3);
    second(third_idles);
    second(third_idles);
    assert_int_equal(hec_shares_count(node->devices[3]->shares), HEC_SHARES_NAMED + HEC_NODE_PODS_MAX);
    const struct hec_tenant *jobs[HEC_NODE_PODS_MAX];
    assert_int_equal(hec_node_jobs(node, node->devices[3], -1, jobs), HEC_NODE_PODS_MAX);
    assert_string_equal(jobs[HEC_NODE_PODS_MAX - 1]->job, "131");
    text[0] = '\0';
    for (int i = 0; i < HEC_JOB_MAP_MAX + 3; i++)
        sprintf(text + strlen(text), "%d\n", 100 + i);
    map_of_jobs("3", text);
    now_ns += S;
    hec_node_tick(node, now_ns);
    assert_int_equal(node->jobs.count, HEC_JOB_MAP_MAX);
    assert_int_equal(node->jobs.left_out, 3);
}

/* ---- what is said where nobody knows ---- */

static void tick_after(int result) {
    polled = result;
    now_ns += 2 * S;
    hec_node_tick(node, now_ns);
}

TEST(a_kubelet_that_does_not_answer_is_said_once) {
    tick_after(HEC_ERR_NOTFOUND);
    tick_after(1);
    assert_string_equal(logged, "");
    tick_after(HEC_ERR_BUSY);
    tick_after(HEC_ERR_IO);
    tick_after(0); /* nothing new */
    tick_after(HEC_ERR_BUSY);
    assert_string_equal(logged, "1 which pod holds which device is not known: no answer\n");
    tick_after(1);
    tick_after(1);
    assert_string_equal(logged,
                        "1 which pod holds which device is not known: no answer\n2 the kubelet answers again\n");
    tick_after(HEC_ERR_NOTFOUND); /* it is being restarted */
    tick_after(HEC_ERR_BUSY);
    assert_non_null(strstr(logged, "again\n1 which pod"));
    tick_after(HEC_ERR_NOTFOUND);
    tick_after(1);
    assert_non_null(strstr(logged, "answer\n2 the kubelet answers again\n1"));
    assert_non_null(strstr(strstr(logged, "again\n1 which pod"), "answer\n2 the kubelet answers again\n"));
}

TEST(a_map_of_jobs_that_is_not_there) {
    node->jobs.folder = "/nowhere/jobs";
    tick_after(0);
    assert_string_equal(logged, "");
    node->jobs.expected = true;
    tick_after(0);
    tick_after(0);
    assert_string_equal(logged,
                        "1 which job holds which device is not known: /nowhere/jobs: No such file or directory\n");
    node->jobs.folder = "/";
    tick_after(0);
    node->jobs.folder = "/nowhere/jobs";
    tick_after(0);
    assert_non_null(strstr(logged, "directory\n1 which job"));
}

TEST(why_there_is_no_driver) {
    node->sink.event(node, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, now_ns, "procfs: not readable");
    assert_string_equal(node->trouble, "");
    node->sink.event(node, HEC_EVENT_SOURCE_UNAVAILABLE, 0, now_ns, "nvml: of a device");
    assert_string_equal(node->trouble, "");
    node->sink.event(node, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, now_ns, "nvml: no driver is loaded");
    assert_non_null(strstr(node->trouble, "no driver is loaded"));
    assert_true(hec_node_troubled(node));
    see(0);
    assert_string_equal(node->trouble, "");
}

/* That joules are divided shows when those of each device that answers were, among processes that were listed. */
TEST(divided) {
    assert_true(hec_node_divided(node));
    see(0);
    assert_true(hec_node_divided(node)); /* it does not answer yet */
    second(zeroth_idles);
    assert_false(hec_node_divided(node));
    second(zeroth_idles);
    assert_true(hec_node_divided(node));
    see(3);
    second(third_idles);
    assert_false(hec_node_divided(node));
    node->sink.event(node, HEC_EVENT_DEVICE_LOST, 3, now_ns, "gone");
    assert_true(hec_node_divided(node));
}

/* A recorder's counters begin anew; what lies between is not counted. */
TEST(counters_of_the_host_begin_anew) {
    static const struct {
        bool restart;
        int64_t value_uj, total_uj;
    } row[] = {{false, 500, 0},     {false, 1500, 1000}, {true, 9000, 1000}, {false, 9500, 1500},
               {false, 9500, 1500}, {false, 100, 1500},  {false, 300, 1700}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        if (row[i].restart)
            hec_node_restart(node);
        node->sink.sample(node, HEC_RAPL_DRAM_ENERGY, 1, now_ns, row[i].value_uj);
        node->sink.sample(node, HEC_RAPL_PACKAGE_ENERGY, 1, now_ns, 7);
        assert_int_equal(node->domain_count, 2);
        assert_int_equal(node->domains[0].total_uj, row[i].total_uj);
        assert_int_equal(node->domains[0].metric, HEC_RAPL_DRAM_ENERGY);
        assert_int_equal(node->domains[0].index, 1);
        assert_int_equal(node->domains[1].total_uj, 0);
    }
}

/* ---- pages ---- */

static struct hec_buf text;

static const char *page(const char *fields, bool dashes, enum hec_exposition_format format) {
    static struct hec_dcgm_list list;
    struct hec_why why = {""};
    const struct hec_page_options options = {.dcgm = &list,
                                             .devices = {.instances = true, .gpus = ~UINT64_C(0)},
                                             .hostname_label = "Hostname",
                                             .hostname = "n1",
                                             .dashes = dashes};
    const struct hec_page_agent agent = {.resident_bytes = -1, .state_saved = -1};
    if (hec_dcgm_list_parse(&list, fields, strlen(fields), false, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_int_equal(hec_page_make(node, &options, &agent, format, now_ns, &text), HEC_OK);
    return hec_buf_text(&text);
}

/* The first line that begins so. */
static const char *line_of(const char *all, const char *begins) {
    static char line[1024];
    for (const char *at = all; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, begins, strlen(begins)) == 0) {
            snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
            return line;
        }
    return "";
}

TEST(series_have_the_names_of_pods) {
    static const struct {
        const char *begins, *pod; /* NULL: of none */
    } row[] = {{"DCGM_FI_DEV_MEM_COPY_UTIL{gpu=\"0\"", "a"},
               {"DCGM_FI_DEV_MEM_COPY_UTIL{gpu=\"1\"", NULL},
               {"DCGM_FI_DEV_MEM_COPY_UTIL{gpu=\"2\"", NULL},
               {"DCGM_FI_DEV_MEM_COPY_UTIL{gpu=\"3\"", NULL}};
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    for (int i = 0; i < 4; i++)
        see(i);
    second(nobody_works);
    second(nobody_works);
    for (int i = 0; i < 4; i++)
        node->sink.sample(node, HEC_GPU_MEM_UTIL, i, now_ns, 300 + 100 * i);
    for (int dashes = 0; dashes < 2; dashes++) {
        const char *all = page("DCGM_FI_DEV_MEM_COPY_UTIL, gauge, m\nDCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, e\n", dashes,
                               HEC_EXPOSITION_PROMETHEUS);
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
            const char *line = line_of(all, row[i].begins), *pod = strstr(line, "pod=\"");
            if (!line[0] || (pod != NULL) != (row[i].pod != NULL) || (pod && pod[5] != row[i].pod[0]))
                fail_msg("%s: %s in %s", row[i].begins, line, all);
            assert_non_null(strstr(line, dashes ? "modelName=\"NVIDIA-H200-X\"" : "modelName=\"NVIDIA H200 X\""));
            if (pod)
                assert_non_null(strstr(line, ",namespace=\"ml\",pod=\"a\",container=\"main\"} 30"));
        }
        int instances = 0;
        for (const char *at = all; (at = strstr(at, "\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{")); at++, instances++) {
            const char *end = strchr(at + 1, '\n'), *id = strstr(at, "GPU_I_ID=\""), *pod = strstr(at, "pod=\"d\"");
            assert_true(id && id < end && (id[10] == '1') == (pod && pod < end));
        }
        assert_int_equal(instances, 2); /* each instance once, however many devices share it */
    }
    assert_non_null(strstr(page("DCGM_FI_DEV_MEM_COPY_UTIL, gauge, m\n", true, HEC_EXPOSITION_PROMETHEUS),
                           "model=\"NVIDIA H200 X\"")); /* of HEC's own series the name is as it is */
    hec_buf_free(&text);
}

TEST(fields_that_are_made_of_others) {
    static const char fields[] = "DCGM_FI_DEV_FB_USED_PERCENT, gauge, u\nDCGM_FI_DEV_COUNT, gauge, c\n"
                                 "DCGM_FI_DEV_POWER_VIOLATION, counter, p\nDCGM_FI_DEV_THERMAL_VIOLATION, counter, t\n"
                                 "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF, gauge, l\n";
    static const struct {
        const char *begins, *ends; /* "": there is no such line */
    } row[] = {{"DCGM_FI_DEV_FB_USED_PERCENT{gpu=\"0\"", "} 0.25"},
               {"DCGM_FI_DEV_FB_USED_PERCENT{gpu=\"1\"", ""},
               {"DCGM_FI_DEV_FB_USED_PERCENT{gpu=\"3\"", ""},
               {"DCGM_FI_DEV_COUNT{gpu=\"1\"", "} 3"},
               {"DCGM_FI_DEV_POWER_VIOLATION{gpu=\"0\"", "} 3000000000"},
               {"DCGM_FI_DEV_THERMAL_VIOLATION{gpu=\"0\"", "} 0"},
               {"DCGM_FI_DEV_THERMAL_VIOLATION{gpu=\"1\"", ""},
               {"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF{gpu=\"0\"", "} 650"},
               {"DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF{gpu=\"3\"", ""}};
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            see(i);
    see(HEC_VENDOR_DEVICES_MAX); /* of another vendor */
    node->devices[3]->info.power_limit_default_mw = 0;
    second(zeroth_idles);
    node->sink.sample(node, HEC_GPU_THROTTLE, 0, now_ns, 0x4);
    for (int s = 0; s < 3; s++)
        second(zeroth_idles);
    static const int64_t kib[4][2] = {{1000, 3000}, {1000, -1}, {0, 0}, {0, 0}};
    for (int i = 0; i < 4; i++) {
        if (i != 2)
            node->sink.sample(node, HEC_GPU_MEM_USED, i, now_ns, kib[i][0]);
        if (i != 2 && kib[i][1] >= 0)
            node->sink.sample(node, HEC_GPU_MEM_FREE, i, now_ns, kib[i][1]);
    }
    const char *all = page(fields, false, HEC_EXPOSITION_PROMETHEUS);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const char *line = line_of(all, row[i].begins);
        size_t length = strlen(line), end = strlen(row[i].ends);
        if (!end ? line[0] != '\0' : length < end || strcmp(line + length - end, row[i].ends) != 0)
            fail_msg("%s: \"%s\" in %s", row[i].begins, line, all);
    }
    assert_non_null(strstr(all, "DCGM_FI_DEV_COUNT{gpu=\"0\",UUID=\"GPU-32\""));
    hec_buf_free(&text);
}

TEST(a_page_of_otlp_says_where_it_is_from) {
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    see(0);
    second(zeroth_idles);
    const char *all = page("DCGM_FI_DEV_COUNT, gauge, c\n", false, HEC_EXPOSITION_OTLP);
    assert_non_null(strstr(all, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"hec-agent\"}}"));
    assert_non_null(strstr(all, "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"n1\"}}"));
    assert_non_null(strstr(all, "\"timeUnixNano\":\"1700001001000000000\""));
    hec_buf_free(&text);
}

/* What a job that was analysed says goes before telemetry. */
TEST(the_verdict_of_a_job) {
    static const struct {
        int cause;
        const char *verdict;
    } row[] = {{HEC_CAUSE_NONE, "healthy"}, {HEC_CAUSE_DATA, NULL}, {-1, NULL}};
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    see(0);
    for (int s = 0; s < 5; s++)
        second(zeroth_idles);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char expected[128];
        const char *verdict = row[i].verdict      ? row[i].verdict
                              : row[i].cause >= 0 ? hec_cause_name((enum hec_cause)row[i].cause)
                                                  : "idle_allocated";
        hec_node_diagnose(node, &of_process, 1, row[i].cause);
        snprintf(expected, sizeof expected, "verdict=\"%s\",by=\"%s\"} 1", verdict,
                 row[i].cause >= 0 ? "job" : "telemetry");
        const char *line = line_of(page("DCGM_FI_DEV_COUNT, gauge, c\n", false, HEC_EXPOSITION_PROMETHEUS),
                                   "hec_device_verdict{gpu=\"0\"");
        if (!strstr(line, expected))
            fail_msg("%s not in %s", expected, line);
    }
    hec_buf_free(&text);
}
