#include "agent/kubelet.h"

#include "base/buf.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* One call of gRPC over HTTP/2 (nghttp2), without its transport: bytes for the server come out, bytes of the server go in. What a
 * server can make it hold or do is bounded. gRPC's protocol: github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. */

#define GRPC_MESSAGE_MAX (4u << 20) /* gRPC's own default */

#define PREFIX 5                            /* of a message: is it compressed, and its length */
#define RECEIVED_MAX (2 * GRPC_MESSAGE_MAX) /* with frames of any kind */

struct hec_grpc {
    nghttp2_session *session;
    int32_t stream;
    struct hec_buf body; /* with the prefix */
    uint64_t received;
    int http_status, grpc_status; /* -1: not said */
    bool sent, closed;
};

static const uint8_t empty_message[PREFIX];

static ssize_t give_request(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room, uint32_t *flags,
                            nghttp2_data_source *source, void *context) {
    struct hec_grpc *call = context;
    (void)session;
    (void)stream;
    (void)source;
    if (call->sent || room < PREFIX)
        return call->sent ? 0 : NGHTTP2_ERR_DEFERRED;
    memcpy(out, empty_message, PREFIX);
    call->sent = true;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return PREFIX;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                       const uint8_t *value, size_t value_length, uint8_t flags, void *context) {
    struct hec_grpc *call = context;
    char number[8] = "";
    (void)session;
    (void)flags;
    int *status = name_length == 7 && memcmp(name, ":status", 7) == 0         ? &call->http_status
                  : name_length == 11 && memcmp(name, "grpc-status", 11) == 0 ? &call->grpc_status
                                                                              : NULL;
    if (!status || frame->hd.stream_id != call->stream)
        return 0;
    if (value_length >= sizeof number)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    memcpy(number, value, value_length);
    *status = atoi(number);
    return 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size,
                     void *context) {
    struct hec_grpc *call = context;
    (void)session;
    (void)flags;
    if (stream != call->stream)
        return 0;
    return hec_buf_add(&call->body, (const char *)bytes, size) == HEC_OK ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int take_end(nghttp2_session *session, int32_t stream, uint32_t error_code, void *context) {
    struct hec_grpc *call = context;
    (void)session;
    (void)error_code;
    call->closed |= stream == call->stream;
    return 0;
}

static int open_session(struct hec_grpc *call) {
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return HEC_ERR_NOMEM;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, take_end);
    int failed = nghttp2_session_client_new(&call->session, callbacks, call);
    nghttp2_session_callbacks_del(callbacks);
    return failed ? HEC_ERR_NOMEM : HEC_OK;
}

#define HEADER(name, value)                                                                                            \
    { (uint8_t *)(name), (uint8_t *)(value), strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE }

static int submit(struct hec_grpc *call, const char *path) {
    const nghttp2_nv headers[] = {HEADER(":method", "POST"),
                                  HEADER(":scheme", "http"),
                                  HEADER(":path", path),
                                  HEADER(":authority", "localhost"),
                                  HEADER("te", "trailers"),
                                  HEADER("content-type", "application/grpc"),
                                  HEADER("user-agent", "hec/" HEC_VERSION)};
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    nghttp2_data_provider request = {.read_callback = give_request};
    if (nghttp2_submit_settings(call->session, NGHTTP2_FLAG_NONE, settings, 1) != 0)
        return HEC_ERR_NOMEM;
    call->stream =
        nghttp2_submit_request(call->session, NULL, headers, sizeof headers / sizeof *headers, &request, call);
    return call->stream < 0 ? HEC_ERR_NOMEM : HEC_OK;
}

int hec_grpc_begin(const char *path, struct hec_grpc **out) {
    struct hec_grpc *call = calloc(1, sizeof *call);
    if (!call)
        return HEC_ERR_NOMEM;
    call->http_status = call->grpc_status = -1;
    hec_buf_init(&call->body, GRPC_MESSAGE_MAX + PREFIX);
    int err = open_session(call);
    if (err == HEC_OK)
        err = submit(call, path);
    if (err != HEC_OK) {
        hec_grpc_end(call);
        return err;
    }
    *out = call;
    return HEC_OK;
}

void hec_grpc_end(struct hec_grpc *call) {
    if (!call)
        return;
    nghttp2_session_del(call->session);
    hec_buf_free(&call->body);
    free(call);
}

int64_t hec_grpc_output(struct hec_grpc *call, const uint8_t **bytes) {
    ssize_t length = nghttp2_session_mem_send(call->session, bytes);
    return length < 0 ? HEC_ERR_FAILED : length;
}

static uint32_t body_length(const struct hec_grpc *call) {
    const uint8_t *prefix = (const uint8_t *)call->body.data;
    return (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 | prefix[4];
}

static int judge(const struct hec_grpc *call, struct hec_why *why) {
    if (call->http_status != 200 || call->grpc_status != 0)
        return hec_fail(why, HEC_ERR_FAILED, "the server refused (HTTP status %d, gRPC status %d)", call->http_status,
                        call->grpc_status);
    if (call->body.length < PREFIX || call->body.data[0] != 0 || body_length(call) != call->body.length - PREFIX)
        return hec_fail(why, HEC_ERR_CORRUPT, "the answer is not one plain message");
    return HEC_OK;
}

int hec_grpc_input(struct hec_grpc *call, const uint8_t *bytes, size_t size, struct hec_why *why) {
    call->received += size;
    if (call->received > RECEIVED_MAX)
        return hec_fail(why, HEC_ERR_LIMIT, "the answer is longer than %u MiB", GRPC_MESSAGE_MAX >> 20);
    ssize_t taken = nghttp2_session_mem_recv(call->session, bytes, size);
    if (hec_buf_error(&call->body) != HEC_OK)
        return hec_fail(why, hec_buf_error(&call->body), "the answer is longer than %u MiB", GRPC_MESSAGE_MAX >> 20);
    if (taken < 0)
        return hec_fail(why, taken == NGHTTP2_ERR_NOMEM ? HEC_ERR_NOMEM : HEC_ERR_CORRUPT, "not HTTP/2: %s",
                        nghttp2_strerror((int)taken));
    if (call->closed)
        return judge(call, why);
    if (!nghttp2_session_want_read(call->session))
        return hec_fail(why, HEC_ERR_CORRUPT, "the server ended the connection before its answer");
    return HEC_OK;
}

bool hec_grpc_done(const struct hec_grpc *call) {
    return call->closed && judge(call, NULL) == HEC_OK;
}

const uint8_t *hec_grpc_message(const struct hec_grpc *call, size_t *size) {
    *size = call->body.length - PREFIX;
    return (const uint8_t *)call->body.data + PREFIX;
}

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
