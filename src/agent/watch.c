#include "agent/watch.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* to open a driver, until it is taken to hang: eight devices that were asleep take 10 s */
#define SLOW_NS (60 * HEC_NS_PER_S)
#define STOP_WAIT_NS (2 * HEC_NS_PER_S)
#define RETRY_MIN_NS (1 * HEC_NS_PER_S)
#define RETRY_MAX_NS (300 * HEC_NS_PER_S)
#define ABANDONED_MAX 8 /* threads that hang in a driver; then it is left alone */

static void start(struct hec_watch *watch) {
    struct hec_why why;
    hec_node_restart(watch->node);
    watch->started_ns = hec_clock_mono_ns();
    if (hec_recorder_start(watch->collectors, &watch->observe, &watch->node->sink, &watch->recorder, &why) < 0) {
        watch->recorder = NULL;
        hec_warn("%s", why.text);
    }
}

void hec_watch_start(struct hec_watch *watch, struct hec_node *node, const struct hec_collector *const *collectors,
                     const char *nvml_path) {
    *watch = (struct hec_watch){.node = node, .collectors = collectors};
    watch->observe =
        (struct hec_observe_options){.nvml_path = nvml_path, .interval_ns = node->interval_ns, .rounds = &node->rounds};
    start(watch);
    watch->retry_ns = hec_clock_mono_ns() + RETRY_MIN_NS;
}

void hec_watch_stop(struct hec_watch *watch) {
    if (!watch->recorder)
        return;
    watch->abandoned += hec_recorder_stop(watch->recorder, hec_clock_mono_ns(), STOP_WAIT_NS);
    watch->recorder = NULL;
    hec_node_recorded(watch->node);
}

static void tell_trouble(struct hec_watch *watch) {
    char now[sizeof watch->trouble] = "";
    struct hec_node *node = watch->node;
    pthread_mutex_lock(&node->lock);
    if (!node->driver)
        snprintf(now, sizeof now, "%s", node->trouble);
    for (int i = 0; i < HEC_DEVICE_MAX && !now[0]; i++)
        if (node->devices[i] && !node->devices[i]->up)
            snprintf(now, sizeof now, "GPU %d does not answer", i % HEC_VENDOR_DEVICES_MAX);
    pthread_mutex_unlock(&node->lock);
    if (now[0] && strcmp(now, watch->trouble) != 0)
        hec_warn("%s; tried again from time to time", now);
    else if (!now[0] && watch->trouble[0])
        hec_info("every GPU answers again");
    memcpy(watch->trouble, now, sizeof now);
}

/* A lane that hangs in a driver is given up at each try, so there are few of those. */
bool hec_watch_poll(struct hec_watch *watch, int64_t now_ns) {
    bool troubled = hec_node_troubled(watch->node);
    if (!troubled) {
        watch->backoff_ns = 0;
        watch->retry_ns = now_ns + RETRY_MIN_NS;
    } else if (now_ns < watch->retry_ns) {
        return false;
    }
    tell_trouble(watch);
    if (!troubled || watch->abandoned >= ABANDONED_MAX)
        return true;
    if (watch->recorder && now_ns - watch->started_ns < SLOW_NS && hec_recorder_wait_ready(watch->recorder, 0) > 0)
        return true; /* the driver is still being opened */
    hec_watch_stop(watch);
    start(watch);
    watch->backoff_ns = watch->backoff_ns ? 2 * watch->backoff_ns : RETRY_MIN_NS;
    if (watch->backoff_ns > RETRY_MAX_NS)
        watch->backoff_ns = RETRY_MAX_NS;
    watch->retry_ns = hec_clock_mono_ns() + watch->backoff_ns;
    return true;
}
