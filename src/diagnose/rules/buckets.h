/* Inside rules/: the collectives of a job that synchronise gradients, where there are many small ones. */
#pragma once

#include "diagnose/rules/facts.h"

struct hec_buckets {
    double step_s;         /* usual length of a step: the first ones compile, and are minutes long at times */
    double a_step, a_sync; /* collectives of a step, and of one synchronisation of all gradients */
    double bytes;          /* of one; NAN unknown */
    double each_s;         /* that one takes of host and devices */
    double goes;           /* part of them that could go, 0..1 */
};

/* True: they are many, small, and most could go. Of the job, whichever of its devices is asked. */
bool hec_buckets_gather(const struct hec_facts *facts, struct hec_buckets *out);
