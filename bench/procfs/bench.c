/* What observing a process tree costs: CPU time a poll, for PROCESSES processes of THREADS threads each.
 * usage: bench [PROCESSES [THREADS [POLLS]]]   (defaults 64 4 300) */
#include "base/clock.h"
#include "observe/collector.h"
#include "observe/procfs/tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t thread_cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

static void *sleeper(void *unused) {
    for (;;)
        pause();
    return unused;
}

/* The root forks the others and waits; everything ends with it. */
static void be_the_tree(int processes, int threads, int ready) {
    for (int i = 0; i < processes; i++) {
        pid_t pid = i ? fork() : 0;
        if (pid > 0)
            continue;
        if (i)
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int t = 1; t < threads; t++) {
            pthread_t thread;
            pthread_create(&thread, NULL, sleeper, NULL);
        }
        if (write(ready, "r", 1) != 1)
            _exit(1);
        if (i)
            sleeper(NULL);
    }
    sleeper(NULL);
}

static void no_sample(void *c, enum hec_metric m, int32_t s, int64_t t, int64_t v) {
    (void)c, (void)m, (void)s, (void)t, (void)v;
}
static void no_missing(void *c, enum hec_metric m, int32_t s, int64_t t) {
    (void)c, (void)m, (void)s, (void)t;
}
static void no_event(void *c, enum hec_event_kind k, int d, int64_t t, const char *text) {
    (void)c, (void)k, (void)d, (void)t, (void)text;
}
static void no_process(void *c, const struct hec_process *p) {
    (void)c, (void)p;
}
static void no_meta(void *c, const char *k, const char *v) {
    (void)c, (void)k, (void)v;
}

static double mean_us(struct hec_tree *tree, pid_t root, bool look, int polls) {
    int64_t start = thread_cpu_ns();
    for (int i = 0; i < polls; i++)
        hec_tree_update(tree, root, hec_clock_mono_ns(), look, NULL);
    return (double)(thread_cpu_ns() - start) / polls / 1e3;
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 64;
    int threads = argc > 2 ? atoi(argv[2]) : 4;
    int polls = argc > 3 ? atoi(argv[3]) : 300;
    int ready[2];
    if (processes < 1 || threads < 1 || polls < 1 || pipe(ready) != 0)
        return 2;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct hec_observe_options options = {0};
    const struct hec_sink sink = {
        .sample = no_sample, .missing = no_missing, .event = no_event, .process = no_process, .meta = no_meta};
    void *self;
    struct hec_why why;
    if (hec_collector_procfs.open(&options, &sink, &self, &why) != 0) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    pid_t root = fork();
    if (root == 0)
        be_the_tree(processes, threads, ready[1]);
    close(ready[1]); /* so that a child that dies is an end of file, not a hang */
    char byte;
    for (int i = 0; i < processes; i++)
        if (read(ready[0], &byte, 1) != 1)
            return 1;

    options.root = root;
    int64_t now = hec_clock_mono_ns();
    int64_t start = thread_cpu_ns();
    for (int i = 0; i < polls; i++)
        now = hec_collector_procfs.poll(self, now);
    double collector_us = (double)(thread_cpu_ns() - start) / polls / 1e3;

    struct hec_tree tree;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    hec_tree_init(&tree, proc, getpid(), true);
    mean_us(&tree, root, true, 1);
    double light_us = mean_us(&tree, root, false, polls);
    double look_us = mean_us(&tree, root, true, polls) - light_us;
    tree.has_children_files = false;
    mean_us(&tree, root, false, 3);
    double scan_us = mean_us(&tree, root, false, polls);

    printf(
        "{\"processes\": %lld, \"threads\": %lld, \"poll_us\": %.0f, \"tree_us\": %.0f, \"look_at_threads_us\": %.0f, "
        "\"tree_without_children_files_us\": %.0f}\n",
        (long long)tree.processes, (long long)tree.threads, collector_us, light_us, look_us, scan_us);
    hec_tree_free(&tree);
    hec_collector_procfs.close(self);
    kill(root, SIGKILL);
    while (wait(NULL) > 0)
        ;
    return 0;
}
