/* Inside src/diagnose: what a stack says of what its thread does, by the names in it (stacks.def). */
#pragma once

#include "diagnose/timeline/tables.h"

enum hec_stack_meaning {
    HEC_STACK_CODE, /* the program's own, or nothing that is known */
    HEC_STACK_COMPILE,
    HEC_STACK_DATA,
    HEC_STACK_REQUESTS,
    HEC_STACK_PEERS, /* it is in a collective that its host does (gloo, MPI): it waits for another rank */
    HEC_STACK_LAUNCH, /* a framework's code on its way to the next launch: a larger batch or a compiler answers that, no other line */
    HEC_STACK_OPERATION, /* the same of JAX, on its way to launch one operation */
    HEC_STACK_PUT,       /* the same, to copy an array to the device */
    HEC_STACK_SHARDS,    /* the same, of what puts the parts of a sharded model together (FSDP) */
    HEC_STACK_SYNC,      /* waits for what the device computes, and not in a call of the driver */
    HEC_STACK_FETCH      /* the same, for data */
};

/* Each stack is looked at once. */
struct hec_stacks {
    const struct hec_timeline_tables *tables; /* to stay */
    uint8_t *meaning;                         /* by frame: 1 + that of the stack that ends there; 0 not looked at yet */
};

/* A framework's own code, which ends in a launch or a copy. */
static inline bool hec_stack_launches(enum hec_stack_meaning meaning) {
    return meaning == HEC_STACK_LAUNCH || meaning == HEC_STACK_OPERATION || meaning == HEC_STACK_PUT ||
           meaning == HEC_STACK_SHARDS;
}

int hec_stacks_begin(struct hec_stacks *stacks, const struct hec_timeline_tables *tables); /* 0 or HEC_ERR_NOMEM */
void hec_stacks_free(struct hec_stacks *stacks);                                           /* zeroed is fine */
/* Of the stack whose innermost frame that is; 0: none. */
enum hec_stack_meaning hec_stacks_meaning(struct hec_stacks *stacks, uint32_t leaf);
/* Whether some stack goes through the loop of a framework that takes the program's steps itself. */
bool hec_stacks_framed(const struct hec_stacks *stacks);
