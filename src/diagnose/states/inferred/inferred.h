/* Inside src/diagnose: a timeline in which devices are busy also while no CUPTI saw them, inferred from the calls of
 * their processes (states/inferred/device.h) and telemetry (states/inferred/share.c). An adaptor: states, ledger and rules read it
 * like any other pass. In it
 *   - a process whose calls were timed has one more stream on each device that it used, with activities of kind GRAPH
 *     (busy) and COPY that carry HEC_ACTIVITY_INFERRED; inside of CUPTI's windows there are none
 *   - those processes have no windows: all of their time is reported
 *   - bursts come with calls of class LAUNCH (HEC_ACTIVITY_INFERRED) where the thread was launching
 * What a device was busy with is reported several times, by each variant, and first of all must have gone by: so the
 * records are kept, up to 256 MB of them. The file is read again where there are more, or where they were not kept
 * because all tracers, or their windows, were to see everything. */
#pragma once

#include "diagnose/states/inferred/device.h"
#include "diagnose/states/ledger.h"

struct hec_inferred;
struct hec_pass;
struct hec_pass_consumer;
struct hec_meter;

/* Fed by a pass, which is to stay. 0 or HEC_ERR_NOMEM; free it all the same. */
int hec_inferred_begin(const struct hec_pass *pass, struct hec_inferred **out, struct hec_pass_consumer *consumer);
/* When all has gone by. meter: where telemetry comes from; shared: bits (1 << hec_device.index)
 * of devices on which others were, or may have been, at work. *any false: there
 * is nothing to infer, CUPTI saw all (95 % of the time in which work was given), or calls were not timed. 0, HEC_ERR_NOMEM or
 * what the input returned. */
int hec_inferred_decide(struct hec_inferred *inferred, struct hec_meter *meter, uint64_t shared, bool *any,
                        struct hec_why *why);
void hec_inferred_free(struct hec_inferred *inferred); /* NULL is fine */
/* The pass as by that variant, until the next call; where hec_inferred_decide says so. Its consumers get what states are made of. */
int hec_inferred_pass(struct hec_inferred *inferred, enum hec_inferred_variant variant, const struct hec_pass **out,
                      struct hec_why *why);
/* How a device's busy time is known. */
enum hec_ledger_basis hec_inferred_basis(const struct hec_inferred *inferred, int device);
/* The loop of the one process that uses a device and reports no steps (loop.c). Not known where several use it. */
struct hec_steady hec_inferred_loop(const struct hec_inferred *inferred, int device);
/* Of a device: when CUPTI saw it. */
bool hec_inferred_seen(struct hec_inferred *inferred, int device, int64_t start_ns, int64_t end_ns);
