/* What telemetry says of a device over the last minute: the patterns of diagnose/meter/use.h, on means of what the sink is shown. */
#pragma once

#include "agent/metrics.h"
#include "model/run.h"

#include <stdbool.h>
#include <stdint.h>

#define HEC_VERDICT_INPUTS 11
#define HEC_VERDICT_UNKNOWN (-1)

struct hec_verdict {
    int64_t begun_ns; /* the second half; INT64_MIN: nothing was added */
    bool allocated;   /* it is given to somebody, whether or not a context is there */
    struct hec_verdict_sum {
        double sum;
        int64_t count;
    } half[2][HEC_VERDICT_INPUTS]; /* the 30 s that are over, and those that go on */
};

void hec_verdict_clear(struct hec_verdict *verdict);
/* Metrics that it makes no use of are passed over. */
void hec_verdict_add(struct hec_verdict *verdict, enum hec_metric metric, int64_t t_ns, int64_t value);
/* enum hec_agent_verdict; HEC_VERDICT_UNKNOWN: too few readings, nothing of the last minute, or no pattern holds. *sure (unless NULL):
 * how sure that is, 0..1; NAN where it is unknown. */
int hec_verdict_of(const struct hec_verdict *verdict, const struct hec_device *device, int64_t now_ns, double *sure);
