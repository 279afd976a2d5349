#include "report/words/conditions.h"

#include "base/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char value[512];

/* As much of it as there is room for. */
static void add_text(value out, const char *between, const char *text) {
    size_t length = strlen(out);
    for (const char *c = length ? between : ""; *c && length < sizeof(value) - 1; c++)
        out[length++] = *c;
    for (const char *c = text; *c && length < sizeof(value) - 1; c++)
        out[length++] = *c;
    out[length] = '\0';
}

static const char *of_device(const struct hec_device_summary *d, enum hec_condition what, char text[96]) {
    if (what == HEC_CONDITION_POWER_LIMIT && isfinite(d->power_limit_w))
        snprintf(text, 96, "%.0f W", d->power_limit_w);
    else
        snprintf(text, 96, "%s",
                 what == HEC_CONDITION_DEVICE   ? d->device.name
                 : what == HEC_CONDITION_DRIVER ? d->device.driver
                                                : "");
    return text[0] ? text : strcpy(text, "unknown");
}

/* "2 x NVIDIA H100", each text once, in the order of the devices. */
static void of_devices(const struct hec_summary *s, enum hec_condition what, value out) {
    char text[96], other[96], numbered[128];
    for (int i = 0; i < s->device_count; i++) {
        int count = 0;
        bool before = false;
        if (!s->devices[i].readings.used)
            continue;
        of_device(&s->devices[i].readings, what, text);
        for (int k = 0; k < s->device_count; k++)
            if (s->devices[k].readings.used && strcmp(of_device(&s->devices[k].readings, what, other), text) == 0) {
                before |= k < i;
                count++;
            }
        if (count > 1 && what == HEC_CONDITION_DEVICE)
            snprintf(numbered, sizeof numbered, "%d x %s", count, text);
        else
            snprintf(numbered, sizeof numbered, "%s", text);
        if (!before)
            add_text(out, ", ", numbered);
    }
    if (!out[0])
        add_text(out, "", "none");
}

static void of_levers(const struct hec_summary *s, value out) {
    for (int i = 0; i < s->lever_count; i++) {
        add_text(out, ",", s->levers[i].name);
        add_text(out, s->levers[i].value[0] ? "=" : "", s->levers[i].value);
    }
}

static void of_knobs(const struct hec_summary *s, value out) {
    for (int i = 0; i < s->event_count; i++)
        if (s->events[i].kind == HEC_EVENT_KNOB && !strstr(out, s->events[i].text))
            add_text(out, ", ", s->events[i].text);
}

static void of_outcome(const struct hec_summary *s, value out) {
    if (s->imported[0])
        add_text(out, "", "unknown");
    else if (s->in_progress)
        add_text(out, "", "still in progress");
    else if (!s->complete)
        add_text(out, "", "cut off");
    else if (s->stopped[0])
        snprintf(out, sizeof(value), "ended by hec after its %s", s->stopped);
    else if (s->exit_code)
        snprintf(out, sizeof(value), "exit code %d", s->exit_code);
    else
        add_text(out, "", "exit code 0");
}

/* Those that are a text of the run; NULL: it is another. */
static const char *text_of(const struct hec_summary *s, enum hec_condition what) {
    static const char *const work[] = {
        [HEC_WORK_UNKNOWN] = "none known", [HEC_WORK_BY_STEP] = "known", [HEC_WORK_EVENLY] = "none known"};
    const char *const texts[HEC_CONDITION_COUNT] = {
        [HEC_CONDITION_CPU] = s->cpu,
        [HEC_CONDITION_UNIT] = s->blocks.unit[0] ? s->blocks.unit : "none",
        [HEC_CONDITION_STEPS] = work[s->blocks.work],
        [HEC_CONDITION_COMMAND] = s->command,
        [HEC_CONDITION_PYTORCH] = s->pytorch,
        [HEC_CONDITION_HOST] = s->hostname,
        [HEC_CONDITION_PYTHON] = s->python,
        [HEC_CONDITION_KERNEL] = s->kernel,
        [HEC_CONDITION_OS] = s->os,
        [HEC_CONDITION_TRACE] = s->imported[0] ? "" : hec_trace_mode_name(s->trace.mode),
        [HEC_CONDITION_HEC] = s->hec_version,
    };
    return texts[what];
}

void hec_condition_value(const struct hec_summary *s, enum hec_condition what, char out[HEC_CONDITION_VALUE]) {
    const char *text = text_of(s, what);
    out[0] = '\0';
    if (text)
        add_text(out, "", text);
    else if (what == HEC_CONDITION_DEVICE || what == HEC_CONDITION_DRIVER || what == HEC_CONDITION_POWER_LIMIT)
        of_devices(s, what, out);
    else if (what == HEC_CONDITION_MEASURED && (s->imported[0] || s->simulated[0]))
        snprintf(out, sizeof(value), s->imported[0] ? "imported (%s)" : "simulated (%s)",
                 s->imported[0] ? s->imported : s->simulated);
    else if (what == HEC_CONDITION_MEASURED)
        add_text(out, "", "on a real machine");
    else if (what == HEC_CONDITION_OUTCOME)
        of_outcome(s, out);
    else if (what == HEC_CONDITION_KNOBS)
        of_knobs(s, out);
    else if (what == HEC_CONDITION_LEVERS)
        of_levers(s, out);
    else if (what == HEC_CONDITION_CORES && s->host.cores > 0)
        snprintf(out, sizeof(value), "%d of %d", s->host.cores_usable, s->host.cores);
    if (!out[0])
        add_text(out, "", what == HEC_CONDITION_KNOBS || what == HEC_CONDITION_LEVERS ? "none" : "unknown");
}

/* Each value once, in the order of the runs. */
static void values_of(const struct hec_side *side, enum hec_condition what, value out) {
    value one, other;
    out[0] = '\0';
    for (int i = 0; i < side->count; i++) {
        bool before = false;
        hec_condition_value(&side->runs[i], what, one);
        for (int k = 0; k < i && !before; k++) {
            hec_condition_value(&side->runs[k], what, other);
            before = strcmp(one, other) == 0;
        }
        if (!before)
            add_text(out, "; ", one);
    }
}

static bool differs(const struct hec_side *side, enum hec_condition what) {
    value first, other;
    hec_condition_value(&side[0].runs[0], what, first);
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < side[at].count; i++) {
            hec_condition_value(&side[at].runs[i], what, other);
            if (strcmp(first, other) != 0)
                return true;
        }
    return false;
}

/* A run that did not end as it should did less work than it seems, on either side. */
static bool failed(const struct hec_side *side) {
    for (int at = 0; at < 2; at++)
        for (int i = 0; i < side[at].count; i++) {
            const struct hec_summary *s = &side[at].runs[i];
            if (!s->imported[0] && (!s->complete || (s->exit_code != 0 && !s->stopped[0])))
                return true;
        }
    return false;
}

void hec_conditions_compare(const struct hec_side *side, struct hec_condition_differences *out) {
    *out = (struct hec_condition_differences){.count = 0};
    for (int what = 0; what < HEC_CONDITION_COUNT; what++) {
        if (!differs(side, what) && !(what == HEC_CONDITION_OUTCOME && failed(side)))
            continue;
        struct hec_condition_difference *unlike = &out->list[out->count++];
        unlike->what = what;
        out->grave += hec_condition_must_agree(what);
        for (int at = 0; at < 2; at++)
            values_of(&side[at], what, unlike->value[at]);
    }
}
