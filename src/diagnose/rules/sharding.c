/* Sharding: FSDP takes time, and the model would fit on each device. */
#include "diagnose/rules/sharding.h"

#include "diagnose/rules/waits.h"

#include <math.h>

bool hec_sharding_needless(const struct hec_summary *s, struct hec_parallelism *found) {
    if (!s->sizes.known || s->sizes.sharing != HEC_SHARING_FSDP || s->job.size < 2)
        return false;
    hec_parallelism_find(s, found);
    return found->now == HEC_STRATEGY_FSDP && found->row[HEC_STRATEGY_DDP].fits == HEC_FITS_YES;
}

double hec_sharding_share(const struct hec_facts *f) {
    struct hec_parallelism p;
    return f->device->sharding_share > 0 && hec_sharding_needless(f->summary, &p) ? f->device->sharding_share : 0;
}

/* Of a step: communication that nothing would hide in data parallel training. */
static double open_s(const struct hec_parallelism *p) {
    return p->row[HEC_STRATEGY_DDP].open_s;
}

/* Where its kernels were not seen, they communicate as much as those of the other ranks. */
static enum hec_state comm_state(const struct hec_device_diagnosis *d) {
    return d->steady->basis == HEC_LEDGER_CALLS ? HEC_STATE_COMPUTE : HEC_STATE_COMM;
}

static double loop_s(const struct hec_device_diagnosis *d) {
    return hec_ledger_work(d->steady) + d->steady->rows[HEC_STATE_COMM].seconds;
}

/* Compute draws more: where both are in one state its watts are of neither. */
static double comm_watts(const struct hec_device_diagnosis *d, const struct hec_parallelism *p) {
    double watts = d->ledger->rows[comm_state(d)].watts;
    return comm_state(d) == HEC_STATE_COMPUTE && !p->comm_assumed ? fmin(watts, p->comm_w) : watts;
}

/* Of the loop: seconds of communication that nothing hides, and that data parallel training would hide. What ranks wait for one of them
 * is that one's. */
static double comm_s(const struct hec_facts *f, const struct hec_parallelism *p) {
    enum hec_state state = comm_state(f->device);
    double seconds = f->device->steady->rows[state].seconds;
    if (!(seconds > 0) || !(p->comm_s > 0) || !isfinite(open_s(p)))
        return 0;
    if (state == HEC_STATE_COMPUTE) /* ranks compute as long as each other; they do not wait as long */
        seconds = fmax(0, seconds - p->compute_s / p->step_s * loop_s(f->device));
    seconds = fmax(0, seconds - hec_collectives_waited(&f->summary->job.collectives, f->device->readings.device.index));
    return seconds * fmax(0, 1 - open_s(p) / p->comm_s);
}

bool hec_judge_sharding(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_ledger_device *steady = f->device->steady;
    struct hec_parallelism p;
    if (!steady || !f->device->ledger || !hec_sharding_needless(f->summary, &p))
        return false;
    double code = hec_sharded_code_s(f->device), comm = comm_s(f, &p);
    double all = loop_s(f->device);
    if (!(code + comm >= HEC_SHARDING_LEAST * all))
        return false;
    out->title = HEC_FACT(SHARDED, (code + comm) / all);
    if (code > 0)
        hec_finding_add(out, HEC_FACT(SHARD_CODE, code / all * p.step_s, p.step_s));
    if (comm > 0)
        hec_finding_add(out, HEC_FACT(SHARD_COMM, p.comm_s, p.step_s, open_s(&p)));
    hec_finding_add(out, HEC_FACT(SHARD_MEMORY, p.row[HEC_STRATEGY_DDP].memory_bytes, p.card_bytes,
                                  p.row[HEC_STRATEGY_FSDP].memory_bytes));
    out->confidence = HEC_SHARDING_CONFIDENCE;
    hec_waits_save_seconds(f, code, HEC_SHARDING_CODE_LOW, 1, 1, out);
    double share = comm / f->run_s, joules = share * f->run_s * comm_watts(f->device, &p) / f->run_j;
    hec_saving_add(&out->seconds, hec_saving_scaled((struct hec_saving){share, share, share},
                                                    1 - HEC_SHARDING_STAYS_MOST, 1 - HEC_SHARDING_STAYS, 1));
    if (isfinite(joules))
        hec_saving_add(&out->joules, hec_saving_scaled((struct hec_saving){joules, joules, joules},
                                                       1 - HEC_SHARDING_STAYS_MOST, 1 - HEC_SHARDING_STAYS, 1));
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
