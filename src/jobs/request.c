#include "jobs/request.h"

#include "base/passing.h"
#include "base/ring.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int hec_request_send(const char *socket, const struct hec_request *request, struct hec_why *why) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "no socket: %s", strerror(errno));
    int err = hec_pass_send(pair[0], request, sizeof *request, NULL, 0);
    if (err == HEC_OK)
        err = hec_ring_send(socket, HEC_RING_REQUEST, 0, pair[1]);
    close(pair[1]);
    if (err == HEC_OK)
        return pair[0];
    close(pair[0]);
    return hec_fail(why, err, "no agent listens at %s", socket);
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
