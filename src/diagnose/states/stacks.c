#include "diagnose/states/stacks.h"

#include "base/error.h"
#include "diagnose/states/source_lines.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 4096 /* frames that are looked at: parents of a damaged file may go in circles */

static const struct row {
    enum hec_stack_meaning meaning;
    const char *leaf_file, *leaf_function, *file, *function;
} rows[] = {
#define HEC_STACK(meaning, leaf_file, leaf_function, file, function)                                                   \
    {HEC_STACK_##meaning, leaf_file, leaf_function, file, function},
#define HEC_STACK_LOOP(file, function)
#include "diagnose/states/stacks.def"
};

static const struct loop {
    const char *file, *function;
} loops[] = {
#define HEC_STACK(meaning, leaf_file, leaf_function, file, function)
#define HEC_STACK_LOOP(file, function) {file, function},
#include "diagnose/states/stacks.def"
};
#define ROWS (sizeof rows / sizeof rows[0])

int hec_stacks_begin(struct hec_stacks *s, const struct hec_timeline_tables *tables) {
    s->tables = tables;
    s->meaning = calloc(tables->frame_count + 1, 1);
    return s->meaning ? 0 : HEC_ERR_NOMEM;
}

void hec_stacks_free(struct hec_stacks *s) {
    free(s->meaning);
    s->meaning = NULL;
}

static bool of_file(const char *path, size_t length, const char *wanted) {
    size_t tail = strlen(wanted);
    if (tail && wanted[tail - 1] == '/')
        return strstr(path, wanted) != NULL;
    return length >= tail && memcmp(path + length - tail, wanted, tail) == 0;
}

/* "get" is also "Queue.get": from Python 3.11 on functions are recorded with what they are in. */
static bool of_function(const char *name, const char *wanted) {
    const char *dot = strrchr(name, '.');
    return !wanted[0] || strcmp(dot ? dot + 1 : name, wanted) == 0;
}

static bool is(const struct hec_stacks *s, const struct hec_frame *f, const char *file, const char *function) {
    const char *path = hec_timeline_name(s->tables, f->file);
    return of_function(hec_timeline_name(s->tables, f->function), function) && of_file(path, strlen(path), file);
}

/* A package is being imported: what lies inside is read, and does not do its work. */
static bool imports(const struct hec_stacks *s, const struct hec_frame *f) {
    return f->parent && strcmp(hec_timeline_name(s->tables, f->function), "<module>") == 0 &&
           hec_source_rank(hec_timeline_name(s->tables, f->file)) > 0;
}

static enum hec_stack_meaning look(const struct hec_stacks *s, uint32_t leaf) {
    const struct hec_frame *frames = s->tables->frames;
    bool open[ROWS]; /* rows whose leaf holds */
    size_t first = ROWS;
    for (size_t i = 0; i < ROWS; i++)
        open[i] = is(s, &frames[leaf], rows[i].leaf_file, rows[i].leaf_function);
    uint32_t at = leaf;
    for (int depth = 0; at && at < s->tables->frame_count && depth < DEPTH_MAX; depth++, at = frames[at].parent) {
        for (size_t i = 0; i < first; i++)
            if (open[i] && is(s, &frames[at], rows[i].file, rows[i].function))
                first = i;
        if (imports(s, &frames[at]))
            return HEC_STACK_CODE;
    }
    return first < ROWS ? rows[first].meaning : HEC_STACK_CODE;
}

enum hec_stack_meaning hec_stacks_meaning(struct hec_stacks *s, uint32_t leaf) {
    if (!leaf || leaf >= s->tables->frame_count || s->tables->frames[leaf].id != leaf)
        return HEC_STACK_CODE;
    if (!s->meaning[leaf])
        s->meaning[leaf] = (uint8_t)(1 + look(s, leaf));
    return (enum hec_stack_meaning)(s->meaning[leaf] - 1);
}

bool hec_stacks_framed(const struct hec_stacks *s) {
    for (size_t at = 1; s->tables && at < s->tables->frame_count; at++)
        for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
            if (s->tables->frames[at].id == at && is(s, &s->tables->frames[at], loops[i].file, loops[i].function))
                return true;
    return false;
}
