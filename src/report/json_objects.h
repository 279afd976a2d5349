/* Inside src/report: the objects of the table HEC_JSON_TABLE (json.def says how one is written) as functions json_OBJECT that
 * make them. Included where all that its values name is declared. */
#define HEC_JSON_NAMES(id, function, type, count)
#define HEC_JSON_BEGIN(object, parameters, meaning)                                                                    \
    static json_t *json_##object parameters {                                                                          \
        json_t *fields = json_object();
#define HEC_JSON_BEGIN_MAYBE(object, parameters, absent, meaning)                                                      \
    static json_t *json_##object parameters {                                                                          \
        if (absent)                                                                                                    \
            return json_null();                                                                                        \
        json_t *fields = json_object();
#define HEC_JSON(key, kind, value, meaning) json_object_set_new(fields, #key, of_##kind(value));
#define HEC_JSON_LATER HEC_JSON
#define HEC_JSON_NAME(key, names, value, meaning)                                                                      \
    json_object_set_new(fields, #key, json_string(name_##names((int)(value))));
#define HEC_JSON_NAME_KNOWN(key, names, known, value, meaning)                                                         \
    json_object_set_new(fields, #key, (known) ? json_string(name_##names((int)(value))) : json_null());
#define HEC_JSON_OBJECT(key, object, arguments, meaning) json_object_set_new(fields, #key, json_##object arguments);
#define HEC_JSON_LIST(key, object, rows, meaning) json_object_set_new(fields, #key, rows);
#define HEC_JSON_LIST_LATER HEC_JSON_LIST
#define HEC_JSON_ROWS(function, parameters, count, when, row)                                                          \
    static json_t *function parameters {                                                                               \
        json_t *rows = json_array();                                                                                   \
        for (int i = 0; i < (count); i++)                                                                              \
            if (when)                                                                                                  \
                json_array_append_new(rows, row);                                                                      \
        return rows;                                                                                                   \
    }
#define HEC_JSON_END                                                                                                   \
    return fields;                                                                                                     \
    }
#include HEC_JSON_TABLE
#include "report/json_end.h"
