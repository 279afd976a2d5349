#include "base/ring.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Writers of another build, or of another language, map the same words: they must be plain lock-free memory. */
_Static_assert(__atomic_always_lock_free(sizeof(uint64_t), 0), "64-bit atomics must be lock-free");

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
/* The reader gives pages of its mapping back after this many records (64 KB), or every ring would stay in its RSS. */
#define LOCK_TRIES 100 /* a second in all */
#define LOCK_WAIT_NS 10000000
#define RELEASE_RECORDS 1024u

static size_t bytes_of(uint64_t records) {
    return HEC_RING_HEADER_BYTES + records * sizeof(struct hec_ring_record);
}

static bool capacity_valid(uint64_t records) {
    return records >= HEC_RING_RECORDS_MIN && records <= HEC_RING_RECORDS_MAX && (records & (records - 1)) == 0;
}

static const struct {
    const char *name, *rank, *size, *local, *mark;
} launchers[] = {
#define HEC_LAUNCHER(id, name, rank, size, local, mark) {name, rank, size, local, mark},
#include "base/ranks.def"
};
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

/* -1: the variable is not there, or is no number that a rank can have. */
static int32_t number_in(const char *variable) {
    const char *text = variable[0] ? getenv(variable) : NULL;
    int32_t value = text && *text ? 0 : -1;
    for (; value >= 0 && *text; text++)
        value = *text < '0' || *text > '9' || value > HEC_RING_RANKS_MOST ? -1 : value * 10 + (*text - '0');
    return value;
}

static bool rank_makes_sense(const struct hec_ring_rank *rank) {
    return rank->size > 1 && rank->size <= HEC_RING_RANKS_MOST && rank->number >= 0 && rank->number < rank->size &&
           rank->local < rank->size;
}

static const struct hec_ring_rank no_rank = {.number = -1, .local = -1, .launcher = -1};

struct hec_ring_rank hec_ring_rank(void) {
    for (int i = 0; i < LAUNCHERS; i++) {
        struct hec_ring_rank rank = {number_in(launchers[i].rank), number_in(launchers[i].local),
                                     number_in(launchers[i].size), i};
        rank.local = rank.local < rank.size ? rank.local : -1;
        if (rank_makes_sense(&rank) && (!launchers[i].mark[0] || getenv(launchers[i].mark)))
            return rank;
    }
    return no_rank;
}

const char *hec_ring_launcher(int launcher) {
    return launcher >= 0 && launcher < LAUNCHERS ? launchers[launcher].name : "";
}

/* As a process wrote it, which may be hostile. */
static struct hec_ring_rank rank_of(const struct hec_ring_header *header) {
    bool sane = header->rank <= HEC_RING_RANKS_MOST && header->local_rank <= HEC_RING_RANKS_MOST &&
                header->ranks <= HEC_RING_RANKS_MOST && header->launcher <= LAUNCHERS;
    if (!sane)
        return no_rank;
    struct hec_ring_rank rank = {(int32_t)header->rank - 1, (int32_t)header->local_rank - 1, (int32_t)header->ranks,
                                 (int)header->launcher - 1};
    return rank_makes_sense(&rank) ? rank : no_rank;
}

int hec_ring_create(uint32_t records, enum hec_ring_role role, struct hec_ring *ring, int *fd) {
    if (!capacity_valid(records))
        return HEC_ERR_USAGE;
    int memory = memfd_create("hec-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return errno == ENOSYS || errno == EPERM ? HEC_ERR_UNSUPPORTED : HEC_ERR_NOMEM;
    size_t bytes = bytes_of(records);
    if (ftruncate(memory, (off_t)bytes) != 0 || fcntl(memory, F_ADD_SEALS, SEALS) != 0) {
        close(memory);
        return HEC_ERR_UNSUPPORTED;
    }
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (map == MAP_FAILED) {
        close(memory);
        return HEC_ERR_NOMEM;
    }
    struct hec_ring_header *header = map;
    header->magic = HEC_RING_MAGIC;
    header->abi = HEC_RING_ABI;
    header->header_bytes = HEC_RING_HEADER_BYTES;
    header->record_bytes = sizeof(struct hec_ring_record);
    header->records = records;
    header->role = (uint32_t)role;
    header->pid = (uint32_t)getpid();
    struct hec_ring_rank rank = hec_ring_rank();
    header->rank = (uint32_t)(rank.number + 1);
    header->local_rank = (uint32_t)(rank.local + 1);
    header->ranks = (uint32_t)rank.size;
    header->launcher = (uint32_t)(rank.launcher + 1);
    ring->header = header;
    ring->slots = (struct hec_ring_record *)((char *)map + HEC_RING_HEADER_BYTES);
    ring->mask = records - 1;
    ring->bytes = bytes;
    *fd = memory;
    return HEC_OK;
}

static int address_of(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof address->sun_path)
        return HEC_ERR_LIMIT;
    memcpy(address->sun_path, path, length + 1);
    return HEC_OK;
}

uint32_t hec_ring_tag(const char *text) {
    uint32_t tag = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        tag = tag * 10 + (uint32_t)(*text - '0');
    return tag;
}

int hec_ring_send(const char *path, enum hec_ring_role role, uint32_t tag, int fd) {
    struct sockaddr_un address;
    int err = address_of(path, &address);
    if (err)
        return err;
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection < 0)
        return HEC_ERR_NOTFOUND;
    struct hec_ring_hello hello = {HEC_RING_MAGIC, HEC_RING_ABI, (uint32_t)role, (uint32_t)getpid(), tag};
    struct iovec part = {&hello, sizeof hello};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    /* A Unix connect succeeds or fails at once, and what is sent waits in the queue until it is accepted, even after
     * we close: there is nothing to wait for. */
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0 ||
        sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof hello)
        err = errno == EAGAIN ? HEC_ERR_BUSY : HEC_ERR_NOTFOUND;
    close(connection);
    return err;
}

bool hec_ring_write(struct hec_ring *ring, const struct hec_ring_record *record) {
    struct hec_ring_header *header = ring->header;
    uint64_t head;
    do {
        /* tail before head: head never falls behind a tail that was read earlier, so the difference is honest */
        uint64_t tail = __atomic_load_n(&header->tail, __ATOMIC_ACQUIRE);
        head = __atomic_load_n(&header->head, __ATOMIC_RELAXED);
        if (head - tail > ring->mask) {
            hec_ring_drop(ring, 1);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&header->head, &head, head + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct hec_ring_record *slot = &ring->slots[head & ring->mask];
    memcpy((char *)slot + sizeof slot->sequence, (const char *)record + sizeof record->sequence,
           sizeof *slot - sizeof slot->sequence);
    __atomic_store_n(&slot->sequence, head + 1, __ATOMIC_RELEASE);
    return true;
}

void hec_ring_drop(struct hec_ring *ring, uint64_t count) {
    __atomic_fetch_add(&ring->header->dropped, count, __ATOMIC_RELAXED);
}

bool hec_ring_closed(const struct hec_ring *ring) {
    return __atomic_load_n(&ring->header->closed, __ATOMIC_RELAXED) != 0;
}

uint32_t hec_ring_window(const struct hec_ring *ring) {
    return __atomic_load_n(&ring->header->window, __ATOMIC_ACQUIRE);
}

enum hec_ring_stacks hec_ring_stacks(const struct hec_ring *ring) {
    uint32_t told = __atomic_load_n(&ring->header->stacks, __ATOMIC_RELAXED);
    return told == HEC_RING_STACKS_OUTSIDE || told == HEC_RING_STACKS_INSIDE ? (enum hec_ring_stacks)told
                                                                             : HEC_RING_STACKS_UNKNOWN;
}

void hec_ring_tell_stacks(struct hec_ring_reader *reader, enum hec_ring_stacks stacks) {
    __atomic_store_n(&reader->header->stacks, (uint32_t)stacks, __ATOMIC_RELAXED);
}

void hec_ring_abandon(struct hec_ring *ring, uint32_t seen) {
    __atomic_compare_exchange_n(&ring->header->window, &seen, seen | 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void hec_ring_unmap(struct hec_ring *ring) {
    if (ring->header)
        munmap(ring->header, ring->bytes);
    memset(ring, 0, sizeof *ring);
}

/* Whether nobody listens at a socket any more. One of another kind, or that may not be asked, is somebody's. */
static bool is_deserted(const struct sockaddr_un *address) {
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool deserted = connection >= 0 && connect(connection, (const struct sockaddr *)address, sizeof *address) != 0 &&
                    errno == ECONNREFUSED;
    if (connection >= 0)
        close(connection);
    return deserted;
}

/* One at a time looks whether somebody listens and takes the place: by a lock on the socket's folder, which leaves no file. Who else holds
 * it, as anybody may who can read the folder, costs LOCK_TRIES. The folder, for close; -1: it cannot be opened. */
static int lock_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
    return fd;
}

static int listen_at(const char *path, const struct sockaddr_un *address, int *fd) {
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISSOCK(info.st_mode)) {
        if (!is_deserted(address))
            return HEC_ERR_BUSY;
        unlink(path);
    }
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return HEC_ERR_IO;
    if (bind(listener, (const struct sockaddr *)address, sizeof *address) != 0 || listen(listener, SOMAXCONN) != 0) {
        int err = errno == EACCES ? HEC_ERR_PERMISSION : errno == ENOENT ? HEC_ERR_NOTFOUND : HEC_ERR_IO;
        close(listener);
        return err;
    }
    *fd = listener;
    return HEC_OK;
}

/* Threads of a process, which listen in the same folder when they start, do not wait LOCK_WAIT_NS for each other. */
static pthread_mutex_t listening = PTHREAD_MUTEX_INITIALIZER;

int hec_ring_listen(const char *path, int *fd) {
    struct sockaddr_un address;
    int err = address_of(path, &address);
    if (err)
        return err;
    pthread_mutex_lock(&listening);
    int folder = lock_folder_of(path);
    err = listen_at(path, &address, fd);
    if (folder >= 0)
        close(folder);
    pthread_mutex_unlock(&listening);
    return err;
}

int hec_ring_receive(int connection, struct hec_ring_hello *hello, int *fd) {
    struct iovec part = {hello, sizeof *hello};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    /* CMSG_LEN, not the padded CMSG_SPACE, which has room for a second descriptor: the kernel closes what is over */
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t got = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? HEC_ERR_BUSY : HEC_ERR_LOST;
    int memory = -1;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
        rights->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&memory, CMSG_DATA(rights), sizeof memory);
    int err = HEC_OK;
    if (got == 0 && memory < 0)
        err = HEC_ERR_LOST;
    else if (got != (ssize_t)sizeof *hello || memory < 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
             hello->magic != HEC_RING_MAGIC)
        err = HEC_ERR_CORRUPT;
    else if (hello->abi != HEC_RING_ABI)
        err = HEC_ERR_VERSION;
    if (err && memory >= 0)
        close(memory);
    if (!err)
        *fd = memory;
    return err;
}

int hec_ring_map(int fd, struct hec_ring_reader *reader) {
    /* Without the seals a writer could shrink the file under us, and our next read would be SIGBUS; so it would be of a page of
     * hugetlbfs that is punched out when no other is free. Memory of memfd_create without MFD_HUGETLB is of tmpfs. */
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat info;
    struct statfs system;
    if (seals < 0 || fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC || (seals & SEALS) != SEALS ||
        fstat(fd, &info) != 0 || info.st_size < (off_t)bytes_of(HEC_RING_RECORDS_MIN) ||
        info.st_size > (off_t)bytes_of(HEC_RING_RECORDS_MAX))
        return HEC_ERR_CORRUPT;
    size_t bytes = (size_t)info.st_size;
    struct hec_ring_header header; /* a copy: the writer may change the original at any moment */
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return HEC_ERR_CORRUPT;
    if (header.magic != HEC_RING_MAGIC || !capacity_valid(header.records) || bytes != bytes_of(header.records) ||
        (header.role != HEC_RING_MARKS && header.role != HEC_RING_TRACE))
        return HEC_ERR_CORRUPT;
    if (header.abi != HEC_RING_ABI || header.header_bytes != HEC_RING_HEADER_BYTES ||
        header.record_bytes != sizeof(struct hec_ring_record))
        return HEC_ERR_VERSION;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return errno == ENOMEM ? HEC_ERR_NOMEM : HEC_ERR_CORRUPT;
    *reader = (struct hec_ring_reader){
        .header = map,
        .slots = (const struct hec_ring_record *)((const char *)map + HEC_RING_HEADER_BYTES),
        .mask = header.records - 1,
        .bytes = bytes,
        .role = header.role,
        .rank = rank_of(&header),
    };
    return HEC_OK;
}

size_t hec_ring_read(struct hec_ring_reader *reader, struct hec_ring_record *out, size_t max) {
    size_t count = 0;
    while (count < max) {
        const struct hec_ring_record *slot = &reader->slots[reader->tail & reader->mask];
        if (__atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE) != reader->tail + 1)
            break;
        memcpy(&out[count++], slot, sizeof *slot);
        reader->tail++;
    }
    __asm__ volatile("" ::: "memory"); /* the copies, not the shared memory, are what the caller validates */
    if (count > 0)
        __atomic_store_n(&reader->header->tail, reader->tail, __ATOMIC_RELEASE);
    if (reader->tail - reader->released >= RELEASE_RECORDS) {
        reader->released = reader->tail;
        madvise(reader->header, reader->bytes, MADV_DONTNEED); /* shared: unmaps our pages, loses nothing */
    }
    return count;
}

uint64_t hec_ring_pending(const struct hec_ring_reader *reader) {
    uint64_t pending = __atomic_load_n(&reader->header->head, __ATOMIC_ACQUIRE) - reader->tail;
    return pending <= reader->mask + 1 ? pending : 0; /* more than fits is damage, not data */
}

bool hec_ring_skip(struct hec_ring_reader *reader) {
    if (hec_ring_pending(reader) == 0)
        return false;
    reader->tail++;
    reader->skipped++;
    __atomic_store_n(&reader->header->tail, reader->tail, __ATOMIC_RELEASE);
    return true;
}

uint64_t hec_ring_lost(const struct hec_ring_reader *reader) {
    uint64_t dropped = __atomic_load_n(&reader->header->dropped, __ATOMIC_RELAXED) - reader->lost_before;
    return dropped + reader->skipped < dropped ? UINT64_MAX : dropped + reader->skipped;
}

void hec_ring_begin(struct hec_ring_reader *reader) {
    struct hec_ring_header *header = reader->header;
    reader->borrowed = true;
    reader->lost_before = __atomic_load_n(&header->dropped, __ATOMIC_RELAXED);
    reader->tail = reader->released = __atomic_load_n(&header->head, __ATOMIC_ACQUIRE);
    __atomic_store_n(&header->tail, reader->tail, __ATOMIC_RELEASE);
    reader->window = (__atomic_load_n(&header->window, __ATOMIC_RELAXED) | 1) + 1;
    __atomic_store_n(&header->window, reader->window, __ATOMIC_RELEASE);
}

bool hec_ring_is_ours(const struct hec_ring_reader *reader, const struct hec_ring_record *record) {
    return !reader->borrowed || record->window == (uint16_t)reader->window;
}

void hec_ring_pause(struct hec_ring_reader *reader) {
    __atomic_fetch_or(&reader->header->window, 1, __ATOMIC_RELAXED);
}

void hec_ring_leave(struct hec_ring_reader *reader) {
    if (reader->header)
        munmap(reader->header, reader->bytes);
    memset(reader, 0, sizeof *reader);
}

void hec_ring_close(struct hec_ring_reader *reader) {
    if (reader->header && reader->borrowed)
        hec_ring_pause(reader);
    else if (reader->header)
        __atomic_store_n(&reader->header->closed, 1, __ATOMIC_RELAXED);
    hec_ring_leave(reader);
}

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

/* How many records nobody has read yet. */
static uint64_t unread_of(const struct hec_ring *ring, uint64_t *tail) {
    *tail = __atomic_load_n(&ring->header->tail, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&ring->header->head, __ATOMIC_RELAXED) - *tail;
}

/* Who reads does so all the time: a record that lies for as long as there is between two looks has no reader. */
static void end_if_dead(struct hec_ring_again *again, struct hec_ring *ring, uint32_t seen) {
    uint64_t tail, unread = unread_of(ring, &tail);
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
