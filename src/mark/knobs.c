/* Knobs: HEC_KNOBS="name=value;name=value", a backslash in a value keeps the next character. Parsed once, when the
 * library is loaded; of two values for a name the last one counts; what has no '=' or no name is passed over. */
#include "mark/mark.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KNOBS 256
#define KNOBS_BYTES 8192

static struct { const char *name, *value; } knobs[KNOBS];
static int knob_count;
static char buffer[KNOBS_BYTES];

void hec_mark_knobs_init(const char *text) {
    if (strlen(text) >= sizeof buffer)
        return; /* half a list would set some knobs and not others */
    char *out = buffer;
    while (*text && knob_count < KNOBS) {
        char *name = out, *value = NULL;
        for (; *text && *text != ';'; text++) {
            if (!value && *text == '=') {
                *out++ = '\0';
                value = out;
                continue;
            }
            if (value && *text == '\\' && text[1])
                text++;
            *out++ = *text;
        }
        *out++ = '\0';
        text += *text == ';';
        if (value && name[0]) {
            knobs[knob_count].name = name;
            knobs[knob_count++].value = value;
        }
    }
}

static const char *find(const char *name) {
    for (int i = knob_count - 1; name && i >= 0; i--)
        if (strcmp(knobs[i].name, name) == 0)
            return knobs[i].value;
    return NULL;
}

/* text: the value of a text knob, or the one that was not taken; else NULL. range: NULL: the program gives none. */
static void record_read(const char *name, const struct hec_ring_knob *knob, const char *text,
                        const struct hec_ring_knob_range *range) {
    if (!name || !name[0])
        return;
    struct hec_ring *ring = hec_mark_enter();
    if (ring) {
        bool has_text = text && text[0];
        struct hec_ring_record record = {.window = (uint16_t)hec_mark_window(), .u.knob = *knob};
        struct hec_ring_record beside = {.window = record.window};
        record.u.knob.name = hec_mark_name(ring, name);
        record.u.knob.text = has_text ? hec_mark_name(ring, text) : 0;
        if (range) {
            beside.u.range = *range;
            beside.u.range.name = record.u.knob.name;
        }
        if (record.u.knob.name == 0 || (has_text && record.u.knob.text == 0))
            hec_ring_drop(ring, 1);
        else if (!range || hec_mark_write(ring, &beside, HEC_RING_KNOB_RANGE))
            hec_mark_write(ring, &record, HEC_RING_KNOB);
    }
    hec_mark_leave();
}

static bool at_end(const char *end) {
    while (isspace((unsigned char)*end))
        end++;
    return *end == '\0';
}

static bool parse_int(const char *text, int64_t *value) {
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *value = text[0] == 't';
        return true;
    }
    const char *digits = text + strspn(text, " \t+-");
    int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10; /* never octal: 010 is ten */
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, base);
    if (end == text || errno != 0 || !at_end(end))
        return false;
    *value = parsed;
    return true;
}

static bool parse_double(const char *text, double *value) {
    /* the C locale regardless of the program's: "0.1" has a point (glibc returns a static object for it) */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return false;
    char *end;
    double parsed = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    if (end == text || !at_end(end) || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

static uint32_t flags_of(const char *text, bool parsed) {
    return !text ? 0 : parsed ? HEC_RING_KNOB_SET : HEC_RING_KNOB_REFUSED;
}

/* range: NULL: none. */
static int64_t read_int(const char *name, int64_t fallback, const struct hec_ring_knob_range *range) {
    int saved = errno;
    const char *text = find(name);
    struct hec_ring_knob knob = {.type = HEC_RING_KNOB_INT, .integer = fallback};
    knob.flags = flags_of(text, text && parse_int(text, &knob.integer));
    if (range && range->least.integer <= fallback && fallback <= range->most.integer &&
        (knob.integer < range->least.integer || knob.integer > range->most.integer)) {
        knob.integer = fallback;
        knob.flags = HEC_RING_KNOB_OUTSIDE;
    }
    record_read(name, &knob, knob.flags > HEC_RING_KNOB_SET ? text : NULL, range);
    errno = saved;
    return knob.integer;
}

static double read_double(const char *name, double fallback, const struct hec_ring_knob_range *range) {
    int saved = errno;
    const char *text = find(name);
    struct hec_ring_knob knob = {.type = HEC_RING_KNOB_DOUBLE, .number = fallback};
    knob.flags = flags_of(text, text && parse_double(text, &knob.number));
    if (range && isfinite(range->least.number) && isfinite(range->most.number) && range->least.number <= fallback &&
        fallback <= range->most.number && (knob.number < range->least.number || knob.number > range->most.number)) {
        knob.number = fallback;
        knob.flags = HEC_RING_KNOB_OUTSIDE;
    }
    record_read(name, &knob, knob.flags > HEC_RING_KNOB_SET ? text : NULL, range);
    errno = saved;
    return knob.number;
}

int64_t hec_knob_int(const char *name, int64_t fallback) {
    return read_int(name, fallback, NULL);
}

int64_t hec_knob_int_in(const char *name, int64_t fallback, int64_t least, int64_t most) {
    struct hec_ring_knob_range range = {
        .type = HEC_RING_KNOB_INT, .fallback.integer = fallback, .least.integer = least, .most.integer = most};
    return read_int(name, fallback, &range);
}

double hec_knob_double(const char *name, double fallback) {
    return read_double(name, fallback, NULL);
}

double hec_knob_double_in(const char *name, double fallback, double least, double most) {
    struct hec_ring_knob_range range = {
        .type = HEC_RING_KNOB_DOUBLE, .fallback.number = fallback, .least.number = least, .most.number = most};
    return read_double(name, fallback, &range);
}

const char *hec_knob_text(const char *name, const char *fallback) {
    const char *text = find(name);
    const char *value = text ? text : fallback;
    struct hec_ring_knob knob = {.type = HEC_RING_KNOB_TEXT, .flags = flags_of(text, true)};
    record_read(name, &knob, value, NULL);
    return value;
}
