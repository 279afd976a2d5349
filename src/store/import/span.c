#include "store/import/span.h"

#include <string.h>

static bool near(const struct hec_import_span *span, int64_t start_ns, int64_t end_ns) {
    return start_ns <= span->last_ns + HEC_IMPORT_APART_NS && end_ns >= span->first_ns - HEC_IMPORT_APART_NS;
}

static void extend(struct hec_import_span *span, const struct hec_import_span *by) {
    span->first_ns = by->first_ns < span->first_ns ? by->first_ns : span->first_ns;
    span->last_ns = by->last_ns > span->last_ns ? by->last_ns : span->last_ns;
    span->count += by->count;
}

void hec_import_spans_add(struct hec_import_spans *spans, int64_t start_ns, int64_t end_ns) {
    const struct hec_import_span event = {start_ns, end_ns, 1};
    if (spans->count && near(&spans->list[spans->latest], start_ns, end_ns)) {
        extend(&spans->list[spans->latest], &event);
        return;
    }
    for (int i = 0; i < spans->count; i++)
        if (near(&spans->list[i], start_ns, end_ns)) {
            spans->latest = i;
            extend(&spans->list[i], &event);
            return;
        }
    if (spans->count == HEC_IMPORT_SPANS_MAX) {
        spans->elsewhere++;
        return;
    }
    spans->latest = spans->count;
    spans->list[spans->count++] = event;
}

/* Spans that have grown towards each other become one. */
static void merge(struct hec_import_spans *spans) {
    for (int i = 0; i < spans->count; i++)
        for (int k = i + 1; k < spans->count; k++)
            if (near(&spans->list[i], spans->list[k].first_ns, spans->list[k].last_ns)) {
                extend(&spans->list[i], &spans->list[k]);
                spans->list[k] = spans->list[--spans->count];
                k = i; /* the grown one may reach others */
            }
    spans->latest = 0;
}

bool hec_import_spans_main(struct hec_import_spans *spans, struct hec_import_span *span, int64_t *strays) {
    int64_t all = spans->elsewhere;
    memset(span, 0, sizeof *span);
    merge(spans);
    for (int i = 0; i < spans->count; i++) {
        all += spans->list[i].count;
        if (spans->list[i].count > span->count)
            *span = spans->list[i];
    }
    *strays = all - span->count;
    return *strays <= all / HEC_IMPORT_STRAY_SHARE;
}
