/* A report as JSON: its values by their path, and that the published schema names its keys. */
#pragma once

#include "report_text.h"

#include <jansson.h>

static json_t *report;

/* What `out` is, until the next one. */
static inline json_t *parse(void) {
    json_error_t error;
    json_decref(report);
    report = json_loads(hec_buf_text(&out), JSON_REJECT_DUPLICATES, &error);
    if (!report)
        fail_msg("%s at line %d", error.text, error.line);
    return report;
}

/* "devices.0.energy.joules"; NULL: there is none. */
static inline json_t *value_at(const char *path) {
    json_t *root = report;
    char key[64];
    while (root && *path) {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(key)) : json_object_get(root, key);
        path += length + (path[length] == '.');
    }
    return root;
}

static inline double number_at(const char *path) {
    if (!json_is_number(value_at(path)))
        fail_msg("%s is no number", path);
    return json_number_value(value_at(path));
}

static inline void assert_null_at(const char *path) {
    if (!json_is_null(value_at(path)))
        fail_msg("%s is not null", path);
}

static inline void assert_text_at(const char *path, const char *text) {
    if (!json_is_string(value_at(path)))
        fail_msg("%s is no text", path);
    assert_string_equal(json_string_value(value_at(path)), text);
}

/* The keys of the definition, and no other; required: it says that all of them must be there. */
static void assert_keys(json_t *value, json_t *definition, json_t *all, bool required, const char *where) {
    json_t *reference = json_object_get(definition, "$ref"), *member;
    const char *key;
    size_t i;
    if (reference)
        definition = json_object_get(all, strrchr(json_string_value(reference), '/') + 1);
    json_t *properties = json_object_get(definition, "properties");
    if (json_is_array(value))
        json_array_foreach(value, i, member)
            assert_keys(member, json_object_get(definition, "items"), all, required, where);
    if (!json_is_object(value) || json_is_object(json_object_get(definition, "additionalProperties")))
        return;
    assert_true(json_is_false(json_object_get(definition, "additionalProperties")));
    if (json_object_size(value) != json_object_size(properties) ||
        (required && json_object_size(properties) != json_array_size(json_object_get(definition, "required"))))
        fail_msg("%s: %zu keys, the schema has %zu, %zu of them required", where, json_object_size(value),
                 json_object_size(properties), json_array_size(json_object_get(definition, "required")));
    json_object_foreach(value, key, member) {
        json_t *inner = json_object_get(properties, key);
        if (!inner)
            fail_msg("%s.%s is not in the schema", where, key);
        assert_keys(member, inner, all, required, key);
    }
}

/* docs/FILE.schema.json is what hec prints as its schema, whose definition names the keys of the report. */
static inline void assert_schema(int (*print)(struct hec_buf *to), const char *file, const char *definition,
                                 bool required) {
    char path[512];
    snprintf(path, sizeof path, "%s/docs/%s.schema.json", HEC_SOURCE_DIR, file);
    json_t *published = json_load_file(path, 0, NULL), *all = json_object_get(published, "$defs");
    assert_non_null(published);
    assert_keys(report, json_object_get(all, definition), all, required, definition);
    assert_int_equal(print(page()), 0);
    if (!json_equal(parse(), published))
        fail_msg("%s is old: print it again with --schema", path);
    json_decref(published);
}
