/* Inside rules/: what the rules about the device itself have in common: compute's part of the run, what it draws, and the
 * counters while it runs. */
#pragma once

#include "diagnose/rules/facts.h"

struct hec_compute {
    bool traced;
    struct hec_saving seconds, joules; /* of the run's; NAN unknown */
    bool estimated;                    /* the joules are what idle time leaves, not unmixed */
    double watts;                      /* while it runs; NAN unknown */
    double waited;       /* of the run's seconds, those in which the host waited for the device; INFINITY: not known */
    double idle_by_mean; /* power while the device idles, by the run's mean */
    double denser;       /* power of work that fills the tensor cores, by these watts; at least 1 */
    double busy;         /* share of the steps, else of the time in use; NAN unknown */
    /* While kernels run, 0..1; NAN unknown: unmixed where possible, else means over the run by the engine's. */
    double sm, occupancy, tensor, fp32, dram;
    double integer; /* the same, over the run alone */
    bool unmixed;
    /* Tensor-pipe activity that good programs of this kind reach: HEC_COMPUTE_REACH_*. */
    double tensor_reach;
};

/* Seconds come from the ledger; of a duty-cycled trace no more than the engine's counter says, and without a trace from
 * that counter. Joules that were not unmixed: the run's less those of its idle time. */
void hec_compute_gather(const struct hec_facts *facts, struct hec_compute *out);

/* What a busy state took of the whole run's seconds and joules, its first steps included: unlike idle time, the work of
 * those is the work of all others. joules NAN where the ledger has none. */
struct hec_saving hec_whole_seconds(const struct hec_facts *facts, enum hec_state state);
struct hec_saving hec_whole_joules(const struct hec_facts *facts, enum hec_state state);

/* Watts while the device holds a context and does nothing: measured, else HEC_IDLE_CONTEXT_BY_LOWEST times the
 * run's lowest sample, at most the run's mean. NAN unknown. */
double hec_compute_idle_watts(const struct hec_facts *facts);

/* Of the steady part, what the SMs are idle while kernels run. Where no rank's kernels were seen, communication is a part of what is taken
 * for compute, and no rank says how large a one. Its kernels leave nearly all SMs idle: so this is theirs, as far as those of the model
 * fill them. Small kernels leave SMs idle too: alone it is no evidence. 0: unknown. */
double hec_compute_idle_sms_s(const struct hec_facts *facts);

/* Whether it was seen that the device has dense work: by its kernels, which other rules look at, or by counters. A busy device alone may
 * run anything. */
bool hec_compute_seen(const struct hec_facts *facts, const struct hec_compute *compute);

/* How tensors of images lie and are changed, by the number of kernels. */
struct hec_image_layout {
    double convolutions, group_norms; /* PyTorch's group normalisation, which takes and gives NCHW alone */
    double to_nhwc, to_nchw;          /* changes around convolutions */
};
void hec_image_layout_gather(const struct hec_facts *facts, struct hec_image_layout *out);
/* They lie in channels_last already: a convolution has two inputs and one output, so more is brought to the layout of kernels than back,
 * and these kernels are NCHW's. */
static inline bool hec_image_layout_is_last(const struct hec_image_layout *l) {
    return l->to_nchw > l->to_nhwc;
}

/* Savings of a finding by which `share` of compute loses the part `gain` of its time and the rest of it draws `denser` times
 * the watts (the interval's high end: the same watts). */
void hec_compute_save(const struct hec_compute *compute, double share, struct hec_saving gain, double denser,
                      struct hec_finding *out);

/* After hec_compute_save, of a change that leaves the host's work as it was but for the part `gone`: what the device's work hid of it the
 * device idles, so that the run gets no shorter by that. The ends of the interval stay. */
void hec_compute_host_stays(const struct hec_compute *compute, double gone, struct hec_finding *out);
