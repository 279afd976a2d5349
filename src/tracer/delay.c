/* How long threads that call the driver waited for a core. A call in which a thread lost its core lasts as long as one that
 * waits for room in the queue: on a machine with more to do than cores a program that only launches looked like one that
 * waits (30 to 60 % of its time, four programs on two cores). */
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

void hec_delay_forget(void) {
    memset(seen, 0, sizeof seen);
    total_ns = 0;
}
