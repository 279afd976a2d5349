#include "store/import/xla.h"

#include "store/import/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(struct hec_import_file *file, enum hec_track_kind kind, const struct hec_import_event *e) {
    const struct hec_import_track key = {.kind = kind,
                                         .pid = (int32_t)e->pid.value,
                                         .device = -1,
                                         .stream = kind == HEC_TRACK_THREAD ? e->tid.value : 0};
    int64_t id = hec_import_tracks_id(&file->tracks, &key);
    return id < 0 ? "" : file->tracks.tracks[id].name;
}

static bool begins(const struct hec_import_event *e, const char *word) {
    return e->name_length >= strlen(word) && memcmp(e->name, word, strlen(word)) == 0;
}

static int device_kind(const struct hec_import_event *e) {
    return begins(e, "Memcpy") || begins(e, "memcpy")   ? HEC_ACTIVITY_COPY
           : begins(e, "Memset") || begins(e, "memset") ? HEC_ACTIVITY_MEMSET
                                                        : HEC_ACTIVITY_KERNEL;
}

/* "cuGraphLaunch (CudaGraph:2)" is a call of the driver; "$profiler.py:307 trace" a frame of Python. */
static int host_kind(struct hec_import_event *e) {
    const char *space = memchr(e->name, ' ', e->name_length);
    size_t length = space ? (size_t)(space - e->name) : e->name_length;
    bool call = length > 2 && (begins(e, "cu") || begins(e, "hip")) &&
                (isupper((unsigned char)e->name[2]) || isupper((unsigned char)e->name[3]));
    if (begins(e, "$"))
        return HEC_IMPORT_NO_KIND;
    if (call)
        e->name_length = length;
    return call ? HEC_ACTIVITY_API : e->step.known ? HEC_ACTIVITY_STEP : HEC_ACTIVITY_RANGE;
}

bool hec_import_xla_event(struct hec_import_file *file, struct hec_import_event *e) {
    int device, stream;
    if (!e->pid.known || e->pid.value < 0 || e->pid.value > INT32_MAX || !e->tid.known)
        return false;
    const char *process = name_of(file, HEC_TRACK_PROCESS, e);
    if (sscanf(process, "/device:GPU:%d", &device) == 1) {
        if (sscanf(name_of(file, HEC_TRACK_THREAD, e), "Stream #%d", &stream) !=
            1) /* "Steps", "XLA Ops": of the same */
            return false;
        e->kind = device_kind(e);
        e->device = (struct hec_import_number){true, device};
        e->stream = (struct hec_import_number){true, stream};
    } else if (strncmp(process, "/host:", 6) == 0) {
        e->kind = host_kind(e);
    }
    file->xla |= e->kind != HEC_IMPORT_NO_KIND;
    return e->kind != HEC_IMPORT_NO_KIND;
}
