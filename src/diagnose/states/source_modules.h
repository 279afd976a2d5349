/* Which part of the program launched what keeps a device busy: by the innermost range (NVTX, a profiler's annotation)
 * around the launching call; without a range by the outermost operator (an imported profile's cpu_op); without either
 * by nothing. Communication is left out. Sums are of durations, not a union: kernels that run at once count each. */
#pragma once

#include "diagnose/timeline/timeline.h"

struct hec_source_module {
    int device;
    char name[256];            /* of the range or operator; as recorded, cut */
    enum hec_activity_kind by; /* RANGE or OPERATOR */
    int64_t launches;          /* kernels and graphs; copies and communication are not compute */
    double seconds;            /* sum of their durations */
    double share;              /* of the compute of the device, also that of no module */
};

struct hec_source_modules {
    struct hec_source_module *modules; /* by device, then seconds, largest first; malloc'ed */
    int count;
};

/* Fed by a pass (pass.h), whose tables are to stay until the end; memory grows with the number of names and threads. NULL:
 * no memory. */
struct hec_pass_consumer;
struct hec_timeline_tables;
struct hec_source_modules_builder;
struct hec_source_modules_builder *hec_source_modules_begin(const struct hec_timeline_tables *tables,
                                                            struct hec_pass_consumer *consumer);
/* At most `most` of a device. Frees the builder. 0 or HEC_ERR_NOMEM (then *out is empty). */
int hec_source_modules_end(struct hec_source_modules_builder *builder, int most, struct hec_source_modules *out);
void hec_source_modules_abandon(struct hec_source_modules_builder *builder); /* NULL is fine */
void hec_source_modules_free(struct hec_source_modules *modules);
