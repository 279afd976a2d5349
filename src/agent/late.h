/* Counters that are shown some time after they grew. What Prometheus has of a series begins with its first sample: a series that
 * is there at once, and grows only a scrape later, begins with a sample of 0, and increase() misses nothing of it. The sums of a
 * page stay exact, because all that is divided is late by the same time. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hec_late; /* of `counters` counters: what was added to each lately */

/* NULL: no memory, or lag_ns is 0: nothing is late (all functions take NULL). */
struct hec_late *hec_late_new(size_t counters, int64_t lag_ns);
void hec_late_free(struct hec_late *late);

/* now_ns never falls. What is added is shown between lag_ns and 17/16 of it later. */
void hec_late_add(struct hec_late *late, size_t counter, int64_t amount, int64_t now_ns);
/* What is late of one counter belongs to the other from now on. */
void hec_late_move(struct hec_late *late, size_t from, size_t to);
/* Time goes on: what is older than the lag is shown from now on. */
void hec_late_pass(struct hec_late *late, int64_t now_ns);
/* How much of the counter is not shown yet. */
int64_t hec_late_of(const struct hec_late *late, size_t counter);
int64_t hec_late_lag(const struct hec_late *late);
