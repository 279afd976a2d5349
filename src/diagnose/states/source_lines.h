/* Where the program held a device up: file, line and function, from stack samples taken while the device was idle; and
 * which module launched what kept it busy, where the program or a profiler marked that.
 *
 * A sample counts with the time it stands for if the device was idle at its instant (hec_state_sample): samples do not
 * depend on what the program does, so a line's share of the samples of a state is its share of the state's time, without
 * bias, with a standard error of sqrt(share (1 - share) / samples).
 * Of SYNC the samples in the calls that waited decide alone, where there are any: the lines after such a call are not what
 * waited. Of COPY there are those in copying calls.
 * Of a stack the innermost frame of the program itself is blamed; if there is none, the innermost frame of an
 * installed package other than torch; if there is none either, the innermost one. A frame is not the program's own in
 * site-packages or dist-packages, in Python's standard library, or where it has no file. */
#pragma once

#include "diagnose/states/ledger.h"

struct hec_source_line {
    int device;
    enum hec_state state;
    char file[256], function[128]; /* as recorded, cut; any bytes */
    int32_t line;                  /* 0 unknown */
    int64_t samples;
    /* Of program lines (program_lines.h): the process that was there most, and by how much of all of the time it was there more than the
     * others together, at the least; exact where one or two were. */
    int32_t pid;
    double lead;
    uint32_t
        owners; /* causes that its time belongs to, where that was divided by lines (operations.h), as bits; 0: not known */
    double share;           /* of the state's time on this device */
    double seconds, joules; /* that share of the ledger's row; joules NAN where that is */
};

struct hec_source_lines {
    struct hec_source_line *lines; /* by device, state, then share, largest first; malloc'ed */
    int count;
};

/* To be fed by a visitor of states, alone or beside others. */
struct hec_source_builder;
/* The tables are to stay until the end. NULL: no memory. */
struct hec_source_builder *hec_source_begin(const struct hec_timeline_tables *tables);
int hec_source_sample(struct hec_source_builder *builder, int device, const struct hec_state_sample *sample);
/* Of a stack, by its innermost frame: the frame that is blamed; 0: none. */
uint32_t hec_source_blame(struct hec_source_builder *builder, uint32_t frame);
/* File, function and line of a frame that is blamed. */
void hec_source_name(const struct hec_timeline_tables *tables, uint32_t blamed, struct hec_source_line *out);
/* At most `most` lines of a state and device. The ledger may be NULL: seconds and joules are NAN then. Frees the
 * builder. 0 or HEC_ERR_NOMEM (then *out is empty). */
int hec_source_end(struct hec_source_builder *builder, const struct hec_ledger *ledger, int most,
                   struct hec_source_lines *out);
void hec_source_abandon(struct hec_source_builder *builder); /* NULL is fine */
void hec_source_lines_free(struct hec_source_lines *lines);

/* Whose code a file is: 0 the program's own, 1 an installed package, 2 torch, the standard library, or no file. */
int hec_source_rank(const char *file);
