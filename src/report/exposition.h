/* Prometheus' text format 0.0.4 and OpenMetrics 1.0: families of samples in, bytes out.
 *
 *     hec_exposition_begin(&page, &out, HEC_EXPOSITION_OPENMETRICS);
 *     hec_exposition_family(&page, "hec_device_energy_joules_total", HEC_FAMILY_COUNTER, "joules", "Energy counter.");
 *     hec_exposition_sample(&page, labels, count, 1234.5);
 *     hec_exposition_end(&page);
 *
 * All samples of a family follow each other, as both formats ask. Missing is absent: a value that is no finite number, and a
 * counter below 0, write nothing, and a family without samples has no header. What fails shows in hec_buf_error(out). */
#ifndef HEC_REPORT_EXPOSITION_H
#define HEC_REPORT_EXPOSITION_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define HEC_EXPOSITION_TYPE_PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
#define HEC_EXPOSITION_TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define HEC_EXPOSITION_VALUE_SIZE 512 /* of a label's value; the rest is cut */

enum hec_exposition_format { HEC_EXPOSITION_PROMETHEUS, HEC_EXPOSITION_OPENMETRICS };
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
};

void hec_exposition_begin(struct hec_exposition *page, struct hec_buf *out, enum hec_exposition_format format);

/* name: as the samples of the text format have it, of a counter with `_total`. In OpenMetrics a counter without it (those of
 * dcgm-exporter) has the type unknown, which keeps its name. unit: "joules"; NULL or "": none. It is said where the name ends
 * in it, as OpenMetrics asks. The strings must live until the next family. */
void hec_exposition_family(struct hec_exposition *page, const char *name, enum hec_family_kind kind, const char *unit,
                           const char *help);
void hec_exposition_sample(struct hec_exposition *page, const struct hec_label *labels, size_t count, double value);
void hec_exposition_end(struct hec_exposition *page);

#endif
