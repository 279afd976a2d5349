/* Names of the pods of this node by the API server, for an agent that does not see the kubelet's links: metadata alone (uid, namespace,
 * name), listed now and then, and sooner when a pod is met that is not known. One thread; libcurl is loaded only here. */
#pragma once

#include "agent/identity.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define HEC_POD_NAMES_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define HEC_POD_NAMES_MAX 1024 /* pods of one node; more are left out */

struct hec_pod_name {
    char uid[37];
    char pod_namespace[64], pod[254];
};

/* The pods in an answer of the API server; a static pod stands under the uid that its cgroup has. Returns how many, at most `most`;
 * HEC_ERR_CORRUPT: no list of pods. */
int hec_pod_names_parse(const char *text, size_t length, struct hec_pod_name *out, size_t most);

struct hec_pod_names;

/* The server by KUBERNETES_SERVICE_HOST and _PORT, the node by NODE_NAME, token and CA in account. Strings must outlive it.
 * HEC_ERR_NOTFOUND: not in Kubernetes, or without such an account; HEC_ERR_UNSUPPORTED: no libcurl here. */
int hec_pod_names_start(const char *account, struct hec_pod_names **out, struct hec_why *why);
/* NULL: none are known. False: not known yet; then it is asked for soon. */
bool hec_pod_names_find(struct hec_pod_names *names, const char *uid, struct hec_tenant *out);
void hec_pod_names_stop(struct hec_pod_names *names); /* within a second or so; NULL is fine */
