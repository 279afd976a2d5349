#include "report/export/perfetto_tracks.h"

#include "base/text.h"
#include "report/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* uuids: processes, threads and devices by what they are, lanes and counters counted. */
#define UUID_PROCESS (UINT64_C(1) << 32)
#define UUID_TRACK (UINT64_C(2) << 32)
#define UUID_DEVICE (UINT64_C(3) << 32)
#define UUID_COUNTED (UINT64_C(4) << 32)

int hec_perfetto_tracks_init(struct hec_perfetto_tracks *tracks, struct hec_export_tables *tables,
                             struct hec_proto *proto) {
    size_t count = tables->timeline.track_count;
    *tracks = (struct hec_perfetto_tracks){
        .tables = tables,
        .proto = proto,
        .lanes = calloc(count * HEC_PART_COUNT + 1, sizeof *tracks->lanes),
        .described = calloc(count + 1, sizeof *tracks->described),
        .next_uuid = UUID_COUNTED,
    };
    return tracks->lanes && tracks->described ? 0 : HEC_ERR_NOMEM;
}

void hec_perfetto_tracks_free(struct hec_perfetto_tracks *tracks) {
    for (size_t i = 0; tracks->lanes && i < tracks->tables->timeline.track_count * HEC_PART_COUNT; i++)
        free(tracks->lanes[i].list);
    free(tracks->lanes);
    free(tracks->described);
    free(tracks->described_devices);
    tracks->described_devices = NULL;
    tracks->lanes = NULL;
    tracks->described = NULL;
}

/* ---- descriptions ---- */

struct description {
    size_t packet, track;
};

static struct description begin(struct hec_proto *proto, uint64_t uuid, uint64_t parent, const char *name) {
    char clean[512];
    struct description d = {.packet = hec_proto_begin(proto, TRACE_PACKET)};
    hec_proto_uint(proto, PACKET_SEQUENCE, 1);
    d.track = hec_proto_begin(proto, PACKET_TRACK);
    hec_proto_uint(proto, TRACK_UUID, uuid);
    if (parent)
        hec_proto_uint(proto, TRACK_PARENT, parent);
    if (name && name[0])
        hec_proto_text(proto, TRACK_NAME, hec_text_clean(clean, sizeof clean, name, strlen(name), true));
    return d;
}

static void end(struct hec_proto *proto, struct description d) {
    hec_proto_end(proto, d.track);
    hec_proto_end(proto, d.packet);
}

/* Of one process a part of the tracks may be from before it had its rank. */
static bool same_process(const struct hec_track *a, const struct hec_track *b) {
    return a->pid == b->pid && (a->rank == b->rank || a->rank < 0 || b->rank < 0);
}

/* The first track of the same process stands for it. */
static uint32_t first_of_process(const struct hec_perfetto_tracks *tracks, const struct hec_track *track) {
    const struct hec_timeline_tables *t = &tracks->tables->timeline;
    for (uint32_t i = 1; i < t->track_count; i++)
        if (t->tracks[i].id == i && same_process(&t->tracks[i], track))
            return i;
    return track->id;
}

/* Ranks of an imported run may have one pid on several hosts; a trace has one process a pid. */
static int64_t pid_of(const struct hec_perfetto_tracks *tracks, const struct hec_track *track) {
    const struct hec_timeline_tables *t = &tracks->tables->timeline;
    for (uint32_t i = 1; i < t->track_count; i++)
        if (t->tracks[i].id == i && t->tracks[i].pid == track->pid)
            return same_process(&t->tracks[i], track) ? track->pid : INT64_C(1) << 30 | first_of_process(tracks, track);
    return track->pid;
}

static void describe_process(struct hec_perfetto_tracks *tracks, const struct hec_track *track, uint64_t uuid) {
    struct hec_proto *proto = tracks->proto;
    const struct hec_timeline_tables *t = &tracks->tables->timeline;
    char name[128] = "", clean[256];
    for (uint32_t i = 1; i < t->track_count && !name[0]; i++)
        if (t->tracks[i].id == i && t->tracks[i].kind == HEC_TRACK_PROCESS && same_process(&t->tracks[i], track))
            snprintf(name, sizeof name, "%s", t->tracks[i].name);
    for (size_t i = 0; i < tracks->process_count && !name[0]; i++)
        if (tracks->processes[i].pid == track->pid)
            snprintf(name, sizeof name, "%s", tracks->processes[i].name);
    if (track->rank >= 0)
        snprintf(name + strlen(name), sizeof name - strlen(name), "%srank %d", name[0] ? ", " : "", (int)track->rank);
    struct description d = begin(proto, uuid, 0, NULL);
    size_t process = hec_proto_begin(proto, TRACK_PROCESS);
    hec_proto_int(proto, PROCESS_PID, pid_of(tracks, track));
    if (name[0])
        hec_proto_text(proto, PROCESS_NAME, hec_text_clean(clean, sizeof clean, name, strlen(name), true));
    hec_proto_end(proto, process);
    end(proto, d);
}

uint64_t hec_perfetto_process(struct hec_perfetto_tracks *tracks, uint32_t id) {
    const struct hec_track *track = hec_timeline_track(&tracks->tables->timeline, id);
    if (!track)
        return 0;
    uint32_t first = first_of_process(tracks, track);
    if (!tracks->described[first]) {
        tracks->described[first] = true;
        describe_process(tracks, track, UUID_PROCESS | first);
    }
    return UUID_PROCESS | first;
}

static void describe_thread(struct hec_perfetto_tracks *tracks, const struct hec_track *track, uint64_t uuid) {
    struct hec_proto *proto = tracks->proto;
    char clean[128];
    hec_perfetto_process(tracks, track->id);
    struct description d = begin(proto, uuid, 0, NULL);
    size_t thread = hec_proto_begin(proto, TRACK_THREAD);
    hec_proto_int(proto, THREAD_PID, pid_of(tracks, track));
    hec_proto_int(proto, THREAD_TID, track->stream);
    if (track->name[0])
        hec_proto_text(proto, THREAD_NAME, hec_text_clean(clean, sizeof clean, track->name, strlen(track->name), true));
    hec_proto_end(proto, thread);
    end(proto, d);
}

uint64_t hec_perfetto_device(struct hec_perfetto_tracks *tracks, int device) {
    uint64_t uuid = UUID_DEVICE | (uint32_t)(device + 1);
    char name[256], gpu[HEC_FORMAT_SIZE];
    for (size_t i = 0; i < tracks->described_device_count; i++)
        if (tracks->described_devices[i] == device)
            return uuid;
    int *grown = realloc(tracks->described_devices, (tracks->described_device_count + 1) * sizeof *grown);
    if (!grown) {
        tracks->proto->error = HEC_ERR_NOMEM;
        return uuid;
    }
    tracks->described_devices = grown;
    grown[tracks->described_device_count++] = device;
    snprintf(name, sizeof name, "%s", hec_format_gpu(gpu, device));
    for (int i = 0; i < tracks->device_count; i++)
        if (tracks->devices[i].index == device && tracks->devices[i].name[0])
            snprintf(name, sizeof name, "%s %s", gpu, tracks->devices[i].name);
    struct description d = begin(tracks->proto, uuid, 0, name);
    end(tracks->proto, d);
    return uuid;
}

uint64_t hec_perfetto_counter(struct hec_perfetto_tracks *tracks, uint64_t parent, const char *name, const char *unit) {
    struct description d = begin(tracks->proto, ++tracks->next_uuid, parent, name);
    size_t counter = hec_proto_begin(tracks->proto, TRACK_COUNTER);
    hec_proto_text(tracks->proto, COUNTER_UNIT_NAME, unit);
    hec_proto_end(tracks->proto, counter);
    end(tracks->proto, d);
    return tracks->next_uuid;
}

/* ---- lanes ---- */

/* A thread is described before its first lane, whichever part that is of. */
static void need_thread(struct hec_perfetto_tracks *tracks, const struct hec_track *track) {
    for (int part = 0; part < HEC_PART_COUNT; part++)
        if (tracks->lanes[track->id * HEC_PART_COUNT + (uint32_t)part].count)
            return;
    describe_thread(tracks, track, UUID_TRACK | track->id);
}

/* The first lane of a track's part: itself, or a named child. */
static uint64_t first_lane(struct hec_perfetto_tracks *tracks, const struct hec_track *track,
                           enum hec_track_part part) {
    static const char *const names[HEC_PART_COUNT] = {"", "steps", "traced", "stack", "launches"};
    char name[96];
    uint64_t parent, uuid = ++tracks->next_uuid;
    if (track->kind == HEC_TRACK_THREAD && part == HEC_PART_MAIN) {
        uuid = UUID_TRACK | track->id;
        need_thread(tracks, track);
        return uuid;
    }
    if (track->kind == HEC_TRACK_STREAM) {
        parent = hec_perfetto_device(tracks, track->device);
        if (track->rank >= 0)
            snprintf(name, sizeof name, "stream %lld (rank %d)", (long long)track->stream, (int)track->rank);
        else
            snprintf(name, sizeof name, "stream %lld (process %d)", (long long)track->stream, (int)track->pid);
    } else {
        parent = track->kind == HEC_TRACK_THREAD ? UUID_TRACK | track->id : hec_perfetto_process(tracks, track->id);
        if (track->kind == HEC_TRACK_THREAD)
            need_thread(tracks, track);
        snprintf(name, sizeof name, "%s", part == HEC_PART_MAIN ? "events" : names[part]);
    }
    end(tracks->proto, begin(tracks->proto, uuid, parent, name));
    return uuid;
}

static struct hec_lane *add_lane(struct hec_perfetto_tracks *tracks, const struct hec_track *track,
                                 enum hec_track_part part) {
    struct hec_lanes *lanes = &tracks->lanes[track->id * HEC_PART_COUNT + part];
    struct hec_lane *grown = realloc(lanes->list, ((size_t)lanes->count + 1) * sizeof *grown);
    if (!grown) {
        tracks->proto->error = HEC_ERR_NOMEM;
        return NULL;
    }
    lanes->list = grown;
    struct hec_lane *lane = &grown[lanes->count];
    lane->depth = 0;
    if (!lanes->count) {
        lane->uuid = first_lane(tracks, track, part);
        lanes->serial = track->kind == HEC_TRACK_STREAM || part == HEC_PART_LAUNCHES;
    } else {
        char name[32];
        lane->uuid = ++tracks->next_uuid;
        snprintf(name, sizeof name, "beside %d", lanes->count);
        end(tracks->proto, begin(tracks->proto, lane->uuid, grown[0].uuid, name));
    }
    lanes->count++;
    return lane;
}

static bool fits(struct hec_lane *lane, bool serial, const struct hec_activity *a) {
    while (lane->depth && lane->ends[lane->depth - 1] <= a->start_ns)
        lane->depth--;
    if (!lane->depth)
        return true;
    return !serial && lane->depth < HEC_LANE_DEPTH && a->end_ns <= lane->ends[lane->depth - 1];
}

uint64_t hec_perfetto_track_of(struct hec_perfetto_tracks *tracks, enum hec_track_part part,
                               const struct hec_activity *a) {
    const struct hec_track *track = hec_timeline_track(&tracks->tables->timeline, a->track);
    if (!track)
        return 0;
    struct hec_lanes *lanes = &tracks->lanes[track->id * HEC_PART_COUNT + part];
    struct hec_lane *lane = NULL;
    for (int i = 0; i < lanes->count && !lane; i++)
        if (fits(&lanes->list[i], lanes->serial, a))
            lane = &lanes->list[i];
    if (!lane && lanes->count < HEC_LANES_MAX)
        lane = add_lane(tracks, track, part);
    if (!lane) /* more at once than lanes: left out */
        return 0;
    lane->ends[lane->depth++] = a->end_ns;
    return lane->uuid;
}
