/* A receipt whose figures are drawn by hand: B takes 0.9 of A's joules and is 1.25 times as fast. */
#ifndef HEC_TESTS_RECEIPT_WORLD_H
#define HEC_TESTS_RECEIPT_WORLD_H

#include "prove_worlds.h"
#include "report/receipt/receipt.h"

#include "base/trace.h"

#include <stdio.h>
#include <string.h>

static inline struct hec_experiment_trial receipt_trial(int pair, int side, double joules) {
    struct hec_experiment_trial t = {
        .pair = pair, .side = side, .stopped = true, .loss_count = 640, .gradients = hec_gradients_none()};
    t.gradients.all = t.gradients.first = 0.5 + 0.001 * pair;
    for (int i = 0; i < 5; i++)
        t.gradients.part[i] = -1 + 0.002 * pair;
    double noise = 1 + 0.004 * world_normal();
    t.steady = (struct hec_trial_block){(side ? 8 / 3.0 : 10 / 3.0) * (1 + 0.003 * world_normal()),
                                        joules * 400 / 3 * noise, 400, 100};
    t.run = (struct hec_trial_block){t.steady.seconds + 1.7, t.steady.joules + 130.1, 420, 105};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        t.loss[i] = 0.3 + 2.1 * exp(-i / 8.0) + 0.003 * world_normal();
    return t;
}

static inline void receipt_add_words(struct hec_receipt *r, struct hec_receipt_words *to, const char *const *words) {
    for (; *words; words++)
        hec_receipt_add_word(r, to, *words);
}

/* pairs 0: a baseline of 4. Free it with hec_receipt_free. */
static inline void receipt_make(struct hec_receipt *r, int pairs) {
    static const char *const a[] = {"python3", "train.py", "--note", "a | b\n\033[31mred", NULL};
    static const char *const b[] = {"python3", "train.py", "--bf16", NULL};
    static const char *const variables[] = {
        "PATH=/bin", "OMP_NUM_THREADS=4", "HF_TOKEN=hf_geheim", "CUDA_VISIBLE_DEVICES=0", "nothing", "CUDA_EMPTY=",
        NULL};
    world_state = 7;
    *r = (struct hec_receipt){.steps = 105,
                              .warm_up = 1,
                              .writes = HEC_RECEIPT_ON_DISK,
                              .trace = HEC_TRACE_OFF,
                              .hooks = true,
                              .plan = {.seed = UINT64_MAX - 1, .pairs = pairs, .gradients = true, .loss_steps = 105}};
    snprintf(r->created, sizeof r->created, "2026-11-22T16:00:00+00:00");
    snprintf(r->hec_version, sizeof r->hec_version, "%s", HEC_VERSION);
    snprintf(r->unit, sizeof r->unit, "sample");
    hec_receipt_set(r, &r->folder, "/home/x/träume");
    receipt_add_words(r, &r->command[0], a);
    if (pairs)
        receipt_add_words(r, &r->command[1], b);
    if (pairs) {
        struct hec_receipt_tried base = {.outcome = HEC_TRIED_BASE,
                                         .trials = 2,
                                         .joules_per_unit = 0.1,
                                         .units_per_second = 5000,
                                         .joules = {NAN, NAN, NAN},
                                         .rate = {NAN, NAN, NAN}};
        struct hec_receipt_tried kept = {.levers = "bf16_autocast",
                                         .outcome = HEC_TRIED_KEPT,
                                         .trials = 1,
                                         .joules_per_unit = 0.09,
                                         .units_per_second = 5100,
                                         .joules = {0.88, 0.9, 0.92},
                                         .rate = {NAN, 1.02, NAN},
                                         .text = "on: 1 module"};
        struct hec_receipt_tried failed = {.levers = "compile",
                                           .outcome = HEC_TRIED_FAILED,
                                           .trials = 1,
                                           .joules_per_unit = NAN,
                                           .units_per_second = NAN,
                                           .joules = {NAN, NAN, NAN},
                                           .rate = {NAN, NAN, NAN},
                                           .text = "exit status 1: a | b"};
        hec_receipt_add_word(r, &r->levers, "bf16_autocast");
        hec_receipt_add_tried(r, &base);
        hec_receipt_add_tried(r, &kept);
        hec_receipt_add_tried(r, &failed);
        r->plan.spent_joules = 1200;
        r->plan.spent_seconds = 100;
    }
    hec_receipt_add_environment(r, (char *const *)variables);
    hec_receipt_add_fact(r, &r->facts, "device", "NVIDIA H100 80GB HBM3");
    hec_receipt_add_fact(r, &r->facts, "driver", "580.95");
    hec_receipt_add_fact(r, &r->facts, "cpu", "Xeon");
    hec_receipt_add_fact(r, &r->facts, "host", "node1");
    hec_receipt_add_word(r, &r->covered, "/home/x");
    hec_receipt_add_word(r, &r->covered, "/tmp");
    hec_receipt_add_word(r, &r->left, "what was sent over the network");
    for (int side = 0; side < (pairs ? 2 : 1); side++) {
        struct hec_experiment_trial t = receipt_trial(-1, side, 1.3);
        hec_receipt_add_trial(r, &t);
    }
    for (int i = 0; i < 2 * pairs; i++) {
        int side = hec_sequential_b_first(r->plan.seed, i / 2) ^ (i & 1);
        struct hec_experiment_trial t = receipt_trial(i / 2, side, side ? 0.9 : 1);
        hec_receipt_add_trial(r, &t);
    }
    for (int i = 0; i < 4 && !pairs; i++) {
        struct hec_experiment_trial t = receipt_trial(i, 0, 1);
        hec_receipt_add_trial(r, &t);
    }
    hec_receipt_judge(r);
}

#endif
