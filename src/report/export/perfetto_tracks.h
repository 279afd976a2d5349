/* Inside src/report: the tracks of a Perfetto trace. Slices on one of them nest; what overlaps without nesting goes to
 * another lane of the same name. */
#pragma once

#include "report/export/names.h"
#include "report/export/proto.h"

#define HEC_LANES_MAX 16
#define HEC_LANE_DEPTH 64

/* Ends of the slices that are open, outermost first. */
struct hec_lane {
    int64_t ends[HEC_LANE_DEPTH];
    int depth;
    uint64_t uuid;
};

struct hec_lanes {
    struct hec_lane *list; /* malloc'ed */
    int count;
    bool serial; /* streams, launches: nothing nests */
};

/* Several groups of slices are kept apart on one track of the run. */
enum hec_track_part {
    HEC_PART_MAIN,
    HEC_PART_STEPS,
    HEC_PART_WINDOWS,
    HEC_PART_STACKS,
    HEC_PART_LAUNCHES,
    HEC_PART_COUNT
};

struct hec_perfetto_tracks {
    struct hec_export_tables *tables;
    struct hec_proto *proto;
    const struct hec_device *devices;
    int device_count;
    const struct hec_process *processes; /* of a measured run: their names */
    size_t process_count;
    struct hec_lanes *lanes; /* HEC_PART_COUNT a track id */
    bool *described;         /* by track id: the process that it stands for has been written */
    int *described_devices;  /* indices */
    size_t described_device_count;
    uint64_t next_uuid;
};

int hec_perfetto_tracks_init(struct hec_perfetto_tracks *tracks, struct hec_export_tables *tables,
                             struct hec_proto *proto);
void hec_perfetto_tracks_free(struct hec_perfetto_tracks *tracks);
/* The uuid of the track for an activity, described before its first use; 0: there is none (an unknown track, no memory,
 * more at once than lanes). Their starts ascend; launches may come in any order. */
uint64_t hec_perfetto_track_of(struct hec_perfetto_tracks *tracks, enum hec_track_part part,
                               const struct hec_activity *a);
/* A device's group, described at its first use. */
uint64_t hec_perfetto_device(struct hec_perfetto_tracks *tracks, int device);
/* A new counter track. parent 0: none. */
uint64_t hec_perfetto_counter(struct hec_perfetto_tracks *tracks, uint64_t parent, const char *name, const char *unit);
/* The process of a track, described at its first use; 0: none. */
uint64_t hec_perfetto_process(struct hec_perfetto_tracks *tracks, uint32_t track);
