/* What unmixing costs: pieces of 3 to 60 us of a few classes, power samples each 20 ms and counter windows each 100
 * ms, made up on the fly; the cost of making them is taken off. Arguments: millions of pieces (10), classes (8).
 * Prints the time with readings given first and the time of solve, nanoseconds a piece and the memory it took. */
#include "diagnose/watts/unmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t seed;

static uint64_t next(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* A phase of 50 ms prefers one class, so that shares differ from sample to sample. */
static int64_t pieces(struct hec_unmix *unmix, int64_t count, int classes) {
    int64_t t = 0, sum = 0;
    seed = 0x9E3779B97F4A7C15u;
    for (int64_t i = 0; i < count; i++) {
        uint64_t r = next();
        int phase = (int)((uint64_t)(t / 50000000) * 2654435761u % (unsigned)classes);
        int class = r & 1 ? phase : (int)((r >> 8) % (unsigned)classes);
        int64_t end = t + 3000 + (int64_t)((r >> 20) % 57000);
        if (unmix)
            hec_unmix_piece(unmix, class, t, end);
        sum += class;
        t = end;
    }
    return unmix ? t : t + sum % 2;
}

int main(int argc, char **argv) {
    int64_t count = (int64_t)((argc > 1 ? atof(argv[1]) : 10) * 1e6);
    int classes = argc > 2 ? atoi(argv[2]) : 8;
    struct hec_unmix_options options = {.classes = classes, .limit_w = 700};
    struct hec_unmix *unmix;
    static struct hec_unmix_result result;
    double start = now_s();
    int64_t end = pieces(NULL, count, classes);
    double making = now_s() - start;
    if (hec_unmix_begin(&options, &unmix))
        return 1;
    start = now_s();
    seed = 88172645463325252u;
    for (int64_t t = 20000000; t < end; t += 20000000)
        hec_unmix_power(unmix, t, 20000000, 300 + (double)(next() % 300));
    for (int64_t t = 0; t < end; t += 100000000)
        hec_unmix_window(unmix, t, t + 100000000, 30 + (double)(next() % 30), 0.1);
    pieces(unmix, count, classes);
    double fed = now_s() - start - making;
    start = now_s();
    int err = hec_unmix_solve(unmix, &result);
    double solved = now_s() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.0f M pieces, %d classes, %.0f s of run, %lld samples: %.3f s (%.1f ns a piece) + solve %.3f s; %ld MiB\n",
           (double)count / 1e6, classes, (double)end * 1e-9, (long long)result.power_used, fed,
           fed / (double)count * 1e9, solved, usage.ru_maxrss / 1024);
    hec_unmix_free(unmix);
    return err != 0;
}
