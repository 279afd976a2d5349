/* The agent's HTTP: a few pages that are made elsewhere, for anybody who may connect, in one thread (libmicrohttpd). GET and
 * HEAD; connections, headers and the time to bring a request are bounded, and who connects last is served before who has
 * been silent longest. */
#pragma once

#include "agent/web_config.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hec_http_page {
    HEC_HTTP_PROMETHEUS,
    HEC_HTTP_OPENMETRICS,
    HEC_HTTP_CURRENT, /* /metrics/now */
    HEC_HTTP_HTML,
    HEC_HTTP_LIVE,
    HEC_HTTP_PAGES
};

struct hec_http_counts {
    uint64_t requests, refused, unauthorized, cut; /* cut: connections that were ended from this side */
};

struct hec_http;

/* A socket on ADDRESS:PORT, :PORT (all addresses), PORT (loopback) or [ADDRESS]:PORT; port 0: any that is free. */
int hec_http_listen(const char *on, int *fd, struct hec_why *why);
/* Who makes the pages: `make` publishes one. It is called once every age_ns at most, by hec_http_tick for what was asked for in
 * the last minutes, so that a scrape waits for no lock and no disk, else from the server's thread when it is asked for. */
struct hec_http_maker {
    void (*make)(void *context, enum hec_http_page page);
    void *context;
    int64_t age_ns;
};
/* Takes the socket over, also where it fails. web may be NULL; from now on only the thread
 * uses it, and hec_http_swap_users. */
int hec_http_start(int fd, struct hec_web_config *web, const struct hec_http_maker *maker, struct hec_http **out,
                   struct hec_why *why);
/* The users of `fresh` from now on, which has the others then. */
void hec_http_swap_users(struct hec_http *http, struct hec_web_config *fresh);
/* "http://127.0.0.1:9400" */
const char *hec_http_url(const struct hec_http *http);
/* From now on the page is this; text is copied. */
int hec_http_publish(struct hec_http *http, enum hec_http_page page, const char *text, size_t length);
/* What /readyz says. /healthz says yes as long as hec_http_tick is called at least every stale_ns. */
void hec_http_ready(struct hec_http *http, bool ready);
void hec_http_tick(struct hec_http *http, int64_t now_ns, int64_t stale_ns);
void hec_http_counts(struct hec_http *http, struct hec_http_counts *counts);
void hec_http_stop(struct hec_http *http); /* NULL is fine */
