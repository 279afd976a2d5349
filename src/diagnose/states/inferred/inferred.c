#include "diagnose/states/inferred/inferred.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/trace.h"
#include "diagnose/states/inferred/kept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What states are made of (state.h). */
#define SLICE_NS HEC_NS_PER_MS /* while launching, busy and idle take turns so often */
#define SLICES_MOST 1024
#define PAUSE_NS 100000 /* and so long are pauses in it: shorter than what counts as the program's own work */
#define PENDING_MOST 262144
#define NOISE_NS 1000 /* busy for less is nothing */
#define LEAST_NS 2000 /* but what is launched runs for so long */

/* One process on one device. */
struct machine {
    struct hec_inferred *all;
    struct hec_inferred_use *use;
    struct hec_inferred_device device;
    struct hec_inferred_share share;
    uint32_t track;      /* of what is inferred */
    size_t window, rest; /* the first of the process that ends after what was reported */
    bool opened;         /* something was seen in that window */
};

struct pending {
    struct hec_activity a;
    uint64_t order;
};

struct hec_inferred {
    const struct hec_pass *from;
    struct hec_pass view; /* the same, as it is reported: its tables and survey are those of `from` but for tracks */
    struct hec_timeline_input input;
    struct hec_inferred_survey survey;
    bool keeps;
    struct hec_kept kept;
    struct machine *machines;
    size_t machine_count;
    enum hec_inferred_variant variant;
    /* of the pass at hand */
    bool reporting; /* else the shares are being gathered */
    uint32_t kinds;
    struct pending *pending;
    size_t pending_count, pending_capacity, settled;
    uint64_t order;
    int64_t now_ns;
    int (*visit)(void *to, const struct hec_activity *activities, size_t count);
    void *to;
};

/* ---- what is passed on, in order ---- */

static int by_start(const void *a, const void *b) {
    const struct pending *one = a, *other = b;
    if (one->a.start_ns != other->a.start_ns)
        return one->a.start_ns < other->a.start_ns ? -1 : 1;
    return one->order < other->order ? -1 : 1;
}

static int put(struct hec_inferred *f, const struct hec_activity *a) {
    if (!(f->kinds & HEC_ACTIVITY_BIT(a->kind)))
        return 0;
    if (!hec_list_room(f->pending, f->pending_count, f->pending_capacity, 4096))
        return HEC_ERR_NOMEM;
    f->pending[f->pending_count++] = (struct pending){*a, f->order++};
    return 0;
}

/* Nothing that starts earlier will come. */
static int64_t frontier(const struct hec_inferred *f) {
    int64_t t = f->now_ns;
    for (size_t i = 0; i < f->machine_count; i++) {
        const struct machine *m = &f->machines[i];
        const struct hec_inferred_process *p = m->use->process;
        int64_t at = m->device.started ? m->device.at_ns : INT64_MAX;
        if (p->inferred && m->window < p->windows.count && !m->opened &&
            p->windows.list[m->window].end_ns > f->now_ns && p->windows.list[m->window].start_ns < at)
            at = p->windows.list[m->window].start_ns;
        t = at < t ? at : t;
    }
    return t;
}

static int flush(struct hec_inferred *f, int64_t before_ns) {
    struct hec_activity chunk[256];
    size_t count = 0, n = 0;
    int err = 0;
    if (f->pending_count > 0)
        qsort(f->pending, f->pending_count, sizeof *f->pending, by_start);
    while (count < f->pending_count && f->pending[count].a.start_ns < before_ns && !err) {
        chunk[n++] = f->pending[count++].a;
        if (n == sizeof chunk / sizeof chunk[0]) {
            err = f->visit(f->to, chunk, n);
            n = 0;
        }
    }
    if (!err && n)
        err = f->visit(f->to, chunk, n);
    if (count > 0)
        memmove(f->pending, f->pending + count, (f->pending_count - count) * sizeof *f->pending);
    f->pending_count -= count;
    f->settled = f->pending_count;
    return err;
}

/* ---- what is inferred ---- */

static int put_busy(struct machine *m, int64_t start_ns, int64_t end_ns, const struct hec_inferred_launch *launch) {
    if (end_ns - start_ns < NOISE_NS)
        return 0;
    return put(m->all, &(struct hec_activity){
                           .kind = HEC_ACTIVITY_GRAPH,
                           .flags = HEC_ACTIVITY_INFERRED,
                           .detail = launch->kernel ? HEC_API_LAUNCH : HEC_API_GRAPH,
                           .track = m->track,
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .launch_ns = launch->start_ns,
                           .launch_end_ns = launch->end_ns < start_ns ? launch->end_ns : start_ns,
                           .launch_track = launch->thread,
                           .amount = NAN,
                       });
}

static int put_copy(struct machine *m, int64_t start_ns, int64_t end_ns, const struct hec_activity *call) {
    return put(m->all, &(struct hec_activity){
                           .kind = HEC_ACTIVITY_COPY,
                           .flags = HEC_ACTIVITY_INFERRED,
                           .track = m->track,
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .launch_ns = call->start_ns,
                           .launch_end_ns = call->end_ns,
                           .launch_track = call->track,
                           .amount = call->amount,
                           .from = call->from,
                           .to = call->to,
                       });
}

/* Just before t it had nothing to do, though nobody had waited for it. */
static bool rested(struct machine *m, int64_t t_ns) {
    int64_t until;
    return hec_inferred_share_of(&m->share, HEC_INFERRED_RUNNING, t_ns, &until) < 1;
}

/* While work was launched: by turns launching (busy for its share) and pausing. */
static int put_launching(struct machine *m, const struct hec_inferred_part *part, int64_t start_ns, int64_t end_ns,
                         double busy) {
    const struct hec_activity *call = &part->call;
    bool burst = call->kind == HEC_ACTIVITY_BURST;
    double waited = hec_inferred_share_waited(&m->share);
    double length = (double)(end_ns - start_ns), pause = burst ? call->from / 255.0 : 0;
    double slices = fmax(ceil(length / (double)SLICE_NS), ceil(length * pause / PAUSE_NS));
    int err = 0;
    if (busy >= 1)
        slices = fmax(1, ceil(length / (double)(100 * SLICE_NS)));
    slices = fmin(SLICES_MOST, fmax(1, slices));
    for (int64_t k = 0; (double)k < slices && !err; k++) {
        int64_t from = start_ns + (int64_t)(length * (double)k / slices);
        int64_t to = start_ns + (int64_t)(length * (double)(k + 1) / slices), whole = to - from;
        struct hec_inferred_launch launch = {from, from, part->launch.thread, false};
        if (k == 0 && waited < 1 && part->start_ns == from && part->launch.start_ns > from - HEC_INFERRED_QUEUED_NS)
            launch = part->launch;
        if (burst)
            err = put(m->all, &(struct hec_activity){.kind = HEC_ACTIVITY_API,
                                                     .detail = HEC_API_LAUNCH,
                                                     .flags = HEC_ACTIVITY_INFERRED,
                                                     .track = call->track,
                                                     .start_ns = from,
                                                     .end_ns = to - (int64_t)(pause * (double)whole),
                                                     .launch_ns = HEC_TIME_UNKNOWN,
                                                     .launch_end_ns = HEC_TIME_UNKNOWN});
        int64_t length_ns = (int64_t)fmax(busy * (double)whole, LEAST_NS);
        int64_t waits_ns = (int64_t)(waited * (double)(whole - length_ns));
        int64_t begun = k == 0 && call->start_ns == from && rested(m, from) ? from + m->device.limits.start_ns : from;
        begun = begun > from + waits_ns ? begun : from + waits_ns;
        if (!err)
            err = put_busy(m, begun, begun + (length_ns < to - begun ? length_ns : to - begun), &launch);
    }
    return err;
}

/* Where others have theirs: what has been launched waits for its turn for that part of the rest, and runs. */
static int put_turn(struct machine *m, const struct hec_inferred_part *part, int64_t start_ns, int64_t end_ns,
                    double busy, double waited) {
    double length = (double)(end_ns - start_ns);
    struct hec_inferred_launch launch = {start_ns, start_ns, part->launch.thread, part->launch.kernel};
    int64_t begun = start_ns + (int64_t)(waited * (1 - busy) * length), ended = begun + (int64_t)(busy * length);
    if (waited >= 1) { /* what is waited for ends with a turn */
        ended = end_ns;
        begun = end_ns - begun > LEAST_NS ? begun : end_ns - LEAST_NS;
    }
    return put_busy(m, begun > start_ns ? begun : start_ns, ended, &launch);
}

/* A part or a piece of one, outside of windows and with one share. */
static int report(struct machine *m, const struct hec_inferred_part *part, int64_t start_ns, int64_t end_ns,
                  double busy) {
    struct hec_inferred_launch launch = part->launch;
    switch (part->class) {
    case HEC_INFERRED_COPYING:
        return part->start_ns == start_ns ? put_copy(m, start_ns, part->end_ns, &part->call) : 0;
    case HEC_INFERRED_LAUNCHING:
        return put_launching(m, part, start_ns, end_ns, busy);
    case HEC_INFERRED_IDLE:
    case HEC_INFERRED_RUNNING:
        if (m->share.shared && part->class == HEC_INFERRED_RUNNING)
            return put_turn(m, part, start_ns, end_ns, busy, hec_inferred_share_waited(&m->share));
        launch.start_ns = launch.end_ns = start_ns; /* it goes on with what it has */
        return put_busy(m, start_ns, start_ns + (int64_t)(busy * (double)(end_ns - start_ns)), &launch);
    default:
        if (m->share.shared && busy < 1)
            return put_turn(m, part, start_ns, end_ns, busy, 1);
        if (launch.end_ns < start_ns - HEC_INFERRED_QUEUED_NS)
            launch.start_ns = launch.end_ns = start_ns;
        return put_busy(m, start_ns, end_ns, &launch);
    }
}

static int report_by_share(struct machine *m, const struct hec_inferred_part *part, int64_t start_ns, int64_t end_ns) {
    int err = 0;
    for (int64_t at = start_ns; at < end_ns && !err;) {
        int64_t until, to;
        double busy = hec_inferred_share_of(&m->share, part->class, at, &until);
        to = until < end_ns ? until : end_ns;
        err = report(m, part, at, to, busy);
        at = to;
    }
    return err;
}

/* What of a part lies in no rest: outside of windows. */
static int take_recorded(struct machine *m, const struct hec_inferred_part *part, int64_t start_ns, int64_t end_ns) {
    const struct hec_inferred_process *p = m->use->process;
    struct hec_inferred_part recorded = *part;
    int64_t seen = 0;
    int err = 0;
    for (int64_t at = start_ns; at < end_ns && !err;) {
        while (m->window < p->windows.count && p->windows.list[m->window].end_ns <= at) {
            m->window++;
            m->opened = false;
        }
        const struct hec_interval *w = m->window < p->windows.count ? &p->windows.list[m->window] : NULL;
        bool in = w && w->start_ns <= at;
        int64_t to = in ? w->end_ns : w && w->start_ns < end_ns ? w->start_ns : end_ns;
        to = to < end_ns ? to : end_ns;
        /* A wait across its beginning was for what had been launched before, of which CUPTI reports nothing. */
        bool blind = in && at == w->start_ns && part->class == HEC_INFERRED_BUSY && part->start_ns < at;
        if (in)
            seen += to - at;
        if (m->all->reporting && (!in || blind))
            err = report_by_share(m, part, at, to);
        at = to;
    }
    recorded.start_ns = start_ns;
    recorded.end_ns = end_ns;
    if (!m->all->reporting)
        hec_inferred_share_add(&m->share, &recorded, seen);
    return err;
}

static int take_part(void *context, const struct hec_inferred_part *part) {
    struct machine *m = context;
    const struct hec_intervals *rests = &m->use->process->rests;
    int64_t at = part->start_ns;
    int err = 0;
    while (m->rest < rests->count && rests->list[m->rest].end_ns <= at)
        m->rest++;
    for (size_t r = m->rest; r < rests->count && rests->list[r].start_ns < part->end_ns && !err; r++) {
        int64_t from = rests->list[r].start_ns > at ? rests->list[r].start_ns : at;
        int64_t to = rests->list[r].end_ns < part->end_ns ? rests->list[r].end_ns : part->end_ns;
        if (at < from)
            err = take_recorded(m, part, at, from);
        if (!m->all->reporting)
            hec_inferred_share_rest(&m->share, from, to);
        at = to;
    }
    return err || at == part->end_ns ? err : take_recorded(m, part, at, part->end_ns);
}

static void take_drained(void *context, bool behind) {
    struct machine *m = context;
    if (!m->all->reporting)
        hec_inferred_share_drained(&m->share, behind);
}

/* The first that CUPTI saw in a window, if it had to wait for what was launched before the window. */
static int take_seen(struct machine *m, const struct hec_activity *a) {
    const struct hec_inferred_process *p = m->use->process;
    int err = hec_inferred_device_advance(&m->device, a->start_ns);
    size_t w = m->window;
    while (w < p->windows.count && p->windows.list[w].end_ns <= a->start_ns)
        w++;
    bool in = w < p->windows.count && p->windows.list[w].start_ns <= a->start_ns;
    if (in && !(w == m->window && m->opened) && !err) {
        int64_t opened = p->windows.list[w].start_ns, returned = a->launch_end_ns > opened ? a->launch_end_ns : opened;
        struct hec_inferred_launch launch = {opened, opened, a->launch_track, false};
        m->window = w;
        m->opened = true;
        if (m->all->reporting && m->device.started && a->launch_ns != HEC_TIME_UNKNOWN &&
            a->start_ns - returned > HEC_INFERRED_QUEUED_NS)
            err = put_busy(m, opened, a->start_ns, &launch);
    }
    hec_inferred_device_seen(&m->device, a);
    return err;
}

/* ---- a pass ---- */

static struct machine *machine_of(struct hec_inferred *f, const struct hec_activity *a) {
    const struct hec_inferred_use *use = hec_inferred_survey_use(&f->survey, a);
    return use && use->process->inferred ? &f->machines[use - f->survey.uses] : NULL;
}

/* A copy that the call did not wait for: it runs beside. */
static int put_beside(struct machine *m, const struct hec_activity *a, const char *name) {
    if (!m->all->reporting || a->kind != HEC_ACTIVITY_API || a->detail != HEC_API_COPY ||
        hec_inferred_copy_blocks(a, name) || hec_inferred_process_seen(m->use->process, a->start_ns))
        return 0;
    int64_t start = a->end_ns + 1;
    if (m->device.busy_ns > start && m->device.busy_ns != INT64_MIN)
        start = m->device.busy_ns;
    return put_copy(m, start, start + hec_inferred_copy_ns(&m->all->survey.rates, a), a);
}

static int take_activities(void *to, const struct hec_activity *a, size_t count) {
    struct hec_inferred *f = to;
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        uint32_t bit = HEC_ACTIVITY_BIT(a[i].kind);
        if (!hec_timeline_plausible(&a[i]))
            continue;
        f->now_ns = a[i].start_ns;
        struct machine *m = bit & (HEC_INFERRED_CALLS | HEC_ACTIVITY_DEVICE) ? machine_of(f, &a[i]) : NULL;
        if (f->reporting)
            err = put(f, &a[i]);
        if (m && !err && (bit & HEC_INFERRED_CALLS)) {
            const char *name = a[i].kind == HEC_ACTIVITY_API ? hec_timeline_name(f->survey.tables, a[i].name) : "";
            err = hec_inferred_device_call(&m->device, &a[i], name);
            if (!f->reporting && hec_inferred_launches(&a[i]) > 0)
                hec_inferred_share_launches(&m->share, a[i].start_ns, hec_inferred_launches(&a[i]));
            if (!err)
                err = put_beside(m, &a[i], name);
        } else if (m && !err) {
            err = take_seen(m, &a[i]);
        }
        if (!err && f->reporting && f->pending_count >= 2 * f->settled + 1024)
            err = flush(f, frontier(f));
        if (!err && f->pending_count >= PENDING_MOST) { /* a device that hears nothing holds all up */
            for (size_t k = 0; k < f->machine_count && !err; k++)
                err = hec_inferred_device_advance(&f->machines[k].device, f->now_ns);
            if (!err)
                err = flush(f, f->now_ns);
        }
    }
    return err;
}

static const struct hec_inferred_limits limits_of[] = {
    [HEC_INFERRED_GUESS] = HEC_INFERRED_BEST,         [HEC_INFERRED_LEAST_BETWEEN] = HEC_INFERRED_LEAST,
    [HEC_INFERRED_LEAST_WITHIN] = HEC_INFERRED_LEAST, [HEC_INFERRED_MOST_BETWEEN] = HEC_INFERRED_MOST,
    [HEC_INFERRED_MOST_WITHIN] = HEC_INFERRED_MOST,
};

/* What was kept, or the run once more. */
static int replay(struct hec_inferred *f, uint32_t kinds,
                  int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to,
                  struct hec_why *why) {
    const struct hec_timeline_input *input = f->from->input;
    if (f->keeps && !f->kept.cut)
        return hec_kept_visit(&f->kept, visit, to);
    int err = input->activities ? input->activities(input->context, kinds, visit, to, why) : 0;
    return err == HEC_ERR_NOTFOUND ? 0 : err;
}

/* All of the run, reported (kinds to visit) or gathered. */
static int run(struct hec_inferred *f, bool reporting, uint32_t kinds, struct hec_why *why) {
    uint32_t needed = HEC_INFERRED_CALLS;
    for (size_t i = 0; i < f->machine_count; i++) {
        struct machine *m = &f->machines[i];
        hec_inferred_device_init(&m->device, &limits_of[f->variant], &f->survey.rates);
        m->device.part = take_part;
        m->device.drained = take_drained;
        m->device.context = m;
        m->window = m->rest = 0;
        m->opened = false;
        if (m->use->process->windows.count)
            needed |= HEC_ACTIVITY_DEVICE;
    }
    f->reporting = reporting;
    f->kinds = kinds;
    f->pending_count = f->settled = 0;
    f->now_ns = INT64_MIN;
    int err = replay(f, kinds | needed, take_activities, f, why);
    for (size_t i = 0; i < f->machine_count && !err; i++)
        err = hec_inferred_device_advance(&f->machines[i].device, f->machines[i].use->process->last_ns);
    return err || !reporting ? err : flush(f, INT64_MAX);
}

/* ---- the input ---- */

static int activities(void *context, uint32_t kinds,
                      int (*visit)(void *to, const struct hec_activity *activities, size_t count), void *to,
                      struct hec_why *why) {
    struct hec_inferred *f = context;
    f->visit = visit;
    f->to = to;
    return run(f, true, kinds, why);
}

/* ---- what is kept ---- */

/* A tracer in mode full or graph sees all that its process asks of a device; so does one whose windows leave next to nothing
 * of the run out. */
static bool may_be_inferred(struct hec_inferred_survey *s, int64_t end_ns) {
    bool by_mode = false, by_windows = false;
    for (size_t i = 0; i < s->tables->tracer_count; i++)
        by_mode |= s->tables->tracers[i].mode != HEC_TRACE_FULL && s->tables->tracers[i].mode != HEC_TRACE_GRAPH;
    for (size_t i = 0; i < s->process_count; i++)
        by_windows |= hec_inferred_process_unseen(&s->processes[i], 0, end_ns);
    return by_mode && by_windows;
}

static int take_all(void *context, const struct hec_activity *a, size_t count) {
    struct hec_inferred *f = context;
    int err = hec_inferred_survey_take(&f->survey, a, count);
    return !err && f->keeps ? hec_kept_add(&f->kept, hec_stages[HEC_STAGE_INFERRED].kinds, a, count) : err;
}

/* ---- the whole ---- */

int hec_inferred_begin(const struct hec_pass *pass, struct hec_inferred **out, struct hec_pass_consumer *consumer) {
    struct hec_inferred *f = *out = calloc(1, sizeof *f);
    if (!f)
        return HEC_ERR_NOMEM;
    f->from = pass;
    int err = hec_inferred_survey_begin(&f->survey, pass);
    f->keeps = !err && may_be_inferred(&f->survey, pass->input->end_ns);
    *consumer = hec_stage_consumer(HEC_STAGE_INFERRED, f, take_all);
    if (!f->keeps)
        consumer->kinds = HEC_INFERRED_CALLS;
    return err;
}

static int view_tracks(struct hec_inferred *f) {
    struct hec_timeline_tables *tables = &f->view.tables;
    size_t first = tables->track_count ? tables->track_count : 1;
    struct hec_track *tracks = calloc(first + f->machine_count, sizeof *tracks);
    if (tracks && tables->track_count)
        memcpy(tracks, tables->tracks, tables->track_count * sizeof *tracks);
    tables->tracks = tracks;
    if (!tracks)
        return HEC_ERR_NOMEM;
    for (size_t i = 0; i < f->machine_count; i++) {
        struct machine *m = &f->machines[i];
        m->track = (uint32_t)(first + i);
        if (m->use->process->inferred)
            tracks[m->track] = (struct hec_track){.id = m->track,
                                                  .kind = HEC_TRACK_STREAM,
                                                  .pid = m->use->process->pid,
                                                  .rank = m->use->process->rank,
                                                  .device = m->use->device,
                                                  .stream = -1,
                                                  .name = "inferred"};
    }
    tables->track_count = first + f->machine_count;
    return 0;
}

/* Of a process that rests, all is known but for that time. */
static int view_recorded(struct hec_inferred *f, const struct hec_inferred_process *p) {
    const struct hec_timeline_tables *tables = &f->from->tables;
    struct hec_window window = {.pid = p->pid, .start_ns = p->first_ns};
    int64_t end_ns = p->last_ns;
    int err = 0;
    for (size_t i = 0; i < tables->tracer_count; i++)
        if (tables->tracers[i].pid == p->pid && tables->tracers[i].last_ns > end_ns)
            end_ns = tables->tracers[i].last_ns;
    for (size_t i = 0; i < p->rests.count && !err; i++) {
        window.end_ns = p->rests.list[i].start_ns;
        err = window.end_ns > window.start_ns ? hec_windows_add(&f->view.windows, &window) : 0;
        window.start_ns = p->rests.list[i].end_ns;
    }
    window.end_ns = end_ns;
    return p->rests.count && !err && end_ns > window.start_ns ? hec_windows_add(&f->view.windows, &window) : err;
}

static int by_opening(const void *a, const void *b) {
    const struct hec_window *one = a, *other = b;
    return (one->start_ns > other->start_ns) - (one->start_ns < other->start_ns);
}

static int make_view(struct hec_inferred *f) {
    f->view = *f->from;
    f->view.windows = (struct hec_windows){0};
    f->input = *f->from->input;
    f->input.context = f;
    f->input.activities = activities;
    f->input.beside = NULL;
    f->view.input = &f->input;
    int err = view_tracks(f);
    for (size_t i = 0; i < f->from->windows.count && !err; i++) {
        const struct hec_window *w = &f->from->windows.list[i];
        const struct hec_inferred_process *p = f->survey.by_track[w->track];
        if (!p || !p->inferred)
            err = hec_windows_add(&f->view.windows, w);
    }
    for (size_t i = 0; i < f->survey.process_count && !err; i++)
        if (f->survey.processes[i].inferred)
            err = view_recorded(f, &f->survey.processes[i]);
    if (f->view.windows.count)
        qsort(f->view.windows.list, f->view.windows.count, sizeof *f->view.windows.list, by_opening);
    return err;
}

int hec_inferred_decide(struct hec_inferred *f, struct hec_meter *meter, uint64_t shared, bool *any,
                        struct hec_why *why) {
    struct hec_inferred_survey *s = &f->survey;
    bool windows = false;
    int err = hec_inferred_survey_decide(s);
    *any = false;
    for (size_t i = 0; i < s->process_count; i++)
        windows |= s->processes[i].inferred && s->processes[i].windows.count;
    if (windows && !err)
        err = replay(f, HEC_ACTIVITY_DEVICE, hec_inferred_survey_seen, s, why);
    f->machines = calloc(s->use_count + 1, sizeof *f->machines);
    if (!f->machines)
        err = HEC_ERR_NOMEM;
    for (size_t i = 0; i < s->use_count && !err; i++) {
        struct machine *m = &f->machines[f->machine_count++];
        m->all = f;
        m->use = &s->uses[i];
        hec_inferred_share_init(&m->share);
        if (m->use->process->inferred) {
            *any = true;
            m->share.shared = m->use->device >= 0 && m->use->device < HEC_DEVICE_MAX && shared >> m->use->device & 1;
            err = hec_inferred_share_read(&m->share, m->use, meter, why);
        }
    }
    if (*any && !err)
        return make_view(f);
    hec_kept_free(&f->kept);
    return err;
}

void hec_inferred_free(struct hec_inferred *f) {
    if (!f)
        return;
    for (size_t i = 0; i < f->machine_count; i++)
        hec_inferred_share_free(&f->machines[i].share);
    if (f->view.input) {
        free(f->view.tables.tracks);
        hec_windows_free(&f->view.windows);
    }
    free(f->machines);
    free(f->pending);
    hec_kept_free(&f->kept);
    hec_inferred_survey_free(&f->survey);
    free(f);
}

int hec_inferred_pass(struct hec_inferred *f, enum hec_inferred_variant variant, const struct hec_pass **out,
                      struct hec_why *why) {
    f->variant = variant;
    for (size_t i = 0; i < f->machine_count; i++)
        hec_inferred_share_begin(&f->machines[i].share, variant);
    int err = run(f, false, 0, why);
    for (size_t i = 0; i < f->machine_count && !err; i++)
        hec_inferred_share_end(&f->machines[i].share);
    *out = &f->view;
    return err;
}

enum hec_ledger_basis hec_inferred_basis(const struct hec_inferred *f, int device) {
    enum hec_ledger_basis basis = HEC_LEDGER_MEASURED;
    for (size_t i = 0; i < f->machine_count; i++) {
        const struct hec_inferred_use *use = f->machines[i].use;
        if (use->device == device && use->process->inferred)
            basis = use->process->windows.count || basis == HEC_LEDGER_GLIMPSE ? HEC_LEDGER_GLIMPSE : HEC_LEDGER_CALLS;
    }
    return basis;
}

struct hec_steady hec_inferred_loop(const struct hec_inferred *f, int device) {
    const struct hec_inferred_process *only = NULL;
    for (size_t i = 0; i < f->machine_count; i++) {
        const struct hec_inferred_use *use = f->machines[i].use;
        if (use->device != device)
            continue;
        if (only || !use->process->inferred)
            return (struct hec_steady){0};
        only = use->process;
    }
    return only ? hec_inferred_pauses_loop(&only->pauses) : (struct hec_steady){0};
}

bool hec_inferred_seen(struct hec_inferred *f, int device, int64_t start_ns, int64_t end_ns) {
    for (size_t i = 0; i < f->machine_count; i++) {
        const struct hec_inferred_use *use = f->machines[i].use;
        if (use->device == device && use->process->inferred &&
            hec_intervals_within(&use->process->windows, start_ns, end_ns) < end_ns - start_ns)
            return false;
    }
    return true;
}
