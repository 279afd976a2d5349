/* The agent's page for a browser: the data that it fetches again and again (docs/html.md, "live"). */
#ifndef HEC_AGENT_LIVE_H
#define HEC_AGENT_LIVE_H

#include "agent/history.h"
#include "agent/page.h"

#define HEC_LIVE_TENANTS 256 /* shown */

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

#endif
