/* The agent's page for a browser: the data that it fetches again and again (docs/html.md, "live"). */
#pragma once

#include "agent/node.h"
#include "agent/page.h"

/* The last minutes of a node, a point each interval: power of each device, and watts by state. Bounded: HEC_HISTORY_POINTS of
 * 20 bytes a device. The watts of a state are those between two values of the energy counter, which come more rarely than points:
 * the points in between get the mean, and those since its last value are not known yet. One thread adds, others read. */
#define HEC_HISTORY_POINTS 300 /* at the usual interval of 1 s five minutes */

struct hec_history_point {
    float power_w, state_w[HEC_AGENT_STATES]; /* NAN: not known */
};

struct hec_history {
    int64_t interval_ns, begun_ns;
    uint64_t count; /* of points so far: the newest is (count - 1) % HEC_HISTORY_POINTS */
    struct hec_history_device {
        struct hec_history_point point[HEC_HISTORY_POINTS];
        int64_t settled_mj[HEC_AGENT_STATES],
            settled_ns;          /* what its states add up to, and since when; 0: not seen yet */
        unsigned pending;        /* points since */
    } * devices[HEC_DEVICE_MAX]; /* NULL: never seen, or no memory */
};

/* Once an interval; locks the node. */
void hec_history_add(struct hec_history *history, struct hec_node *node, int64_t now_ns);
void hec_history_free(struct hec_history *history);

/* How many points there are; point 0 is the oldest. NULL: none of that device. The node is locked by the caller. */
size_t hec_history_count(const struct hec_history *history);
const struct hec_history_point *hec_history_at(const struct hec_history *history, int device, size_t point);

#define HEC_LIVE_TENANTS HEC_WASTE_TENANTS

/* Joules of each tenant when they were looked at before, for its watts. Filled by hec_live_make alone. */
struct hec_live_before {
    int64_t t_ns; /* 0: never */
    size_t count;
    struct {
        uint64_t tenant; /* a hash of its names */
        int64_t uj;
    } row[HEC_LIVE_TENANTS];
};
struct hec_live {
    struct hec_history history;
    struct hec_live_before before[2]; /* the older one first: tens of seconds ago */
};

/* HEC_ERR_NOMEM, HEC_ERR_LIMIT. */
int hec_live_make(struct hec_live *live, struct hec_node *node, const struct hec_page_options *options,
                  const struct hec_page_agent *agent, int64_t now_ns, struct hec_buf *out);
