/* The environment of the observed command: a copy of ours with some variables set. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct hec_environ {
    char **list; /* NULL-terminated, as for execve */
    size_t count;
};

int hec_environ_copy(struct hec_environ *env, char *const *from);
/* Set NAME to value, replacing it if it is there. */
int hec_environ_set(struct hec_environ *env, const char *name, const char *value);
/* Put value before what a colon-separated path variable holds. */
int hec_environ_prepend(struct hec_environ *env, const char *name, const char *value);
const char *hec_environ_get(const struct hec_environ *env, const char *name);
void hec_environ_free(struct hec_environ *env);
