#include "model/metric.h"

static const struct hec_metric_info table[] = {
#define HEC_METRIC(id, name, unit, kind, subject, source, meaning)                                                     \
    {name, unit, HEC_METRIC_##kind, HEC_SUBJECT_##subject, source, meaning},
#include "model/metric.def"
#undef HEC_METRIC
};

const struct hec_metric_info *hec_metric_info(enum hec_metric metric) {
    return &table[metric];
}
