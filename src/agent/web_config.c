#include "agent/web_config.h"

#include "base/clock.h"
#include "base/sha256.h"
#include "launch/kept_file.h"

#include <crypt.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <yaml.h>

#define FILE_MAX (1u << 20)
#define NESTED_MOST 200
#define AFTER_WRONG_NS HEC_NS_PER_S
#define WORK_SHARE_MAX 2 /* one in so many seconds goes into tries of passwords, at most */
#define PASSWORD_MAX 512

struct parsing {
    yaml_document_t *document;
    const char *path;
    struct hec_web_config *config;
    struct hec_why *why;
};

static int refuse(const struct parsing *p, const char *what, const char *of) {
    return hec_fail(p->why, HEC_ERR_USAGE, "%s: %s \"%.60s\"", p->path, what, of);
}

static const char *scalar(const struct parsing *p, int id) {
    yaml_node_t *node = yaml_document_get_node(p->document, id);
    return node && node->type == YAML_SCALAR_NODE && strlen((char *)node->data.scalar.value) == node->data.scalar.length
               ? (const char *)node->data.scalar.value
               : NULL;
}

/* Calls `take` for each pair of a mapping; nothing at all (an empty value) is an empty mapping. */
static int each(struct parsing *p, const char *of, int id, int (*take)(struct parsing *, const char *, int)) {
    yaml_node_t *node = yaml_document_get_node(p->document, id);
    if (node && node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0)
        return HEC_OK;
    if (!node || node->type != YAML_MAPPING_NODE)
        return refuse(p, "not a mapping:", of);
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const char *name = scalar(p, pair->key);
        int err = name ? take(p, name, pair->value) : refuse(p, "a key that is no text in", of);
        if (err < 0)
            return err;
    }
    return HEC_OK;
}

/* A file with a NUL is refused: what comes after it would not be read, and that may be all users. */
static int read_file(const char *path, char **out, struct hec_why *why) {
    char *text;
    size_t length;
    int err = hec_small_file_read(path, FILE_MAX, &text, &length, why);
    if (err == HEC_OK && memchr(text, 0, length))
        err = hec_fail(why, HEC_ERR_CORRUPT, "%s is no text: it holds a NUL", path);
    if (err < 0) {
        free(text);
        return err;
    }
    text[length] = '\0';
    *out = text;
    return HEC_OK;
}

/* Named relative to the folder of the file that names it. */
static int read_beside(const struct parsing *p, const char *name, char **out) {
    char path[PATH_MAX];
    const char *slash = strrchr(p->path, '/');
    int folder = name[0] == '/' || !slash ? 0 : (int)(slash - p->path) + 1;
    if (*out)
        return refuse(p, "twice:", name);
    if (snprintf(path, sizeof path, "%.*s%s", folder, p->path, name) >= (int)sizeof path)
        return refuse(p, "too long a name:", name);
    return read_file(path, out, p->why);
}

static int take_tls(struct parsing *p, const char *name, int id) {
    const char *value = scalar(p, id);
    if (value && strcmp(name, "cert_file") == 0)
        return read_beside(p, value, &p->config->cert);
    if (value && strcmp(name, "key_file") == 0)
        return read_beside(p, value, &p->config->key);
    if (value && strcmp(name, "min_version") == 0 && (!strcmp(value, "TLS12") || !strcmp(value, "TLS13"))) {
        p->config->tls13 = strcmp(value, "TLS13") == 0;
        return HEC_OK;
    }
    if (value && strcmp(name, "client_auth_type") == 0 && (!*value || strcmp(value, "NoClientCert") == 0))
        return HEC_OK;
    if (value && !*value)
        return HEC_OK;
    return refuse(p, "hec does not do, in tls_server_config:", name);
}

static int take_user(struct parsing *p, const char *name, int id) {
    const char *hash = scalar(p, id);
    struct hec_web_config *config = p->config;
    if (config->user_count == HEC_WEB_USERS_MAX)
        return refuse(p, "too many users, from", name);
    if (!hash || strlen(hash) != 60 || strncmp(hash, "$2", 2) != 0 || !strchr("aby", hash[2]) || hash[3] != '$')
        return refuse(p, "needs a bcrypt hash ($2y$...), as `htpasswd -nBC 10` prints it: user", name);
    config->users[config->user_count].name = strdup(name);
    if (!config->users[config->user_count].name)
        return hec_fail(p->why, HEC_ERR_NOMEM, "out of memory");
    snprintf(config->users[config->user_count++].hash, HEC_WEB_HASH_SIZE, "%s", hash);
    return HEC_OK;
}

/* HTTP/2 is not spoken, which a client finds out by itself. */
static int take_http(struct parsing *p, const char *name, int id) {
    return scalar(p, id) && strcmp(name, "http2") == 0 ? HEC_OK
                                                       : refuse(p, "hec does not do, in http_server_config:", name);
}

static int take_top(struct parsing *p, const char *name, int id) {
    if (strcmp(name, "tls_server_config") == 0)
        return each(p, name, id, take_tls);
    if (strcmp(name, "basic_auth_users") == 0)
        return each(p, name, id, take_user);
    if (strcmp(name, "http_server_config") == 0)
        return each(p, name, id, take_http);
    /* the name may be a line of another file, such as /etc/shadow: it is not shown */
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") < strlen(name))
        return refuse(p, "not a file of", "--web-config");
    return refuse(p, "hec does not do:", name);
}

static int parse(const char *path, const char *text, struct hec_web_config *config, struct hec_why *why) {
    yaml_parser_t parser;
    yaml_document_t document;
    size_t nested = 0; /* the time that libyaml takes grows with the square of it */
    for (const char *at = text; *at; at++)
        nested += *at == '{' || *at == '[';
    if (nested > NESTED_MOST)
        return hec_fail(why, HEC_ERR_USAGE, "%s: not what hec reads: it holds more than %d brackets", path,
                        NESTED_MOST);
    if (!yaml_parser_initialize(&parser))
        return hec_fail(why, HEC_ERR_NOMEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    int err = HEC_OK;
    if (!yaml_parser_load(&parser, &document)) {
        err = hec_fail(why, HEC_ERR_USAGE, "%s:%zu: not YAML: %s", path, parser.problem_mark.line + 1,
                       parser.problem ? parser.problem : "");
    } else {
        struct parsing p = {&document, path, config, why};
        if (yaml_document_get_root_node(&document))
            err = each(&p, "the file", 1, take_top);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    if (err == HEC_OK && !config->cert != !config->key)
        err = hec_fail(why, HEC_ERR_USAGE, "%s: cert_file and key_file go together", path);
    return err;
}

int hec_web_config_read(const char *path, struct hec_web_config *config, struct hec_why *why) {
    char *text = NULL;
    memset(config, 0, sizeof *config);
    int err = read_file(path, &text, why);
    if (err == HEC_OK)
        err = parse(path, text, config, why);
    free(text);
    if (err < 0)
        hec_web_config_free(config);
    return err;
}

void hec_web_config_free(struct hec_web_config *config) {
    for (int i = 0; i < config->user_count; i++)
        free(config->users[i].name);
    if (config->key)
        explicit_bzero(config->key, strlen(config->key));
    free(config->cert);
    free(config->key);
    memset(config, 0, sizeof *config);
}

/* ---- passwords ---- */

/* Without the key, which lives as long as the process, nothing can be guessed from it at leisure. */
static void fingerprint(const char *password, char text[HEC_SHA256_TEXT]) {
    static unsigned char key[32];
    static bool drawn;
    unsigned char bytes[sizeof key + PASSWORD_MAX];
    if (!drawn)
        drawn = getrandom(key, sizeof key, 0) == sizeof key;
    size_t length = strlen(password);
    memcpy(bytes, key, sizeof key);
    memcpy(bytes + sizeof key, password, length);
    hec_sha256(text, bytes, sizeof key + length);
    explicit_bzero(bytes, sizeof bytes);
}

static bool same(const char *a, const char *b, size_t length) {
    unsigned char differ = 0;
    for (size_t i = 0; i < length; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

/* Where wrong passwords from there are counted; of a new one in the place of the one that may try soonest. */
static size_t wrong_from(const struct hec_web_config *config, uint64_t from) {
    size_t soonest = 0;
    for (size_t i = 0; i < HEC_WEB_WRONG_MAX; i++) {
        if (config->wrong[i].from == from)
            return i;
        if (config->wrong[i].next_ns < config->wrong[soonest].next_ns)
            soonest = i;
    }
    return soonest;
}

uint64_t hec_web_origin(const struct sockaddr *address) {
    struct in6_addr six = {0};
    uint64_t from;
    if (address && address->sa_family == AF_INET) {
        six.s6_addr[10] = six.s6_addr[11] = 0xff;
        memcpy(&six.s6_addr[12], &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address && address->sa_family == AF_INET6) {
        six = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    }
    bool mapped = IN6_IS_ADDR_V4MAPPED(&six);
    if (mapped && six.s6_addr[12] == IN_LOOPBACKNET)
        six = (struct in6_addr){0}, mapped = false;
    memcpy(&from, &six.s6_addr[mapped ? 8 : 0], sizeof from);
    return from + 1; /* 0: an unused place */
}

bool hec_web_config_allows(struct hec_web_config *config, uint64_t from, const char *name, const char *password) {
    char print[HEC_SHA256_TEXT];
    int user = 0;
    if (strlen(password) >= PASSWORD_MAX)
        return false;
    fingerprint(password, print);
    while (user < config->user_count && strcmp(config->users[user].name, name) != 0)
        user++;
    bool known = user < config->user_count;
    if (known && config->users[user].proven && same(config->users[user].known, print, 64))
        return true;
    int64_t now_ns = hec_clock_mono_ns();
    size_t wrong = wrong_from(config, from);
    if (now_ns < config->wrong[wrong].next_ns)
        return false;
    static struct crypt_data data;
    /* a name that does not exist takes as long */
    const char *hash = config->users[known ? user : 0].hash;
    const char *got = crypt_rn(password, hash, &data, sizeof data);
    bool right = known && got && strlen(got) == strlen(hash) && same(got, hash, strlen(hash));
    explicit_bzero(&data, sizeof data);
    if (right) {
        memcpy(config->users[user].known, print, 64);
        config->users[user].proven = true;
    } else {
        config->wrong[wrong].from = from;
        int64_t end_ns = hec_clock_mono_ns(), pause_ns = WORK_SHARE_MAX * HEC_WEB_WRONG_MAX * (end_ns - now_ns);
        config->wrong[wrong].next_ns = end_ns + (pause_ns > AFTER_WRONG_NS ? pause_ns : AFTER_WRONG_NS);
    }
    return right;
}

void hec_web_config_swap_users(struct hec_web_config *config, struct hec_web_config *fresh) {
    struct hec_web_config before = *config;
    memcpy(config->users, fresh->users, sizeof config->users);
    config->user_count = fresh->user_count;
    memcpy(fresh->users, before.users, sizeof fresh->users);
    fresh->user_count = before.user_count;
}
