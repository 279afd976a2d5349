/* The agent's server, asked over a socket of this machine; time is what the test says it is. */
#include "agent/http.h"
#include "base/clock.h"
#include "tests/unit/folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define S HEC_NS_PER_S
#define HASH "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e" /* "correct horse" */
#define AGE_NS (2 * S)

static _Atomic int64_t now_ns;
static int64_t fake_now(void) {
    return now_ns;
}
static const struct hec_clock_source fake_clock = {fake_now, fake_now};

static struct hec_http *http;
static struct hec_web_config web;
static int port;
static _Atomic int made[HEC_HTTP_PAGES];
static bool publishes;

static void make(void *context, enum hec_http_page page) {
    char text[64];
    assert_ptr_equal(context, &port);
    int times = ++made[page];
    if (publishes)
        hec_http_publish(http, page, text, (size_t)snprintf(text, sizeof text, "page %d, %d times\n", page, times));
}

static int serve(struct hec_web_config *with) {
    static const struct hec_http_maker maker = {make, &port, AGE_NS};
    int fd;
    struct hec_why why;
    memset(made, 0, sizeof made);
    publishes = true;
    if (hec_http_listen("0", &fd, &why) < 0 || hec_http_start(fd, with, &maker, &http, &why) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(sscanf(hec_http_url(http), "http://127.0.0.1:%d", &port), 1);
    return 0;
}

static int set_up(void **state) {
    now_ns = 1000 * S;
    hec_clock_set_source(&fake_clock);
    return folder_make(state) || serve(NULL);
}
static int tear_down(void **state) {
    hec_http_stop(http);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static int connected(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* All of the answer, to the end of the connection. */
static const char *answer_of(int fd) {
    static char text[65536];
    size_t length = 0;
    ssize_t got;
    while ((got = recv(fd, text + length, sizeof text - 1 - length, 0)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(fd);
    return text;
}

static const char *ask(const char *method, const char *path, const char *headers) {
    char request[1024];
    int fd = connected(),
        length = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", method,
                          path, headers);
    assert_int_equal(send(fd, request, (size_t)length, MSG_NOSIGNAL), length);
    return answer_of(fd);
}

static struct hec_http_counts counts(void) {
    struct hec_http_counts now;
    hec_http_counts(http, &now);
    return now;
}

TEST(what_is_asked_for_is_answered) {
    static const struct {
        const char *method, *path, *headers;
        int status;
        const char *has[3];
        bool refused;
    } row[] = {
        {"GET",
         "/metrics",
         "",
         200,
         {"Content-Type: text/plain; version=0.0.4", "page 0,", "Vary: Accept, Accept-Encoding"},
         false},
        {"GET",
         "/metrics",
         "Accept: application/openmetrics-text;version=1.0.0\r\n",
         200,
         {"Content-Type: application/openmetrics-text", "page 1,", NULL},
         false},
        {"GET", "/metrics", "Accept: text/html\r\n", 200, {"page 0,", "no-store", "nosniff"}, false},
        {"GET", "/metrics/now", "", 200, {"page 2,", "text/plain; version=0.0.4", NULL}, false},
        {"GET", "/", "", 200, {"page 3,", "Content-Type: text/html; charset=utf-8", "frame-ancestors 'none'"}, false},
        {"GET", "/live.json", "", 200, {"page 4,", "Content-Type: application/json", NULL}, false},
        {"HEAD", "/metrics", "", 200, {"Content-Length: ", NULL, NULL}, false},
        {"GET", "/metricsx", "", 404, {"not here: /metrics", NULL, NULL}, true},
        {"GET", "/metrics/", "", 404, {NULL, NULL, NULL}, true},
        {"POST", "/metrics", "Content-Length: 0\r\n", 405, {"Allow: GET, HEAD", "GET or HEAD", NULL}, true},
        {"DELETE", "/", "", 405, {NULL, NULL, NULL}, true},
        {"GET", "/healthz", "", 200, {"ok\n", NULL, NULL}, false},
        {"GET", "/readyz", "", 503, {"no\n", NULL, NULL}, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct hec_http_counts before = counts();
        int status = 0;
        const char *answer = ask(row[i].method, row[i].path, row[i].headers);
        sscanf(answer, "HTTP/1.1 %d", &status);
        if (status != row[i].status)
            fail_msg("%s %s: %s", row[i].method, row[i].path, answer);
        for (int k = 0; k < 3 && row[i].has[k]; k++)
            if (!strstr(answer, row[i].has[k]))
                fail_msg("%s %s: no \"%s\" in %s", row[i].method, row[i].path, row[i].has[k], answer);
        if (strcmp(row[i].method, "HEAD") == 0)
            assert_null(strstr(answer, "page"));
        assert_int_equal(counts().requests - before.requests, 1);
        assert_int_equal(counts().refused - before.refused, row[i].refused);
        assert_int_equal(counts().cut, 0);
    }
    assert_null(strstr(ask("GET", "/live.json", ""), "Vary:"));
    assert_null(strstr(ask("GET", "/metrics", ""), "Content-Security-Policy"));
    /* nobody asked for a body */
    assert_null(strstr(ask("GET", "/metrics", "Content-Length: 3\r\n\r\nabc"), "page"));
}

TEST(a_page_is_packed_for_who_takes_that) {
    static const struct {
        const char *accept;
        bool packed;
    } row[] = {{"gzip", true},         {"deflate, gzip", true},     {"GZIP", true},
               {"gzip, br", true},     {"gzip;q=0.5", true},        {"gzip; q=0", false},
               {"gzip;q=0.0", false},  {"deflate", false},          {"xgzip", false},
               {"gzipped", false},     {"gzip;x=1", false},         {"gzip\t;q=1.0, br;q=0", true},
               {"x-gzip, gzip", true}, {"br;q=1, gzip;q=0", false}, {"", false}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char header[128];
        snprintf(header, sizeof header, "Accept-Encoding: %s\r\n", row[i].accept);
        const char *answer = ask("GET", "/metrics", header);
        bool packed = strstr(answer, "Content-Encoding: gzip") != NULL;
        if (packed != row[i].packed || packed == (strstr(answer, "page 0") != NULL))
            fail_msg("%s: %s", row[i].accept, answer);
        if (packed)
            assert_memory_equal(strstr(answer, "\r\n\r\n") + 4, "\x1f\x8b\x08", 3);
    }
}

/* A page is made when it is asked for and old, and ahead of the next scrape while it is asked for. */
TEST(pages_are_made_when_they_are_needed) {
    ask("GET", "/metrics", "");
    assert_int_equal(made[0], 1);
    assert_int_equal(made[1] + made[2] + made[3] + made[4], 0);
    now_ns += AGE_NS + AGE_NS / 2;
    assert_non_null(strstr(ask("GET", "/metrics", ""), "page 0, 1 times")); /* as old as it may be */
    now_ns += 1;
    assert_non_null(strstr(ask("GET", "/metrics", ""), "page 0, 2 times"));
    now_ns += AGE_NS;
    hec_http_tick(http, now_ns, 10 * S);
    assert_int_equal(made[0], 3);
    now_ns += 60 * S; /* a scrape a minute later finds its page */
    hec_http_tick(http, now_ns, 10 * S);
    assert_non_null(strstr(ask("GET", "/metrics", ""), "page 0, 4 times"));
    now_ns += 150 * S + 1; /* nobody asked lately */
    hec_http_tick(http, now_ns, 10 * S);
    assert_int_equal(made[0], 4);
    assert_int_equal(made[1] + made[2] + made[3] + made[4], 0);
    publishes = false;
    assert_non_null(strstr(ask("GET", "/live.json", ""), "HTTP/1.1 503"));
    assert_int_equal(made[HEC_HTTP_LIVE], 1);
}

TEST(health_is_that_the_agent_goes_on) {
    assert_non_null(strstr(ask("GET", "/healthz", ""), "HTTP/1.1 200"));
    hec_http_ready(http, true);
    assert_non_null(strstr(ask("GET", "/readyz", ""), "HTTP/1.1 200"));
    hec_http_tick(http, now_ns, 10 * S);
    now_ns += 10 * S;
    assert_non_null(strstr(ask("GET", "/healthz", ""), "HTTP/1.1 200"));
    now_ns += 1;
    assert_non_null(strstr(ask("GET", "/healthz", ""), "HTTP/1.1 503"));
    hec_http_ready(http, false);
    assert_non_null(strstr(ask("GET", "/readyz", ""), "HTTP/1.1 503"));
}

/* Until so many connections were cut by the server. */
static void until_cut(uint64_t cut) {
    while (counts().cut < cut)
        usleep(1000);
    usleep(20000); /* and no more */
    assert_int_equal(counts().cut, cut);
}

static bool is_open(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
}

/* Of 64 the one that has been silent longest makes way for another: who never asked before who did. */
TEST(who_is_silent_longest_makes_way) {
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd[66];
    char answer[512];
    for (int i = 0; i < 66; i++) {
        fd[i] = connected();
        if (i < 2) { /* the first two ask */
            assert_true(send(fd[i], request, sizeof request - 1, MSG_NOSIGNAL) > 0);
            assert_true(recv(fd[i], answer, sizeof answer, 0) > 0);
        }
        while (i == 1 && counts().requests < 2)
            usleep(1000);
        usleep(2000); /* it is taken in */
        now_ns += S / 100;
        if (i == 63)
            until_cut(0);
    }
    until_cut(2);
    for (int i = 0; i < 66; i++) {
        assert_int_equal(is_open(fd[i]), i != 2 && i != 3);
        close(fd[i]);
    }
}

/* Who brings no request within 10 s is cut, who did has two minutes. */
TEST(silence_is_bounded) {
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    char answer[512];
    int silent = connected(), served = connected();
    assert_true(send(served, request, sizeof request - 1, MSG_NOSIGNAL) > 0);
    assert_true(recv(served, answer, sizeof answer, 0) > 0);
    usleep(20000);
    now_ns += 10 * S;
    hec_http_tick(http, now_ns, 10 * S);
    until_cut(0);
    now_ns += 1;
    hec_http_tick(http, now_ns, 10 * S);
    until_cut(1);
    assert_true(is_open(served) && !is_open(silent));
    now_ns += 110 * S - 1;
    hec_http_tick(http, now_ns, 10 * S);
    until_cut(1);
    now_ns += 1;
    hec_http_tick(http, now_ns, 10 * S);
    until_cut(2);
    assert_false(is_open(served));
    close(silent);
    close(served);
}

TEST(with_users_a_password_is_asked_for) {
    static const char config[] = "basic_auth_users:\n  alice: " HASH "\n", none[] = "basic_auth_users:\n";
    struct hec_web_config fresh;
    hec_http_stop(http);
    assert_int_equal(hec_web_config_read(folder_write("web.yml", config, sizeof config - 1), &web, NULL), HEC_OK);
    serve(&web);
    const char *answer = ask("GET", "/metrics", "");
    assert_non_null(strstr(answer, "HTTP/1.1 401"));
    assert_non_null(strstr(answer, "WWW-Authenticate: Basic realm=\"hec\""));
    assert_int_equal(counts().unauthorized, 1);
    assert_non_null(strstr(ask("GET", "/healthz", ""), "HTTP/1.1 200")); /* probes have none */
    /* alice:correct horse */
    assert_non_null(
        strstr(ask("GET", "/metrics", "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\n"), "HTTP/1.1 200"));
    assert_non_null(
        strstr(ask("GET", "/metrics", "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZg==\r\n"), "HTTP/1.1 401"));
    assert_int_equal(counts().unauthorized, 2);
    assert_int_equal(made[0], 1);
    assert_int_equal(hec_web_config_read(folder_write("web.yml", none, sizeof none - 1), &fresh, NULL), HEC_OK);
    hec_http_swap_users(http, &fresh);
    assert_non_null(strstr(ask("GET", "/metrics", ""), "HTTP/1.1 200"));
    hec_http_stop(http);
    hec_web_config_free(&fresh);
    hec_web_config_free(&web);
    serve(NULL);
}

TEST(addresses) {
    static const struct {
        const char *on, *url; /* url NULL: it is no address */
    } row[] = {{"0", "http://127.0.0.1:"},
               {"127.0.0.1:0", "http://127.0.0.1:"},
               {"127.0.0.2:0", "http://127.0.0.2:"},
               {"[127.0.0.1]:0", "http://127.0.0.1:"},
               {":0", "http://"},
               {"", NULL},
               {"x", NULL},
               {"127.0.0.1:", NULL},
               {"127.0.0.1:65536", NULL},
               {"127.0.0.1:655350", NULL},
               {"127.0.0.1:-1", NULL},
               {"127.0.0.1:8o", NULL},
               {"no such host:80", NULL},
               {"0000000000000000000000000000000000000000000000000000000000000000:80", NULL}};
    static const struct hec_http_maker maker = {make, &port, AGE_NS};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        int fd = -1;
        struct hec_why why = {""};
        struct hec_http *other;
        int err = hec_http_listen(row[i].on, &fd, &why);
        if ((err == HEC_OK) != (row[i].url != NULL))
            fail_msg("%s: %d %s", row[i].on, err, why.text);
        if (err < 0) {
            assert_int_equal(err, HEC_ERR_USAGE);
            assert_non_null(strstr(why.text, row[i].on));
            continue;
        }
        assert_int_equal(hec_http_start(fd, NULL, &maker, &other, &why), HEC_OK);
        assert_memory_equal(hec_http_url(other), row[i].url, strlen(row[i].url));
        assert_true(strrchr(hec_http_url(other), ':')[1] != '0');
        hec_http_stop(other);
    }
    char taken[32];
    int fd = 0;
    struct hec_why why;
    struct hec_http *six;
    if (hec_http_listen("[::1]:0", &fd, &why) == HEC_OK) { /* where there is IPv6 */
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_int_equal(hec_http_start(fd, NULL, &maker, &six, &why), HEC_OK);
        assert_memory_equal(hec_http_url(six), "http://[::1]:", 13);
        hec_http_stop(six);
    }
    snprintf(taken, sizeof taken, "127.0.0.1:%d", port);
    assert_true(hec_http_listen(taken, &fd, &why) < 0);
    assert_int_equal(fd, -1);
    assert_non_null(strstr(why.text, "cannot listen on 127.0.0.1:"));
    hec_http_stop(NULL);
}

/* With a certificate only who speaks TLS is answered; one whose key is another's, or none, is refused. */
TEST(a_certificate_makes_it_https) {
    static const char config[] = "tls_server_config:\n  cert_file: " HEC_SOURCE_DIR "/tests/e2e/agent_tls/cert.pem\n"
                                 "  key_file: " HEC_SOURCE_DIR "/tests/e2e/agent_tls/key.pem\n";
    static const struct hec_http_maker maker = {make, &port, AGE_NS};
    struct hec_http *plain = http;
    int fd, before = open_files();
    struct hec_why why = {""};
    for (int good = 0; good < 2; good++) {
        assert_int_equal(hec_web_config_read(folder_write("web.yml", config, sizeof config - 1), &web, NULL), HEC_OK);
        if (!good)
            strcpy(web.key, "no key");
        assert_int_equal(hec_http_listen("0", &fd, &why), HEC_OK);
        int err = hec_http_start(fd, &web, &maker, &http, &why);
        assert_int_equal(err, good ? HEC_OK : HEC_ERR_FAILED);
        if (good) {
            assert_int_equal(sscanf(hec_http_url(http), "https://127.0.0.1:%d", &port), 1);
            assert_null(strstr(ask("GET", "/healthz", ""), "HTTP/1.1 200"));
            hec_http_stop(http);
        } else {
            assert_string_equal(why.text, "the server does not start: are certificate and key of --web-config a pair?");
        }
        hec_web_config_free(&web);
        assert_int_equal(open_files(), before);
    }
    http = plain;
}

/* Who asks for a packed page gets it so at the next scrape too, made ahead; it has the same text. */
TEST(a_packed_page_is_kept_beside_the_plain_one) {
    const char *packed = ask("GET", "/metrics", "Accept-Encoding: gzip\r\n");
    assert_non_null(strstr(packed, "Content-Encoding: gzip"));
    assert_non_null(strstr(packed, "Content-Type: text/plain; version=0.0.4"));
    assert_int_equal(made[0], 1);
    assert_non_null(strstr(ask("GET", "/metrics", ""), "page 0, 1 times\n")); /* the same making */
    now_ns += AGE_NS;
    hec_http_tick(http, now_ns, 10 * S);
    packed = ask("GET", "/metrics", "Accept-Encoding: gzip\r\n");
    assert_int_equal(made[0], 2);
    char plain[64];
    const unsigned char *body = (const unsigned char *)strstr(packed, "\r\n\r\n") + 4;
    int length = 0;
    assert_int_equal(sscanf(strstr(packed, "Content-Length: "), "Content-Length: %d", &length), 1);
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)body, .avail_in = (unsigned)length};
    stream.next_out = (unsigned char *)plain;
    stream.avail_out = sizeof plain;
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    plain[stream.total_out] = '\0';
    inflateEnd(&stream);
    assert_string_equal(plain, "page 0, 2 times\n");
    hec_http_publish(http, HEC_HTTP_PROMETHEUS, "", 0); /* of no length */
    assert_non_null(strstr(ask("GET", "/metrics", ""), "Content-Length: 0\r\n"));
}
