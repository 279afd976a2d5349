#include "agent/metrics.h"

#define DEVICE HEC_AGENT_LABELS_DEVICE
#define TENANT HEC_AGENT_LABELS_TENANT

static const struct hec_agent_metric_info metrics[] = {
#define HEC_AGENT_METRIC(id, name, kind, unit, labels, help) {name, HEC_FAMILY_##kind, unit, labels, help},
#include "agent/metrics.def"
#undef HEC_AGENT_METRIC
};

const struct hec_agent_metric_info *hec_agent_metric_info(enum hec_agent_metric metric) {
    return &metrics[metric];
}

const char *hec_agent_part_name(enum hec_agent_part part) {
    static const char *const names[] = {
#define HEC_AGENT_PART(id, value, meaning) value,
#include "agent/values.def"
    };
    return names[part];
}

const char *hec_agent_state_name(enum hec_agent_state state) {
    static const char *const names[] = {
#define HEC_AGENT_STATE(id, value, meaning) value,
#include "agent/values.def"
    };
    return names[state];
}

const char *hec_agent_verdict_name(enum hec_agent_verdict verdict) {
    static const char *const names[] = {
#define HEC_AGENT_VERDICT(id, value, meaning) value,
#include "agent/values.def"
    };
    return names[verdict];
}
