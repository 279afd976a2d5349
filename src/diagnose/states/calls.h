/* What the host asked of a device: calls by class, copies by pattern, code that was loaded late, chains of kernels that
 * could be one. One streaming pass, fed beside the states; memory grows with the number of tracks.
 *
 * What counts is what was traced of the *span*:
 *   with steps     the steady part, of few steps too (hec_steady_counted): start-up, warm-up and clean-up are not in it. What
 *                  the device does belongs to it by its launch, since programs run ahead of the device.
 *   without steps  the loop as its calls show it, else from the first activity of the device to its last
 * Where the device was not seen (HEC_ACTIVITY_INFERRED), launches are those of bursts and of the calls that were recorded
 * one by one, and copies those that calls asked for.
 * Of a run with steps, count / steps is the mean of a step. */
#pragma once

#include "base/error.h"
#include "model/trace.h"

struct hec_call_total {
    int64_t count;
    double seconds; /* sum of durations */
};

struct hec_call_facts {
    int device;
    double traced_s; /* of the span, traced: what shares of time are shares of */
    double steps;    /* as many as the traced part of the span holds; 0 unknown. To divide by */
    /* Calls of the processes with streams on the device: where a process uses several devices, its allocations,
     * synchronisations and loads count for each of them. Launching and copying calls are those that led to something on
     * this device (where it is not known which, a call of the mean length each; NAN: none known), or those recorded,
     * whichever is more. Calls of less than 1 us other than those are not recorded. */
    struct hec_call_total api[HEC_API_CLASS_COUNT];
    /* In calls that wait for the device: synchronising ones, launches and copies of 50 us and more. What a framework waits for without a
     * call (JAX) is not in it. */
    double waited_s;
    /* Launches that were drawn at random; those of them whose kernels have names, and are point-wise (below) by those, a compiler's
     * left out. */
    int64_t drawn, drawn_named, drawn_point_wise;
    /* copies on the device; seconds are the device's where nothing else is said */
    int64_t reads;        /* to the host, of a few bytes (state.h) */
    int64_t small_copies; /* of less than 64 KiB between host and device, but those */
    double small_copy_s;
    double small_call_s; /* in the calls that made them: the mean of those that are known, for all; NAN: none known */
    int64_t round_trips; /* device to host, then as many bytes (1 KiB or more) back within 10 ms and 64 copies */
    double round_trip_bytes, round_trip_s; /* there and back */
    double pageable_bytes, pageable_s;     /* host to device and back, pageable */
    double pinned_bytes, pinned_s;
    /* Calls of api class MODULE that began in the span; without steps, more than 2 s after the first activity of their process
     * on any device: the start-up is over. */
    int64_t late_loads;
    double late_load_s;
    /* Consecutive point-wise kernels (classes elementwise, copying, random) of one stream: unfused chains. A normalisation
     * or reduction ends one, and communication on the device does: fusing across it is another matter. */
    int64_t chains;    /* of three kernels or more */
    double chain_s;    /* in them */
    double chain_mean; /* kernels a chain; NAN without */
    int64_t graph_launches;
};

/* Fed beside the states: activities and pieces share nothing, and may come from two threads. */
struct hec_calls;
struct hec_device_steps;
struct hec_state_piece;
struct hec_steady;
struct hec_timeline_tables;

/* The tables are to stay until the end. NULL: no memory. */
struct hec_calls *hec_calls_begin(const struct hec_timeline_tables *tables);
void hec_calls_steps(struct hec_calls *calls, const struct hec_device_steps *steps);
/* Of a device without steps. */
void hec_calls_loop(struct hec_calls *calls, int device, const struct hec_steady *loop);
/* All kinds but WINDOW and STEP, in ascending start over all tracks. */
void hec_calls_activities(struct hec_calls *calls, const struct hec_activity *activities, size_t count);
int hec_calls_piece(struct hec_calls *calls, int device, const struct hec_state_piece *piece); /* 0 or HEC_ERR_NOMEM */
/* Closes what is open; to be called once, before hec_calls_of. */
void hec_calls_end(struct hec_calls *calls);
/* What was gathered of a device; all zero (chain_mean NAN) where it has no streams. */
void hec_calls_of(const struct hec_calls *calls, int device, struct hec_call_facts *out);
void hec_calls_free(struct hec_calls *calls); /* NULL is fine */
