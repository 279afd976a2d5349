/* Marks of a program in C. With libhec.so:    cc marks.c $(pkg-config --cflags --libs hec) -o marks
 * With nothing to link:                       cc -DHEC_HEADER_ONLY -I include marks.c -o marks
 * Observed:                                   hec run --knob batch=64 -- ./marks
 * Alone it does the same work, and the marks cost about a nanosecond each. */
#include <hec/hec.h>

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* stands for reading and decoding a batch */
static void load(int64_t samples) {
    struct timespec pause = {0, 20000 * samples};
    nanosleep(&pause, NULL);
}

/* stands for the forward and backward pass */
static double train(int64_t samples) {
    double sum = 0;
    for (int64_t i = 1; i <= samples * 20000; i++)
        sum += 1.0 / (double)i;
    return sum;
}

int main(void) {
    int64_t batch = hec_knob_int_in("batch", 32, 1, 128); /* hec try looks for the best one between the two */
    int64_t steps = hec_knob_int("steps", 20);
    double sum = 0;
    for (int64_t i = 0; i < steps; i++) {
        hec_phase_begin("data");
        load(batch);
        hec_phase_end("data");

        hec_phase_begin("train");
        sum += train(batch);
        hec_phase_end("train");

        hec_step_of("sample", (double)batch); /* the step ends here */
    }
    printf("%lld steps of %lld samples (%.1f), %s\n", (long long)steps, (long long)batch, sum,
           hec_active() ? "observed" : "not observed");
    return 0;
}
