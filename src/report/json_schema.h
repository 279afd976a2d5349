/* Inside src/report and for tables like its own: the rows of the table HEC_JSON_TABLE (json.def says how one is written), and a schema
 * made of them (JSON Schema, draft 2020-12). */
#pragma once

#include "base/buf.h"

#include <stdbool.h>

enum hec_json_row_kind { BEGIN, VALUE, NAME, OBJECT, LIST };
struct hec_json_row {
    enum hec_json_row_kind kind;
    const char *key, *meaning;
    bool maybe;     /* null too */
    const char *of; /* VALUE: its kind; OBJECT and LIST: the object's name */
    const char *(*name)(int);
    int names;
};

struct hec_json_document {
    const char *id, *title, *description, *root; /* root: an object of the table */
    bool or_list;                                /* or an array of them */
    bool older; /* what older builds wrote is read: a name that may be null may be missing, and what is LATER */
};

int hec_json_schema(const struct hec_json_row *rows, size_t count, const struct hec_json_document *document,
                    struct hec_buf *out);

#ifdef HEC_JSON_TABLE
#include "report/json_names.h"

static const struct hec_json_row hec_json_rows[] = {
#define HEC_JSON_NAMES(id, function, type, count)
#define HEC_JSON_BEGIN(object, parameters, meaning) {BEGIN, #object, meaning, false, NULL, NULL, 0},
#define HEC_JSON_BEGIN_MAYBE(object, parameters, absent, meaning) {BEGIN, #object, meaning, true, NULL, NULL, 0},
#define HEC_JSON(key, kind, value, meaning) {VALUE, #key, meaning, false, #kind, NULL, 0},
#define HEC_JSON_LATER(key, kind, value, meaning) {VALUE, #key, meaning, true, #kind, NULL, 0},
#define HEC_JSON_NAME(key, names, value, meaning) {NAME, #key, meaning, false, NULL, name_##names, COUNT_##names},
#define HEC_JSON_NAME_KNOWN(key, names, known, value, meaning)                                                         \
    {NAME, #key, meaning, true, NULL, name_##names, COUNT_##names},
#define HEC_JSON_OBJECT(key, object, arguments, meaning) {OBJECT, #key, meaning, false, #object, NULL, 0},
#define HEC_JSON_LIST(key, object, rows, meaning) {LIST, #key, meaning, false, #object, NULL, 0},
#define HEC_JSON_LIST_LATER(key, object, rows, meaning) {LIST, #key, meaning, true, #object, NULL, 0},
#define HEC_JSON_ROWS(function, parameters, count, when, row)
#define HEC_JSON_END
#include HEC_JSON_TABLE
};
#include "report/json_end.h"

/* Of the table, with the fields of a document. */
#define HEC_JSON_SCHEMA(out, ...)                                                                                      \
    hec_json_schema(hec_json_rows, sizeof hec_json_rows / sizeof hec_json_rows[0],                                     \
                    &(const struct hec_json_document){__VA_ARGS__}, out)
#endif
