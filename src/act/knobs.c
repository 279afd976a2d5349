/* Knobs of a program as candidates of the search: which of their values are worth a trial. */
#include "act/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hec_candidates_units(const struct hec_summary *run) {
    return run->blocks.unit[0] && strcmp(run->blocks.unit, "step") != 0;
}

int hec_knob_ask(const char *text, struct hec_knob_ask *out, struct hec_why *why) {
    const char *equals = strchrnul(text, '=');
    int end = 0;
    *out = (struct hec_knob_ask){.least = NAN, .most = NAN};
    if (equals == text || (size_t)(equals - text) >= sizeof out->name)
        return hec_fail(why, HEC_ERR_USAGE, "\"%.100s\" is no name of a knob", text);
    memcpy(out->name, text, (size_t)(equals - text));
    if (!*equals)
        return HEC_OK;
    const char *dots = strstr(equals, "..");
    char least[32];
    snprintf(least, sizeof least, "%.*s", dots ? (int)(dots - equals - 1) : 0, equals + 1);
    char *stop = least;
    out->least = strtod(least, &stop);
    out->ranged = dots && *least && !*stop && sscanf(dots + 2, "%lf%n", &out->most, &end) == 1 && !dots[2 + end] &&
                  isfinite(out->least) && isfinite(out->most) && out->least < out->most;
    return out->ranged
               ? HEC_OK
               : hec_fail(why, HEC_ERR_USAGE,
                          "\"%.100s\" is no NAME=LEAST..MOST; the variable HEC_KNOBS sets a knob for all trials", text);
}

/* The i-th value from that one, upwards or downwards. */
static double value_at(double from, double least, double most, bool whole, int i) {
    bool doubles = least > 0 && most / least >= 4;
    double step = (most - least) / 4, value;
    if (whole)
        step = fmax(1, floor(step));
    value = doubles ? ldexp(from, i) : from + i * step;
    return whole ? floor(value) : value;
}

/* first: 1, or 0 where `from` is itself to be tried. */
static void add_values(const struct hec_knob_summary *knob, double from, double least, double most, bool whole,
                       int first, int direction, struct hec_candidates *out) {
    uint32_t before = 0;
    for (int i = first; i < first + HEC_KNOB_VALUES && out->count < HEC_SEARCH_MOST; i++) {
        double value = value_at(from, least, most, whole, direction * i);
        if (value < least || value > most)
            return;
        struct hec_candidate *c = &out->list[out->count];
        *c = (struct hec_candidate){.use.row = hec_lever_knob(), .cause = HEC_CAUSE_COUNT, .after = before};
        snprintf(c->use.knob, sizeof c->use.knob, "%s", knob->name);
        snprintf(c->use.value, sizeof c->use.value, "%.15g", value);
        snprintf(c->was, sizeof c->was, "%s", knob->value);
        before = UINT32_C(1) << out->count++;
    }
}

static bool is_whole(double value) {
    return !(value - floor(value) > 0);
}

/* By --with and HEC_KNOBS: their names have fewer characters than a program may use. */
static bool can_be_set(const char *name) {
    char text[HEC_LEVER_TEXT];
    struct hec_lever_set set = {.count = 0};
    snprintf(text, sizeof text, HEC_KNOB_LEVER "%s=1", name);
    return hec_lever_set_add(&set, text, NULL) == HEC_OK;
}

static int add_knob(const struct hec_knob_summary *knob, const struct hec_knob_ask *ask, struct hec_candidates *out,
                    struct hec_why *why) {
    char *end;
    double from = strtod(knob->value, &end), least = knob->least, most = knob->most;
    bool number = end != knob->value && !*end && isfinite(from);
    if (ask && ask->ranged) { /* the program takes none beyond its own */
        least = knob->ranged ? fmax(least, ask->least) : ask->least;
        most = knob->ranged ? fmin(most, ask->most) : ask->most;
    }
    if (ask && !number)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "knob %s: its value, \"%s\", is no number", knob->name, knob->value);
    if (ask && !knob->ranged && !ask->ranged)
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "knob %s: the program gives no range: -k %s=LEAST..MOST does",
                        knob->name, knob->name);
    if (ask && !(least < most))
        return hec_fail(why, HEC_ERR_UNSUPPORTED, "knob %s: no value of its range is in the one that is asked for",
                        knob->name);
    if (!number || !(least < most) || (knob->changed && !ask) || !can_be_set(knob->name))
        return HEC_OK;
    bool whole = knob->ranged ? knob->whole : is_whole(from) && is_whole(least) && is_whole(most);
    int before = out->count;
    bool below = from < least; /* a range that was asked for need not hold the value in use */
    bool above = from > most;
    if (!above)
        add_values(knob, fmax(from, least), least, most, whole, below ? 0 : 1, 1, out);
    if (!below)
        add_values(knob, fmin(from, most), least, most, whole, above ? 0 : 1, -1, out);
    return ask && out->count == before ? hec_fail(why, HEC_ERR_UNSUPPORTED,
                                                  "knob %s: no other value than %s is to be tried within %.12g..%.12g",
                                                  knob->name, knob->value, least, most)
                                       : HEC_OK;
}

int hec_candidates_add_knobs(const struct hec_summary *run, const struct hec_knob_ask *asks, int count, bool all,
                             struct hec_candidates *out, struct hec_why *why) {
    int knobs = 0, err = HEC_OK;
    for (int a = 0; a < count; a++) {
        bool read = false;
        for (int i = 0; i < run->knob_count; i++)
            read |= strcmp(run->knobs[i].name, asks[a].name) == 0;
        if (!read)
            return hec_fail(why, HEC_ERR_UNSUPPORTED, "the command read no knob \"%s\"", asks[a].name);
    }
    for (int c = 0; c < out->count; c++) /* a value that was asked for by itself */
        for (int i = 0; i < run->knob_count; i++)
            if (strcmp(out->list[c].use.knob, run->knobs[i].name) == 0)
                snprintf(out->list[c].was, sizeof out->list[c].was, "%s", run->knobs[i].value);
    for (int i = 0; i < run->knob_count && knobs < HEC_SEARCH_KNOBS && err == HEC_OK; i++) {
        const struct hec_knob_ask *ask = NULL;
        int before = out->count;
        for (int a = 0; a < count && !ask; a++)
            ask = strcmp(run->knobs[i].name, asks[a].name) == 0 ? &asks[a] : NULL;
        if (ask || (all && run->knobs[i].ranged))
            err = add_knob(&run->knobs[i], ask, out, why);
        knobs += out->count > before;
    }
    return err;
}

void hec_candidates_words(const struct hec_candidates *candidates, const struct hec_lever_set *set,
                          char text[HEC_LEVERS_TEXT]) {
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < set->count && length < HEC_LEVERS_TEXT; i++) {
        const struct hec_lever_use *use = &set->list[i];
        const char *was = "";
        char one[HEC_LEVER_TEXT];
        for (int c = 0; c < candidates->count && use->knob[0]; c++)
            if (strcmp(candidates->list[c].use.knob, use->knob) == 0)
                was = candidates->list[c].was;
        if (use->knob[0])
            length += (size_t)snprintf(text + length, HEC_LEVERS_TEXT - length, "%sknob %s=%s%s%s%s", i ? ", " : "",
                                       use->knob, use->value, *was ? " (was " : "", was, *was ? ")" : "");
        else
            length += (size_t)snprintf(text + length, HEC_LEVERS_TEXT - length, "%s%s", i ? "," : "",
                                       hec_lever_use_text(use, one));
    }
}
