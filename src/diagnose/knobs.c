/* Knobs that the program read, and what it says they may be, from the events of its run. */
#include "diagnose/build.h"

#include <math.h>
#include <string.h>

/* NULL: there are too many. */
static struct hec_knob_summary *knob_of(struct hec_summary *out, const char *name, size_t length) {
    int i = 0;
    while (i < out->knob_count &&
           (strlen(out->knobs[i].name) != length || memcmp(out->knobs[i].name, name, length) != 0))
        i++;
    if (i == HEC_SUMMARY_KNOBS_MAX || length >= sizeof out->knobs[0].name)
        return NULL;
    struct hec_knob_summary *knob = &out->knobs[i];
    if (i == out->knob_count) {
        out->knob_count++;
        *knob = (struct hec_knob_summary){.fallback = NAN, .least = NAN, .most = NAN};
        memcpy(knob->name, name, length);
    }
    return knob;
}

void hec_knob_take(struct hec_build *b, enum hec_event_kind kind, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || (kind != HEC_EVENT_KNOB && kind != HEC_EVENT_KNOB_RANGE))
        return;
    struct hec_knob_summary *knob = knob_of(b->out, text, (size_t)(equals - text));
    if (!knob)
        return;
    if (kind == HEC_EVENT_KNOB) {
        bool *known = &b->knob_read[knob - b->out->knobs];
        knob->changed |= *known && strcmp(knob->value, equals + 1) != 0;
        if (!*known)
            hec_copy_text(knob->value, sizeof knob->value, equals + 1);
        *known = true;
        return;
    }
    char type[8];
    double fallback, least, most;
    if (sscanf(equals + 1, "%lf %7s [%lf, %lf]", &fallback, type, &least, &most) != 4 || !isfinite(least) ||
        !isfinite(most) || !(least <= fallback && fallback <= most))
        return;
    knob->ranged = true;
    knob->whole = strcmp(type, "int") == 0;
    knob->fallback = fallback;
    knob->least = least;
    knob->most = most;
}
