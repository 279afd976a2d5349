/* Marks of observed programs: what the collector and the command line agree on.
 *
 * The collector listens on options->mark_socket, takes the ring of every process that connects, and drains all rings
 * about every 100 ms. What it gives the sink:
 *
 * - STEP_UNITS, subject = pid: a step that the program marks ended at t and did that many units. The value is an
 *   integer: the fraction is carried to the process's next step, so that the samples of a process add up to its total,
 *   rounded. Steps that follow within 20 ms of the last sample are folded into the next one (the power history has no
 *   finer grain, and a program's speed must not decide the size of the run file); a NOTE says so.
 * - units: exact totals, per name. hec_step adds to "unit" or to the unit it names, hec_units to the one it names.
 *   Both always count: a program that marks steps of samples and counts tokens has two units. A process that marks no
 *   steps but whose hooks found some adds the units of those when it ends: samples where those of every step are
 *   known, else steps; those of optimizers if there were any, else those of module calls.
 * - activities STEP (each step, marked or found, from the end of the one before of the same source; the first from the
 *   first mark of the process), PHASE (marked, and with HEC_ACTIVITY_FOUND what the hooks found), VALUE and STACK, with
 *   the names, frames and tracks they need. Ends of phases that fit no open phase are ignored; phases open at the end
 *   of the process or of the window are closed there. Rates are bounded by process, 1000 or 2000 a second in the long
 *   run (a burst of ten times that), and by run, ten times as many; the rest is reported in a NOTE with count and seconds.
 * - meta "python.KEY": facts of the hooks. "hooks_off" (a hook switched itself off) also gives a NOTE.
 * - event KNOB "NAME=VALUE" when a process first reads a knob, and when the value it reads changes; once a run KNOB_RANGE
 *   "NAME=FALLBACK int [LEAST, MOST]" (or double) where the program gives its range, and KNOB_REFUSED for a value that was set and is
 *   not taken, or a range that is none.
 * - event MARKS_DROPPED, per process, when marks were lost; again with the final count.
 * - event NOTE for what does not fit the bounds below, or was not valid. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* The environment of the observed command. */
#define HEC_MARKS_ENV_SOCKET "HEC_SOCKET" /* options->mark_socket */
#define HEC_MARKS_ENV_LIBRARY "HEC_LIB"   /* absolute path of libhec.so.0, for Python and header-only programs */
#define HEC_MARKS_ENV_KNOBS "HEC_KNOBS"   /* hec_marks_knob_add */
#define HEC_MARKS_ENV_STACKS "HEC_STACKS" /* "outside": who reads the marks may read stacks from outside, and says so */

/* The longest list of knobs that libhec.so takes, in bytes, and in knobs. */
#define HEC_MARKS_KNOBS_MAX 8191
#define HEC_MARKS_KNOBS_COUNT_MAX 256

/* Append one "NAME=VALUE" of the command line to the text of HEC_KNOBS, escaped. knobs->maximum should be
 * HEC_MARKS_KNOBS_MAX + 1. NAME: 1 to 63 of A-Z a-z 0-9 _ . -; VALUE: up to 255 bytes without control characters.
 * HEC_ERR_USAGE or HEC_ERR_LIMIT with a sentence, or hec_buf_error. */
int hec_marks_knob_add(struct hec_buf *knobs, const char *assignment, struct hec_why *why);
