/* What HEC asks of levers in a program that runs: a page of memory that both share (python/hec/levers/live.py reads it). Each order
 * replaces the one before; the program answers with a phase of its timeline, named as hec_orders_answer reads it. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define HEC_ORDERS_ENV "HEC_LIVE" /* where the page is */
#define HEC_ORDERS_SIZE 4096
#define HEC_ORDERS_CHANGES                                                                                             \
    8 /* offset of how much the levers may change (enum hec_lever_risk), after the order's number */
#define HEC_ORDERS_FROM 16   /* offset of the step before which all ranks of a job switch; 0: they have not agreed */
#define HEC_ORDERS_WANTED 64 /* offset of the levers */
#define HEC_ORDERS_WANTED_MAX 1024 /* their text, with its end */
#define HEC_ORDERS_RANKS 2048 /* offset of what each rank says: the order that it has read, and at which of its steps */
#define HEC_ORDERS_RANK_SIZE 16
#define HEC_ORDERS_RANKS_MOST 128
#define HEC_ORDERS_ANSWER "switch/" /* begins the name of the phase in which order N was carried out: "switch/N" */
#define HEC_ORDERS_WRONG                                                                                               \
    "wrong/" /* ... in which it was found to compute something else, and is not: "wrong/N/gradients/0.3" */

#define HEC_ORDERS_FAILED                                                                                              \
    "failed/" /* ... in which a lever failed, then or later, so that none of them is on: "failed/N" */

struct hec_orders {
    char path[PATH_MAX];
    unsigned char *page; /* NULL: there is none */
    uint64_t number;     /* of the last order; 0: none was given */
};

/* A page in a folder that the program can open it in. */
int hec_orders_open(const char *folder, struct hec_orders *out, struct hec_why *why);
void hec_orders_close(struct hec_orders *orders);
/* levers: as in HEC_LEVERS; "": none; changes: the most that one of them does (enum hec_lever_risk). From one thread at a time.
 * HEC_ERR_LIMIT: too long. */
int hec_orders_give(struct hec_orders *orders, const char *levers, uint32_t changes);

/* All of so many ranks have read the last order: they switch two steps later than the first of them is now. */
void hec_orders_agree(struct hec_orders *orders, int ranks);

struct hec_orders_answer {
    uint64_t order;                /* 0: the phase answers none */
    bool wrong, failed, gradients; /* gradients: of what is wrong */
    double difference; /* of gradients, or of what the module gives, as a share of them; INFINITY: without measure */
};
/* What a phase of this name says. */
struct hec_orders_answer hec_orders_answer(const char *phase);
