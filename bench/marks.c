/* What a mark costs: ns per call with HEC off and on, against an empty function call and clock_gettime in the same run.
 *
 *   marks LIBHEC [PYTHON MARKS_PY]     LIBHEC: absolute path of libhec.so.0
 *
 * The parent listens and empties the ring like HEC does; the children (this program again, and Python) are observed
 * or not. Marks are timed in bursts that fit the ring, with pauses in which it is emptied, or the cost of dropping
 * would be measured instead: that has a row of its own. The figure is the median over bursts. */
#define HEC_HEADER_ONLY
#include "hec/hec.h"

#include "base/ring.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURSTS 101
#define CALLS 4000 /* phases write two records each: 8000 of 16384 */

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

__attribute__((noinline)) static void empty_call(double x) {
    __asm__ volatile("" : : "g"(x) : "memory");
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median ns of one evaluation of `statement`. */
#define MEASURE(label, pause_ms, statement)                                                                            \
    do {                                                                                                               \
        double ns[BURSTS];                                                                                             \
        for (int burst = 0; burst < BURSTS; burst++) {                                                                 \
            struct timespec pause = {0, (pause_ms)*1000000L};                                                          \
            if (pause.tv_nsec > 0)                                                                                     \
                nanosleep(&pause, NULL);                                                                               \
            double start = now_s();                                                                                    \
            for (int i = 0; i < CALLS; i++) {                                                                          \
                statement;                                                                                             \
                __asm__ volatile("" : : : "memory");                                                                   \
            }                                                                                                          \
            ns[burst] = (now_s() - start) / CALLS * 1e9;                                                               \
        }                                                                                                              \
        qsort(ns, BURSTS, sizeof ns[0], ascending);                                                                    \
        printf("%-8s %-32s %8.2f ns\n", mode, label, ns[BURSTS / 2]);                                                  \
    } while (0)

static void child(const char *mode) {
    struct timespec ts;
    int pause_ms = hec_active() ? 5 : 0;
    MEASURE("C empty function call", 0, empty_call(1));
    MEASURE("C clock_gettime", 0, clock_gettime(CLOCK_MONOTONIC, &ts));
    MEASURE("C hec_step", pause_ms, hec_step(1));
    MEASURE("C hec_step_of", pause_ms, hec_step_of("sample", 128));
    MEASURE("C hec_phase_begin + end", pause_ms, hec_phase_begin("data"); hec_phase_end("data"));
    MEASURE("C hec_knob_int", pause_ms, hec_knob_int("batch", 1));
    if (hec_active())
        for (int i = 0; i < 100000; i++)
            hec_step(1);
    MEASURE("C hec_step, ring full or nearly", 0, hec_step(1));
}

static int stop;

static void *collector(void *argument) {
    int listener = *(int *)argument;
    struct hec_ring_reader ring = {0};
    struct hec_ring_record records[256];
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        int connection = poll(&wait, 1, 1) == 1 ? accept(listener, NULL, NULL) : -1;
        struct hec_ring_hello hello;
        int fd;
        if (connection >= 0) {
            while (hec_ring_receive(connection, &hello, &fd) == -12) /* busy */
                ;
            hec_ring_close(&ring);
            if (hec_ring_map(fd, &ring) != 0)
                exit(1);
            close(fd);
            close(connection);
        }
        while (ring.header && hec_ring_read(&ring, records, 256) > 0)
            ;
    }
    hec_ring_close(&ring);
    return NULL;
}

static int run(char *const *command, const char *socket) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (socket)
            setenv("HEC_SOCKET", socket, 1);
        else
            unsetenv("HEC_SOCKET");
        execvp(command[0], command);
        _exit(127);
    }
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--child") == 0) {
        child(argv[2]);
        return 0;
    }
    if (argc != 2 && argc != 4) {
        fprintf(stderr, "usage: %s LIBHEC [PYTHON MARKS_PY]\n", argv[0]);
        return 2;
    }
    char folder[] = "/tmp/hec-bench-XXXXXX", path[64];
    int listener;
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/marks", folder);
    if (hec_ring_listen(path, &listener) != 0)
        return 1;
    setenv("HEC_LIB", argv[1], 1);
    pthread_t thread;
    pthread_create(&thread, NULL, collector, &listener);
    int failed = 0;
    for (int on = 0; on <= 1; on++) {
        char *mode = on ? "HEC on" : "HEC off";
        failed |= run((char *[]){argv[0], "--child", mode, NULL}, on ? path : NULL);
        if (argc == 4)
            failed |= run((char *[]){argv[2], argv[3], mode, NULL}, on ? path : NULL);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    close(listener);
    unlink(path);
    rmdir(folder);
    return failed;
}
