/* The reader against arbitrary ring contents, and the collector's processing of whatever records come out of it.
 * Input: the header's fields and slots of a ring of 64 records; the magic, sizes and seals are right every other time,
 * so that both the checks and what lies behind them are reached. */
#include "base/clock.h"
#include "base/ring.h"
#include "observe/marks/peer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS 64u

static int64_t samples;

static void sample(void *context, enum hec_metric metric, int32_t subject, int64_t t_ns, int64_t value) {
    (void)context, (void)metric, (void)subject, (void)t_ns;
    samples++;
    if (value < 0)
        abort();
}

static void event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)device, (void)t_ns;
    if (kind >= HEC_EVENT_COUNT || strlen(text) >= 256)
        abort();
}

static uint32_t names, tracks, frames, calls;

static uint32_t trace_name(void *context, const char *text) {
    (void)context;
    if (!text[0] || strlen(text) >= HEC_MARKS_TEXT_BYTES)
        abort();
    return ++names;
}

static uint32_t trace_track(void *context, const struct hec_track *track) {
    (void)context;
    if (track->kind != HEC_TRACK_PROCESS && (track->kind != HEC_TRACK_THREAD || track->stream == 0))
        abort();
    return ++tracks;
}

static uint32_t trace_frame(void *context, const struct hec_frame *frame) {
    (void)context;
    if (frame->parent > frames || frame->file > names || frame->function > names || frame->line < 0)
        abort();
    return ++calls % 8 == 7 ? 0 : ++frames; /* full, now and then */
}

static void trace_activities(void *context, const struct hec_activity *activities, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++)
        if (activities[i].start_ns > activities[i].end_ns || activities[i].track == 0 || activities[i].track > tracks ||
            activities[i].name == 0 || activities[i].name > (activities[i].kind == HEC_ACTIVITY_STACK ? frames : names))
            abort();
}

static void meta(void *context, const char *key, const char *value) {
    (void)context;
    bool known = strncmp(key, "python.", 7) == 0 || strncmp(key, HEC_RANK_FACT, strlen(HEC_RANK_FACT)) == 0 ||
                 strncmp(key, HEC_SIZES_FACT, strlen(HEC_SIZES_FACT)) == 0;
    if (!known || strlen(value) >= HEC_MARKS_TEXT_BYTES)
        abort();
}

static void units(void *context, const char *name, double count) {
    (void)context;
    if (!(count >= 0) || strlen(name) >= HEC_MARKS_NAME_BYTES)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const size_t bytes = HEC_RING_HEADER_BYTES + RECORDS * sizeof(struct hec_ring_record);
    if (size < 2)
        return 0;
    uint8_t choice = data[0], dead = data[1] & 1;
    data += 2, size -= 2;
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        abort();
    unsigned char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        abort();
    struct hec_ring_header *header = (void *)map;
    struct hec_ring_record *slots = (void *)(map + HEC_RING_HEADER_BYTES);
    size_t head = size < sizeof *header ? size : sizeof *header;
    memcpy(header, data, head);
    size_t rest = size - head < bytes - HEC_RING_HEADER_BYTES ? size - head : bytes - HEC_RING_HEADER_BYTES;
    memcpy(slots, data + head, rest);
    struct hec_marks_run run;
    struct hec_sink sink = {.sample = sample,
                            .event = event,
                            .units = units,
                            .meta = meta,
                            .trace_name = trace_name,
                            .trace_track = trace_track,
                            .trace_frame = trace_frame,
                            .trace_activities = trace_activities};
    hec_marks_run_init(&run, &sink, hec_clock_mono_ns());
    if (choice & 1) {
        header->magic = HEC_RING_MAGIC;
        header->abi = HEC_RING_ABI;
        header->header_bytes = HEC_RING_HEADER_BYTES;
        header->record_bytes = sizeof(struct hec_ring_record);
        header->records = RECORDS;
        header->role = HEC_RING_MARKS;
    }
    if (choice & 2) /* as if committed, and with possible times */
        for (uint32_t i = 0; i < RECORDS && i < rest / sizeof slots[0]; i++) {
            slots[i].sequence = i + 1;
            slots[i].t_ns = run.opened_ns + (choice & 4 ? (int64_t)slots[i].flags : 0);
        }
    struct hec_ring_reader reader;
    if (hec_ring_map(fd, &reader) == 0) {
        struct hec_peers peers = {.kind = &hec_marks_peers, .run = &run, .reporter = &run.reporter};
        struct hec_peer *peer = hec_peer_new(&peers, &(struct hec_intake_ring){reader, 1234, -1}, run.opened_ns);
        if (!peer)
            abort();
        for (int i = 0; i < 3; i++)
            hec_peer_drain(&peers, peer, run.opened_ns + i * 20 * HEC_NS_PER_S, dead);
        hec_peer_end(&peers, peer, run.opened_ns + 60 * HEC_NS_PER_S);
        hec_marks_units_flush(&run.units, run.sink);
    }
    munmap(map, bytes);
    close(fd);
    return 0;
}
