/* Sharding: FSDP takes time, and the model would fit on each device. */
#include "diagnose/rules/sharding.h"

#include "diagnose/rules/compute.h"
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
    return comm_state(d) == HEC_STATE_COMPUTE ? fmin(watts, p->comm_w) : watts;
}

/* Devices that this one may wait for: how long they idle at most, and what part of their idling is for FSDP's code. */
struct others {
    double idle_s, part; /* part: 1 where no stacks tell */
};

static struct others others_of(const struct hec_facts *f) {
    const struct hec_job_diagnosis *job = &f->summary->job;
    struct others o = {0, 1};
    double code_s = 0, all_s = 0;
    for (int i = 0; i < f->summary->device_count; i++) {
        const struct hec_device_diagnosis *d = &f->summary->devices[i];
        if (d == f->device || !d->steady || hec_rank_of(job->ranks, job->rank_count, d->readings.device.index) < 0)
            continue;
        double idle_s = hec_loop_idle_s(d);
        o.idle_s = fmax(o.idle_s, idle_s);
        if (!(d->sharding_share > 0))
            continue;
        all_s += idle_s;
        code_s += hec_sharded_code_s(d);
    }
    if (all_s > 0)
        o.part = fmin(1, code_s / all_s);
    return o;
}

/* Of the loop: seconds of communication that nothing hides. */
struct comm {
    double moves_s; /* that data parallel training would hide: the bytes take it, or nothing else explains it */
    double waits_s; /* in which this device is ahead of others, */
    double part;    /* and what of that goes with sharding: as much as of what the others idle meanwhile */
    double by_sms;  /* of both together: what was not seen, but taken from idle SMs; 0: it was seen */
};

/* A device that is ahead spins until the others have launched as well: what those do meanwhile is what it waits for. What the bytes take is
 * known of the links, so the rest is waiting, as far as the others idle. What ranks lose to one of them is that one's. */
static struct comm comm_of(const struct hec_facts *f, const struct hec_parallelism *p) {
    enum hec_state state = comm_state(f->device);
    struct comm comm = {0, 0, 0, 0};
    double seconds = f->device->steady->rows[state].seconds;
    bool unseen = state == HEC_STATE_COMPUTE && !isfinite(p->comm_s);
    if (!(seconds > 0) || !(unseen || p->comm_s > 0) || !isfinite(open_s(p)))
        return comm;
    if (unseen)
        seconds = comm.by_sms = hec_compute_idle_sms_s(f);
    else if (state == HEC_STATE_COMPUTE) /* ranks compute as long as each other; they do not wait as long */
        seconds = fmax(0, seconds - p->compute_s / p->step_s * loop_s(f->device));
    seconds = fmax(0, seconds - hec_collectives_lost(&f->summary->job.collectives, f->device->readings.device.index));
    double steps = loop_s(f->device) / p->step_s;
    double moves_s = fmin(seconds, steps * p->row[HEC_STRATEGY_FSDP].comm_s);
    struct others others = others_of(f);
    comm.part = others.part;
    comm.waits_s = fmin(seconds - moves_s, others.idle_s);
    comm.moves_s = fmax(0, seconds - comm.waits_s - steps * open_s(p));
    return comm;
}

/* Such seconds go, at what the device draws in communication. */
static void save_comm(const struct hec_facts *f, const struct hec_parallelism *p, struct hec_saving seconds,
                      struct hec_finding *out) {
    double joules = comm_watts(f->device, p) / f->run_j;
    hec_saving_add(&out->seconds, hec_saving_scaled(seconds, 1 / f->run_s, 1 / f->run_s, 1 / f->run_s));
    if (isfinite(joules))
        hec_saving_add(&out->joules, hec_saving_scaled(seconds, joules, joules, joules));
}

bool hec_judge_sharding(const struct hec_facts *f, struct hec_finding *out) {
    const struct hec_ledger_device *steady = f->device->steady;
    struct hec_parallelism p;
    if (!steady || !f->device->ledger || !hec_sharding_needless(f->summary, &p))
        return false;
    struct comm parts = comm_of(f, &p);
    double code = hec_sharded_code_s(f->device), comm = parts.moves_s + parts.part * parts.waits_s;
    double all = loop_s(f->device);
    if (!(code + (parts.by_sms > 0 ? 0 : comm) >= HEC_SHARDING_LEAST * all)) /* idle SMs alone are no evidence */
        return false;
    out->title = HEC_FACT(SHARDED, (code + comm) / all);
    if (code > 0)
        hec_finding_add(out, HEC_FACT(SHARD_CODE, code / all * p.step_s, p.step_s));
    if (comm > 0 && parts.by_sms > 0)
        hec_finding_add(out, HEC_FACT(COMM_UNSEEN, parts.by_sms / all * p.step_s, p.step_s));
    else if (comm > 0)
        hec_finding_add(out, HEC_FACT(SHARD_COMM, p.comm_s, p.step_s, open_s(&p)));
    if (parts.waits_s >= HEC_SHARDING_LEAST * all)
        hec_finding_add(out, HEC_FACT(SHARD_WAITS, parts.waits_s / all * p.step_s, parts.part));
    hec_finding_add(out, HEC_FACT(SHARD_MEMORY, p.row[HEC_STRATEGY_DDP].memory_bytes, p.card_bytes,
                                  p.row[HEC_STRATEGY_FSDP].memory_bytes));
    out->confidence = HEC_SHARDING_CONFIDENCE;
    hec_waits_save_seconds(f, code, HEC_SHARDING_CODE_LOW, 1, 1, out);
    save_comm(f, &p,
              (struct hec_saving){(1 - HEC_SHARDING_STAYS_MOST) * parts.moves_s,
                                  (1 - HEC_SHARDING_STAYS) * parts.moves_s, parts.moves_s},
              out);
    save_comm(f, &p, (struct hec_saving){0, parts.part * parts.waits_s, parts.waits_s}, out);
    out->estimated = out->estimated || parts.by_sms > 0;
    out->states = 1u << HEC_STATE_COMM;
    return true;
}
