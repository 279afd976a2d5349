/* Ways to share the training of a run's model out to the devices of its machine, or of its job: what each would hold, send and take.
 * All of it is predicted; what is not known is not guessed, and said (lacks).
 *
 * Each device has as much work a step as one has in the run, so seconds and joules of a device can be compared.
 *
 * Memory of a device, at most: parameters, gradients and states of the optimizer, each whole or divided; what is gathered for a while;
 * activations; and what the run's allocator held beside all that (the peak less the same sum of the run itself). To it comes what the
 * device's memory holds outside of the allocator. It fits where that is PARALLELISM_MARGIN of the memory and less.
 *   ddp               once more the gradients: buckets, unless gradient_as_bucket_view (PyTorch's DistributedDataParallel)
 *   gradients SHARE   the gradients of one unit, before they are scattered; parameters SHARE: two units, one of them ahead. A unit is a
 *                     layer, or all that is in none, whichever is larger
 *   tensor            matrices of layers are divided. N times the samples are in flight, of which each has an N-th of what lies in
 *                     divided matrices: activations grow by PARALLELISM_REPLICATED for each further device (arXiv 2205.05198, section 4)
 *   pipeline          a stage has layers / N, and all that is in none; of N micro-batches in flight (arXiv 2104.04473, section 2)
 *   expert            an N-th of the experts
 *
 * Time of a step: that of the run without the communication that nothing hid, plus what would not be hidden. Where the run uses FSDP, the
 * time in which the device waits for FSDP's own code is left out of the other ways. Where it does not, that time is not known, and the
 * row of FSDP lacks it.
 *   low, high         all is hidden but the last piece (bucket, layer); nothing is. Where the run uses FSDP, for other ways: without all
 *                     waits for the host; with SHARDING_CODE_LOW of those for FSDP's code
 *   best              hidden as far as the compute is long enough
 *   tensor            each layer reduces what it is given, for N times the samples, twice forward and twice backward (once each with less
 *                     than four matrices), and all waits for it (arXiv 1909.08053, section 3)
 *   pipeline          with m micro-batches, (N - 1)/m of the compute is a bubble (arXiv 2104.04473, section 2.2); m: N for each pass of
 *                     the run's step
 *   expert            tokens go to their experts and back, forward and backward (arXiv 2101.03961, section 2)
 *
 * Joules of a device and step: watts of the run without communication for its seconds, watts in communication for what is not hidden, idle
 * watts for bubbles and for what waits for FSDP's code. */
#pragma once

#include "diagnose/result.h"

enum hec_strategy {
#define HEC_STRATEGY(id, name, split, parameters, gradients, states, gathers, passes, reduces, hidden)                 \
    HEC_STRATEGY_##id,
#include "diagnose/parallelism.def"
    HEC_STRATEGIES
};
enum hec_lack {
#define HEC_LACK(id, name) HEC_LACK_##id,
#include "diagnose/parallelism.def"
    HEC_LACKS
};
enum hec_bus { HEC_BUS_UNKNOWN, HEC_BUS_MEASURED, HEC_BUS_NVLINK, HEC_BUS_PCIE, HEC_BUSES };
enum hec_fits { HEC_FITS_UNKNOWN, HEC_FITS_YES, HEC_FITS_HARDLY, HEC_FITS_NO, HEC_FITS_COUNT };

const char *hec_strategy_name(enum hec_strategy strategy); /* these four: stable, in JSON */
const char *hec_lack_name(enum hec_lack lack);
const char *hec_bus_name(enum hec_bus bus);
const char *hec_fits_name(enum hec_fits fits);

struct hec_strategy_row {
    bool applies;   /* false: the model has nothing that it would divide, and all else is unknown */
    uint32_t lacks; /* bits of hec_lack: what memory, seconds or joules are unknown for */
    double parameter_bytes, gradient_bytes, state_bytes; /* that a device holds all the time, of these its own */
    double memory_bytes; /* with all that is beside them; known where the peak of the run is */
    enum hec_fits fits;
    double sent_bytes;            /* by a device, of a step */
    double low_s, step_s, high_s; /* of what is run: measured */
    double low_j, step_j, high_j; /* of a device; the same */
    double open_s,
        bubble_s; /* of a step as predicted: communication that nothing hides, and stages that wait; 0: there is none */
    double comm_s; /* all of its communication, hidden or not */
};

struct hec_parallelism {
    uint32_t lacks; /* of all rows; what is here besides may be known nevertheless */
    int devices;    /* N */
    char card[96];
    enum hec_strategy now;            /* of the run; HEC_STRATEGIES: one device, or it is not known */
    double card_bytes, outside_bytes; /* its memory; what is in it outside of the allocator */
    double allocated;                 /* by PyTorch's allocator, at most */
    /* Of a step of the run, and of one device: */
    double step_s, step_j, comm_s, compute_s, backward_s;
    double sharding_s; /* in which the device waits for FSDP's own code, by stacks; 0: no FSDP, or no stacks */
    double
        launching_s; /* in which it waits for its host otherwise, of FSDP: launches for shards are among it; 0: no FSDP */
    bool backward_assumed; /* PARALLELISM_BACKWARD of the compute */
    double comm_w, idle_w;
    bool comm_assumed; /* the middle of idle and busy watts */
    double passes, syncs;
    double unexplained_s; /* of step_s: more than is predicted of what is run; < 0 less. NAN: it is not known */
    enum hec_bus bus;
    double bus_bytes_per_s; /* one way */
    struct hec_strategy_row row[HEC_STRATEGIES];
    /* That fits and takes the least seconds, by PARALLELISM_BETTER; HEC_STRATEGIES: of none both are known. */
    enum hec_strategy best;
};

/* Of the steady part of a device: seconds in which it waits for FSDP's own code, by stacks. */
double hec_sharded_code_s(const struct hec_device_diagnosis *device);
/* Of it: seconds in which the device idles. */
double hec_loop_idle_s(const struct hec_device_diagnosis *device);
/* Of what the run shows; pure. */
void hec_parallelism_find(const struct hec_summary *summary, struct hec_parallelism *out);
