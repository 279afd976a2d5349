/* The schema of the JSON report (JSON Schema, draft 2020-12), from json.def. */
#include "report/json_names.h"
#include "report/json_print.h"

#include <string.h>

enum row_kind { BEGIN, VALUE, NAME, OBJECT, LIST };
struct row {
    enum row_kind kind;
    const char *key, *meaning;
    bool maybe;     /* null too */
    const char *of; /* VALUE: its schema, with ' for "; OBJECT and LIST: the object's name */
    const char *(*name)(int);
    int names;
};

#define HEC_JSON_KIND(kind, schema) static const char schema_##kind[] = schema;
#include "report/json_kind.def"
#undef HEC_JSON_KIND

static const struct row rows[] = {
#define HEC_JSON_NAMES(id, function, type, count)
#define HEC_JSON_BEGIN(object, parameters, meaning) {BEGIN, #object, meaning, false, NULL, NULL, 0},
#define HEC_JSON_BEGIN_MAYBE(object, parameters, absent, meaning) {BEGIN, #object, meaning, true, NULL, NULL, 0},
#define HEC_JSON(key, kind, value, meaning) {VALUE, #key, meaning, false, schema_##kind, NULL, 0},
#define HEC_JSON_NAME(key, names, value, meaning) {NAME, #key, meaning, false, NULL, name_##names, COUNT_##names},
#define HEC_JSON_NAME_KNOWN(key, names, known, value, meaning)                                                         \
    {NAME, #key, meaning, true, NULL, name_##names, COUNT_##names},
#define HEC_JSON_OBJECT(key, object, arguments, meaning) {OBJECT, #key, meaning, false, #object, NULL, 0},
#define HEC_JSON_LIST(key, object, rows, meaning) {LIST, #key, meaning, false, #object, NULL, 0},
#define HEC_JSON_ROWS(function, parameters, count, when, row)
#define HEC_JSON_END
#include "report/json.def"
};

static json_t *reference(const char *object) {
    return json_pack("{s:s+}", "$ref", "#/$defs/", object);
}

/* From a schema with ' for ". */
static json_t *parsed(const char *text) {
    char json[512];
    size_t length = strlen(text);
    if (length >= sizeof json)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        json[i] = (char)(text[i] == '\'' ? '"' : text[i]);
    return json_loads(json, 0, NULL);
}

static json_t *schema_of(const struct row *row) {
    if (row->kind == OBJECT)
        return reference(row->of);
    if (row->kind == LIST)
        return json_pack("{s:s, s:o}", "type", "array", "items", reference(row->of));
    if (row->kind == VALUE)
        return parsed(row->of);
    json_t *names = json_array();
    for (int i = 0; i < row->names; i++)
        json_array_append_new(names, json_string(row->name(i)));
    if (row->maybe)
        json_array_append_new(names, json_null());
    return json_pack("{s:o}", "enum", names);
}

/* An object with the rows that follow its first one. */
static json_t *object_of(const struct row *row, const struct row *end) {
    json_t *required = json_array(), *properties = json_object();
    json_t *type = row->maybe ? json_pack("[s,s]", "object", "null") : json_string("object");
    json_t *object = json_pack("{s:o, s:s, s:b, s:o, s:o}", "type", type, "description", row->meaning,
                               "additionalProperties", 0, "required", required, "properties", properties);
    for (row++; row < end && row->kind != BEGIN; row++) {
        json_t *schema = schema_of(row);
        if (row->meaning[0])
            json_object_set_new(schema, "description", json_string(row->meaning));
        json_object_set_new(properties, row->key, schema);
        json_array_append_new(required, json_string(row->key));
    }
    return object;
}

int hec_report_schema(struct hec_buf *out) {
    const struct row *end = rows + sizeof rows / sizeof rows[0];
    json_t *objects = json_object();
    for (const struct row *row = rows; row < end; row++)
        if (row->kind == BEGIN)
            json_object_set_new(objects, row->key, object_of(row, end));
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:[o, {s:s, s:o}], s:o}", "$schema", "https://json-schema.org/draft/2020-12/schema",
        "$id", "urn:hec:report:2", "title", "HEC report", "description",
        "What `hec report --json` prints: one report, or an array of reports when several files are "
        "given. Missing is null, never 0. Ratios are 0..1.",
        "oneOf", reference("report"), "type", "array", "items", reference("report"), "$defs", objects);
    return hec_json_print(root, out);
}
