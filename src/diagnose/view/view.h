/* A run reduced to what a screen can show: series and states in cells of time, steps, and one short stretch in detail. Made
 * only where it is asked for (struct hec_summary_input, view), from the same passes as all else; cells have an end for any
 * run. */
#pragma once

#include "diagnose/replay/lanes.h"
#include "diagnose/states/state.h"
#include "diagnose/timeline/steps.h"

/* Cells of a page, which its runs, series and devices share; of one series or device no more and no fewer than so many. */
#define HEC_VIEW_SERIES_CELLS 40000
#define HEC_VIEW_STATES_CELLS 16384
#define HEC_VIEW_CELLS_MOST 4096
#define HEC_VIEW_CELLS_LEAST 128
#define HEC_VIEW_STEPS 4000 /* shown, of a run */
#define HEC_VIEW_SPANS 5000 /* of the stretch: activities, and as many pieces of states */
#define HEC_VIEW_STRETCH 3  /* steps of it */
#define HEC_VIEW_DEVICES 64 /* with states */
#define HEC_VIEW_SERIES_MOST 1024

/* Readings of a cell, by the time for which they hold. */
struct hec_view_cell {
    double sum, weight_ns, minimum, maximum; /* weight_ns 0: a gap */
};

struct hec_view_series {
    int device; /* HEC_DEVICE_NONE: of the host or the command */
    enum hec_metric metric;
    int64_t step_ns; /* cell i: [i step, (i + 1) step) */
    size_t count;
    struct hec_view_cell *cells;
};

/* Nanoseconds of each state in each cell that are known: they add up to the ledger's traced_ns. */
struct hec_view_states {
    int device;
    int64_t from_ns, step_ns;
    size_t count, capacity;
    int64_t (*cells)[HEC_STATE_COUNT];
    size_t at; /* the cell of the last piece, which begins at at_ns */
    int64_t at_ns;
};

struct hec_view_detail {
    int64_t from_ns, to_ns; /* to <= from: there is none */
    struct hec_activity *activities;
    struct hec_view_piece {
        int64_t start_ns, end_ns;
        int device;
        uint8_t state;
    } * pieces;
    size_t activity_count, piece_count;
    bool cut; /* there were more activities: to_ns is where those kept end */
};

struct hec_view {
    int64_t duration_ns;
    int share; /* how many runs have one page together */
    struct hec_view_series *series;
    size_t series_count;
    struct hec_view_states states[HEC_VIEW_DEVICES];
    int state_count;
    size_t state_cells; /* of a device, at most */
    struct hec_thin_steps steps;
    struct hec_view_detail detail;
    struct hec_step_lanes recorded, answered; /* a step, and with the answers to so many findings; 0: not replayed */
    int answers;
    struct hec_timeline_tables tables; /* what the activities of the detail refer to */
};

struct hec_pass;
struct hec_pass_consumer;
struct hec_summary;
struct hec_meter;

/* NULL: no memory. share: how many runs have one page together, >= 1. */
struct hec_view *hec_view_new(int share);
void hec_view_free(struct hec_view *view); /* NULL is fine */

/* Before the pass: chooses the stretch, and takes its activities from the pass. Devices: those with states, at most. */
int hec_view_begin(struct hec_view *view, const struct hec_pass *pass, int devices, struct hec_pass_consumer *consumer);
/* A piece of a device's states, in the order of time of each device. 0 or HEC_ERR_NOMEM. */
int hec_view_piece(struct hec_view *view, int device, const struct hec_state_piece *piece);
/* The pieces so far do not count: others follow. */
void hec_view_forget(struct hec_view *view);
/* After the pass, whose tables the view takes. summary: devices and the length of the run are filled in. */
int hec_view_end(struct hec_view *view, struct hec_pass *pass, struct hec_meter *meter,
                 const struct hec_summary *summary, struct hec_why *why);

/* Coarser ones: `by` cells in one, in place; returns how many are left. */
size_t hec_view_merge(struct hec_view_cell *cells, size_t count, size_t by);
size_t hec_view_merge_states(int64_t (*cells)[HEC_STATE_COUNT], size_t count, size_t by);
