/* Names and launch configurations: text and numbers to ids, in tables of a fixed size that are mapped once.
 * Both are known by a 64-bit hash of their content: with 65536 entries the chance that any two meet is 1e-10. */
#include "tracer/tracer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NAME_SLOTS 16384u    /* a power of two above HEC_INTERN_NAMES */
#define CONFIG_SLOTS 131072u /* the same for configurations */
#define POINTERS 4096u
#define NAME_BYTES_MAX (255u * HEC_RING_NAME_PIECE)

struct slot {
    uint64_t hash; /* 0: free */
    uint32_t id;
    uint32_t defined; /* the window in which it was, plus 1; 0: never */
};

static struct tables {
    struct slot names[NAME_SLOTS];
    struct slot configs[CONFIG_SLOTS];
    struct slot named[HEC_INTERN_NAMES + 1]; /* configurations with a name only, by name id */
    struct {
        const char *text;
        uint64_t hash;
        uint32_t epoch;
    } pointers[POINTERS];
    uint32_t name_count, config_count, epoch;
} * tables;

int hec_intern_open(void) {
    void *map = mmap(NULL, sizeof *tables, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return -1;
    tables = map;
    tables->epoch = 1;
    return 0;
}

void hec_intern_forget(void) {
    if (tables)
        munmap(tables, sizeof *tables);
    tables = NULL;
}

void hec_intern_epoch(void) {
    tables->epoch++;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static uint64_t hash_text(const char *text, size_t *length) {
    uint64_t hash = 0, word;
    size_t at = 0, left = strnlen(text, NAME_BYTES_MAX);
    *length = left;
    for (; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, text + at, left);
    hash = mix(mix(hash, word), *length);
    return hash ? hash : 1;
}

/* The slot of a hash, or the free one where it belongs. The tables are never full. */
static struct slot *find(struct slot *slots, uint32_t count, uint64_t hash) {
    uint32_t at = (uint32_t)(hash >> 32) & (count - 1);
    while (slots[at].hash != 0 && slots[at].hash != hash)
        at = (at + 1) & (count - 1);
    return &slots[at];
}

static bool defined(const struct slot *slot) {
    return slot->defined == hec_out_window() + 1;
}

static bool define_name(uint32_t id, const char *text, size_t length) {
    size_t pieces = length ? (length + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE : 1;
    for (size_t i = 0; i < pieces; i++) {
        struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
        record.u.name.id = id;
        record.u.name.piece = (uint8_t)i;
        record.u.name.pieces = (uint8_t)pieces;
        record.u.name.length = (uint16_t)length;
        size_t at = i * HEC_RING_NAME_PIECE;
        memcpy(record.u.name.text, text + at, length - at < HEC_RING_NAME_PIECE ? length - at : HEC_RING_NAME_PIECE);
        if (!hec_out_write_ring_kind(&record, HEC_RING_NAME))
            return false; /* tried again at the next use */
    }
    return true;
}

static uint32_t name_of_hash(const char *text, uint64_t hash, size_t length) {
    struct slot *slot = find(tables->names, NAME_SLOTS, hash);
    if (slot->hash == 0) {
        if (tables->name_count >= HEC_INTERN_NAMES) {
            static const char many[] = "(too many names)";
            if (strcmp(text, many) == 0)
                return 0;
            /* the last id is kept for it */
            static const uint32_t id = HEC_INTERN_NAMES + 1;
            return define_name(id, many, sizeof many - 1) ? id : 0;
        }
        slot->hash = hash;
        slot->id = ++tables->name_count;
        slot->defined = 0;
    }
    if (!defined(slot) && define_name(slot->id, text, length))
        slot->defined = hec_out_window() + 1;
    return defined(slot) ? slot->id : 0;
}

uint32_t hec_intern_name(const char *text) {
    size_t length;
    if (!tables || !text || !text[0])
        return 0;
    uint64_t hash = hash_text(text, &length);
    return name_of_hash(text, hash, length);
}

/* The hash of a kernel's name; its text is read once an epoch. */
static uint64_t hash_pointer(const char *text) {
    uint64_t key = mix(0, (uint64_t)(uintptr_t)text);
    uint32_t at = (uint32_t)(key >> 32) & (POINTERS - 1);
    if (tables->pointers[at].text != text || tables->pointers[at].epoch != tables->epoch) {
        size_t length;
        tables->pointers[at].text = text;
        tables->pointers[at].epoch = tables->epoch;
        tables->pointers[at].hash = hash_text(text, &length);
    }
    return tables->pointers[at].hash;
}

static uint32_t define_config(struct slot *slot, struct hec_trace_config *config, const char *name,
                              uint64_t name_hash) {
    if (!defined(slot)) {
        struct hec_ring_record record = {.t_ns = hec_out_now_ns()};
        config->id = slot->id;
        config->name = name_of_hash(name, name_hash, strnlen(name, NAME_BYTES_MAX));
        hec_out_payload(&record)->config = *config;
        if (config->name != 0 && hec_out_write(&record, HEC_TRACE_CONFIG))
            slot->defined = hec_out_window() + 1;
    }
    return defined(slot) ? slot->id : 0;
}

uint32_t hec_intern_config(struct hec_trace_config *config, const char *name) {
    if (!tables)
        return 0;
    if (!name || !name[0])
        name = "(no name)";
    uint64_t name_hash = hash_pointer(name);
    uint64_t hash = name_hash, word;
    config->id = config->name = 0;
    _Static_assert(sizeof *config % sizeof word == 0, "hashed by words");
    for (size_t at = 0; at < sizeof *config; at += sizeof word) {
        memcpy(&word, (const char *)config + at, sizeof word);
        hash = mix(hash, word);
    }
    struct slot *slot = find(tables->configs, CONFIG_SLOTS, hash ? hash : 1);
    if (slot->hash == 0) {
        if (tables->config_count >= HEC_INTERN_CONFIGS) {
            uint32_t id = name_of_hash(name, name_hash, strnlen(name, NAME_BYTES_MAX));
            if (id == 0)
                return 0;
            struct hec_trace_config bare = {0};
            struct slot *named = &tables->named[id - 1];
            named->id = HEC_INTERN_CONFIGS + id;
            return define_config(named, &bare, name, name_hash);
        }
        slot->hash = hash ? hash : 1;
        slot->id = ++tables->config_count;
        slot->defined = 0;
    }
    return define_config(slot, config, name, name_hash);
}
