/* The registry of jobs without processes that record: who may ask for what, bounds on rings, what a result may be, and that nobody writes
 * into a ring that nobody reads. What windows say is tested in e2e/test_agent_jobs.py. */
#include "base/clock.h"
#include "base/ring.h"
#include "jobs/parts.h"
#include "jobs/request.h"
#include "jobs/window.h"
#include "tests/unit/folder.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct hec_window_result good_result(void) {
    struct hec_window_result result = {.magic = HEC_WINDOW_MAGIC,
                                       .seconds = 5,
                                       .device_count = 1,
                                       .cause = HEC_CAUSE_DATA,
                                       .recoverable = 0.3,
                                       .confidence = NAN,
                                       .unit_count = 1};
    result.device[0].seconds[HEC_STATE_DATA] = 5;
    result.device[0].joules[HEC_STATE_DATA] = NAN;
    snprintf(result.unit[0].name, sizeof result.unit[0].name, "sample");
    return result;
}

/* What the agent makes of a result that a window's process sends. */
static int received(const struct hec_window_result *sent) {
    struct hec_window_run run = {.deadline_ns = INT64_MAX};
    struct hec_window_result result;
    double cpu_seconds;
    int pair[2], file = -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    if ((run.pid = fork()) == 0)
        _exit(hec_pass_send(pair[1], sent, sizeof *sent, NULL, 0) == HEC_OK ? 0 : 1);
    close(pair[1]);
    run.socket = pair[0];
    int err;
    while ((err = hec_window_poll(&run, 0, &result, &file, &cpu_seconds)) == HEC_ERR_BUSY)
        usleep(100);
    return err;
}

TEST(test_results_are_checked) {
    struct hec_window_result result = good_result();
    assert_int_equal(received(&result), HEC_OK);
#define REFUSED(change)                                                                                                \
    do {                                                                                                               \
        result = good_result();                                                                                        \
        change;                                                                                                        \
        assert_int_equal(received(&result), HEC_ERR_FAILED);                                                           \
    } while (0)
    REFUSED(result.magic++);
    REFUSED(result.seconds = NAN);
    REFUSED(result.seconds = -1);
    REFUSED(result.device_count = HEC_WINDOW_DEVICES + 1);
    REFUSED(result.device_count = -1);
    REFUSED(result.device[0].seconds[HEC_STATE_HOST] = INFINITY);
    REFUSED(result.device[0].joules[HEC_STATE_HOST] = -1);
    REFUSED(result.device[0].index = -1);
    REFUSED(memset(result.device[0].uuid, 'x', sizeof result.device[0].uuid));
    REFUSED(memset(result.why, 'x', sizeof result.why));
    REFUSED(result.cause = HEC_CAUSE_COUNT);
    REFUSED(result.cause = -2);
    REFUSED(result.recoverable = 1.5);
    REFUSED(result.confidence = -0.1);
    REFUSED(result.unit_count = HEC_WINDOW_UNITS + 1);
    REFUSED(memset(result.unit[0].name, 'x', sizeof result.unit[0].name));
    REFUSED(result.unit[0].count = NAN);
}

/* ---- a registry, and rings by hand ---- */

static char address[64];
static struct hec_jobs *jobs;

static int set_up(void **state) {
    struct hec_jobs_options options = hec_jobs_defaults();
    int err = folder_make(state);
    snprintf(address, sizeof address, "%s/agent", folder);
    options.socket = address;
    options.window_s = 0;
    return err || hec_jobs_open(&options, &jobs, NULL);
}

static int tear_down(void **state) {
    (void)state;
    hec_jobs_close(jobs);
    return rmdir(folder); /* nothing is left in it */
}

static struct hec_ring hand_over(enum hec_ring_role role, uint32_t tag) {
    struct hec_ring ring;
    int fd;
    assert_int_equal(hec_ring_create(HEC_RING_RECORDS_MIN, role, &ring, &fd), HEC_OK);
    assert_int_equal(hec_ring_send(address, role, tag, fd), HEC_OK);
    close(fd);
    return ring;
}

/* Who is told that nobody reads writes nothing; who begins to read begins after what was there. */
TEST_WITH(test_nobody_reads, set_up, tear_down) {
    struct hec_ring ring = hand_over(HEC_RING_MARKS, 1);
    struct hec_ring_record record = {.t_ns = 1, .kind = HEC_RING_STEP}, read;
    assert_int_equal(hec_ring_window(&ring), 0);
    assert_true(hec_ring_write(&ring, &record)); /* before it was taken in */
    hec_jobs_poll(jobs, hec_clock_mono_ns());
    assert_true(hec_ring_window(&ring) & 1);
    struct hec_ring_reader reader;
    for (int window = 1; window <= 2; window++) {
        uint32_t before = hec_ring_window(&ring);
        assert_int_equal(hec_ring_map(jobs->ring[0].fd, &reader), HEC_OK);
        hec_ring_begin(&reader);
        assert_int_equal(hec_ring_window(&ring) & 1, 0);
        assert_true(hec_ring_window(&ring) > before);
        assert_int_equal(hec_ring_read(&reader, &read, 1), 0);
        record.t_ns = 10 * window;
        assert_true(hec_ring_write(&ring, &record));
        assert_int_equal(hec_ring_read(&reader, &read, 1), 1);
        assert_int_equal(read.t_ns, 10 * window);
        assert_true(hec_ring_write(&ring, &record)); /* the next reader does not see it */
        hec_ring_close(&reader);
        assert_true(hec_ring_window(&ring) & 1);
        assert_false(hec_ring_closed(&ring));
    }
    hec_ring_abandon(&ring, hec_ring_window(&ring) + 1); /* not that one */
    assert_true(hec_ring_window(&ring) & 1);
    hec_ring_unmap(&ring);
}

TEST_WITH(test_jobs_are_told_apart, set_up, tear_down) {
    char mine[HEC_JOB_ID];
    struct hec_ring one = hand_over(HEC_RING_MARKS, 4294967295u), two = hand_over(HEC_RING_TRACE, 7),
                    three = hand_over(HEC_RING_TRACE, 0);
    hec_jobs_poll(jobs, hec_clock_mono_ns());
    assert_int_equal(hec_jobs_count(jobs), 3);
    snprintf(mine, sizeof mine, "run-%u-4294967295", (unsigned)getuid());
    assert_string_equal(hec_jobs_at(jobs, 0)->id, mine);
    snprintf(mine, sizeof mine, "session-%u-%d", (unsigned)getuid(), (int)getsid(0));
    assert_string_equal(hec_jobs_at(jobs, 2)->id, mine);
    assert_int_equal(hec_jobs_at(jobs, 0)->pid, getpid());
    assert_false(jobs->job[0]->traced); /* no window of it is worth its cost */
    assert_true(jobs->job[1]->traced);
    hec_ring_unmap(&one);
    hec_ring_unmap(&two);
    hec_ring_unmap(&three);
}

/* More jobs than there is room for, all of one process: its own are replaced, and the figures add up. */
TEST_WITH(test_a_flood_is_bounded, set_up, tear_down) {
    struct hec_jobs_counts counts;
    struct hec_ring ring[1000];
    for (int i = 0; i < 1000; i++) {
        ring[i] = hand_over(HEC_RING_TRACE, (uint32_t)i + 1);
        if (i % 100 == 99)
            hec_jobs_poll(jobs, hec_clock_mono_ns());
    }
    hec_jobs_poll(jobs, hec_clock_mono_ns() + 10 * HEC_NS_PER_S); /* jobs without rings are forgotten */
    hec_jobs_counts(jobs, &counts);
    assert_int_equal(jobs->ring_count, 4);
    assert_int_equal(hec_jobs_count(jobs), 4);
    assert_int_equal(counts.rings + counts.refused, 1000);
    int closed = 0;
    for (int i = 0; i < 1000; i++) {
        closed += hec_ring_closed(&ring[i]);
        hec_ring_unmap(&ring[i]);
    }
    assert_int_equal(closed, 996); /* who is not listened to is told so */
}

/* ---- the process above those of a job, in a made /proc ---- */

static void put_process(int pid, int parent, int uid) {
    char path[32];
    snprintf(path, sizeof path, "%d/stat", pid);
    folder_text(path, "%d (x) y) S %d 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 9 1000 100 0 0\n", pid, parent);
    snprintf(path, sizeof path, "%d/status", pid);
    folder_text(path, "Name:\tx\nUid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid);
}

static const struct {
    struct hec_job_process of[3];
    pid_t agent, root;
    const char *why;
} roots[] = {
    {{{30, 1000}, {31, 1000}}, 99, 20, "two of one shell"},
    {{{30, 1000}, {30, 1000}}, 99, 30, "two rings of one process"},
    {{{30, 1000}, {40, 1000}}, 99, 0, "two sessions: sshd above them is root's"},
    {{{30, 1000}, {40, 1000}, {31, 1000}}, 99, 0, "the third does not bring it back"},
    {{{60, 1000}, {30, 1000}}, 99, 0, "below a sudo: that is not the user's"},
    {{{30, 1000}, {50, 2000}}, 99, 0, "two users"},
    {{{30, 1001}}, 99, 0, "not its own process"},
    {{{30, 0}}, 99, 0, "nor root's"},
    {{{70, 0}, {10, 0}}, 99, 10, "root's own sshd is its own"},
    {{{30, 1000}, {31, 1000}}, 31, 0, "the agent stands below"},
    {{{77, 1000}}, 99, 0, "it has gone"},
};

TEST_WITH(test_a_job_never_climbs_above_its_owner, folder_make, folder_remove) {
    put_process(10, 1, 0); /* sshd */
    put_process(20, 10, 1000);
    put_process(30, 20, 1000);
    put_process(31, 20, 1000);
    put_process(40, 10, 1000);
    put_process(50, 10, 2000);
    put_process(55, 30, 0); /* sudo, and what it runs for another user, and for the same */
    put_process(60, 55, 1000);
    put_process(70, 10, 0);
    put_process(99, 1, 0);
    int proc = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        int count = 0;
        while (count < 3 && roots[i].of[count].pid)
            count++;
        pid_t root = hec_jobs_root(proc, roots[i].of, count, roots[i].agent);
        if (root != roots[i].root)
            fail_msg("%s: %d, not %d", roots[i].why, (int)root, (int)roots[i].root);
    }
    close(proc);
}

/* ---- requests ---- */

static int ask(const char *job, double seconds, uid_t uid, char text[4096]) {
    struct hec_request request = {.magic = HEC_REQUEST_MAGIC, .seconds = seconds};
    struct hec_answer answer;
    int pair[2], file;
    snprintf(request.job, sizeof request.job, "%s", job);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(send(pair[0], &request, sizeof request, 0), sizeof request);
    hec_jobs_ask(jobs, pair[1], uid);
    int err = hec_request_await(pair[0], 0, &answer, &file);
    close(pair[0]);
    if (err < 0)
        return err;
    assert_int_equal(file, -1);
    snprintf(text, 4096, "%s", answer.text);
    return answer.err;
}

TEST_WITH(test_who_may_record, set_up, tear_down) {
    struct hec_ring ring = hand_over(HEC_RING_TRACE, 5);
    char text[4096], id[HEC_JOB_ID], pid[16];
    hec_jobs_poll(jobs, hec_clock_mono_ns());
    struct hec_job_entry *entry = jobs->job[0];
    snprintf(id, sizeof id, "%s", entry->job.id);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    entry->job.uid = 4711; /* of somebody else than this process */
    assert_int_equal(ask("", 5, 4711, text), HEC_OK);
    assert_non_null(strstr(text, id));
    assert_int_equal(ask("", 5, 4712, text), HEC_OK);
    assert_string_equal(text, ""); /* jobs of others are not named */
    assert_int_equal(ask(id, 5, 4712, text), HEC_ERR_NOTFOUND);
    assert_int_equal(ask("none", 5, 4711, text), HEC_ERR_NOTFOUND);
    assert_int_equal(ask(id, 0, 4711, text), HEC_ERR_USAGE);
    assert_int_equal(ask(id, NAN, 4711, text), HEC_ERR_USAGE);
    assert_int_equal(ask(id, 1e9, 0, text), HEC_ERR_USAGE);
    assert_int_equal(entry->request, -1);
    entry->job.mixed = true; /* processes of several users: root's alone */
    assert_int_equal(ask(id, 5, 4711, text), HEC_ERR_NOTFOUND);
    assert_int_equal(ask(pid, 5, 0, text), HEC_ERR_BUSY); /* no answer yet: it waits for its window */
    assert_true(entry->request >= 0);
    assert_int_equal(ask(id, 5, 0, text), HEC_ERR_BUSY);
    assert_non_null(strstr(text, "asked for already"));
    hec_ring_unmap(&ring);
}
