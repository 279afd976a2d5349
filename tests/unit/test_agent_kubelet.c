/* The call to the kubelet against a server in memory (nghttp2): what it asks, which answers it takes, what it says of others; and the
 * socket, with a clock of its own. */
#include "agent/kubelet.h"
#include "tests/unit/folder.h"

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define S HEC_NS_PER_S

/* ---- a server ---- */

struct answer {
    const char *status, *grpc; /* NULL: not said */
    const char *body;
    size_t length;
    bool no_end; /* the stream stays open */
};

static struct server {
    nghttp2_session *session;
    const struct answer *answer;
    size_t given;
    char path[100], type[100], body[100];
    size_t body_length;
    int32_t stream;
} server;

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *context) {
    (void)session, (void)frame, (void)flags, (void)context;
    if (name_length == 5 && memcmp(name, ":path", 5) == 0)
        snprintf(server.path, sizeof server.path, "%.*s", (int)value_length, (const char *)value);
    if (name_length == 12 && memcmp(name, "content-type", 12) == 0)
        snprintf(server.type, sizeof server.type, "%.*s", (int)value_length, (const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size,
                   void *context) {
    (void)session, (void)flags, (void)stream, (void)context;
    assert_true(server.body_length + size <= sizeof server.body);
    memcpy(server.body + server.body_length, bytes, size);
    server.body_length += size;
    return 0;
}

static ssize_t give(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room, uint32_t *flags,
                    nghttp2_data_source *source, void *context) {
    (void)source, (void)context;
    const struct answer *a = server.answer;
    size_t length = a->length - server.given < room ? a->length - server.given : room;
    if (a->no_end && !length)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(out, a->body + server.given, length);
    server.given += length;
    if (server.given == a->length && !a->no_end) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | (a->grpc ? NGHTTP2_DATA_FLAG_NO_END_STREAM : 0);
        nghttp2_nv trailer = {(uint8_t *)(char[]){"grpc-status"}, (uint8_t *)(uintptr_t)a->grpc, 11,
                              a->grpc ? strlen(a->grpc) : 0, NGHTTP2_NV_FLAG_NONE};
        if (a->grpc)
            nghttp2_submit_trailer(session, stream, &trailer, 1);
    }
    return (ssize_t)length;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context) {
    (void)context;
    nghttp2_data_provider body = {.read_callback = give};
    const char *status = server.answer->status ? server.answer->status : "200";
    nghttp2_nv header = {(uint8_t *)(char[]){":status"}, (uint8_t *)(uintptr_t)status, 7, strlen(status),
                         NGHTTP2_NV_FLAG_NONE};
    if (frame->hd.stream_id && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        server.stream = frame->hd.stream_id;
        assert_int_equal(nghttp2_submit_response(session, server.stream, &header, 1, &body), 0);
    }
    return 0;
}

static void serve(const struct answer *answer) {
    nghttp2_session_callbacks *callbacks;
    server = (struct server){.answer = answer};
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    assert_int_equal(nghttp2_session_server_new(&server.session, callbacks, NULL), 0);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(server.session, NGHTTP2_FLAG_NONE, NULL, 0);
}

static struct hec_why why;

/* Bytes to and fro, so many at once towards the client, until there are none or the call has ended. */
static int exchange(struct hec_grpc *call, size_t at_once) {
    const uint8_t *bytes;
    int64_t sent;
    ssize_t length;
    int err = HEC_OK;
    for (bool any = true; any && err == HEC_OK;) {
        any = false;
        while ((sent = hec_grpc_output(call, &bytes)) > 0) {
            assert_int_equal(nghttp2_session_mem_recv(server.session, bytes, (size_t)sent), sent);
            any = true;
        }
        assert_int_equal(sent, 0);
        while (err == HEC_OK && (length = nghttp2_session_mem_send(server.session, &bytes)) > 0)
            for (any = true; err == HEC_OK && length > 0 && !hec_grpc_done(call);) {
                size_t part = (size_t)length < at_once ? (size_t)length : at_once;
                err = hec_grpc_input(call, bytes, part, &why);
                bytes += part;
                length -= (ssize_t)part;
            }
    }
    return err;
}

#define BODY(text) text, sizeof text - 1

/* ---- answers ---- */

TEST(answers) {
    static const struct {
        struct answer answer;
        int err;
        const char *says; /* NULL: the answer is taken */
        const char *message;
    } cases[] = {
        {{"200", "0", BODY("\0\0\0\0\3abc")}, HEC_OK, NULL, "abc"},
        {{"200", "0", BODY("\0\0\0\0\0")}, HEC_OK, NULL, ""},
        {{"404", "0", BODY("\0\0\0\0\3abc")},
         HEC_ERR_FAILED,
         "the server refused (HTTP status 404, gRPC status 0)",
         ""},
        {{"200", "12", BODY("\0\0\0\0\3abc")},
         HEC_ERR_FAILED,
         "the server refused (HTTP status 200, gRPC status 12)",
         ""},
        {{"200", NULL, BODY("\0\0\0\0\3abc")},
         HEC_ERR_FAILED,
         "the server refused (HTTP status 200, gRPC status -1)",
         ""},
        {{"200", "0", BODY("\0\0\0\0")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
        {{"200", "0", BODY("\1\0\0\0\3abc")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
        {{"200", "0", BODY("\0\0\0\0\4abc")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
        {{"200", "0", BODY("\0\0\0\0\2abc")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
        {{"200", "0", BODY("\0\0\0\1\3abc")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
        {{"200", "0", BODY("\0\0\1\0\3abc")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
        {{"200", "0", BODY("\0\1\0\0\3abc")}, HEC_ERR_CORRUPT, "the answer is not one plain message", ""},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) { /* at once, and byte by byte */
        size_t c = i / 2, size;
        struct hec_grpc *call;
        why.text[0] = '\0';
        serve(&cases[c].answer);
        assert_int_equal(hec_grpc_begin("/a.B/C", &call), HEC_OK);
        int err = exchange(call, i % 2 ? 1 : SIZE_MAX);
        if (err != cases[c].err || strcmp(why.text, cases[c].says ? cases[c].says : "") != 0)
            fail_msg("case %d: %d, %s", (int)c, err, why.text);
        assert_int_equal(hec_grpc_done(call), !cases[c].says);
        if (!cases[c].says) {
            const uint8_t *message = hec_grpc_message(call, &size);
            assert_int_equal(size, strlen(cases[c].message));
            assert_memory_equal(message, cases[c].message, size);
        }
        assert_string_equal(server.path, "/a.B/C");
        assert_string_equal(server.type, "application/grpc");
        assert_int_equal(server.body_length, 5); /* an empty message */
        assert_memory_equal(server.body, "\0\0\0\0\0", 5);
        hec_grpc_end(call);
        nghttp2_session_del(server.session);
    }
    hec_grpc_end(NULL);
}

/* Less than four MiB are taken; in frames of any kind twice as much. */
TEST(long_answers) {
    for (uint32_t over = 0; over < 2; over++) {
        uint32_t length = (4u << 20) - 1 + over;
        char *body = calloc(1, length + 5);
        body[1] = (char)(length >> 24), body[2] = (char)(length >> 16), body[3] = (char)(length >> 8),
        body[4] = (char)length;
        const struct answer answer = {"200", "0", body, length + 5, false};
        struct hec_grpc *call;
        serve(&answer);
        assert_int_equal(hec_grpc_begin("/a.B/C", &call), HEC_OK);
        assert_int_equal(exchange(call, 10000), over ? HEC_ERR_LIMIT : HEC_OK);
        assert_int_equal(hec_grpc_done(call), !over);
        if (over)
            assert_string_equal(why.text, "the answer is longer than 4 MiB");
        hec_grpc_end(call);
        nghttp2_session_del(server.session);
        free(body);
    }
    static const uint8_t settings[9] = {0, 0, 0, 4}; /* an empty frame, again and again */
    struct hec_grpc *call;
    int err = HEC_OK;
    int64_t taken = 0;
    assert_int_equal(hec_grpc_begin("/a.B/C", &call), HEC_OK);
    for (; err == HEC_OK && taken < 9 << 20; taken += 9) {
        const uint8_t *bytes;
        err = hec_grpc_input(call, settings, sizeof settings, &why);
        while (err == HEC_OK && hec_grpc_output(call, &bytes) > 0)
            ;
    }
    assert_true(err < 0);
    hec_grpc_end(call);
}

TEST(what_is_not_http2) {
    struct hec_grpc *call;
    assert_int_equal(hec_grpc_begin("/a.B/C", &call), HEC_OK);
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const uint8_t *bytes;
    int err = HEC_OK;
    for (int i = 0; i < 3 && err == HEC_OK; i++) { /* the first frame's length is none: nghttp2 says so, then ends */
        err = hec_grpc_input(call, (const uint8_t *)text, sizeof text - 1, &why);
        while (err == HEC_OK && hec_grpc_output(call, &bytes) > 0)
            ;
    }
    assert_int_equal(err, HEC_ERR_FAILED);
    assert_string_equal(why.text, "the server refused (HTTP status -1, gRPC status -1)");
    assert_false(hec_grpc_done(call));
    hec_grpc_end(call);
}

/* ---- the socket ---- */

static struct hec_kubelet *kubelet;

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

/* The other end of a connection: what has come is answered. */
static void reply(int fd) {
    uint8_t bytes[65536];
    const uint8_t *out;
    ssize_t length = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length > 0)
        assert_int_equal(nghttp2_session_mem_recv(server.session, bytes, (size_t)length), length);
    while ((length = nghttp2_session_mem_send(server.session, &out)) > 0)
        assert_int_equal(send(fd, out, (size_t)length, MSG_NOSIGNAL), length);
}

#define POLL(seconds) hec_kubelet_poll(kubelet, (seconds)*S, &why)

/* One pod with one container that holds one device, as protobuf. */
#define LIST                                                                                                           \
    "\0\0\0\0\x2b\x0a\x29\x0a\x03pod\x12\x02ns\x1a\x1e\x0a\x01"                                                        \
    "c\x12\x19\x0a\x0envidia.com/gpu\x12\x07nvidia7"

TEST_WITH(a_list_is_asked_for_now_and_then, folder_make, folder_remove) {
    static const struct answer list = {"200", "0", BODY(LIST), false},
                               bad = {"200", "0", BODY("\0\0\0\0\1\xff"), false};
    char path[100], text[300];
    snprintf(path, sizeof path, "%s/s", folder);
    assert_int_equal(hec_kubelet_create(path, &kubelet), HEC_OK);
    assert_int_equal(POLL(0), HEC_ERR_NOTFOUND); /* no kubelet: a minute later again */
    snprintf(text, sizeof text, "%s: No such file or directory", path);
    assert_string_equal(why.text, text);
    int listening = listen_at(path);
    assert_int_equal(POLL(59), 0);
    assert_int_equal(hec_kubelet_devices(kubelet)->count, 0);
    assert_int_equal(POLL(60), 0); /* asked */
    int fd = accept(listening, NULL, NULL);
    serve(&list);
    assert_int_equal(POLL(61), 0);
    reply(fd);
    int got = 0;
    for (int i = 0; i < 5 && got == 0; i++) {
        got = POLL(62);
        reply(fd);
    }
    assert_int_equal(got, 1);
    assert_int_equal(hec_kubelet_devices(kubelet)->count, 1);
    close(fd);
    nghttp2_session_del(server.session);
    assert_int_equal(POLL(69), 0); /* ten seconds after it was asked */
    assert_int_equal(POLL(70), 0);
    fd = accept(listening, NULL, NULL);
    assert_int_equal(POLL(79), 0);
    assert_int_equal(POLL(80), HEC_ERR_BUSY);
    snprintf(text, sizeof text, "%s: no answer in 10 s", path);
    assert_string_equal(why.text, text);
    close(fd);
    assert_int_equal(POLL(80), 0); /* the next one */
    fd = accept(listening, NULL, NULL);
    close(fd);
    assert_int_equal(POLL(81), HEC_ERR_IO);
    snprintf(text, sizeof text, "%s: the connection ended before the answer", path);
    assert_string_equal(why.text, text);
    assert_int_equal(POLL(90), 0);
    fd = accept(listening, NULL, NULL);
    serve(&bad);
    for (int i = got = 0; i < 5 && got == 0; i++) {
        reply(fd);
        got = POLL(91);
    }
    assert_int_equal(got, HEC_ERR_CORRUPT);
    snprintf(text, sizeof text, "%s: the list of pods cannot be read", path);
    assert_string_equal(why.text, text);
    nghttp2_session_del(server.session);
    close(fd);
    assert_int_equal(hec_kubelet_devices(kubelet)->count, 1); /* the old list is kept, */
    close(listening);
    unlink(path);
    POLL(661);
    assert_int_equal(hec_kubelet_devices(kubelet)->count, 1);
    POLL(662); /* ten minutes */
    assert_int_equal(hec_kubelet_devices(kubelet)->count, 0);
    hec_kubelet_free(kubelet);
    hec_kubelet_free(NULL);
}

TEST(a_path_that_is_too_long) {
    char path[200];
    memset(path, 'x', sizeof path);
    path[108] = '\0';
    assert_int_equal(hec_kubelet_create(path, &kubelet), HEC_ERR_LIMIT);
    path[107] = '\0';
    assert_int_equal(hec_kubelet_create(path, &kubelet), HEC_OK);
    hec_kubelet_free(kubelet);
}
