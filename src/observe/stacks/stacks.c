#include "observe/stacks/stacks.h"

#include "observe/collector.h"
#include "observe/processes.h"
#include "observe/reporter.h"
#include "observe/stacks/sampler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENTS_MAX 20
#define YAMA "/proc/sys/kernel/yama/ptrace_scope"
#define LOOK_FIRST_NS                                                                                                  \
    (5 * HEC_NS_PER_MS) /* how often at first, and at last, it is looked for an interpreter in a process */
#define LOOK_LAST_NS (5 * HEC_NS_PER_S)
#define LOOK_SHARE 8                          /* in between: after so much of the time since it came */
#define DEVICE_FIRST_NS (250 * HEC_NS_PER_MS) /* the same for the driver of a GPU, in one that is readable */
#define DEVICE_LAST_NS (60 * HEC_NS_PER_S)
#define COST_FIRST_NS 10000
#define SLACK_NS 1000000UL              /* a wake-up that another timer brings along costs less */
#define NOBODY_NS (200 * HEC_NS_PER_MS) /* no Python is known: whether a process has come */

struct looked_into {
    struct hec_process_entry entry;
    bool readable, refused, listed;
    bool uses_device; /* and is no worker of one that does: what was forked with the driver loaded cannot use it */
    int64_t since_ns; /* it came, or its program */
    int64_t look_ns, wait_ns; /* when it is looked for an interpreter, or for the driver; between looks for that */
    int64_t pages;            /* of its address space at the last look for the driver, which is a mapping more */
    struct hec_stacks_sampler sampler;
};

struct stacks {
    const struct hec_observe_options *options;
    struct hec_reporter reporter;
    struct hec_stacks_out out;
    struct hec_python_scratch scratch;
    struct looked_into *processes[HEC_PROCESS_TABLE_MAX];
    struct hec_process_entry entries[HEC_PROCESS_TABLE_MAX];
    int count, turn;
    uint64_t seen;
    pid_t root;
    int64_t flushed_ns, opened; /* opened: processes that were readable */
    double cost_ns;             /* of one reading, the median */
};

static int stacks_open(const struct hec_observe_options *options, const struct hec_sink *sink, void **self,
                       struct hec_why *why) {
    struct stacks *s = calloc(1, sizeof *s);
    if (!s)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory for stacks");
    prctl(PR_SET_TIMERSLACK, SLACK_NS); /* of this lane's thread */
    s->options = options;
    s->out.sink = sink;
    s->cost_ns = COST_FIRST_NS;
    s->reporter = (struct hec_reporter){sink, EVENTS_MAX, "stacks"};
    *self = s;
    return HEC_OK;
}

/* ---- which processes ---- */

static void forget(struct stacks *s, int i) {
    hec_stacks_sampler_free(&s->processes[i]->sampler);
    free(s->processes[i]);
    s->processes[i] = s->processes[--s->count];
}

static struct looked_into *find(struct stacks *s, pid_t pid) {
    for (int i = 0; i < s->count; i++)
        if (s->processes[i]->entry.pid == pid)
            return s->processes[i];
    return NULL;
}

static struct looked_into *add(struct stacks *s, const struct hec_process_entry *entry, int64_t now_ns) {
    struct looked_into *p = s->count < HEC_PROCESS_TABLE_MAX ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->entry = *entry;
    p->look_ns = p->since_ns = now_ns;
    hec_stacks_sampler_init(&p->sampler, s->out.sink);
    return s->processes[s->count++] = p;
}

static void decide(struct stacks *s, const struct looked_into *p, enum hec_stacks_from stacks) {
    if (s->options->processes)
        hec_process_table_set_stacks(s->options->processes, p->entry.pid, stacks);
}

/* The command was looked into before others had listed it, and what was decided of it came to nothing. */
static void decide_again(struct stacks *s, const struct looked_into *p) {
    if (p->entry.stacks == HEC_STACKS_UNKNOWN && (p->readable || p->refused))
        decide(s, p, p->readable ? HEC_STACKS_OUTSIDE : HEC_STACKS_INSIDE);
}

static void refresh(struct stacks *s, int64_t now_ns) {
    struct hec_process_table *table = s->options->processes;
    pid_t root = __atomic_load_n(&s->options->root, __ATOMIC_ACQUIRE);
    if (root && !s->root && !find(s, root))
        add(s, &(struct hec_process_entry){.pid = root}, now_ns);
    s->root = root;
    int count = table ? hec_process_table_list(table, &s->seen, s->entries) : -1;
    if (count < 0)
        return;
    for (int i = 0; i < s->count; i++)
        s->processes[i]->listed = false;
    for (int i = 0; i < count; i++) {
        struct looked_into *p = find(s, s->entries[i].pid);
        if (p && p->entry.start_ns && p->entry.start_ns != s->entries[i].start_ns)
            p->entry.pid = 0; /* the number was used again */
        if (!p || !p->entry.pid)
            p = add(s, &s->entries[i], now_ns);
        if (p) {
            p->entry = s->entries[i];
            p->listed = true;
            decide_again(s, p);
        }
    }
    for (int i = s->count; i-- > 0;)
        if (!s->processes[i]->listed && s->processes[i]->entry.start_ns)
            forget(s, i);
}

/* ---- whether they can be read ---- */

/* Forked from a process that has the driver, and still that program: ranks are started by one that has it, too. */
static bool is_worker(struct stacks *s, const struct looked_into *p) {
    const struct looked_into *parent = find(s, p->entry.parent);
    uint64_t stack = p->sampler.process.stack;
    return parent && stack && stack == parent->sampler.process.stack &&
           (parent->uses_device ||
            hec_python_process_uses_device(parent->entry.pid)); /* it may not have been seen yet */
}

/* Whether it has loaded the driver meanwhile. */
static void look_for_driver(struct stacks *s, struct looked_into *p, int64_t now_ns) {
    int64_t pages = hec_python_process_pages(p->entry.pid);
    bool grown = pages != p->pages || pages < 0;
    p->pages = pages;
    if (p->sampler.process.uses_device || (grown && hec_python_process_uses_device(p->entry.pid))) {
        p->sampler.process.uses_device = true;
        p->uses_device = !is_worker(s, p);
        p->look_ns = INT64_MAX;
    } else {
        p->wait_ns = 2 * p->wait_ns < DEVICE_LAST_NS ? 2 * p->wait_ns : DEVICE_LAST_NS;
        p->look_ns = now_ns + p->wait_ns;
    }
}

static void look(struct stacks *s, struct looked_into *p, int64_t now_ns) {
    struct hec_why why = {""};
    p->pages = hec_python_process_pages(p->entry.pid);
    int err = hec_python_process_open(p->entry.pid, &p->sampler.process, &why);
    int64_t wait_ns = hec_later((now_ns - p->since_ns) / LOOK_SHARE, LOOK_FIRST_NS);
    p->look_ns = now_ns + (wait_ns < LOOK_LAST_NS ? wait_ns : LOOK_LAST_NS);
    p->readable = err == HEC_OK;
    if (p->readable) {
        s->opened++;
        p->wait_ns = DEVICE_FIRST_NS / 2;
        look_for_driver(s, p, now_ns);
        decide(s, p, HEC_STACKS_OUTSIDE);
    } else if ((err == HEC_ERR_PERMISSION || err == HEC_ERR_UNSUPPORTED) && !p->refused) {
        p->refused = true;
        decide(s, p, HEC_STACKS_INSIDE);
        hec_reporter_event(&s->reporter, HEC_EVENT_NOTE, now_ns, "stacks from outside: %s", why.text);
    }
}

/* Another program runs in the process, or it ends. */
static void lose(struct looked_into *p, const struct hec_sink *sink, int64_t now_ns) {
    hec_stacks_sampler_free(&p->sampler);
    hec_stacks_sampler_init(&p->sampler, sink);
    p->readable = p->uses_device = false;
    p->look_ns = p->since_ns = now_ns;
}

/* ---- reading ---- */

static void read_one(struct stacks *s, struct looked_into *p, int64_t now_ns, int64_t period_ns) {
    if (!hec_stacks_sample(&p->sampler, now_ns, period_ns, &s->scratch, &s->out))
        lose(p, s->out.sink, now_ns);
}

/* Those that use a device each time, the others in turn. */
static bool read_all(struct stacks *s, int64_t now_ns, int64_t period_ns) {
    bool any = false;
    int others = 0;
    for (int i = 0; i < s->count; i++) {
        struct looked_into *p = s->processes[i];
        if (now_ns >= p->look_ns && p->readable)
            look_for_driver(s, p, now_ns);
        else if (now_ns >= p->look_ns)
            look(s, p, now_ns);
        any |= p->readable;
        if (p->readable && p->uses_device)
            read_one(s, p, now_ns, period_ns);
        others += p->readable && !p->uses_device;
    }
    if (others) {
        int turn = s->turn++ % others;
        for (int i = 0; i < s->count; i++)
            if (s->processes[i]->readable && !s->processes[i]->uses_device && turn-- == 0) {
                read_one(s, s->processes[i], now_ns, period_ns);
                break;
            }
    }
    return any;
}

static int64_t next_look(const struct stacks *s, int64_t latest_ns) {
    for (int i = 0; i < s->count; i++)
        if (s->processes[i]->look_ns < latest_ns)
            latest_ns = s->processes[i]->look_ns;
    return latest_ns;
}

/* Towards the median: the mean would hold what others did while this thread was preempted. */
static void learn_cost(struct stacks *s, int64_t took_ns) {
    double step = s->cost_ns / 64 + 50;
    s->cost_ns += (double)took_ns > s->cost_ns ? step : -step;
    s->cost_ns = s->cost_ns > 0 ? s->cost_ns : 0;
}

static int64_t stacks_poll(void *self, int64_t now_ns) {
    struct stacks *s = self;
    double period = (s->cost_ns + HEC_STACKS_WAKE_NS) / HEC_STACKS_COST_MAX;
    int64_t period_ns = period > (double)HEC_STACKS_PERIOD_NS ? (int64_t)period : HEC_STACKS_PERIOD_NS;
    refresh(s, now_ns);
    bool any = read_all(s, now_ns, period_ns);
    if (now_ns - s->flushed_ns >= 100 * HEC_NS_PER_MS) {
        hec_stacks_flush(&s->out);
        s->flushed_ns = now_ns;
    }
    if (any)
        learn_cost(s, hec_clock_mono_ns() - now_ns);
    return any ? now_ns + period_ns : next_look(s, now_ns + NOBODY_NS);
}

static void stacks_finish(void *self, int64_t end_ns) {
    struct stacks *s = self;
    (void)end_ns;
    hec_stacks_flush(&s->out);
    if (s->opened)
        hec_sink_meta(s->out.sink, "stacks.outside", "%" PRId64 " samples, %" PRId64 " dropped", s->out.counts.samples,
                      s->out.counts.torn);
}

static void stacks_close(void *self) {
    struct stacks *s = self;
    while (s->count > 0)
        forget(s, s->count - 1);
    free(s);
}

/* What keeps hec from reading the memory of what it starts: a filter of system calls, or Yama. */
static void stacks_check(const struct hec_observe_options *options, struct hec_check_list *list) {
    char scope[8] = "0", byte = 1, copy;
    const struct iovec from = {&byte, 1}, to = {&copy, 1};
    (void)options;
    FILE *file = fopen(YAMA, "re");
    if (file) {
        if (!fgets(scope, sizeof scope, file))
            scope[0] = '0';
        fclose(file);
    }
    bool reads = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
    if (reads && (scope[0] < '2' || (scope[0] == '2' && geteuid() == 0))) {
        hec_check_add(list, "stacks", "from outside", HEC_CHECK_OK,
                      "of CPython 3.%d to 3.%d, in every thread and process", HEC_PYTHON_MINOR_FIRST,
                      HEC_PYTHON_MINOR_LAST);
        return;
    }
    struct hec_check *check = hec_check_add(
        list, "stacks", "from outside", HEC_CHECK_MISSING, "%s: the hooks sample the main thread instead",
        reads ? "kernel.yama.ptrace_scope forbids to read a child's memory" : "process_vm_readv is forbidden here");
    snprintf(check->remedy, sizeof check->remedy, "%s",
             reads ? "CAP_SYS_PTRACE, or ptrace_scope 1" : "a container whose seccomp profile allows it");
}

const struct hec_collector hec_collector_stacks = {
    .name = "stacks",
    .lane = HEC_LANE_STACKS,
    .open = stacks_open,
    .poll = stacks_poll,
    .finish = stacks_finish,
    .close = stacks_close,
    .check = stacks_check,
};
