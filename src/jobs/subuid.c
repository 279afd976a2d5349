#include "jobs/subuid.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Root's ids are nobody's: containers that root starts are several users'. */
static bool owner_of(const char *name, uid_t *owner) {
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (end == name || *end) {
        const struct passwd *user = getpwnam(name);
        number = user ? user->pw_uid : 0;
    }
    *owner = (uid_t)number;
    return number > 0 && number < UINT32_MAX;
}

void hec_subuid_read(struct hec_subuid *subuid, const char *path) {
    char line[512], name[256];
    unsigned long first, count;
    FILE *file = fopen(path ? path : "/etc/subuid", "re");
    subuid->count = 0;
    while (file && subuid->count < HEC_SUBUID_RANGES_MAX && fgets(line, sizeof line, file)) {
        uid_t owner;
        if (sscanf(line, "%255[^:]:%lu:%lu", name, &first, &count) != 3 || first == 0 || count == 0 ||
            first >= UINT32_MAX || count > UINT32_MAX - first || !owner_of(name, &owner))
            continue;
        subuid->range[subuid->count].owner = owner;
        subuid->range[subuid->count].first = (uid_t)first;
        subuid->range[subuid->count++].last = (uid_t)(first + count - 1);
    }
    if (file)
        fclose(file);
}

uid_t hec_subuid_owner(const struct hec_subuid *subuid, uid_t uid) {
    for (int i = 0; i < subuid->count; i++)
        if (uid >= subuid->range[i].first && uid <= subuid->range[i].last)
            return subuid->range[i].owner;
    return uid;
}
