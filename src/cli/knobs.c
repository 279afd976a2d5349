/* Whether knobs that were set as levers took effect: by what the program read. */
#include "cli/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool number_of(const char *text, double *out) {
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        *out = text[0] == 't';
        return true;
    }
    *out = strtod(text, &end);
    return end != text && !*end;
}

static bool same_value(const char *a, const char *b) {
    double one, other;
    return strcmp(a, b) == 0 || (number_of(a, &one) && number_of(b, &other) && !(one < other) && !(one > other));
}

/* Why a value that was set was not taken; NULL: nobody said. */
static const char *refusal_of(const struct hec_summary *s, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < s->event_count; i++)
        if (s->events[i].kind == HEC_EVENT_KNOB_REFUSED && strncmp(s->events[i].text, name, length) == 0 &&
            strncmp(s->events[i].text + length, ": ", 2) == 0)
            return s->events[i].text + length + 2;
    return NULL;
}

static void attest(const struct hec_summary *s, struct hec_lever_summary *lever) {
    const char *name = lever->name + strlen(HEC_KNOB_LEVER), *why = refusal_of(s, name);
    const struct hec_knob_summary *knob = NULL;
    for (int i = 0; i < s->knob_count && !knob; i++)
        knob = strcmp(s->knobs[i].name, name) == 0 ? &s->knobs[i] : NULL;
    lever->attest = HEC_ATTEST_NOTHING;
    if (!knob) {
        snprintf(lever->text, sizeof lever->text, "the program reads no knob of this name");
    } else if (!same_value(knob->value, lever->value)) {
        snprintf(lever->text, sizeof lever->text, "%.150s", why ? why : "the program reads another value");
    } else {
        lever->attest = HEC_ATTEST_ON;
        if (knob->ranged)
            snprintf(lever->text, sizeof lever->text, "the program's own is %.15g", knob->fallback);
    }
}

void hec_knobs_attest(struct hec_summary *out) {
    for (int i = 0; i < out->lever_count; i++)
        if (strncmp(out->levers[i].name, HEC_KNOB_LEVER, strlen(HEC_KNOB_LEVER)) == 0)
            attest(out, &out->levers[i]);
}
