/* Inside the reader: activities are unpacked in a thread of its own, while visitors look at those before. */
#pragma once

#include "base/error.h"
#include "model/trace.h"

#include <stddef.h>

#define HEC_AHEAD_CHUNK 2048 /* activities: 128 KiB, so that one stays in a core's own cache while it is looked at */

struct hec_ahead;

/* What the thread runs: fills chunks until there are no more, the answer is 0 or an error with why. */
typedef int (*hec_ahead_source)(void *context, struct hec_ahead *ahead, struct hec_why *why);

/* For the source: the chunk to fill next, NULL when no more is wanted (end with 0 then); and so many are in it. */
struct hec_activity *hec_ahead_room(struct hec_ahead *ahead);
void hec_ahead_put(struct hec_ahead *ahead, size_t count);

/* The chunks in order to each visitor, to the end or until one answers with something else than 0, which is returned (of
 * several, what the first of them answered); otherwise what the source returned, after all that it put. The first visitor is
 * called from this thread, each other one from its own, where threads can be made; else all from this one, and the source runs
 * in it too. */
int hec_ahead_run(hec_ahead_source source, void *source_context, const struct hec_activity_visitor *visitors,
                  size_t count, struct hec_why *why);
