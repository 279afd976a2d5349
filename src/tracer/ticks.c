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

struct hec_ticks hec_ticks = {.ns_per_tick = 1};

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
    hec_ticks.first_ns = hec_ticks_clock_ns();
    hec_ticks.first_tick = __rdtsc();
    if (sum == 0 || hec_ticks.first_ns - begin_ns > READINGS * READING_MOST_NS)
        return;
    while (hec_ticks_clock_ns() - hec_ticks.first_ns < 1000000)
        ;
    hec_ticks.counter = true;
    hec_ticks_refine();
#endif
}

void hec_ticks_refine(void) {
    if (!hec_ticks.counter)
        return;
    int64_t ns = hec_ticks_clock_ns() - hec_ticks.first_ns;
    uint64_t ticks = hec_ticks_now() - hec_ticks.first_tick;
    double rate = (double)ns / (double)ticks;
    if (ns > 0 && ticks > 0)
        __atomic_store(&hec_ticks.ns_per_tick, &rate, __ATOMIC_RELAXED);
}
