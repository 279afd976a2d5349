#include "base/clock.h"
#include "diagnose/build.h"
#include "diagnose/limits.h"
#include "diagnose/timeline/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* NULL: no memory, or there is no room. */
static struct hec_rank *add_rank(struct hec_job_diagnosis *job, int32_t pid, int32_t number) {
    struct hec_rank *grown = realloc(job->ranks, ((size_t)job->rank_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    job->ranks = grown;
    grown += job->rank_count++;
    *grown = (struct hec_rank){
        .pid = pid, .number = number, .local = -1, .waited_s = NAN, .waited_j = NAN, .held_s = NAN, .held_j = NAN};
    return grown;
}

/* What processes say of themselves. */
struct said {
    struct hec_job_diagnosis *job;
    int with_streams; /* ranks that the trace has: the first ones */
};

static int take_said(void *context, int32_t pid, const char *text) {
    struct said *said = context;
    struct hec_job_diagnosis *job = said->job;
    struct hec_rank named = {.number = -1}, *rank = NULL;
    int size = 0;
    if (sscanf(text, "%d %d %d %15s %63s", &named.number, &named.local, &size, named.launcher, named.host) < 3 ||
        named.number < 0 || named.number >= size || named.local < -1)
        return 0;
    for (int i = 0; i < job->rank_count && !rank; i++)
        rank = job->ranks[i].pid == pid ? &job->ranks[i] : NULL;
    for (int i = 0; i < job->rank_count && !rank; i++) /* a loader's worker, or another that has its environment */
        if (job->ranks[i].number == named.number && (job->ranks[i].pid < pid || i < said->with_streams))
            return 0;
        else if (job->ranks[i].number == named.number)
            rank = &job->ranks[i];
    if (!rank && (job->rank_count >= RANKS_MAX || !(rank = add_rank(job, pid, named.number))))
        return job->rank_count >= RANKS_MAX ? 0 : HEC_ERR_NOMEM;
    rank->pid = pid;
    rank->number = named.number;
    rank->local = named.local;
    hec_copy_text(rank->launcher, sizeof rank->launcher, named.launcher);
    hec_copy_text(rank->host, sizeof rank->host, named.host);
    job->size = size > job->size ? size : job->size;
    return 0;
}

static int by_number(const void *a, const void *b) {
    const struct hec_rank *one = a, *other = b;
    return one->number != other->number ? one->number - other->number
                                        : (one->pid > other->pid) - (one->pid < other->pid);
}

int hec_job_ranks(const struct hec_summary_input *input, const struct hec_timeline_tables *tables,
                  struct hec_job_diagnosis *job) {
    for (size_t i = 0; i < tables->track_count; i++) {
        const struct hec_track *t = &tables->tracks[i];
        int at = 0;
        if (t->kind != HEC_TRACK_STREAM)
            continue;
        while (at < job->rank_count && (job->ranks[at].pid != t->pid || job->ranks[at].number != t->rank))
            at++;
        if (at == RANKS_MAX)
            continue;
        if (at == job->rank_count && !add_rank(job, t->pid, t->rank))
            return HEC_ERR_NOMEM;
        job->ranks[at].devices |= hec_device_bit(t->device);
    }
    struct said said = {job, job->rank_count};
    int err = input->rank_facts ? input->rank_facts(input->context, take_said, &said) : 0;
    if (!(input->imported && input->imported[0]))
        forget_heirs(job);
    if (job->rank_count)
        qsort(job->ranks, (size_t)job->rank_count, sizeof *job->ranks, by_number);
    return err;
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
    return d && (d->rows[HEC_STATE_COMM].ns > 0 || d->rows[HEC_STATE_PEERS].ns > 0);
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
    if (d->ledger && !d->ledger->rows[HEC_STATE_COMM].ns && isfinite(d->ledger->rows[HEC_STATE_PEERS].watts))
        return d->ledger->rows[HEC_STATE_PEERS].watts;
    if (d->ledger && isfinite(d->ledger->rows[HEC_STATE_COMM].watts))
        return d->ledger->rows[HEC_STATE_COMM].watts;
    *estimated = true;
    return energy->valid && energy->window_s > 0 ? energy->joules / energy->window_s : NAN;
}

static double comm_s(const struct hec_device_diagnosis *d) {
    return hec_ledger_shared(d->steady);
}

/* Ranks meet in collectives of their hosts, and in no kernel. */
static bool meet_on_host(const struct hec_summary *s) {
    bool any = false;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_ledger_device *d = s->devices[i].steady;
        if (d && d->rows[HEC_STATE_COMM].ns > 0)
            return false;
        any = any || (d && d->rows[HEC_STATE_PEERS].ns > 0);
    }
    return any;
}

/* On the host the one that comes last is hardly ever seen in a collective. */
static bool takes_part(const struct hec_job_diagnosis *job, const struct hec_device_diagnosis *d, bool on_host) {
    for (int i = 0; i < job->rank_count && on_host && d->steady; i++)
        if (job->ranks[i].devices == hec_device_bit(d->readings.device.index))
            return true;
    /* where its kernels were not seen, communication is not known apart from compute: it cannot be compared with others' */
    return communicates(d->steady) && (on_host || d->steady->basis != HEC_LEDGER_CALLS);
}

/* Of the ledgers alone. */
static void find_by_share(const struct hec_summary *s, const struct hec_job_diagnosis *job,
                          struct hec_collectives *out) {
    const struct hec_device_diagnosis *least = NULL, *most = NULL;
    out->on_host = meet_on_host(s);
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (!takes_part(job, d, out->on_host))
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
    out->slowest = least->readings.device.index;
    out->waits_most = most->readings.device.index;
    for (int i = 0; i < s->device_count; i++) {
        int index = s->devices[i].readings.device.index;
        if (takes_part(job, &s->devices[i], out->on_host))
            out->waited_s[index] = out->lost_s[index] = comm_s(&s->devices[i]) - comm_s(least);
    }
}

/* The rank that a process of the schedule is, and its device. NULL: it is none, or has several devices. */
static struct hec_rank *rank_of(const struct hec_job_diagnosis *job, const struct hec_schedule *schedule, int process,
                                int *device) {
    uint64_t devices = 0;
    for (size_t i = 0; i < schedule->stream_count; i++)
        if (schedule->streams[i].pid == schedule->pid[process])
            devices |= hec_device_bit(schedule->streams[i].device);
    if (__builtin_popcountll(devices) != 1)
        return NULL;
    *device = __builtin_ctzll(devices);
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].pid == schedule->pid[process] && job->ranks[i].devices & devices)
            return &job->ranks[i];
    return NULL;
}

/* What was seen is a share of the time in which ranks met; the loop has the same. */
static double of_loop(const struct hec_device_diagnosis *d, double share) {
    return share * (hec_ledger_work(d->steady) + comm_s(d));
}

/* Of collectives that were matched: whether they say it of all ranks that communicate. */
static bool find_by_match(const struct hec_summary *s, const struct hec_schedule *schedule,
                          struct hec_job_diagnosis *job, struct hec_collectives *out) {
    double met_ns = schedule->group_count ? (double)(schedule->met_to_ns - schedule->met_from_ns) : 0;
    double held = 0, most_held = -1, most_lost = -1;
    if (schedule->group_count < HEC_COLLECTIVES_LEAST || !(met_ns > 0))
        return false;
    for (int p = 0; p < schedule->process_count; p++) {
        const struct hec_schedule_waits *w = &schedule->waits[p];
        int index = HEC_DEVICE_NONE;
        struct hec_rank *rank = w->count ? rank_of(job, schedule, p, &index) : NULL;
        const struct hec_device_diagnosis *d = rank ? hec_summary_device(s, index) : NULL;
        if (w->count && !(d && d->steady && communicates(d->steady)))
            return false;
        if (!w->count)
            continue;
        bool estimated = false;
        double watts = comm_watts(d, &estimated);
        out->waited_s[index] = fmin(of_loop(d, (double)w->waited_ns / met_ns), d->steady->rows[HEC_STATE_COMM].seconds);
        out->lost_s[index] = w->waited_ns ? out->waited_s[index] * (double)w->lost_ns / (double)w->waited_ns : 0;
        rank->waited_s = out->waited_s[index];
        rank->waited_j = rank->waited_s * watts;
        rank->held_s = (double)w->held_ns; /* until it is a share of what all wait */
        rank->collectives = w->count;
        rank->last = w->last;
        held += rank->held_s;
        if (rank->held_s > most_held) {
            most_held = rank->held_s;
            out->slowest = index;
        }
        if (out->lost_s[index] > most_lost) {
            most_lost = out->lost_s[index];
            out->waits_most = index;
        }
    }
    out->slowest_share = held > 0 ? most_held / held : NAN;
    out->matched = (int64_t)schedule->group_count;
    out->alone = (int64_t)schedule->alone;
    out->met_s = met_ns / HEC_NS_PER_S;
    out->transfer_s = (double)schedule->transfer_ns / (double)schedule->group_count / HEC_NS_PER_S;
    out->host_s =
        (double)schedule->collective_host_ns / (double)(schedule->communication - schedule->alone) / HEC_NS_PER_S;
    return true;
}

/* What others wait, and the joules meanwhile, are whose they wait for. */
static void charge(struct hec_job_diagnosis *job) {
    double held = 0, waited_s = 0, waited_j = 0;
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].collectives) {
            held += job->ranks[i].held_s;
            waited_s += job->ranks[i].waited_s;
            waited_j += job->ranks[i].waited_j;
        }
    for (int i = 0; i < job->rank_count; i++)
        if (job->ranks[i].collectives) {
            double share = held > 0 ? job->ranks[i].held_s / held : 0;
            job->ranks[i].held_s = waited_s * share;
            job->ranks[i].held_j = waited_j * share;
        }
}

/* Not all of them could be matched: then nothing is said of one. */
static void forget_waits(struct hec_job_diagnosis *job) {
    for (int i = 0; i < job->rank_count; i++) {
        struct hec_rank *r = &job->ranks[i];
        r->waited_s = r->waited_j = r->held_s = r->held_j = NAN;
        r->collectives = r->last = 0;
    }
}

/* In collectives of hosts ranks are seen to wait, by their stacks: what the one that waits least does so is what they take. All of it is
 * for that one. */
static void charge_on_host(const struct hec_summary *s, struct hec_job_diagnosis *job,
                           const struct hec_collectives *c) {
    struct hec_rank *held = NULL;
    double seconds = 0, joules = 0;
    for (int i = 0; i < job->rank_count; i++) {
        struct hec_rank *r = &job->ranks[i];
        const struct hec_device_diagnosis *d = hec_rank_device(s, r);
        bool estimated;
        if (!d || !(c->devices & hec_device_bit(d->readings.device.index)))
            continue;
        r->waited_s = c->waited_s[d->readings.device.index];
        r->waited_j = r->waited_s * comm_watts(d, &estimated);
        r->held_s = r->held_j = 0;
        seconds += r->waited_s;
        joules += r->waited_j;
        held = d->readings.device.index == c->slowest ? r : held;
    }
    if (held) {
        held->held_s = seconds;
        held->held_j = joules;
    }
}

/* Of the device that has most of them, where the steps are known that its kernels are of. */
static double kernels_a_step(const struct hec_summary *s) {
    double most = 0;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        int64_t count = 0;
        for (int k = 0; d->timeline && k < d->timeline->row_count; k++)
            count += d->timeline->rows[k].kernel_class == HEC_KERNEL_CLASS_COMM ? d->timeline->rows[k].count : 0;
        most = d->parts.steps > 0 ? fmax(most, (double)count / d->parts.steps) : most;
    }
    return most;
}

/* Of the device that has most of them. NAN: of some it is not known. */
static double bus_bytes(const struct hec_summary *s) {
    int64_t most = 0;
    double mean = NAN;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_timeline *t = s->devices[i].timeline;
        int64_t count = 0;
        double bytes = 0;
        for (int k = 0; t && k < t->row_count; k++)
            if (t->rows[k].kernel_class == HEC_KERNEL_CLASS_COMM) {
                count += t->rows[k].count;
                bytes += t->rows[k].bytes > 0 ? t->rows[k].bytes : NAN;
            }
        mean = count > most ? bytes / (double)count : mean;
        most = count > most ? count : most;
    }
    return mean;
}

static void find_collectives(const struct hec_summary *s, const struct hec_schedule *schedule,
                             struct hec_job_diagnosis *job) {
    const struct hec_collectives none = {.slowest = HEC_DEVICE_NONE,
                                         .waits_most = HEC_DEVICE_NONE,
                                         .slowest_share = NAN,
                                         .transfer_s = NAN,
                                         .bus_bytes = NAN,
                                         .host_s = NAN};
    struct hec_collectives *out = &job->collectives, matched;
    *out = none;
    out->a_step = kernels_a_step(s);
    find_by_share(s, job, out);
    matched = *out;
    memset(matched.waited_s, 0, sizeof matched.waited_s);
    memset(matched.lost_s, 0, sizeof matched.lost_s);
    if (out->count && find_by_match(s, schedule, job, &matched)) {
        *out = matched;
        hec_job_own(s, out);
        out->bus_bytes = bus_bytes(s);
        charge(job);
    } else {
        forget_waits(job);
        if (hec_job_infer(s, job, out))
            return;
        hec_job_own(s, out);
    }
    if (out->on_host && out->count > 1)
        charge_on_host(s, job, out);
    for (int i = 0; i < s->device_count && out->count; i++)
        if (communicates(s->devices[i].steady))
            out->lost_j +=
                out->lost_s[s->devices[i].readings.device.index] * comm_watts(&s->devices[i], &out->estimated);
}

/* Its kernels were recorded on one of these devices, or nothing at all is known of them. */
static bool is_seen(const struct hec_summary *s, const struct hec_rank *rank, uint64_t devices) {
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (rank->devices & devices & hec_device_bit(d->readings.device.index) &&
            !(d->steady && d->steady->basis == HEC_LEDGER_CALLS))
            return true;
    }
    return false;
}

bool hec_job_waits_seen(const struct hec_summary *s, int device) {
    const struct hec_job_diagnosis *job = &s->job;
    uint64_t with = device >= 0 && device < HEC_DEVICE_MAX ? job->with[device] : 0;
    int ranks = 0;
    for (int i = 0; i < job->rank_count; i++)
        ranks += is_seen(s, &job->ranks[i], with);
    if (job->size <= 1 && __builtin_popcountll(with) <= 1)
        return true;
    if (job->collectives.matched && ranks >= job->size)
        return true;
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_diagnosis *d = &s->devices[i];
        if (hec_device_bit(d->readings.device.index) & with &&
            !(d->timeline && d->steady && d->steady->basis == HEC_LEDGER_MEASURED))
            return false;
    }
    return ranks >= job->size;
}

/* A rank whose kernels were not recorded has no streams; its steps say which device is its. */
static void find_devices(const struct hec_summary *s, struct hec_job_diagnosis *job) {
    for (int r = 0; r < job->rank_count; r++) {
        struct hec_rank *rank = &job->ranks[r];
        for (int i = 0; i < s->device_count && !rank->devices; i++)
            if (s->devices[i].steps.count && s->devices[i].steps.pid == rank->pid)
                rank->devices = hec_device_bit(s->devices[i].readings.device.index);
    }
}

int hec_job_find(const struct hec_summary *summary, const struct hec_schedule *schedule,
                 struct hec_job_diagnosis *job) {
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
    find_devices(summary, job);
    find_collectives(summary, schedule, job);
    return hec_job_alike(summary, job);
}

void hec_job_split(struct hec_summary *s) {
    const struct hec_collectives *c = &s->job.collectives;
    for (int i = 0; i < s->device_count && (c->matched || c->inferred); i++) {
        struct hec_device_diagnosis *d = &s->devices[i];
        if (d->ledger && hec_device_bit(d->readings.device.index))
            hec_ledger_wait(d->ledger, c->waited_s[d->readings.device.index], c->inferred);
    }
}
