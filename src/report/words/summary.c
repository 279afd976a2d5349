#include "report/words/summary.h"

#include "report/run/terminal_device.h"
#include "report/words/reasons.h"
#include "report/words/findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOSTLY 0.5   /* of the time of set-up that a line took: it is named */
#define LINE_ROOM 48 /* columns for it */

typedef char text[HEC_FORMAT_SIZE];

int hec_summary_used(const struct hec_summary *s) {
    int used = 0;
    for (int i = 0; i < s->device_count; i++)
        used += s->devices[i].readings.used;
    return used;
}

char *hec_outcome_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s) {
    text seconds;
    char outcome[96];
    if (s->imported[0])
        snprintf(outcome, sizeof outcome, "imported (%s)", s->imported);
    else if (s->in_progress)
        snprintf(outcome, sizeof outcome, "so far: the run is in progress");
    else if (!s->complete)
        snprintf(outcome, sizeof outcome, "cut off: the run file ends early, its last second or more is missing");
    else if (strcmp(s->stopped, "window") == 0)
        snprintf(outcome, sizeof outcome, "a window of it, by the agent of its node");
    else if (strcmp(s->stopped, "attached") == 0)
        snprintf(outcome, sizeof outcome, "attached to it while it ran");
    else if (strcmp(s->stopped, "ended") == 0)
        snprintf(outcome, sizeof outcome, "attached to it until it ended");
    else if (s->stopped[0])
        snprintf(outcome, sizeof outcome, "ended by hec after its %s", s->stopped);
    else if (s->exit_code < 0)
        snprintf(outcome, sizeof outcome, "exit code unknown");
    else
        snprintf(outcome, sizeof outcome, "exit code %d", s->exit_code);
    snprintf(out, HEC_SUMMARY_WORDS, "%s, %s%s%s", hec_format_seconds(seconds, s->seconds), outcome,
             s->simulated[0] ? ", on a simulated " : "", s->simulated);
    return out;
}

/* ---- energy ---- */

/* NULL: the command used no device. */
static const struct hec_reason *why_no_total(const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].readings.used && !s->devices[i].readings.energy.valid)
            return &s->devices[i].readings.energy.why;
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].readings.use_unknown)
            return &s->devices[i].readings.energy.why;
    return NULL;
}

enum hec_energy_known hec_energy_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s, bool utf8) {
    text joules, watts, limit, share;
    double mean = 0, most = 0;
    int used = hec_summary_used(s);
    bool unknown = false;
    if (!s->device_count || s->imported[0]) {
        snprintf(out, HEC_SUMMARY_WORDS, "unavailable: %s", HEC_SAY(&s->energy_unavailable));
        return HEC_ENERGY_ABSENT;
    }
    for (int i = 0; i < s->device_count; i++) {
        unknown |= s->devices[i].readings.use_unknown;
        if (!s->devices[i].readings.used)
            continue;
        mean += hec_terminal_watts(&s->devices[i].readings);
        most += s->devices[i].readings.power_limit_w;
    }
    if (!isfinite(s->joules)) {
        const char *kind = used ? "invalid: " : unknown ? "unknown: " : "none charged: ";
        const struct hec_reason *why = why_no_total(s);
        snprintf(out, HEC_SUMMARY_WORDS, "%s%s", kind, why ? HEC_SAY(why) : "the command used no GPU");
        return used ? HEC_ENERGY_INVALID : HEC_ENERGY_ABSENT;
    }
    int length =
        snprintf(out, HEC_SUMMARY_WORDS, "%s, mean %s",
                 hec_format_bounded(joules, s->joules, s->bound_joules, "J", utf8), hec_format_si(watts, mean, 3, "W"));
    if (isfinite(most) && most > 0)
        length += snprintf(out + length, (size_t)(HEC_SUMMARY_WORDS - length), " of %s (%s)",
                           hec_format_si(limit, most, 3, "W"), hec_format_share(share, mean / most));
    snprintf(out + length, (size_t)(HEC_SUMMARY_WORDS - length), "%s", used > 1 ? ", all GPUs used" : "");
    return HEC_ENERGY_KNOWN;
}

/* ---- work and cost ---- */

/* "samples" for any count but 1, unless the name is a plural already. */
static const char *plural(const struct hec_unit_summary *u) {
    size_t length = strlen(u->name);
    return u->count == 1 || (length && u->name[length - 1] == 's') ? "" : "s";
}

/* ", of GPU 0, 2", where other programs used the others. */
static const char *of_devices(char *out, size_t size, const struct hec_summary *s, const struct hec_unit_summary *u) {
    const char *before = ", of GPU ";
    out[0] = '\0';
    for (int i = 0; i < s->device_count && u->part_of_devices; i++) {
        int index = s->devices[i].readings.device.index;
        if (!s->devices[i].readings.used || !(u->devices >> index & 1))
            continue;
        snprintf(out + strlen(out), size - strlen(out), "%s%d", before, index);
        before = ", ";
    }
    return out;
}

/* ", 969.5 mJ ± 0.7 mJ per sample"; "": not known */
static const char *each_words(char *out, size_t size, const struct hec_summary *s, const struct hec_unit_summary *u,
                              bool loop, bool utf8) {
    double joules = loop ? u->loop_joules_per_unit : u->joules_per_unit;
    text amount;
    char of[96];
    out[0] = '\0';
    if (!isfinite(joules))
        return out;
    hec_format_bounded(amount, joules, loop ? u->loop_joules_per_unit_bound : u->joules_per_unit_bound, "J", utf8);
    snprintf(out, size, ", %s per %.64s%s", amount, u->name, of_devices(of, sizeof of, s, u));
    return out;
}

char *hec_unit_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s, const struct hec_unit_summary *u,
                     bool utf8) {
    text count, rate;
    char each[256];
    snprintf(out, HEC_SUMMARY_WORDS, "%s %s%s, %s a second%s", hec_format_count(count, u->count), u->name, plural(u),
             hec_format_count(rate, u->per_second), each_words(each, sizeof each, s, u, false, utf8));
    return out;
}

char *hec_rate_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s, const struct hec_unit_summary *u,
                     bool utf8) {
    text rate;
    char each[256];
    if (!isfinite(u->loop_count))
        return hec_unit_words(out, s, u, utf8);
    bool known = isfinite(u->loop_joules_per_unit);
    each_words(each, sizeof each, s, u, known, utf8);
    snprintf(out, HEC_SUMMARY_WORDS, "%s %s%s a second%s%s", hec_format_count(rate, u->loop_per_second), u->name,
             plural(u), each, known || !each[0] ? "" : " by the whole run");
    return out;
}

char *hec_printed_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s, const struct hec_printed_summary *p,
                        bool utf8) {
    text rate, amount;
    char each[256] = "";
    if (!isfinite(p->per_second)) {
        snprintf(out, HEC_SUMMARY_WORDS, "%s: %s of %.120s%s", p->unit.name,
                 p->lines ? "one count says no rate, in the lines" : "no line says it", s->printed_from,
                 p->lines ? "" : " matches its pattern");
        return out;
    }
    if (isfinite(p->joules_per_unit)) {
        hec_format_bounded(amount, p->joules_per_unit, p->joules_per_unit_bound, "J", utf8);
        snprintf(each, sizeof each, ", %s per %s", amount, p->unit.name);
    }
    snprintf(out, HEC_SUMMARY_WORDS, "%s %s a second%s (%s of %lld line%s%s)", hec_format_count(rate, p->per_second),
             p->unit.name, each, p->unit.rate ? "median" : "counts", (long long)p->used, p->used == 1 ? "" : "s",
             p->of_loop ? " in the loop" : "");
    return out;
}

char *hec_part_words(char out[HEC_SUMMARY_WORDS], const struct hec_loop *l, enum hec_run_part part) {
    text seconds, joules;
    bool known = isfinite(l->joules[part]);
    snprintf(out, HEC_SUMMARY_WORDS, "%s%s%s", hec_format_seconds(seconds, l->seconds[part]), known ? ", " : "",
             known ? hec_format_si(joules, l->joules[part], 3, "J") : "");
    return out;
}

char *hec_setup_place_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s) {
    const struct hec_finding_line *l = &s->loop.setup_line;
    out[0] = '\0';
    return l->share >= MOSTLY ? hec_place_words(out, HEC_SUMMARY_WORDS, l->file, l->line, l->function, LINE_ROOM) : out;
}

char *hec_cost_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s) {
    char hour[HEC_FORMAT_SIZE] = "", from[sizeof s->price.carbon_from + 8] = "";
    text dollars, grams;
    const struct hec_price *p = &s->price;
    bool both = p->dollars_default && p->carbon_default;
    out[0] = '\0';
    if (!isfinite(s->dollars))
        return out;
    if (p->dollars_per_gpu_hour > 0)
        snprintf(hour, sizeof hour, ", %.4g $ a GPU hour", p->dollars_per_gpu_hour);
    if (p->carbon_from[0])
        snprintf(from, sizeof from, ": %s", p->carbon_from);
    snprintf(out, HEC_SUMMARY_WORDS, "%s, %s CO2 (%s%.4g $/kWh%s, %.4g g/kWh%s%s%s)",
             hec_format_dollars(dollars, s->dollars), hec_format_si(grams, s->grams_co2, 3, "g"),
             both ? "defaults: " : "", p->dollars_per_kwh, p->dollars_default && !both ? " by default" : "",
             p->grams_co2_per_kwh, p->carbon_default && !both ? " by default" : "", from, hour);
    return out;
}

char *hec_event_words(char out[HEC_SUMMARY_WORDS], const struct hec_event_summary *e) {
    snprintf(out, HEC_SUMMARY_WORDS, "%s%s", e->left_out ? "a part of the run file is damaged and left out: " : "",
             e->text);
    return out;
}

char *hec_knobs_words(char out[HEC_SUMMARY_WORDS], const struct hec_summary *s) {
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < s->knob_count && length < HEC_SUMMARY_WORDS; i++) {
        const struct hec_knob_summary *k = &s->knobs[i];
        length += (size_t)snprintf(out + length, HEC_SUMMARY_WORDS - length, "%s%s=%s%s", i ? ", " : "", k->name,
                                   k->value, k->changed ? " and others" : "");
        if (k->ranged && length < HEC_SUMMARY_WORDS)
            length +=
                (size_t)snprintf(out + length, HEC_SUMMARY_WORDS - length, " (%.15g to %.15g)", k->least, k->most);
    }
    return out;
}

bool hec_lever_took_words(char out[HEC_SUMMARY_WORDS], const struct hec_lever_summary *l) {
    static const char *const words[HEC_ATTESTS] = {"did nothing", "set", "nothing to do: the program has it", "on",
                                                   "failed, and was taken out"};
    snprintf(out, HEC_SUMMARY_WORDS, "%s%s%s: %s%s%s%s", l->name, l->value[0] ? "=" : "", l->value, words[l->attest],
             l->text[0] ? " (" : "", l->text, l->text[0] ? ")" : "");
    return l->attest == HEC_ATTEST_ON || l->attest == HEC_ATTEST_SET;
}

char *hec_state_watts_words(char out[HEC_FORMAT_SIZE], const struct hec_ledger_row *r, bool utf8) {
    double half = fmax(r->watts_high - r->watts, r->watts - r->watts_low);
    out[0] = '\0';
    if (!isfinite(r->joules))
        return out;
    if (isfinite(half) && half < r->watts)
        snprintf(out, HEC_FORMAT_SIZE, "%.0f W %s %.*f", r->watts, utf8 ? "\u00b1" : "+-", half < 0.95, half);
    else
        snprintf(out, HEC_FORMAT_SIZE, "%.0f W (rough)", r->watts);
    return out;
}
