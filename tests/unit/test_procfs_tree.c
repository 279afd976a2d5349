/* The process tree from a recorded /proc: who belongs to it, and totals that stay right while members come and go.
 * Every test of membership runs with and without the kernel's files of children. */
#include "base/clock.h"
#include "observe/collector.h"
#include "tests/unit/folder.h"
#include "tests/unit/kept.h"

#include <time.h>

#define SELF 50
#define ROOT 100
#define SECOND HEC_NS_PER_S
#define TICK_MS 10

static struct {
    bool with_children_files;
    struct hec_observe_options options;
    void *collector;
    int64_t now_ns;
} world;

struct fake {
    int pid, parent;
    const char *name;
    char state;
    int own_ticks, waited_ticks, start, threads, rss_pages;
    long read, written, disk_read;
    const char *children; /* of its first thread */
};

static void put_status(const char *path, char state, int voluntary, int involuntary) {
    folder_text(path,
                "Name:\tx\nState:\t%c (x)\nVmHWM:\t 40 kB\nvoluntary_ctxt_switches:\t%d\n"
                "nonvoluntary_ctxt_switches:\t%d\n",
                state, voluntary, involuntary);
}

static void put(struct fake fake) {
    char path[64];
    snprintf(path, sizeof path, "%d/stat", fake.pid);
    folder_text(path, "%d (%s) %c %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 %d 0 %d 0 %d 0\n", fake.pid,
                fake.name ? fake.name : "work", fake.state ? fake.state : 'S', fake.parent, fake.own_ticks,
                fake.waited_ticks, fake.threads ? fake.threads : 1, fake.start, fake.rss_pages);
    snprintf(path, sizeof path, "%d/io", fake.pid);
    folder_text(path, "rchar: %ld\nwchar: %ld\nsyscr: 0\nsyscw: 0\nread_bytes: %ld\nwrite_bytes: 0\n", fake.read,
                fake.written, fake.disk_read);
    snprintf(path, sizeof path, "%d/status", fake.pid);
    put_status(path, fake.state ? fake.state : 'S', 1, 1);
    snprintf(path, sizeof path, "%d/task/%d/status", fake.pid, fake.pid);
    put_status(path, fake.state ? fake.state : 'S', 1, 1);
    if (world.with_children_files) {
        snprintf(path, sizeof path, "%d/task/%d/children", fake.pid, fake.pid);
        folder_text(path, "%s", fake.children ? fake.children : "");
    }
}

#define PUT(...) put((struct fake){__VA_ARGS__})

static void end(int pid) {
    char path[16];
    snprintf(path, sizeof path, "%d", pid);
    folder_delete(path);
}

static void self_has(const char *children) {
    PUT(.pid = SELF, .parent = 1, .name = "hec", .start = 90, .children = children);
}

static int make_world(bool with_children_files) {
    kept_clear();
    memset(&world, 0, sizeof world);
    world.with_children_files = with_children_files;
    world.options.proc_path = folder;
    world.now_ns = 1000 * SECOND;
    assert_int_equal(folder_make(NULL), 0);
    assert_int_equal(symlink("50", in_folder("self")), 0);
    folder_text("50/statm", "1000 250 1 1 0 1 0\n");
    folder_text("stat", "cpu  1000 0 0 9000 0 0 0 0 0 0\ncpu0 1 2 3 4\n");
    folder_text("meminfo", "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable: 4711 kB\n");
    self_has("");
    return 0;
}

static int set_up(void **state) {
    (void)state;
    return make_world(true);
}

static int set_up_without_children_files(void **state) {
    (void)state;
    return make_world(false);
}

static int tear_down(void **state) {
    if (world.collector)
        hec_collector_procfs.close(world.collector);
    return folder_remove(state);
}

static void open_it(void) {
    struct hec_why why;
    assert_int_equal(hec_collector_procfs.open(&world.options, &keeping, &world.collector, &why), HEC_OK);
}

static void poll_at(int64_t now_ns) {
    world.now_ns = now_ns;
    hec_collector_procfs.poll(world.collector, now_ns);
}

static void poll_next(void) {
    poll_at(world.now_ns + SECOND);
}

static void watch_root(void) {
    open_it();
    world.options.root = ROOT;
    poll_at(world.now_ns);
}

/* The command is there. */
static void start_root(void) {
    self_has("100");
    watch_root();
}

/* Again by the files of parents, as on a kernel without those of children. */
#define TEST_BOTH(name)                                                                                                \
    static void name(void **unit_state);                                                                               \
    __attribute__((constructor)) static void register_by_parents_##name(void) {                                        \
        unit_add(#name " (by parents)", name, set_up_without_children_files, tear_down);                               \
    }                                                                                                                  \
    TEST(name)

TEST_BOTH(members_are_the_command_its_descendants_and_orphans) {
    PUT(.pid = 60, .parent = SELF, .name = "helper", .own_ticks = 1000, .start = 95);
    self_has("60");
    PUT(.pid = 1, .name = "init", .own_ticks = 99999, .start = 1, .children = "50 900");
    PUT(.pid = 900, .parent = 1, .name = "other", .own_ticks = 99999, .start = 2);
    open_it(); /* a child that hec already has is a helper */
    PUT(.pid = ROOT, .parent = SELF, .name = "sh", .own_ticks = 1, .start = 200, .children = "101", .rss_pages = 10);
    PUT(.pid = 101, .parent = ROOT, .name = "py (x) y", .own_ticks = 20, .start = 201, .rss_pages = 20);
    PUT(.pid = 102, .parent = SELF, .name = "daemon", .own_ticks = 300, .start = 202, .children = "103",
        .rss_pages = 30);
    PUT(.pid = 103, .parent = 102, .name = "deep", .own_ticks = 4000, .state = 'D', .start = 203, .rss_pages = 40);
    self_has("60 100 102");
    world.options.root = ROOT;
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 4);
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 4321 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_RSS, 0), 100 * sysconf(_SC_PAGESIZE) / 1024);
    assert_int_equal(kept_value(HEC_TREE_THREADS_SLEEPING, 0), 3);
    assert_int_equal(kept_value(HEC_TREE_THREADS_DISK, 0), 1);
    assert_int_equal(kept_value(HEC_TREE_THREADS_RUNNING, 0), 0);
    assert_int_equal(kept.processes, 4);
    const struct hec_process *process = kept_process(101);
    assert_string_equal(process->name, "py (x) y");
    assert_int_equal(process->parent, ROOT);
    assert_int_equal(process->cpu_ms, 200);
    assert_int_equal(process->end_ns, -1);
    assert_int_equal(process->start_ns - kept_process(ROOT)->start_ns, TICK_MS * HEC_NS_PER_MS);
    assert_null(kept_process(60));
}

/* The kernel has that by time since boot. Where the two clocks part (the machine slept), a process that began "later" than it was seen
 * would not be who used a GPU before. */
TEST_BOTH(none_began_after_it_was_seen) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .start = INT32_MAX); /* 248 days after boot */
    start_root();
    assert_true(kept_process(ROOT)->start_ns < world.now_ns);
    assert_int_equal(kept_process(101)->start_ns, world.now_ns);
    poll_next();
    end(101);
    poll_next();
    assert_int_equal(kept_process(101)->start_ns, world.now_ns - 2 * SECOND);
    assert_int_equal(kept_process(101)->end_ns, world.now_ns);
}

/* Nor does it matter that they parted after hec began to look. */
static int64_t wall_of(void) {
    return 0;
}

static int64_t two_hours_before(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * SECOND + ts.tv_nsec - 7200 * SECOND;
}

TEST_BOTH(a_machine_may_sleep_meanwhile) {
    static const struct hec_clock_source later = {two_hours_before, wall_of};
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "101");
    start_root();
    hec_clock_set_source(&later);
    PUT(.pid = 101, .parent = ROOT, .start = 200);
    poll_next();
    hec_clock_set_source(NULL);
    int64_t apart_ns = kept_process(ROOT)->start_ns - kept_process(101)->start_ns;
    assert_in_range(apart_ns, 7199 * SECOND, 7201 * SECOND);
}

/* What another user runs below the user's processes (sudo, a service) is not the user's to see, nor what is below that. */
TEST_BOTH(processes_of_other_users_are_left_out) {
    static const uid_t owner = 1234;
    world.options.owner = &owner;
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "101 102 103 104", .own_ticks = 1);
    PUT(.pid = 101, .parent = ROOT, .start = 201, .own_ticks = 20);
    PUT(.pid = 102, .parent = ROOT, .start = 202, .own_ticks = 300, .children = "105");
    PUT(.pid = 103, .parent = ROOT, .start = 203, .own_ticks = 4000);
    PUT(.pid = 104, .parent = ROOT, .start = 204, .own_ticks = 50000);
    PUT(.pid = 105, .parent = 102, .start = 205, .own_ticks = 600000);
    folder_text("100/status", "Name:\tx\nUid:\t1234\t1234\t1234\t1234\nGid:\t0\n");
    folder_text("101/status", "Name:\tx\nUid:\t1234\t1234\t1234\t1234\nGid:\t0\n");
    folder_text("102/status", "Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t1234\n");
    folder_text("103/status", "Name:\tx\nUid:\t1234\t0\t0\t0\nGid:\t0\n");                /* setuid */
    folder_text("104/status", "Name:\tUid:\t1234\t1234\t1234\t1234\nUid:\t7\t7\t7\t7\n"); /* a name that pretends */
    folder_text("105/status", "Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\n");
    start_root();
    assert_int_equal(kept.processes, 2);
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 2);
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 21 * TICK_MS);
    assert_null(kept_process(102));
}

TEST_BOTH(a_process_appears_later) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200);
    start_root();
    for (int i = 0; i < 4; i++) /* long enough for others to be taken as known strangers */
        poll_next();
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 1);
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "150");
    PUT(.pid = 150, .parent = ROOT, .start = 300, .children = "90");
    PUT(.pid = 90, .parent = 150, .start = 301); /* pids have wrapped: a child below its parent */
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 3);
}

TEST_BOTH(a_waited_for_child_is_counted_once) {
    PUT(.pid = ROOT, .parent = SELF, .own_ticks = 10, .start = 200, .children = "101", .read = 1024);
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 100, .start = 201, .read = 10240);
    start_root();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 110 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_READ, 0), 11);
    /* it ended with 130 ticks and 20 KiB read, of which the last poll had not seen all; its parent has waited */
    end(101);
    PUT(.pid = ROOT, .parent = SELF, .own_ticks = 10, .waited_ticks = 130, .start = 200, .read = 21504);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 140 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_READ, 0), 21);
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 1);
    assert_int_equal(kept_process(101)->end_ns, world.now_ns);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 140 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_READ, 0), 21);
}

TEST_BOTH(a_child_that_nobody_waited_for_keeps_its_counts) {
    PUT(.pid = ROOT, .parent = SELF, .own_ticks = 10, .start = 200, .children = "101", .written = 1024);
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 100, .start = 201, .written = 10240);
    start_root();
    end(101); /* the parent ignores SIGCHLD: nothing is added to it */
    PUT(.pid = ROOT, .parent = SELF, .own_ticks = 11, .start = 200, .written = 1024);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 111 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_WRITTEN, 0), 11);
    /* and when the whole tree goes at once, with nobody left to ask */
    end(ROOT);
    self_has("");
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 111 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_WRITTEN, 0), 11);
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 0);
}

TEST_BOTH(a_chain_that_ended_together_is_counted_once) {
    PUT(.pid = ROOT, .parent = SELF, .own_ticks = 1, .start = 200, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 20, .waited_ticks = 5, .start = 201, .children = "102");
    PUT(.pid = 102, .parent = 101, .own_ticks = 300, .start = 202);
    start_root();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 326 * TICK_MS);
    end(101);
    end(102);
    PUT(.pid = ROOT, .parent = SELF, .own_ticks = 1, .waited_ticks = 325, .start = 200);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 326 * TICK_MS);
}

TEST_BOTH(a_zombie_is_not_live_but_counts) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 7, .start = 201, .rss_pages = 5);
    start_root();
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 9, .state = 'Z', .start = 201);
    poll_next();
    int64_t ended_ns = world.now_ns;
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 1);
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 9 * TICK_MS);
    assert_int_equal(kept_value(HEC_TREE_THREADS_SLEEPING, 0), 1);
    end(101);
    PUT(.pid = ROOT, .parent = SELF, .waited_ticks = 9, .start = 200);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 9 * TICK_MS);
    assert_int_equal(kept_process(101)->end_ns, ended_ns);
}

TEST_BOTH(a_pid_used_again_is_another_process) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 7, .start = 201);
    start_root();
    /* 101 ended and is now a stranger's; the recorded files are replaced, as an open file of /proc would not be */
    end(101);
    PUT(.pid = ROOT, .parent = SELF, .waited_ticks = 7, .start = 200);
    PUT(.pid = 101, .parent = 1, .own_ticks = 5000, .start = 900);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 1);
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 7 * TICK_MS);
    /* and then one of the tree's own again: a second record with the same pid */
    end(101);
    PUT(.pid = ROOT, .parent = SELF, .waited_ticks = 7, .start = 200, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .own_ticks = 3, .start = 950);
    poll_next();
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_CPU, 0), 10 * TICK_MS);
    assert_int_equal(kept.processes, 3);
}

TEST(children_of_other_threads_are_found) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .threads = 2);
    put_status("100/task/110/status", 'R', 5, 6);
    folder_text("100/task/110/children", "120 ");
    PUT(.pid = 120, .parent = ROOT, .start = 210);
    start_root();
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 2);
    assert_int_equal(kept_value(HEC_TREE_THREADS_RUNNING, 0), 1);
}

TEST_BOTH(switches_of_ended_threads_stay) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .threads = 2);
    put_status("100/task/110/status", 'S', 500, 60);
    start_root();
    assert_int_equal(kept_value(HEC_TREE_SWITCHES_VOLUNTARY, 0), 501);
    assert_int_equal(kept_value(HEC_TREE_SWITCHES_INVOLUNTARY, 0), 61);
    folder_delete("100/task/110");
    put_status("100/task/111/status", 'S', 10, 0);
    put_status("100/task/100/status", 'S', 2, 1);
    poll_next();
    assert_int_equal(kept_value(HEC_TREE_SWITCHES_VOLUNTARY, 0), 512);
    assert_int_equal(kept_value(HEC_TREE_SWITCHES_INVOLUNTARY, 0), 61);
}

TEST_BOTH(unreadable_io_is_missing_for_good) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .read = 4096, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .start = 201, .read = 4096);
    self_has("100");
    assert_int_equal(chmod(in_folder("101/io"), 0), 0);
    bool root = geteuid() == 0; /* to whom nothing is refused */
    if (root)
        assert_int_equal(seteuid(65534), 0);
    watch_root();
    end(101);
    poll_next();
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_true(kept_last(HEC_TREE_READ, 0).missing);
    assert_true(kept_last(HEC_TREE_WRITTEN, 0).missing);
    assert_true(kept_last(HEC_TREE_DISK_READ, 0).missing);
    assert_non_null(kept_event(HEC_EVENT_SOURCE_UNAVAILABLE, "I/O"));
    assert_int_equal(kept_process(101)->read_kib, -1);
    assert_int_equal(kept_process(ROOT)->read_kib, 4);
}

TEST_BOTH(a_kernel_without_io_accounting) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200);
    self_has("100");
    folder_delete("50/io");
    folder_delete("100/io");
    watch_root();
    assert_true(kept_last(HEC_TREE_READ, 0).missing);
    assert_non_null(kept_event(HEC_EVENT_SOURCE_UNAVAILABLE, "CONFIG_TASK_IO_ACCOUNTING"));
    assert_int_equal(kept_value(HEC_TREE_PROCESSES, 0), 1);
    assert_int_equal(kept_process(ROOT)->read_kib, -1);
}

TEST(host_cpu_and_memory) {
    open_it();
    poll_next();
    assert_int_equal(kept_reports(HEC_HOST_CPU_BUSY), 0); /* a share needs two readings */
    assert_int_equal(kept_value(HEC_HOST_MEM_AVAILABLE, 0), 4711);
    assert_int_equal(kept_value(HEC_SELF_RSS, 0), 250 * sysconf(_SC_PAGESIZE) / 1024);
    assert_true(kept_value(HEC_SELF_CPU, 0) > 0);
    world.options.root = ROOT;
    folder_text("stat", "cpu  1005 0 0 9004 0 0 0 0 0 0\n");
    poll_next();
    assert_int_equal(kept_reports(HEC_HOST_CPU_BUSY), 0); /* 9 ticks are too coarse */
    folder_text("stat", "cpu  1050 0 0 9100 40 0 0 10 0 0\n");
    poll_next();
    assert_int_equal(kept_value(HEC_HOST_CPU_BUSY, 0), 250);
    folder_text("stat", "cpu  1053 0 0 9101 40 0 0 10 0 0\n");
    folder_text("meminfo", "MemTotal: 9 kB\nMemFree: 1 kB\n");
    hec_collector_procfs.finish(world.collector, world.now_ns + SECOND / 10);
    assert_int_equal(kept_value(HEC_HOST_CPU_BUSY, 0), 750); /* at the end, coarse is better than nothing */
    assert_true(kept_last(HEC_HOST_MEM_AVAILABLE, 0).missing);
}

TEST(polls_are_dense_at_first) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200);
    self_has("100");
    open_it();
    int64_t before_ns = world.now_ns;
    assert_true(hec_collector_procfs.poll(world.collector, before_ns) > before_ns);
    assert_int_equal(kept_reports(HEC_TREE_CPU), 0); /* no command yet */
    world.options.root = ROOT;
    int64_t start_ns = before_ns + 7 * HEC_NS_PER_MS; /* woken before it was due */
    static const int64_t due_ms[] = {20, 50, 100, 200, 500, 1000, 2000, 3000};
    int64_t now_ns = start_ns;
    for (size_t i = 0; i < sizeof due_ms / sizeof due_ms[0]; i++) {
        int64_t next_ns = hec_collector_procfs.poll(world.collector, now_ns);
        assert_int_equal(next_ns - start_ns, due_ms[i] * HEC_NS_PER_MS);
        now_ns = next_ns;
    }
    assert_int_equal(kept_reports(HEC_TREE_CPU), 8);
    hec_collector_procfs.poll(world.collector, now_ns - 1); /* not due */
    assert_int_equal(kept_reports(HEC_TREE_CPU), 8);
    now_ns = start_ns + 7300 * HEC_NS_PER_MS; /* late: the rhythm is kept, nothing is made up for */
    assert_int_equal(hec_collector_procfs.poll(world.collector, now_ns) - start_ns, 8 * SECOND);
}

TEST(many_threads_are_looked_at_less_often_and_it_is_said) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .threads = 90);
    start_root();
    for (int i = 0; i < 8; i++)
        poll_next();
    assert_int_equal(kept_reports(HEC_TREE_CPU), 9);
    assert_int_equal(kept_reports(HEC_TREE_THREADS_RUNNING), 3); /* at first, then every fourth time */
    assert_non_null(kept_event(HEC_EVENT_NOTE, "only every 4 s"));
    assert_int_equal(kept.events, 1);
}

TEST_BOTH(survivors_are_named) {
    PUT(.pid = ROOT, .parent = SELF, .start = 200, .children = "101");
    PUT(.pid = 101, .parent = ROOT, .name = "daemon", .start = 201);
    start_root();
    end(ROOT);
    PUT(.pid = 101, .parent = SELF, .name = "daemon", .start = 201);
    self_has("101");
    hec_collector_procfs.finish(world.collector, world.now_ns + SECOND);
    assert_non_null(
        kept_event(HEC_EVENT_SURVIVORS, "1 process of the command still running when it ended: daemon (101)"));
    assert_int_equal(kept_process(101)->end_ns, -1);
    assert_int_equal(kept_process(101)->parent, ROOT); /* where it came from, not who adopted it */
    assert_string_equal(kept_meta("tree_processes_seen"), "2");
}

TEST(no_proc_is_a_sentence) {
    struct hec_why why;
    world.options.proc_path = "/nonexistent/proc";
    assert_int_equal(hec_collector_procfs.open(&world.options, &keeping, &world.collector, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "/nonexistent/proc cannot be opened"));
    world.options.proc_path = HEC_SOURCE_DIR; /* a folder, but no proc */
    assert_int_equal(hec_collector_procfs.open(&world.options, &keeping, &world.collector, &why), HEC_ERR_UNSUPPORTED);
    assert_null(world.collector);
}

EACH_TEST(set_up, tear_down)
