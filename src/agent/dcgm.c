#include "agent/dcgm.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEC_NONE HEC_METRIC_COUNT
#define HEC_DCGM_NEEDS(metric, what)
static const struct hec_dcgm_field fields[] = {
#define HEC_DCGM_ROW(name_, kind_, set_, how_, ...)                                                                    \
    {.name = name_, .kind = HEC_FAMILY_##kind_, .set = HEC_DCGM_##set_, .how = HEC_DCGM_##how_, __VA_ARGS__},
#define HEC_DCGM(name, kind, set, how, metric_, plus_, factor_, help_)                                                 \
    HEC_DCGM_ROW(name, kind, set, how, .metric = HEC_##metric_, .plus = HEC_##plus_, .factor = factor_, .help = help_)
#define HEC_DCGM_NODE(name, set, total_, factor_, help_)                                                               \
    HEC_DCGM_ROW(name, COUNTER, set, NODE, .metric = HEC_NONE, .plus = HEC_NONE, .total = HEC_NODE_##total_,           \
                 .factor = factor_, .help = help_)
#define HEC_DCGM_ABSENT(name, kind, set, help_, why_)                                                                  \
    HEC_DCGM_ROW(name, kind, set, ABSENT, .metric = HEC_NONE, .plus = HEC_NONE, .help = help_, .why = why_)
#define HEC_DCGM_LABEL(name, set, member, help_)                                                                       \
    HEC_DCGM_ROW(name, INFO, set, LABEL, .metric = HEC_NONE, .plus = HEC_NONE, .help = help_,                          \
                 .label = offsetof(struct hec_device, member))
#include "agent/dcgm.def"
#undef HEC_DCGM
#undef HEC_DCGM_NODE
#undef HEC_DCGM_ABSENT
#undef HEC_DCGM_LABEL
#undef HEC_DCGM_NEEDS
};

static const struct {
    enum hec_metric metric;
    const char *what;
} needs[] = {
#define HEC_DCGM(...)
#define HEC_DCGM_NODE(...)
#define HEC_DCGM_ABSENT(...)
#define HEC_DCGM_LABEL(...)
#define HEC_DCGM_NEEDS(metric, what) {HEC_##metric, what},
#include "agent/dcgm.def"
#undef HEC_DCGM
#undef HEC_DCGM_NODE
#undef HEC_DCGM_ABSENT
#undef HEC_DCGM_LABEL
#undef HEC_DCGM_NEEDS
};
#undef HEC_NONE
#define FIELDS (sizeof fields / sizeof fields[0])
_Static_assert(FIELDS <= HEC_DCGM_MAX, "a list holds all fields");

const struct hec_dcgm_field *hec_dcgm_field(size_t i) {
    return i < FIELDS ? &fields[i] : NULL;
}

const char *hec_dcgm_needs(const struct hec_dcgm_field *field) {
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (needs[i].metric == field->metric)
            return needs[i].what;
    return NULL;
}

#define GPUS_MAX 64

/* A list of numbers and ranges of them, in bits. */
static bool parse_numbers(const char *text, const char *end, uint64_t *out) {
    *out = 0;
    while (text < end) {
        char *stop;
        unsigned long first = strtoul(text, &stop, 10), last = first;
        if (stop == text || *text < '0' || *text > '9')
            return false;
        if (stop < end && *stop == '-') {
            text = stop + 1;
            last = strtoul(text, &stop, 10);
            if (stop == text || *text < '0' || *text > '9')
                return false;
        }
        if (stop > end || first > last || last >= GPUS_MAX || (stop < end && (*stop != ',' || stop + 1 == end)))
            return false;
        for (unsigned long i = first; i <= last; i++)
            *out |= UINT64_C(1) << i;
        text = stop + 1;
    }
    return *out != 0;
}

int hec_dcgm_devices_parse(const char *text, struct hec_dcgm_devices *out, struct hec_why *why) {
    *out = (struct hec_dcgm_devices){.instances = true, .gpus = UINT64_MAX};
    if (strcmp(text, "f") == 0)
        return HEC_OK;
    *out = (struct hec_dcgm_devices){0};
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = strchr(text, '+');
        if (!end)
            end = text + strlen(text);
        size_t length = (size_t)(end - text);
        if (length > 1 && text[0] == 'i' && text[1] == ':')
            return hec_fail(why, HEC_ERR_USAGE, "-d: GPU instances are shown all or none (i), not by number");
        if (length == 1 && *text == 'i' && !out->instances)
            out->instances = true;
        else if (length == 1 && *text == 'g' && !out->gpus)
            out->gpus = UINT64_MAX;
        else if (!(length > 2 && text[0] == 'g' && text[1] == ':' && !out->gpus &&
                   parse_numbers(text + 2, end, &out->gpus)))
            return hec_fail(why, HEC_ERR_USAGE, "-d takes f, g, i, g:0,2-4 or g+i, not \"%.40s\"", text);
    }
    return out->instances || out->gpus ? HEC_OK
                                       : hec_fail(why, HEC_ERR_USAGE, "-d takes f, g, i, g:0,2-4 or g+i, not nothing");
}

bool hec_dcgm_shows(const struct hec_dcgm_devices *devices, int index) {
    return devices->gpus >> (index % GPUS_MAX) & 1;
}

static bool has(const struct hec_dcgm_list *list, const struct hec_dcgm_field *field) {
    for (size_t i = 0; i < list->count; i++)
        if (list->chosen[i].field == field)
            return true;
    return false;
}

/* Cannot overflow: each field is there once at most. */
static void choose(struct hec_dcgm_list *list, const struct hec_dcgm_field *field, enum hec_family_kind kind,
                   const char *help, size_t length) {
    struct hec_dcgm_chosen *chosen = &list->chosen[list->count++];
    chosen->field = field;
    chosen->kind = kind;
    hec_text_clean(chosen->help, sizeof chosen->help, help, length, true);
}

static void add_set(struct hec_dcgm_list *list, enum hec_dcgm_set set) {
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].set == set && !has(list, &fields[i]))
            choose(list, &fields[i], fields[i].kind, fields[i].help, strlen(fields[i].help));
}

void hec_dcgm_list_default(struct hec_dcgm_list *list, bool all, bool old) {
    memset(list, 0, sizeof *list);
    add_set(list, HEC_DCGM_DEFAULT);
    if (all)
        add_set(list, HEC_DCGM_LISTED);
    if (old)
        add_set(list, HEC_DCGM_OLD);
}

struct piece {
    const char *text;
    size_t length;
};

static struct piece trimmed(const char *from, const char *to) {
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r'))
        to--;
    return (struct piece){from, (size_t)(to - from)};
}

static bool is(struct piece piece, const char *word) {
    return strlen(word) == piece.length && memcmp(piece.text, word, piece.length) == 0;
}

/* The fields of a line, of which the last may stand in quotes (a help text with a comma); how many there are, 4 for more. */
static int split(const char *line, const char *end, struct piece out[3]) {
    int count = 0;
    for (;;) {
        struct piece rest = trimmed(line, end);
        if (count == 2 && rest.length > 1 && rest.text[0] == '"' && rest.text[rest.length - 1] == '"' &&
            !memchr(rest.text + 1, '"', rest.length - 2)) {
            out[count] = (struct piece){rest.text + 1, rest.length - 2};
            return 3;
        }
        const char *comma = memchr(line, ',', (size_t)(end - line));
        if (count == 3)
            return 4;
        out[count++] = trimmed(line, comma ? comma : end);
        if (!comma)
            return count;
        line = comma + 1;
    }
}

static bool kind_of(struct piece type, enum hec_family_kind *kind) {
    *kind = is(type, "label") ? HEC_FAMILY_INFO : is(type, "counter") ? HEC_FAMILY_COUNTER : HEC_FAMILY_GAUGE;
    return *kind != HEC_FAMILY_GAUGE || is(type, "gauge");
}

static void skip(struct hec_dcgm_list *list, struct piece name) {
    size_t used = strlen(list->skipped);
    if (used + name.length + 3 < sizeof list->skipped)
        snprintf(list->skipped + used, sizeof list->skipped - used, "%s%.*s", used ? ", " : "", (int)name.length,
                 name.text);
    list->skipped_count++;
}

static bool is_dcgm(struct piece name) {
    for (size_t i = 0; i < name.length; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_", name.text[i]) || !name.text[i])
            return false;
    return name.length > 5 && (memcmp(name.text, "DCGM_", 5) == 0 || memcmp(name.text, "dcgm_", 5) == 0);
}

static int parse_line(struct hec_dcgm_list *list, const char *line, const char *end, size_t number,
                      struct hec_why *why) {
    struct piece row[3];
    enum hec_family_kind kind;
    if (split(line, end, row) != 3)
        return hec_fail(why, HEC_ERR_CORRUPT, "line %zu: expected `field, type, help`", number);
    if (!kind_of(row[1], &kind))
        return hec_fail(why, HEC_ERR_CORRUPT, "line %zu: the type is none of gauge, counter, label", number);
    if (!is_dcgm(row[0]) || row[0].length > 100)
        return hec_fail(why, HEC_ERR_CORRUPT, "line %zu: this is no field of DCGM", number);
    for (size_t i = 0; i < FIELDS; i++) {
        const struct hec_dcgm_field *field = &fields[i];
        if (!is(row[0], field->name))
            continue;
        if (has(list, field))
            return hec_fail(why, HEC_ERR_CORRUPT, "line %zu: %s is there twice", number, field->name);
        if ((kind == HEC_FAMILY_INFO) != (field->kind == HEC_FAMILY_INFO))
            return hec_fail(why, HEC_ERR_CORRUPT, "line %zu: %s is %s label", number, field->name,
                            kind == HEC_FAMILY_INFO ? "no" : "a");
        choose(list, field, kind, row[2].text, row[2].length);
        return HEC_OK;
    }
    skip(list, row[0]);
    return HEC_OK;
}

int hec_dcgm_list_parse(struct hec_dcgm_list *list, const char *text, size_t length, bool old, struct hec_why *why) {
    const char *end = text + length;
    memset(list, 0, sizeof *list);
    for (size_t number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            stop = end;
        if (*text != '#' && trimmed(text, stop).length > 0) {
            int err = parse_line(list, text, stop, number, why);
            if (err)
                return err;
        }
        text = stop < end ? stop + 1 : end;
    }
    if (old)
        add_set(list, HEC_DCGM_OLD);
    return HEC_OK;
}
