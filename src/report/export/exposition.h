/* Prometheus' text format 0.0.4, OpenMetrics 1.0, and OTLP's metrics in JSON: families of samples in, bytes out.
 *
 *     hec_exposition_begin(&page, &out, HEC_EXPOSITION_OPENMETRICS);
 *     hec_exposition_family(&page, "hec_device_energy_joules_total", HEC_FAMILY_COUNTER, "joules", "Energy counter.");
 *     hec_exposition_sample(&page, labels, count, 1234.5);
 *     hec_exposition_end(&page);
 *
 * All samples of a family follow each other, as both formats ask. Missing is absent: a value that is no finite number, and a
 * counter below 0, write nothing, and a family without samples has no header. What fails shows in hec_buf_error(out). */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define HEC_EXPOSITION_TYPE_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
#define HEC_EXPOSITION_TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define HEC_EXPOSITION_TYPE_OTLP "application/json"
#define HEC_EXPOSITION_VALUE_SIZE 512 /* of a label's value; the rest is cut */

enum hec_exposition_format { HEC_EXPOSITION_PROMETHEUS, HEC_EXPOSITION_OPENMETRICS, HEC_EXPOSITION_OTLP };
enum hec_family_kind { HEC_FAMILY_COUNTER, HEC_FAMILY_GAUGE, HEC_FAMILY_INFO };

const char *hec_family_kind_name(enum hec_family_kind kind); /* "counter" */

/* name: one of ours. value: may hold anything; NULL or "": the label is left out. Two values that differ only in what
 * hec_text_clean takes away become the same series: who counts by such a value counts by the clean one. */
struct hec_label {
    const char *name;
    const char *value;
};

struct hec_exposition {
    struct hec_buf *out;
    enum hec_exposition_format format;
    const char *name, *unit, *help; /* of the family, for as long as it is written */
    enum hec_family_kind kind;
    bool described; /* its header has been written */
    /* of OTLP */
    bool any; /* a family before this one has */
    int64_t time_ns;
};

void hec_exposition_begin(struct hec_exposition *page, struct hec_buf *out, enum hec_exposition_format format);

/* The same for OTLP: what the page is of (host.name ...), and its time since 1970. Sums are cumulative, with no start: counters go on
 * over restarts, and a new start would count them again. */
void hec_exposition_begin_otlp(struct hec_exposition *page, struct hec_buf *out, const struct hec_label *resource,
                               size_t count, int64_t time_ns);

/* name: as the samples of the text format have it, of a counter with `_total`. In OpenMetrics a counter without it (those of
 * dcgm-exporter) has the type unknown, which keeps its name. unit: "joules"; NULL or "": none. It is said where the name ends
 * in it, as OpenMetrics asks. The strings must live until the next family. */
void hec_exposition_family(struct hec_exposition *page, const char *name, enum hec_family_kind kind, const char *unit,
                           const char *help);
void hec_exposition_sample(struct hec_exposition *page, const struct hec_label *labels, size_t count, double value);
void hec_exposition_end(struct hec_exposition *page);
