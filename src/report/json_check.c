#include "report/json_check.h"

#include "report/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PATH_SIZE 160
#define DEPTH_MOST 32 /* no schema of ours is as deep */

struct check {
    const json_t *definitions;
    struct hec_why *why;
};

static int check(const struct check *c, const json_t *schema, const json_t *value, const char *path, int depth);

static int fault(const struct check *c, const char *path, const char *what) {
    return hec_fail(c->why, HEC_ERR_CORRUPT, "%s %s", path[0] ? path : "the whole", what);
}

static bool is_of(const json_t *value, const char *type) {
    return strcmp(type, "string") == 0    ? json_is_string(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "integer") == 0 ? json_is_integer(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
           : strcmp(type, "object") == 0  ? json_is_object(value)
           : strcmp(type, "null") == 0    ? json_is_null(value)
                                          : false;
}

/* type: a name, or several. */
static int check_type(const struct check *c, const json_t *type, const json_t *value, const char *path) {
    char what[96] = "is not";
    size_t count = json_is_array(type) ? json_array_size(type) : type ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_is_array(type) ? json_array_get(type, i) : type);
        size_t length = strlen(what);
        if (name && is_of(value, name))
            return HEC_OK;
        snprintf(what + length, sizeof what - length, "%s %s", i ? " or" : "", name ? name : "?");
    }
    return count ? fault(c, path, what) : HEC_OK;
}

static int check_number(const struct check *c, const json_t *schema, const json_t *value, const char *path) {
    const json_t *least = json_object_get(schema, "minimum"), *most = json_object_get(schema, "maximum");
    if ((least && json_number_value(value) < json_number_value(least)) ||
        (most && json_number_value(value) > json_number_value(most)))
        return fault(c, path, "is out of range");
    return HEC_OK;
}

static int check_array(const struct check *c, const json_t *schema, const json_t *value, const char *path, int depth) {
    const json_t *least = json_object_get(schema, "minItems"), *most = json_object_get(schema, "maxItems");
    const json_t *items = json_object_get(schema, "items");
    json_int_t count = (json_int_t)json_array_size(value);
    char inner[PATH_SIZE];
    int err = HEC_OK;
    if ((least && count < json_integer_value(least)) || (most && count > json_integer_value(most)))
        return fault(c, path, "has too few or too many values");
    for (size_t i = 0; items && i < json_array_size(value) && !err; i++) {
        snprintf(inner, sizeof inner, "%.120s[%zu]", path, i);
        err = check(c, items, json_array_get(value, i), inner, depth + 1);
    }
    return err;
}

static int check_object(const struct check *c, const json_t *schema, const json_t *value, const char *path, int depth) {
    const json_t *properties = json_object_get(schema, "properties");
    json_t *required = json_object_get(schema, "required"), *item;
    const char *key;
    char inner[PATH_SIZE], clean[64];
    size_t i;
    json_array_foreach(required, i, item) {
        snprintf(inner, sizeof inner, "%.120s%s%.30s", path, path[0] ? "." : "", json_string_value(item));
        if (!json_object_get(value, json_string_value(item)))
            return fault(c, inner, "is missing");
    }
    json_object_foreach((json_t *)value, key, item) {
        const json_t *inside = json_object_get(properties, key);
        snprintf(inner, sizeof inner, "%.120s%s%.36s", path, path[0] ? "." : "",
                 hec_format_clean(clean, sizeof clean, key, false));
        int err = inside ? check(c, inside, item, inner, depth + 1)
                  : json_is_false(json_object_get(schema, "additionalProperties")) ? fault(c, inner, "is not known")
                                                                                   : HEC_OK;
        if (err < 0)
            return err;
    }
    return HEC_OK;
}

static int check_enum(const struct check *c, const json_t *names, const json_t *value, const char *path) {
    for (size_t i = 0; i < json_array_size(names); i++)
        if (json_equal(json_array_get(names, i), value))
            return HEC_OK;
    return fault(c, path, "is none of the words that may stand there");
}

static int check(const struct check *c, const json_t *schema, const json_t *value, const char *path, int depth) {
    const char *reference = json_string_value(json_object_get(schema, "$ref"));
    const json_t *names = json_object_get(schema, "enum");
    if (depth > DEPTH_MOST)
        return fault(c, path, "is too deep");
    if (reference) {
        const json_t *to = json_object_get(c->definitions, strrchr(reference, '/') + 1);
        return to ? check(c, to, value, path, depth + 1) : fault(c, path, "has no definition in the schema");
    }
    int err = check_type(c, json_object_get(schema, "type"), value, path);
    if (!err && names)
        err = check_enum(c, names, value, path);
    if (!err && json_is_number(value))
        err = check_number(c, schema, value, path);
    if (!err && json_is_array(value))
        err = check_array(c, schema, value, path, depth);
    if (!err && json_is_object(value))
        err = check_object(c, schema, value, path, depth);
    return err;
}

int hec_json_check(const json_t *schema, const json_t *value, struct hec_why *why) {
    struct check c = {json_object_get(schema, "$defs"), why};
    return check(&c, schema, value, "", 0);
}
