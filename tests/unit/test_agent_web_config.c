/* The file of --web-config: what is taken, and that what is not understood is refused. */
#include "agent/web_config.h"
#include "base/clock.h"
#include "tests/unit/folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* "correct horse", at the lowest cost there is */
#define HASH "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
#define TLS "tls_server_config:\n  cert_file: " HEC_SOURCE_DIR "/tests/e2e/agent_tls/cert.pem\n"
#define KEY "  key_file: " HEC_SOURCE_DIR "/tests/e2e/agent_tls/key.pem\n"

static int64_t now_ns = 1;
static int64_t fake_now(void) {
    return now_ns;
}
static const struct hec_clock_source fake_clock = {fake_now, fake_now};

static int read_text(const char *text, struct hec_web_config *config, struct hec_why *why) {
    return hec_web_config_read(folder_write("web.yml", text, strlen(text)), config, why);
}

TEST(takes) {
    static const struct {
        const char *text;
        int users;
        bool tls, tls13;
    } good[] = {
        {"", 0, false, false},
        {"# nothing\n", 0, false, false},
        {"basic_auth_users:\n", 0, false, false},
        {"basic_auth_users:\n  alice: " HASH "\n  'bob: b': \"" HASH "\"\n", 2, false, false},
        {TLS KEY, 0, true, false},
        {TLS KEY "  min_version: TLS13\n  client_auth_type: NoClientCert\n  client_ca_file: \"\"\n", 0, true, true},
        {"http_server_config:\n  http2: true\n", 0, false, false},
    };
    int before = open_files();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct hec_web_config config;
        struct hec_why why = {""};
        if (read_text(good[i].text, &config, &why) < 0)
            fail_msg("%s\n%s", good[i].text, why.text);
        assert_int_equal(config.user_count, good[i].users);
        assert_true(good[i].tls == (config.cert && config.key) && good[i].tls13 == config.tls13);
        hec_web_config_free(&config);
    }
    assert_int_equal(open_files(), before);
}

TEST(refuses) {
    static const char *const bad[][2] = {
        {"- a\n", "not a mapping"},
        {"{", "not YAML"},
        {"basic_auth_users: [a]\n", "not a mapping: \"basic_auth_users\""},
        {"basic_auth_users:\n  alice: secret\n", "needs a bcrypt hash"},
        {"basic_auth_users:\n  alice: $1$abcdefgh$aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
         "needs a bcrypt hash"},
        {"basic_auth_users:\n  alice:\n    more: 1\n", "needs a bcrypt hash"},
        {"basic_auth_user:\n  alice: " HASH "\n", "hec does not do: \"basic_auth_user\""},
        {TLS, "go together"},
        {TLS KEY "  client_auth_type: RequireAndVerifyClientCert\n", "client_auth_type"},
        {TLS KEY "  client_ca_file: ca.pem\n", "client_ca_file"},
        {TLS KEY "  cipher_suites: [a]\n", "cipher_suites"},
        {TLS KEY "  min_version: TLS10\n", "min_version"},
        {"tls_server_config:\n  cert_file: none.pem\n", "/none.pem: No such file"}, /* beside the file */
        {"http_server_config:\n  headers:\n    a: b\n", "headers"},
    };
    int before = open_files();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hec_web_config config;
        struct hec_why why = {""};
        if (read_text(bad[i][0], &config, &why) >= 0)
            fail_msg("taken: %s", bad[i][0]);
        if (!strstr(why.text, bad[i][1]))
            fail_msg("%s\n%s", bad[i][0], why.text);
        assert_null(config.cert);
    }
    assert_int_equal(open_files(), before);
}

static uint64_t origin_of(const char *text) {
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_flowinfo = 7}; /* where IPv4 has its address */
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return hec_web_origin((struct sockaddr *)&four);
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return hec_web_origin((struct sockaddr *)&six);
}

/* Who is one, and who are two: an address, or a host's network; nobody else is as this host is. */
TEST(where_passwords_come_from) {
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1", "193.0.2.1", false},
        {"192.0.2.1", "::ffff:192.0.2.1", true},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},
        {"127.0.0.1", "127.9.8.7", true},
        {"127.0.0.1", "::1", true},
        {"127.0.0.1", "::ffff:127.0.0.7", true},
        {"127.0.0.1", "192.0.2.1", false},
        {"2001:db8::1", "2001:db8::ffff:1", true},
        {"2001:db8::1", "2001:db8:0:1::1", false},
        {"2001:db8::1", "2001:db9::1", false},
        {"2001:db8::1", "::1", false},
        {"2001:db8::1", "32.1.13.184", false},
        {"fe80::1", "0.0.0.7", false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if ((origin_of(pairs[i].a) == origin_of(pairs[i].b)) != pairs[i].same)
            fail_msg("%s and %s", pairs[i].a, pairs[i].b);
        assert_true(origin_of(pairs[i].a) != 0 && origin_of(pairs[i].b) != 0);
    }
    assert_true(hec_web_origin(NULL) == origin_of("::1"));
}

TEST(passwords) {
    struct hec_web_config config;
    hec_clock_set_source(&fake_clock);
    assert_int_equal(
        read_text("basic_auth_users:\n  alice: " HASH "\n  bob: " HASH "\n  carol: " HASH "\n", &config, NULL), HEC_OK);
    assert_true(hec_web_config_allows(&config, 1, "alice", "correct horse"));
    assert_false(hec_web_config_allows(&config, 1, "alice", "correct hors"));
    assert_true(hec_web_config_allows(&config, 1, "alice", "correct horse")); /* known */
    assert_false(hec_web_config_allows(&config, 1, "bob", "correct horse"));  /* no try so soon after a wrong one */
    assert_true(hec_web_config_allows(&config, 2, "bob", "correct horse"));   /* from there; from elsewhere there is */
    for (uint64_t from = 3; from < 2 + HEC_WEB_WRONG_MAX; from++)
        assert_false(hec_web_config_allows(&config, from, "carol", ""));
    assert_false(hec_web_config_allows(&config, 99, "carol", "correct horse")); /* as many as may be at once */
    now_ns += 2 * HEC_NS_PER_S;
    assert_true(hec_web_config_allows(&config, 99, "carol", "correct horse"));
    assert_true(hec_web_config_allows(&config, 1, "bob", "correct horse"));
    assert_false(hec_web_config_allows(&config, 1, "eve", "correct horse"));
    now_ns += 2 * HEC_NS_PER_S;
    assert_false(hec_web_config_allows(&config, 1, "", ""));
    now_ns += 2 * HEC_NS_PER_S;
    char lengthy[4096];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    assert_false(hec_web_config_allows(&config, 1, "alice", lengthy));
    hec_web_config_free(&config);
    hec_clock_set_source(NULL);
}

ALL_TESTS(folder_make, folder_remove)
