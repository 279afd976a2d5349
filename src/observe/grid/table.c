/* Tables with commas between. What a column holds says its name, which Electricity Maps spells in several ways. */
#include "observe/grid/parts.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MOST 4096
#define COLUMNS_MOST 64

struct table {
    const char *at, *end; /* what is left */
    long line;
    char text[LINE_MOST]; /* the line at hand, its fields each ended by a zero */
    char *field[COLUMNS_MOST];
    int count;
    int time, zone, value;
    double scale; /* to what a kWh has */
    char zone_name[48];
    bool maps; /* its columns are called as those of Electricity Maps */
};

static int fail(const struct table *t, struct hec_why *why, const char *sentence) {
    return hec_fail(why, HEC_ERR_CORRUPT, "line %ld: %s", t->line, sentence);
}

/* The next field, which ends at a comma or at the end of the line. NULL: its quotes are wrong. */
static char *next_field(char **at) {
    char *field = *at, *from = field, *to = field;
    bool quoted = *from == '"';
    if (!quoted) {
        *at += strcspn(field, ",");
        return field;
    }
    for (from++; *from && (*from != '"' || from[1] == '"'); from++) {
        from += *from == '"';
        *to++ = *from;
    }
    if (*from != '"' || (from[1] && from[1] != ','))
        return NULL;
    *to = '\0';
    *at = from + 1;
    return field;
}

static int split(struct table *t, struct hec_why *why) {
    char *at = t->text;
    t->count = 0;
    for (bool more = true; more;) {
        if (t->count == COLUMNS_MOST)
            return fail(t, why, "it has more than 64 columns");
        char *field = next_field(&at);
        if (!field)
            return fail(t, why, "its quotes do not end where a field does");
        t->field[t->count++] = field;
        more = *at == ',';
        *at++ = '\0';
    }
    return HEC_OK;
}

/* 1: a line with something in it; 0: the end. */
static int next_line(struct table *t, struct hec_why *why) {
    while (t->at < t->end) {
        const char *stop = memchr(t->at, '\n', (size_t)(t->end - t->at));
        size_t length = (size_t)((stop ? stop : t->end) - t->at);
        const char *line = t->at;
        t->at = stop ? stop + 1 : t->end;
        t->line++;
        if (length && line[length - 1] == '\r')
            length--;
        if (length >= LINE_MOST)
            return fail(t, why, "it is longer than 4095 bytes");
        if (memchr(line, '\0', length))
            return fail(t, why, "it has a zero byte");
        memcpy(t->text, line, length);
        t->text[length] = '\0';
        if (!t->text[strspn(t->text, " \t\r")])
            continue;
        int err = split(t, why);
        return err < 0 ? err : 1;
    }
    return 0;
}

/* In small letters, with single blanks, and CO2 with a plain 2: so that spellings are one. */
static void plain(char *out, size_t size, const char *name) {
    size_t length = 0;
    for (; *name && length + 1 < size; name++) {
        if (strncmp(name, "\xe2\x82\x82", 3) == 0) {
            out[length++] = '2';
            name += 2;
        } else if (!isspace((unsigned char)*name) || (length && out[length - 1] != ' ')) {
            out[length++] = isspace((unsigned char)*name) ? ' ' : (char)tolower((unsigned char)*name);
        }
    }
    while (length && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
}

/* "Carbon intensity gCO2eq/kWh (Life cycle)" and its kin. Where there are both, the whole life cycle counts. */
static int carbon_column(struct table *t, struct hec_signal *out, int column, const char *name, struct hec_why *why) {
    static const char *const scopes[] = {"", "direct", "life cycle"};
    const char *scope = strstr(name, "life cycle") || strstr(name, "lifecycle") || strstr(name, "lca") ? scopes[2]
                        : strstr(name, "direct")                                                       ? scopes[1]
                                                                                                       : scopes[0];
    enum hec_signal_kind kind = strstr(name, "marginal") ? HEC_SIGNAL_MARGINAL : HEC_SIGNAL_AVERAGE;
    if (!strstr(name, "gco2") || !strstr(name, "/kwh"))
        return fail(t, why, "the carbon intensity is not in gCO2eq/kWh");
    if (t->value >= 0 && kind != out->kind)
        return fail(t, why, "it has columns of average and of marginal carbon, which are not to be mixed");
    if (t->value < 0 || scope == scopes[2]) {
        t->value = column;
        out->kind = kind;
        snprintf(out->source, sizeof out->source, "%s", scope);
    }
    return HEC_OK;
}

static int price_column(struct table *t, int column, const char *name, struct hec_why *why) {
    if (t->value >= 0)
        return fail(t, why, "it has two columns of prices");
    t->value = column;
    t->scale = strcmp(name, "price_per_mwh") == 0 ? 1e-3 : 1;
    return HEC_OK;
}

static int read_head(struct table *t, struct hec_signal_rows *rows, struct hec_why *why) {
    int err = next_line(t, why), zone_rank = 0;
    if (err <= 0)
        return err < 0 ? err : hec_fail(why, HEC_ERR_CORRUPT, "it is empty");
    t->time = t->zone = t->value = -1;
    t->scale = 1;
    err = HEC_OK;
    for (int i = 0; i < t->count && err == HEC_OK; i++) {
        char name[128];
        plain(name, sizeof name, t->field[i]);
        int rank = strcmp(name, "zone id") == 0 ? 3 : strcmp(name, "zone name") == 0 ? 2 : strcmp(name, "country") == 0;
        if (rank > zone_rank) {
            t->zone = i;
            zone_rank = rank;
        }
        t->maps |= strcmp(name, "datetime (utc)") == 0;
        if (t->time < 0 && (strncmp(name, "datetime", 8) == 0 || strcmp(name, "time") == 0))
            t->time = i;
        else if (rows->carbon && strstr(name, "carbon intensity"))
            err = carbon_column(t, rows->out, i, name, why);
        else if (!rows->carbon && (strcmp(name, "price_per_kwh") == 0 || strcmp(name, "price_per_mwh") == 0))
            err = price_column(t, i, name, why);
    }
    if (err == HEC_OK && t->time < 0)
        return fail(t, why, rows->carbon ? "no column is called Datetime (UTC)" : "no column is called time");
    if (err == HEC_OK && t->value < 0)
        return fail(t, why,
                    rows->carbon ? "no column has the carbon intensity in gCO2eq/kWh"
                                 : "no column is called price_per_kwh or price_per_mwh");
    return err;
}

/* All rows are of one zone. */
static int check_zone(struct table *t, struct hec_why *why) {
    char zone[sizeof t->zone_name];
    if (t->zone < 0 || t->zone >= t->count)
        return HEC_OK;
    hec_text_clean(zone, sizeof zone, t->field[t->zone], strlen(t->field[t->zone]), true);
    if (!t->zone_name[0])
        memcpy(t->zone_name, zone, sizeof zone);
    return strcmp(zone, t->zone_name) == 0 ? HEC_OK : fail(t, why, "it is of another zone than those before");
}

static int read_row(struct table *t, struct hec_signal_rows *rows, struct hec_why *why) {
    char where[32], shown[48];
    if (t->count <= t->time || t->count <= t->value)
        return fail(t, why, "it has too few columns");
    int err = check_zone(t, why);
    if (err < 0)
        return err;
    const char *text = t->field[t->value];
    char *end = NULL;
    errno = 0;
    double value = *text ? strtod(text, &end) : NAN; /* an empty field: not known */
    if (*text && (end == text || end[strspn(end, " ")] || errno || !isfinite(value)))
        return hec_fail(why, HEC_ERR_CORRUPT, "line %ld: \"%s\" is no number", t->line,
                        hec_text_clean(shown, sizeof shown, text, strlen(text), true));
    snprintf(where, sizeof where, "line %ld", t->line);
    return hec_signal_add(rows, where, t->field[t->time], value * t->scale, why);
}

int hec_signal_table(struct hec_signal_rows *rows, const char *bytes, size_t length, struct hec_why *why) {
    struct table *t = calloc(1, sizeof *t);
    if (!t)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory to read it");
    t->at = bytes;
    t->end = bytes + length;
    int err = read_head(t, rows, why);
    while (err == HEC_OK && (err = next_line(t, why)) > 0)
        err = read_row(t, rows, why);
    if (err == HEC_OK)
        err = hec_signal_finish(rows, 0, why);
    if (err == HEC_OK && rows->carbon) {
        char scope[sizeof rows->out->source];
        memcpy(scope, rows->out->source, sizeof scope);
        snprintf(rows->out->source, sizeof rows->out->source, "%s%s%.40s%s%.20s", t->maps ? "Electricity Maps" : "CSV",
                 t->zone_name[0] ? ", " : "", t->zone_name, scope[0] ? ", " : "", scope);
    }
    free(t);
    return err;
}
