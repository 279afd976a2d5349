#include "store/import/tracks.h"

#include "base/error.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

static bool same(const struct hec_import_track *a, const struct hec_import_track *b) {
    return a->kind == b->kind && a->pid == b->pid && a->device == b->device && a->context == b->context &&
           a->stream == b->stream;
}

static uint32_t slot(const struct hec_import_tracks *t, const struct hec_import_track *key) {
    const int64_t fields[] = {key->kind, key->pid, key->device, key->context, key->stream};
    uint32_t mask = t->capacity * 2 - 1, at = (uint32_t)hec_hash(fields, sizeof fields) & mask;
    while (t->table[at] && !same(&t->tracks[t->table[at]], key))
        at = (at + 1) & mask;
    return at;
}

static int grow(struct hec_import_tracks *t) {
    uint32_t capacity = t->capacity ? t->capacity * 2 : 64;
    if (capacity > HEC_IMPORT_TRACKS_MAX)
        return HEC_ERR_LIMIT;
    struct hec_import_track *tracks = realloc(t->tracks, capacity * sizeof *tracks);
    if (tracks)
        t->tracks = tracks;
    uint32_t *table = calloc((size_t)capacity * 2, sizeof *table);
    if (!tracks || !table) {
        free(table);
        return HEC_ERR_NOMEM;
    }
    free(t->table);
    t->table = table;
    t->capacity = capacity;
    if (t->count == 0)
        t->count = 1;
    for (uint32_t i = 1; i < t->count; i++)
        t->table[slot(t, &t->tracks[i])] = i;
    return HEC_OK;
}

int64_t hec_import_tracks_id(struct hec_import_tracks *t, const struct hec_import_track *key) {
    if (t->last && same(&t->tracks[t->last], key))
        return t->last;
    if (t->count == t->capacity) {
        int err = grow(t);
        if (err < 0)
            return err;
    }
    uint32_t at = slot(t, key);
    if (!t->table[at]) {
        t->tracks[t->count] = *key;
        t->table[at] = t->count++;
    }
    return t->last = t->table[at];
}

void hec_import_tracks_free(struct hec_import_tracks *t) {
    free(t->tracks);
    free(t->table);
    memset(t, 0, sizeof *t);
}

void hec_import_device_unknown(struct hec_device *device) {
    *device = (struct hec_device){
        .cuda_major = -1,
        .cuda_minor = -1,
        .memory_kib = -1,
        .power_limit_mw = -1,
        .power_limit_default_mw = -1,
        .pcie_kib_per_s = -1,
        .mig_enabled = -1,
        .visible = 1,
    };
}

struct hec_device *hec_import_tracks_device(struct hec_import_tracks *t, int device) {
    for (int i = 0; i < t->device_count; i++)
        if (t->devices[i].index == device)
            return &t->devices[i];
    if (t->device_count == HEC_DEVICE_MAX)
        return NULL;
    struct hec_device *d = &t->devices[t->device_count++];
    hec_import_device_unknown(d);
    d->index = device;
    return d;
}
