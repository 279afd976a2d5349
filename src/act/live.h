/* A search inside one running program: levers are armed in it, and hec_search_next says which of them are to be on next, block after block.
 * A block is what is measured between two switches: so many seconds of whole steps, and the joules of the devices between edges of their
 * counters in it. It sits in the sink of a session as what passes everything on.
 *
 *     hec_live_search_begin(&plan, &live, &why)
 *     options.orders, .stop.enough, .through: as the functions below say
 *     the session runs
 *     rows = hec_live_search_rows(live, &count); hec_live_search_free(live) */
#pragma once

#include "act/levers.h"
#include "base/error.h"
#include "launch/orders.h"
#include "model/run.h"
#include "prove/search.h"

#include <stdatomic.h>

#define HEC_LIVE_ROWS_MOST 256
/* A set with a compiler, until one has shown it: CUDA graphs took 22 to 26 s for a ResNet-18 on H200s, 47 to 64 for a GPT. */
#define HEC_LIVE_COMPILE_S 25.0

struct hec_live_plan {
    struct hec_search_plan search;
    uint64_t devices;   /* bits of those that the program uses */
    uint32_t compilers; /* bits of candidates: a set with one of them may be compiled anew, which takes long */
    int ranks;          /* of the program's job, all on this host; 0, 1: one process */
    double block_s;     /* of a block, at least */
    /* Monotonic: no block begins later, and no set is compiled that would be ready later if it took as long as the longest before. */
    int64_t until_ns;
    /* The levers of a set, as in HEC_LEVERS, into text of HEC_ORDERS_WANTED_MAX; the most that one of them changes. */
    enum hec_lever_risk (*text)(void *context, uint32_t set, char *text);
    void *context;
};

struct hec_live_search;

int hec_live_search_begin(const struct hec_live_plan *plan, struct hec_live_search **out, struct hec_why *why);
/* For hec_session_options: orders; stop.enough; through, with the search as its context. */
struct hec_orders *hec_live_search_orders(struct hec_live_search *live);
const atomic_bool *hec_live_search_enough(const struct hec_live_search *live);
const struct hec_sink *hec_live_search_through(void *live, const struct hec_sink *to);
/* After the session: the blocks in their order, those of the base among them, of part 1. */
const struct hec_search_trial *hec_live_search_rows(struct hec_live_search *live, int *count);
/* What else is known of row i. Its block came in three parts, in seconds: the switch, from the order to the boundary at which all ranks
 * have carried it out, the comparison included; settling, until its first step, while code is compiled and memory allocated; its steps.
 * NAN: it did not get so far. */
struct hec_live_block {
    struct hec_orders_answer wrong; /* the program found that its set computes something else; .order 0: it did not */
    double switching_s, settling_s, seconds;
};
struct hec_live_block hec_live_search_block(const struct hec_live_search *live, int i);
/* The program has said of a lever that it failed, in the block where it did: in those before it worked. */
bool hec_live_search_says_failed(const struct hec_live_search *live);
void hec_live_search_free(struct hec_live_search *live);
