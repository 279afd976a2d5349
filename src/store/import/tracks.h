/* The tracks and devices of one imported file, before it is known which rank and which devices of the run they are. */
#pragma once

#include "model/run.h"

#define HEC_IMPORT_TRACKS_MAX 65536

struct hec_import_track {
    enum hec_track_kind kind;
    int32_t pid;    /* -1: the file's main process */
    int32_t device; /* STREAM: as the file numbers them */
    uint32_t context;
    int64_t stream;   /* STREAM, or the thread */
    uint32_t sink_id; /* 0: not reported yet */
    uint32_t open;    /* of the caller: what has begun on it and not ended */
    char name[64];
};

struct hec_import_tracks {
    struct hec_import_track *tracks; /* [0] is none */
    uint32_t count, capacity;
    uint32_t *table;                           /* index by hash, 0 free; twice the capacity */
    uint32_t last;                             /* found last */
    struct hec_device devices[HEC_DEVICE_MAX]; /* .index: as the file numbers them */
    int device_count;
};

/* The id (> 0) of the track with the key's kind, pid, device, context and stream, made where it is new.
 * HEC_ERR_NOMEM; HEC_ERR_LIMIT for more than HEC_IMPORT_TRACKS_MAX. */
int64_t hec_import_tracks_id(struct hec_import_tracks *tracks, const struct hec_import_track *key);
void hec_import_tracks_free(struct hec_import_tracks *tracks);

/* What the file says about a device, to be filled; NULL where there are too many. */
struct hec_device *hec_import_tracks_device(struct hec_import_tracks *tracks, int device);
void hec_import_device_unknown(struct hec_device *device); /* nothing known */
