#include "act/levers.h"

#include "diagnose/input.h"
#include "observe/marks/marks.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum id {
#define HEC_LEVER_ROW(id, ...) ROW_##id,
#define HEC_LEVER_VARIABLE(...)
#include "act/levers.def"
#undef HEC_LEVER_ROW
#undef HEC_LEVER_VARIABLE
    ROWS
};

#define A(id) (UINT64_C(1) << HEC_LEVER_##id)
#define ALWAYS (UINT64_C(1) << HEC_LEVER_COUNT)
#define INFERENCE (UINT64_C(2) << HEC_LEVER_COUNT)
#define TRAINING (UINT64_C(4) << HEC_LEVER_COUNT)
#define RANKS (UINT64_C(8) << HEC_LEVER_COUNT)
#define LIVE (UINT64_C(16) << HEC_LEVER_COUNT)
#define CONVOLUTIONS (UINT64_C(32) << HEC_LEVER_COUNT)
#define PASSES (UINT64_C(64) << HEC_LEVER_COUNT)
#define NAMED (UINT64_C(128) << HEC_LEVER_COUNT)
static const struct hec_lever_row rows[] = {
#define HEC_LEVER_ROW(id, name, place, risk, family, value, answers, what, needs, code)                                \
    {name,                                                                                                             \
     HEC_LEVER_PLACE_##place,                                                                                          \
     HEC_LEVER_RISK_##risk,                                                                                            \
     family,                                                                                                           \
     value,                                                                                                            \
     (answers) & (ALWAYS - 1),                                                                                         \
     ((answers)&ALWAYS) != 0,                                                                                          \
     ((answers)&INFERENCE) != 0,                                                                                       \
     ((answers)&TRAINING) != 0,                                                                                        \
     ((answers)&RANKS) != 0,                                                                                           \
     ((answers)&LIVE) != 0,                                                                                            \
     ((answers)&CONVOLUTIONS) != 0,                                                                                    \
     ((answers)&PASSES) != 0,                                                                                          \
     ((answers)&NAMED) != 0,                                                                                           \
     what,                                                                                                             \
     needs,                                                                                                            \
     code},
#define HEC_LEVER_VARIABLE(...)
#include "act/levers.def"
#undef HEC_LEVER_ROW
#undef HEC_LEVER_VARIABLE
};
#undef A
#undef INFERENCE
#undef TRAINING
#undef RANKS
#undef LIVE
#undef CONVOLUTIONS
#undef PASSES
#undef NAMED
#undef ALWAYS
_Static_assert(HEC_LEVER_COUNT < 56, "bits of answers");

static const struct {
    enum id id;
    struct hec_lever_variable variable;
} variables[] = {
#define HEC_LEVER_ROW(...)
#define HEC_LEVER_VARIABLE(id, name, how, value) {ROW_##id, {name, HEC_LEVER_##how, value}},
#include "act/levers.def"
#undef HEC_LEVER_ROW
#undef HEC_LEVER_VARIABLE
};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

const struct hec_lever_row *hec_lever_row(int i) {
    return i >= 0 && i < ROWS ? &rows[i] : NULL;
}

const struct hec_lever_row *hec_lever_find(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct hec_lever_row *hec_lever_knob(void) {
    static const struct hec_lever_row row = {.name = "knob",
                                             .place = HEC_LEVER_PLACE_PROGRAM,
                                             .risk = HEC_LEVER_RISK_NUMERICS,
                                             .family = "",
                                             .value = "VALUE",
                                             .what = "a value that the program reads as a knob",
                                             .needs = "a program that reads knobs",
                                             .code = ""};
    return &row;
}

const char *hec_lever_place_name(enum hec_lever_place place) {
    static const char *const names[] = {"program", "device", "pytorch", "jax", "tensorflow"};
    return (unsigned)place < HEC_LEVER_PLACES ? names[place] : "?";
}

const char *hec_lever_risk_name(enum hec_lever_risk risk) {
    static const char *const names[] = {"exact", "ulp", "draws", "numerics", "semantics"};
    return (unsigned)risk < HEC_LEVER_RISKS ? names[risk] : "?";
}

const struct hec_lever_variable *hec_lever_variable(const struct hec_lever_row *row, int i) {
    for (int v = 0; v < VARIABLES; v++)
        if (&rows[variables[v].id] == row && i-- == 0)
            return &variables[v].variable;
    return NULL;
}

bool hec_lever_needs_value(const struct hec_lever_row *row) {
    const struct hec_lever_variable *variable = hec_lever_variable(row, 0);
    return row->place == HEC_LEVER_PLACE_DEVICE || row->named || (variable && strcmp(variable->value, "%s") == 0);
}

/* ---- sets ---- */

/* "N", "BYTES", "W": a whole number above 0; "a|b": one of those. */
static bool value_fits(const char *kinds, const char *value) {
    size_t length = strlen(value);
    if (isupper((unsigned char)kinds[0])) {
        char *end;
        long long number = strtoll(value, &end, 10);
        return isdigit((unsigned char)value[0]) && !*end && number > 0 && number < INT64_C(1) << 40;
    }
    for (const char *at = kinds; *at;) {
        size_t word = strcspn(at, "|");
        if (word == length && strncmp(at, value, length) == 0)
            return true;
        at += word + (at[word] == '|');
    }
    return false;
}

bool hec_lever_excludes(const struct hec_lever_use *one, const struct hec_lever_use *other) {
    return one->knob[0] ? strcmp(one->knob, other->knob) == 0
                        : one->row->family[0] && strcmp(one->row->family, other->row->family) == 0;
}

static int add_use(struct hec_lever_set *set, const struct hec_lever_use *use, struct hec_why *why) {
    char name[HEC_LEVER_NAME];
    hec_lever_use_name(use, name);
    for (int i = 0; i < set->count; i++)
        if (set->list[i].row == use->row && strcmp(set->list[i].knob, use->knob) == 0)
            return hec_fail(why, HEC_ERR_USAGE, "%s is there twice", name);
        else if (hec_lever_excludes(&set->list[i], use))
            return hec_fail(why, HEC_ERR_USAGE, "%s and %s exclude each other", set->list[i].row->name, name);
    if (set->count == HEC_LEVERS_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "more than %d levers", HEC_LEVERS_MAX);
    set->list[set->count++] = *use;
    return HEC_OK;
}

/* "batch=64", as `hec run --knob` takes it, with a value that is short. */
static int add_knob(struct hec_lever_set *set, const char *assignment, struct hec_why *why) {
    struct hec_lever_use use = {.row = hec_lever_knob()};
    struct hec_buf checked;
    hec_buf_init(&checked, HEC_MARKS_KNOBS_MAX + 1);
    int err = hec_marks_knob_add(&checked, assignment, why);
    hec_buf_free(&checked);
    if (err < 0)
        return err;
    const char *value = strchr(assignment, '=') + 1;
    snprintf(use.knob, sizeof use.knob, "%.*s", (int)(value - 1 - assignment), assignment);
    if (!*value || strlen(value) >= sizeof use.value)
        return hec_fail(why, HEC_ERR_USAGE, "knob %s as a lever takes a value of 1 to %d bytes, not \"%s\"", use.knob,
                        HEC_LEVER_VALUE - 1, value);
    snprintf(use.value, sizeof use.value, "%s", value);
    return add_use(set, &use, why);
}

static int add_lever(struct hec_lever_set *set, char *word, struct hec_why *why) {
    if (strncmp(word, HEC_KNOB_LEVER, strlen(HEC_KNOB_LEVER)) == 0)
        return add_knob(set, word + strlen(HEC_KNOB_LEVER), why);
    char *equals = strchr(word, '=');
    if (equals)
        *equals++ = '\0';
    const struct hec_lever_row *row = hec_lever_find(word);
    if (!row)
        return hec_fail(why, HEC_ERR_USAGE, "there is no lever \"%s\"; `hec levers` lists them", word);
    if (row->risk == HEC_LEVER_RISK_SEMANTICS && !row->named)
        return hec_fail(why, HEC_ERR_USAGE,
                        "%s changes what is computed, so it is yours to make: `hec levers %s` shows how", word, word);
    if (equals && (!row->value[0] || strlen(equals) >= HEC_LEVER_VALUE || !value_fits(row->value, equals)))
        return hec_fail(why, HEC_ERR_USAGE, "%s takes %s%s, not \"%s\"", word, row->value[0] ? "=" : "no value",
                        row->value, equals);
    if (!equals && hec_lever_needs_value(row))
        return hec_fail(why, HEC_ERR_USAGE, "%s needs a value: %s=%s", word, word, row->value);
    struct hec_lever_use use = {.row = row};
    snprintf(use.value, sizeof use.value, "%s", equals ? equals : "");
    return add_use(set, &use, why);
}

int hec_lever_set_add(struct hec_lever_set *set, const char *text, struct hec_why *why) {
    char *copy = strdup(text), *rest = copy, *word;
    int err = copy ? HEC_OK : hec_fail(why, HEC_ERR_NOMEM, "no memory for the levers");
    while (err == HEC_OK && (word = strsep(&rest, ",")))
        if (*word)
            err = add_lever(set, word, why);
    free(copy);
    return err;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

void hec_lever_paste(const struct hec_lever_use *use, char *out, size_t size) {
    const char *name = use->row->value, *code = use->row->code;
    size_t length = strlen(name), n = 0;
    if (use->knob[0]) {
        bool number = strspn(use->value, "+-.0123456789eE") == strlen(use->value);
        snprintf(out, size, number ? "hec.knob(\"%s\", %s)" : "hec.knob(\"%s\", \"%s\")", use->knob, use->value);
        return;
    }
    for (size_t i = 0; code[i] && n + 1 < size;) {
        bool whole = use->value[0] && length && strncmp(code + i, name, length) == 0 && !is_word(code[i + length]) &&
                     (i == 0 || !is_word(code[i - 1]));
        const char *from = whole ? use->value : code + i;
        size_t count = whole ? strlen(use->value) : 1;
        count = count < size - 1 - n ? count : size - 1 - n;
        memcpy(out + n, from, count);
        n += count;
        i += whole ? length : 1;
    }
    out[n] = '\0';
}

void hec_lever_set_text(const struct hec_lever_set *set, char text[HEC_LEVERS_TEXT]) {
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < set->count && length < HEC_LEVERS_TEXT; i++) {
        char one[HEC_LEVER_TEXT];
        length += (size_t)snprintf(text + length, HEC_LEVERS_TEXT - length, "%s%s", i ? "," : "",
                                   hec_lever_use_text(&set->list[i], one));
    }
}

char *hec_lever_use_name(const struct hec_lever_use *use, char out[HEC_LEVER_NAME]) {
    snprintf(out, HEC_LEVER_NAME, "%s%s", use->knob[0] ? HEC_KNOB_LEVER : use->row->name, use->knob);
    return out;
}

char *hec_lever_use_text(const struct hec_lever_use *use, char out[HEC_LEVER_TEXT]) {
    char name[HEC_LEVER_NAME];
    snprintf(out, HEC_LEVER_TEXT, "%s%s%s", hec_lever_use_name(use, name), use->value[0] ? "=" : "", use->value);
    return out;
}
