#include "tracer/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* A counter that traps into a hypervisor takes a microsecond; it is not used then. */
#define READINGS 64
#define READING_MOST_NS 100
/* Of so many readings of both clocks the closest counts: a thread may lose its core for milliseconds between the two. */
#define PAIRS 8

struct hec_ticks hec_ticks = {.ns_per_tick = 1};

static void read_pair(uint64_t *tick, int64_t *t_ns) {
    uint64_t closest = UINT64_MAX;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t before = hec_ticks_now();
        int64_t now_ns = hec_ticks_clock_ns();
        uint64_t took = hec_ticks_now() - before;
        if (took >= closest)
            continue;
        closest = took;
        *tick = before + took / 2;
        *t_ns = now_ns;
    }
}

#if defined(__x86_64__)
/* Of one rate in all states of all cores, by the processor's word (CPUID 80000007h, EDX bit 8) and the kernel's. */
static bool trusted(void) {
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    unsigned a, b, c, d = 0;
    char text[16] = "";
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
        return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    return bytes > 0 && (strncmp(text, "tsc", 3) == 0 || strncmp(text, "kvm-clock", 9) == 0);
}
#endif

void hec_ticks_open(void) {
    hec_ticks = (struct hec_ticks){.ns_per_tick = 1};
#if defined(__x86_64__)
    if (!trusted())
        return;
    int64_t begin_ns = hec_ticks_clock_ns();
    uint64_t sum = 0;
    for (int i = 0; i < READINGS; i++)
        sum += __rdtsc();
    if (sum == 0 || hec_ticks_clock_ns() - begin_ns > READINGS * READING_MOST_NS)
        return;
    hec_ticks.counter = true;
    read_pair(&hec_ticks.first_tick, &hec_ticks.first_ns);
    while (hec_ticks_clock_ns() - hec_ticks.first_ns < 1000000)
        ;
    hec_ticks_refine();
#endif
}

void hec_ticks_refine(void) {
    if (!hec_ticks.counter)
        return;
    uint64_t ticks;
    int64_t ns;
    read_pair(&ticks, &ns);
    ticks -= hec_ticks.first_tick;
    ns -= hec_ticks.first_ns;
    double rate = (double)ns / (double)ticks;
    if (ns > 0 && ticks > 0)
        __atomic_store(&hec_ticks.ns_per_tick, &rate, __ATOMIC_RELAXED);
}
