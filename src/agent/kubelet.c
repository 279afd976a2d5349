#include "agent/kubelet.h"

#include "agent/grpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READS_MAX 64 /* of 16 KiB, in one poll */

struct hec_kubelet {
    struct sockaddr_un address;
    int fd; /* -1: no call is under way */
    struct hec_grpc *call;
    int64_t due_ns, deadline_ns, listed_ns;
    struct hec_pod_devices devices;
};

int hec_kubelet_create(const char *socket_path, struct hec_kubelet **out) {
    const char *path = socket_path ? socket_path : HEC_KUBELET_SOCKET;
    struct hec_kubelet *kubelet = calloc(1, sizeof *kubelet);
    if (!kubelet)
        return HEC_ERR_NOMEM;
    kubelet->fd = -1;
    kubelet->due_ns = INT64_MIN;
    kubelet->address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof kubelet->address.sun_path) {
        free(kubelet);
        return HEC_ERR_LIMIT;
    }
    strcpy(kubelet->address.sun_path, path);
    *out = kubelet;
    return HEC_OK;
}

static void hang_up(struct hec_kubelet *kubelet) {
    if (kubelet->fd >= 0)
        close(kubelet->fd);
    kubelet->fd = -1;
    hec_grpc_end(kubelet->call);
    kubelet->call = NULL;
}

void hec_kubelet_free(struct hec_kubelet *kubelet) {
    if (!kubelet)
        return;
    hang_up(kubelet);
    hec_pod_devices_free(&kubelet->devices);
    free(kubelet);
}

static int dial(struct hec_kubelet *kubelet, int64_t now_ns, struct hec_why *why) {
    kubelet->due_ns = now_ns + HEC_KUBELET_EVERY_NS;
    kubelet->deadline_ns = now_ns + HEC_KUBELET_TIMEOUT_NS;
    kubelet->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (kubelet->fd < 0 || connect(kubelet->fd, (struct sockaddr *)&kubelet->address, sizeof kubelet->address) != 0) {
        int failed = errno;
        if (failed == ENOENT)
            kubelet->due_ns = now_ns + HEC_KUBELET_ABSENT_NS;
        return hec_fail(why, hec_err_from_errno(failed), "%s: %s", kubelet->address.sun_path, strerror(failed));
    }
    return hec_grpc_begin("/v1.PodResourcesLister/List", &kubelet->call);
}

/* A request of 200 bytes and answers to settings always fit, unless nobody reads. */
static int send_all(struct hec_kubelet *kubelet, struct hec_why *why) {
    const uint8_t *bytes;
    int64_t length;
    while ((length = hec_grpc_output(kubelet->call, &bytes)) > 0)
        if (send(kubelet->fd, bytes, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) != length)
            return hec_fail(why, HEC_ERR_IO, "%s does not take what is sent", kubelet->address.sun_path);
    return length < 0 ? hec_fail(why, (int)length, "%s: HTTP/2 failed", kubelet->address.sun_path) : HEC_OK;
}

static int receive(struct hec_kubelet *kubelet, struct hec_why *why) {
    uint8_t bytes[16384];
    int err = HEC_OK;
    for (int i = 0; i < READS_MAX && err == HEC_OK && !hec_grpc_done(kubelet->call); i++) {
        ssize_t length = recv(kubelet->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (length <= 0)
            return hec_fail(why, HEC_ERR_IO, "%s: the connection ended before the answer", kubelet->address.sun_path);
        err = hec_grpc_input(kubelet->call, bytes, (size_t)length, why);
        if (err == HEC_OK && !hec_grpc_done(kubelet->call))
            send_all(kubelet, NULL); /* to one who has hung up: what it sent before may be all that is needed */
    }
    return err;
}

static int take_list(struct hec_kubelet *kubelet, int64_t now_ns, struct hec_why *why) {
    size_t size;
    const uint8_t *message = hec_grpc_message(kubelet->call, &size);
    int err = hec_pod_devices_parse(&kubelet->devices, message, size);
    if (err != HEC_OK)
        return hec_fail(why, err, "%s: the list of pods cannot be read", kubelet->address.sun_path);
    kubelet->listed_ns = now_ns;
    return HEC_OK;
}

int hec_kubelet_poll(struct hec_kubelet *kubelet, int64_t now_ns, struct hec_why *why) {
    int err = HEC_OK;
    if (kubelet->devices.count > 0 && now_ns - kubelet->listed_ns >= HEC_KUBELET_KEEP_NS)
        hec_pod_devices_free(&kubelet->devices);
    if (!kubelet->call) {
        if (now_ns < kubelet->due_ns)
            return 0;
        err = dial(kubelet, now_ns, why);
        if (err == HEC_OK)
            err = send_all(kubelet, why);
    }
    if (err == HEC_OK)
        err = receive(kubelet, why);
    bool done = err == HEC_OK && hec_grpc_done(kubelet->call);
    if (done)
        err = take_list(kubelet, now_ns, why);
    else if (err == HEC_OK && now_ns >= kubelet->deadline_ns)
        err = hec_fail(why, HEC_ERR_BUSY, "%s: no answer in %d s", kubelet->address.sun_path,
                       (int)(HEC_KUBELET_TIMEOUT_NS / HEC_NS_PER_S));
    if (done || err != HEC_OK)
        hang_up(kubelet);
    return err == HEC_OK ? done : err;
}

const struct hec_pod_devices *hec_kubelet_devices(const struct hec_kubelet *kubelet) {
    return &kubelet->devices;
}
