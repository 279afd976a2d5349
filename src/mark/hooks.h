/* What the Python hooks (python/hec/_hooks) write through libhec.so: records 21 to 26 of base/ring.h. Not part of the
 * public API: the hooks and the library are installed together, and the symbols have a version node of their own
 * (HEC_PRIVATE), which promises nothing.
 *
 * Each returns 1 when its record was written, and 0 when it was not: marks are off, the ring or a name table is full
 * (then it is counted as dropped), or an argument makes no sense. Threads, fork and signals: as in hec.h.
 * t_ns is CLOCK_MONOTONIC; 0: now. */
#pragma once

#include <stdint.h>

#pragma GCC visibility push(default)

/* A step ended at t_ns. units: NaN when it is not known how many samples it took. source: HEC_RING_STEP_*. */
int hec_hook_step(const char *unit, double units, uint32_t source, int64_t t_ns);

/* A number that the program computed at t_ns; it may be infinite or NaN. */
int hec_hook_value(const char *name, double value, int64_t t_ns);

/* What the calling thread did from start_ns on. */
int hec_hook_interval(const char *name, int64_t start_ns, int64_t duration_ns);

/* Defines, for the window of that number, node `id` (the caller's, not 0) of the tree of call stacks; a parent is defined
 * before its children. Of file and function the last 255 bytes are kept; a process has at most 8192 different ones.
 * Definitions do not survive a fork. */
int hec_hook_frame(uint32_t window, uint32_t id, uint32_t parent, const char *file, const char *function,
                   uint32_t line);

/* Thread tid was at `frame`, as it was defined for that window, now; the sample stands for period_us. */
int hec_hook_stack(uint32_t window, uint32_t tid, uint32_t frame, uint32_t period_us);

/* The number of the window in which HEC reads: even; what was defined in another one is to be defined again. -1: nobody
 * reads just now. */
int hec_hook_window(void);

/* Whether HEC reads the stacks of this process from outside (HEC_RING_STACKS_*); -1: no ring. */
int hec_hook_stacks(void);

/* A fact about the program; texts keep their last 255 bytes. */
int hec_hook_fact(const char *key, const char *text);

#pragma GCC visibility pop
