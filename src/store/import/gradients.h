/* How often a trace shows that gradients are synchronised for a step of the optimizer (model of `python.gradient_syncs`, docs/import.md):
 * PyTorch marks `DistributedDataParallel.forward`, `Optimizer.step#...` and each parameter's `AccumulateGrad`, and says of an all-reduce
 * what it sends. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define HEC_IMPORT_MARKS_MAX (1u << 20) /* kept, of the file that is scanned: 48 MiB. Of more nothing is said */

struct hec_import;
struct hec_import_event;
struct hec_import_record;

struct hec_import_marks {
    struct hec_import_mark {
        int64_t start_ns, end_ns; /* of the host; of a collective its launch */
        uint64_t correlation;     /* of a collective */
        uint64_t group;           /* of a collective: hash of the process group's name */
        int64_t bytes;            /* that it sends */
        uint8_t what;
    } * list;
    size_t count, capacity;
};

/* What a file shows; all 0: it does not show it. */
struct hec_import_gradients {
    int64_t syncs, passes, steps; /* backward passes that synchronise, all of them, steps of the optimizer */
    int64_t bytes, bucket_bytes;  /* of the gradients, and of those that are sent together, at most */
};

/* An event of the file, as it is kept. */
int hec_import_marks_add(struct hec_import_marks *marks, const struct hec_import_event *event,
                         const struct hec_import_record *record, struct hec_why *why);
/* Of all marks of the file, whose calls are known. Forgets them. */
int hec_import_gradients_find(struct hec_import *import, struct hec_import_gradients *out, struct hec_why *why);
