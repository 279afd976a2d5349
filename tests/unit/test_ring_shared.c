/* The ring between threads, processes and a handover; what its reader refuses. */
#include "base/error.h"
#include "base/ring.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL 64u

struct pair {
    struct hec_ring writer;
    struct hec_ring_reader reader;
};

static struct pair pair_new(uint32_t records) {
    struct pair pair;
    int fd;
    assert_int_equal(hec_ring_create(records, HEC_RING_MARKS, &pair.writer, &fd), HEC_OK);
    assert_int_equal(hec_ring_map(fd, &pair.reader), HEC_OK);
    close(fd);
    return pair;
}

static void pair_free(struct pair *pair) {
    hec_ring_close(&pair->reader);
    hec_ring_unmap(&pair->writer);
}

static bool put(struct hec_ring *ring, uint32_t tid, int64_t value) {
    struct hec_ring_record record = {.t_ns = value, .tid = tid, .kind = HEC_RING_STEP};
    record.u.mark.value = (double)value;
    return hec_ring_write(ring, &record);
}

TEST(records_arrive_in_order_over_many_laps) {
    struct pair pair = pair_new(SMALL);
    int64_t next = 0;
    for (int64_t i = 0; i < 10 * SMALL; i++) {
        assert_true(put(&pair.writer, 7, i));
        struct hec_ring_record out[7];
        for (size_t count = i % 5 == 4 ? hec_ring_read(&pair.reader, out, 7) : 0, j = 0; j < count; j++) {
            assert_int_equal(out[j].t_ns, next++);
            assert_int_equal(out[j].tid, 7);
        }
    }
    assert_int_equal(next, 10 * SMALL);
    assert_int_equal(hec_ring_lost(&pair.reader), 0);
    pair_free(&pair);
}

/* A ring has the rank of the process that made it, as its environment says it. */
TEST(rings_have_the_rank_of_their_process) {
    static const struct {
        const char *variables[6];
        int32_t rank, local, size;
        const char *launcher;
    } cases[] = {
        {{"RANK=3", "WORLD_SIZE=8"}, 3, -1, 8, "environment"},
        {{"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "TORCHELASTIC_RUN_ID=x"}, 3, 1, 8, "torchrun"},
        {{"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "TORCHELASTIC_RUN_ID=x", "ACCELERATE_MIXED_PRECISION=no"},
         3,
         3,
         8,
         "accelerate"},
        {{"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "CROSS_SIZE=2"}, 3, 3, 8, "deepspeed"},
        {{"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=0", "RAY_RAYLET_PID=7"}, 1, 0, 2, "ray"},
        {{"HOROVOD_RANK=1", "HOROVOD_SIZE=2", "HOROVOD_LOCAL_RANK=1"}, 1, 1, 2, "horovod"},
        {{"JAX_PROCESS_ID=1", "JAX_NUM_PROCESSES=2"}, 1, -1, 2, "jax"},
        {{"JAX_PROCESS_ID=1", "JAX_PROCESS_COUNT=2", "JAX_LOCAL_PROCESS_ID=0"}, 1, 0, 2, "jax"},
        {{"MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_LOCAL_RANK=1"}, 1, 1, 2, "mpirun"},
        {{"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=9"}, 3, -1, 8, "environment"},
        {{"WORLD_SIZE=8", "RANK=0"}, 0, -1, 8, "environment"},
        {{"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=6", "OMPI_COMM_WORLD_LOCAL_RANK=2"}, 5, 2, 6, "mpirun"},
        {{"PMI_SIZE=2", "PMI_RANK=1", "MPI_LOCALRANKID=0"}, 1, 0, 2, "mpirun"},
        {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "RANK=7", "WORLD_SIZE=8"},
         7,
         -1,
         8,
         "environment"}, /* torchrun's, which Slurm started */
        {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_LOCALID=1", "RANK=16"},
         1,
         1,
         2,
         "srun"}, /* of a matrix, perhaps */
        {{"RANK=16"}, -1, -1, 0, ""},
        {{"RANK=0", "WORLD_SIZE=1"}, -1, -1, 0, ""}, /* a job of one rank */
        {{"RANK=8", "WORLD_SIZE=8"}, -1, -1, 0, ""},
        {{"RANK=-1", "WORLD_SIZE=8"}, -1, -1, 0, ""},
        {{"RANK=1x", "WORLD_SIZE=8"}, -1, -1, 0, ""},
        {{"RANK=", "WORLD_SIZE=8"}, -1, -1, 0, ""},
        {{"RANK=2000000", "WORLD_SIZE=2000001"}, -1, -1, 0, ""},
        {{"RANK=99999999999999999999", "WORLD_SIZE=99999999999999999999"}, -1, -1, 0, ""},
        {{NULL}, -1, -1, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clearenv();
        for (const char *const *v = cases[i].variables; *v; v++)
            assert_int_equal(putenv((char *)(uintptr_t)*v), 0);
        struct pair pair = pair_new(SMALL);
        assert_int_equal(pair.reader.rank.number, cases[i].rank);
        assert_int_equal(pair.reader.rank.local, cases[i].local);
        assert_int_equal(pair.reader.rank.size, cases[i].size);
        assert_string_equal(hec_ring_launcher(pair.reader.rank.launcher), cases[i].launcher);
        pair_free(&pair);
    }
    struct pair pair;
    int fd;
    assert_int_equal(hec_ring_create(SMALL, HEC_RING_MARKS, &pair.writer, &fd), HEC_OK);
    pair.writer.header->rank = UINT32_MAX; /* as a hostile process says it */
    pair.writer.header->local_rank = pair.writer.header->ranks = pair.writer.header->launcher = UINT32_MAX;
    assert_int_equal(hec_ring_map(fd, &pair.reader), HEC_OK);
    assert_int_equal(pair.reader.rank.number, -1);
    assert_int_equal(pair.reader.rank.size, 0);
    assert_string_equal(hec_ring_launcher(pair.reader.rank.launcher), "");
    close(fd);
    pair_free(&pair);
}

TEST(a_full_ring_drops_and_counts) {
    struct pair pair = pair_new(SMALL);
    for (uint32_t i = 0; i < SMALL; i++)
        assert_true(put(&pair.writer, 1, i));
    for (int i = 0; i < 5; i++)
        assert_false(put(&pair.writer, 1, 1000));
    assert_int_equal(hec_ring_lost(&pair.reader), 5);
    assert_int_equal(hec_ring_pending(&pair.reader), SMALL);
    struct hec_ring_record out[2 * SMALL];
    assert_int_equal(hec_ring_read(&pair.reader, out, 2 * SMALL), SMALL);
    for (uint32_t i = 0; i < SMALL; i++)
        assert_int_equal(out[i].t_ns, i); /* the oldest are kept, none is overwritten */
    assert_true(put(&pair.writer, 1, 2000));
    assert_int_equal(hec_ring_read(&pair.reader, out, 1), 1);
    assert_int_equal(out[0].t_ns, 2000);
    pair_free(&pair);
}

#define WRITERS 4
#define EACH 20000

struct writer {
    struct hec_ring *ring;
    uint32_t tid;
    int64_t written;
    int *running;
};

static void *write_many(void *argument) {
    struct writer *writer = argument;
    for (int64_t i = 0; i < EACH; i++)
        writer->written += put(writer->ring, writer->tid, i);
    __atomic_fetch_sub(writer->running, 1, __ATOMIC_RELEASE);
    return NULL;
}

TEST(threads_lose_nothing_that_is_not_counted) {
    struct pair pair = pair_new(256);
    /* one mapping for both sides: to ThreadSanitizer two mappings of the same memory are unrelated */
    munmap(pair.reader.header, pair.reader.bytes);
    pair.reader.header = pair.writer.header;
    pair.reader.slots = pair.writer.slots;
    int running = WRITERS;
    struct writer writer[WRITERS];
    pthread_t thread[WRITERS];
    for (uint32_t i = 0; i < WRITERS; i++) {
        writer[i] = (struct writer){&pair.writer, i, 0, &running};
        assert_int_equal(pthread_create(&thread[i], NULL, write_many, &writer[i]), 0);
    }
    int64_t last[WRITERS] = {-1, -1, -1, -1}, read = 0;
    struct hec_ring_record out[50];
    for (;;) {
        int still = __atomic_load_n(&running, __ATOMIC_ACQUIRE);
        size_t count = hec_ring_read(&pair.reader, out, 50);
        for (size_t i = 0; i < count; i++) {
            assert_in_range(out[i].tid, 0, WRITERS - 1);
            assert_true(out[i].t_ns > last[out[i].tid]); /* a thread's records keep their order, none comes twice */
            assert_true(out[i].u.mark.value == (double)out[i].t_ns);
            last[out[i].tid] = out[i].t_ns;
            read++;
        }
        if (count == 0 && still == 0)
            break;
    }
    int64_t written = 0;
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(thread[i], NULL);
        written += writer[i].written;
    }
    assert_int_equal(read, written);
    assert_int_equal(written + (int64_t)hec_ring_lost(&pair.reader), WRITERS * EACH);
    hec_ring_unmap(&pair.writer);
}

TEST(a_dead_writers_slot_is_skipped_only_on_request) {
    struct pair pair = pair_new(SMALL);
    assert_true(put(&pair.writer, 1, 1));
    __atomic_fetch_add(&pair.writer.header->head, 1, __ATOMIC_RELAXED); /* reserved, then the process died */
    assert_true(put(&pair.writer, 1, 3));
    struct hec_ring_record out[4];
    assert_int_equal(hec_ring_read(&pair.reader, out, 4), 1);
    assert_int_equal(hec_ring_read(&pair.reader, out, 4), 0);
    assert_int_equal(hec_ring_pending(&pair.reader), 2);
    assert_true(hec_ring_skip(&pair.reader));
    assert_int_equal(hec_ring_read(&pair.reader, out, 4), 1);
    assert_int_equal(out[0].t_ns, 3);
    assert_false(hec_ring_skip(&pair.reader));
    assert_int_equal(hec_ring_lost(&pair.reader), 1);
    /* the stale slot must not be taken for a record of a later lap */
    for (uint32_t i = 0; i < 3 * SMALL; i++) {
        assert_true(put(&pair.writer, 1, 100 + i));
        assert_int_equal(hec_ring_read(&pair.reader, out, 4), 1);
        assert_int_equal(out[0].t_ns, 100 + i);
    }
    pair_free(&pair);
}

TEST(a_child_killed_amid_writing_harms_nobody) {
    struct pair pair = pair_new(1024);
    pid_t pid = fork();
    if (pid == 0)
        for (int64_t i = 1;; i++)
            put(&pair.writer, 9, i);
    struct hec_ring_record out[64];
    uint64_t read = 0;
    while (read < 5000)
        read += hec_ring_read(&pair.reader, out, 64);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    int64_t last = 0;
    for (;;) {
        size_t count = hec_ring_read(&pair.reader, out, 64);
        for (size_t i = 0; i < count; i++) {
            assert_true(out[i].t_ns > last);
            assert_true(out[i].u.mark.value == (double)out[i].t_ns);
            last = out[i].t_ns;
        }
        if (count == 0 && !hec_ring_skip(&pair.reader))
            break;
    }
    assert_int_equal(hec_ring_pending(&pair.reader), 0);
    assert_true(put(&pair.writer, 1, 1)); /* the parent may go on with the same ring */
    assert_int_equal(hec_ring_read(&pair.reader, out, 64), 1);
    pair_free(&pair);
}

TEST(the_writer_learns_that_the_reader_has_gone) {
    struct pair pair = pair_new(SMALL);
    assert_false(hec_ring_closed(&pair.writer));
    hec_ring_close(&pair.reader);
    assert_true(hec_ring_closed(&pair.writer));
    hec_ring_unmap(&pair.writer);
}

TEST(capacities_are_checked) {
    struct hec_ring ring;
    int fd;
    static const uint32_t bad[] = {0, 1, 63, 65, 100, HEC_RING_RECORDS_MAX * 2};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hec_ring_create(bad[i], HEC_RING_MARKS, &ring, &fd), HEC_ERR_USAGE);
}

/* ---- what the reader refuses ---- */

static int memory_of(const void *bytes, size_t length, off_t size, int seals) {
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    if (length > 0)
        assert_int_equal(pwrite(fd, bytes, length, 0), (ssize_t)length);
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static int map_and_close(int fd) {
    struct hec_ring_reader reader;
    int err = hec_ring_map(fd, &reader);
    if (!err)
        hec_ring_close(&reader);
    close(fd);
    return err;
}

TEST(the_reader_refuses_what_is_not_a_sealed_ring) {
    const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
    const off_t size = HEC_RING_HEADER_BYTES + SMALL * sizeof(struct hec_ring_record);
    const struct hec_ring_header good = {
        HEC_RING_MAGIC, HEC_RING_ABI, HEC_RING_HEADER_BYTES, sizeof(struct hec_ring_record), SMALL, HEC_RING_MARKS, 1};
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size, all)), HEC_OK);
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size, 0)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size, F_SEAL_GROW | F_SEAL_SEAL)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size, F_SEAL_GROW | F_SEAL_SHRINK)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size, all | F_SEAL_WRITE)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size - 1, all)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(memory_of(&good, sizeof good, size + 64, all)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(memory_of(&good, 0, 0, all)), HEC_ERR_CORRUPT);
    assert_int_equal(map_and_close(open("/dev/null", O_RDWR | O_CLOEXEC)), HEC_ERR_CORRUPT);

    struct hec_ring_header bad = good;
    bad.magic++;
    assert_int_equal(map_and_close(memory_of(&bad, sizeof bad, size, all)), HEC_ERR_CORRUPT);
    bad = good, bad.records = SMALL * 2; /* more than the file holds */
    assert_int_equal(map_and_close(memory_of(&bad, sizeof bad, size, all)), HEC_ERR_CORRUPT);
    bad = good, bad.records = 0;
    assert_int_equal(map_and_close(memory_of(&bad, sizeof bad, size, all)), HEC_ERR_CORRUPT);
    bad = good, bad.role = 77;
    assert_int_equal(map_and_close(memory_of(&bad, sizeof bad, size, all)), HEC_ERR_CORRUPT);
    bad = good, bad.abi = HEC_RING_ABI + 1;
    assert_int_equal(map_and_close(memory_of(&bad, sizeof bad, size, all)), HEC_ERR_VERSION);
    bad = good, bad.record_bytes = 128;
    assert_int_equal(map_and_close(memory_of(&bad, sizeof bad, size, all)), HEC_ERR_VERSION);
}

/* A page of it can be punched out while none is free: whoever reads it then dies of SIGBUS. */
TEST(huge_pages_are_no_ring) {
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0 || ftruncate(fd, 2 << 20) != 0)
        skip(); /* a kernel without */
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW), 0);
    assert_int_equal(map_and_close(fd), HEC_ERR_CORRUPT);
}

TEST(a_lying_header_cannot_move_the_reader) {
    struct pair pair = pair_new(SMALL);
    struct hec_ring_record out[2 * SMALL];
    assert_true(put(&pair.writer, 1, 1));
    pair.writer.header->records = UINT32_MAX;
    pair.writer.header->tail = UINT64_MAX / 2;
    pair.writer.header->head = UINT64_MAX;
    assert_int_equal(hec_ring_pending(&pair.reader), 0);
    assert_false(hec_ring_skip(&pair.reader));
    assert_int_equal(hec_ring_read(&pair.reader, out, 2 * SMALL), 1);
    pair.writer.header->dropped = UINT64_MAX;
    pair.reader.skipped = 2;
    assert_true(hec_ring_lost(&pair.reader) == UINT64_MAX);
    /* the writer of a ruined ring drops, it does not overrun */
    pair.writer.header->head = 5;
    pair.writer.header->tail = 6;
    assert_false(put(&pair.writer, 1, 1));
    pair_free(&pair);
}

/* ---- handover ---- */

TEST(rings_are_handed_over_even_by_a_process_that_is_gone) {
    char path[] = "ring-XXXXXX";
    assert_non_null(mkdtemp(path));
    char name[64];
    snprintf(name, sizeof name, "%s/socket", path);
    int listener;
    assert_int_equal(hec_ring_listen(name, &listener), HEC_OK);
    pid_t pid = fork();
    if (pid == 0) {
        struct hec_ring ring;
        int fd;
        if (hec_ring_create(SMALL, HEC_RING_TRACE, &ring, &fd) || hec_ring_send(name, HEC_RING_TRACE, 0, fd))
            _exit(1);
        close(fd);
        for (int i = 0; i < 10; i++)
            put(&ring, 3, i);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    int connection = accept(listener, NULL, NULL), fd;
    struct hec_ring_hello hello;
    struct hec_ring_reader reader;
    assert_int_equal(hec_ring_receive(connection, &hello, &fd), HEC_OK);
    assert_int_equal(hello.pid, pid);
    assert_int_equal(hello.role, HEC_RING_TRACE);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(hec_ring_map(fd, &reader), HEC_OK);
    struct hec_ring_record out[SMALL];
    assert_int_equal(hec_ring_read(&reader, out, SMALL), 10);
    hec_ring_close(&reader);
    close(fd);
    close(connection);
    close(listener);
    unlink(name);
    assert_int_equal(hec_ring_send(name, HEC_RING_MARKS, 0, 0), HEC_ERR_NOTFOUND);
    rmdir(path);
}

TEST(hellos_are_checked) {
    const struct hec_ring_hello good = {HEC_RING_MAGIC, HEC_RING_ABI, HEC_RING_MARKS, 1, 0};
    struct hec_ring_hello wrong = good, hello;
    wrong.magic = 1;
    struct hec_ring_hello newer = good;
    newer.abi = 99;
    const struct {
        const void *bytes;
        size_t length;
        int fds, expected;
    } cases[] = {
        {&good, sizeof good, 1, HEC_OK},
        {&good, sizeof good, 0, HEC_ERR_CORRUPT},
        {&good, sizeof good, 2, HEC_ERR_CORRUPT},
        {&good, sizeof good - 1, 1, HEC_ERR_CORRUPT},
        {&wrong, sizeof wrong, 1, HEC_ERR_CORRUPT},
        {&newer, sizeof newer, 1, HEC_ERR_VERSION},
        {"", 0, 1, HEC_ERR_CORRUPT},
    };
    int probe = dup(0);
    close(probe); /* the lowest free descriptor: whatever leaks takes it */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int ends[2], fd = -1;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
        assert_int_equal(hec_ring_receive(ends[0], &hello, &fd), HEC_ERR_BUSY);
        struct iovec part = {(void *)cases[i].bytes, cases[i].length};
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(2 * sizeof(int))];
        } control = {0};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (cases[i].fds > 0) {
            message.msg_control = control.bytes;
            message.msg_controllen = CMSG_SPACE((size_t)cases[i].fds * sizeof(int));
            struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN((size_t)cases[i].fds * sizeof(int));
            memcpy(CMSG_DATA(rights), (int[]){0, 0}, (size_t)cases[i].fds * sizeof(int));
        }
        assert_true(sendmsg(ends[1], &message, 0) >= 0);
        assert_int_equal(hec_ring_receive(ends[0], &hello, &fd), cases[i].expected);
        if (cases[i].expected == HEC_OK)
            close(fd);
        close(ends[1]);
        assert_int_equal(hec_ring_receive(ends[0], &hello, &fd), HEC_ERR_LOST);
        close(ends[0]);
        int again = dup(0);
        assert_int_equal(again, probe);
        close(again);
    }
}
