#include "report/words/fill.h"

#include "diagnose/result.h"
#include "report/format.h"
#include "report/words/causes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct hec_fill *f, const char *text, size_t length) {
    size_t room = f->size - 1 - f->length;
    length = length < room ? length : room;
    memcpy(f->out + f->length, text, length);
    f->out[f->length += length] = '\0';
}

/* The number that a field begins with, and what follows it; -1: it is none. */
static int number_of(const struct hec_fill *f, const char *field, const char **after) {
    size_t length = strcspn(field, ":#?}");
    int at = 0;
    *after = field + length;
    if (!f->names)
        return length == 1 && *field >= '0' && *field < '0' + f->count ? *field - '0' : -1;
    for (const char *name = f->names; *name; at++, name += strspn(name, ", ")) {
        size_t size = strcspn(name, ",");
        if (size == length && memcmp(name, field, size) == 0)
            return at;
        name += size;
    }
    return -1;
}

/* A device, or the rank whose it is: "rank 3 (GPU 3)" where the recording says it. */
static void put_device(struct hec_fill *f, int device, bool of_rank) {
    char gpu[HEC_FORMAT_SIZE], text[2 * HEC_FORMAT_SIZE];
    int rank = of_rank ? hec_rank_of(f->ranks, f->rank_count, device) : -1;
    hec_format_gpu(gpu, device);
    if (rank >= 0)
        snprintf(text, sizeof text, "rank %d (%s)", rank, gpu);
    put(f, rank >= 0 ? text : gpu, strlen(rank >= 0 ? text : gpu));
}

static void put_number(struct hec_fill *f, double x, const char *format) {
    static const struct {
        char letter;
        double factor;
    } factors[] = {{'%', 1e2}, {'m', 1e3}, {'u', 1e6}, {'M', 1e-6}, {'G', 1e-9}};
    char text[HEC_FORMAT_SIZE], *end;
    bool of_rank = strncmp(format, "rank", 4) == 0;
    if (isfinite(x) && (of_rank || strncmp(format, "gpu", 3) == 0)) {
        put_device(f, (int)x, of_rank);
        return;
    }
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (*format == factors[i].letter) {
            x *= factors[i].factor;
            format++;
            break;
        }
    int digits = (int)strtol(format, &end, 10);
    if (*end == 'r')
        digits = x >= 100 ? 0 : x >= 10 ? 1 : 2;
    if (!isfinite(x))
        snprintf(text, sizeof text, "?");
    else
        snprintf(text, sizeof text, *end == 'g' ? "%.*g" : "%.*f", digits, x);
    put(f, text, strlen(text));
}

/* Of "a|b|c" the one of that number, from 0; the last, where there are fewer. */
static void put_choice(struct hec_fill *f, const char *choices, const char *end, double number) {
    const char *bar = memchr(choices, '|', (size_t)(end - choices));
    for (; bar && number > 0; number--) {
        choices = bar + 1;
        bar = memchr(choices, '|', (size_t)(end - choices));
    }
    put(f, choices, (size_t)((bar ? bar : end) - choices));
}

/* What stands between braces. */
static void put_field(struct hec_fill *f, const char *field, const char *end) {
    const char *after;
    int at = number_of(f, field, &after);
    if (at >= 0 && *after == '#') {
        put_choice(f, after + 1, end, f->value[at] != 1);
    } else if (at >= 0 && *after == '?') {
        put_choice(f, after + 1, end, isnan(f->value[at]) ? 1 : fabs(f->value[at]));
    } else if (at >= 0) {
        put_number(f, f->value[at], *after == ':' ? after + 1 : after);
    } else if (*field >= 'A' && *field <= 'Z') {
        char id[HEC_FORMAT_SIZE], text[HEC_FORMAT_SIZE];
        snprintf(id, sizeof id, "{%.*s}", (int)(end - field), field);
        hec_limit_words(text, sizeof text, f->cause, id);
        put(f, text, strlen(text));
    } else {
        const char *text = f->text_of(f->context, field);
        put(f, text ? text : "", text ? strnlen(text, f->text_most) : 0);
    }
}

/* Whether all numbers and texts up to the bracket's end are known. */
static bool known(const struct hec_fill *f, const char *words) {
    for (const char *after, *c = words; *c != ']'; c++) {
        int at = *c == '{' ? number_of(f, c + 1, &after) : -1;
        bool text = *c == '{' && at < 0 && !(c[1] >= 'A' && c[1] <= 'Z');
        const char *said = text ? f->text_of(f->context, c + 1) : "";
        if ((at >= 0 && isnan(f->value[at])) || (text && (!said || !*said)))
            return false;
    }
    return true;
}

char *hec_fill(struct hec_fill *f, const char *words) {
    f->out[f->length] = '\0';
    while (*words) {
        size_t plain = strcspn(words, "{[]");
        put(f, words, plain);
        words += plain;
        if (*words == '{') {
            const char *end = strchr(words, '}');
            put_field(f, words + 1, end);
            words = end + 1;
        } else if (*words == '[' && !known(f, words)) {
            words = strchr(words, ']') + 1;
        } else if (*words) {
            words++;
        }
    }
    return f->out;
}
