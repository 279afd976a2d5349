/* What HEC asks of levers in a program that runs: a page of memory that both share (python/hec/levers/live.py reads it). Each order
 * replaces the one before; the program answers with a phase of its timeline, named as hec_orders_answer reads it. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdint.h>

#define HEC_ORDERS_ENV "HEC_LIVE" /* where the page is */
#define HEC_ORDERS_SIZE 4096
#define HEC_ORDERS_WANTED 64        /* offset of the levers, after the order's number */
#define HEC_ORDERS_WANTED_MAX 1024  /* their text, with its end */
#define HEC_ORDERS_ANSWER "switch/" /* begins the name of the phase in which order N was carried out: "switch/N" */

struct hec_orders {
    char path[PATH_MAX];
    unsigned char *page; /* NULL: there is none */
    uint64_t number;     /* of the last order; 0: none was given */
};

/* A page in a folder that the program can open it in. */
int hec_orders_open(const char *folder, struct hec_orders *out, struct hec_why *why);
void hec_orders_close(struct hec_orders *orders);
/* levers: as in HEC_LEVERS; "": none. From one thread at a time. HEC_ERR_LIMIT: too long. */
int hec_orders_give(struct hec_orders *orders, const char *levers);
/* The order that a phase of this name answers; 0: it answers none. */
uint64_t hec_orders_answer(const char *phase);
