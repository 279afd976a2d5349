#include "agent/metrics.h"

#include <stddef.h>

static const struct {
    int64_t number;
    const char *text;
} texts[] = {
#define HEC_XID(number, text) {number, text},
#include "agent/xids.def"
#undef HEC_XID
};

const char *hec_xid_text(int64_t number) {
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].number == number)
            return texts[i].text;
    return "Unknown Error";
}

void hec_xids_add(struct hec_xids *xids, int64_t number, int64_t times) {
    int i = 0;
    while (i < xids->count && xids->seen[i].number != number)
        i++;
    if (number <= 0 || i == HEC_XIDS_MAX) {
        xids->others += times;
        return;
    }
    if (i == xids->count) {
        xids->seen[xids->count++].number = number;
        xids->seen[i].times = 0;
    }
    xids->seen[i].times += times;
}

#define DEVICE HEC_AGENT_LABELS_DEVICE
#define TENANT HEC_AGENT_LABELS_TENANT

static const struct hec_agent_metric_info metrics[] = {
#define HEC_AGENT_METRIC(id, name, kind, unit, labels, help) {name, HEC_FAMILY_##kind, unit, labels, help, false},
#define HEC_AGENT_METRIC_MORE(id, name, kind, unit, labels, help) {name, HEC_FAMILY_##kind, unit, labels, help, true},
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
