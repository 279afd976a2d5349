/* Inside src/diagnose: of a program that calls JAX, which cause the time belongs to in which its device waits, by the lines that its
 * stacks lie in meanwhile. Calls do not tell that: to read one number of an array, kernels are launched that cut it out, a few bytes
 * are copied there for their arguments, and one is waited for; all of that goes with the reading. A sample in
 *   a number that is read     is sync
 *   an array that is fetched  is copy, and so is one that is put on the device
 *   an operation              is of what its line does besides, sync or copy, whichever takes longer; launch where it does neither: an
 *                             operation that is called by itself, and would be part of a larger one under jit
 *   a line at which JAX has compiled, and in no frame below it, is launch: it calls what was compiled
 *   else                      host
 * Where a number is read the device may still compute: so long the program could do what it does while the device waits. Without reading,
 * calls of what was compiled launch on a thread of JAX besides.
 * Samples do not depend on what the program does, so that the shares of these are those of the time (source_lines.h). */
#pragma once

#include "diagnose/states/gaps.h"
#include "diagnose/states/stacks.h"

struct hec_operations;

/* The stacks, and their tables, are to stay until the end. NULL: no memory. */
struct hec_operations *hec_operations_begin(struct hec_stacks *stacks);
void hec_operations_free(struct hec_operations *operations); /* NULL is fine */
/* line: the frame of the program in that stack (hec_source_blame), 0 none; steady: in what the gaps are of. 0 or HEC_ERR_NOMEM. */
int hec_operations_sample(struct hec_operations *operations, int device, const struct hec_state_sample *sample,
                          uint32_t line, bool steady);
/* The same in what the gaps are of, while the device computes. */
int hec_operations_beside(struct hec_operations *operations, int device, const struct hec_state_sample *sample,
                          uint32_t line);
/* What host, launch, sync and copy own of states host, launch and sync is divided anew, where most samples are JAX's, or in calls of what
 * it compiled. After hec_gaps_end. */
void hec_operations_divide(struct hec_operations *operations, struct hec_gaps *gaps);
/* The causes that time of that line belongs to, as bits (1 << cause), each with a fifth of it or more. 0: nothing was divided there. */
uint32_t hec_operations_owners(const struct hec_operations *operations, int device, const char *file, int32_t line);
