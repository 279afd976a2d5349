#include "store/definitions.h"

#include "base/hash.h"
#include "model/run.h"

#include <stdlib.h>
#include <string.h>

struct name {
    char *text; /* with a NUL */
    size_t length;
};

void hec_definitions_init(struct hec_definitions *d) {
    memset(d, 0, sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    d->names = (struct hec_definition_table){.entry_bytes = sizeof(struct name), .maximum = HEC_DEFINITIONS_NAMES_MAX};
    d->tracks =
        (struct hec_definition_table){.entry_bytes = sizeof(struct hec_track),
                                      .key_at = offsetof(struct hec_track, kind),
                                      .key_bytes = offsetof(struct hec_track, name) - offsetof(struct hec_track, kind),
                                      .maximum = HEC_DEFINITIONS_TRACKS_MAX};
    d->kernels =
        (struct hec_definition_table){.entry_bytes = sizeof(struct hec_kernel),
                                      .key_at = offsetof(struct hec_kernel, name),
                                      .key_bytes = sizeof(struct hec_kernel) - offsetof(struct hec_kernel, name),
                                      .maximum = HEC_DEFINITIONS_KERNELS_MAX};
    d->frames =
        (struct hec_definition_table){.entry_bytes = sizeof(struct hec_frame),
                                      .key_at = offsetof(struct hec_frame, parent),
                                      .key_bytes = sizeof(struct hec_frame) - offsetof(struct hec_frame, parent),
                                      .maximum = HEC_DEFINITIONS_FRAMES_MAX};
}

/* Keys are compared as bytes. */
_Static_assert(offsetof(struct hec_track, name) == 32 && sizeof(struct hec_kernel) == 64 &&
                   sizeof(struct hec_frame) == 20,
               "no padding");

static void table_free(struct hec_definition_table *table) {
    free(table->entries);
    free(table->hashes);
    free(table->slots);
}

void hec_definitions_free(struct hec_definitions *d) {
    for (uint32_t i = 0; i < d->names.count; i++)
        free(((struct name *)(void *)d->names.entries)[i].text);
    table_free(&d->names);
    table_free(&d->tracks);
    table_free(&d->kernels);
    table_free(&d->frames);
    free(d->renamed);
    pthread_mutex_destroy(&d->lock);
}

static void *entry(const struct hec_definition_table *table, uint32_t id) {
    return table->entries + (id - 1) * table->entry_bytes;
}

static bool is(const struct hec_definition_table *table, uint32_t id, const void *key, size_t length) {
    const unsigned char *at = entry(table, id);
    if (table->key_bytes)
        return memcmp(at + table->key_at, key, length) == 0;
    const struct name *name = (const void *)at;
    return name->length == length && memcmp(name->text, key, length) == 0;
}

/* The slot of the key: it holds its id, or 0 where there is none. Only where capacity > 0. */
static uint32_t *find(const struct hec_definition_table *table, uint64_t hash, const void *key, size_t length) {
    size_t size = 2 * (size_t)table->capacity, at = (size_t)hash & (size - 1);
    for (; table->slots[at]; at = (at + 1) & (size - 1))
        if (key && table->hashes[table->slots[at] - 1] == hash && is(table, table->slots[at], key, length))
            break;
    return &table->slots[at];
}

static bool grow(struct hec_definition_table *table) {
    if (table->count < table->capacity)
        return true;
    uint32_t capacity = table->capacity ? 2 * table->capacity : 64; /* a power of two */
    unsigned char *entries = realloc(table->entries, capacity * table->entry_bytes);
    if (entries)
        table->entries = entries;
    uint64_t *hashes = realloc(table->hashes, capacity * sizeof *hashes);
    if (hashes)
        table->hashes = hashes;
    uint32_t *slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (!entries || !hashes || !slots) {
        free(slots);
        return false;
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    for (uint32_t id = 1; id <= table->count; id++)
        *find(table, table->hashes[id - 1], NULL, 0) = id;
    return true;
}

static const void *key_in(const struct hec_definition_table *table, const void *value, size_t *length) {
    *length = table->key_bytes;
    if (table->key_bytes)
        return (const unsigned char *)value + table->key_at;
    const struct name *name = value;
    *length = name->length;
    return name->text;
}

/* The id of the entry with this key, of an entry like this one; 0 when there is none. */
static uint32_t look_up_key(const struct hec_definition_table *table, const void *key, size_t length) {
    return table->capacity ? *find(table, hec_hash(key, length), key, length) : 0;
}

static uint32_t look_up(const struct hec_definition_table *table, const void *value) {
    size_t length;
    const void *key = key_in(table, value, &length);
    return look_up_key(table, key, length);
}

/* A new entry, its bytes copied; 0: no room. Entries that begin with an id get it. */
static uint32_t insert(struct hec_definition_table *table, const void *value) {
    if (table->count >= table->maximum || !grow(table))
        return 0;
    size_t length;
    const void *key = key_in(table, value, &length);
    uint32_t id = ++table->count;
    table->hashes[id - 1] = hec_hash(key, length);
    *find(table, table->hashes[id - 1], key, length) = id;
    memcpy(entry(table, id), value, table->entry_bytes);
    if (table->key_bytes)
        memcpy(entry(table, id), &id, sizeof id);
    return id;
}

static uint32_t refuse(struct hec_definitions *d) {
    d->refused++;
    return 0;
}

uint32_t hec_definitions_name(struct hec_definitions *d, const char *text, size_t length) {
    pthread_mutex_lock(&d->lock);
    uint32_t id = look_up_key(&d->names, text, length);
    if (id == 0) {
        bool fits = d->text_bytes + length <= HEC_DEFINITIONS_TEXT_MAX;
        struct name name = {fits ? malloc(length + 1) : NULL, length};
        if (name.text) {
            memcpy(name.text, text, length);
            name.text[length] = '\0';
            id = insert(&d->names, &name);
        }
        if (id == 0) {
            free(name.text);
            refuse(d);
        } else {
            d->text_bytes += length;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return id;
}

static uint32_t intern_track(struct hec_definitions *d, const struct hec_track *track) {
    if ((unsigned)track->kind >= HEC_TRACK_KIND_COUNT || track->device >= HEC_DEVICE_MAX)
        return refuse(d);
    struct hec_track copy = *track;
    copy.device = copy.device < 0 ? -1 : copy.device;
    copy.rank = copy.rank < 0 ? -1 : copy.rank;
    copy.name[sizeof copy.name - 1] = '\0';
    if (!d->renamed && !(d->renamed = calloc(HEC_DEFINITIONS_TRACKS_MAX + 1, sizeof *d->renamed)))
        return refuse(d);
    uint32_t id = look_up(&d->tracks, &copy);
    if (id == 0)
        return (id = insert(&d->tracks, &copy)) != 0 ? id : refuse(d);
    struct hec_track *known = entry(&d->tracks, id);
    if (copy.name[0] && strcmp(known->name, copy.name) != 0) {
        memcpy(known->name, copy.name, sizeof known->name);
        d->renamed[id] = d->any_renamed = true;
    }
    return id;
}

uint32_t hec_definitions_track(struct hec_definitions *d, const struct hec_track *track) {
    pthread_mutex_lock(&d->lock);
    uint32_t id = intern_track(d, track);
    pthread_mutex_unlock(&d->lock);
    return id;
}

static uint32_t intern_kernel(struct hec_definitions *d, const struct hec_kernel *kernel) {
    if (kernel->name > d->names.count)
        return refuse(d);
    struct hec_kernel copy = *kernel;
    for (int i = 0; i < 3; i++) {
        copy.grid[i] = copy.grid[i] < 0 ? -1 : copy.grid[i];
        copy.block[i] = copy.block[i] < 0 ? -1 : copy.block[i];
    }
    copy.registers = copy.registers < 0 ? -1 : copy.registers;
    copy.static_shared_bytes = copy.static_shared_bytes < 0 ? -1 : copy.static_shared_bytes;
    copy.dynamic_shared_bytes = copy.dynamic_shared_bytes < 0 ? -1 : copy.dynamic_shared_bytes;
    uint32_t id = look_up(&d->kernels, &copy);
    if (id == 0 && d->kernels.count >= d->kernels.maximum / 2) {
        copy = (struct hec_kernel){.name = kernel->name, .grid = {-1, -1, -1}, .block = {-1, -1, -1}, -1, -1, -1};
        d->refused++;
        id = look_up(&d->kernels, &copy);
    }
    if (id == 0 && (id = insert(&d->kernels, &copy)) == 0)
        refuse(d);
    return id;
}

uint32_t hec_definitions_kernel(struct hec_definitions *d, const struct hec_kernel *kernel) {
    pthread_mutex_lock(&d->lock);
    uint32_t id = intern_kernel(d, kernel);
    pthread_mutex_unlock(&d->lock);
    return id;
}

uint32_t hec_definitions_frame(struct hec_definitions *d, const struct hec_frame *frame) {
    pthread_mutex_lock(&d->lock);
    uint32_t id = 0;
    if (frame->parent <= d->frames.count && frame->file <= d->names.count && frame->function <= d->names.count) {
        id = look_up(&d->frames, frame);
        if (id == 0)
            id = insert(&d->frames, frame);
    }
    if (id == 0)
        refuse(d);
    pthread_mutex_unlock(&d->lock);
    return id;
}

void hec_definitions_limits(struct hec_definitions *d, struct hec_activity_limits *limits) {
    pthread_mutex_lock(&d->lock);
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        limits->name[kind] = d->names.count;
    limits->name[HEC_ACTIVITY_KERNEL] = d->kernels.count;
    limits->name[HEC_ACTIVITY_STACK] = d->frames.count;
    limits->tracks = d->tracks.count;
    pthread_mutex_unlock(&d->lock);
}

int64_t hec_definitions_refused(struct hec_definitions *d) {
    pthread_mutex_lock(&d->lock);
    int64_t refused = d->refused;
    pthread_mutex_unlock(&d->lock);
    return refused;
}

/* A copy of the entries that are not in the file; with none, NULL is fine. */
static bool copy_new(const struct hec_definition_table *table, void *copy, uint32_t *count) {
    *count = table->count - table->stored;
    void *bytes = *count ? malloc(*count * table->entry_bytes) : NULL;
    if (bytes)
        memcpy(bytes, entry(table, table->stored + 1), *count * table->entry_bytes);
    memcpy(copy, &bytes, sizeof bytes);
    return bytes || *count == 0;
}

static bool take_names(struct hec_definitions *d, struct hec_definition_batch *batch) {
    batch->name_first = d->names.stored + 1;
    batch->name_count = d->names.count - d->names.stored;
    batch->names = batch->name_count ? malloc(batch->name_count * sizeof *batch->names) : NULL;
    for (uint32_t i = 0; batch->names && i < batch->name_count; i++)
        batch->names[i] = ((const struct name *)entry(&d->names, batch->name_first + i))->text;
    return batch->names || batch->name_count == 0;
}

/* New tracks, and those renamed. */
static bool take_tracks(struct hec_definitions *d, struct hec_definition_batch *batch) {
    uint32_t renamed = 0;
    for (uint32_t id = 1; d->any_renamed && id <= d->tracks.stored; id++)
        renamed += d->renamed[id];
    batch->tracks_end = d->tracks.count;
    batch->track_count = renamed + d->tracks.count - d->tracks.stored;
    batch->tracks = batch->track_count ? malloc(batch->track_count * sizeof *batch->tracks) : NULL;
    uint32_t at = 0;
    for (uint32_t id = 1; batch->tracks && id <= d->tracks.count; id++)
        if (id > d->tracks.stored || d->renamed[id])
            batch->tracks[at++] = *(const struct hec_track *)entry(&d->tracks, id);
    if (!batch->tracks)
        return batch->track_count == 0;
    memset(d->renamed, 0, (d->tracks.count + 1) * sizeof *d->renamed);
    d->any_renamed = false;
    return true;
}

bool hec_definitions_take(struct hec_definitions *d, struct hec_definition_batch *batch) {
    memset(batch, 0, sizeof *batch);
    pthread_mutex_lock(&d->lock);
    bool good = take_names(d, batch) && take_tracks(d, batch) &&
                copy_new(&d->kernels, &batch->kernels, &batch->kernel_count) &&
                copy_new(&d->frames, &batch->frames, &batch->frame_count);
    pthread_mutex_unlock(&d->lock);
    if (!good)
        hec_definitions_give_back(d, batch, false);
    return good;
}

void hec_definitions_give_back(struct hec_definitions *d, struct hec_definition_batch *batch, bool done) {
    pthread_mutex_lock(&d->lock);
    if (done) {
        d->names.stored += batch->name_count;
        d->tracks.stored = batch->tracks_end;
        d->kernels.stored += batch->kernel_count;
        d->frames.stored += batch->frame_count;
    } else if (batch->tracks) {
        for (uint32_t i = 0; i < batch->track_count; i++)
            d->renamed[batch->tracks[i].id] = true; /* to be written again */
        d->any_renamed = batch->track_count > 0;
    }
    pthread_mutex_unlock(&d->lock);
    free(batch->names);
    free(batch->tracks);
    free(batch->kernels);
    free(batch->frames);
    memset(batch, 0, sizeof *batch);
}
