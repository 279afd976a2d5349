#include "diagnose/states/inferred/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNSEEN_LEAST 0.05        /* of the time in which work was given, or waited for */
#define RATE_LEAST_BYTES 1048576 /* smaller copies are mostly latency */

double hec_inferred_launches(const struct hec_activity *a) {
    if (a->kind == HEC_ACTIVITY_BURST)
        return a->amount >= 1 ? a->amount : 1;
    return a->kind == HEC_ACTIVITY_API && (a->detail == HEC_API_LAUNCH || a->detail == HEC_API_GRAPH);
}

static bool gives_work(const struct hec_activity *a) {
    return hec_inferred_launches(a) > 0 ||
           (a->kind == HEC_ACTIVITY_API && (a->detail == HEC_API_COPY || a->detail == HEC_API_MEMSET));
}

static struct hec_inferred_use *find_use(const struct hec_inferred_survey *s, const struct hec_inferred_process *p,
                                         int device) {
    for (size_t i = 0; i < s->use_count; i++)
        if (s->uses[i].process == p && s->uses[i].device == device)
            return &s->uses[i];
    return NULL;
}

static int add_use(struct hec_inferred_survey *s, struct hec_inferred_process *p, int device) {
    if (device < 0 || find_use(s, p, device))
        return 0;
    struct hec_inferred_use *grown = realloc(s->uses, (s->use_count + 1) * sizeof *grown);
    if (!grown)
        return HEC_ERR_NOMEM;
    s->uses = grown;
    s->uses[s->use_count++] =
        (struct hec_inferred_use){.process = p, .device = device, .busy_until_ns = INT64_MIN, .graph_ns = INT64_MIN};
    return 0;
}

struct hec_inferred_use *hec_inferred_survey_use(const struct hec_inferred_survey *s, const struct hec_activity *a) {
    struct hec_inferred_process *p = a->track < s->tables->track_count ? s->by_track[a->track] : NULL;
    struct hec_inferred_use *only = NULL;
    if (!p)
        return NULL;
    if (HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a->kind))
        return find_use(s, p, s->tables->tracks[a->track].device);
    if (a->device)
        return find_use(s, p, a->device - 1);
    for (size_t i = 0; i < s->use_count; i++)
        if (s->uses[i].process == p) {
            if (only)
                return NULL; /* which of several? */
            only = &s->uses[i];
        }
    return only;
}

bool hec_inferred_process_unseen(struct hec_inferred_process *process, int64_t first_ns, int64_t last_ns) {
    int64_t length = last_ns - first_ns, seen = hec_intervals_within(&process->windows, first_ns, last_ns);
    return (double)(length - seen) > UNSEEN_LEAST * (double)length;
}

bool hec_inferred_process_seen(struct hec_inferred_process *process, int64_t t_ns) {
    return hec_intervals_within(&process->windows, t_ns, t_ns + 1) > 0;
}

/* ---- processes ---- */

static int place_tracks(struct hec_inferred_survey *s) {
    s->processes = calloc(s->tables->track_count + 1, sizeof *s->processes);
    s->by_track = calloc(s->tables->track_count + 1, sizeof(struct hec_inferred_process *));
    if (!s->processes || !s->by_track)
        return HEC_ERR_NOMEM;
    for (uint32_t i = 1; i < s->tables->track_count; i++) {
        const struct hec_track *track = hec_timeline_track(s->tables, i);
        struct hec_inferred_process *p = NULL;
        if (!track)
            continue;
        for (size_t k = s->process_count; k-- > 0 && !p;)
            if (s->processes[k].pid == track->pid && s->processes[k].rank == track->rank)
                p = &s->processes[k];
        if (!p) {
            p = &s->processes[s->process_count++];
            *p = (struct hec_inferred_process){
                .pid = track->pid, .rank = track->rank, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
        }
        p->streams |= track->kind == HEC_TRACK_STREAM;
        s->by_track[i] = p;
    }
    return 0;
}

static void take_rate(struct hec_inferred_rates *rates, const struct hec_activity *a) {
    double seconds = (double)(a->end_ns - a->start_ns) / 1e9;
    if (!(a->amount >= RATE_LEAST_BYTES) || !(seconds > 0) || a->from >= HEC_MEMORY_KIND_COUNT ||
        a->to >= HEC_MEMORY_KIND_COUNT)
        return;
    double *rate = &rates->bytes_per_s[a->from][a->to];
    *rate = fmax(*rate, a->amount / seconds);
}

/* Of calls only those show a copy's rate that wait for it: the fastest waited for nothing else. */
static bool reports_rate(const struct hec_activity *a) {
    return a->kind == HEC_ACTIVITY_API && a->detail == HEC_API_COPY &&
           (a->from == HEC_MEMORY_PAGEABLE || a->to == HEC_MEMORY_PAGEABLE);
}

int hec_inferred_survey_take(struct hec_inferred_survey *s, const struct hec_activity *a, size_t count) {
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        struct hec_inferred_process *p = a[i].track < s->tables->track_count ? s->by_track[a[i].track] : NULL;
        if (!(HEC_INFERRED_CALLS & HEC_ACTIVITY_BIT(a[i].kind)) || !p || !hec_timeline_plausible(&a[i]))
            continue;
        p->timed |= a[i].kind == HEC_ACTIVITY_BURST || a[i].device > 0;
        if (gives_work(&a[i]) || a[i].kind == HEC_ACTIVITY_SYNC) { /* not what clears up at the end */
            p->first_ns = a[i].start_ns < p->first_ns ? a[i].start_ns : p->first_ns;
            p->last_ns = a[i].end_ns > p->last_ns ? a[i].end_ns : p->last_ns;
            err = hec_inferred_pauses_add(&p->pauses, &a[i],
                                          hec_intervals_within(&p->rests, p->pauses.until_ns, a[i].start_ns));
        }
        if (reports_rate(&a[i]))
            take_rate(&s->rates, &a[i]);
        if (!err && a[i].device && gives_work(&a[i]))
            err = add_use(s, p, a[i].device - 1);
    }
    return err;
}

int hec_inferred_survey_decide(struct hec_inferred_survey *s) {
    for (size_t i = 0; i < s->process_count; i++) {
        struct hec_inferred_process *p = &s->processes[i];
        bool used = false;
        if (!p->timed || p->last_ns <= p->first_ns || (p->streams && !p->windows.count))
            continue;
        for (size_t k = 0; k < s->use_count && !used; k++)
            used = s->uses[k].process == p;
        if (!used && add_use(s, p, s->only_device))
            return HEC_ERR_NOMEM;
        p->inferred = hec_inferred_process_unseen(p, p->first_ns, p->last_ns);
    }
    return 0;
}

/* ---- what a launch and a copy take, where windows show it ---- */

int hec_inferred_survey_seen(void *survey, const struct hec_activity *a, size_t count) {
    struct hec_inferred_survey *s = survey;
    for (size_t i = 0; i < count; i++) {
        bool device = HEC_ACTIVITY_DEVICE & HEC_ACTIVITY_BIT(a[i].kind);
        struct hec_inferred_use *use =
            device && hec_timeline_plausible(&a[i]) ? hec_inferred_survey_use(s, &a[i]) : NULL;
        if (!use || !hec_inferred_process_seen(use->process, a[i].start_ns))
            continue;
        if (a[i].kind == HEC_ACTIVITY_COPY)
            take_rate(&s->rates, &a[i]);
        bool node = a[i].flags & HEC_ACTIVITY_IN_GRAPH, kernel = a[i].kind == HEC_ACTIVITY_KERNEL;
        int64_t from = a[i].start_ns > use->busy_until_ns ? a[i].start_ns : use->busy_until_ns;
        if (use->busy_until_ns != INT64_MIN && from == a[i].start_ns) {
            int64_t queued = a[i].launch_end_ns > use->busy_until_ns ? a[i].launch_end_ns : use->busy_until_ns;
            bool waited = a[i].launch_ns != HEC_TIME_UNKNOWN && from - queued > HEC_INFERRED_QUEUED_NS;
            use->rest_ns += (double)(from - use->busy_until_ns);
            use->waited_ns += waited ? (double)(from - queued) : 0;
        }
        if (a[i].kind != HEC_ACTIVITY_COPY || node) /* copies are counted by their calls */
            use->busy_ns += a[i].end_ns > from ? (double)(a[i].end_ns - from) : 0;
        use->busy_until_ns = a[i].end_ns > use->busy_until_ns ? a[i].end_ns : use->busy_until_ns;
        if (node ? a[i].launch_ns > use->graph_ns : kernel || a[i].kind == HEC_ACTIVITY_GRAPH)
            use->launches++;
        if (node)
            use->graph_ns = a[i].launch_ns > use->graph_ns ? a[i].launch_ns : use->graph_ns;
    }
    return 0;
}

int hec_inferred_survey_begin(struct hec_inferred_survey *s, const struct hec_pass *pass) {
    memset(s, 0, sizeof *s);
    s->tables = &pass->tables;
    s->only_device = pass->input->device_count == 1 ? pass->input->devices[0].index : -1;
    int err = place_tracks(s);
    for (size_t i = 0; i < pass->windows.count + pass->rests.count && !err; i++) {
        bool rest = i >= pass->windows.count;
        const struct hec_window *w = rest ? &pass->rests.list[i - pass->windows.count] : &pass->windows.list[i];
        struct hec_inferred_process *p = w->track < s->tables->track_count ? s->by_track[w->track] : NULL;
        err = p ? hec_intervals_append(rest ? &p->rests : &p->windows, w->start_ns, w->end_ns) : 0;
    }
    return err;
}

void hec_inferred_survey_free(struct hec_inferred_survey *s) {
    for (size_t i = 0; i < s->process_count; i++) {
        hec_intervals_free(&s->processes[i].windows);
        hec_intervals_free(&s->processes[i].rests);
        free(s->processes[i].pauses.list);
    }
    free(s->processes);
    free(s->by_track);
    free(s->uses);
    memset(s, 0, sizeof *s);
}
