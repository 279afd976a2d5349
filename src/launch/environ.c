#include "launch/environ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int append(struct hec_environ *env, char *entry) {
    char **list = entry ? realloc(env->list, (env->count + 2) * sizeof *list) : NULL;
    if (!list) {
        free(entry);
        return HEC_ERR_NOMEM;
    }
    env->list = list;
    list[env->count++] = entry;
    list[env->count] = NULL;
    return HEC_OK;
}

int hec_environ_copy(struct hec_environ *env, char *const *from) {
    memset(env, 0, sizeof *env);
    for (; *from; from++) {
        int err = append(env, strdup(*from));
        if (err < 0)
            return err;
    }
    return HEC_OK;
}

static char **find(const struct hec_environ *env, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->list[i], name, length) == 0 && env->list[i][length] == '=')
            return &env->list[i];
    return NULL;
}

int hec_environ_set(struct hec_environ *env, const char *name, const char *value) {
    char *entry;
    if (asprintf(&entry, "%s=%s", name, value) < 0)
        return HEC_ERR_NOMEM;
    char **old = find(env, name);
    if (!old)
        return append(env, entry);
    free(*old);
    *old = entry;
    return HEC_OK;
}

int hec_environ_prepend(struct hec_environ *env, const char *name, const char *value) {
    const char *old = hec_environ_get(env, name);
    if (!old || !*old)
        return hec_environ_set(env, name, value);
    char *joined;
    if (asprintf(&joined, "%s:%s", value, old) < 0)
        return HEC_ERR_NOMEM;
    int err = hec_environ_set(env, name, joined);
    free(joined);
    return err;
}

const char *hec_environ_get(const struct hec_environ *env, const char *name) {
    char **entry = find(env, name);
    return entry ? strchr(*entry, '=') + 1 : NULL;
}

void hec_environ_free(struct hec_environ *env) {
    for (size_t i = 0; i < env->count; i++)
        free(env->list[i]);
    free(env->list);
    memset(env, 0, sizeof *env);
}
