/* The agent's metrics (metrics.def) and what their labels may say (values.def). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "report/export/exposition.h"

#define HEC_AGENT_LABELS_DEVICE "gpu, UUID"
#define HEC_AGENT_LABELS_TENANT "namespace, pod, container, hpc_job, hpc_step, hpc_array_task, user, command"

enum hec_agent_metric {
#define HEC_AGENT_METRIC(id, name, kind, unit, labels, help) HEC_AGENT_METRIC_##id,
#include "agent/metrics.def"
#undef HEC_AGENT_METRIC
    HEC_AGENT_METRIC_COUNT
};

struct hec_agent_metric_info {
    const char *name;
    enum hec_family_kind kind;
    const char *unit;
    const char *labels; /* names, in order, with ", " between them */
    const char *help;
    bool more; /* with --all-series alone */
};

/* metric must be in range. */
const struct hec_agent_metric_info *hec_agent_metric_info(enum hec_agent_metric metric);

enum hec_agent_part {
#define HEC_AGENT_PART(id, value, meaning) HEC_AGENT_PART_##id,
#include "agent/values.def"
    HEC_AGENT_PARTS
};

/* States that are not the ledger's; theirs (enum hec_state) come first wherever both are counted. */
enum hec_agent_state {
#define HEC_AGENT_STATE(id, value, meaning) HEC_AGENT_STATE_##id,
#include "agent/values.def"
    HEC_AGENT_STATES
};

enum hec_agent_verdict {
#define HEC_AGENT_VERDICT(id, value, meaning) HEC_AGENT_VERDICT_##id,
#include "agent/values.def"
    HEC_AGENT_VERDICTS
};

/* What the label says. In range. */
const char *hec_agent_part_name(enum hec_agent_part part);
const char *hec_agent_state_name(enum hec_agent_state state);
const char *hec_agent_verdict_name(enum hec_agent_verdict verdict);

/* XID errors of one device: what their numbers say (xids.def), and how often each came. */
#define HEC_XIDS_MAX 16 /* numbers that are counted apart; of a device that has more, the rest is counted together */

struct hec_xids {
    struct {
        int64_t number, times;
    } seen[HEC_XIDS_MAX];
    int count;
    int64_t others;
};

/* "Unknown Error" where the table has none. */
const char *hec_xid_text(int64_t number);

/* So many more; number 0: of those that are counted together. */
void hec_xids_add(struct hec_xids *xids, int64_t number, int64_t times);
