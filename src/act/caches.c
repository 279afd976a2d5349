#include "act/caches.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const names[] = {
    [HEC_CACHES_TRIALS] = "trials", [HEC_CACHES_FRESH] = "fresh", [HEC_CACHES_USER] = "user"};

static const struct {
    const char *variable, *folder;
} caches[] = {
#define HEC_CACHE(variable, folder) {variable, folder},
#include "act/caches.def"
#undef HEC_CACHE
};

enum hec_caches hec_caches_find(const char *name) {
    int i = 0;
    while (i < HEC_CACHES_COUNT && strcmp(names[i], name) != 0)
        i++;
    return (enum hec_caches)i;
}

int hec_caches_set(const char *folder, struct hec_environ *environ, struct hec_why *why) {
    for (size_t i = 0; i < sizeof caches / sizeof caches[0]; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", folder, caches[i].folder) >= (int)sizeof path)
            return hec_fail(why, HEC_ERR_LIMIT, "the path of the compile caches is too long: %s", folder);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return hec_fail(why, hec_err_from_errno(errno), "no folder for compile caches: %s: %s", path,
                            strerror(errno));
        if (hec_environ_set(environ, caches[i].variable, path) < 0)
            return hec_fail(why, HEC_ERR_NOMEM, "no memory for the environment");
    }
    return HEC_OK;
}
