/* Length of the union of intervals that arrive almost in order: the last SIM_UNION_WINDOW disjoint ones are kept, older
 * ones are only added up. An interval that begins before the window's forgotten part counts from there on. */
#pragma once

#include <stdint.h>

#define SIM_UNION_WINDOW 1024

struct sim_union {
    int64_t done_ns;     /* length of what is forgotten */
    int64_t frontier_ns; /* its end */
    int count;
    struct {
        int64_t start_ns, end_ns;
    } window[SIM_UNION_WINDOW]; /* disjoint, ascending */
};

void sim_union_add(struct sim_union *u, int64_t start_ns, int64_t end_ns);
int64_t sim_union_length_ns(const struct sim_union *u);
