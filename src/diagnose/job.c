#include "diagnose/build.h"
#include "diagnose/limits.h"
#include "diagnose/timeline/tables.h"

#include <math.h>
#include <stdlib.h>

/* ---- ranks ---- */

/* More are left out: a file that names a process for each of its 65536 tracks would take seconds. */
#define RANKS_MAX 4096

/* A process that a rank starts has its environment, with its number: which of them is the rank is not known. */
static void forget_heirs(struct hec_job_diagnosis *job) {
    for (int i = 0; i < job->rank_count; i++) {
        bool again = false;
        for (int k = i + 1; k < job->rank_count; k++)
            if (job->ranks[k].number == job->ranks[i].number) {
                job->ranks[k].number = -1;
                again = true;
            }
        job->ranks[i].number = again ? -1 : job->ranks[i].number;
    }
}

int hec_job_ranks(const struct hec_timeline_tables *tables, bool imported, struct hec_job_diagnosis *job) {
    for (size_t i = 0; i < tables->track_count; i++) {
        const struct hec_track *t = &tables->tracks[i];
        int at = 0;
        if (t->kind != HEC_TRACK_STREAM)
            continue;
        while (at < job->rank_count && (job->ranks[at].pid != t->pid || job->ranks[at].number != t->rank))
            at++;
        if (at == RANKS_MAX)
            continue;
        if (at == job->rank_count) {
            struct hec_rank *grown = realloc(job->ranks, ((size_t)at + 1) * sizeof *grown);
            if (!grown)
                return HEC_ERR_NOMEM;
            job->ranks = grown;
            job->ranks[job->rank_count++] = (struct hec_rank){.pid = t->pid, .number = t->rank};
        }
        job->ranks[at].devices |= hec_device_bit(t->device);
    }
    if (!imported)
        forget_heirs(job);
    return 0;
}

int hec_rank_of(const struct hec_rank *ranks, int count, int device) {
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (!(ranks[i].devices & hec_device_bit(device)))
            continue;
        if (found >= 0 && ranks[i].number != found)
            return -1;
        found = ranks[i].number;
    }
    return found;
}

/* ---- what belongs together ---- */

static bool communicates(const struct hec_ledger_device *d) {
    return d && d->rows[HEC_STATE_COMM].ns > 0;
}

/* Of ranks whose kernels were not recorded: as many steps, and as long ones. */
static bool in_step(const struct hec_step_summary *one, const struct hec_step_summary *other) {
    return one->count > 0 &&
           fabs((double)(one->count - other->count)) <= 1 + HEC_FINDING_IN_STEP * (double)one->count &&
           fabs(one->duration.mean - other->duration.mean) <= HEC_FINDING_IN_STEP * one->duration.mean;
}

static bool together(const struct hec_job_diagnosis *job, const struct hec_device_diagnosis *one,
                     const struct hec_device_diagnosis *other) {
    bool steps = one->steps.count && other->steps.count;
    return (steps && (one->steps.pid == other->steps.pid || (job->size > 1 && in_step(&one->steps, &other->steps)))) ||
           (communicates(one->ledger) && communicates(other->ledger));
}

/* ---- collectives ---- */

/* Watts in communication; where they were not unmixed, the device's mean. */
static double comm_watts(const struct hec_device_diagnosis *d, bool *estimated) {
    const struct hec_energy *energy = &d->readings.energy;
    if (d->ledger && isfinite(d->ledger->rows[HEC_STATE_COMM].watts))
        return d->ledger->rows[HEC_STATE_COMM].watts;
    *estimated = true;
    return energy->valid && energy->window_s > 0 ? energy->joules / energy->window_s : NAN;
}

static double comm_s(const struct hec_device_diagnosis *d) {
    return d->steady->rows[HEC_STATE_COMM].seconds;
}

static void find_collectives(const struct hec_summary *s, struct hec_collectives *out) {
    const struct hec_device_diagnosis *least = NULL, *most = NULL;
    *out = (struct hec_collectives){.slowest = HEC_DEVICE_NONE, .waits_most = HEC_DEVICE_NONE};
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (!communicates(d->steady))
            continue;
        out->count++;
        out->devices |= hec_device_bit(d->readings.device.index);
        out->mean_work_s += hec_ledger_work(d->steady);
        least = !least || comm_s(d) < comm_s(least) ? d : least;
        most = !most || comm_s(d) > comm_s(most) ? d : most;
    }
    if (!least)
        return;
    out->mean_work_s /= out->count;
    out->transfer_s = comm_s(least);
    out->slowest = least->readings.device.index;
    out->waits_most = most->readings.device.index;
    for (int i = 0; i < s->device_count; i++)
        if (communicates(s->devices[i].steady))
            out->waiting_j += (comm_s(&s->devices[i]) - out->transfer_s) * comm_watts(&s->devices[i], &out->estimated);
}

bool hec_job_waits_seen(const struct hec_summary *s, int device) {
    const struct hec_job_diagnosis *job = &s->job;
    uint64_t with = device >= 0 && device < HEC_DEVICE_MAX ? job->with[device] : 0;
    int ranks = 0;
    for (int i = 0; i < job->rank_count; i++)
        ranks += (job->ranks[i].devices & with) != 0;
    if (job->size <= 1 && __builtin_popcountll(with) <= 1)
        return true;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (hec_device_bit(d->readings.device.index) & with &&
            !(d->timeline && d->steady && d->steady->basis == HEC_LEDGER_MEASURED))
            return false;
    }
    return ranks >= job->size;
}

void hec_job_find(const struct hec_summary *summary, struct hec_job_diagnosis *job) {
    for (int i = 0; i < summary->device_count; i++) {
        const struct hec_device_diagnosis *one = &summary->devices[i];
        uint64_t with = hec_device_bit(one->readings.device.index);
        if (!with) /* of a damaged file */
            continue;
        for (int k = 0; k < summary->device_count; k++)
            if (together(job, one, &summary->devices[k]))
                with |= hec_device_bit(summary->devices[k].readings.device.index);
        job->with[one->readings.device.index] = with;
    }
    find_collectives(summary, &job->collectives);
}
