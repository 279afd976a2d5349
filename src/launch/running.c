#include "launch/running.h"

#include "base/clock.h"
#include "base/trace.h"
#include "launch/facts.h"
#include "launch/run_file.h"
#include "observe/intake.h"
#include "observe/recorder.h"
#include "store/writer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Nobody waits for it to begin. */
#define READY_NS (5 * HEC_NS_PER_S)
#define STOP_NS (3 * HEC_NS_PER_S)
#define TICK_MS 100
#define ENVIRONMENT_MAX (1 << 17)

/* CUDA_VISIBLE_DEVICES of a process, in text; NULL: it has none, or it is not for us to know. */
static const char *visible_devices(pid_t pid, char text[ENVIRONMENT_MAX]) {
    static const char name[] = "CUDA_VISIBLE_DEVICES=";
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    size_t length = 0;
    if (fd < 0)
        return NULL;
    for (ssize_t got;
         length < ENVIRONMENT_MAX - 1 && (got = read(fd, text + length, ENVIRONMENT_MAX - 1 - length)) > 0;)
        length += (size_t)got;
    close(fd);
    text[length] = '\0';
    for (const char *at = text; at < text + length; at += strlen(at) + 1)
        if (strncmp(at, name, sizeof name - 1) == 0)
            return at + sizeof name - 1;
    return NULL;
}

/* Is there time left, and whoever asked for it has not enough? */
static bool goes_on(const struct hec_running_options *options, int64_t now_ns, int64_t until_ns) {
    return now_ns < until_ns && !(options->stop && *options->stop);
}

/* Or until it has ended. */
static void wait_attached(const struct hec_running_options *options, int64_t until_ns) {
    int64_t now_ns;
    while (goes_on(options, now_ns = hec_clock_mono_ns(), until_ns) &&
           !hec_intake_process_ended(options->root, options->pid_fd)) {
        int64_t left_ms = (until_ns - now_ns) / HEC_NS_PER_MS + 1;
        poll(NULL, 0, left_ms < TICK_MS ? (int)left_ms : TICK_MS);
    }
}

/* Or until all have ended. */
static void wait_for_end(const struct hec_running_options *options, int64_t until_ns) {
    int64_t now_ns;
    struct pollfd *process = calloc((size_t)options->ring_count + 1, sizeof *process);
    for (int i = 0; process && i < options->ring_count; i++)
        process[i] = (struct pollfd){.fd = hec_intake_process(options->rings[i].pid), .events = POLLIN};
    while (goes_on(options, now_ns = hec_clock_mono_ns(), until_ns)) {
        int64_t left_ms = (until_ns - now_ns) / HEC_NS_PER_MS + 1;
        int alive = 0;
        poll(NULL, 0, left_ms < TICK_MS ? (int)left_ms : TICK_MS);
        for (int i = 0; process && i < options->ring_count; i++)
            alive += !hec_intake_process_ended(options->rings[i].pid, process[i].fd);
        if (process && options->ring_count > 0 && alive == 0)
            break;
    }
    for (int i = 0; process && i < options->ring_count; i++)
        if (process[i].fd >= 0)
            close(process[i].fd);
    free(process);
}

static void describe(const struct hec_running_options *options, const struct hec_sink *sink, int64_t start_ns) {
    char started[40];
    sink->meta(sink->context, "command", options->job);
    hec_facts_machine(sink);
    hec_facts_wall_time(hec_clock_wall_ns(), started);
    hec_sink_meta(sink, "started", "%s", started);
    if (!options->attached)
        hec_sink_meta(sink, "window", "1");
    if (options->simulated)
        hec_sink_meta(sink, "simulated", "%s", options->simulated);
    hec_sink_meta(sink, "start_mono_ns", "%lld", (long long)start_ns);
    hec_facts_start(sink, start_ns);
}

static void conclude(const struct hec_running_options *options, const struct hec_sink *sink, int64_t duration_ns) {
    struct rusage self;
    getrusage(RUSAGE_SELF, &self);
    hec_sink_meta(sink, "duration_ns", "%lld", (long long)duration_ns);
    bool ended = options->attached && hec_intake_process_ended(options->root, options->pid_fd);
    hec_sink_meta(sink, "stopped", "%s", ended ? "ended" : options->attached ? "attached" : "window");
    hec_sink_meta(sink, "self_cpu_seconds", "%.6f",
                  (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
                      (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6);
    hec_sink_meta(sink, "self_rss_max_kib", "%ld", self.ru_maxrss);
    hec_sink_meta(sink, "complete", "1");
}

int hec_running_record(const struct hec_running_options *options, struct hec_image *image, double *seconds,
                       struct hec_why *why) {
    static char environment[ENVIRONMENT_MAX]; /* an abandoned lane may still read these two */
    static struct hec_observe_options observe;
    struct hec_recorder *recorder;
    struct hec_flusher *flusher = NULL;
    struct hec_writer *writer;
    struct hec_why ignored;
    int err = hec_writer_create_in_memory(hec_clock_mono_ns(), &writer, why);
    if (err < 0)
        return err;
    const struct hec_sink *sink = hec_writer_sink(writer);
    observe = (struct hec_observe_options){.owner = options->owner,
                                           .nvml_path = options->nvml_path,
                                           .rings = options->rings,
                                           .trace_mode = HEC_TRACE_AUTO,
                                           .visible_devices = visible_devices(options->root, environment)};
    if ((err = hec_recorder_start(hec_collectors_of(options->attached ? HEC_OBSERVER_ATTACHED : HEC_OBSERVER_WINDOW),
                                  &observe, sink, &recorder, why)) < 0) {
        hec_writer_close(writer, NULL, NULL);
        return err;
    }
    hec_recorder_wait_ready(recorder, READY_NS);
    int64_t start_ns = hec_clock_mono_ns();
    hec_writer_set_origin(writer, start_ns);
    __atomic_store_n(&observe.ring_count, options->ring_count, __ATOMIC_RELEASE);
    hec_recorder_set_root(recorder, options->root);
    describe(options, sink, start_ns);
    hec_flusher_start(writer, &flusher, &ignored);
    int64_t until_ns = start_ns + (int64_t)(options->seconds * (double)HEC_NS_PER_S);
    if (options->attached)
        wait_attached(options, until_ns);
    else
        wait_for_end(options, until_ns);
    int64_t end_ns = hec_clock_mono_ns();
    hec_recorder_stop(recorder, end_ns, STOP_NS);
    if (flusher)
        hec_flusher_stop(flusher);
    conclude(options, sink, end_ns - start_ns);
    *seconds = (double)(end_ns - start_ns) / (double)HEC_NS_PER_S;
    err = hec_writer_finish(writer, why);
    if (err == HEC_OK)
        err = hec_writer_image(writer, image, why);
    hec_writer_close(writer, NULL, NULL);
    return err;
}
