/* Datagrams with descriptors over a Unix socket (SOCK_SEQPACKET). Nothing here blocks or raises SIGPIPE. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define HEC_PASS_MAX 253 /* descriptors in one: what the kernel takes */

/* HEC_OK; HEC_ERR_BUSY: no room just now; HEC_ERR_LOST: nobody is there any more. */
int hec_pass_send(int socket, const void *message, size_t bytes, const int *fds, int count);
/* Bytes of the datagram, which is cut at `bytes` (then HEC_ERR_CORRUPT). *count: the room for descriptors, then how many came;
 * what is over is closed, and what came with a datagram that is refused too. HEC_ERR_BUSY: nothing has come; HEC_ERR_LOST: nothing will. */
ssize_t hec_pass_receive(int socket, void *message, size_t bytes, int *fds, int *count);
