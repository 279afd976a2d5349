/* What is sent over libcurl, and what is made of the answers, with a libcurl that is made up: pages pushed over OTLP, names of pods
 * from the API server. */
#include "agent/curl.h"
#include "agent/pod_names.h"
#include "agent/push.h"
#include "base/clock.h"
#include "tests/unit/folder.h"

#include <pthread.h>

#define UID "1a2b3c4d-0001-4002-8003-a0b0c0d0e0f0"

/* ---- what stands for libcurl ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;

#define CALLS 4
static struct {
    CURLcode code[CALLS]; /* of each call */
    long status[CALLS];
    const char *answer;
    int performed, cleaned, freed; /* calls, handles, lists of headers */
    bool no_handle;
    char url[512], ca[512], page[64], headers[4096];
    long post, nosignal, timeout, noprogress;
    curl_write_callback write;
    curl_xferinfo_callback progress;
    void *data, *progress_data;
    curl_off_t page_size;
} fake;

static CURL *fake_init(void) {
    fake.noprogress = 1; /* as libcurl has it */
    return fake.no_handle ? NULL : &fake;
}
static void fake_cleanup(CURL *handle) {
    fake.cleaned += handle != NULL;
}
static CURLcode fake_set(CURL *handle, CURLoption option, ...) {
    va_list list;
    assert_ptr_equal(handle, &fake);
    va_start(list, option);
    if (option == CURLOPT_URL || option == CURLOPT_CAINFO)
        snprintf(option == CURLOPT_URL ? fake.url : fake.ca, sizeof fake.url, "%s", va_arg(list, const char *));
    if (option == CURLOPT_HTTPHEADER) {
        fake.headers[0] = '\0';
        for (struct curl_slist *at = va_arg(list, struct curl_slist *); at; at = at->next)
            strcat(strcat(fake.headers, at->data), "|");
    }
    if (option == CURLOPT_POST)
        fake.post = va_arg(list, long);
    if (option == CURLOPT_NOSIGNAL)
        fake.nosignal = va_arg(list, long);
    if (option == CURLOPT_TIMEOUT)
        fake.timeout = va_arg(list, long);
    if (option == CURLOPT_NOPROGRESS)
        fake.noprogress = va_arg(list, long);
    if (option == CURLOPT_WRITEFUNCTION)
        fake.write = va_arg(list, curl_write_callback);
    if (option == CURLOPT_WRITEDATA)
        fake.data = va_arg(list, void *);
    if (option == CURLOPT_XFERINFOFUNCTION)
        fake.progress = va_arg(list, curl_xferinfo_callback);
    if (option == CURLOPT_XFERINFODATA)
        fake.progress_data = va_arg(list, void *);
    if (option == CURLOPT_POSTFIELDS)
        snprintf(fake.page, sizeof fake.page, "%s", va_arg(list, const char *));
    if (option == CURLOPT_POSTFIELDSIZE_LARGE)
        fake.page_size = va_arg(list, curl_off_t);
    va_end(list);
    return CURLE_OK;
}
/* After the last of CALLS nothing is counted any more. */
static CURLcode fake_perform(CURL *handle) {
    assert_ptr_equal(handle, &fake);
    assert_int_equal(fake.progress(fake.progress_data, 0, 0, 0, 0), 0); /* goes on */
    size_t length = fake.answer ? strlen(fake.answer) : 5, taken = 0;
    for (size_t part = 0; part < length; part += taken) /* in two pieces */
        taken = fake.write((char *)(uintptr_t)(fake.answer ? fake.answer + part : "noise"), 1,
                           length - part < 40 ? length - part : 40, fake.data);
    pthread_mutex_lock(&lock);
    int call = fake.performed < CALLS ? fake.performed : CALLS - 1;
    fake.performed++;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&lock);
    return fake.code[call];
}
static CURLcode fake_info(CURL *handle, CURLINFO info, ...) {
    va_list list;
    assert_ptr_equal(handle, &fake);
    assert_int_equal(info, CURLINFO_RESPONSE_CODE);
    va_start(list, info);
    *va_arg(list, long *) = fake.status[fake.performed <= CALLS ? fake.performed - 1 : CALLS - 1];
    va_end(list);
    return CURLE_OK;
}
static const char *fake_text(CURLcode code) {
    return code == CURLE_OK ? "" : "it failed";
}
static struct curl_slist *fake_append(struct curl_slist *list, const char *text) {
    struct curl_slist *made = calloc(1, sizeof *made), *last = list;
    made->data = strdup(text);
    while (last && last->next)
        last = last->next;
    if (last)
        last->next = made;
    return list ? list : made;
}
static void fake_free(struct curl_slist *list) {
    fake.freed++;
    for (struct curl_slist *next; list; list = next) {
        next = list->next;
        free(list->data);
        free(list);
    }
}

int hec_curl_load(struct hec_curl *curl, const char *what, struct hec_why *why) {
    (void)what, (void)why;
    *curl = (struct hec_curl){fake_init,    fake_set,  fake_perform, fake_info,
                              fake_cleanup, fake_text, fake_append,  fake_free};
    return HEC_OK;
}

static void wait_for(int performed) {
    pthread_mutex_lock(&lock);
    while (fake.performed < performed)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

static struct hec_why why;

static int set_up(void **state) {
    memset(&fake, 0, sizeof fake);
    why.text[0] = '\0';
    return folder_make(state);
}
EACH_TEST(set_up, folder_remove)

/* ---- OTLP ---- */

static int made, making_fails; /* fails at that page */

static int make(void *context, struct hec_buf *out) {
    assert_ptr_equal(context, &made);
    hec_buf_printf(out, "page %d", ++made);
    return made == making_fails ? HEC_ERR_NOMEM : HEC_OK;
}

static struct hec_push *push;

static int start(const char *url, const char *headers) {
    made = 0;
    push = NULL;
    const struct hec_push_options options = {url, headers, HEC_NS_PER_MS, make, &made};
    return hec_push_start(&options, &push, &why);
}

TEST(what_cannot_be_pushed) {
    static const char *const headers[] = {"a", "=b", "a=b,", "a=b,c", "a=b\nc", "a=b\rc", "a=b,=", NULL};
    static const char *const urls[] = {"", "host:4318", "ftp://host", "http:/host", "https:/", NULL};
    for (int i = 0; urls[i]; i++) {
        assert_int_equal(start(urls[i], NULL), HEC_ERR_USAGE);
        assert_string_equal(why.text, "--otlp takes a URL that begins with http:// or https://");
    }
    for (int i = 0; headers[i]; i++) {
        int err = start("http://h", headers[i]);
        if (strcmp(headers[i], "a=b,") == 0) { /* nothing after a comma is nothing */
            assert_int_equal(err, HEC_OK);
            hec_push_stop(push);
            continue;
        }
        assert_int_equal(err, HEC_ERR_USAGE);
        assert_string_equal(why.text, "OTEL_EXPORTER_OTLP_HEADERS is no list of NAME=VALUE");
    }
    char longest[2100] = "n=";
    memset(longest + 2, 'v', 2045);
    assert_int_equal(start("http://h", longest), HEC_ERR_USAGE);
    longest[2046] = '\0';
    assert_int_equal(start("http://h", longest), HEC_OK);
    hec_push_stop(push);
    fake.no_handle = true;
    assert_int_equal(start("https://h", NULL), HEC_ERR_NOMEM);
    assert_string_equal(why.text, "libcurl does not start");
    assert_null(push);
    assert_int_equal(hec_push_failed(NULL), 0);
    hec_push_stop(NULL);
}

/* Of the answers each failure counts once: no connection, no status of success, and no page to send. */
TEST(pages_that_do_not_arrive_are_counted) {
    static const struct {
        CURLcode code;
        long status;
        bool failed;
    } cases[] = {{CURLE_OK, 200, false}, {CURLE_OK, 299, false}, {CURLE_OK, 300, true},
                 {CURLE_OK, 199, true},  {CURLE_OK, 0, true},    {CURLE_COULDNT_CONNECT, 200, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&fake, 0, sizeof fake);
        fake.code[0] = cases[i].code;
        for (int k = 0; k < CALLS; k++)
            fake.status[k] = k ? 200 : cases[i].status;
        making_fails = 2;
        assert_int_equal(start("http://host/v1/metrics", "a=b,token=x=y"), HEC_OK);
        wait_for(3);
        assert_int_equal(hec_push_failed(push), 1 + cases[i].failed);
        hec_push_stop(push);
        assert_string_equal(fake.url, "http://host/v1/metrics");
        assert_string_equal(fake.headers, "Content-Type: application/json|Expect:|a: b|token: x=y|");
        assert_int_equal(strncmp(fake.page, "page ", 5), 0);
        assert_int_equal(fake.page_size, strlen(fake.page));
        assert_int_equal(fake.post, 1);
        assert_int_equal(fake.nosignal, 1);
        assert_int_equal(fake.noprogress, 0);
        assert_int_equal(fake.timeout, 10);
        assert_int_equal(fake.cleaned, 1);
        assert_int_equal(fake.freed, 1);
    }
}

/* ---- names of pods ---- */

static struct hec_pod_names *names;

static int start_names(const char *host, const char *port, const char *node) {
    const char *const variables[][2] = {
        {"KUBERNETES_SERVICE_HOST", host}, {"KUBERNETES_SERVICE_PORT", port}, {"NODE_NAME", node}};
    for (int i = 0; i < 3; i++)
        if (variables[i][1])
            setenv(variables[i][0], variables[i][1], 1);
        else
            unsetenv(variables[i][0]);
    return hec_pod_names_start(folder, &names, &why);
}

TEST(names_are_asked_of_the_api_server) {
    struct hec_tenant tenant = {.job = "7"};
    char ca[512], node[600];
    assert_int_equal(start_names("10.0.0.1", "443", "n1"), HEC_ERR_NOTFOUND); /* there is no token */
    assert_string_equal(why.text, "no account of Kubernetes here");
    folder_text("token", "secret\r\nmore");
    assert_int_equal(start_names(NULL, "443", "n1"), HEC_ERR_NOTFOUND);
    assert_int_equal(start_names("10.0.0.1", NULL, "n1"), HEC_ERR_NOTFOUND);
    assert_int_equal(start_names("10.0.0.1", "443", NULL), HEC_ERR_NOTFOUND);
    assert_int_equal(start_names("10.0.0.1", "443", ""), HEC_ERR_NOTFOUND);
    memset(node, 'n', sizeof node);
    node[sizeof node - 1] = '\0';
    assert_int_equal(start_names("10.0.0.1", "443", node), HEC_ERR_LIMIT);
    assert_string_equal(why.text, "too long a name of a node");
    for (int six = 0; six < 2; six++) {
        memset(&fake, 0, sizeof fake);
        fake.status[0] = fake.status[1] = 200;
        fake.answer = "{\"items\":[{\"metadata\":{\"name\":\"train-0\",\"namespace\":\"ml\",\"uid\":\"" UID "\"}}]}";
        assert_int_equal(start_names(six ? "fd00::1" : "10.0.0.1", "443", "n1"), HEC_OK);
        while (!hec_pod_names_find(names, UID, &tenant))
            sched_yield();
        assert_string_equal(tenant.pod, "train-0");
        assert_string_equal(tenant.pod_namespace, "ml");
        assert_string_equal(tenant.job, "7");
        assert_false(hec_pod_names_find(names, "another", &tenant));
        assert_string_equal(tenant.pod, "train-0");
        assert_string_equal(
            fake.url, six ? "https://[fd00::1]:443/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0"
                          : "https://10.0.0.1:443/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&resourceVersion=0");
        assert_string_equal(fake.headers, "Authorization: Bearer secret|"
                                          "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1|");
        snprintf(ca, sizeof ca, "%s/ca.crt", folder);
        assert_string_equal(fake.ca, ca);
        assert_int_equal(fake.nosignal, 1);
        assert_int_equal(fake.noprogress, 0);
        assert_int_equal(fake.timeout, 10);
        assert_int_equal(fake.freed, fake.performed);
        assert_int_equal(fake.cleaned, fake.performed);
    }
}

/* An answer that is none: nobody has a name. */
TEST(answers_without_names) {
    static const struct {
        CURLcode code;
        long status;
        const char *answer;
    } cases[] = {
        {CURLE_COULDNT_CONNECT, 200, "{\"items\":[]}"}, {CURLE_OK, 403, "{\"items\":[]}"}, {CURLE_OK, 200, "{}"}};
    struct hec_tenant tenant = {0};
    folder_text("token", "secret\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&fake, 0, sizeof fake);
        fake.code[0] = cases[i].code;
        fake.status[0] = cases[i].status;
        fake.answer = cases[i].answer;
        assert_int_equal(start_names("10.0.0.1", "443", "n1"), HEC_OK);
        wait_for(1);
        assert_false(hec_pod_names_find(names, UID, &tenant));
        hec_pod_names_stop(names);
        assert_int_equal(fake.freed, fake.performed);
    }
}
