#include "report/sweep/words.h"

#include "base/names.h"
#include "report/words/answer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];
typedef char line_text[HEC_SWEEP_LINE];

/* ---- names ---- */

HEC_NAME_OF(hec_sweep_state_name, enum hec_sweep_state, "done", "budget_spent", "interrupted")

HEC_NAME_OF(hec_sweep_figure_name, int, "units_per_second", "joules_per_unit", "watts", "step_p50_seconds",
            "step_p99_seconds", "objective")

const char *hec_sweep_unit(const struct hec_sweep_report *r) {
    return r->result.by_run || !r->conditions.unit[0] ? "run" : r->conditions.unit;
}

/* What the objective is small in: "energy". */
static const char *objective_words(const struct hec_sweep_report *r) {
    static const char *const words[] = {"energy", "time", "energy times time", "cost"};
    return words[r->result.objective];
}

/* ---- settings ---- */

static const char *value_of(const struct hec_sweep_report *r, int arm, int parameter) {
    for (int i = r->plan.parameters - 1; i > parameter; i--)
        arm /= r->parameter[i].count;
    return r->parameter[parameter].value[arm % r->parameter[parameter].count];
}

/* `with`: the name before each value; all but the parameter `without`. */
static char *settings(char out[HEC_SWEEP_LABEL], const struct hec_sweep_report *r, int arm, bool with, int without) {
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < r->plan.parameters && length < HEC_SWEEP_LABEL - 1; i++)
        if (i != without)
            length += (size_t)snprintf(out + length, HEC_SWEEP_LABEL - length, "%s%s%s%s", length ? " " : "",
                                       with ? r->parameter[i].name : "", with ? "=" : "", value_of(r, arm, i));
    return out;
}

char *hec_sweep_label(char out[HEC_SWEEP_LABEL], const struct hec_sweep_report *r, int arm) {
    return settings(out, r, arm, true, -1);
}

char *hec_sweep_values(char out[HEC_SWEEP_LABEL], const struct hec_sweep_report *r, int arm) {
    return settings(out, r, arm, false, -1);
}

void hec_sweep_change(text change, text range, const struct hec_sweep_interval *ratio) {
    double low = 100 * (ratio->low - 1), high = 100 * (ratio->high - 1), value = 100 * (ratio->value - 1);
    int decimals = hec_change_decimals(low, high, value) > 0;
    change[0] = range[0] = '\0';
    if (isnan(value))
        return;
    snprintf(change, sizeof(text), "%+.*f %%", decimals, hec_change_rounded(value, decimals));
    if (isfinite(low) && isfinite(high))
        snprintf(range, sizeof(text), "%+.*f to %+.*f", decimals, hec_change_rounded(low, decimals), decimals,
                 hec_change_rounded(high, decimals));
}

char *hec_sweep_why(line_text out, const struct hec_sweep_report *r, int index) {
    const struct hec_sweep_arm *arm = &r->result.arm[index];
    text p99, left;
    switch (arm->passed) {
    case HEC_SWEEP_PASSED_END:
        if (arm->end == HEC_SWEEP_FAILED)
            snprintf(out, HEC_SWEEP_LINE, "failed: exit status %d", arm->exit_status);
        else
            snprintf(out, HEC_SWEEP_LINE, "%s",
                     arm->end == HEC_SWEEP_DEVICE_MEMORY ? "out of device memory"
                     : arm->end == HEC_SWEEP_HOST_MEMORY ? "out of host memory"
                     : arm->end == HEC_SWEEP_HUNG        ? "did not end within its limit"
                                                         : "not run");
        break;
    case HEC_SWEEP_PASSED_UNKNOWN:
        snprintf(out, HEC_SWEEP_LINE, "%s of a %.64s was not measured", objective_words(r), hec_sweep_unit(r));
        break;
    case HEC_SWEEP_PASSED_CLIFF:
        snprintf(out, HEC_SWEEP_LINE, "beyond a value that does not run");
        break;
    case HEC_SWEEP_PASSED_SLOW:
        snprintf(out, HEC_SWEEP_LINE, "slower than the first by more than %.3g %%", 100 * r->plan.max_slowdown);
        break;
    case HEC_SWEEP_PASSED_SLOW_OPEN:
        snprintf(out, HEC_SWEEP_LINE, "not shown to be slower than the first by at most %.3g %%",
                 100 * r->plan.max_slowdown);
        break;
    case HEC_SWEEP_PASSED_P99:
        snprintf(out, HEC_SWEEP_LINE, "p99 of a step over %s", hec_format_seconds(p99, r->plan.max_p99));
        break;
    case HEC_SWEEP_PASSED_P99_OPEN:
        snprintf(out, HEC_SWEEP_LINE, "p99 of a step not shown to be within %s",
                 hec_format_seconds(p99, r->plan.max_p99));
        break;
    case HEC_SWEEP_PASSED_HEADROOM:
        snprintf(out, HEC_SWEEP_LINE, "leaves %s of the memory, less than %.0f %%",
                 hec_format_share(left, arm->headroom), 100 * hec_sweep_limit(HEC_SWEEP_HEADROOM));
        break;
    case HEC_SWEEP_ELIGIBLE:
    case HEC_SWEEP_PASSED_COUNT:
        out[0] = '\0';
    }
    return out;
}

/* ---- the advice ---- */

/* "54.6 % less energy a sample than batch=32 (51 to 57)" */
static char *against_first(line_text out, const struct hec_sweep_report *r, int arm) {
    const struct hec_sweep_interval *ratio = &r->result.arm[arm].to_first[HEC_SWEEP_OBJECTIVE];
    char first[HEC_SWEEP_LABEL];
    double less = 100 * (1 - ratio->value), low = 100 * (1 - ratio->high), high = 100 * (1 - ratio->low);
    int decimals = hec_change_decimals(low, high, less) > 0;
    hec_sweep_label(first, r, 0);
    if (!(ratio->high < 1))
        snprintf(out, HEC_SWEEP_LINE, "not shown to differ from %s in %s a %.64s", first, objective_words(r),
                 hec_sweep_unit(r));
    else
        snprintf(out, HEC_SWEEP_LINE, "%.*f %% less %s a %.64s than %s (%.*f to %.*f)", decimals,
                 hec_change_rounded(less, decimals), objective_words(r), hec_sweep_unit(r), first, decimals,
                 hec_change_rounded(low, decimals), decimals, hec_change_rounded(high, decimals));
    return out;
}

/* "batch=512 and batch=1024 are": those that are alike, but for one; "" where there is no other. */
static char *alike_words(line_text out, const struct hec_sweep_report *r, int but) {
    char label[HEC_SWEEP_LABEL];
    int count = 0, total = __builtin_popcountll(r->result.alike & ~(UINT64_C(1) << but));
    size_t length = 0;
    out[0] = '\0';
    for (int i = 0; i < r->result.arms; i++) {
        if (i == but || !(r->result.alike >> i & 1) || length > HEC_SWEEP_LINE - 2 * HEC_SWEEP_LABEL)
            continue;
        count++;
        length += (size_t)snprintf(out + length, HEC_SWEEP_LINE - length, "%s%s%s",
                                   count == 1       ? ""
                                   : count == total ? " and "
                                                    : ", ",
                                   hec_sweep_label(label, r, i),
                                   count < total ? ""
                                   : total > 1   ? " are"
                                                 : " is");
    }
    return out;
}

/* By what most of those say that ran, or of all where none did. */
static char *nothing_words(line_text out, const struct hec_sweep_report *r) {
    line_text why, other;
    int most = 0;
    bool ran = false;
    for (int i = 0; i < r->result.arms; i++)
        ran |= r->result.arm[i].passed != HEC_SWEEP_PASSED_END;
    out[0] = '\0';
    for (int i = 0; i < r->result.arms; i++) {
        enum hec_sweep_passed passed = r->result.arm[i].passed;
        int alike = 0;
        hec_sweep_why(why, r, i);
        for (int k = 0; k < r->result.arms; k++)
            alike += strcmp(why, hec_sweep_why(other, r, k)) == 0;
        if (alike <= most || (ran && passed == HEC_SWEEP_PASSED_END))
            continue;
        most = alike;
        snprintf(out, HEC_SWEEP_LINE, "nothing: %d of %d settings: %.300s%s", alike, r->result.arms, why,
                 passed == HEC_SWEEP_PASSED_SLOW_OPEN || passed == HEC_SWEEP_PASSED_P99_OPEN
                     ? "; more rounds may show it"
                     : "");
    }
    return out;
}

/* One that is passed over takes less than the first. */
static bool passed_one_saves(const struct hec_sweep_report *r) {
    bool any = false;
    for (int i = 1; i < r->result.arms; i++)
        any |= r->result.arm[i].passed != HEC_SWEEP_ELIGIBLE && r->result.arm[i].to_first[HEC_SWEEP_OBJECTIVE].high < 1;
    return any;
}

char *hec_sweep_advice(line_text out, const struct hec_sweep_report *r) {
    char label[HEC_SWEEP_LABEL];
    line_text against, alike;
    int arm = r->result.recommended;
    if (arm < 0)
        return nothing_words(out, r);
    hec_sweep_label(label, r, arm);
    alike_words(alike, r, arm);
    if (r->result.kept) {
        snprintf(out, HEC_SWEEP_LINE, "%s, the first setting: no other%s is shown to take less %s a %.64s%s", label,
                 passed_one_saves(r) ? " that may be recommended" : "", objective_words(r), hec_sweep_unit(r),
                 r->result.between_runs ? "" : "; one round shows little, more would tell");
        return out;
    }
    size_t length = (size_t)snprintf(out, HEC_SWEEP_LINE, "%s: %.350s", label, against_first(against, r, arm));
    if (alike[0])
        snprintf(out + length, HEC_SWEEP_LINE - length, "; %.350s not shown to take over %.0f %% %s", alike,
                 100 * hec_sweep_limit(HEC_SWEEP_TIE),
                 arm == r->result.best ? "more" : "less: the smaller is recommended");
    return out;
}

/* ---- lines ---- */

static char *rest_of(char out[HEC_SWEEP_LABEL + 8], const struct hec_sweep_report *r,
                     const struct hec_sweep_line *line) {
    char rest[HEC_SWEEP_LABEL];
    settings(rest, r, line->arm[0], true, line->parameter);
    snprintf(out, HEC_SWEEP_LABEL + 8, "%s%s", rest[0] ? " with " : "", rest);
    return out;
}

char *hec_sweep_plateau(line_text out, const struct hec_sweep_report *r, const struct hec_sweep_line *line) {
    char rest[HEC_SWEEP_LABEL + 8];
    const char *name = r->parameter[line->parameter].name;
    double tolerance = 100 * hec_sweep_limit(HEC_SWEEP_TOLERANCE);
    int p = line->parameter;
    rest_of(rest, r, line);
    if (line->best < 0) {
        snprintf(out, HEC_SWEEP_LINE, "%s%s: throughput was not measured", name, rest);
        return out;
    }
    size_t length =
        (size_t)snprintf(out, HEC_SWEEP_LINE, "%s%s: the most units/s at %s", name, rest, value_of(r, line->best, p));
    if (line->plateau < 0)
        snprintf(out + length, HEC_SWEEP_LINE - length, "; how far others are below is not known from one short round");
    else if (line->plateau == line->plateau_to)
        snprintf(out + length, HEC_SWEEP_LINE - length,
                 "; every other is below it by more than %.0f %%, or does not run", tolerance);
    else if (line->plateau == line->plateau_shown && line->plateau_to == line->best)
        snprintf(out + length, HEC_SWEEP_LINE - length, "; from %s on it is shown to be within %.0f %% of that",
                 value_of(r, line->plateau, p), tolerance);
    else if (line->plateau == line->plateau_shown)
        snprintf(out + length, HEC_SWEEP_LINE - length, "; from %s to %s not shown to be below it by more than %.0f %%",
                 value_of(r, line->plateau, p), value_of(r, line->plateau_to, p), tolerance);
    else
        snprintf(out + length, HEC_SWEEP_LINE - length,
                 "; from %s to %s not shown to be below it by more than %.0f %%, from %s on shown to be within it",
                 value_of(r, line->plateau, p), value_of(r, line->plateau_to, p), tolerance,
                 value_of(r, line->plateau_shown, p));
    return out;
}

char *hec_sweep_cliff(line_text out, const struct hec_sweep_report *r, const struct hec_sweep_line *line) {
    char rest[HEC_SWEEP_LABEL + 8];
    line_text why;
    const char *name = r->parameter[line->parameter].name;
    double tolerance = 100 * hec_sweep_limit(HEC_SWEEP_TOLERANCE);
    int at = line->cliff ? line->cliff_arm : line->arm[line->count - 1];
    rest_of(rest, r, line);
    int length = snprintf(out, HEC_SWEEP_LINE, "%s%s: ", name, rest);
    char *to = out + length;
    size_t size = HEC_SWEEP_LINE - (size_t)length;
    const char *value = value_of(r, at, line->parameter);
    bool ran = false;
    for (int i = 0; i < line->count; i++)
        ran |= r->result.arm[line->arm[i]].end == HEC_SWEEP_RAN;
    if (!ran) {
        snprintf(to, size, "none is known: no value ran");
        return out;
    }
    switch (line->cliff) {
    case HEC_SWEEP_CLIFF_END:
        snprintf(to, size, "%s %.200s", value, hec_sweep_why(why, r, at));
        break;
    case HEC_SWEEP_CLIFF_SPEED:
        snprintf(to, size, "at %s throughput has fallen by more than %.0f %% of the best", value, tolerance);
        break;
    case HEC_SWEEP_CLIFF_JOULES:
        snprintf(to, size, "at %s energy a %.64s has risen by more than %.0f %% of the least", value, hec_sweep_unit(r),
                 tolerance);
        break;
    case HEC_SWEEP_NO_CLIFF:
    case HEC_SWEEP_CLIFFS:
        snprintf(to, size, "none is shown up to %s", value);
    }
    return out;
}

/* ---- limits ---- */

static bool few_steps(const struct hec_sweep_report *r) {
    bool any = false;
    for (int i = 0; i < r->result.arms; i++) {
        const struct hec_sweep_arm *arm = &r->result.arm[i];
        any |= isfinite(arm->figure[HEC_SWEEP_P99].value) && arm->steps_seen < hec_sweep_limit(HEC_SWEEP_STEPS);
    }
    return any;
}

int hec_sweep_notes(const struct hec_sweep_report *r, char out[HEC_SWEEP_NOTES][HEC_SWEEP_LINE]) {
    const struct hec_sweep_result *result = &r->result;
    int count = 0;
    if (r->conditions.simulated)
        snprintf(out[count++], HEC_SWEEP_LINE, "on a simulated GPU: this proves nothing of a real one");
    const char *no_effect = hec_receipt_fact(&r->conditions.facts, HEC_RECEIPT_NO_EFFECT);
    if (no_effect)
        snprintf(out[count++], HEC_SWEEP_LINE, "without effect: %.1000s", no_effect);
    if (r->state != HEC_SWEEP_DONE)
        snprintf(out[count++], HEC_SWEEP_LINE, "it ended before its rounds were done%s: what there is was judged",
                 r->state == HEC_SWEEP_SPENT ? ", for its budget was spent" : "");
    if (!result->between_runs && result->measured)
        snprintf(
            out[count++], HEC_SWEEP_LINE,
            "one trial of each setting: intervals are from within trials, and do not contain what trials differ by");
    if (result->measured && result->objective != r->plan.objective)
        snprintf(out[count++], HEC_SWEEP_LINE, "joules are not known: settings are judged by time");
    if (result->measured && result->by_run)
        snprintf(out[count++], HEC_SWEEP_LINE,
                 "no unit of work is known of all trials: figures are of whole runs, which must do the same work");
    else if (strcmp(r->conditions.unit, "step") == 0)
        snprintf(
            out[count++], HEC_SWEEP_LINE,
            "the unit of work is a step: settings that change what a step does are not comparable; let the program "
            "mark samples or tokens");
    if (result->headroom_waived)
        snprintf(out[count++], HEC_SWEEP_LINE,
                 "every setting leaves less than %.0f %% of the memory: that decides nothing here",
                 100 * hec_sweep_limit(HEC_SWEEP_HEADROOM));
    if (few_steps(r))
        snprintf(out[count++], HEC_SWEEP_LINE,
                 "trials have less than %.0f steps: p99 is about the slowest step of each",
                 hec_sweep_limit(HEC_SWEEP_STEPS));
    return count;
}

char *hec_sweep_cost(line_text out, const struct hec_sweep_report *r) {
    text joules, seconds;
    bool known = isfinite(r->result.cost_joules) && r->result.cost_joules > 0;
    snprintf(out, HEC_SWEEP_LINE, "%s%s%s in %d trial%s",
             known ? hec_format_si(joules, r->result.cost_joules, 4, "J") : "", known ? " and " : "",
             hec_format_seconds(seconds, r->result.cost_seconds), r->trial_count, r->trial_count == 1 ? "" : "s");
    return out;
}
