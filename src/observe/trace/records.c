#include "observe/trace/records.h"

#include "base/clock.h"
#include "base/error.h"
#include "observe/trace/peer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* CUPTI's clock is turned into ours with an error far below this; what is outside is no time of this run. */
#define CLOCK_SLACK_NS HEC_NS_PER_S
#define BYTES_MAX (UINT64_C(1) << 60)
#define COUNT_MAX ((uint64_t)INT64_MAX / 4)
/* A call that took no longer explains no gap, unless it launched something. */
#define CALL_MIN_NS 1000

_Static_assert((int)HEC_TRACE_MEMORY_COUNT <= (int)HEC_MEMORY_KIND_COUNT &&
                   (int)HEC_TRACE_MEMORY_MANAGED == (int)HEC_MEMORY_MANAGED,
               "kinds of memory have the same numbers in the record and in the model");
_Static_assert((int)HEC_TRACE_WAIT_EVENT == (int)HEC_SYNC_EVENT && (int)HEC_TRACE_WAIT_STREAM == (int)HEC_SYNC_STREAM &&
                   (int)HEC_TRACE_WAIT_CONTEXT == (int)HEC_SYNC_CONTEXT,
               "kinds of synchronisation too");
_Static_assert((int)HEC_TRACE_CALL_CLASS_COUNT == (int)HEC_API_CLASS_COUNT &&
                   (int)HEC_TRACE_CALL_MODULE == (int)HEC_API_MODULE,
               "classes of calls too");

/* What every kind of record is taken with. */
struct taking {
    struct hec_trace_peer *peer;
    struct hec_trace_run *run;
    const struct hec_ring_record *record;
    union hec_trace_payload u;
    int64_t now_ns;
};

/* ---- definitions ---- */

static bool take_name(struct hec_trace_peer *peer, struct hec_trace_run *run, const struct hec_ring_name *piece) {
    if (piece->piece == 0 && !hec_ring_names_text(&peer->names, piece->id)) {
        size_t bytes = (size_t)piece->length + 96; /* and its entry */
        if (bytes > run->budget.left || peer->names_bytes + bytes > HEC_TRACE_NAMES_BYTES)
            return false;
        peer->names_bytes += bytes;
        run->budget.left -= bytes;
    }
    return hec_ring_names_add(&peer->names, piece) == HEC_OK;
}

static const char *text_of(const struct hec_trace_peer *peer, uint32_t id) {
    const char *text = hec_ring_names_text(&peer->names, id);
    return text ? text : "";
}

/* The sink's id of a name; 0 when it is not defined. */
static uint32_t name_of(struct hec_trace_peer *peer, struct hec_trace_run *run, uint32_t id) {
    uint32_t known = 0;
    if (hec_trace_map_get(&peer->name_ids, id, &known))
        return known;
    const char *text = hec_ring_names_text(&peer->names, id);
    if (!text)
        return 0;
    known = run->sink->trace_name(run->sink->context, text);
    hec_trace_map_put(&peer->name_ids, &run->budget, id, known);
    return known;
}

static int version_of(uint32_t version) {
    return version && version <= INT32_MAX ? (int)version : -1;
}

/* Whether the time of a record is one of this run. A program's clock may be shifted (libfaketime), or the record forged. */
static bool timely(const struct taking *t) {
    int64_t t_ns = t->record->t_ns;
    return t_ns > 0 && t_ns >= t->run->opened_ns - CLOCK_SLACK_NS && t_ns <= t->now_ns + CLOCK_SLACK_NS;
}

static void describe(const struct taking *t) {
    struct hec_trace_peer *peer = t->peer;
    struct hec_trace_run *run = t->run;
    const struct hec_trace_process *process = &t->u.process;
    struct hec_tracer *tracer = &peer->tracer;
    tracer->cupti_version = version_of(process->cupti_version);
    tracer->driver_version = version_of(process->driver_version);
    snprintf(tracer->library, sizeof tracer->library, "%s", text_of(peer, process->library));
    snprintf(tracer->why, sizeof tracer->why, "%s",
             timely(t) ? text_of(peer, process->why)
                       : "its clock is not that of this machine (libfaketime?): its times are not used");
    if (process->attached_ns > 0)
        hec_trace_pending_begin(&peer->tracks.pending, &run->budget, process->attached_ns);
}

static bool take_process(const struct taking *t) {
    struct hec_trace_peer *peer = t->peer;
    const struct hec_trace_process *process = &t->u.process;
    struct hec_tracer *tracer = &peer->tracer;
    if (process->mode >= HEC_TRACE_MODE_COUNT)
        return false;
    if (peer->begun) { /* CUPTI has come, or why it has not is known now */
        if (process->abi != HEC_TRACE_ABI || (int)process->mode != tracer->mode)
            return false;
        describe(t);
        return true;
    }
    peer->begun = true;
    tracer->first_ns = tracer->last_ns = timely(t) ? t->record->t_ns : t->now_ns;
    tracer->mode = (int)process->mode;
    if (process->abi != HEC_TRACE_ABI) {
        peer->mute = true;
        snprintf(tracer->why, sizeof tracer->why, "its tracer speaks version %u of the records, this hec version %u",
                 process->abi, HEC_TRACE_ABI);
        return true;
    }
    describe(t);
    return true;
}

static bool take_device(const struct taking *t) {
    const struct hec_trace_device *device = &t->u.device;
    if (device->ordinal >= HEC_TRACE_ORDINALS_MAX || !memchr(device->pci_bus_id, '\0', sizeof device->pci_bus_id))
        return false;
    struct hec_trace_ordinal *ordinal = &t->peer->tracks.ordinals[device->ordinal];
    if (!ordinal->reported && !ordinal->resolved) {
        ordinal->reported = true;
        ordinal->device = *device;
        for (char *c = ordinal->device.pci_bus_id; *c; c++)
            if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
                *c = '?';
    }
    return true;
}

static bool take_config(const struct taking *t) {
    const struct hec_trace_config *config = &t->u.config;
    uint32_t known;
    if (config->id == 0)
        return false;
    if (hec_trace_map_get(&t->peer->kernels, config->id, &known))
        return true;
    uint32_t name = name_of(t->peer, t->run, config->name);
    if (name == 0)
        return false;
    struct hec_kernel kernel = {
        .name = name,
        .grid = {config->grid[0], config->grid[1], config->grid[2]},
        .block = {config->block[0], config->block[1], config->block[2]},
        .registers = config->registers,
        .static_shared_bytes = config->static_shared_bytes,
        .dynamic_shared_bytes = config->dynamic_shared_bytes,
    };
    known = t->run->sink->trace_kernel(t->run->sink->context, &kernel);
    hec_trace_map_put(&t->peer->kernel_names, &t->run->budget, config->id, name);
    return hec_trace_map_put(&t->peer->kernels, &t->run->budget, config->id, known);
}

/* ---- activities ---- */

/* The times of a record, once they are those of this run. HEC_OK, HEC_ERR_CORRUPT, or HEC_ERR_LIMIT: after its end. */
static int times_of(const struct taking *t, int64_t duration_ns, struct hec_activity *activity) {
    int64_t start_ns = t->record->t_ns;
    if (!timely(t) || duration_ns < 0 || duration_ns > t->now_ns + CLOCK_SLACK_NS - start_ns)
        return HEC_ERR_CORRUPT;
    if (start_ns > t->run->end_ns)
        return HEC_ERR_LIMIT;
    *activity = (struct hec_activity){.start_ns = start_ns,
                                      .end_ns = start_ns + duration_ns,
                                      .launch_ns = HEC_TIME_UNKNOWN,
                                      .launch_end_ns = HEC_TIME_UNKNOWN};
    if (activity->end_ns > t->peer->tracer.last_ns)
        t->peer->tracer.last_ns = activity->end_ns;
    return HEC_OK;
}

/* Begin an activity; false: the record is done with, *valid says how. */
static bool begin(const struct taking *t, int64_t duration_ns, struct hec_activity *activity, bool *valid) {
    int err = times_of(t, duration_ns, activity);
    *valid = err != HEC_ERR_CORRUPT;
    t->peer->process.late += err == HEC_ERR_LIMIT;
    return err == HEC_OK;
}

static void hold(const struct taking *t, struct hec_trace_track *track, const struct hec_activity *activity) {
    t->peer->received++;
    hec_trace_track_add(&t->peer->tracks, t->run, track, activity, hec_trace_ms(t->run, t->now_ns));
}

static uint32_t index_of(const struct hec_trace_tracks *tracks, const struct hec_trace_track *track) {
    return (uint32_t)(track - tracks->list);
}

/* Its call is looked for (match.h). */
static bool on_device(const struct taking *t, const struct hec_activity *activity,
                      struct hec_trace_match_device *device) {
    struct hec_trace_tracks *tracks = &t->peer->tracks;
    if (device->device >= HEC_TRACE_ORDINALS_MAX)
        return false;
    if (activity->end_ns > t->peer->device_last_ns)
        t->peer->device_last_ns = activity->end_ns;
    if (t->peer->device_first_ns == 0 || activity->start_ns < t->peer->device_first_ns)
        t->peer->device_first_ns = activity->start_ns;
    struct hec_trace_track *track = hec_trace_stream(tracks, t->run, device->device, device->context, device->stream);
    device->start_ns = activity->start_ns;
    device->end_ns = activity->end_ns;
    device->in_graph = activity->flags & HEC_ACTIVITY_IN_GRAPH;
    if (track && hec_trace_pending_device(&tracks->pending, &t->run->budget, activity, index_of(tracks, track), device,
                                          t->now_ns))
        t->peer->received++;
    else
        hold(t, track, activity);
    return true;
}

static bool take_kernel(const struct taking *t) {
    const struct hec_trace_kernel *kernel = &t->u.kernel;
    struct hec_activity activity;
    bool valid;
    if (!begin(t, kernel->duration_ns, &activity, &valid))
        return valid;
    activity.kind = HEC_ACTIVITY_KERNEL;
    activity.flags = kernel->graph || (t->record->flags & HEC_TRACE_IN_GRAPH) ? HEC_ACTIVITY_IN_GRAPH : 0;
    uint32_t id = 0; /* its definition was lost: the time counts all the same */
    struct hec_trace_match_device device = {.context = kernel->context,
                                            .stream = kernel->stream,
                                            .correlation = kernel->correlation,
                                            .device = kernel->device,
                                            .match_class = HEC_TRACE_MATCH_KERNEL};
    if (hec_trace_map_get(&t->peer->kernels, kernel->config, &id))
        activity.name = id;
    if (hec_trace_map_get(&t->peer->kernel_names, kernel->config, &id))
        device.name = id;
    return on_device(t, &activity, &device);
}

static bool take_copy(const struct taking *t) {
    const struct hec_trace_copy *copy = &t->u.copy;
    struct hec_activity activity;
    bool valid;
    if (copy->bytes > BYTES_MAX || copy->from >= HEC_TRACE_MEMORY_COUNT || copy->to >= HEC_TRACE_MEMORY_COUNT)
        return false;
    if (!begin(t, copy->duration_ns, &activity, &valid))
        return valid;
    activity.kind = t->record->kind == HEC_TRACE_COPY ? HEC_ACTIVITY_COPY : HEC_ACTIVITY_MEMSET;
    activity.amount = (double)copy->bytes;
    activity.from = activity.kind == HEC_ACTIVITY_COPY ? copy->from : 0;
    activity.to = copy->to;
    if (copy->graph || (t->record->flags & HEC_TRACE_IN_GRAPH))
        activity.flags |= HEC_ACTIVITY_IN_GRAPH;
    if (activity.kind == HEC_ACTIVITY_COPY && (t->record->flags & HEC_TRACE_PEER))
        activity.flags |= HEC_ACTIVITY_PEER;
    struct hec_trace_match_device device = {.bytes = copy->bytes,
                                            .context = copy->context,
                                            .stream = copy->stream,
                                            .correlation = copy->correlation,
                                            .device = copy->device,
                                            .match_class = activity.kind == HEC_ACTIVITY_COPY ? HEC_TRACE_MATCH_COPY
                                                                                              : HEC_TRACE_MATCH_MEMSET};
    return on_device(t, &activity, &device);
}

static bool take_graph(const struct taking *t) {
    const struct hec_trace_graph *graph = &t->u.graph;
    struct hec_activity activity;
    bool valid;
    if (!begin(t, graph->duration_ns, &activity, &valid))
        return valid;
    activity.kind = HEC_ACTIVITY_GRAPH;
    activity.amount = NAN;
    struct hec_trace_match_device device = {.context = graph->context,
                                            .stream = graph->stream,
                                            .correlation = graph->correlation,
                                            .device = graph->device,
                                            .match_class = HEC_TRACE_MATCH_GRAPH};
    return on_device(t, &activity, &device);
}

/* The device that was current, as its ordinal plus 1: resolved when it leaves. */
static uint8_t device_of(uint16_t ordinal) {
    return ordinal < HEC_TRACE_ORDINALS_MAX ? (uint8_t)(ordinal + 1) : 0;
}

static bool launches(uint32_t call_class) {
    return call_class == HEC_TRACE_CALL_LAUNCH || call_class == HEC_TRACE_CALL_GRAPH ||
           call_class == HEC_TRACE_CALL_COPY || call_class == HEC_TRACE_CALL_MEMSET;
}

static struct hec_trace_match_call match_of(const struct hec_trace_call *call, const struct hec_activity *activity,
                                            uint32_t track) {
    static const uint8_t classes[HEC_TRACE_CALL_CLASS_COUNT] = {
        [HEC_TRACE_CALL_LAUNCH] = HEC_TRACE_MATCH_KERNEL,
        [HEC_TRACE_CALL_GRAPH] = HEC_TRACE_MATCH_GRAPH,
        [HEC_TRACE_CALL_COPY] = HEC_TRACE_MATCH_COPY,
        [HEC_TRACE_CALL_MEMSET] = HEC_TRACE_MATCH_MEMSET,
    };
    bool sized = call->call_class == HEC_TRACE_CALL_COPY || call->call_class == HEC_TRACE_CALL_MEMSET;
    return (struct hec_trace_match_call){
        .start_ns = activity->start_ns,
        .end_ns = activity->end_ns,
        .func = sized ? 0 : call->amount,
        .stream = call->stream,
        .bytes = sized && call->amount <= BYTES_MAX ? call->amount : 0,
        .track = track + 1,
        .device = call->device,
        .match_class = classes[call->call_class],
    };
}

static bool take_call(const struct taking *t) {
    const struct hec_trace_call *call = &t->u.call;
    struct hec_activity activity;
    bool valid, copies = call->call_class == HEC_TRACE_CALL_COPY, waits = call->call_class == HEC_TRACE_CALL_SYNC;
    if (call->call_class >= HEC_TRACE_CALL_CLASS_COUNT ||
        (copies &&
         (call->amount > BYTES_MAX || call->from >= HEC_TRACE_MEMORY_COUNT || call->to >= HEC_TRACE_MEMORY_COUNT)) ||
        (waits && call->from >= HEC_SYNC_TYPE_COUNT))
        return false;
    if (!begin(t, call->duration_ns, &activity, &valid))
        return valid;
    bool sized = copies || call->call_class == HEC_TRACE_CALL_MEMSET || call->call_class == HEC_TRACE_CALL_ALLOC;
    bool launcher = launches(call->call_class);
    if (!launcher && !waits && call->duration_ns <= CALL_MIN_NS) {
        t->peer->received++;
        return true;
    }
    activity.device = device_of(call->device);
    activity.name = name_of(t->peer, t->run, call->function);
    if (waits) {
        activity.kind = HEC_ACTIVITY_SYNC;
        activity.detail = call->from;
        activity.name = 0;
    } else {
        activity.kind = HEC_ACTIVITY_API;
        activity.detail = (uint8_t)call->call_class;
        activity.amount = sized && call->amount <= BYTES_MAX ? (double)call->amount : 0;
        activity.from = copies ? call->from : 0;
        activity.to = copies ? call->to : 0;
    }
    struct hec_trace_tracks *tracks = &t->peer->tracks;
    struct hec_trace_track *track = hec_trace_thread(tracks, t->run, t->record->tid);
    if (launcher && track && call->result == 0) {
        struct hec_trace_match_call match = match_of(call, &activity, index_of(tracks, track));
        if (copies) {
            hec_trace_pending_hint(&tracks->pending, &match);
        } else if (hec_trace_pending_call(&tracks->pending, &activity, &match)) {
            t->peer->received++;
            return true;
        }
    }
    if (!copies || call->duration_ns > CALL_MIN_NS)
        hold(t, track, &activity);
    return true;
}

/* Of 255. */
static uint8_t share(int64_t part_ns, int64_t whole_ns) {
    if (part_ns <= 0 || whole_ns <= 0)
        return 0;
    return part_ns >= whole_ns ? 255 : (uint8_t)lround(255.0 * (double)part_ns / (double)whole_ns);
}

static bool take_burst(const struct taking *t) {
    const struct hec_trace_burst *burst = &t->u.burst;
    struct hec_activity activity;
    bool valid;
    if (burst->launches == 0 || burst->graphs > burst->launches)
        return false;
    if (!begin(t, burst->duration_ns, &activity, &valid))
        return valid;
    activity.kind = HEC_ACTIVITY_BURST;
    activity.amount = burst->launches;
    activity.device = device_of(burst->device);
    activity.from = share(burst->pauses_ns, burst->duration_ns);
    activity.to = share(burst->in_calls_ns, burst->duration_ns);
    activity.name = burst->name ? name_of(t->peer, t->run, burst->name) : 0;
    hold(t, hec_trace_thread(&t->peer->tracks, t->run, t->record->tid), &activity);
    return true;
}

/* ---- what the tracer reports of itself ---- */

static void give_window(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t start_ns,
                        const struct hec_trace_window *window) {
    struct hec_activity activity = {
        .start_ns = start_ns,
        .end_ns = start_ns + window->duration_ns,
        .launch_ns = HEC_TIME_UNKNOWN,
        .launch_end_ns = HEC_TIME_UNKNOWN,
        .amount = (double)window->records,
        .track = hec_trace_process_track(&peer->tracks, run),
        .kind = HEC_ACTIVITY_WINDOW,
        .detail = (uint8_t)window->mode,
    };
    run->windows++;
    if (activity.track)
        hec_trace_give(run, &activity);
}

/* The window that is open ends as far as it was reported. */
static void close_window(struct hec_trace_peer *peer, struct hec_trace_run *run) {
    bool reported = peer->tracer.windows < HEC_TRACE_WINDOWS_MAX && run->windows < HEC_TRACE_RUN_WINDOWS_MAX;
    if (!peer->window_open)
        return;
    peer->window_open = false;
    if (!reported) {
        peer->windows_left_out++;
        return;
    }
    peer->tracer.windows++;
    peer->tracer.traced_ns += peer->window.duration_ns;
    give_window(peer, run, peer->window_ns, &peer->window);
}

/* A reader that stays for a while may leave before a window is reported: then it began with what was recorded first. */
void hec_trace_end_window(struct hec_trace_peer *peer, struct hec_trace_run *run) {
    if (peer->process.ring.borrowed && !peer->window_open && peer->tracer.windows == 0 &&
        peer->device_last_ns > peer->device_first_ns) {
        peer->window = (struct hec_trace_window){.mode = (uint32_t)peer->tracer.mode};
        peer->window_ns = peer->device_first_ns;
        peer->window_open = true;
    }
    if (peer->device_last_ns > peer->window_ns + peer->window.duration_ns)
        peer->window.duration_ns = peer->device_last_ns - peer->window_ns;
    close_window(peer, run);
}

static bool take_window(const struct taking *t) {
    struct hec_trace_peer *peer = t->peer;
    struct hec_activity activity;
    bool valid;
    if (t->u.window.mode == HEC_TRACE_OFF || t->u.window.mode >= HEC_TRACE_MODE_COUNT ||
        t->u.window.records > COUNT_MAX)
        return false;
    if (!begin(t, t->u.window.duration_ns, &activity, &valid))
        return valid;
    if (peer->window_open && peer->window.number != t->u.window.number)
        close_window(peer, t->run); /* its end was lost */
    peer->window = t->u.window;
    peer->window_ns = t->record->t_ns;
    peer->window_open = true;
    if (!(t->record->flags & HEC_TRACE_WINDOW_OPEN))
        close_window(peer, t->run);
    return true;
}

void hec_trace_end_rest(struct hec_trace_peer *peer, struct hec_trace_run *run, int64_t end_ns) {
    int64_t start_ns = peer->rest_ns;
    peer->rest_ns = 0;
    end_ns = end_ns < run->end_ns ? end_ns : run->end_ns;
    if (start_ns == 0 || end_ns <= start_ns)
        return;
    if (peer->rests++ < HEC_TRACE_RESTS_MAX && run->windows < HEC_TRACE_RUN_WINDOWS_MAX)
        give_window(peer, run, start_ns,
                    &(struct hec_trace_window){.duration_ns = end_ns - start_ns, .mode = HEC_TRACE_OFF});
    else
        peer->windows_left_out++;
}

/* As long as it is not over, it lasts. */
static bool take_rest(const struct taking *t) {
    struct hec_trace_peer *peer = t->peer;
    struct hec_activity activity;
    bool valid;
    if (!begin(t, t->u.rest.duration_ns, &activity, &valid))
        return valid;
    if (peer->rest_ns != 0 && peer->rest_ns != activity.start_ns)
        hec_trace_end_rest(peer, t->run, activity.start_ns); /* its end was lost */
    peer->rest_ns = activity.start_ns;
    if (!(t->record->flags & HEC_TRACE_WINDOW_OPEN))
        hec_trace_end_rest(peer, t->run, activity.end_ns);
    return true;
}

static bool take_counts(const struct taking *t) {
    const struct hec_trace_counts *counts = &t->u.counts;
    struct hec_tracer *tracer = &t->peer->tracer;
    if (counts->dropped > COUNT_MAX || counts->bad > COUNT_MAX || counts->self_ns < 0)
        return false;
    tracer->dropped = (int64_t)counts->dropped;
    t->peer->counted_bad = counts->bad;
    t->peer->threads_left_out = counts->threads_left_out;
    tracer->self_ns = hec_trace_sum(counts->self_ns, 0);
    tracer->estimate_ppm = counts->estimate_ppm;
    if (t->record->t_ns > tracer->last_ns && t->record->t_ns <= t->now_ns)
        tracer->last_ns = t->record->t_ns;
    return true;
}

static bool take_holder(const struct taking *t) {
    struct hec_trace_peer *peer = t->peer;
    const struct hec_trace_holder *holder = &t->u.holder;
    int64_t t_ns = t->record->t_ns;
    const char *name = hec_ring_names_text(&peer->names, holder->name);
    if ((holder->name && !name) || t_ns < t->run->opened_ns || t_ns > t->now_ns)
        return false;
    if (peer->holder_since_ns && t_ns > peer->holder_since_ns)
        peer->tracer.holder_ns = hec_trace_sum(peer->tracer.holder_ns, t_ns - peer->holder_since_ns);
    bool had = peer->holder_since_ns != 0;
    peer->holder_since_ns = name ? t_ns : 0;
    if (name) {
        snprintf(peer->tracer.holder, sizeof peer->tracer.holder, "%s", name);
        hec_reporter_event(&t->run->reporter, HEC_EVENT_TRACE_HOLDER, t_ns, "process %d: %s has CUPTI; HEC stands down",
                           (int)peer->process.pid, peer->tracer.holder);
    } else if (had) {
        hec_reporter_event(&t->run->reporter, HEC_EVENT_TRACE_HOLDER, t_ns,
                           "process %d: %s has left CUPTI; HEC does not come back", (int)peer->process.pid,
                           peer->tracer.holder);
    }
    return true;
}

void hec_trace_peer_record(struct hec_trace_peer *peer, struct hec_trace_run *run, const struct hec_ring_record *record,
                           int64_t now_ns) {
    static bool (*const takers[HEC_TRACE_LIMIT])(const struct taking *) = {
        [HEC_TRACE_PROCESS] = take_process, [HEC_TRACE_DEVICE] = take_device,      [HEC_TRACE_CONFIG] = take_config,
        [HEC_TRACE_KERNEL] = take_kernel,   [HEC_TRACE_COPY] = take_copy,          [HEC_TRACE_MEMSET] = take_copy,
        [HEC_TRACE_CALL] = take_call,       [HEC_TRACE_GRAPH_LAUNCH] = take_graph, [HEC_TRACE_BURST] = take_burst,
        [HEC_TRACE_WINDOW] = take_window,   [HEC_TRACE_COUNTS] = take_counts,      [HEC_TRACE_HOLDER] = take_holder,
        [HEC_TRACE_REST] = take_rest,
    };
    if (peer->mute)
        return;
    if (record->kind == HEC_RING_NAME) {
        peer->process.bad += !take_name(peer, run, &record->u.name);
        return;
    }
    if (record->kind < HEC_TRACE_PROCESS || record->kind >= HEC_TRACE_LIMIT ||
        (!peer->begun && record->kind != HEC_TRACE_PROCESS)) {
        peer->process.bad++;
        return;
    }
    struct taking t = {.peer = peer, .run = run, .record = record, .now_ns = now_ns};
    memcpy(&t.u, record->u.bytes, sizeof t.u);
    peer->process.bad += !takers[record->kind](&t);
}
