/* The plain structs of model/run.h as rows: one table of fields each, used to write, to read and to copy. */
#pragma once

#include "store/sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hec_field_kind {
    HEC_FIELD_TEXT,           /* char[]; "" is NULL */
    HEC_FIELD_INTEGER,        /* int or int64_t */
    HEC_FIELD_DEVICE,         /* int; the index of a device */
    HEC_FIELD_DEVICE_OR_NONE, /* the same; negative means none and is NULL */
    HEC_FIELD_KNOWN,          /* int or int64_t; what is not within 0 and HEC_RECORD_KNOWN_MAX is unknown, and NULL */
    HEC_FIELD_UNSIGNED,       /* uint32_t */
    HEC_FIELD_CHOICE,         /* an enum, as int; in the file one of choices, as text */
    HEC_FIELD_TIME,           /* int64_t; in the file relative to the origin */
    HEC_FIELD_TIME_OPEN       /* the same; negative means not yet and is NULL */
};

/* Times in a file are within +-36 years, so that differences of two never overflow. */
#define HEC_RECORD_TIME_MAX_NS (INT64_C(1) << 60)

/* No size in KiB, rate or time in ms is larger; 1024 times as much is a number still. */
#define HEC_RECORD_KNOWN_MAX (INT64_C(1) << 52)

/* The table meta: what a writer takes, what a reader takes. The writer says a few things of itself at the end. */
#define HEC_META_KEYS_MAX 4096
#define HEC_META_BYTES_MAX (4 << 20)
#define HEC_META_KEYS_OWN 8
#define HEC_META_BYTES_OWN 4096

struct hec_field {
    const char *column;
    enum hec_field_kind kind;
    size_t offset, size;
    const char *const *choices; /* of a CHOICE, NULL at the end */
    unsigned from;              /* the first version of the format that has the column; 0: every one */
    const char *before;         /* what is read of older ones, as SQL */
};

struct hec_record {
    const char *table;
    const char *order; /* ORDER BY of the reader */
    bool sorted;       /* that order is not the one of its key */
    const struct hec_field *fields;
    int count;
};

/* Structs that are rows of a table. */
enum hec_record_kind {
    HEC_RECORD_DEVICE,
    HEC_RECORD_PROCESS,
    HEC_RECORD_GPU_PROCESS,
    HEC_RECORD_TRACER,
    HEC_RECORD_TRACK,
    HEC_RECORD_KERNEL,
    HEC_RECORD_FRAME,
    HEC_RECORD_COUNT
};
extern const struct hec_record hec_records[HEC_RECORD_COUNT];

/* SQL texts from the fields: "INSERT OR REPLACE INTO ...", and "SELECT ... FROM ..." of a file of that version. */
int hec_record_insert_sql(const struct hec_record *record, char *sql, size_t size);
int hec_record_select_sql(const struct hec_record *record, unsigned version, char *sql, size_t size);

/* Whether a reader takes the struct as it will be in the file. */
bool hec_record_fits(const struct hec_record *record, const void *data, int64_t origin_ns);

/* Bind a struct that fits to an insert statement. Returns SQLite's code. */
int hec_record_bind(const struct hec_record *record, sqlite3_stmt *statement, const void *data, int64_t origin_ns);

/* A row of a select statement into a struct. Every type, range and length is checked: HEC_ERR_CORRUPT. */
int hec_record_read(const struct hec_record *record, sqlite3_stmt *statement, void *data, struct hec_why *why);
