#include "report/run/whatif.h"

#include "report/format.h"
#include "report/json_print.h"
#include "report/json_values.h"
#include "report/page.h"
#include "report/words/results.h"

#include <math.h>
#include <stdio.h>

#define CHANGES_NOTHING 0.001

/* "waits + data=0.5". A default that is an assumption about the machine (a link of 50 GB/s) is shown too. */
static const char *name_of(const struct hec_whatif_question *question, char text[256]) {
    int length = 0;
    for (int i = 0; i < question->count && length < 200; i++) {
        const struct hec_whatif_edit *e = &question->edits[i];
        length += snprintf(text + length, 256 - (size_t)length, "%s%s", i ? " + " : "", hec_edit_info(e->edit)->name);
        if (isfinite(e->value) || hec_edit_info(e->edit)->value > 0)
            length += snprintf(text + length, 256 - (size_t)length, "=%g",
                               isfinite(e->value) ? e->value : hec_edit_info(e->edit)->value);
    }
    return text;
}

static double step_s(const struct hec_whatif *w, const struct hec_replay *r) {
    return w->steps > 0 ? r->seconds / (double)w->steps : r->seconds;
}

/* That devices wait for other ranks in communication, of all of them. */
static double ranks_waited_s(const struct hec_replay *r) {
    double seconds = 0;
    for (int i = 0; i < HEC_DEVICE_MAX; i++)
        seconds += r->kernels_s[i] - r->active_s[i];
    return seconds;
}

static void put_head(const struct hec_whatif *w, struct hec_page *page) {
    char a[HEC_FORMAT_SIZE], b[HEC_FORMAT_SIZE];
    if (w->steps > 0)
        hec_page_row(page, 0, "Replay", HEC_TONE_PLAIN,
                     "%lld steps of %s, %lld calls, from %.1f to %.1f s of the run%s", (long long)w->steps,
                     hec_format_seconds(a, step_s(w, &w->unchanged.replay)), (long long)w->calls, w->from_s, w->to_s,
                     w->cut ? " (its beginning: the trace has more calls than are replayed)" : "");
    else
        hec_page_row(page, 0, "Replay", HEC_TONE_PLAIN, "%s without known steps, %lld calls%s",
                     hec_format_seconds(a, w->unchanged.replay.seconds), (long long)w->calls,
                     w->cut ? " (the beginning of the trace)" : "");
    hec_page_row(page, 2, "unchanged", w->trusted ? HEC_TONE_PLAIN : HEC_TONE_BAD,
                 "%+.2f %% against the recorded %s, with usual delays%s", 100 * w->error,
                 hec_format_seconds(b, w->unchanged.replay.recorded_s),
                 w->trusted || w->apart
                     ? ""
                     : ": the schedule does not explain this program, and nothing below is to be relied on");
    if (w->apart)
        hec_page_row(page, 2, "", HEC_TONE_BAD,
                     "of %lld kernels of communication %lld have no counterpart: processes were recorded at different "
                     "times, and nothing below is to be relied on (--trace=full)",
                     (long long)w->communication, (long long)w->alone);
    double waited_s = ranks_waited_s(&w->unchanged.replay), per = w->steps > 0 ? (double)w->steps : 1;
    if (waited_s > CHANGES_NOTHING * w->unchanged.replay.seconds && !w->apart)
        hec_page_row(page, 2, "waiting", HEC_TONE_PLAIN, "%s %sof all ranks together, for ranks that come later",
                     hec_format_seconds(a, waited_s / per), w->steps > 0 ? "a step " : "");
    if (w->imported)
        hec_page_row(page, 2, "", HEC_TONE_DIM,
                     "a profiler recorded it, which slows the host: without it, edits of the host's time save less");
    if (w->guessed > 0)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "the calls of %lld operations were not recorded: their time is a guess",
                     (long long)w->guessed);
}

/* Proofs are of savings: they say nothing of an edit that takes more. */
static bool has_interval(double saves) {
    return saves > -CHANGES_NOTHING;
}

/* "-41 % (-55 to -30)" */
static const char *change(double by, const struct hec_saving *saving, char out[32]) {
    if (!isfinite(by))
        snprintf(out, 32, "unknown");
    else if (!has_interval(-by))
        snprintf(out, 32, "%+.0f %%", 100 * by);
    else
        snprintf(out, 32, "%+.0f %% (%+.0f to %+.0f)", 100 * by, -100 * saving->high, -100 * saving->low);
    return out;
}

/* ---- a step ---- */

static const char lane_letters[HEC_LANE_COUNT + 1] = " .dKcw#=~"; /* enum hec_lane */

/* percent: NULL, or of each column how much is taken. */
static void put_lane(struct hec_page *page, const char *label, const uint8_t *lane, const uint8_t *percent,
                     int length) {
    char text[HEC_LANE_COLUMNS_MOST + 1] = "";
    for (int i = 0; i < length; i++)
        text[i] = lane[i] && percent && percent[i] < 50 ? ':' : lane_letters[lane[i]];
    while (length > 0 && text[length - 1] == ' ')
        length--;
    hec_page_line(page, 2, label, HEC_TONE_PLAIN, "%.*s", length, text);
}

static void put_step(struct hec_page *page, const char *label, const struct hec_step_lanes *lanes, const char *what) {
    char device[32], time[HEC_FORMAT_SIZE];
    snprintf(device, sizeof device, "GPU %d", lanes->device);
    hec_page_row(page, 0, label, HEC_TONE_BOLD, "%s, %s", what, hec_format_seconds(time, lanes->seconds));
    put_lane(page, "host", lanes->host, NULL, lanes->columns);
    put_lane(page, device, lanes->on_device, lanes->device_percent, lanes->columns);
}

static void put_steps(struct hec_page *page, const struct hec_whatif *w) {
    if (w->step.device < 0)
        return;
    hec_page_blank(page);
    put_step(page, w->steps > 0 ? "A step" : "All of it", &w->step, "as recorded");
    put_step(page, "", &w->edited, "with the edits");
    hec_page_row(
        page, 2, "", HEC_TONE_DIM,
        "host: . code, d data, K checkpoint, c calls, w waits; device: # kernels, = copies, ~ communication, : less than "
        "half of the column");
}

int hec_whatif_terminal(const struct hec_whatif *w, const struct hec_whatif_question *questions, bool all,
                        const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    char name[256], time[HEC_FORMAT_SIZE], seconds[32], joules[32];
    hec_page_init(&page, style, out);
    put_head(w, &page);
    hec_page_blank(&page);
    hec_page_line(&page, 0, "What if", HEC_TONE_BOLD, "%8s %18s %18s  %s", w->steps > 0 ? "a step" : "all", "time",
                  "joules", "edits");
    for (size_t i = 0; i < w->count; i++) {
        const struct hec_whatif_answer *a = &w->answers[i];
        if (!all && fabs(a->seconds_replayed) < CHANGES_NOTHING)
            continue;
        bool several = questions[i].count > 1; /* their names take a row of their own */
        hec_page_line(&page, 2, "", HEC_TONE_PLAIN, "%8s %18s %18s  %s",
                      hec_format_seconds(time, step_s(w, &a->replay)),
                      change(-a->seconds_replayed, &a->seconds, seconds),
                      change(-a->joules_replayed, &a->joules, joules), several ? "with" : name_of(&questions[i], name));
        if (several)
            hec_page_row(&page, 4, "", HEC_TONE_PLAIN, "%s", name_of(&questions[i], name));
    }
    put_steps(&page, w);
    hec_page_row(
        &page, 2, "", HEC_TONE_DIM,
        "predictions: the recorded schedule with the edits; intervals by how far proofs were from replays. hec ab "
        "and hec try prove");
    return hec_buf_error(out);
}

int hec_whatif_list(const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    hec_page_init(&page, style, out);
    for (int i = 0; i < HEC_EDIT_COUNT; i++) {
        const struct hec_edit_info *info = hec_edit_info((enum hec_edit)i);
        const char *number = hec_edit_number((enum hec_edit)i);
        char asks[HEC_RESULT_WORDS];
        hec_edit_asks(asks, (enum hec_edit)i);
        if (info->least == info->most)
            hec_page_row(&page, 0, info->name, HEC_TONE_PLAIN, "%s (%s)", asks, hec_cause_name(info->cause));
        else if (isfinite(info->value))
            hec_page_row(&page, 0, info->name, HEC_TONE_PLAIN, "%s (%s: %s, default %g)", asks,
                         hec_cause_name(info->cause), number, info->value);
        else
            hec_page_row(&page, 0, info->name, HEC_TONE_PLAIN, "%s (%s: %s, to be given)", asks,
                         hec_cause_name(info->cause), number);
    }
    return hec_buf_error(out);
}

/* ---- JSON ---- */

/* An edit that takes no number has none of the last four. */
int hec_whatif_list_json(struct hec_buf *out) {
    json_t *edits = json_array();
    for (int i = 0; i < HEC_EDIT_COUNT; i++) {
        const struct hec_edit_info *info = hec_edit_info((enum hec_edit)i);
        bool takes = info->least < info->most;
        char asks[HEC_RESULT_WORDS];
        json_array_append_new(
            edits,
            json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o}", "name", info->name, "asks",
                      hec_edit_asks(asks, (enum hec_edit)i), "cause", hec_cause_name(info->cause), "number",
                      takes ? hec_edit_number((enum hec_edit)i) : NULL, "default", of_NUMBER(takes ? info->value : NAN),
                      "least", of_NUMBER(takes ? info->least : NAN), "most", of_NUMBER(takes ? info->most : NAN)));
    }
    return hec_json_print(json_pack("{s:s, s:o}", "schema", HEC_WHATIF_EDITS_SCHEMA, "edits", edits), out);
}

static json_t *saving_of(double saves, const struct hec_saving *saving) {
    return isfinite(saving->best) && has_interval(saves) ? json_pack("[f, f]", saving->low, saving->high) : json_null();
}

static json_t *replay_of(const struct hec_whatif *w, const struct hec_replay *r) {
    return json_pack("{s:o, s:o, s:o, s:o}", "seconds", of_NUMBER(r->seconds), "step_seconds",
                     of_NUMBER(w->steps > 0 ? step_s(w, r) : NAN), "host_waited_seconds", of_NUMBER(r->waited_s),
                     "ranks_waited_seconds", of_NUMBER(w->apart ? NAN : ranks_waited_s(r)));
}

static json_t *answer_of(const struct hec_whatif *w, const struct hec_whatif_question *question,
                         const struct hec_whatif_answer *a) {
    json_t *object = replay_of(w, &a->replay), *edits = json_array();
    for (int i = 0; i < question->count; i++) {
        const struct hec_whatif_edit *e = &question->edits[i];
        const struct hec_edit_info *info = hec_edit_info(e->edit);
        json_array_append_new(
            edits, json_pack("{s:s, s:f}", "name", info->name, "value", isfinite(e->value) ? e->value : info->value));
    }
    json_object_update_new(object, json_pack("{s:o, s:o, s:o, s:o, s:o}", "edits", edits, "saves_seconds",
                                             of_NUMBER(a->seconds_replayed), "saves_seconds_interval",
                                             saving_of(a->seconds_replayed, &a->seconds), "saves_joules",
                                             of_NUMBER(a->joules_replayed), "saves_joules_interval",
                                             saving_of(a->joules_replayed, &a->joules)));
    return object;
}

int hec_whatif_json(const struct hec_whatif *w, const struct hec_whatif_question *questions, struct hec_buf *out) {
    json_t *answers = json_array();
    for (size_t i = 0; i < w->count; i++)
        json_array_append_new(answers, answer_of(w, &questions[i], &w->answers[i]));
    return hec_json_print(
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:b, s:o}", "schema",
                  HEC_WHATIF_SCHEMA, "calls", (json_int_t)w->calls, "calls_guessed", (json_int_t)w->guessed,
                  "communication", (json_int_t)w->communication, "communication_alone", (json_int_t)w->alone, "steps",
                  of_POSITIVE(w->steps), "from_seconds", of_NUMBER(w->from_s), "to_seconds", of_NUMBER(w->to_s),
                  "imported", w->imported, "cut", w->cut, "recorded_seconds", of_NUMBER(w->unchanged.replay.recorded_s),
                  "unchanged", replay_of(w, &w->unchanged.replay), "error", of_NUMBER(w->error), "trusted", w->trusted,
                  "answers", answers),
        out);
}
