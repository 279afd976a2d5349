/* How long threads that call the driver waited for a core. A call in which a thread lost its core lasts as long as one that
 * waits for room in the queue: on a machine with more to do than cores a program that only launches looked like one that
 * waits (30 to 60 % of its time, four programs on two cores). The same where the host of a virtual machine runs something else
 * on its core (8 % of the time of two cores stolen: the tracer looked at a program that waits for nothing). */
#include "tracer/tracer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    uint32_t tid;
    uint64_t calls, delay_ns;
} seen[HEC_CALLERS_MAX];
static int64_t total_ns;

/* "time on a core, time of waiting for one, turns"; 0 where the kernel does not say. */
static uint64_t delay_of(uint32_t tid) {
    char path[64], text[96];
    snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) : 0;
}

int64_t hec_delay_ns(void) {
    for (uint32_t i = 0; i < HEC_CALLERS_MAX; i++) {
        uint64_t calls;
        uint32_t tid = hec_callers_tid(i, &calls);
        if (tid == 0 || (seen[i].tid == tid && seen[i].calls == calls))
            continue; /* it called nothing meanwhile */
        uint64_t delay_ns = delay_of(tid);
        if (seen[i].tid == tid && delay_ns > seen[i].delay_ns)
            total_ns += (int64_t)(delay_ns - seen[i].delay_ns);
        seen[i].tid = tid;
        seen[i].calls = calls;
        seen[i].delay_ns = delay_ns;
    }
    return total_ns;
}

/* ---- what the host of a virtual machine takes ---- */

/* Of a reading that is older nobody knows when in it the time was taken. */
#define STOLEN_OLDEST_NS (3 * HEC_NS_PER_S)
#define STOLEN_LEAST_NS HEC_NS_PER_S
#define STOLEN_TIMES 2

static struct {
    int64_t t_ns; /* 0: none yet */
    uint64_t ran, stolen;
} machine;

/* The first line of /proc/stat: "cpu", then user, nice, system, idle, iowait, irq, softirq, steal, in ticks. */
static bool read_machine(uint64_t *ran, uint64_t *stolen) {
    char text[256];
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = '\0';
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq,
               &softirq, &steal) != 8)
        return false;
    *ran = user + nice + system + irq + softirq;
    *stolen = steal;
    return true;
}

double hec_delay_stolen(int64_t now_ns) {
    uint64_t ran, stolen;
    int64_t age_ns = now_ns - machine.t_ns;
    if (machine.t_ns && age_ns < STOLEN_LEAST_NS)
        return 1;
    if (!read_machine(&ran, &stolen) || stolen == 0)
        return 0; /* no virtual machine, or one that does not say */
    double took = (double)(stolen - machine.stolen), of = (double)(ran - machine.ran) + took;
    bool first = machine.t_ns == 0;
    if (first || age_ns > STOLEN_OLDEST_NS) {
        machine.t_ns = now_ns;
        machine.ran = ran;
        machine.stolen = stolen;
        return 1;
    }
    /* A thread that runs all the time is robbed of more than the mean, and none of more than all threads together. */
    double share = of > 0 ? STOLEN_TIMES * took / of : 0;
    double all = took * 1e9 / (double)sysconf(_SC_CLK_TCK) / (double)age_ns;
    return share < all ? share : all;
}

void hec_delay_forget(void) {
    memset(seen, 0, sizeof seen);
    memset(&machine, 0, sizeof machine);
    total_ns = 0;
}
