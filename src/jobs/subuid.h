/* Whom the ids of a user belong to who may have many: those that /etc/subuid gives to a user (containers without root) are his, so that
 * he has one user's share and not 65,536. */
#pragma once

#include <sys/types.h>

#define HEC_SUBUID_RANGES_MAX 1024

struct hec_subuid {
    int count;
    struct {
        uid_t owner, first, last;
    } range[HEC_SUBUID_RANGES_MAX];
};

/* Lines "NAME:FIRST:COUNT", NAME a number too; what is none is passed over. path NULL: /etc/subuid; where it cannot be read there are
 * none. */
void hec_subuid_read(struct hec_subuid *subuid, const char *path);
uid_t hec_subuid_owner(const struct hec_subuid *subuid, uid_t uid);
