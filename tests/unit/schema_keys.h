/* JSON has the keys that its schema names, all of them and no other. */
#ifndef TESTS_UNIT_SCHEMA_KEYS_H
#define TESTS_UNIT_SCHEMA_KEYS_H

#include "unit.h"

#include <jansson.h>

/* definition: of the value, in a schema whose "$defs" are `all`. */
static void assert_keys(json_t *value, json_t *definition, json_t *all) {
    json_t *reference = json_object_get(definition, "$ref"), *items = json_object_get(definition, "items"), *field;
    const char *key;
    size_t i;
    if (reference)
        definition = json_object_get(all, strrchr(json_string_value(reference), '/') + 1);
    if (json_is_array(value) && items)
        json_array_foreach(value, i, field) assert_keys(field, items, all);
    json_t *properties = json_object_get(definition, "properties");
    if (!json_is_object(value) || !properties)
        return;
    assert_int_equal(json_object_size(value), json_object_size(properties));
    json_object_foreach(value, key, field) {
        assert_non_null(json_object_get(properties, key));
        assert_keys(field, json_object_get(properties, key), all);
    }
}

#endif
