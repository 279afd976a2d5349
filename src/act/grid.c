#include "act/grid.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NAME_REST NAME_FIRST "0123456789-"
#define VALUE_BYTES 200
#define ACCUMULATE "accumulate"

/* ---- values ---- */

static int add_value(struct hec_grid_parameter *p, const char *text, size_t length, struct hec_why *why) {
    if (p->count == HEC_GRID_ARMS_MOST)
        return hec_fail(why, HEC_ERR_USAGE, "%s has more than %d values", p->name, HEC_GRID_ARMS_MOST);
    if (!length || length > VALUE_BYTES)
        return hec_fail(why, HEC_ERR_USAGE, "%s has %s", p->name,
                        length ? "a value that is too long" : "an empty value");
    for (int i = 0; i < p->count; i++)
        if (strlen(p->value[i]) == length && memcmp(p->value[i], text, length) == 0)
            return hec_fail(why, HEC_ERR_USAGE, "%s has the value %.*s twice", p->name, (int)length, text);
    char **grown = realloc(p->value, (size_t)(p->count + 1) * sizeof *grown);
    if (grown)
        p->value = grown;
    if (!grown || !(p->value[p->count] = strndup(text, length)))
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the values");
    p->count++;
    return HEC_OK;
}

static bool number_at(const char *text, char **end, double *out) {
    errno = 0;
    *out = strtod(text, end);
    return *end != text && !errno && isfinite(*out) && *text != ' ';
}

/* "32..1024*2", "0..16+4", "0..3", "700..300-100": 1 where it is one, 0 where it is not. */
static int add_range(struct hec_grid_parameter *p, const char *text, struct hec_why *why) {
    const char *dots = strstr(text, "..");
    double from, to, by = 1;
    char head[64], value[32], *end;
    if (!dots || dots == text || dots - text >= (long)sizeof head)
        return 0;
    snprintf(head, sizeof head, "%.*s", (int)(dots - text), text);
    if (!number_at(head, &end, &from) || *end || !number_at(dots + 2, &end, &to))
        return 0;
    char how = *end ? *end : '+';
    if (*end && (!strchr("+-*", how) || !number_at(end + 1, &end, &by) || *end))
        return hec_fail(why, HEC_ERR_USAGE, "%s: the range %s is none of A..B, A..B+STEP, A..B-STEP and A..B*FACTOR",
                        p->name, text);
    if (how == '-' && !(by > 0 && to < from))
        return hec_fail(why, HEC_ERR_USAGE, "%s: the range %s does not go down: a step is above 0", p->name, text);
    if (how == '-')
        by = -by;
    else if (how == '+' ? !(by > 0 && to > from) : !(by > 1 && from > 0 && to > from))
        return hec_fail(why, HEC_ERR_USAGE,
                        "%s: the range %s does not go up: a step is above 0, a factor above 1, from a start above 0",
                        p->name, text);
    for (int i = 0; i <= HEC_GRID_ARMS_MOST; i++) { /* one more than may be: add_value says so */
        double at = how == '*' ? from * pow(by, i) : from + i * by;
        double beyond = by < 0 ? to - at : at - to;
        if (beyond > fabs(to) * 1e-12 + 1e-12)
            break;
        snprintf(value, sizeof value, "%.12g", fabs(at) < fabs(by) * 1e-12 ? 0 : at); /* 0.3 less 3 times 0.1 */
        int err = add_value(p, value, strlen(value), why);
        if (err < 0)
            return err;
    }
    return 1;
}

static int add_values(struct hec_grid_parameter *p, const char *list, struct hec_why *why) {
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        char text[VALUE_BYTES + 2];
        snprintf(text, sizeof text, "%.*s", (int)(length < VALUE_BYTES ? length : VALUE_BYTES), at);
        int err = length <= VALUE_BYTES ? add_range(p, text, why) : 0;
        if (err == 0)
            err = add_value(p, at, length, why);
        if (err < 0)
            return err;
        at += length;
        if (!*at)
            return HEC_OK;
    }
}

static void order(struct hec_grid_parameter *p) {
    char *end;
    p->ordered = true;
    for (int i = 0; i < p->count; i++) {
        p->ordered &= number_at(p->value[i], &end, &p->number[i]) && !*end;
        for (int k = 0; k < i; k++)
            p->ordered &= p->number[k] < p->number[i] || p->number[k] > p->number[i];
    }
}

/* ---- parameters ---- */

/* Names of parameters that are levers. */
static const char *lever_of(const char *name) {
    return strcmp(name, "power") == 0 ? "power_cap" : strcmp(name, "clock") == 0 ? "clock" : NULL;
}

static int find(const struct hec_grid *grid, const char *name) {
    for (int i = 0; i < grid->parameters; i++)
        if (strcmp(grid->parameter[i].name, name) == 0)
            return i;
    return -1;
}

int hec_grid_add(struct hec_grid *grid, const char *text, struct hec_why *why) {
    size_t length = strspn(text, NAME_REST);
    struct hec_grid_parameter *p = &grid->parameter[grid->parameters];
    if (!length || text[length] != '=' || !strchr(NAME_FIRST, text[0]) || length >= HEC_GRID_NAME)
        return hec_fail(why, HEC_ERR_USAGE,
                        "\"%.100s\" is no NAME=VALUE,VALUE...; a name is at most %d letters, digits, '_' and '-'", text,
                        HEC_GRID_NAME - 1);
    if (grid->parameters == HEC_GRID_PARAMETERS_MOST)
        return hec_fail(why, HEC_ERR_USAGE, "more than %d parameters", HEC_GRID_PARAMETERS_MOST);
    memset(p, 0, sizeof *p);
    memcpy(p->name, text, length);
    if (find(grid, p->name) >= 0)
        return hec_fail(why, HEC_ERR_USAGE, "%s is given twice", p->name);
    if (strcmp(p->name, ACCUMULATE) == 0)
        return hec_fail(why, HEC_ERR_USAGE, "{" ACCUMULATE "} follows from --effective-batch and --batch");
    p->lever = lever_of(p->name);
    grid->parameters++; /* what it has so far is freed with it */
    int err = add_values(p, text + length + 1, why);
    if (err < 0)
        return err;
    order(p);
    int64_t arms = (int64_t)(grid->arms ? grid->arms : 1) * p->count;
    if (arms > HEC_GRID_ARMS_MOST)
        return hec_fail(why, HEC_ERR_USAGE,
                        "%" PRId64 " settings and more: at most %d are tried, for each is run several times", arms,
                        HEC_GRID_ARMS_MOST);
    grid->arms = (int)arms;
    return HEC_OK;
}

void hec_grid_free(struct hec_grid *grid) {
    for (int i = 0; i < grid->parameters; i++) {
        for (int k = 0; k < grid->parameter[i].count; k++)
            free(grid->parameter[i].value[k]);
        free(grid->parameter[i].value);
    }
    memset(grid, 0, sizeof *grid);
}

int hec_grid_set_knob(struct hec_grid *grid, const char *name, struct hec_why *why) {
    int at = find(grid, name);
    if (at < 0)
        return hec_fail(why, HEC_ERR_USAGE, "there is no parameter %.100s to give as a knob", name);
    grid->parameter[at].knob = true;
    return HEC_OK;
}

int hec_grid_accumulate(struct hec_grid *grid, const char *batch, int64_t effective_batch, struct hec_why *why) {
    int at = find(grid, batch);
    if (at < 0)
        return hec_fail(why, HEC_ERR_USAGE, "--batch %.100s: there is no such parameter", batch);
    const struct hec_grid_parameter *p = &grid->parameter[at];
    for (int i = 0; i < p->count; i++) {
        double value = p->ordered ? p->number[i] : 0;
        if (!(value >= 1 && value <= (double)effective_batch) || value > floor(value) ||
            effective_batch % (int64_t)value)
            return hec_fail(why, HEC_ERR_USAGE, "%s=%s does not divide the effective batch of %" PRId64, p->name,
                            p->value[i], effective_batch);
    }
    grid->batch = at;
    grid->effective_batch = effective_batch;
    return HEC_OK;
}

/* ---- arms ---- */

/* Which of a parameter's values. */
static int level_of(const struct hec_grid *grid, int arm, int parameter) {
    for (int i = grid->parameters - 1; i > parameter; i--)
        arm /= grid->parameter[i].count;
    return arm % grid->parameter[parameter].count;
}

const char *hec_grid_value(const struct hec_grid *grid, int arm, int parameter) {
    return grid->parameter[parameter].value[level_of(grid, arm, parameter)];
}

/* The length of "{NAME}" at `at`, and what it becomes; 0: it is none. */
static size_t placeholder(const struct hec_grid *grid, int arm, const char *at, char value[VALUE_BYTES + 1]) {
    for (int i = 0; *at == '{' && i < grid->parameters; i++) {
        size_t length = strlen(grid->parameter[i].name);
        if (strncmp(at + 1, grid->parameter[i].name, length) == 0 && at[1 + length] == '}') {
            snprintf(value, VALUE_BYTES + 1, "%s", hec_grid_value(grid, arm, i));
            return length + 2;
        }
    }
    if (!grid->effective_batch || strncmp(at, "{" ACCUMULATE "}", strlen(ACCUMULATE) + 2) != 0)
        return 0;
    int64_t batch = (int64_t)grid->parameter[grid->batch].number[level_of(grid, arm, grid->batch)];
    snprintf(value, VALUE_BYTES + 1, "%" PRId64, grid->effective_batch / batch);
    return strlen(ACCUMULATE) + 2;
}

static char *expand(const struct hec_grid *grid, int arm, const char *word) {
    struct hec_buf out;
    char value[VALUE_BYTES + 1];
    hec_buf_init(&out, 1 << 20);
    while (*word) {
        size_t length = placeholder(grid, arm, word, value);
        if (length)
            hec_buf_puts(&out, value);
        else
            hec_buf_add(&out, word, 1);
        word += length ? length : 1;
    }
    char *text = hec_buf_error(&out) ? NULL : strdup(hec_buf_text(&out));
    hec_buf_free(&out);
    return text;
}

int hec_grid_words(const struct hec_grid *grid, int arm, char *const *words, char ***out) {
    int count = 0;
    while (words[count])
        count++;
    *out = calloc((size_t)count + 1, sizeof **out);
    for (int i = 0; i < count && *out; i++)
        if (!((*out)[i] = expand(grid, arm, words[i]))) {
            hec_grid_free_words(*out);
            *out = NULL;
        }
    return *out ? HEC_OK : HEC_ERR_NOMEM;
}

void hec_grid_free_words(char **words) {
    for (char **at = words; at && *at; at++)
        free(*at);
    free(words);
}

static bool mentioned(const char *name, char *const *words) {
    char text[HEC_GRID_NAME + 3];
    snprintf(text, sizeof text, "{%.*s}", HEC_GRID_NAME - 1, name);
    for (; *words; words++)
        if (strstr(*words, text))
            return true;
    return false;
}

int hec_grid_check(const struct hec_grid *grid, char *const *words, struct hec_why *why) {
    for (int i = 0; i < grid->parameters; i++)
        if (!grid->parameter[i].knob && !grid->parameter[i].lever && !mentioned(grid->parameter[i].name, words))
            return hec_fail(why, HEC_ERR_USAGE,
                            "%s changes nothing: the command has no {%s}, and it is no knob (-k %s)",
                            grid->parameter[i].name, grid->parameter[i].name, grid->parameter[i].name);
    bool accumulates = mentioned(ACCUMULATE, words);
    if (accumulates != (grid->effective_batch > 0))
        return hec_fail(why, HEC_ERR_USAGE,
                        accumulates ? "{" ACCUMULATE "} needs --effective-batch and --batch"
                                    : "--effective-batch needs {" ACCUMULATE "} in the command");
    return HEC_OK;
}
