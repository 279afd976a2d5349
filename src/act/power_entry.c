#include "act/power_entry.h"

#include "base/sha256.h"
#include "base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_FAMILY "hec.power/"
#define LIMIT_MAX INT64_C(100000000) /* 100 kW in mW, and far beyond any clock */
#define UUID_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

static const char *const knobs[HEC_POWER_KNOB_COUNT] = {"cap", "clock"};

const char *hec_power_knob_name(enum hec_power_knob knob) {
    return knobs[knob];
}

enum field_kind { TEXT, NUMBER };
#define FIELD_TEXT(name)                                                                                               \
    { #name, TEXT, offsetof(struct hec_power_entry, name), sizeof((struct hec_power_entry *)0)->name, 0 }
#define FIELD_NUMBER(name, least)                                                                                      \
    { #name, NUMBER, offsetof(struct hec_power_entry, name), 0, least }
static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset, size;
    int64_t least;
} fields[] = {
    FIELD_TEXT(uuid),        FIELD_TEXT(machine),     FIELD_TEXT(boot),
    FIELD_TEXT(driver),      FIELD_NUMBER(prior, 0),  FIELD_NUMBER(value, 1),
    FIELD_NUMBER(before, 0), FIELD_NUMBER(holder, 1), FIELD_NUMBER(holder_start, 0),
    FIELD_TEXT(program),
};
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

int hec_power_entry_print(const struct hec_power_entry *entry, struct hec_buf *out) {
    json_t *root = json_object();
    json_object_set_new(root, "schema", json_string(HEC_POWER_SCHEMA));
    json_object_set_new(root, "knob", json_string(knobs[entry->knob]));
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const void *at = (const char *)entry + fields[i].offset;
        json_object_set_new(root, fields[i].name,
                            fields[i].kind == TEXT ? json_string(at) : json_integer(*(const int64_t *)at));
    }
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    int err = text ? hec_buf_puts(out, text) : HEC_ERR_NOMEM;
    free(text);
    return err;
}

static bool take_field(const json_t *root, const struct field *field, struct hec_power_entry *entry) {
    const json_t *value = json_object_get(root, field->name);
    void *at = (char *)entry + field->offset;
    int64_t number = json_integer_value(value);
    int64_t most = field->offset >= offsetof(struct hec_power_entry, holder) ? INT64_MAX : LIMIT_MAX;
    if (field->kind == NUMBER) {
        *(int64_t *)at = number;
        return json_is_integer(value) && number >= field->least && number <= most;
    }
    if (!json_is_string(value) || json_string_length(value) >= field->size)
        return false;
    hec_text_clean(at, field->size, json_string_value(value), json_string_length(value), true);
    return strcmp(at, json_string_value(value)) == 0 || field->offset == offsetof(struct hec_power_entry, program);
}

static int read_fields(const json_t *root, struct hec_power_entry *entry, struct hec_why *why) {
    const json_t *schema = json_object_get(root, "schema"), *knob = json_object_get(root, "knob");
    const char *name = json_is_string(schema) ? json_string_value(schema) : "";
    char key[HEC_POWER_KEY];
    if (strncmp(name, SCHEMA_FAMILY, strlen(SCHEMA_FAMILY)) == 0 && strcmp(name, HEC_POWER_SCHEMA) != 0)
        return hec_fail(why, HEC_ERR_VERSION, "it is of another version of HEC");
    bool good = strcmp(name, HEC_POWER_SCHEMA) == 0 && json_is_string(knob);
    int found = 0;
    while (good && found < HEC_POWER_KNOB_COUNT && strcmp(knobs[found], json_string_value(knob)) != 0)
        found++;
    good = good && found < HEC_POWER_KNOB_COUNT;
    for (size_t i = 0; good && i < FIELD_COUNT; i++)
        good = take_field(root, &fields[i], entry);
    entry->knob = good ? (enum hec_power_knob)found : HEC_POWER_CAP;
    /* a cap of nothing was never there; of clocks, only "not locked" can be put back */
    good = good && (entry->knob == HEC_POWER_CAP ? entry->prior > 0 : entry->prior == 0);
    if (!good || hec_power_entry_key(entry->uuid, entry->machine, key) < 0)
        return hec_fail(why, HEC_ERR_CORRUPT, "it is damaged");
    return HEC_OK;
}

int hec_power_entry_parse(const char *text, size_t length, struct hec_power_entry *entry, struct hec_why *why) {
    json_error_t reason;
    *entry = (struct hec_power_entry){0};
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    int err = root ? read_fields(root, entry, why)
                   : hec_fail(why, HEC_ERR_CORRUPT, "it is damaged: line %d is no JSON", reason.line);
    json_decref(root);
    return err;
}

int hec_power_entry_key(const char *uuid, const char *machine, char key[HEC_POWER_KEY]) {
    size_t length = strlen(uuid);
    if (length < 8 || length > 90 || strspn(uuid, UUID_CHARACTERS) != length)
        return HEC_ERR_USAGE;
    const char *state = machine[0] ? strstr(machine, "state=") : NULL;
    if (machine[0] && !state)
        return HEC_ERR_USAGE;
    char digest[HEC_SHA256_TEXT] = "";
    if (state)
        hec_sha256(digest, state, strlen(state)); /* however many devices a run asked for */
    snprintf(key, HEC_POWER_KEY, state ? "%s-%.16s" : "%s", uuid, digest);
    return HEC_OK;
}
