#include "agent/history.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct hec_history_point nothing = {NAN, {NAN, NAN, NAN, NAN}};
_Static_assert(HEC_AGENT_STATES == 4, "as many as nothing has");

static struct hec_history_device *device_at(struct hec_history *history, int index) {
    if (!history->devices[index]) {
        struct hec_history_device *made = history->devices[index] = calloc(1, sizeof *made);
        for (size_t i = 0; made && i < HEC_HISTORY_POINTS; i++)
            made->point[i] = nothing;
    }
    return history->devices[index];
}

/* Joules since the last value of the counter belong to all points since. */
static void settle(struct hec_history *history, struct hec_history_device *to, const struct hec_node_device *device,
                   int64_t now_ns) {
    const int64_t *mj = &device->total[HEC_NODE_BUSY_MJ];
    unsigned points = to->pending < HEC_HISTORY_POINTS ? to->pending : HEC_HISTORY_POINTS;
    double seconds = (double)(now_ns - to->settled_ns) / HEC_NS_PER_S;
    bool known = to->settled_ns && seconds > 0;
    if (to->settled_ns && memcmp(mj, to->settled_mj, sizeof to->settled_mj) == 0)
        return;
    for (int state = 0; state < HEC_AGENT_STATES; state++)
        for (unsigned i = 0; i < points && known; i++) {
            int64_t added_mj = mj[state] - to->settled_mj[state];
            to->point[(history->count - 1 - i) % HEC_HISTORY_POINTS].state_w[state] =
                added_mj < 0 ? NAN : (float)((double)added_mj / 1e3 / seconds);
        }
    memcpy(to->settled_mj, mj, sizeof to->settled_mj);
    to->settled_ns = now_ns;
    to->pending = 0;
}

void hec_history_add(struct hec_history *history, struct hec_node *node, int64_t now_ns) {
    pthread_mutex_lock(&node->lock);
    history->begun_ns = history->count ? history->begun_ns : now_ns;
    history->interval_ns = node->interval_ns;
    history->count++;
    for (int i = 0; i < HEC_DEVICE_MAX; i++) {
        const struct hec_node_device *device = node->devices[i];
        struct hec_history_device *to = device && device->seen ? device_at(history, i) : NULL;
        if (!to)
            continue;
        struct hec_history_point *point = &to->point[(history->count - 1) % HEC_HISTORY_POINTS];
        const struct hec_node_value *power = &device->newest[HEC_GPU_POWER];
        *point = nothing;
        if (device->up && power->t_ns != INT64_MIN)
            point->power_w = (float)power->value / 1000;
        to->pending++;
        if (device->counter_ns != INT64_MIN)
            settle(history, to, device, now_ns);
    }
    pthread_mutex_unlock(&node->lock);
}

void hec_history_free(struct hec_history *history) {
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        free(history->devices[i]);
}

size_t hec_history_count(const struct hec_history *history) {
    return history->count < HEC_HISTORY_POINTS ? (size_t)history->count : HEC_HISTORY_POINTS;
}

const struct hec_history_point *hec_history_at(const struct hec_history *history, int device, size_t point) {
    const struct hec_history_device *d = history->devices[device];
    return d ? &d->point[(history->count - hec_history_count(history) + point) % HEC_HISTORY_POINTS] : NULL;
}
