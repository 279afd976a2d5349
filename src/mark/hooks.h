/* What the Python hooks (python/hec/_hooks) write through libhec.so: records 21 to 26 of base/ring.h. Not part of the
 * public API: the hooks and the library are installed together, and the symbols have a version node of their own
 * (HEC_PRIVATE), which promises nothing.
 *
 * Each returns 1 when its record was written, and 0 when it was not: marks are off, the ring or a name table is full
 * (then it is counted as dropped), or an argument makes no sense. Threads, fork and signals: as in hec.h.
 * t_ns is CLOCK_MONOTONIC; 0: now. */
#ifndef HEC_MARK_HOOKS_H
#define HEC_MARK_HOOKS_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* A step ended at t_ns. units: NaN when it is not known how many samples it took. source: HEC_RING_STEP_*. */
int hec_hook_step(const char *unit, double units, uint32_t source, int64_t t_ns);

/* A number that the program computed at t_ns; it may be infinite or NaN. */
int hec_hook_value(const char *name, double value, int64_t t_ns);

/* What the calling thread did from start_ns on. */
int hec_hook_interval(const char *name, int64_t start_ns, int64_t duration_ns);

/* Defines node `id` (the caller's, not 0) of the tree of call stacks; a parent is defined before its children. Of file
 * and function the last 255 bytes are kept; a process has at most 8192 different ones. Definitions do not survive a
 * fork. */
int hec_hook_frame(uint32_t id, uint32_t parent, const char *file, const char *function, uint32_t line);

/* Thread tid was at `frame` now; the sample stands for period_us. */
int hec_hook_stack(uint32_t tid, uint32_t frame, uint32_t period_us);

/* Samples of the main thread's Python stack; the caller has the interpreter's lock. hz times a second, fewer where one takes more than cost_max_ns on average. borrows: the sampler may take the interpreter's lock while
 * the main thread is in a call of C (not in builds without that lock). second: called about once a second by the sampler,
 * which then has not got the lock. 0: the program has no such interpreter (Python 3.9 and newer), or there is no thread. */
int hec_hook_stacks_start(double hz, int64_t cost_max_ns, int borrows, void (*second)(void));

/* Ends the sampler: the thread with this id is gone soon; 0: there was none. */
uint32_t hec_hook_stacks_stop(void);

/* Samples so far, and what they cost in all. */
int64_t hec_hook_stacks_samples(int64_t *cost_ns);

/* In the child of a fork, which has no sampler: nothing is known of frames. */
void hec_hook_stacks_forget(void);

/* A fact about the program; texts keep their last 255 bytes. */
int hec_hook_fact(const char *key, const char *text);

#pragma GCC visibility pop

#endif
