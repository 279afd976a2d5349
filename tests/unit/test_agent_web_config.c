/* The file of --web-config: what is taken, and that what is not understood is refused. */
#include "agent/web_config.h"
#include "base/clock.h"
#include "tests/unit/folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* "correct horse", at the lowest cost there is */
#define HASH "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
#define REST "$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"
#define TLS "tls_server_config:\n  cert_file: " HEC_SOURCE_DIR "/tests/e2e/agent_tls/cert.pem\n"
#define KEY "  key_file: " HEC_SOURCE_DIR "/tests/e2e/agent_tls/key.pem\n"

static int64_t now_ns = 1, look_ns; /* that passes from one look to the next */
static int64_t fake_now(void) {
    return now_ns += look_ns;
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
        {"basic_auth_users:\n  a: $2a" REST "\n  b: $2b" REST "\n  c: $2y" REST "\n", 3, false, false},
        {TLS KEY "  min_version: TLS12\n", 0, true, false},
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
        {TLS KEY "  key_file: other.pem\n", "twice: \"other.pem\""},
        {"basic_auth_users:\n  alice: $2x" REST "\n", "needs a bcrypt hash"},
        {"basic_auth_users:\n  alice: $2b" REST "e\n", "needs a bcrypt hash"},
        {"basic_auth_users:\n  alice: $2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6\n",
         "needs a bcrypt hash"},
        {"basic_auth_users:\n  alice: $2b.04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n",
         "needs a bcrypt hash"},
        {"root:*:20228:0:99999:7::: x\nroot:$6$hash: 1\n", "not a file of \"--web-config\""},
        {"? [a]\n: b\n", "a key that is no text in \"the file\""},
        {"a: b\n- c\n", "/web.yml:2: not YAML: "},
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

/* What is left of it would let everybody in, or hold the agent up. */
TEST(what_is_no_text) {
    static const char nul[] = "basic_auth_users:\n\0  alice: " HASH "\n", zeros[200];
    char brackets[1000], path[64];
    struct hec_web_config config;
    struct hec_why why = {""};
    memset(brackets, '{', sizeof brackets);
    assert_int_equal(hec_web_config_read(folder_write("web.yml", nul, sizeof nul - 1), &config, &why), HEC_ERR_CORRUPT);
    assert_non_null(strstr(why.text, "it holds a NUL"));
    assert_int_equal(hec_web_config_read(folder_write("web.yml", zeros, sizeof zeros), &config, &why), HEC_ERR_CORRUPT);
    assert_int_equal(hec_web_config_read(folder_write("web.yml", brackets, sizeof brackets), &config, &why),
                     HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "more than 200 brackets"));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(hec_web_config_read(path, &config, &why), HEC_ERR_CORRUPT);
    assert_non_null(strstr(why.text, "is no plain file"));
    assert_int_equal(hec_web_config_read("/dev/zero", &config, &why), HEC_ERR_CORRUPT);
}

/* So many users, and no more; a name of a file that fits no path. */
TEST(bounds) {
    struct hec_web_config config;
    struct hec_why why;
    static char text[1 << 16];
    for (int over = 0; over < 2; over++) {
        int length = sprintf(text, "basic_auth_users:\n");
        for (int i = 0; i < HEC_WEB_USERS_MAX + over; i++)
            length += sprintf(text + length, "  user%d: " HASH "\n", i);
        assert_int_equal(read_text(text, &config, &why), over ? HEC_ERR_USAGE : HEC_OK);
        if (over)
            assert_non_null(strstr(why.text, "too many users, from \"user"));
        assert_int_equal(config.user_count, over ? 0 : HEC_WEB_USERS_MAX);
        if (!over) {
            assert_string_equal(config.users[1].name, "user1");
            assert_string_equal(config.users[HEC_WEB_USERS_MAX - 1].hash, HASH);
        }
        hec_web_config_free(&config);
    }
    int length = sprintf(text, "tls_server_config:\n  cert_file: ");
    memset(text + length, 'x', 4096);
    strcpy(text + length + 4096, "\n");
    assert_int_equal(read_text(text, &config, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "too long a name:"));
}

/* Names of files are relative to the one that names them. */
TEST(certificates_lie_beside_the_file) {
    struct hec_web_config config;
    struct hec_why why = {""};
    folder_text("c.pem", "certificate\n");
    folder_text("k.pem", "key\n");
    if (read_text("tls_server_config:\n  cert_file: c.pem\n  key_file: k.pem\n", &config, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_string_equal(config.cert, "certificate\n");
    assert_string_equal(config.key, "key\n");
    hec_web_config_free(&config);
    assert_null(config.cert);
    assert_null(config.key);
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

/* After a wrong password there is a second of rest from there, or more where the work takes long: all tries of all addresses take half a
 * core at most. */
TEST(rest_after_a_wrong_password) {
    static const struct {
        int64_t took_ms, rest_ms;
    } row[] = {{0, 1000}, {1, 1000}, {100, 2 * 100 * HEC_WEB_WRONG_MAX}};
    struct hec_web_config config;
    hec_clock_set_source(&fake_clock);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(read_text("basic_auth_users:\n  alice: " HASH "\n", &config, NULL), HEC_OK);
        look_ns = row[i].took_ms * HEC_NS_PER_MS;
        assert_false(hec_web_config_allows(&config, 5, "alice", "wrong"));
        look_ns = 0;
        int64_t rest_ns = row[i].rest_ms * HEC_NS_PER_MS, end_ns = now_ns;
        if (rest_ns < HEC_NS_PER_S)
            rest_ns = HEC_NS_PER_S;
        now_ns = end_ns + rest_ns - 1;
        assert_false(hec_web_config_allows(&config, 5, "alice", "correct horse"));
        now_ns = end_ns + rest_ns;
        assert_true(hec_web_config_allows(&config, 5, "alice", "correct horse"));
        hec_web_config_free(&config);
    }
    hec_clock_set_source(NULL);
}

/* Users of another file from now on; what TLS is stays. */
TEST(users_are_swapped) {
    struct hec_web_config config, fresh;
    assert_int_equal(read_text(TLS KEY "basic_auth_users:\n  alice: " HASH "\n", &config, NULL), HEC_OK);
    assert_int_equal(read_text("basic_auth_users:\n  bob: " HASH "\n  carol: " HASH "\n", &fresh, NULL), HEC_OK);
    hec_web_config_swap_users(&config, &fresh);
    assert_int_equal(config.user_count, 2);
    assert_string_equal(config.users[1].name, "carol");
    assert_non_null(config.cert);
    assert_int_equal(fresh.user_count, 1);
    assert_string_equal(fresh.users[0].name, "alice");
    assert_null(fresh.cert);
    hec_web_config_free(&config);
    hec_web_config_free(&fresh);
}

ALL_TESTS(folder_make, folder_remove)
