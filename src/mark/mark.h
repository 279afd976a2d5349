/* Inside libhec.so: the connection to HEC's collector, interned names, knobs. Nothing here allocates memory from the
 * program's heap, takes a lock or waits. */
#pragma once

#include "base/ring.h"

#pragma GCC visibility push(default)
#include "hec/hec.h"
#pragma GCC visibility pop

/* The ring of this process, connecting first when that has not been tried. NULL: marks are off, nobody reads just now, or
 * another thread is connecting (then the mark is counted as dropped). Every enter is followed by one leave, in the same thread. */
struct hec_ring *hec_mark_enter(void);
void hec_mark_leave(void);

/* 0 once marks are off for good. */
int hec_mark_is_on(void);

/* The number of the window in which somebody reads (hec_ring_window); a record is of the one that was looked up before its names. */
uint32_t hec_mark_window(void);
/* Of this process's ring and that window: names are defined anew for each. */
uint32_t hec_mark_generation(uint32_t window);

/* Append a record, of this thread and with the time of now unless it has others. false: dropped, and counted. */
bool hec_mark_write(struct hec_ring *ring, struct hec_ring_record *record, enum hec_ring_kind kind);

/* The id of a name in this ring, defined there first when needed; 0: it could not be (ring or name table full).
 * Names are cut to HEC_NAME_MAX bytes. */
uint32_t hec_mark_name(struct hec_ring *ring, const char *text);

/* The same for the long texts of the hooks : the last HEC_MARK_TEXT_MAX bytes are kept. text is not "". */
#define HEC_MARK_TEXT_MAX 255
#define HEC_MARK_TEXT_FIRST 1024u /* ids of texts begin here: those of names are below */
uint32_t hec_mark_text(struct hec_ring *ring, const char *text);

/* Define id as text in this ring, unless *generation (of ring and window) says that it has been. false: the ring is full. */
bool hec_mark_define(struct hec_ring *ring, uint32_t id, const char *text, size_t length, uint32_t *generation);

/* Read HEC_KNOBS; called once, when the library is loaded. */
void hec_mark_knobs_init(const char *text);
