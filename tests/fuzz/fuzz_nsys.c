/* Bytes as an export of Nsight Systems. The first byte chooses: even, the rest is the file; odd, the rest is rows of an
 * otherwise sound export, of the version of 2022 or with what 2025 adds. */
#include "../unit/nsys_schema.h"
#include "import_sink.h"
#include "sqlite_bytes.h"

#include <stdint.h>

static void bind(sqlite3_stmt *s, int column, struct bytes *b) {
    size_t length = text_length(b);
    bind_kind(s, column, b, take_number(b) & 7, length);
}

static const char *const tables[] = {
    "StringIds",
    "ThreadNames",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "TARGET_INFO_GPU",
    "ENUM_CUDA_MEM_KIND",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "NVTX_EVENTS",
    "TARGET_INFO_SESSION_START_TIME",
    "TARGET_INFO_CUDA_DEVICE",
    "PROCESSES",
};
#define TABLES (int)(sizeof tables / sizeof tables[0])

static int columns_of(sqlite3 *db, const char *table) {
    char sql[128];
    sqlite3_stmt *s = NULL;
    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table);
    int count = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? sqlite3_column_count(s) : 0;
    sqlite3_finalize(s);
    return count;
}

/* An export without rows, made once: making tables takes longer than reading them. */
static void write_empty(const char *path, bool newer) {
    static struct {
        unsigned char *bytes;
        size_t size;
    } image[2];
    if (!image[newer].bytes) {
        sqlite3 *db;
        fuzz_write(path, "", 0);
        if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) ||
            sqlite3_exec(db, nsys_2022, NULL, NULL, NULL) || (newer && sqlite3_exec(db, nsys_2025, NULL, NULL, NULL)) ||
            sqlite3_exec(db, nsys_strings, NULL, NULL, NULL) || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL))
            abort();
        sqlite3_close(db);
        FILE *file = fopen(path, "rb");
        image[newer].bytes = malloc(1 << 20);
        image[newer].size = fread(image[newer].bytes, 1, 1 << 20, file);
        fclose(file);
    }
    fuzz_write(path, image[newer].bytes, image[newer].size);
}

static void write_rows(const char *path, struct bytes b, bool newer) {
    sqlite3 *db;
    write_empty(path, newer);
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN;", NULL, NULL, NULL))
        abort();
    while (b.size > 0) {
        const char *table = tables[(uint64_t)take_number(&b) % TABLES];
        char sql[256];
        int columns = columns_of(db, table),
            length = snprintf(sql, sizeof sql, "INSERT OR IGNORE INTO \"%s\" VALUES (", table);
        for (int i = 0; i < columns; i++)
            length += snprintf(sql + length, sizeof sql - (size_t)length, "%s?", i ? "," : "");
        snprintf(sql + length, sizeof sql - (size_t)length, ")");
        sqlite3_stmt *s = NULL;
        if (columns == 0 || sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
            continue; /* the table is of 2025 */
        for (int i = 1; i <= columns; i++)
            bind(s, i, &b);
        sqlite3_step(s);
        sqlite3_finalize(s);
    }
    if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        abort();
    sqlite3_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_path(".sqlite");
    if (size == 0)
        return 0;
    if (data[0] & 1)
        write_rows(path, (struct bytes){data + 1, size - 1}, data[0] & 2);
    else
        fuzz_write(path, data + 1, size - 1);
    import_and_check(path);
    return 0;
}
