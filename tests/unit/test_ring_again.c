/* A process whose agent is restarted: the ring that the new agent gets, at the old one's address, and windows whose reader died. */
#include "base/error.h"
#include "base/ring.h"
#include "tests/unit/folder.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TAG 7

static struct {
    char socket[64];
    int listener;
    struct hec_ring ring;
    struct hec_ring_again again;
    struct hec_ring_reader reader;
    int64_t now_ns;
} f;

/* As an agent does that begins: the socket is a new file. */
static void listen_again(void) {
    if (f.listener >= 0)
        close(f.listener);
    assert_int_equal(hec_ring_listen(f.socket, &f.listener), HEC_OK);
}

/* What the agent gets: mapped, and nobody reads. */
static void take(void) {
    struct hec_ring_hello hello;
    int fd, connection = accept(f.listener, NULL, NULL);
    assert_true(connection >= 0);
    struct pollfd ready = {.fd = connection, .events = POLLIN}; /* who connected may not have sent it yet */
    assert_int_equal(poll(&ready, 1, 10000), 1);
    assert_int_equal(hec_ring_receive(connection, &hello, &fd), HEC_OK);
    close(connection);
    assert_int_equal(hello.tag, TAG);
    assert_int_equal(hello.pid, getpid());
    hec_ring_leave(&f.reader);
    assert_int_equal(hec_ring_map(fd, &f.reader), HEC_OK);
    close(fd);
    hec_ring_pause(&f.reader);
}

static bool nobody_connected(void) {
    return accept(f.listener, NULL, NULL) < 0;
}

static bool look(void) {
    f.now_ns += HEC_RING_LOOK_NS;
    return hec_ring_look_again(&f.again, &f.ring, f.now_ns);
}

static void write_at(int64_t t_ns) {
    struct hec_ring_record record = {.t_ns = t_ns, .kind = HEC_RING_STEP};
    assert_true(hec_ring_write(&f.ring, &record));
}

static int set_up(void **state) {
    memset(&f, 0, sizeof f);
    f.listener = -1;
    f.now_ns = 1;
    assert_int_equal(folder_make(state), 0);
    snprintf(f.socket, sizeof f.socket, "%s/agent", folder);
    listen_again();
    assert_int_equal(
        hec_ring_begin_at(&f.again, f.socket, HEC_RING_MARKS, HEC_RING_RECORDS_MIN, TAG, f.now_ns, &f.ring), HEC_OK);
    take();
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hec_ring_leave(&f.reader);
    hec_ring_unmap(&f.ring);
    close(f.listener);
    unlink(f.socket);
    return rmdir(folder);
}

/* Who is there keeps the socket; of one that is gone it is taken. */
TEST(a_socket_has_one_listener) {
    int second = -1;
    assert_int_equal(hec_ring_listen(f.socket, &second), HEC_ERR_BUSY);
    assert_int_equal(second, -1);
    listen_again();
}

/* What stands where a socket is to be: it is taken where it is a socket that nobody listens at, and nothing else is. */
enum plant {
    NOTHING,
    DESERTED,
    LISTENS,
    LISTENS_FULL,
    STREAM,
    DATAGRAM,
    FILE_THERE,
    FOLDER,
    PIPE,
    LINK,
    LINK_TO_IT,
    DANGLING,
    HARD_LINK
};
static const struct {
    enum plant plant;
    int err;
} plants[] = {
    {NOTHING, HEC_OK},        {DESERTED, HEC_OK},       {LISTENS, HEC_ERR_BUSY},  {LISTENS_FULL, HEC_ERR_BUSY},
    {STREAM, HEC_ERR_BUSY},   {DATAGRAM, HEC_ERR_BUSY}, {FILE_THERE, HEC_ERR_IO}, {FOLDER, HEC_ERR_IO},
    {PIPE, HEC_ERR_IO},       {LINK, HEC_ERR_IO},       {LINK_TO_IT, HEC_ERR_IO}, {DANGLING, HEC_ERR_IO},
    {HARD_LINK, HEC_ERR_BUSY}};

static int bound(const char *path, int kind, bool listens) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, kind | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listens)
        assert_int_equal(listen(fd, 0), 0);
    return fd;
}

TEST(what_stands_where_a_socket_is_to_be) {
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        char path[100], other[100];
        struct stat before = {0}, after = {0};
        int held = -1, waiting = -1, fd = -1;
        enum plant plant = plants[i].plant;
        snprintf(path, sizeof path, "%s/place", folder);
        snprintf(other, sizeof other, "%s/other", folder);
        if (plant >= DESERTED && plant <= DATAGRAM)
            held = bound(path,
                         plant == STREAM     ? SOCK_STREAM
                         : plant == DATAGRAM ? SOCK_DGRAM
                                             : SOCK_SEQPACKET,
                         plant >= LISTENS && plant <= STREAM);
        if (plant == LISTENS_FULL) {
            struct sockaddr_un address = {.sun_family = AF_UNIX};
            strcpy(address.sun_path, path);
            waiting = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
            assert_int_equal(connect(waiting, (struct sockaddr *)&address, sizeof address), 0);
        }
        if (plant == DESERTED)
            close(held);
        if (plant == FILE_THERE)
            close(open(path, O_CREAT | O_WRONLY, 0600));
        if (plant == FOLDER)
            assert_int_equal(mkdir(path, 0700), 0);
        if (plant == PIPE)
            assert_int_equal(mkfifo(path, 0600), 0);
        if (plant == LINK)
            close(open(other, O_CREAT | O_WRONLY, 0600));
        if (plant == LINK || plant == DANGLING || plant == LINK_TO_IT)
            assert_int_equal(symlink(plant == LINK_TO_IT ? f.socket : other, path), 0);
        if (plant == HARD_LINK)
            assert_int_equal(link(f.socket, path), 0);
        lstat(path, &before);
        assert_int_equal(hec_ring_listen(path, &fd), plants[i].err);
        lstat(path, &after);
        if (plants[i].err)
            assert_int_equal(before.st_ino, after.st_ino);
        for (int *open_fd = (int[]){fd, plant == DESERTED ? -1 : held, waiting, -2}; *open_fd != -2; open_fd++)
            if (*open_fd >= 0)
                close(*open_fd);
        if (plant == FOLDER)
            rmdir(path);
        unlink(path);
        unlink(other);
    }
    listen_again();
}

static void *listens(void *path) {
    int fd = -1, err = hec_ring_listen(path, &fd);
    return (void *)(intptr_t)(err == HEC_OK ? fd + 1 : 0);
}

/* Many at once, where one that is gone has left its socket: one of them has it. */
TEST(one_of_many_has_the_socket) {
    char path[100];
    snprintf(path, sizeof path, "%s/place", folder);
    for (int round = 0; round < 50; round++) {
        pthread_t thread[6];
        int winners = 0, won = -1;
        close(bound(path, SOCK_SEQPACKET, false));
        for (int i = 0; i < 6; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, listens, path), 0);
        for (int i = 0; i < 6; i++) {
            void *fd;
            pthread_join(thread[i], &fd);
            winners += fd != NULL;
            won = fd ? (int)(intptr_t)fd - 1 : won;
        }
        close(won);
        assert_int_equal(winners, 1);
        unlink(path);
    }
}

TEST(test_the_same_agent) {
    for (int i = 0; i < 5; i++)
        assert_false(look());
    assert_true(nobody_connected());
}

TEST(test_a_restarted_agent) {
    struct hec_ring_record read;
    const void *address = f.ring.header;
    for (int restart = 1; restart <= 3; restart++) {
        hec_ring_begin(&f.reader);
        for (int i = 0; i < 9 * restart; i++)
            write_at(i);
        hec_ring_close(&f.reader);
        uint32_t before = hec_ring_window(&f.ring);
        listen_again();
        assert_false(hec_ring_look_again(&f.again, &f.ring, f.now_ns)); /* it is not yet time */
        assert_true(look());
        assert_ptr_equal(f.ring.header, address);
        assert_true(hec_ring_window(&f.ring) & 1);
        take();
        assert_false(look());
        hec_ring_begin(&f.reader);
        assert_true(hec_ring_window(&f.ring) > before);
        assert_int_equal(hec_ring_pending(&f.reader), 0);
        write_at(1000 + restart);
        assert_int_equal(hec_ring_read(&f.reader, &read, 1), 1);
        assert_int_equal(read.t_ns, 1000 + restart);
        assert_int_equal(hec_ring_lost(&f.reader), 0);
    }
}

/* A thread that was held up between its reservation and its copy, for all of the restart. */
TEST(test_a_record_under_way) {
    struct hec_ring_record read;
    uint64_t reserved = __atomic_fetch_add(&f.ring.header->head, 1, __ATOMIC_RELAXED);
    listen_again();
    assert_true(look());
    take();
    hec_ring_begin(&f.reader);
    f.ring.slots[reserved & f.ring.mask].t_ns = 13;
    f.ring.slots[reserved & f.ring.mask].sequence = reserved + 1;
    for (int i = 0; i < 2 * (int)HEC_RING_RECORDS_MIN; i++) {
        assert_int_equal(hec_ring_read(&f.reader, &read, 1), 0);
        write_at(100 + i);
        assert_int_equal(hec_ring_read(&f.reader, &read, 1), 1);
        assert_int_equal(read.t_ns, 100 + i);
    }
}

TEST(test_who_is_no_agent) {
    unlink(f.socket);
    assert_false(look()); /* none there */
    FILE *file = fopen(f.socket, "w");
    assert_non_null(file);
    fclose(file);
    assert_false(look()); /* no socket */
    unlink(f.socket);
    listen_again();
    close(f.listener);
    f.listener = -1;
    assert_false(look()); /* nobody listens */
    if (geteuid() == 0) {
        listen_again();
        assert_int_equal(chown(f.socket, 12345, (gid_t)-1), 0);
        assert_false(look()); /* another user's */
        assert_true(nobody_connected());
    }
    unlink(f.socket);
    listen_again();
    assert_true(look()); /* and at last it is one */
    take();
}

TEST(test_a_reader_that_died) {
    struct hec_ring_record read;
    write_at(1);
    hec_ring_begin(&f.reader);
    uint32_t window = hec_ring_window(&f.ring);
    for (int i = 0; i < 4; i++) { /* nothing to read, or all is read: it lives */
        assert_false(look());
        assert_int_equal(hec_ring_window(&f.ring), window);
        write_at(2);
        assert_false(look());
        assert_int_equal(hec_ring_window(&f.ring), window);
        assert_int_equal(hec_ring_read(&f.reader, &read, 1), 1);
    }
    write_at(3);
    assert_false(look());
    listen_again();
    assert_false(look());
    assert_int_equal(hec_ring_window(&f.ring), window + 1);
    assert_true(look());
    take();
    hec_ring_begin(&f.reader);
    assert_true(hec_ring_window(&f.ring) > window + 1);
}

/* `hec run` reads from the first record to the last, and may be stopped for as long as it likes. */
TEST(test_a_ring_without_windows) {
    f.ring.header->window = 0;
    write_at(1);
    listen_again();
    for (int i = 0; i < 5; i++)
        assert_false(look());
    assert_int_equal(hec_ring_window(&f.ring), 0);
    assert_true(nobody_connected());
}

/* ---- many threads write and look, while one agent follows another ---- */

#define WRITERS 4
#define RESTARTS 40
#define READ_EACH 100

struct group {
    int64_t now_ns;          /* atomic: a look's time further at each look */
    int writers;             /* atomic: that have begun */
    int64_t rounds[WRITERS]; /* atomic */
    bool stop;               /* atomic */
};

static void *write_on(void *context) {
    struct group *c = context;
    int64_t *rounds = &c->rounds[__atomic_fetch_add(&c->writers, 1, __ATOMIC_RELAXED)];
    for (int64_t n = 0; !__atomic_load_n(&c->stop, __ATOMIC_RELAXED); n++) {
        struct hec_ring_record record = {.t_ns = n, .kind = HEC_RING_STEP, .tid = (uint32_t)(n * 7)};
        record.u.mark.value = (double)n;
        if (n % 64 == 0)
            hec_ring_look_again(&f.again, &f.ring, __atomic_add_fetch(&c->now_ns, HEC_RING_LOOK_NS, __ATOMIC_RELAXED));
        if (!(hec_ring_window(&f.ring) & 1))
            hec_ring_write(&f.ring, &record);
        __atomic_store_n(rounds, n + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Between two agents there are seconds: nobody is in the midst of a record for so long. */
static void let_all_go_on(struct group *c) {
    for (int i = 0; i < WRITERS; i++) {
        int64_t before = __atomic_load_n(&c->rounds[i], __ATOMIC_ACQUIRE);
        while (__atomic_load_n(&c->rounds[i], __ATOMIC_ACQUIRE) < before + 2)
            sched_yield();
    }
}

static bool someone_connected(void) {
    for (int i = 0; i < 2000; i++) {
        struct pollfd ready = {.fd = f.listener, .events = POLLIN};
        if (poll(&ready, 1, 10) == 1)
            return true;
    }
    return false;
}

/* Every record is one that was written, and all of it. A reader that is slow is taken for dead here, since looks come thick and fast: then
 * it begins again. */
static void read_some(void) {
    struct hec_ring_record read[32];
    for (size_t records = 0; records < READ_EACH;) {
        if (hec_ring_window(&f.ring) & 1)
            hec_ring_begin(&f.reader);
        size_t count = hec_ring_read(&f.reader, read, 32);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(read[k].kind, HEC_RING_STEP);
            assert_int_equal(read[k].tid, (uint32_t)(read[k].t_ns * 7));
            assert_true(read[k].u.mark.value == (double)read[k].t_ns);
        }
        records += count;
        if (count == 0)
            sched_yield();
    }
}

TEST(test_restarts_among_threads) {
    struct group group = {.now_ns = HEC_RING_LOOK_NS};
    pthread_t thread[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, write_on, &group), 0);
    for (int restart = 0; restart < RESTARTS; restart++) {
        read_some();
        hec_ring_pause(&f.reader);
        let_all_go_on(&group);
        listen_again();
        assert_true(someone_connected());
        take();
    }
    __atomic_store_n(&group.stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
}

EACH_TEST(set_up, tear_down)
