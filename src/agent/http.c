#include "agent/http.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "report/export/exposition.h"
#include "report/html.h"

#define CONNECTIONS_MAX 64             /* one more, and who has been silent longest goes */
#define CONNECTIONS_LIMIT 96           /* the library's own: what is being ended still counts */
#define MEMORY_MAX 8192                /* bytes of a connection: request line and headers */
#define REQUEST_NS (10 * HEC_NS_PER_S) /* from the connection to its first request */
#define IDLE_S 120                     /* between requests */
#define BACKLOG 64
#define WANTED_NS                                                                                                      \
    (150 * HEC_NS_PER_S) /* a page is made each interval for so long after it was asked for: two scrapes of a minute */

struct connection {
    struct MHD_Connection *is;
    int fd;
    int64_t since_ns; /* connected, or its latest request ended */
    bool served;
};

struct hec_http {
    struct MHD_Daemon *daemon;
    char url[128];
    bool tls;
    struct hec_web_config *web; /* its users: under the lock of it */
    pthread_mutex_t web_lock;
    struct hec_http_maker maker;
    pthread_mutex_t lock;                                                /* of what follows */
    struct MHD_Response *pages[HEC_HTTP_PAGES], *packed[HEC_HTTP_PAGES]; /* packed: as gzip, where that was asked for */
    bool gzip[HEC_HTTP_PAGES];                                           /* it was */
    int64_t asked_ns[HEC_HTTP_PAGES], made_ns[HEC_HTTP_PAGES];           /* 0: never */
    bool ready;
    int64_t tick_ns, stale_ns;
    struct hec_http_counts counts;
    struct connection connections[CONNECTIONS_LIMIT];
    int connection_count;
};

static const char *const types[HEC_HTTP_PAGES] = {
    [HEC_HTTP_PROMETHEUS] = HEC_EXPOSITION_TYPE_PROMETHEUS,
    [HEC_HTTP_OPENMETRICS] = HEC_EXPOSITION_TYPE_OPENMETRICS,
    [HEC_HTTP_CURRENT] = HEC_EXPOSITION_TYPE_PROMETHEUS,
    [HEC_HTTP_HTML] = "text/html; charset=utf-8",
    [HEC_HTTP_LIVE] = "application/json",
};

/* ---- connections ---- */

static struct connection *find(struct hec_http *http, const struct MHD_Connection *is) {
    for (int i = 0; i < http->connection_count; i++)
        if (http->connections[i].is == is)
            return &http->connections[i];
    return NULL;
}

/* The thread of the library then finds its end, and closes it. */
static void cut(struct hec_http *http, struct connection *connection) {
    shutdown(connection->fd, SHUT_RDWR);
    connection->since_ns = INT64_MAX; /* once */
    http->counts.cut++;
}

/* Those that never asked for anything before those that did. */
static struct connection *most_silent(struct hec_http *http) {
    struct connection *found = NULL;
    for (int i = 0; i < http->connection_count; i++) {
        struct connection *c = &http->connections[i];
        if (c->since_ns != INT64_MAX &&
            (!found || c->served < found->served || (c->served == found->served && c->since_ns < found->since_ns)))
            found = c;
    }
    return found;
}

static void on_connection(void *context, struct MHD_Connection *is, void **unused,
                          enum MHD_ConnectionNotificationCode code) {
    struct hec_http *http = context;
    (void)unused;
    pthread_mutex_lock(&http->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && http->connection_count < CONNECTIONS_LIMIT) {
        if (http->connection_count >= CONNECTIONS_MAX) {
            struct connection *silent = most_silent(http);
            if (silent)
                cut(http, silent);
        }
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(is, MHD_CONNECTION_INFO_CONNECTION_FD);
        http->connections[http->connection_count++] =
            (struct connection){.is = is, .fd = info ? info->connect_fd : -1, .since_ns = hec_clock_mono_ns()};
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct connection *connection = find(http, is);
        if (connection)
            *connection = http->connections[--http->connection_count];
    }
    pthread_mutex_unlock(&http->lock);
}

static void on_completed(void *context, struct MHD_Connection *is, void **unused,
                         enum MHD_RequestTerminationCode code) {
    struct hec_http *http = context;
    (void)unused;
    (void)code;
    pthread_mutex_lock(&http->lock);
    struct connection *connection = find(http, is);
    if (connection && connection->since_ns != INT64_MAX) {
        connection->since_ns = hec_clock_mono_ns();
        connection->served = true;
    }
    pthread_mutex_unlock(&http->lock);
}

/* ---- requests ---- */

static enum MHD_Result say(struct MHD_Connection *is, unsigned status, const char *text, const char *header,
                           const char *value) {
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
    if (header)
        MHD_add_response_header(response, header, value);
    enum MHD_Result result = MHD_queue_response(is, status, response);
    MHD_destroy_response(response);
    return result;
}

/* "gzip" in a list of codings, and not with the weight 0. */
static bool takes_gzip(struct MHD_Connection *is) {
    const char *accept = MHD_lookup_connection_value(is, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    for (const char *at = accept ? strcasestr(accept, "gzip") : NULL; at; at = strcasestr(at, "gzip")) {
        bool begins = at == accept || strchr(", \t", at[-1]);
        at += strlen("gzip");
        const char *weight = at + strspn(at, " \t");
        if (begins && (!*weight || *weight == ','))
            return true;
        if (begins && *weight == ';') {
            weight = strcasestr(weight, "q=");
            return weight && strtod(weight + 2, NULL) > 0;
        }
    }
    return false;
}

static enum MHD_Result show(struct hec_http *http, struct MHD_Connection *is, enum hec_http_page page) {
    int64_t now_ns = hec_clock_mono_ns();
    bool gzip = takes_gzip(is);
    pthread_mutex_lock(&http->lock);
    http->asked_ns[page] = now_ns;
    http->gzip[page] |= gzip;
    bool old = (gzip && !http->packed[page]) || http->made_ns[page] == 0 ||
               now_ns - http->made_ns[page] > http->maker.age_ns + http->maker.age_ns / 2;
    pthread_mutex_unlock(&http->lock);
    if (old)
        http->maker.make(http->maker.context, page);
    pthread_mutex_lock(&http->lock);
    struct MHD_Response *response = gzip && http->packed[page] ? http->packed[page] : http->pages[page];
    enum MHD_Result result = response ? MHD_queue_response(is, MHD_HTTP_OK, response) : MHD_NO;
    pthread_mutex_unlock(&http->lock);
    return response ? result : say(is, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready\n", NULL, NULL);
}

static uint64_t origin(struct MHD_Connection *is) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(is, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return hec_web_origin(info ? info->client_addr : NULL);
}

static bool allowed(struct hec_http *http, struct MHD_Connection *is) {
    if (!http->web)
        return true;
    char *password = NULL, *name = MHD_basic_auth_get_username_password(is, &password);
    pthread_mutex_lock(&http->web_lock);
    bool right = http->web->user_count == 0 ||
                 (name && password && hec_web_config_allows(http->web, origin(is), name, password));
    pthread_mutex_unlock(&http->web_lock);
    MHD_free(name);
    MHD_free(password);
    return right;
}

void hec_http_swap_users(struct hec_http *http, struct hec_web_config *fresh) {
    pthread_mutex_lock(&http->web_lock);
    hec_web_config_swap_users(http->web, fresh);
    pthread_mutex_unlock(&http->web_lock);
}

static void count(struct hec_http *http, uint64_t *which) {
    pthread_mutex_lock(&http->lock);
    ++*which;
    pthread_mutex_unlock(&http->lock);
}

static enum MHD_Result health(struct hec_http *http, struct MHD_Connection *is, bool readiness) {
    pthread_mutex_lock(&http->lock);
    bool good = readiness ? http->ready : hec_clock_mono_ns() - http->tick_ns <= http->stale_ns;
    pthread_mutex_unlock(&http->lock);
    return say(is, good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, good ? "ok\n" : "no\n", NULL, NULL);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *is, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **state) {
    static char begun;
    struct hec_http *http = context;
    (void)version;
    (void)upload;
    if (!*state)
        count(http, &http->counts.requests);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        count(http, &http->counts.refused);
        return say(is, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n", MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (*upload_size) /* nobody asked for a body */
        return MHD_NO;
    if (!*state) { /* who is answered in the first call is not kept connected */
        *state = &begun;
        return MHD_YES;
    }
    /* probes of an orchestrator have no password, and learn nothing */
    if (strcmp(url, "/healthz") == 0)
        return health(http, is, false);
    if (strcmp(url, "/readyz") == 0)
        return health(http, is, true);
    if (!allowed(http, is)) {
        count(http, &http->counts.unauthorized);
        return say(is, MHD_HTTP_UNAUTHORIZED, "name and password, please\n", MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                   "Basic realm=\"hec\"");
    }
    if (strcmp(url, "/metrics") == 0) {
        const char *accept = MHD_lookup_connection_value(is, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
        bool open = accept && strstr(accept, "application/openmetrics-text");
        return show(http, is, open ? HEC_HTTP_OPENMETRICS : HEC_HTTP_PROMETHEUS);
    }
    if (strcmp(url, "/metrics/now") == 0)
        return show(http, is, HEC_HTTP_CURRENT);
    if (strcmp(url, "/") == 0)
        return show(http, is, HEC_HTTP_HTML);
    if (strcmp(url, "/live.json") == 0)
        return show(http, is, HEC_HTTP_LIVE);
    count(http, &http->counts.refused);
    return say(is, MHD_HTTP_NOT_FOUND, "not here: /metrics /metrics/now /healthz /readyz /live.json /\n", NULL, NULL);
}

/* ---- beginning and end ---- */

/* A host and a port out of "HOST:PORT", "[HOST]:PORT", ":PORT" or "PORT"; host "": all addresses. */
static bool split(const char *listen, char host[64], char port[8]) {
    const char *colon = strrchr(listen, ':');
    const char *number = colon ? colon + 1 : listen;
    size_t length = colon ? (size_t)(colon - listen) : 0;
    if (length >= 2 && listen[0] == '[' && listen[length - 1] == ']') {
        listen++;
        length -= 2;
    }
    if (length >= 64 || !*number || strlen(number) > 5 || strspn(number, "0123456789") != strlen(number))
        return false;
    snprintf(host, 64, "%.*s", colon ? (int)length : 9, colon ? listen : "127.0.0.1");
    snprintf(port, 8, "%s", number);
    return atoi(number) <= 65535;
}

static int bound(const struct addrinfo *address) {
    int one = 1, fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int errnum = errno;
    close(fd);
    errno = errnum;
    return -1;
}

int hec_http_listen(const char *text, int *out, struct hec_why *why) {
    char host[64], port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    if (!split(text, host, port))
        return hec_fail(why, HEC_ERR_USAGE, "--listen needs ADDRESS:PORT, :PORT or PORT, not \"%.80s\"", text);
    int code = getaddrinfo(host[0] ? host : NULL, port, &hints, &found);
    if (code != 0)
        return hec_fail(why, HEC_ERR_USAGE, "cannot listen on \"%.80s\": %s", text, gai_strerror(code));
    *out = -1;
    /* all addresses: the socket of IPv6 takes IPv4 too, where there is IPv6 */
    for (int six = 1; six >= 0 && *out < 0; six--)
        for (struct addrinfo *a = found; a && *out < 0; a = a->ai_next)
            if ((a->ai_family == AF_INET6) == six || host[0])
                *out = bound(a);
    int errnum = errno;
    freeaddrinfo(found);
    return *out >= 0 ? HEC_OK
                     : hec_fail(why, hec_err_from_errno(errnum), "cannot listen on %s: %s", text, strerror(errnum));
}

static void name_url(struct hec_http *http, int fd) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char host[64] = "", port[8] = "";
    if (getsockname(fd, (struct sockaddr *)&address, &length) == 0)
        getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    bool six = strchr(host, ':') != NULL;
    snprintf(http->url, sizeof http->url, "http%s://%s%s%s:%s", http->tls ? "s" : "", six ? "[" : "", host,
             six ? "]" : "", port);
}

static struct MHD_Daemon *start(struct hec_http *http, int fd) {
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, http->tls ? http->web->cert : NULL},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, http->tls ? http->web->key : NULL},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         http->tls && http->web->tls13 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3"
                                       : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | (http->tls ? MHD_USE_TLS : 0);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_ARRAY, http->tls ? tls : tls + 3, MHD_OPTION_END);
}

int hec_http_start(int fd, struct hec_web_config *web, const struct hec_http_maker *maker, struct hec_http **out,
                   struct hec_why *why) {
    struct hec_http *http = calloc(1, sizeof *http);
    if (!http) {
        close(fd);
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the server");
    }
    pthread_mutex_init(&http->lock, NULL);
    pthread_mutex_init(&http->web_lock, NULL);
    http->web = web;
    http->maker = *maker;
    http->tls = web && web->cert;
    http->tick_ns = hec_clock_mono_ns();
    http->stale_ns = INT64_MAX;
    name_url(http, fd);
    http->daemon = start(http, fd);
    if (!http->daemon) {
        close(fd);
        hec_http_stop(http);
        return hec_fail(why, HEC_ERR_FAILED, "the server does not start%s",
                        web && web->cert ? ": are certificate and key of --web-config a pair?" : "");
    }
    *out = http;
    return HEC_OK;
}

const char *hec_http_url(const struct hec_http *http) {
    return http->url;
}

/* NULL: no memory. It takes `data` over, which malloc gave. */
static struct MHD_Response *response_of(enum hec_http_page page, void *data, size_t length) {
    struct MHD_Response *response = data ? MHD_create_response_from_buffer(length, data, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!response) {
        free(data);
        return NULL;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, types[page]);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (page == HEC_HTTP_HTML) {
        char policy[HEC_HTML_POLICY], header[HEC_HTML_POLICY + 32];
        snprintf(header, sizeof header, "%s; frame-ancestors 'none'", hec_html_policy(policy, true));
        MHD_add_response_header(response, "Content-Security-Policy", header);
    } else if (page != HEC_HTTP_LIVE) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
    }
    return response;
}

/* The quickest level: a page of eight devices takes a millisecond, and shrinks to a tenth. NULL: no memory. */
static struct MHD_Response *packed_of(enum hec_http_page page, const char *text, size_t length) {
    z_stream stream = {0};
    if (length > UINT_MAX || deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    uLong bound = deflateBound(&stream, length);
    unsigned char *data = malloc(bound);
    stream.next_in = (unsigned char *)(uintptr_t)text;
    stream.avail_in = (unsigned)length;
    stream.next_out = data;
    stream.avail_out = (unsigned)bound;
    bool done = data && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    size_t made = stream.total_out;
    deflateEnd(&stream);
    if (!done) {
        free(data);
        return NULL;
    }
    struct MHD_Response *response = response_of(page, data, made);
    if (response)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    return response;
}

int hec_http_publish(struct hec_http *http, enum hec_http_page page, const char *text, size_t length) {
    char *copy = malloc(length ? length : 1);
    if (copy)
        memcpy(copy, text, length);
    struct MHD_Response *response = response_of(page, copy, length);
    if (!response)
        return HEC_ERR_NOMEM;
    pthread_mutex_lock(&http->lock);
    bool gzip = http->gzip[page];
    pthread_mutex_unlock(&http->lock);
    struct MHD_Response *packed = gzip ? packed_of(page, text, length) : NULL;
    pthread_mutex_lock(&http->lock);
    struct MHD_Response *old[] = {http->pages[page], http->packed[page]};
    http->pages[page] = response;
    http->packed[page] = packed;
    http->made_ns[page] = hec_clock_mono_ns();
    pthread_mutex_unlock(&http->lock);
    for (int i = 0; i < 2; i++)
        if (old[i])
            MHD_destroy_response(old[i]); /* who reads it still has it */
    return HEC_OK;
}

void hec_http_ready(struct hec_http *http, bool ready) {
    pthread_mutex_lock(&http->lock);
    http->ready = ready;
    pthread_mutex_unlock(&http->lock);
}

void hec_http_tick(struct hec_http *http, int64_t now_ns, int64_t stale_ns) {
    pthread_mutex_lock(&http->lock);
    http->tick_ns = now_ns;
    http->stale_ns = stale_ns;
    for (int i = 0; i < http->connection_count; i++) {
        struct connection *c = &http->connections[i];
        if (c->since_ns != INT64_MAX && now_ns - c->since_ns > (c->served ? IDLE_S * HEC_NS_PER_S : REQUEST_NS))
            cut(http, c);
    }
    bool wanted[HEC_HTTP_PAGES];
    for (int page = 0; page < HEC_HTTP_PAGES; page++)
        wanted[page] = http->asked_ns[page] != 0 && now_ns - http->asked_ns[page] <= WANTED_NS;
    pthread_mutex_unlock(&http->lock);
    for (int page = 0; page < HEC_HTTP_PAGES; page++)
        if (wanted[page])
            http->maker.make(http->maker.context, (enum hec_http_page)page);
}

void hec_http_counts(struct hec_http *http, struct hec_http_counts *counts) {
    pthread_mutex_lock(&http->lock);
    *counts = http->counts;
    pthread_mutex_unlock(&http->lock);
}

void hec_http_stop(struct hec_http *http) {
    if (!http)
        return;
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    for (int page = 0; page < HEC_HTTP_PAGES; page++) {
        if (http->pages[page])
            MHD_destroy_response(http->pages[page]);
        if (http->packed[page])
            MHD_destroy_response(http->packed[page]);
    }
    pthread_mutex_destroy(&http->lock);
    pthread_mutex_destroy(&http->web_lock);
    free(http);
}
