#include "agent/pod_names.h"

#include "agent/curl.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVERY_NS (60 * HEC_NS_PER_S)
#define SOON_NS (2 * HEC_NS_PER_S) /* between two lists, however many pods are met */
#define TIMEOUT_S 10L
#define ANSWER_MAX (16u << 20)
#define TOKEN_MAX 8192

struct hec_pod_names {
    char url[512], token_path[512], ca_path[512];
    struct hec_curl curl;
    struct hec_buf answer;
    bool failing;
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool wanted;
    size_t count;
    struct hec_pod_name rows[HEC_POD_NAMES_MAX];
};

static bool take(char *out, size_t size, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length >= size || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != length)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

int hec_pod_names_parse(const char *text, size_t length, struct hec_pod_name *out, size_t most) {
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL), *item;
    const json_t *items = json_object_get(root, "items");
    size_t count = 0, i;
    if (!json_is_array(items)) {
        json_decref(root);
        return HEC_ERR_CORRUPT;
    }
    json_array_foreach(items, i, item) {
        const json_t *metadata = json_object_get(item, "metadata");
        struct hec_pod_name row = {0};
        /* of a pod that the kubelet has from a file, the API server's uid is another one than that of its cgroup */
        if (count < most &&
            (take(row.uid, sizeof row.uid, json_object_get(metadata, "annotations"), "kubernetes.io/config.hash") ||
             take(row.uid, sizeof row.uid, metadata, "uid")) &&
            take(row.pod_namespace, sizeof row.pod_namespace, metadata, "namespace") &&
            take(row.pod, sizeof row.pod, metadata, "name"))
            out[count++] = row;
    }
    json_decref(root);
    return (int)count;
}

static size_t take_answer(const char *data, size_t size, size_t count, void *context) {
    struct hec_pod_names *names = context;
    return hec_buf_add(&names->answer, data, size * count) == HEC_OK ? size * count : 0;
}

static int cut_short(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now) {
    const struct hec_pod_names *names = context;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return atomic_load(&names->stopping);
}

/* It is renewed each hour. */
static struct curl_slist *headers_of(const struct hec_pod_names *names) {
    char token[TOKEN_MAX], line[TOKEN_MAX + 32];
    FILE *file = fopen(names->token_path, "re");
    size_t length = file ? fread(token, 1, sizeof token - 1, file) : 0;
    if (file)
        fclose(file);
    token[length] = '\0';
    token[strcspn(token, "\r\n")] = '\0';
    snprintf(line, sizeof line, "Authorization: Bearer %s", token);
    struct curl_slist *first = names->curl.append(NULL, line);
    /* names and uids alone, not what the pods run */
    struct curl_slist *all =
        first ? names->curl.append(first, "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
              : NULL;
    if (first && !all)
        names->curl.free_list(first);
    return all;
}

static int ask(struct hec_pod_names *names, struct hec_why *why) {
    const struct hec_curl *curl = &names->curl;
    CURL *handle = curl->init();
    struct curl_slist *headers = handle ? headers_of(names) : NULL;
    long status = 0;
    hec_buf_clear(&names->answer);
    if (!headers) {
        curl->cleanup(handle);
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    }
    curl->set(handle, CURLOPT_URL, names->url);
    curl->set(handle, CURLOPT_CAINFO, names->ca_path);
    curl->set(handle, CURLOPT_HTTPHEADER, headers);
    curl->set(handle, CURLOPT_NOPROXY, "*");
    curl->set(handle, CURLOPT_NOSIGNAL, 1L);
    curl->set(handle, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl->set(handle, CURLOPT_WRITEFUNCTION, take_answer);
    curl->set(handle, CURLOPT_WRITEDATA, names);
    curl->set(handle, CURLOPT_NOPROGRESS, 0L);
    curl->set(handle, CURLOPT_XFERINFOFUNCTION, cut_short);
    curl->set(handle, CURLOPT_XFERINFODATA, names);
    CURLcode code = curl->perform(handle);
    curl->info(handle, CURLINFO_RESPONSE_CODE, &status);
    curl->free_list(headers);
    curl->cleanup(handle);
    if (code != CURLE_OK)
        return hec_fail(why, HEC_ERR_IO, "%s", curl->text(code));
    return status == 200 ? HEC_OK : hec_fail(why, HEC_ERR_FAILED, "the API server answered %ld", status);
}

static void list(struct hec_pod_names *names) {
    static struct hec_pod_name rows[HEC_POD_NAMES_MAX]; /* of one thread; large */
    struct hec_why why = {""};
    int err = ask(names, &why), count = 0;
    if (err == HEC_OK &&
        (count = hec_pod_names_parse(hec_buf_text(&names->answer), names->answer.length, rows, HEC_POD_NAMES_MAX)) < 0)
        err = hec_fail(&why, count, "the API server's list of pods cannot be read");
    if (err < 0 && !names->failing && !atomic_load(&names->stopping))
        hec_warn("names of pods: %s; tried again from time to time", why.text);
    names->failing = err < 0;
    hec_buf_free(&names->answer);
    if (err < 0)
        return;
    pthread_mutex_lock(&names->lock);
    names->count = (size_t)count;
    memcpy(names->rows, rows, (size_t)count * sizeof rows[0]);
    pthread_mutex_unlock(&names->lock);
}

/* Until then, or until it is to stop; with `wanted` also until a pod is asked for. Locked. */
static void wait_until(struct hec_pod_names *names, int64_t due_ns, bool wanted) {
    struct timespec due = {due_ns / HEC_NS_PER_S, due_ns % HEC_NS_PER_S};
    int waited = 0;
    while (!atomic_load(&names->stopping) && !(wanted && names->wanted) && waited == 0)
        waited = pthread_cond_timedwait(&names->wake, &names->lock, &due);
}

static void *run(void *context) {
    struct hec_pod_names *names = context;
    while (!atomic_load(&names->stopping)) {
        int64_t now_ns = hec_clock_mono_ns();
        pthread_mutex_lock(&names->lock);
        names->wanted = false;
        pthread_mutex_unlock(&names->lock);
        list(names);
        pthread_mutex_lock(&names->lock);
        wait_until(names, now_ns + SOON_NS, false);
        wait_until(names, now_ns + EVERY_NS, true);
        pthread_mutex_unlock(&names->lock);
    }
    return NULL;
}

static int find_server(struct hec_pod_names *names, const char *account, struct hec_why *why) {
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT"),
               *node = getenv("NODE_NAME");
    snprintf(names->token_path, sizeof names->token_path, "%s/token", account);
    snprintf(names->ca_path, sizeof names->ca_path, "%s/ca.crt", account);
    if (!host || !port || !node || !node[0] || access(names->token_path, R_OK) != 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "no account of Kubernetes here");
    bool six = strchr(host, ':');
    int length = snprintf(names->url, sizeof names->url,
                          "https://%s%s%s:%s/api/v1/pods?fieldSelector=spec.nodeName%%3D%s&resourceVersion=0",
                          six ? "[" : "", host, six ? "]" : "", port, node);
    return length < (int)sizeof names->url ? HEC_OK : hec_fail(why, HEC_ERR_LIMIT, "too long a name of a node");
}

int hec_pod_names_start(const char *account, struct hec_pod_names **out, struct hec_why *why) {
    struct hec_pod_names *names = calloc(1, sizeof *names);
    if (!names)
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    hec_buf_init(&names->answer, ANSWER_MAX);
    int err = find_server(names, account, why);
    if (err == HEC_OK)
        err = hec_curl_load(&names->curl, "asking the API server for names of pods", why);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&names->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&names->lock, NULL);
    if (err == HEC_OK && pthread_create(&names->thread, NULL, run, names) != 0)
        err = hec_fail(why, HEC_ERR_NOMEM, "no thread for names of pods");
    if (err < 0)
        free(names);
    else
        *out = names;
    return err;
}

bool hec_pod_names_find(struct hec_pod_names *names, const char *uid, struct hec_tenant *out) {
    bool found = false;
    if (!names)
        return false;
    pthread_mutex_lock(&names->lock);
    for (size_t i = 0; i < names->count && !found; i++)
        if (strcmp(names->rows[i].uid, uid) == 0) {
            memcpy(out->pod_namespace, names->rows[i].pod_namespace, sizeof out->pod_namespace);
            memcpy(out->pod, names->rows[i].pod, sizeof out->pod);
            found = true;
        }
    if (!found && !names->wanted) {
        names->wanted = true;
        pthread_cond_signal(&names->wake);
    }
    pthread_mutex_unlock(&names->lock);
    return found;
}

void hec_pod_names_stop(struct hec_pod_names *names) {
    if (!names)
        return;
    pthread_mutex_lock(&names->lock);
    atomic_store(&names->stopping, true);
    pthread_cond_signal(&names->wake);
    pthread_mutex_unlock(&names->lock);
    pthread_join(names->thread, NULL);
    hec_buf_free(&names->answer);
    free(names);
}
