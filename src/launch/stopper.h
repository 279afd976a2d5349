/* Ends a command after so much work, or so much time: SIGTERM, as a scheduler would, and SIGKILL where it does not end. */
#pragma once

#include "base/error.h"
#include "model/trace.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hec_stop {
    int64_t steps; /* of the process that has most, by its best source (marked, optimizer, module); 0: no limit */
    enum hec_step_source
        by;           /* the worst of these that counts: a program that will train may evaluate before; NONE: any */
    int64_t after_ns; /* since its start; 0: no limit */
    const atomic_bool *enough; /* once it is true the next step is the last; NULL: nobody says so */
    /* Where it starts slowly, after_ns is put off until so long after the first step of its best source, but to no later than latest_ns
     * since its start; 0: it is not. */
    int64_t working_ns, latest_ns;
    int64_t grace_ns; /* from SIGTERM to SIGKILL; 0: 10 s */
};

enum hec_stopped { HEC_STOPPED_NOT, HEC_STOPPED_STEPS, HEC_STOPPED_TIME };

struct hec_stopper;

/* Before the command starts. */
int hec_stopper_create(const struct hec_stop *stop, struct hec_stopper **out, struct hec_why *why);
/* A step of a process, as the observer sees it: from any thread. */
void hec_stopper_step(struct hec_stopper *stopper, pid_t pid, enum hec_step_source source);
/* The command runs. */
int hec_stopper_begin(struct hec_stopper *stopper, pid_t command, int64_t start_ns, struct hec_why *why);
/* The command has ended: whether it was asked to, and by what. Once. */
enum hec_stopped hec_stopper_end(struct hec_stopper *stopper);
/* When no step can come any more. NULL is fine. */
void hec_stopper_free(struct hec_stopper *stopper);
