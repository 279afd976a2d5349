#include "report/receipt/check.h"

#include "report/words/results.h"
#include "base/text.h"
#include "report/words/answer.h"
#include "report/markdown.h"
#include "report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];
enum { SENTENCE = 1100, LABEL = 96, REASON = 1200 };

static const char *const states[] = {"within", "regressed", "could not say"};

/* ---- what differs ---- */

static bool grave(enum hec_condition what) {
    return hec_condition_must_agree(what) || what == HEC_CONDITION_HOST || what == HEC_CONDITION_CORES;
}

void hec_receipt_unlikes(const struct hec_receipt *a, const struct hec_receipt *b,
                         struct hec_condition_differences *out) {
    *out = (struct hec_condition_differences){.count = 0};
    for (int pass = 0; pass < 2; pass++)
        for (int what = 0; what < HEC_CONDITION_COUNT; what++) {
            const char *value[] = {hec_receipt_fact(&a->facts, hec_condition_name(what)),
                                   hec_receipt_fact(&b->facts, hec_condition_name(what))};
            if (grave(what) != (pass == 0) || (!value[0] && !value[1]) ||
                (value[0] && value[1] && strcmp(value[0], value[1]) == 0))
                continue;
            struct hec_condition_difference *unlike = &out->list[out->count++];
            unlike->what = (enum hec_condition)what;
            for (int i = 0; i < 2; i++)
                snprintf(unlike->value[i], sizeof unlike->value[i], "%s", value[i] ? value[i] : "unknown");
            out->grave += pass == 0;
        }
}

enum hec_check_state hec_check_report_state(const struct hec_check_report *r) {
    return r->unlikes.grave && !r->unlike ? HEC_CHECK_UNSURE : r->check.state;
}

/* ---- words ---- */

static char *label(char out[LABEL], const struct hec_check_report *r, int i) {
    enum hec_quantity quantity = r->check.part[i].quantity;
    bool of_trial = hec_quantity_of_whole_runs(quantity);
    snprintf(out, LABEL, "%s per %.64s", i == HEC_CHECK_JOULES ? "energy" : "time",
             of_trial          ? "trial"
             : r->now->unit[0] ? r->now->unit
                               : "unit");
    return out;
}

/* "+1.2 %", and "+0.3 to +2.1"; "" where it is not known */
static void change(const struct hec_check_part *p, text value, text range) {
    int decimals = hec_change_decimals(100 * p->low, 100 * p->high, 100 * (p->ratio - 1));
    value[0] = range[0] = '\0';
    if (isfinite(p->ratio))
        snprintf(value, sizeof(text), "%+.*f %%", decimals, hec_change_rounded(100 * (p->ratio - 1), decimals));
    if (isfinite(p->low) && isfinite(p->high))
        snprintf(range, sizeof(text), "%+.*f to %+.*f", decimals, hec_change_rounded(100 * (p->low - 1), decimals),
                 decimals, hec_change_rounded(100 * (p->high - 1), decimals));
}

static void why_unsure(char *out, size_t size, const struct hec_check_report *r, const struct hec_check_part *p) {
    bool joules = p == &r->check.part[HEC_CHECK_JOULES];
    if (!isfinite(p->ratio))
        snprintf(out, size, "; %s not known of all trials of both", joules ? "joules are" : "time is");
    else if (!isfinite(p->low))
        snprintf(out, size, "; one trial a side does not tell by how much they vary");
    else if (p->trials_needed)
        snprintf(out, size, "; the interval holds the limit: about %d trials would tell", p->trials_needed);
    else
        snprintf(out, size, "; the interval holds the limit: more trials of the baseline too would tell");
}

/* "energy per sample +6.1 % (+5.2 to +7.0), limit +3 %" */
static void part_words(char *out, size_t size, const struct hec_check_report *r, int i) {
    const struct hec_check_part *p = &r->check.part[i];
    char name[LABEL], why[128] = "";
    text value, range;
    change(p, value, range);
    if (p->state == HEC_CHECK_UNSURE)
        why_unsure(why, sizeof why, r, p);
    snprintf(out, size, "%s%s%s%s%s%s, limit +%.3g %%%s", label(name, r, i), value[0] ? " " : "", value,
             range[0] ? " (" : "", range, range[0] ? ")" : "", 100 * p->limit, why);
}

/* The parts that decide: those in the state of the whole. */
static char *sentence(char out[SENTENCE], const struct hec_check_report *r) {
    enum hec_check_state state = hec_check_report_state(r);
    size_t length = (size_t)snprintf(out, SENTENCE, "%s: ", states[state]);
    const char *between = "";
    if (r->unlikes.grave && !r->unlike) {
        snprintf(out + length, SENTENCE - length,
                 "the baseline was measured on something else (below), and what differs may be all that this shows");
        return out;
    }
    for (int i = 0; i < HEC_CHECKS; i++) {
        char part[512];
        if (!r->check.part[i].asked || r->check.part[i].state != state)
            continue;
        part_words(part, sizeof part, r, i);
        length += (size_t)snprintf(out + length, SENTENCE - length, "%s%s", between, part);
        between = "; ";
    }
    return out;
}

static void unlike_words(char out[REASON], const struct hec_condition_difference *u) {
    snprintf(out, REASON, "%s: %s in the baseline, %s now", hec_condition_words(u->what), u->value[0], u->value[1]);
}

static void command_of(const struct hec_check_report *r, struct hec_buf *line) {
    hec_buf_init(line, 1 << 20);
    hec_shell_line(r->now->command[0].list, line);
}

/* ---- for people ---- */

static void put_part(struct hec_page *page, const struct hec_check_report *r, int i) {
    const struct hec_check_part *p = &r->check.part[i];
    char name[LABEL], limit[16] = "";
    text value, range, then, now;
    if (!isfinite(p->ratio))
        return;
    change(p, value, range);
    if (p->asked)
        snprintf(limit, sizeof limit, "+%.3g %%", 100 * p->limit);
    hec_page_line(page, 2, i == HEC_CHECK_JOULES ? "energy" : "time", HEC_TONE_PLAIN, "%9s %9s  %7s  %-16s %6s  %s",
                  hec_format_si(then, p->baseline, 4, i == HEC_CHECK_JOULES ? "J" : "s"),
                  hec_format_si(now, p->now, 4, i == HEC_CHECK_JOULES ? "J" : "s"), value, range, limit,
                  strchr(label(name, r, i), ' ') + 1);
}

int hec_check_terminal(const struct hec_check_report *r, const struct hec_report_style *style, struct hec_buf *out) {
    static const enum hec_tone tones[] = {HEC_TONE_GOOD, HEC_TONE_BAD, HEC_TONE_WARN};
    char words[SENTENCE], differs[REASON];
    struct hec_buf line;
    struct hec_page page;
    hec_page_init(&page, style, out);
    command_of(r, &line);
    hec_page_line(&page, 0, "hec check", HEC_TONE_BOLD, "%s", hec_buf_text(&line));
    hec_buf_free(&line);
    hec_page_row(&page, 2, "found", tones[hec_check_report_state(r)], "%s", sentence(words, r));
    for (int i = 0; i < r->unlikes.count; i++) {
        unlike_words(differs, &r->unlikes.list[i]);
        hec_page_row(&page, 2, i ? "" : "differs", i < r->unlikes.grave ? HEC_TONE_WARN : HEC_TONE_PLAIN, "%s",
                     differs);
    }
    hec_page_row(&page, 0, "Compared", HEC_TONE_PLAIN, "%d trial%s with %d of the baseline of %s", r->check.trials_now,
                 r->check.trials_now == 1 ? "" : "s", r->check.trials_baseline, r->baseline->created);
    hec_page_line(&page, 0, "", HEC_TONE_DIM, "%9s %9s  %7s  %-16s %6s", "baseline", "now", "change", "95 % interval",
                  "limit");
    for (int i = 0; i < HEC_CHECKS; i++)
        put_part(&page, r, i);
    return hec_buf_error(out);
}

/* ---- for a pull request ---- */

static void put_row(struct hec_buf *out, const struct hec_check_report *r, int i) {
    const struct hec_check_part *p = &r->check.part[i];
    const char *unit = i == HEC_CHECK_JOULES ? "J" : "s";
    char name[LABEL];
    text value, range, then, now;
    change(p, value, range);
    hec_markdown_text(out, "| ", label(name, r, i), "");
    hec_buf_printf(out, " | %s | %s | %s | %s | ", hec_format_si(then, p->baseline, 4, unit),
                   hec_format_si(now, p->now, 4, unit), value, range);
    if (p->asked)
        hec_buf_printf(out, "+%.3g %% | %s |\n", 100 * p->limit, states[p->state]);
    else
        hec_buf_puts(out, "| |\n");
}

int hec_check_markdown(const struct hec_check_report *r, struct hec_buf *out) {
    char words[SENTENCE], differs[REASON];
    struct hec_buf line;
    hec_markdown_text(out, "**hec check: ", sentence(words, r), "");
    hec_buf_puts(out, "**\n\n| | baseline | now | change | 95 % interval | limit | |\n"
                      "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n");
    for (int i = 0; i < HEC_CHECKS; i++)
        put_row(out, r, i);
    command_of(r, &line);
    hec_markdown_text(out, "\n- command: ", hec_buf_text(&line), "");
    hec_buf_free(&line);
    hec_buf_printf(out, "\n- %d trial%s against %d of the baseline of ", r->check.trials_now,
                   r->check.trials_now == 1 ? "" : "s", r->check.trials_baseline);
    hec_markdown_text(out, "", r->baseline->created, "\n");
    for (int i = 0; i < r->unlikes.count; i++) {
        unlike_words(differs, &r->unlikes.list[i]);
        hec_markdown_text(out, "- differs: ", differs, "\n");
    }
    return hec_buf_error(out);
}
