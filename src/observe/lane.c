#include "observe/lane.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t thread_cpu_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * HEC_NS_PER_S + ts.tv_nsec;
}

void hec_lane_open(struct hec_lane_set *set, enum hec_lane lane, const struct hec_collector *const *all,
                   const struct hec_observe_options *options, const struct hec_sink *sink) {
    set->count = 0;
    for (; *all && set->count < HEC_LANE_COLLECTORS_MAX; all++) {
        if ((*all)->lane != lane)
            continue;
        struct hec_why why = {""};
        void *self = NULL;
        int64_t cpu_ns = thread_cpu_ns();
        int err = (*all)->open(options, sink, &self, &why);
        if (err < 0) {
            char text[sizeof why.text + 64];
            snprintf(text, sizeof text, "%s: %s", (*all)->name, why.text[0] ? why.text : hec_err_text(err));
            sink->event(sink->context, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, hec_clock_mono_ns(), text);
            continue;
        }
        set->collector[set->count] = *all;
        set->self[set->count] = self;
        set->due_ns[set->count] = 0;
        set->cpu_ns[set->count] = thread_cpu_ns() - cpu_ns;
        set->count++;
    }
}

int64_t hec_lane_poll(struct hec_lane_set *set, int64_t now_ns) {
    int64_t next = INT64_MAX;
    for (int i = 0; i < set->count; i++) {
        if (set->due_ns[i] <= now_ns) {
            int64_t cpu_ns = thread_cpu_ns();
            set->due_ns[i] = set->collector[i]->poll(set->self[i], now_ns);
            set->cpu_ns[i] += thread_cpu_ns() - cpu_ns;
        }
        if (set->due_ns[i] < next)
            next = set->due_ns[i];
    }
    return next;
}

void hec_lane_wake(struct hec_lane_set *set) {
    for (int i = 0; i < set->count; i++)
        set->due_ns[i] = 0;
}

void hec_lane_finish(struct hec_lane_set *set, const struct hec_sink *sink, int64_t end_ns) {
    for (int i = 0; i < set->count; i++) {
        int64_t cpu_ns = thread_cpu_ns();
        set->collector[i]->finish(set->self[i], end_ns);
        cpu_ns = set->cpu_ns[i] + thread_cpu_ns() - cpu_ns;
        char key[64], value[32];
        snprintf(key, sizeof key, "self_cpu_seconds.%s", set->collector[i]->name);
        snprintf(value, sizeof value, "%.6f", (double)cpu_ns / (double)HEC_NS_PER_S);
        sink->meta(sink->context, key, value);
    }
}

void hec_lane_close(struct hec_lane_set *set) {
    for (int i = 0; i < set->count; i++)
        set->collector[i]->close(set->self[i]);
    set->count = 0;
}
