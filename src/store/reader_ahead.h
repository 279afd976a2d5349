/* Inside the reader: activities are unpacked in a thread of its own, while the caller looks at those before. */
#ifndef HEC_STORE_READER_AHEAD_H
#define HEC_STORE_READER_AHEAD_H

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

/* The chunks in order, to the end or until visit answers with something else than 0, which is returned; otherwise what
 * the source returned, after all that it put. Where no thread can be made, the source runs in this one. */
int hec_ahead_run(hec_ahead_source source, void *source_context,
                  int (*visit)(void *context, const struct hec_activity *activities, size_t count), void *context,
                  struct hec_why *why);

#endif
