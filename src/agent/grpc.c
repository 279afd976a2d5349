#include "agent/grpc.h"

#include "base/buf.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX 5                                /* of a message: is it compressed, and its length */
#define RECEIVED_MAX (2 * HEC_GRPC_MESSAGE_MAX) /* with frames of any kind */

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
    hec_buf_init(&call->body, HEC_GRPC_MESSAGE_MAX + PREFIX);
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
        return hec_fail(why, HEC_ERR_LIMIT, "the answer is longer than %u MiB", HEC_GRPC_MESSAGE_MAX >> 20);
    ssize_t taken = nghttp2_session_mem_recv(call->session, bytes, size);
    if (hec_buf_error(&call->body) != HEC_OK)
        return hec_fail(why, hec_buf_error(&call->body), "the answer is longer than %u MiB",
                        HEC_GRPC_MESSAGE_MAX >> 20);
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
