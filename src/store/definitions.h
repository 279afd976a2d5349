/* What activities refer to: names, tracks, kernels and frames, interned by content. Each table is bounded; what does not
 * fit is counted. Its functions may be called from any thread. */
#pragma once

#include "store/activity_pack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the bounds are: some 20 MB a table. A program has some thousands of names and kernels; one with shapes that
 * never repeat has as many launch configurations as launches. */
#define HEC_DEFINITIONS_NAMES_MAX 262144
#define HEC_DEFINITIONS_TEXT_MAX (32 << 20) /* bytes of all names */
#define HEC_DEFINITIONS_TRACKS_MAX 65536
#define HEC_DEFINITIONS_KERNELS_MAX 262144
#define HEC_DEFINITIONS_FRAMES_MAX 1048576

struct hec_definition_table {
    size_t entry_bytes;
    size_t key_at, key_bytes; /* what makes an entry, inside of it; 0 bytes: a text of its own */
    unsigned char *entries;   /* in the order of id, from 1 */
    uint64_t *hashes;         /* of the entries */
    uint32_t *slots;          /* ids by hash, 0: free; twice as many as there is room for entries */
    uint32_t count, capacity, maximum;
    uint32_t stored; /* this many are in the file */
};

struct hec_definitions {
    pthread_mutex_t lock;
    struct hec_definition_table names, tracks, kernels, frames;
    size_t text_bytes;
    bool *renamed; /* by track id: it has a name that the file does not have */
    bool any_renamed;
    int64_t refused;
};

/* The definitions that are not in the file. A name is a malloc'ed text that lives as long as the definitions. */
struct hec_definition_batch {
    const char **names;
    struct hec_track *tracks; /* those with a new name among them, once more */
    struct hec_kernel *kernels;
    struct hec_frame *frames;
    uint32_t name_first; /* id of names[0] */
    uint32_t name_count, track_count, kernel_count, frame_count;
    uint32_t tracks_end; /* so many tracks are in the file once this is */
};

void hec_definitions_init(struct hec_definitions *definitions);
void hec_definitions_free(struct hec_definitions *definitions);

/* The functions of struct hec_sink: an id, or 0: no room, or it refers to something that does not exist. Where kernels
 * get many, the launch configurations of later ones are not kept (-1), so that their names are. */
uint32_t hec_definitions_name(struct hec_definitions *definitions, const char *text, size_t length);
uint32_t hec_definitions_track(struct hec_definitions *definitions, const struct hec_track *track);
uint32_t hec_definitions_kernel(struct hec_definitions *definitions, const struct hec_kernel *kernel);
uint32_t hec_definitions_frame(struct hec_definitions *definitions, const struct hec_frame *frame);

/* The highest ids so far, by what an activity of each kind refers to. */
void hec_definitions_limits(struct hec_definitions *definitions, struct hec_activity_limits *limits);
int64_t hec_definitions_refused(struct hec_definitions *definitions);

/* Copies of what is not in the file: false when there is no memory for that. */
bool hec_definitions_take(struct hec_definitions *definitions, struct hec_definition_batch *batch);
/* done: the batch is in the file. Frees the batch in any case. */
void hec_definitions_give_back(struct hec_definitions *definitions, struct hec_definition_batch *batch, bool done);
