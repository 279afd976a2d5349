/* The registry of jobs without processes that record: who may ask for what, bounds on rings, what a result may be, and that nobody writes
 * into a ring that nobody reads. What windows say is tested in e2e/test_agent_jobs.py. */
#include "base/clock.h"
#include "base/ring.h"
#include "jobs/parts.h"
#include "jobs/request.h"
#include "jobs/window.h"
#include "tests/unit/folder.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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

/* Until so many rings and connections have come in, whatever became of them. */
static struct hec_jobs_counts settle(uint64_t arrivals) {
    struct hec_jobs_counts counts;
    do {
        hec_jobs_poll(jobs, hec_clock_mono_ns());
        hec_jobs_counts(jobs, &counts);
        usleep(500);
    } while (counts.rings + counts.refused + counts.silent < arrivals);
    return counts;
}

/* Who is told that nobody reads writes nothing; who begins to read begins after what was there. */
TEST_WITH(test_nobody_reads, set_up, tear_down) {
    struct hec_ring ring = hand_over(HEC_RING_MARKS, 1);
    struct hec_ring_record record = {.t_ns = 1, .kind = HEC_RING_STEP}, read;
    assert_int_equal(hec_ring_window(&ring), 0);
    assert_true(hec_ring_write(&ring, &record)); /* before it was taken in */
    settle(1);
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
    settle(3);
    assert_int_equal(hec_jobs_count(jobs), 3);
    snprintf(mine, sizeof mine, "run-%u-4294967295", (unsigned)getuid());
    assert_string_equal(hec_jobs_at(jobs, 0)->id, mine);
    snprintf(mine, sizeof mine, "session-%u-%d", (unsigned)getuid(), (int)getsid(0));
    assert_string_equal(hec_jobs_at(jobs, 2)->id, mine);
    assert_int_equal(hec_jobs_at(jobs, 0)->pid, getpid());
    assert_int_equal(jobs->job[0]->traced, 0); /* no window of it is worth its cost */
    assert_int_equal(jobs->job[1]->traced, 1);
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
            settle((uint64_t)i + 1);
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

/* ---- descriptors that hold up who closes them ---- */

/* A socket with bytes that nobody reads, which lingers for an hour. *peer is its other end. */
static int lingering(int *peer) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof where;
    static const char bytes[65536];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&where, sizeof where), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&where, &length), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    *peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 3600}, sizeof(struct linger)), 0);
    close(listener);
    return fd;
}

/* A connection of one's own, and what is said on it. */
static int said(const int *fds, int count, uint32_t role) {
    struct hec_ring_hello hello = {.magic = HEC_RING_MAGIC, .abi = HEC_RING_ABI, .role = role, .tag = 1};
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    strcpy(to.sun_path, address);
    assert_int_equal(connect(connection, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(hec_pass_send(connection, &hello, sizeof hello, fds, count), HEC_OK);
    return connection;
}

/* The last reference to each is the agent's. It is neither held up by the close, nor is who comes next. */
TEST_WITH(test_nothing_that_is_passed_holds_up_the_loop, set_up, tear_down) {
    struct hec_request request = {.magic = HEC_REQUEST_MAGIC, .job = "none", .seconds = 1};
    int peer[6], fds[2], memory, pair[2], arrivals = 0;
    struct hec_ring ring, own;
    assert_int_equal(hec_ring_create(HEC_RING_RECORDS_MIN, HEC_RING_TRACE, &ring, &memory), HEC_OK);

    fds[0] = lingering(&peer[0]); /* refused: it is no ring, */
    close(said(fds, 1, HEC_RING_TRACE));
    close(fds[0]);
    fds[0] = lingering(&peer[1]); /* nor a request */
    close(said(fds, 1, HEC_RING_REQUEST));
    close(fds[0]);
    fds[0] = memory; /* one too many */
    fds[1] = lingering(&peer[2]);
    close(said(fds, 2, HEC_RING_TRACE));
    close(fds[1]);
    int unread = said(fds, 1, HEC_RING_TRACE); /* never read */
    fds[0] = lingering(&peer[3]);
    assert_int_equal(hec_pass_send(unread, "x", 1, fds, 1), HEC_OK);
    close(fds[0]);
    close(unread);
    arrivals += 4;

    /* in the queue of the socket on which the answer goes out, and in that of another in there */
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(hec_pass_send(pair[0], &request, sizeof request, NULL, 0), HEC_OK);
    fds[0] = lingering(&peer[4]);
    assert_int_equal(hec_pass_send(pair[0], "x", 1, fds, 1), HEC_OK);
    close(fds[0]);
    close(said(&pair[1], 1, HEC_RING_REQUEST));
    close(pair[1]);
    while (jobs->counts.requests < 1) {
        hec_jobs_poll(jobs, hec_clock_mono_ns());
        usleep(500);
    }
    assert_int_equal(jobs->counts.requests_refused, 1);
    close(pair[0]);

    settle((uint64_t)arrivals);
    own = hand_over(HEC_RING_TRACE, 2);
    uint64_t rings = jobs->counts.rings;
    while (jobs->counts.rings == rings) {
        hec_jobs_poll(jobs, hec_clock_mono_ns());
        usleep(500);
    }
    int64_t turned_ns = jobs->door.shared->turned_ns;
    while (jobs->door.shared->turned_ns == turned_ns) /* the door turns too */
        usleep(500);
    for (int i = 0; i < 5; i++)
        close(peer[i]);
    close(memory);
    hec_ring_unmap(&ring);
    hec_ring_unmap(&own);
}

/* What one user brings is bounded in time, and what is over is counted. */
#define ARRIVALS 6000
TEST_WITH(test_arrivals_of_a_user_are_bounded, set_up, tear_down) {
    struct hec_ring ring;
    int memory;
    uint64_t sent = 0;
    assert_int_equal(hec_ring_create(HEC_RING_RECORDS_MIN, HEC_RING_TRACE, &ring, &memory), HEC_OK);
    hec_jobs_poll(jobs, hec_clock_mono_ns()); /* the door opens */
    for (int i = 0; i < ARRIVALS; i++)
        sent += hec_ring_send(address, HEC_RING_TRACE, 1, memory) == HEC_OK;
    struct hec_jobs_counts counts = settle(sent);
    /* one that is refused between its connecting and its word counts here, and not as sent */
    assert_in_range(counts.rings + counts.refused + counts.silent, sent, ARRIVALS);
    assert_true(counts.rings > 0 && counts.refused > sent / 4);
    while (!(counts.door_cpu_seconds > 0)) /* what it costs is the agent's cost */
        counts = settle(sent);
    assert_int_equal(jobs->ring_count, 4);
    close(memory);
    hec_ring_unmap(&ring);
}

static bool come_in(uid_t uid, pid_t pid, uint32_t tag);

/* As many rings as there is room for by the limit, and descriptors left for the rest. */
TEST(test_rings_fit_the_limit_of_descriptors) {
    struct rlimit before, low;
    void *state = NULL;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    static const struct {
        rlim_t limit;
        int rings;
    } cases[] = {{64, 16}, {256, 64}, {1024, 256}, {4096, 1536}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases && cases[i].limit <= before.rlim_max; i++) {
        low = (struct rlimit){cases[i].limit, cases[i].limit};
        pid_t pid = fork(); /* the most there may be does not grow again */
        if (pid == 0) {
            setrlimit(RLIMIT_NOFILE, &low);
            bool good = set_up(&state) == 0 && jobs->rings_max == cases[i].rings;
            for (int k = 0; good && k < jobs->rings_max + 20; k++)
                good = come_in(1001, getpid() + 1000000000 + k, 1) == (k < jobs->rings_max);
            int spare = good ? dup(0) : -1;
            good = good && spare >= 0 && (rlim_t)spare < cases[i].limit - cases[i].limit / 4;
            _exit(!good || tear_down(&state) != 0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("with %d descriptors", (int)cases[i].limit);
    }
}

/* ---- who has how much: users in a registry, without processes ---- */

/* As if it had come in. */
static bool come_in(uid_t uid, pid_t pid, uint32_t tag) {
    struct hec_ring ring;
    struct hec_door_arrival arrival = {.role = HEC_RING_TRACE, .tag = tag, .pid = pid, .uid = uid};
    int fd;
    assert_int_equal(hec_ring_create(HEC_RING_RECORDS_MIN, HEC_RING_TRACE, &ring, &fd), HEC_OK);
    assert_int_equal(hec_pass_send(jobs->door.outside, &arrival, sizeof arrival, &fd, 1), HEC_OK);
    close(fd);
    uint64_t refused = jobs->counts.refused;
    jobs->looked_ns = INT64_MAX / 2; /* there are no such processes: nobody looks */
    hec_jobs_poll(jobs, hec_clock_mono_ns());
    bool taken = jobs->counts.refused == refused;
    assert_int_equal(hec_ring_closed(&ring), !taken); /* who is not listened to is told so */
    hec_ring_unmap(&ring);
    return taken;
}

/* A process connects and ends, and its number goes to a process of somebody else, whose job the ring would join. */
TEST_WITH(test_a_number_that_is_used_again_is_not_believed, set_up, tear_down) {
    assert_false(come_in(getuid() + 1, getpid(), 1));
    assert_int_equal(hec_jobs_count(jobs), 0);
    assert_true(come_in(getuid(), getpid(), 1));
}

static int jobs_of(uid_t uid) {
    int count = 0;
    for (int i = 0; i < jobs->job_count; i++)
        count += jobs->job[i]->job.uid == uid;
    return count;
}

static int rings_of(uid_t uid) {
    int count = 0;
    for (int i = 0; i < jobs->ring_count; i++)
        count += jobs->ring[i].uid == uid;
    return count;
}

static const struct {
    const char *what;
    int of_one; /* arrivals of the first user, each of a process and a job of its own, or of one job */
    bool one_job;
    int room; /* for all */
} tables[] = {{"jobs", 300, false, HEC_JOBS_MAX}, {"rings", 120, true, 100}};

TEST_WITH(test_a_user_has_no_more_than_a_share_while_others_wait, set_up, tear_down) {
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        int (*has)(uid_t) = tables[i].one_job ? rings_of : jobs_of;
        pid_t pid = 1000000000;
        if (tables[i].one_job)
            jobs->rings_max = tables[i].room;
        for (int k = 0; k < tables[i].of_one; k++)
            assert_int_equal(come_in(1001, pid++, tables[i].one_job ? 1 : (uint32_t)k + 1), k < tables[i].room);
        assert_int_equal(has(1001), tables[i].room); /* nobody else wants any */
        for (int k = 0; k < tables[i].room; k++) {   /* two flood: each half */
            bool fits = k < tables[i].room / 2;
            assert_int_equal(come_in(1002, pid++, tables[i].one_job ? 2 : (uint32_t)k + 1), fits);
        }
        assert_int_equal(has(1001), tables[i].room / 2);
        assert_int_equal(has(1002), tables[i].room / 2);
        assert_true(come_in(1003, pid++, 1)); /* who comes late with one has it */
        assert_true(come_in(0, pid++, 1));    /* and so has root, */
        for (int k = 0; k < tables[i].room - 3; k++)
            assert_true(come_in(0, pid++, tables[i].one_job ? 3 : (uint32_t)k + 2)); /* who gives way to nobody */
        assert_int_equal(has(0), tables[i].room - 2);
        assert_int_equal(has(1003), 1);
        assert_true(has(1001) + has(1002) == 1);
        assert_false(come_in(1004, pid++, 1)); /* nobody has more than one but root */
        jobs->looked_ns = 0;
        hec_jobs_poll(jobs, hec_clock_mono_ns()); /* those processes are not there */
        assert_int_equal(jobs->ring_count + jobs->job_count, 0);
        for (int k = 0; k < jobs->user_count; k++)
            assert_int_equal(jobs->user[k].rings + jobs->user[k].jobs + jobs->user[k].requests, 0);
    }
}

/* Containers without root: a user's many ids have the share of one. */
TEST_WITH(test_ids_of_one_user_have_one_share, set_up, tear_down) {
    struct hec_subuid *subuid = &jobs->door.subuid;
    pid_t pid = 1000000000;
    folder_text("subuid", "1001:100000:65536\nnobody-of-that-name:1:5\nroot:300000:9\nx\n:::\n1002:165536:10\n"
                          "1003:0:10\n1004:4294967290:10\n1005:200000:0\n");
    hec_subuid_read(subuid, in_folder("subuid"));
    folder_delete("subuid");
    static const uid_t owners[][2] = {
        {1001, 1001},     {100000, 1001}, {165535, 1001}, {165536, 1002},           {165545, 1002},
        {165546, 165546}, {0, 0},         {5, 5},         {4294967291, 4294967291}, {300001, 300001}};
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        assert_int_equal(hec_subuid_owner(subuid, owners[i][0]), owners[i][1]);
    jobs->rings_max = 100;
    for (uid_t uid = 100000; uid < 100100; uid++)
        assert_true(come_in(uid, pid++, 1));
    for (int i = 0; i < 50; i++) /* as many as if there were two users */
        assert_true(come_in(1002, pid++, 1));
    assert_false(come_in(1002, pid++, 1));
    assert_int_equal(jobs->job[0]->job.uid, 100000); /* and jobs are those of the id */
    assert_int_equal(jobs->user_count, 2);
}

/* Whose window is next while one user's are due all the time, and cost ten times as much. */
TEST_WITH(test_windows_are_divided_by_user, set_up, tear_down) {
    int windows[3] = {0}, since = 0, longest = 0;
    int64_t now_ns = hec_clock_mono_ns(), at_ns;
    double cpu[3] = {0};
    for (int i = 0; i < 40; i++)
        assert_true(come_in(1001, 1000000000 + i, (uint32_t)i + 1));
    assert_true(come_in(1002, 1000000100, 1));
    assert_true(come_in(1003, 1000000101, 1));
    jobs->options.cpu_share = 0.01;
    int64_t begun_ns = now_ns;
    for (int turn = 0; turn < 3000; turn++) {
        struct hec_job_entry *next = hec_jobs_next_due(jobs, now_ns, &at_ns);
        assert_non_null(next);
        now_ns = at_ns > now_ns ? at_ns : now_ns;
        int who = (int)next->job.uid - 1001;
        since = who == 1 ? 0 : since + 1;
        longest = since > longest && windows[1] > 0 ? since : longest;
        double cost = who == 0 ? 1 : 0.1;
        windows[who]++;
        cpu[who] += cost;
        next->user->served_ns = now_ns;
        next->due_ns = now_ns + 60 * HEC_NS_PER_S;
        hec_jobs_charge(jobs, next->user, cost, now_ns);
        now_ns += 5 * HEC_NS_PER_S;
    }
    double seconds = (double)(now_ns - begun_ns) / 1e9;
    assert_true(cpu[0] + cpu[1] + cpu[2] < 0.011 * seconds);
    assert_true(windows[1] > 4 * windows[0] && windows[2] > 4 * windows[0]); /* what one's cost, he pays */
    assert_true(longest <= 3);
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

static int listed; /* lines of the newest list that did not fit into its answer */

static int ask(const char *job, double seconds, uid_t uid, char text[4096]) {
    struct hec_request request = {.magic = HEC_REQUEST_MAGIC, .seconds = seconds};
    struct hec_answer answer;
    int pair[2], file;
    char list[1 << 16];
    snprintf(request.job, sizeof request.job, "%s", job);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    hec_jobs_ask(jobs, pair[1], uid, &request);
    int err = hec_request_await(pair[0], 0, &answer, &file);
    close(pair[0]);
    if (err < 0)
        return err;
    snprintf(text, 4096, "%s", answer.text);
    if (file >= 0) { /* a list that is longer */
        ssize_t length = pread(file, list, sizeof list - 1, 0);
        assert_true(length >= 4096 && strncmp(list, text, strlen(text)) == 0);
        list[length] = '\0';
        listed = 0;
        for (const char *at = list; (at = strchr(at, '\n')) != NULL; at++)
            listed++;
        close(file);
    }
    return answer.err;
}

TEST_WITH(test_who_may_record, set_up, tear_down) {
    struct hec_ring ring = hand_over(HEC_RING_TRACE, 5);
    char text[4096], id[HEC_JOB_ID], pid[16];
    settle(1);
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
    assert_int_equal(jobs->request_count, 0);
    entry->job.mixed = true; /* processes of several users: root's alone */
    assert_int_equal(ask(id, 5, 4711, text), HEC_ERR_NOTFOUND);
    assert_int_equal(ask(pid, 5, 0, text), HEC_ERR_BUSY); /* no answer yet: it waits for its window */
    assert_int_equal(jobs->request_count, 1);
    assert_int_equal(ask(id, 5, 0, text), HEC_ERR_BUSY);
    assert_non_null(strstr(text, "asked for already"));
    static const char *const slurm[] = {"slurm-30", "slurm-30-user-ann"};
    for (int i = 0; i < 2; i++) { /* by its number, as squeue shows it */
        strcpy(entry->job.id, slurm[i]);
        assert_int_equal(ask("30", 5, 0, text), HEC_ERR_BUSY);
        assert_non_null(strstr(text, "asked for already"));
        assert_int_equal(ask("3", 5, 0, text), HEC_ERR_NOTFOUND);
        assert_int_equal(ask("300", 5, 0, text), HEC_ERR_NOTFOUND);
        assert_int_equal(ask("30", 5, 4712, text), HEC_ERR_NOTFOUND);
    }
    strcpy(entry->job.id, "run-30");
    assert_int_equal(ask("30", 5, 0, text), HEC_ERR_NOTFOUND);
    hec_ring_unmap(&ring);
}

/* One that ends while a window of it goes on is kept for its result, and has ended all the same. */
TEST_WITH(test_a_job_ends_with_its_last_process, set_up, tear_down) {
    int64_t now_ns = hec_clock_mono_ns();
    assert_true(come_in(1001, 1000000001, 1));
    assert_int_equal(jobs->job[0]->job.ended_ns, 0);
    jobs->job[0]->in_window = true;
    jobs->looked_ns = 0;
    for (int i = 1; i <= 3; i++)
        hec_jobs_poll(jobs, now_ns + i * 3 * HEC_NS_PER_S);
    assert_int_equal(hec_jobs_count(jobs), 1);
    assert_int_equal(hec_jobs_at(jobs, 0)->ended_ns, now_ns + 3 * HEC_NS_PER_S);
    jobs->job[0]->in_window = false;
    hec_jobs_poll(jobs, now_ns + 12 * HEC_NS_PER_S);
    assert_int_equal(hec_jobs_count(jobs), 0);
}

/* As if the window of the oldest request that may begin had begun. */
static int begin_next(int window) {
    int at = hec_jobs_next_asked(jobs, window);
    if (at < 0)
        return -1;
    int uid = (int)jobs->request[at].uid;
    jobs->window[window].job = jobs->request[at].job;
    jobs->window[window].request = jobs->request[at];
    jobs->window[window].job->in_window = true;
    hec_jobs_request_remove(jobs, at);
    return uid;
}

static void end_window(int window) {
    jobs->window[window].job->in_window = false;
    jobs->window[window].job = NULL;
    hec_jobs_answer(jobs, &jobs->window[window].request, HEC_ERR_FAILED, -1, "");
}

TEST_WITH(test_requests_are_served_by_user_oldest_first, set_up, tear_down) {
    char text[4096], id[64];
    for (uint32_t tag = 1; tag <= 20; tag++)
        assert_true(come_in(1001, 1000000000 + (pid_t)tag, tag));
    assert_true(come_in(1002, 1000000100, 1));
    for (int tag = 1; tag <= 20; tag++) {
        snprintf(id, sizeof id, "run-1001-%d", tag);
        assert_int_equal(ask(id, 300, 1001, text), HEC_ERR_BUSY);
    }
    assert_int_equal(jobs->request_count, HEC_JOBS_REQUESTS_USER);
    assert_int_equal(ask("run-1002-1", 1, 1002, text), HEC_ERR_BUSY);
    assert_int_equal(ask("run-1001-1", 1, 0, text), HEC_ERR_BUSY);
    assert_int_equal(begin_next(HEC_JOBS_ASKED), 1001);
    assert_int_equal(begin_next(HEC_JOBS_ASKED + 1), 1002); /* not 1001's second */
    assert_int_equal(begin_next(HEC_JOBS_ASKED + 2), -1);   /* root's is of a job in a window */
    end_window(HEC_JOBS_ASKED);
    assert_int_equal(begin_next(HEC_JOBS_ASKED), 1001);
    assert_int_equal(begin_next(HEC_JOBS_ROOT), 0);
    assert_int_equal(ask("run-1001-20", 300, 1001, text), HEC_ERR_BUSY);
    end_window(HEC_JOBS_ROOT);
    assert_int_equal(begin_next(HEC_JOBS_ROOT), -1); /* root's alone */
    end_window(HEC_JOBS_ASKED);
    end_window(HEC_JOBS_ASKED + 1);
}

/* Four who record for minutes keep a fifth waiting for a turn; one who has a window himself waits for that. */
TEST_WITH(test_a_window_is_shortened_for_who_waits, set_up, tear_down) {
    static const int64_t begun_ns[] = {103, 101, 102, 102};
    char text[4096], id[64];
    for (uid_t uid = 1001; uid <= 1006; uid++)
        assert_true(
            come_in(uid, 1000000000 + (pid_t)uid, 1)); /* it polls: before there are windows without a process */
    for (uid_t uid = 1001; uid <= 1006; uid++) {
        snprintf(id, sizeof id, "run-%u-1", uid);
        assert_int_equal(ask(id, 300, uid, text), HEC_ERR_BUSY);
        if (uid <= 1004) {
            assert_int_equal(begin_next(HEC_JOBS_ASKED + (int)uid - 1001), uid);
            jobs->window[HEC_JOBS_ASKED + (int)uid - 1001].begun_ns = begun_ns[uid - 1001];
        }
        assert_int_equal(hec_jobs_to_shorten(jobs), uid <= 1004 ? -1 : HEC_JOBS_ASKED + 1);
    }
    jobs->window[HEC_JOBS_ASKED + 1].shortened = true; /* is ending, which will do for both */
    assert_int_equal(hec_jobs_to_shorten(jobs), -1);
    end_window(HEC_JOBS_ASKED + 1);
    assert_int_equal(hec_jobs_to_shorten(jobs), -1); /* a place is free */
    assert_int_equal(begin_next(HEC_JOBS_ASKED + 1), 1005);
    jobs->window[HEC_JOBS_ASKED + 1].shortened = false;
    jobs->window[HEC_JOBS_ASKED + 1].begun_ns = 200;
    jobs->window[HEC_JOBS_ASKED].request.uid = 0;
    jobs->window[HEC_JOBS_ASKED].begun_ns = 0;
    assert_int_equal(hec_jobs_to_shorten(jobs), HEC_JOBS_ASKED + 2); /* not root's */
    end_window(HEC_JOBS_ASKED + 2);
    assert_int_equal(begin_next(HEC_JOBS_ASKED + 2), 1006);
    assert_int_equal(ask("run-1001-1", 300, 1001, text), HEC_ERR_BUSY);
    assert_int_equal(hec_jobs_to_shorten(jobs), -1); /* root has it */
    for (int window = HEC_JOBS_ASKED; window < HEC_JOBS_ROOT; window++)
        end_window(window);
}

/* Root sees the jobs of everybody, however many one has. */
TEST_WITH(test_a_list_of_many_jobs_is_whole, set_up, tear_down) {
    char text[4096];
    for (uint32_t tag = 1; tag <= 200; tag++)
        assert_true(come_in(1001, 1000000000 + (pid_t)tag, tag));
    assert_true(come_in(1002, 1000000300, 1));
    listed = 0;
    assert_int_equal(ask("", 1, 0, text), HEC_OK);
    assert_int_equal(listed, 201);
    listed = 0;
    assert_int_equal(ask("", 1, 1002, text), HEC_OK);
    assert_int_equal(listed, 0); /* it fits */
    assert_string_equal(text, "run-1002-1: process 1000000300, 1 in all, 0 windows\n");
}
