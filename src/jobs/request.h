/* What `hec record` asks of the node's agent: a run file of a window of a job, or which jobs there are. It goes over the socket
 * on which rings arrive: the descriptor that comes with the hello (role HEC_RING_REQUEST) is one end of a socket of the
 * asker's, in which the request lies; the answer comes on it. Who asks is known by the credentials of the connection. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HEC_REQUEST_MAGIC UINT64_C(0x31514552434548) /* changes with either struct */

struct hec_request {
    uint64_t magic;
    char job[352]; /* its id, the number of a Slurm job, or the pid of a process of it; "": a list of the jobs */
    double seconds;
};

struct hec_answer {
    uint64_t magic;
    int32_t err;     /* enum hec_err; HEC_OK with a descriptor: the run file, in memory */
    char text[4096]; /* the list, one job a line, and where that is too long a descriptor of all of it; or why not */
};

/* Ask the agent that listens at socket; returns the descriptor on which the answer comes. HEC_ERR_NOTFOUND: no agent there. */
int hec_request_send(const char *socket, const struct hec_request *request, struct hec_why *why);
/* Waits for at most timeout_ms (-1: for ever). HEC_ERR_BUSY: nothing has come; HEC_ERR_LOST: the agent has gone. *file: the
 * run file, or -1. */
int hec_request_await(int fd, int timeout_ms, struct hec_answer *answer, int *file);

/* Datagrams with descriptors over a Unix socket (SOCK_SEQPACKET). Nothing here blocks or raises SIGPIPE. */

/* HEC_OK; HEC_ERR_BUSY: no room just now; HEC_ERR_LOST: nobody is there any more. */
int hec_pass_send(int socket, const void *message, size_t bytes, const int *fds, int count);
/* Bytes of the datagram, which is cut at `bytes` (then HEC_ERR_CORRUPT). *count: the room for descriptors, then how many came;
 * what is over is closed, and what came with a datagram that is refused too. HEC_ERR_BUSY: nothing has come; HEC_ERR_LOST: nothing will. */
ssize_t hec_pass_receive(int socket, void *message, size_t bytes, int *fds, int *count);
