#include "base/ring_again.h"

#include "base/error.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL_READ UINT64_MAX
#define LOOKING INT64_MAX /* looked_ns while somebody does */

/* One that is just being removed may still be found, with another time, without a link. */
static bool listener_at(const char *path, struct hec_ring_listener *found) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISSOCK(info.st_mode) || info.st_nlink == 0)
        return false;
    *found = (struct hec_ring_listener){.device = info.st_dev,
                                        .inode = info.st_ino,
                                        .changed_ns = (int64_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec,
                                        .owner = info.st_uid};
    return true;
}

static bool same(const struct hec_ring_listener *a, const struct hec_ring_listener *b) {
    return a->device == b->device && a->inode == b->inode && a->changed_ns == b->changed_ns;
}

int hec_ring_begin_at(struct hec_ring_again *again, const char *socket, enum hec_ring_role role, uint32_t records,
                      uint32_t tag, int64_t now_ns, struct hec_ring *ring) {
    int fd;
    if (strlen(socket) >= sizeof again->socket)
        return HEC_ERR_LIMIT;
    *again = (struct hec_ring_again){.role = role, .tag = tag, .looked_ns = now_ns, .tail = ALL_READ};
    strcpy(again->socket, socket);
    again->seccomp = prctl(PR_GET_SECCOMP);
    listener_at(socket, &again->listener); /* before: should it change now, the next look finds another */
    int err = hec_ring_create(records, role, ring, &fd);
    if (err)
        return err;
    err = hec_ring_send(socket, role, tag, fd);
    close(fd);
    if (err)
        hec_ring_unmap(ring);
    return err;
}

/* At the old one's address, since threads may be looking at it. Nobody writes there; should a record be under way from before, it lands
 * at a position that is never read: the fresh ring begins behind all of them. One that was held up in its midst until the next window may
 * cost a record of that, which its reader passes over. */
static bool replace(const struct hec_ring_again *again, struct hec_ring *ring, uint32_t seen) {
    struct hec_ring fresh;
    int fd;
    if (hec_ring_create((uint32_t)ring->mask + 1, again->role, &fresh, &fd) != HEC_OK)
        return false;
    fresh.header->window = seen;
    fresh.header->head = fresh.header->tail =
        __atomic_load_n(&ring->header->head, __ATOMIC_RELAXED) + 2 * (ring->mask + 1);
    bool sent = hec_ring_send(again->socket, again->role, again->tag, fd) == HEC_OK;
    close(fd);
    if (sent &&
        mremap(fresh.header, fresh.bytes, ring->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, ring->header) != MAP_FAILED)
        return true;
    hec_ring_unmap(&fresh);
    return false;
}

/* Who reads does so all the time: a record that lies for as long as there is between two looks has no reader. */
static void end_if_dead(struct hec_ring_again *again, struct hec_ring *ring, uint32_t seen) {
    uint64_t tail, unread = hec_ring_unread(ring, &tail);
    if (seen != 0 && unread > 0 && tail == again->tail) /* 0: `hec run`, which may be stopped for long */
        hec_ring_abandon(ring, seen);
    again->tail = unread > 0 ? tail : ALL_READ;
}

/* Two reads agree, since a file system may write the time of a removal before it takes the link away. */
static bool another_listener(const struct hec_ring_listener *known, const char *path, struct hec_ring_listener *now) {
    struct hec_ring_listener again;
    return listener_at(path, now) && !same(known, now) && now->owner == known->owner && listener_at(path, &again) &&
           same(now, &again);
}

/* By the one that looks just now. */
static bool look(struct hec_ring_again *again, struct hec_ring *ring) {
    uint32_t seen = hec_ring_window(ring);
    if (!(seen & 1)) {
        end_if_dead(again, ring, seen);
        return false;
    }
    struct hec_ring_listener now;
    again->tail = ALL_READ;
    /* a program that has shut itself in since then may be killed for a call that it forbade */
    if (!another_listener(&again->listener, again->socket, &now) || prctl(PR_GET_SECCOMP) != again->seccomp ||
        !replace(again, ring, seen))
        return false;
    again->listener = now;
    return true;
}

bool hec_ring_look_again(struct hec_ring_again *again, struct hec_ring *ring, int64_t now_ns) {
    int64_t looked_ns = __atomic_load_n(&again->looked_ns, __ATOMIC_RELAXED);
    if (now_ns - looked_ns < HEC_RING_LOOK_NS ||
        !__atomic_compare_exchange_n(&again->looked_ns, &looked_ns, LOOKING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    bool fresh = look(again, ring);
    __atomic_store_n(&again->looked_ns, now_ns, __ATOMIC_RELEASE);
    return fresh;
}
