/* The kubelet's list of which container holds which devices (PodResources v1, List), asked for now and then over its socket. No
 * call waits: each does what can be done at once, so that a kubelet that hangs delays nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/pod_devices.h"
#include "base/clock.h"
#include "base/error.h"

#define HEC_KUBELET_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"
#define HEC_KUBELET_EVERY_NS (10 * HEC_NS_PER_S)
#define HEC_KUBELET_ABSENT_NS (60 * HEC_NS_PER_S)  /* when there is no socket: no Kubernetes, or not yet */
#define HEC_KUBELET_TIMEOUT_NS (10 * HEC_NS_PER_S) /* for an answer */
#define HEC_KUBELET_KEEP_NS                                                                                            \
    (600 * HEC_NS_PER_S) /* pods outlive a restart of the kubelet, so an old list is kept so long */

struct hec_kubelet;

/* socket_path NULL: HEC_KUBELET_SOCKET. HEC_ERR_NOMEM; HEC_ERR_LIMIT: too long a path. */
int hec_kubelet_create(const char *socket_path, struct hec_kubelet **out);
void hec_kubelet_free(struct hec_kubelet *kubelet); /* NULL is fine */

/* Do what is due; call it at least once an interval. Returns 1 when a new list has arrived, 0, or the error that ended this
 * attempt (HEC_ERR_NOTFOUND: there is no kubelet); the next one comes by itself. */
int hec_kubelet_poll(struct hec_kubelet *kubelet, int64_t now_ns, struct hec_why *why);

/* The newest list; empty before the first, and when it is too old. */
const struct hec_pod_devices *hec_kubelet_devices(const struct hec_kubelet *kubelet);

struct hec_grpc;

/* path: "/package.Service/Method", which outlives the call; the request is an empty message. HEC_ERR_NOMEM. */
int hec_grpc_begin(const char *path, struct hec_grpc **out);
void hec_grpc_end(struct hec_grpc *call); /* NULL is fine */

/* What to send next; 0: nothing at present. Valid until the next call of any function. HEC_ERR_FAILED. */
int64_t hec_grpc_output(struct hec_grpc *call, const uint8_t **bytes);
/* What came. Any error ends the call: HEC_ERR_CORRUPT (not HTTP/2, not gRPC), HEC_ERR_LIMIT, HEC_ERR_FAILED (the server said
 * no), HEC_ERR_NOMEM. */
int hec_grpc_input(struct hec_grpc *call, const uint8_t *bytes, size_t size, struct hec_why *why);
/* The answer is there, and is good. */
bool hec_grpc_done(const struct hec_grpc *call);
const uint8_t *hec_grpc_message(const struct hec_grpc *call, size_t *size);
