/* The kernels of `hec calibrate`, as PTX text made from a table (cuda_kernel.def): the driver compiles it, so neither
 * building nor running needs an SDK. */
#pragma once

#include "base/buf.h"
#include "model/peaks.h"

#define HEC_CUDA_KERNEL_NAME "hec_calibrate"

enum { HEC_CUDA_PATTERN_ONES, HEC_CUDA_PATTERN_RANDOM };

/* An arithmetic kernel: (u64 out, u32 iterations, u32 pattern), any grid of blocks of `threads`. Thread t of all T writes
 * the sum of its accumulators as a double to out[t]: with ones, iterations x sum_per_iteration exactly, so a kernel that
 * the driver compiled wrongly or that did not run is found out. out[T] and out[T + 1]: the cycles and the nanoseconds
 * that the first thread counted, each a uint64_t. */
struct hec_cuda_kernel {
    enum hec_peak_kind peak;
    const char *method; /* "fma", "mma.sync", "wgmma" */
    int least, most;    /* compute capability, 10 x major + minor */
    unsigned threads, blocks_per_sm;
    double operations;         /* of a block in one iteration: FLOP, or integer OP */
    double sum_per_iteration;  /* of a thread, with ones */
    unsigned check_iterations; /* few enough that every sum is exact */
};

int hec_cuda_kernel_count(void);
/* NULL when index is out of range. Rows of one peak are in order of preference. */
const struct hec_cuda_kernel *hec_cuda_kernel_at(int index);
/* Write its PTX. HEC_OK, HEC_ERR_NOMEM or HEC_ERR_LIMIT (about 20 KiB are needed). */
int hec_cuda_kernel_ptx(int index, struct hec_buf *out);

/* Device memory, and nothing at all; all for compute capability 7.0 on. Entries of one module, for blocks of 256 threads:
 *   hec_read  (u64 out, u64 from, u32 rounds): in each round a block reads 16 KiB, 64 bytes a thread; thread t writes the
 *             sum of its 32-bit words as a double to out[t]; `from` holds rounds x 16 KiB x blocks
 *   hec_copy  (u64 to, u64 from, u32 rounds): the same, written to another place instead of being summed
 *   hec_empty () */
extern const char hec_cuda_memory_ptx[];
#define HEC_CUDA_READ_NAME "hec_read"
#define HEC_CUDA_COPY_NAME "hec_copy"
#define HEC_CUDA_EMPTY_NAME "hec_empty"
enum { HEC_CUDA_ROUND_BYTES = 64 };
