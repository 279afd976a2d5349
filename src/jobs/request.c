#include "jobs/request.h"

#include "base/ring.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CROWDED_TRIES 500
#define CROWDED_MS 7
#define PASS_MAX 253 /* descriptors in one: what the kernel takes */

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(PASS_MAX * sizeof(int))];
};

int hec_pass_send(int socket, const void *message, size_t bytes, const int *fds, int count) {
    union control control;
    struct iovec part = {(void *)message, bytes};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        size_t length = (size_t)count * sizeof *fds;
        memset(&control, 0, sizeof control);
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(length);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(rights), fds, length);
    }
    if (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes)
        return HEC_OK;
    return errno == EAGAIN || errno == EINTR ? HEC_ERR_BUSY : HEC_ERR_LOST;
}

ssize_t hec_pass_receive(int socket, void *message, size_t bytes, int *fds, int *count) {
    union control control;
    struct iovec part = {message, bytes};
    size_t room = (size_t)*count;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = room ? control.bytes : NULL,
                            .msg_controllen = room ? CMSG_LEN(room * sizeof(int)) : 0};
    *count = 0;
    ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? HEC_ERR_BUSY : HEC_ERR_LOST;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    size_t held = rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS
                      ? (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int)
                      : 0;
    bool refused = header.msg_flags & MSG_TRUNC;
    for (size_t i = 0; i < held; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(rights) + i * sizeof fd, sizeof fd);
        if (refused || i >= room)
            close(fd); /* the padding may have room for one more than was asked for */
        else
            fds[(*count)++] = fd;
    }
    return refused ? HEC_ERR_CORRUPT : got == 0 && *count == 0 ? HEC_ERR_LOST : got;
}

int hec_request_send(const char *socket, const struct hec_request *request, struct hec_why *why) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "no socket: %s", strerror(errno));
    int err = hec_pass_send(pair[0], request, sizeof *request, NULL, 0);
    if (err == HEC_OK)
        err = hec_ring_send(socket, HEC_RING_REQUEST, 0, pair[1]);
    for (int tries = 0; err == HEC_ERR_BUSY && tries < CROWDED_TRIES; tries++) { /* somebody floods it */
        poll(NULL, 0, CROWDED_MS);
        err = hec_ring_send(socket, HEC_RING_REQUEST, 0, pair[1]);
    }
    close(pair[1]);
    if (err == HEC_OK)
        return pair[0];
    close(pair[0]);
    return err == HEC_ERR_BUSY ? hec_fail(why, err, "too many others connect to %s just now", socket)
                               : hec_fail(why, err, "no agent listens at %s", socket);
}

int hec_request_await(int fd, int timeout_ms, struct hec_answer *answer, int *file) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int count = 1;
    *file = -1;
    if (poll(&ready, 1, timeout_ms) <= 0)
        return HEC_ERR_BUSY;
    ssize_t got = hec_pass_receive(fd, answer, sizeof *answer, file, &count);
    if (count == 0)
        *file = -1;
    if (got == (ssize_t)sizeof *answer && answer->magic == HEC_REQUEST_MAGIC &&
        memchr(answer->text, '\0', sizeof answer->text))
        return HEC_OK;
    if (*file >= 0)
        close(*file);
    *file = -1;
    return got == HEC_ERR_BUSY ? HEC_ERR_BUSY : HEC_ERR_LOST;
}
