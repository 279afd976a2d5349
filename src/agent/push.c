#include "agent/push.h"

#include "agent/curl.h"
#include "base/clock.h"
#include "base/log.h"
#include "report/export/exposition.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_S 10L
#define PAGE_MAX (64u << 20)
#define HEADER_MAX 2048

struct hec_push {
    struct hec_push_options options;
    struct hec_curl curl;
    CURL *handle;
    struct curl_slist *headers;
    struct hec_buf page;
    bool failing; /* the last one did not arrive */
    _Atomic uint64_t failed;
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
};

static bool add_header(struct hec_push *push, const char *line) {
    struct curl_slist *longer = push->curl.append(push->headers, line);
    if (longer)
        push->headers = longer;
    return longer;
}

/* "a=b,c=d" into "a: b" and "c: d". */
static int add_headers(struct hec_push *push, struct hec_why *why) {
    bool good = add_header(push, "Content-Type: " HEC_EXPOSITION_TYPE_OTLP) && add_header(push, "Expect:");
    for (const char *at = push->options.headers; good && at && *at;) {
        char line[HEADER_MAX];
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        if (!equals || equals == at || length + 2 > sizeof line || memchr(at, '\n', length) || memchr(at, '\r', length))
            return hec_fail(why, HEC_ERR_USAGE, "OTEL_EXPORTER_OTLP_HEADERS is no list of NAME=VALUE");
        size_t name = (size_t)(equals - at);
        memcpy(line, at, name);
        memcpy(line + name, ": ", 2);
        memcpy(line + name + 2, equals + 1, length - name - 1);
        line[length + 1] = '\0';
        good = add_header(push, line);
        at += length + (at[length] == ',');
    }
    return good ? HEC_OK : hec_fail(why, HEC_ERR_NOMEM, "out of memory");
}

/* What the server says is of no use. */
static size_t ignore(const char *data, size_t size, size_t count, void *context) {
    (void)data;
    (void)context;
    return size * count;
}

static int cut_short(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now) {
    const struct hec_push *push = context;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return atomic_load(&push->stopping);
}

static int prepare(struct hec_push *push, struct hec_why *why) {
    push->handle = push->curl.init();
    if (!push->handle)
        return hec_fail(why, HEC_ERR_NOMEM, "libcurl does not start");
    int err = add_headers(push, why);
    push->curl.set(push->handle, CURLOPT_URL, push->options.url);
    push->curl.set(push->handle, CURLOPT_HTTPHEADER, push->headers);
    push->curl.set(push->handle, CURLOPT_POST, 1L);
    push->curl.set(push->handle, CURLOPT_NOSIGNAL, 1L);
    push->curl.set(push->handle, CURLOPT_TIMEOUT, TIMEOUT_S);
    push->curl.set(push->handle, CURLOPT_WRITEFUNCTION, ignore);
    push->curl.set(push->handle, CURLOPT_NOPROGRESS, 0L);
    push->curl.set(push->handle, CURLOPT_XFERINFOFUNCTION, cut_short);
    push->curl.set(push->handle, CURLOPT_XFERINFODATA, push);
    return err;
}

static void send_page(struct hec_push *push) {
    long status = 0;
    hec_buf_clear(&push->page);
    int err = push->options.make(push->options.context, &push->page);
    if (err < 0) {
        atomic_fetch_add(&push->failed, 1);
        return;
    }
    push->curl.set(push->handle, CURLOPT_POSTFIELDS, push->page.data);
    push->curl.set(push->handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)push->page.length);
    CURLcode code = push->curl.perform(push->handle);
    push->curl.info(push->handle, CURLINFO_RESPONSE_CODE, &status);
    bool failed = code != CURLE_OK || status < 200 || status > 299;
    if (failed && !atomic_load(&push->stopping)) {
        atomic_fetch_add(&push->failed, 1);
        if (!push->failing && code != CURLE_OK)
            hec_warn("OTLP: %s; tried again from time to time", push->curl.text(code));
        else if (!push->failing)
            hec_warn("OTLP: the collector answered %ld; tried again from time to time", status);
    } else if (!failed && push->failing) {
        hec_info("OTLP: the collector takes metrics again");
    }
    push->failing = failed;
}

static void *run(void *context) {
    struct hec_push *push = context;
    pthread_mutex_lock(&push->lock);
    while (!atomic_load(&push->stopping)) {
        int64_t due_ns = hec_clock_mono_ns() + push->options.interval_ns;
        struct timespec due = {due_ns / HEC_NS_PER_S, due_ns % HEC_NS_PER_S};
        int waited = 0;
        while (!atomic_load(&push->stopping) && waited == 0)
            waited = pthread_cond_timedwait(&push->stop, &push->lock, &due);
        if (atomic_load(&push->stopping))
            break;
        pthread_mutex_unlock(&push->lock);
        send_page(push);
        pthread_mutex_lock(&push->lock);
    }
    pthread_mutex_unlock(&push->lock);
    return NULL;
}

static void release(struct hec_push *push) {
    if (push->handle)
        push->curl.cleanup(push->handle);
    if (push->headers)
        push->curl.free_list(push->headers);
    hec_buf_free(&push->page);
    free(push);
}

int hec_push_start(const struct hec_push_options *options, struct hec_push **out, struct hec_why *why) {
    if (strncmp(options->url, "http://", 7) != 0 && strncmp(options->url, "https://", 8) != 0)
        return hec_fail(why, HEC_ERR_USAGE, "--otlp takes a URL that begins with http:// or https://");
    struct hec_push *push = calloc(1, sizeof *push);
    if (!push)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    push->options = *options;
    hec_buf_init(&push->page, PAGE_MAX);
    int err = hec_curl_load(&push->curl, "--otlp", why);
    if (err == HEC_OK)
        err = prepare(push, why);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&push->stop, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&push->lock, NULL);
    if (err == HEC_OK && pthread_create(&push->thread, NULL, run, push) != 0)
        err = hec_fail(why, HEC_ERR_NOMEM, "no thread for OTLP");
    if (err < 0) {
        release(push);
        return err;
    }
    *out = push;
    return HEC_OK;
}

uint64_t hec_push_failed(const struct hec_push *push) {
    return push ? atomic_load(&push->failed) : 0;
}

void hec_push_stop(struct hec_push *push) {
    if (!push)
        return;
    pthread_mutex_lock(&push->lock);
    atomic_store(&push->stopping, true);
    pthread_cond_signal(&push->stop);
    pthread_mutex_unlock(&push->lock);
    pthread_join(push->thread, NULL);
    release(push);
}
