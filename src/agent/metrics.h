/* The agent's metrics (metrics.def) and what their labels may say (values.def). */
#pragma once

#include "report/export/exposition.h"

#define HEC_AGENT_LABELS_DEVICE "gpu, UUID"
#define HEC_AGENT_LABELS_TENANT "namespace, pod, container, hpc_job, user, command"

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
