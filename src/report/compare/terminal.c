/* A comparison for people: the answer first, then what supports it. */
#include "report/words/answer.h"
#include "report/words/results.h"
#include "report/compare/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

#define SECONDS_LEAST 5e-10 /* of a unit: less is a rounding error */
#define STATES_SHOWN 8
#define STATE_LEAST 0.001 /* of the runs' seconds or joules: less is not worth a row */

static void put_side(struct hec_page *page, const struct hec_side *side, const char *name) {
    for (int i = 0; i < side->count; i++)
        hec_page_row(page, 2, i ? "" : name, HEC_TONE_PLAIN, "%s", side->runs[i].file);
}

/* The files, and the command where there is one. */
static void put_sides(struct hec_page *page, const struct hec_versus *v) {
    bool one = true;
    for (int i = 0; i < v->unlikes.count; i++)
        one &= v->unlikes.list[i].what != HEC_CONDITION_COMMAND;
    hec_page_line(page, 0, "hec compare", HEC_TONE_BOLD, "%s",
                  one ? v->side[0].runs[0].command : "B against A, of different commands");
    put_side(page, &v->side[0], "A");
    put_side(page, &v->side[1], "B");
}

static void put_answer(struct hec_page *page, const struct hec_versus *v, const struct hec_answer *answer) {
    char notes[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE];
    hec_answer_page(page, answer);
    int count = hec_versus_notes(v, notes);
    for (int i = 0; i < count; i++)
        hec_page_row(page, 2, i ? "" : "note", i == 0 && v->unlikes.grave ? HEC_TONE_WARN : HEC_TONE_PLAIN, "%s",
                     notes[i]);
}

static void put_quantities(struct hec_page *page, const struct hec_versus *v, const struct hec_answer *answer) {
    hec_page_blank(page);
    char of[192];
    hec_page_row(page, 0, "Compared", HEC_TONE_PLAIN, "%s", hec_quantities_of(of, v));
    hec_answer_table_page(page, answer);
}

static void signed_si(text out, double value, int digits, const char *unit) {
    text plain;
    hec_format_si(plain, value, digits, unit);
    snprintf(out, sizeof(text), "%s%.90s", value >= 0 ? "+" : "", plain);
}

static void put_state(struct hec_page *page, const char *name, const struct hec_delta_state *s) {
    text seconds[3], joules[3];
    for (int at = 0; at < 2; at++) {
        hec_format_si(seconds[at], s->seconds[at] < SECONDS_LEAST ? 0 : s->seconds[at], 3, "s");
        hec_format_si(joules[at], s->joules[at], 3, "J");
    }
    signed_si(seconds[2], s->seconds[1] - s->seconds[0], 3, "s");
    signed_si(joules[2], s->joules[1] - s->joules[0], 3, "J");
    bool known = isfinite(s->joules[0]) && isfinite(s->joules[1]);
    hec_page_line(page, 2, name, HEC_TONE_PLAIN, "%9s %9s %9s  %9s %9s %10s", seconds[0], seconds[1], seconds[2],
                  known ? joules[0] : "", known ? joules[1] : "", known ? joules[2] : "");
}

static bool worth(const struct hec_delta_state *s, const struct hec_delta_state *sum) {
    for (int at = 0; at < 2; at++)
        if (s->seconds[at] >= STATE_LEAST * sum->seconds[at] || s->joules[at] >= STATE_LEAST * sum->joules[at])
            return true;
    return false;
}

static void put_ledger(struct hec_page *page, const struct hec_versus *v) {
    const struct hec_delta *m = &v->moved;
    char per[96];
    if (!m->state_count)
        return;
    hec_page_blank(page);
    hec_page_row(page, 0, "Ledger", HEC_TONE_PLAIN,
                 "what moved, %s, of all devices and whole runs; largest difference first", hec_delta_per(per, v));
    hec_page_line(page, 0, "", HEC_TONE_DIM, "%9s %9s %9s  %9s %9s %10s", "A", "B", "B - A", "A", "B", "B - A");
    for (int i = 0; i < m->state_count && i < STATES_SHOWN; i++)
        if (worth(&m->state[i], &m->sum))
            put_state(page, hec_state_name(m->state[i].state), &m->state[i]);
    put_state(page, "all", &m->sum);
}

static void put_findings(struct hec_page *page, const struct hec_versus *v) {
    const char *before = "";
    for (int i = 0; i < v->moved.cause_count; i++) {
        const struct hec_delta_cause *c = &v->moved.cause[i];
        const char *fate = hec_delta_fate(c);
        char words[192];
        if (!i) {
            hec_page_blank(page);
            hec_page_row(page, 0, "Findings", HEC_TONE_PLAIN, "that went, that came, that stayed");
        }
        hec_page_row(page, 2, fate == before ? "" : fate, HEC_TONE_PLAIN, "%s", hec_delta_words(words, v, c));
        before = fate;
    }
}

static void put_unlikes(struct hec_page *page, const struct hec_versus *v) {
    hec_page_blank(page);
    if (!v->unlikes.count)
        hec_page_row(page, 0, "Differs", HEC_TONE_PLAIN, "nothing else that is recorded");
    for (int i = 0; i < v->unlikes.count; i++) {
        const struct hec_condition_difference *u = &v->unlikes.list[i];
        hec_page_row(page, 0, i ? "" : "Differs", i < v->unlikes.grave ? HEC_TONE_WARN : HEC_TONE_PLAIN, "%s",
                     hec_condition_words(u->what));
        hec_page_row(page, 2, "A", HEC_TONE_PLAIN, "%s", u->value[0]);
        hec_page_row(page, 2, "B", HEC_TONE_PLAIN, "%s", u->value[1]);
    }
}

int hec_versus_terminal(const struct hec_versus *v, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_answer answer = hec_versus_answer(v);
    struct hec_page page;
    hec_page_init(&page, style, out);
    put_sides(&page, v);
    put_answer(&page, v, &answer);
    put_quantities(&page, v, &answer);
    put_ledger(&page, v);
    put_findings(&page, v);
    put_unlikes(&page, v);
    return hec_buf_error(out);
}

int hec_versus_moved_terminal(const struct hec_versus *v, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    hec_page_init(&page, style, out);
    put_ledger(&page, v);
    put_findings(&page, v);
    return hec_buf_error(out);
}
