/* The metric table (metric.def) as an enum and descriptions. */
#pragma once

enum hec_metric_kind { HEC_METRIC_GAUGE, HEC_METRIC_MEAN, HEC_METRIC_COUNTER, HEC_METRIC_DELTA };
enum hec_metric_subject {
    HEC_SUBJECT_DEVICE,
    HEC_SUBJECT_PACKAGE,
    HEC_SUBJECT_RUN,
    HEC_SUBJECT_PROCESS,
    HEC_SUBJECT_PRINTED
};

enum hec_metric {
#define HEC_METRIC(id, name, unit, kind, subject, source, meaning) HEC_##id,
#include "model/metric.def"
#undef HEC_METRIC
    HEC_METRIC_COUNT
};

struct hec_metric_info {
    const char *name;
    const char *unit;
    enum hec_metric_kind kind;
    enum hec_metric_subject subject;
    const char *source;
    const char *meaning;
};

/* metric must be in range. */
const struct hec_metric_info *hec_metric_info(enum hec_metric metric);
