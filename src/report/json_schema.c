/* Schemas of what HEC prints as JSON. */
#include "report/json_schema.h"

#include "report/json_print.h"
#include "report/words/causes.h"

#include <string.h>

static const struct {
    const char *kind, *schema; /* with ' for " */
} kinds[] = {
#define HEC_JSON_KIND(kind, schema) {#kind, schema},
#include "report/json_kind.def"
};

static json_t *reference(const char *object) {
    return json_pack("{s:s+}", "$ref", "#/$defs/", object);
}

static json_t *schema_of_kind(const char *kind) {
    const char *schema = "";
    char json[512];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            schema = kinds[i].schema;
    size_t length = strlen(schema);
    if (length >= sizeof json)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        json[i] = (char)(schema[i] == '\'' ? '"' : schema[i]);
    return json_loads(json, 0, NULL);
}

static json_t *schema_of(const struct hec_json_row *row) {
    if (row->kind == OBJECT)
        return reference(row->of);
    if (row->kind == LIST)
        return json_pack("{s:s, s:o}", "type", "array", "items", reference(row->of));
    if (row->kind == VALUE)
        return schema_of_kind(row->of);
    json_t *names = json_array();
    for (int i = 0; i < row->names; i++)
        json_array_append_new(names, json_string(row->name(i)));
    if (row->maybe)
        json_array_append_new(names, json_null());
    return json_pack("{s:o}", "enum", names);
}

/* An object with the rows that follow its first one. */
static json_t *object_of(const struct hec_json_row *row, const struct hec_json_row *end, bool older) {
    json_t *required = json_array(), *properties = json_object();
    json_t *type = row->maybe ? json_pack("[s,s]", "object", "null") : json_string("object");
    char meaning[HEC_LIMIT_WORDS];
    json_t *object = json_pack("{s:o, s:s, s:b, s:o, s:o}", "type", type, "description",
                               hec_limit_words(meaning, sizeof meaning, HEC_CAUSE_COUNT, row->meaning),
                               "additionalProperties", 0, "required", required, "properties", properties);
    for (row++; row < end && row->kind != BEGIN; row++) {
        json_t *schema = schema_of(row);
        if (row->meaning[0])
            json_object_set_new(schema, "description",
                                json_string(hec_limit_words(meaning, sizeof meaning, HEC_CAUSE_COUNT, row->meaning)));
        json_object_set_new(properties, row->key, schema);
        if (!older || !row->maybe)
            json_array_append_new(required, json_string(row->key));
    }
    return object;
}

int hec_json_schema(const struct hec_json_row *rows, size_t count, const struct hec_json_document *document,
                    struct hec_buf *out) {
    const struct hec_json_row *end = rows + count;
    json_t *objects = json_object();
    for (const struct hec_json_row *row = rows; row < end; row++)
        if (row->kind == BEGIN)
            json_object_set_new(objects, row->key, object_of(row, end, document->older));
    json_t *root = json_pack("{s:s, s:s, s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "$id",
                             document->id, "title", document->title, "description", document->description);
    if (document->or_list)
        json_object_set_new(root, "oneOf",
                            json_pack("[o, {s:s, s:o}]", reference(document->root), "type", "array", "items",
                                      reference(document->root)));
    else
        json_object_set_new(root, "$ref", json_sprintf("#/$defs/%s", document->root));
    json_object_set_new(root, "$defs", objects);
    return hec_json_print(root, out);
}
