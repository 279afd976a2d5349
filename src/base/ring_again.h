/* A process whose agent was restarted gives the new one a ring. Nobody tells it, and it keeps no descriptor: it looks now and then whether
 * another socket stands where it sent its ring.
 *
 * Linked, as ring.c, into the libraries that enter the observed process: libc only, nothing waits, errno changes. */
#ifndef HEC_BASE_RING_AGAIN_H
#define HEC_BASE_RING_AGAIN_H

#include "base/ring.h"

#include <sys/types.h>

#define HEC_RING_LOOK_NS INT64_C(10000000000) /* one stat() in so long */

struct hec_ring_listener {
    dev_t device;
    ino_t inode;
    int64_t changed_ns; /* inodes are used again */
    uid_t owner;
};

struct hec_ring_again {
    char socket[108];
    enum hec_ring_role role;
    uint32_t tag;
    struct hec_ring_listener listener; /* whose the ring is */
    int seccomp;
    int64_t looked_ns; /* atomic */
    uint64_t tail;     /* when it was looked at last; UINT64_MAX: all was read */
};

/* Makes a ring and hands it over to who listens at `socket` (see hec_ring_create and hec_ring_send). Negative enum hec_err: no ring. */
int hec_ring_begin_at(struct hec_ring_again *again, const char *socket, enum hec_ring_role role, uint32_t records,
                      uint32_t tag, int64_t now_ns, struct hec_ring *ring);

/* Once in HEC_RING_LOOK_NS. A window in which nobody has read for so long ends: its reader died. While nobody reads, and another
 * socket of the same user stands at the path, a fresh ring takes the place of this one, at its address; windows go on from its number, so
 * that everything is defined anew: true. Any thread may call it at any time; one at a time looks. */
bool hec_ring_look_again(struct hec_ring_again *again, struct hec_ring *ring, int64_t now_ns);

#endif
