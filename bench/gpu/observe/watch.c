/* An independent witness of the energy counter: polls it without pause and prints each new value with the monotonic
 * times between which it appeared. It shares no code with HEC, so that it can contradict it.
 *
 *   cc -O2 -o watch watch.c -ldl && ./watch INDEX > edges.txt      (ends at SIGTERM)
 *
 * Output: one line an edge, "BEFORE_NS AFTER_NS MILLIJOULES": the value was not there at BEFORE and was at AFTER. */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static int64_t now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int main(int argc, char **argv) {
    unsigned index = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml) {
        fprintf(stderr, "watch: %s\n", dlerror());
        return 69;
    }
    int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
    int (*by_index)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    int (*energy)(void *, unsigned long long *) =
        (int (*)(void *, unsigned long long *))dlsym(nvml, "nvmlDeviceGetTotalEnergyConsumption");
    void *device;
    if (!init || !by_index || !energy || init() != 0 || by_index(index, &device) != 0) {
        fprintf(stderr, "watch: NVML has no device %u\n", index);
        return 69;
    }
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    unsigned long long last = 0, value;
    int64_t before = now_ns();
    while (!stop && energy(device, &value) == 0) {
        int64_t after = now_ns();
        if (value != last) {
            if (last)
                printf("%lld %lld %llu\n", (long long)before, (long long)after, value);
            last = value;
        }
        before = after;
    }
    return 0;
}
