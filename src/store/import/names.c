#include "store/import/names.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Eight bytes at a time; only to find the place, the text is compared. */
static uint64_t hash_of(const char *text, size_t length) {
    uint64_t hash = length * UINT64_C(0x9e3779b97f4a7c15), word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, text, length);
    hash = (hash ^ word) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static bool is_plain(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
            return false;
    return true;
}

uint32_t hec_import_names_id(struct hec_import_names *names, const struct hec_sink *sink, const char *text,
                             size_t length) {
    if (length > HEC_IMPORT_NAME_MAX)
        length = HEC_IMPORT_NAME_MAX;
    uint64_t hash = hash_of(text, length);
    struct hec_import_known_name *known = &names->known[hash & (HEC_IMPORT_NAMES - 1)];
    if (known->text && known->hash == hash && known->length == length && memcmp(known->text, text, length) == 0)
        return known->id;
    if (is_plain(text, length)) {
        memcpy(names->clean, text, length);
        names->clean[length] = '\0';
    } else {
        hec_text_clean(names->clean, sizeof names->clean, text, length, true);
    }
    uint32_t id = sink->trace_name(sink->context, names->clean);
    free(known->text);
    known->text = malloc(length + 1);
    if (known->text)
        memcpy(known->text, text, length);
    known->hash = hash;
    known->length = length;
    known->id = id;
    return id;
}

void hec_import_names_free(struct hec_import_names *names) {
    for (int i = 0; i < HEC_IMPORT_NAMES; i++)
        free(names->known[i].text);
}
