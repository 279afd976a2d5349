/* What an importer reports of files that a test writes. */
#pragma once

#include "store/import/import.h"
#include "tests/unit/folder.h"
#include "tests/unit/kept.h"

#include <fcntl.h>

static struct {
    struct hec_import_stats stats;
    struct hec_why why;
} imported;

/* What the tests of a file opened is closed, and who read for them has ended. */
static int files_before;
static inline int import_begin(void **state) {
    files_before = open_files();
    return folder_make(state);
}
static inline int import_end(void **state) {
    assert_int_equal(open_files(), files_before);
    return folder_remove(state);
}
ALL_TESTS(import_begin, import_end)

static inline void import_clear(void) {
    kept_clear();
    memset(&imported, 0, sizeof imported);
}

/* Imports the files together; everything told is in `kept`. */
static inline int import_files(const char *const *paths, int count) {
    import_clear();
    struct hec_import *import = NULL;
    int err = hec_import_new(&keeping, NULL, NULL, &import, &imported.why);
    for (int i = 0; i < count && err == HEC_OK; i++)
        err = hec_import_scan(import, paths[i], &imported.why);
    for (int i = 0; i < count && err == HEC_OK; i++)
        err = hec_import_read(import, hec_import_path(import, i), &imported.why);
    if (import)
        imported.stats = *hec_import_stats(import);
    hec_import_free(import);
    for (int i = 0; i < kept.activities; i++)
        assert_true(kept.activity[i].start_ns >= 0);
    for (int i = 0; i < kept.devices; i++)
        assert_int_equal(kept.device[i].index, i);
    if (err < 0) {
        assert_true(imported.why.text[0] != '\0');
        assert_null(strchr(imported.why.text, '\n'));
    }
    return err;
}

static inline int import_file(const char *path) {
    return import_files(&path, 1);
}

/* A trace, written with ' for ". */
static inline const char *import_write(const char *name, const char *trace) {
    char *text = strdup(trace);
    for (char *at = text; *at; at++) /* strchr looks at all of the text each time under AddressSanitizer */
        if (*at == '\'')
            *at = '"';
    const char *path = folder_write(name, text, strlen(text));
    free(text);
    return path;
}

static inline int import_text(const char *trace) {
    return import_file(import_write("trace.json", trace));
}

/* Events between the brackets of a trace of one file. */
static inline int import_events(const char *events) {
    char *text = malloc(strlen(events) + 64);
    sprintf(text, "{'traceEvents': [%s]}", events);
    int err = import_text(text);
    free(text);
    if (err < 0)
        fail_msg("%s", imported.why.text);
    return err;
}
