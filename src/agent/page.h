/* The page that Prometheus scrapes: the node, by the tables of metrics. */
#pragma once

#include "agent/causes.h"
#include "agent/dcgm.h"
#include "agent/node.h"
#include "report/export/exposition.h"

#define HEC_PAGE_DROPPED_MAX 16
#define HEC_PAGE_LENGTH_MAX (16u << 20) /* bytes; 32 devices with all their tenants take 1 MB */

/* Of the agent itself. Numbers < 0 are not known, and absent. */
struct hec_page_process { /* without what it started */
    double cpu_seconds, resident_bytes, virtual_bytes, open_fds, max_fds, started_s;
};
struct hec_page_agent {
    struct hec_page_process process;
    double cpu_seconds, resident_bytes, state_saved;
    struct {
        const char *what;
        uint64_t count;
    } dropped[HEC_PAGE_DROPPED_MAX];
    int dropped_count;
};

struct hec_page_options {
    const struct hec_dcgm_list *dcgm;
    struct hec_dcgm_devices devices; /* that show its fields */
    const char *hostname_label;      /* "Hostname" or "hostname" */
    const char *hostname;
    struct hec_causes *causes;     /* NULL: no jobs report */
    struct hec_power_share *power; /* NULL: there is no budget */
    bool current;                  /* joules as they are, not as scrapes see them (agent/late.h) */
    bool dashes;                   /* in modelName, for blanks */
    bool all_series;               /* what nothing that is deployed asks for, too */
};

void hec_page_drop(struct hec_page_agent *agent, const char *what, uint64_t count);

enum hec_page_absence { HEC_PAGE_NO_DEVICE, HEC_PAGE_LATER, HEC_PAGE_JUDGED };
/* The names of the chosen fields that a device does not give, with ", " between them, where it has answered without a break since
 * `since_ns`: before that it may not have been asked for all. */
enum hec_page_absence hec_page_absent(struct hec_node *node, const struct hec_page_options *options, int index,
                                      int64_t now_ns, int64_t since_ns, struct hec_buf *out);

/* HEC_ERR_NOMEM, HEC_ERR_LIMIT. */
int hec_page_make(struct hec_node *node, const struct hec_page_options *options, const struct hec_page_agent *agent,
                  enum hec_exposition_format format, int64_t now_ns, struct hec_buf *out);
