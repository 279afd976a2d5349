/* Metrics pushed over OTLP/HTTP in JSON, for who has an OpenTelemetry collector and no Prometheus. libcurl is loaded only here, when
 * it is asked for. One thread; what could not be delivered is counted and not kept: counters carry it on. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

struct hec_push_options {
    const char *url;     /* all of it: https://host:4318/v1/metrics. Redirections are not followed */
    const char *headers; /* NAME=VALUE,... as in OTEL_EXPORTER_OTLP_HEADERS; NULL: none */
    int64_t interval_ns;
    int (*make)(void *context, struct hec_buf *out); /* a page; in the thread */
    void *context;
};

struct hec_push;

/* The strings and context must outlive it. HEC_ERR_USAGE: no such URL; HEC_ERR_UNSUPPORTED: no libcurl here. */
int hec_push_start(const struct hec_push_options *options, struct hec_push **out, struct hec_why *why);
uint64_t hec_push_failed(const struct hec_push *push); /* pages that did not arrive; of NULL 0 */
void hec_push_stop(struct hec_push *push);             /* within a second or so; NULL is fine */
