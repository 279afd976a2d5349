/* What is known of tenants whose jobs report, on a registry of jobs that is made up. */
#include "agent/causes.h"
#include "base/clock.h"
#include "unit.h"

#define S HEC_NS_PER_S

static int64_t now_ns;
static int64_t fake_now(void) {
    return now_ns;
}
static const struct hec_clock_source fake_clock = {fake_now, fake_now};

/* ---- what stands for the registry, for who a process belongs to, and for the node's verdicts ---- */

static struct hec_jobs_options given;
static struct hec_jobs_counts counts;
static struct hec_job job[HEC_CAUSES_ROWS_MAX + 8];
static size_t job_count;
static int open_err, closed;
static char one_registry, one_identity;

int hec_jobs_open(const struct hec_jobs_options *options, struct hec_jobs **out, struct hec_why *why) {
    given = *options;
    *out = (struct hec_jobs *)&one_registry;
    return open_err ? hec_fail(why, open_err, "no socket") : HEC_OK;
}
int hec_jobs_fd(const struct hec_jobs *jobs) {
    return jobs == (struct hec_jobs *)&one_registry ? 42 : -1;
}
int64_t hec_jobs_poll(struct hec_jobs *jobs, int64_t at_ns) {
    assert_ptr_equal(jobs, &one_registry);
    counts.rings++;
    return at_ns + 7;
}
size_t hec_jobs_count(const struct hec_jobs *jobs) {
    (void)jobs;
    return job_count;
}
const struct hec_job *hec_jobs_at(const struct hec_jobs *jobs, size_t at) {
    (void)jobs;
    return &job[at];
}
void hec_jobs_counts(const struct hec_jobs *jobs, struct hec_jobs_counts *out) {
    (void)jobs;
    *out = counts;
}
void hec_jobs_close(struct hec_jobs *jobs) {
    assert_ptr_equal(jobs, &one_registry);
    closed++;
}

/* Process 100 + n is of Slurm's job n, in its step n; 200 + n of a pod; 300 + n claims job n; 400 is a user's. */
void hec_identity_of(struct hec_identity *identity, int32_t pid, const struct hec_tenant *const *holders, size_t count,
                     int64_t at_ns, struct hec_tenant *out) {
    assert_ptr_equal(identity, &one_identity);
    assert_null(holders);
    assert_int_equal(count, 0);
    assert_int_equal(at_ns, now_ns);
    *out = (struct hec_tenant){.user = "ann", .command = "train"};
    if (pid < 200 || (pid >= 300 && pid < 400) || pid > 1000)
        snprintf(out->job, sizeof out->job, "%d", pid % 1000);
    else if (pid < 300)
        snprintf(out->pod, sizeof out->pod, "p%d", pid), strcpy(out->pod_namespace, "ns");
    out->claimed = pid >= 300 && pid < 400;
    snprintf(out->step, sizeof out->step, "%d", pid % 10);
}
bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b) {
    return memcmp(a, b, sizeof *a) == 0;
}
uint64_t hec_tenant_id(const struct hec_tenant *tenant) {
    return tenant->job[0];
}

static struct hec_node node;
static struct {
    int times, cause;
    uint64_t devices;
    char job[64];
} diagnosed;
void hec_node_diagnose(struct hec_node *of, const struct hec_tenant *tenant, uint64_t devices, int cause) {
    assert_ptr_equal(of, &node);
    diagnosed.times++;
    diagnosed.cause = cause;
    diagnosed.devices = devices;
    snprintf(diagnosed.job, sizeof diagnosed.job, "%s", tenant->job);
}

static struct hec_causes *causes;

static int set_up(void **state) {
    (void)state;
    now_ns = 1000 * S;
    hec_clock_set_source(&fake_clock);
    pthread_mutex_init(&node.lock, NULL);
    node.identity = (struct hec_identity *)&one_identity;
    node.lag_ns = 20 * S;
    job_count = 0;
    closed = open_err = diagnosed.times = 0;
    memset(&counts, 0, sizeof counts);
    struct hec_why why = {""};
    return hec_causes_open(&(struct hec_jobs_options){.socket = "/s", .window_s = 3}, &node, &causes, &why);
}
static int tear_down(void **state) {
    (void)state;
    hec_causes_close(causes);
    assert_int_equal(closed, 1);
    assert_int_equal(pthread_mutex_trylock(&node.lock), 0);
    pthread_mutex_destroy(&node.lock);
    hec_clock_set_source(NULL);
    return 0;
}
EACH_TEST(set_up, tear_down)

/* What is read. */
static struct hec_causes_job seen[HEC_CAUSES_ROWS_MAX];
static size_t seen_count;
static double seconds[HEC_CAUSES_ROWS_MAX][HEC_STATE_COUNT], joules[HEC_CAUSES_ROWS_MAX][HEC_STATE_COUNT];
static struct hec_causes_unit units[HEC_CAUSES_ROWS_MAX][HEC_WINDOW_UNITS];
static char name[HEC_CAUSES_ROWS_MAX][64];
static void keep(void *context, const struct hec_causes_job *jobs, size_t count) {
    assert_ptr_equal(context, &seen_count);
    seen_count = count;
    for (size_t i = 0; i < count; i++) {
        seen[i] = jobs[i];
        memcpy(seconds[i], jobs[i].seconds, sizeof seconds[i]);
        memcpy(joules[i], jobs[i].joules, sizeof joules[i]);
        memcpy(units[i], jobs[i].units, sizeof units[i]);
        strcpy(name[i], jobs[i].tenant->job);
        assert_string_equal(jobs[i].tenant->step, ""); /* the next step is the same row */
    }
}
static void look(void) {
    hec_causes_read(causes, keep, &seen_count);
}

static struct hec_job *new_job(pid_t pid, int devices, double since_s) {
    job[job_count] =
        (struct hec_job){.pid = pid, .row = -1, .device_count = devices, .since_ns = (int64_t)(since_s * S)};
    return &job[job_count++];
}

/* Of two devices, with a second in state 0 and two in state 1 each, 300 W. */
static struct hec_window_result window(int first, int second) {
    struct hec_window_result result = {.device_count = 2, .cause = HEC_CAUSE_COPY, .recoverable = 0.25};
    for (int i = 0; i < 2; i++) {
        result.device[i].index = i ? second : first;
        result.device[i].seconds[0] = 1;
        result.device[i].seconds[1] = 2;
        result.device[i].joules[0] = 300;
        result.device[i].joules[1] = 600;
    }
    return result;
}

TEST(what_it_is_opened_with) {
    assert_string_equal(given.socket, "/s");
    assert_near(given.window_s, 3, 0);
    assert_ptr_equal(given.context, causes);
    assert_int_equal(hec_causes_fd(causes), 42);
    struct hec_causes *none = (struct hec_causes *)&one_registry;
    struct hec_why why = {""};
    open_err = HEC_ERR_LIMIT;
    assert_int_equal(hec_causes_open(&given, &node, &none, &why), HEC_ERR_LIMIT);
    assert_null(none);
    assert_string_equal(why.text, "no socket");
    hec_causes_close(NULL);
    look();
    assert_int_equal(seen_count, 0);
}

TEST(whose_a_job_is) {
    static const struct {
        pid_t pid;
        const char *id; /* NULL: nothing that the kernel says */
    } row[] = {{107, "slurm-107"}, {203, "pod-ns-p203"}, {309, "slurm-309-user-ann"}, {400, NULL}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char id[HEC_JOB_ID] = "as it was";
        assert_int_equal(given.identify(given.context, row[i].pid, id), row[i].id != NULL);
        assert_string_equal(id, row[i].id ? row[i].id : "as it was");
    }
    node.identity = NULL; /* where /proc cannot be read */
    char id[HEC_JOB_ID] = "";
    assert_false(given.identify(given.context, 107, id));
}

TEST(windows_of_a_job_add_up) {
    struct hec_job *one = new_job(107, 2, 990);
    struct hec_window_result result = window(3, 5);
    hec_causes_poll(causes, 996 * S);
    result.unit_count = 2;
    strcpy(result.unit[0].name, "samples");
    result.unit[0].count = 10;
    strcpy(result.unit[1].name, "tokens");
    result.unit[1].count = 500;
    given.observed(given.context, one, &result);
    assert_int_equal(one->row, 0);
    assert_int_equal(diagnosed.times, 1);
    assert_int_equal(diagnosed.cause, HEC_CAUSE_COPY);
    assert_int_equal(diagnosed.devices, 1 << 3 | 1 << 5);
    assert_string_equal(diagnosed.job, "107");
    look();
    assert_int_equal(seen_count, 1);
    assert_string_equal(name[0], "107");
    assert_true(seen[0].running && seen[0].fresh && seen[0].priced);
    assert_int_equal(seen[0].devices, 1 << 3 | 1 << 5);
    assert_near(seen[0].device_s, 12, 1e-9); /* two of them, from its first ring to the last poll */
    assert_near(seconds[0][0], 2, 1e-9);
    assert_near(seconds[0][1], 4, 1e-9);
    assert_near(joules[0][0], 600, 1e-9);
    assert_near(joules[0][1], 1200, 1e-9);
    assert_int_equal(seen[0].cause, HEC_CAUSE_COPY);
    assert_near(seen[0].recoverable, 0.25, 0);
    assert_int_equal(seen[0].unit_count, 2);

    /* another: of no price, of one device beyond what is known, with another cause and more units */
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        result.device[0].joules[state] = result.device[1].joules[state] = NAN;
    result.device[0].index = 64;
    result.device[1].index = 63;
    result.cause = -1;
    result.recoverable = NAN;
    result.unit_count = 4;
    for (int i = 0; i < 4; i++) {
        sprintf(result.unit[i].name, i ? "unit%d" : "tokens", i);
        result.unit[i].count = i + 1;
    }
    now_ns += 20 * S - 1;
    given.observed(given.context, one, &result);
    look();
    assert_true(seen[0].fresh && seen[0].priced);
    assert_int_equal(seen[0].devices, UINT64_C(1) << 63 | 1 << 3 | 1 << 5);
    assert_int_equal(diagnosed.devices, seen[0].devices);
    assert_int_equal(diagnosed.cause, -1);
    assert_near(seconds[0][1], 8, 1e-9);
    assert_near(joules[0][1], 1200, 1e-9);
    assert_int_equal(seen[0].cause, -1);
    assert_true(isnan(seen[0].recoverable));
    assert_int_equal(seen[0].unit_count, 4); /* one of five finds no place */
    assert_string_equal(units[0][0].name, "samples");
    assert_near(units[0][0].count, 10, 0);
    assert_string_equal(units[0][1].name, "tokens");
    assert_near(units[0][1].count, 501, 0);
    assert_string_equal(units[0][3].name, "unit2");
    assert_near(units[0][3].count, 3, 0);
    now_ns += 1; /* a lag after its first window it is not new any more */
    look();
    assert_false(seen[0].fresh);
}

TEST(a_job_of_no_price) {
    struct hec_window_result result = window(-1, 0);
    for (int state = 0; state < HEC_STATE_COUNT; state++)
        result.device[0].joules[state] = result.device[1].joules[state] = NAN;
    given.observed(given.context, new_job(101, 1, 999), &result);
    look();
    assert_false(seen[0].priced);
    assert_int_equal(seen[0].devices, 1);
    assert_near(joules[0][0], 0, 0);
    assert_near(seconds[0][0], 2, 0);
}

/* Time of devices is counted between polls, until the job ends; of the time before its first window at once. */
TEST(device_time) {
    struct hec_window_result result = window(0, 1);
    assert_int_equal(hec_causes_poll(causes, 1000 * S), 1000 * S + 7);
    struct hec_job *one = new_job(107, 2, 1000), *two = new_job(203, 1, 1001), *ended = new_job(108, 3, 1001);
    now_ns = 1004 * S;
    hec_causes_poll(causes, now_ns);
    given.observed(given.context, one, &result);
    ended->ended_ns = 1003 * S + S / 2; /* the window of one that has ended may take longer */
    given.observed(given.context, ended, &result);
    now_ns = 1010 * S;
    hec_causes_poll(causes, now_ns);
    given.observed(given.context, two, &result);
    look();
    assert_near(seen[0].device_s, 20, 1e-9);
    assert_near(seen[1].device_s, 7.5, 1e-9);
    assert_near(seen[2].device_s, 9, 1e-9);
    one->ended_ns = 1011 * S;
    hec_causes_poll(causes, 1012 * S);
    look();
    assert_near(seen[0].device_s, 20, 1e-9);
    assert_near(seen[2].device_s, 11, 1e-9);
    counts.windows_failed = 5;
    hec_causes_poll(causes, 1012 * S);
    struct hec_jobs_counts got;
    hec_causes_counts(causes, &got);
    assert_int_equal(got.rings, 5); /* polls so far, of the registry */
    assert_int_equal(got.windows_failed, 5);
}

/* Jobs of one tenant are one row; it runs until the last of them has ended, and nothing is said of it then. */
TEST(jobs_of_one_tenant_are_one_row) {
    struct hec_window_result result = window(0, 1);
    struct hec_job *one = new_job(107, 2, 1000), *other = new_job(107, 2, 1000), *silent = new_job(109, 1, 1000);
    hec_causes_poll(causes, now_ns);
    given.observed(given.context, one, &result);
    given.observed(given.context, one, &result);
    given.observed(given.context, other, &result);
    look();
    assert_int_equal(seen_count, 1);
    assert_near(seconds[0][0], 6, 1e-9);
    diagnosed.times = 0;
    given.ended(given.context, silent); /* of which no window was seen */
    given.ended(given.context, one);
    assert_int_equal(diagnosed.times, 0);
    look();
    assert_true(seen[0].running);
    given.ended(given.context, other);
    assert_int_equal(diagnosed.times, 1);
    assert_int_equal(diagnosed.cause, -1);
    assert_int_equal(diagnosed.devices, 0);
    assert_string_equal(diagnosed.job, "107");
    look();
    assert_int_equal(seen_count, 1);
    assert_false(seen[0].running);
    assert_near(seconds[0][0], 6, 1e-9); /* its figures stay */
}

/* Rows are bounded: the tenant whose last job ended first makes room, and where all run there is none. */
TEST(rows_are_bounded) {
    struct hec_window_result result = window(0, 1);
    for (int i = 0; i < HEC_CAUSES_ROWS_MAX; i++)
        given.observed(given.context, new_job(1001 + i, 1, 1000), &result);
    struct hec_job *late = new_job(1001 + HEC_CAUSES_ROWS_MAX, 1, 1000);
    diagnosed.times = 0;
    given.observed(given.context, late, &result);
    assert_int_equal(late->row, -1);
    assert_int_equal(diagnosed.times, 0);
    now_ns += S;
    given.ended(given.context, &job[9]);
    now_ns += S;
    given.ended(given.context, &job[4]);
    now_ns += S;
    given.ended(given.context, &job[12]);
    given.observed(given.context, late, &result);
    assert_int_equal(late->row, job[9].row);
    look();
    assert_int_equal(seen_count, HEC_CAUSES_ROWS_MAX);
    char expected[16];
    snprintf(expected, sizeof expected, "%d", (1001 + HEC_CAUSES_ROWS_MAX) % 1000);
    assert_string_equal(name[9], expected);
    assert_near(seconds[9][0], 2, 1e-9); /* nothing of who was there before */
    assert_near(seconds[10][0], 2, 1e-9);
    assert_true(seen[9].running && !seen[4].running);
}
