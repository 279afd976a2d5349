/* When a trace was recorded. A profiler looks for seconds or hours, so times that lie days from the others are wrong: of
 * events without a clock (0 of another epoch), or of another run's file. One of them would make a run of years. */
#ifndef HEC_STORE_IMPORT_SPAN_H
#define HEC_STORE_IMPORT_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#define HEC_IMPORT_APART_NS (INT64_C(86400) * 1000000000) /* a day */
#define HEC_IMPORT_SPANS_MAX 16
#define HEC_IMPORT_STRAY_SHARE 10 /* one event in so many may lie elsewhere */

struct hec_import_span {
    int64_t first_ns, last_ns, count;
};

/* Spans of time that are more than a day apart; {0} is empty. */
struct hec_import_spans {
    struct hec_import_span list[HEC_IMPORT_SPANS_MAX];
    int count, latest;
    int64_t elsewhere; /* events for which there was no room */
};

/* An event of this time. */
void hec_import_spans_add(struct hec_import_spans *spans, int64_t start_ns, int64_t end_ns);

/* The span that holds nearly all events, and how many lie outside of it. False: there is none, and *span is the largest. */
bool hec_import_spans_main(struct hec_import_spans *spans, struct hec_import_span *span, int64_t *strays);

#endif
