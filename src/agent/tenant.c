#include "agent/tenant.h"

#include <string.h>

bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b) {
    return strcmp(a->pod, b->pod) == 0 && strcmp(a->job, b->job) == 0 && strcmp(a->command, b->command) == 0 &&
           strcmp(a->container, b->container) == 0 && strcmp(a->user, b->user) == 0 &&
           strcmp(a->pod_namespace, b->pod_namespace) == 0 && a->pid == b->pid;
}
