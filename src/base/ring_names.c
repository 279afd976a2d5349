#include "base/ring_names.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct hec_ring_name_entry {
    uint32_t id; /* 0: free */
    uint16_t length;
    uint8_t pieces, complete;
    uint8_t have[32]; /* one bit a piece */
    char *text;
};

void hec_ring_names_init(struct hec_ring_names *names, uint32_t maximum, uint32_t bytes_maximum) {
    memset(names, 0, sizeof *names);
    names->maximum = maximum;
    names->bytes_maximum = bytes_maximum < HEC_RING_NAME_BYTES_MAX ? bytes_maximum : HEC_RING_NAME_BYTES_MAX;
}

void hec_ring_names_free(struct hec_ring_names *names) {
    for (uint32_t i = 0; i < names->capacity; i++)
        free(names->entries[i].text);
    free(names->entries);
    hec_ring_names_init(names, names->maximum, names->bytes_maximum);
}

static struct hec_ring_name_entry *place(struct hec_ring_name_entry *entries, uint32_t capacity, uint32_t id) {
    /* Fibonacci hashing; there is always a free entry, the table is at most half full */
    uint32_t at = (id * UINT32_C(2654435769)) & (capacity - 1);
    while (entries[at].id != 0 && entries[at].id != id)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static int grow(struct hec_ring_names *names) {
    uint32_t capacity = names->capacity ? names->capacity * 2 : 16;
    struct hec_ring_name_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries)
        return HEC_ERR_NOMEM;
    for (uint32_t i = 0; i < names->capacity; i++)
        if (names->entries[i].id != 0)
            *place(entries, capacity, names->entries[i].id) = names->entries[i];
    free(names->entries);
    names->entries = entries;
    names->capacity = capacity;
    return HEC_OK;
}

static void sanitize(char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        size_t step = hec_text_character((unsigned char *)text + at, length - at);
        unsigned char first = (unsigned char)text[at];
        if (step == 0 || first < 0x20 || first == 0x7f)
            text[at] = '?';
        at += step ? step : 1;
    }
}

int hec_ring_names_add(struct hec_ring_names *names, const struct hec_ring_name *piece) {
    uint32_t pieces = (piece->length + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE;
    if (piece->id == 0 || piece->length == 0 || piece->pieces != pieces || piece->piece >= pieces)
        return HEC_ERR_CORRUPT;
    if (piece->length > names->bytes_maximum)
        return HEC_ERR_LIMIT;
    if ((names->count + 1) * 2 > names->capacity && names->count < names->maximum) {
        int err = grow(names);
        if (err)
            return err;
    }
    if (names->capacity == 0)
        return HEC_ERR_LIMIT;
    struct hec_ring_name_entry *entry = place(names->entries, names->capacity, piece->id);
    if (entry->id == 0 && names->count >= names->maximum)
        return HEC_ERR_LIMIT;
    if (entry->id == 0 || entry->length != piece->length) {
        char *text = malloc((size_t)piece->length + 1);
        if (!text)
            return HEC_ERR_NOMEM;
        names->count += entry->id == 0;
        free(entry->text);
        *entry = (struct hec_ring_name_entry){
            .id = piece->id, .length = piece->length, .pieces = piece->pieces, .text = text};
        text[piece->length] = '\0';
    } else if (entry->complete) {
        return HEC_OK; /* defined twice: two threads met at its first use */
    }
    size_t at = (size_t)piece->piece * HEC_RING_NAME_PIECE;
    size_t length = piece->length - at < HEC_RING_NAME_PIECE ? piece->length - at : HEC_RING_NAME_PIECE;
    memcpy(entry->text + at, piece->text, length);
    entry->have[piece->piece / 8] |= (uint8_t)(1u << (piece->piece % 8));
    for (uint32_t i = 0; i < pieces; i++)
        if (!(entry->have[i / 8] & (1u << (i % 8))))
            return HEC_OK;
    /* the analyser does not follow the assignment of the whole entry above and takes text for the freed one */
    sanitize(entry->text, entry->length); /* NOLINT(clang-analyzer-unix.Malloc) */
    entry->complete = 1;
    return HEC_OK;
}

const char *hec_ring_names_text(const struct hec_ring_names *names, uint32_t id) {
    if (id == 0 || names->capacity == 0)
        return NULL;
    const struct hec_ring_name_entry *entry = place(names->entries, names->capacity, id);
    return entry->id == id && entry->complete ? entry->text : NULL;
}
