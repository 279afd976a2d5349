/* Whom ranks wait for, where the kernels of some alone were recorded.
 *
 * Ranks go in step. What the device of one idles for code that its process alone runs, by its calls and stacks, the others have to wait,
 * and those whose kernels were recorded show it as communication. A rank that is merely behind another one, of equal code, idles as well
 * while the other spins: it holds nobody up. So a line counts only where one process is far more often than the others. */
#include "diagnose/build.h"
#include "diagnose/limits.h"

#include <math.h>
#include <string.h>

static bool unseen(const struct hec_device_diagnosis *d) {
    return d->steady && d->gaps && d->steady->basis == HEC_LEDGER_CALLS;
}

static bool communicates(const struct hec_device_diagnosis *d) {
    return d->steady && d->steady->rows[HEC_STATE_COMM].ns > 0;
}

static bool own_line(const struct hec_summary *s, const struct hec_source_line *line, int32_t pid) {
    for (int i = 0; i < s->lines.count; i++) {
        const struct hec_source_line *l = &s->lines.lines[i];
        if (l->line == line->line && strcmp(l->file, line->file) == 0 && strcmp(l->function, line->function) == 0)
            return l->pid == pid && l->lead >= HEC_STRAGGLER_ALONE;
    }
    return false;
}

/* That a cause has of a state, in seconds of the loop. */
static double owned_s(const struct hec_device_diagnosis *d, enum hec_state state, enum hec_cause cause) {
    const struct hec_ledger_row *row = &d->steady->rows[state];
    return row->traced_ns > 0 ? d->gaps->owned_s[state][cause] * row->seconds * 1e9 / (double)row->traced_ns : 0;
}

/* What a device idles, of a state, for lines that its process alone runs. */
static double own_of(const struct hec_summary *s, const struct hec_device_diagnosis *d, enum hec_state state,
                     enum hec_cause cause) {
    double lines = 0;
    for (int i = 0; i < d->steady_source.count; i++) {
        const struct hec_source_line *l = &d->steady_source.lines[i];
        lines += l->state == state && own_line(s, l, d->steps.pid) ? l->seconds : 0;
    }
    return fmin(lines, owned_s(d, state, cause));
}

static double own_s(const struct hec_summary *s, const struct hec_device_diagnosis *d) {
    return own_of(s, d, HEC_STATE_HOST, HEC_CAUSE_HOST) + own_of(s, d, HEC_STATE_DATA, HEC_CAUSE_DATA);
}

void hec_job_own(const struct hec_summary *s, struct hec_collectives *c) {
    const struct hec_device_diagnosis *d = hec_summary_device(s, c->slowest);
    if (!d || !d->steady || !d->gaps || s->job.size <= 1)
        return;
    c->own_s = own_s(s, d);
    c->own_code_s = own_of(s, d, HEC_STATE_HOST, HEC_CAUSE_HOST);
}

static double busy_s(const struct hec_device_diagnosis *d) {
    return d->steady->rows[HEC_STATE_COMPUTE].seconds + d->steady->rows[HEC_STATE_COMM].seconds;
}

/* Ranks of one job that go in step; lengths are not asked for, as set-up is in the first ones. */
static bool as_many_steps(const struct hec_device_diagnosis *one, const struct hec_device_diagnosis *other) {
    double more = fabs((double)(one->steps.count - other->steps.count));
    return one->steps.count > 0 && more <= 1 + HEC_FINDING_IN_STEP * (double)one->steps.count;
}

static struct hec_rank *rank_of(struct hec_job_diagnosis *job, int device) {
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].devices == hec_device_bit(device))
            return &job->ranks[i];
    return NULL;
}

bool hec_job_infer(const struct hec_summary *s, struct hec_job_diagnosis *job, struct hec_collectives *out) {
    const struct hec_device_diagnosis *slow = NULL;
    double own = 0, most = 0, waited = 0;
    for (int i = 0; i < s->device_count && job->size > 1; i++) {
        double seconds = unseen(&s->devices[i]) ? own_s(s, &s->devices[i]) : 0;
        if (seconds > own) {
            own = seconds;
            slow = &s->devices[i];
        }
    }
    struct hec_rank *held = slow ? rank_of(job, slow->readings.device.index) : NULL;
    if (!held)
        return false;
    struct hec_collectives inferred = *out;
    memset(inferred.waited_s, 0, sizeof inferred.waited_s);
    memset(inferred.lost_s, 0, sizeof inferred.lost_s);
    inferred.slowest = slow->readings.device.index;
    inferred.slowest_share = 1;
    inferred.inferred = inferred.estimated = true;
    inferred.devices |= hec_device_bit(inferred.slowest);
    inferred.count++;
    inferred.mean_work_s += (hec_ledger_work(slow->steady) - inferred.mean_work_s) / inferred.count;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        int index = d->readings.device.index;
        struct hec_rank *rank = d != slow && communicates(d) ? rank_of(job, index) : NULL;
        if (!rank || !as_many_steps(d, slow))
            continue;
        double seconds = fmin(fmin(own, d->steady->rows[HEC_STATE_COMM].seconds), busy_s(d) - busy_s(slow));
        if (!(seconds > 0))
            continue;
        rank->waited_s = inferred.waited_s[index] = inferred.lost_s[index] = seconds;
        rank->waited_j = seconds * d->ledger->rows[HEC_STATE_COMM].watts;
        inferred.lost_j += rank->waited_j;
        waited += seconds;
        if (seconds > most) {
            most = seconds;
            inferred.waits_most = index;
        }
    }
    if (!(most > 0))
        return false;
    inferred.own_s = own;
    inferred.own_code_s = own_of(s, slow, HEC_STATE_HOST, HEC_CAUSE_HOST);
    held->held_s = waited;
    held->held_j = inferred.lost_j;
    *out = inferred;
    return true;
}
