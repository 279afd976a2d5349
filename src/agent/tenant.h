/* Whom joules belong to: the labels of one series. Every text is clean (hec_text_clean), so that two tenants with the same
 * labels are the same tenant and no series stands twice on a page. An empty text is a label that is left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Kubernetes allows 63 characters for a namespace and a container, 253 for a pod. */
struct hec_tenant {
    char pod_namespace[64];
    char pod[254];
    char container[64];
    char job[64]; /* of Slurm */
    char user[33];
    char command[33];
    int32_t pid; /* 0: processes are not tenants of their own */
};

bool hec_tenant_equal(const struct hec_tenant *a, const struct hec_tenant *b);
