#include "launch/guard_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trace.h"
#include "launch/facts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void hec_guard_watch_begin(struct hec_guard_watch *watch, int mode, bool simulated) {
    struct hec_guard guard;
    struct hec_why why;
    char words[200];
    memset(watch, 0, sizeof *watch);
    hec_guard_driver(simulated, watch->driver);
    if (mode == HEC_TRACE_OFF)
        return;
    if (hec_guard_read(&guard, &why) < 0)
        hec_info("whether a program died with CUPTI attached is not known: %s", why.text);
    const struct hec_guard_entry *entry = hec_guard_find(&guard, watch->driver);
    if (!entry)
        return;
    hec_guard_words(entry, words);
    if (mode == HEC_TRACE_AUTO)
        snprintf(watch->out, sizeof watch->out, "CUPTI stays out: %.180s; " HEC_GUARD_FORGET, words);
    else
        hec_warn("%s; --trace=auto would stay without CUPTI", words);
}

/* Whether the process may have died of CUPTI: it was attached. In full that is so from cuInit on, in the other modes from
 * the first window; a program of under a second may die before it could report one. */
static bool may_have_died_of_it(const struct hec_tracer *tracer) {
    bool from_the_start = tracer->mode == HEC_TRACE_FULL && !tracer->why[0] && !tracer->holder[0];
    return tracer->cupti_version > 0 && (from_the_start || tracer->windows > 0 || tracer->traced_ns > 0);
}

/* The executable, not the name of the main thread: PyTorch calls that pt_main_thread. */
static void name_of(pid_t pid, char name[64]) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(link, path, sizeof path);
    name[0] = '\0';
    if (length <= 0)
        return;
    const char *slash = memrchr(path, '/', (size_t)length), *from = slash ? slash + 1 : path;
    hec_text_clean(name, 64, from, (size_t)(path + length - from), true);
}

void hec_guard_watch_tracer(void *context, const struct hec_tracer *tracer) {
    struct hec_guard_watch *watch = context;
    pid_t root = __atomic_load_n(&watch->root, __ATOMIC_ACQUIRE);
    watch->traced = watch->traced || tracer->driver_version > 0; /* a row that nobody used CUDA has none */
    bool known = watch->attached && watch->tracer.pid == tracer->pid;
    if (!may_have_died_of_it(tracer)) {
        watch->attached = watch->attached && !known; /* it runs another program now, which has no CUPTI */
        return;
    }
    if (watch->attached && !known && watch->tracer.pid == root)
        return;
    if (!known)
        name_of(tracer->pid, watch->program);
    watch->attached = true;
    watch->tracer = *tracer;
}

static void report(const struct hec_sink *sink, int64_t t_ns, const char *text) {
    sink->event(sink->context, HEC_EVENT_TRACE_GUARD, HEC_DEVICE_NONE, t_ns, text);
}

static int remember(const struct hec_guard_entry *entry, struct hec_why *why) {
    struct hec_guard guard;
    int err = hec_guard_read(&guard, why);
    if (err == HEC_ERR_VERSION) /* a newer HEC's memory is not replaced; a damaged one is */
        return err;
    hec_guard_add(&guard, entry);
    return hec_guard_write(&guard, why);
}

void hec_guard_watch_end(const struct hec_guard_watch *watch, const struct hec_child *child, const char *command,
                         const struct hec_sink *sink) {
    if (watch->out[0] && watch->traced)
        report(sink, child->start_ns, watch->out);
    /* 128+N: a shell or a launcher passes on how its child, the traced process, ended */
    int signal = child->exit_code - 128;
    if (!watch->attached || !hec_guard_is_crash(signal))
        return;
    const struct hec_tracer *tracer = &watch->tracer;
    const char *slash = strrchr(command, '/');
    struct hec_guard_entry entry = {
        .cuda = tracer->driver_version, .cupti = tracer->cupti_version, .mode = tracer->mode, .signal = signal};
    memcpy(entry.driver, watch->driver, sizeof entry.driver);
    memcpy(entry.program, watch->program, sizeof entry.program);
    if (!entry.program[0]) {
        command = slash ? slash + 1 : command;
        hec_text_clean(entry.program, sizeof entry.program, command, strlen(command), true);
    }
    hec_text_clean(entry.library, sizeof entry.library, tracer->library, strlen(tracer->library), true);
    hec_facts_wall_time(hec_clock_wall_ns(), entry.date);
    struct hec_why why;
    char text[700];
    int err = remember(&entry, &why);
    int used = snprintf(text, sizeof text, "the command %s signal %d with CUPTI attached to %s: ",
                        child->signal ? "died by" : "ended with the status of", signal, entry.program);
    if (err < 0)
        snprintf(text + used, sizeof text - (size_t)used, "not remembered: %s", why.text);
    else
        snprintf(text + used, sizeof text - (size_t)used,
                 "remembered, --trace=auto stays without CUPTI from now on; " HEC_GUARD_FORGET);
    report(sink, child->end_ns, text);
}
