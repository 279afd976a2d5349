/* The file of --web-config: that of Prometheus' exporters (exporter-toolkit), TLS and basic auth. What it holds and HEC does not
 * do is refused: a server is never less protected than its file says. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_WEB_USERS_MAX 64
#define HEC_WEB_WRONG_MAX 8  /* addresses that were wrong a moment ago: a ninth waits for one of them */
#define HEC_WEB_HASH_SIZE 64 /* bcrypt: 60 characters */

struct sockaddr;

struct hec_web_config {
    char *cert, *key; /* PEM; NULL: no TLS */
    bool tls13;       /* nothing older */
    struct {
        char *name;
        char hash[HEC_WEB_HASH_SIZE];
        char known[64]; /* keyed digest of the password that was right, once `proven` */
        bool proven;
    } users[HEC_WEB_USERS_MAX];
    int user_count; /* 0: anybody */
    struct {
        uint64_t from;
        int64_t next_ns; /* no password from there is tried before */
    } wrong[HEC_WEB_WRONG_MAX];
};

/* HEC_ERR_NOTFOUND, HEC_ERR_PERMISSION, HEC_ERR_USAGE with a sentence. */
int hec_web_config_read(const char *path, struct hec_web_config *config, struct hec_why *why);
void hec_web_config_free(struct hec_web_config *config);

/* Where a password comes from, as a number that is not 0: an IPv4 address, also as IPv6 has it, or the network of an IPv6 one, of which a
 * host has all. This host is one, as anybody here can use all of 127.0.0.0/8; so is what has no such address (or NULL). */
uint64_t hec_web_origin(const struct sockaddr *address);
/* Whether the name has this password. One thread. A password that was right is known again without the work. After one that was
 * wrong there is no other try from there for a second, or for so long that all tries of all addresses take half a core at most.
 * from: hec_web_origin. */
bool hec_web_config_allows(struct hec_web_config *config, uint64_t from, const char *name, const char *password);
/* Users of another file from now on; what is `fresh` has the others then. */
void hec_web_config_swap_users(struct hec_web_config *config, struct hec_web_config *fresh);
