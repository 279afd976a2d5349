/* A receipt as Markdown, for a pull request: the verdict first, then what it rests on. */
#include "report/receipt/try.h"
#include "report/words/answer.h"
#include "report/markdown.h"
#include "report/receipt/words.h"

#include <math.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];

static void put_item(struct hec_buf *out, const char *before, const char *name, const char *value) {
    hec_buf_puts(out, before);
    hec_markdown_text(out, "- ", name, "");
    hec_markdown_text(out, ": ", value, "\n");
}

static void put_commands(struct hec_buf *out, const struct hec_receipt *r) {
    for (int side = 0; side < 2; side++) {
        struct hec_buf line;
        if (!r->command[side].count)
            continue;
        hec_buf_init(&line, 1 << 20);
        hec_receipt_command(&line, r, side);
        put_item(out, side ? "" : "\n", hec_receipt_side_name(side), hec_buf_text(&line));
        hec_buf_free(&line);
    }
}

static void put_left(struct hec_buf *out, const char *before, const struct hec_receipt *r) {
    char line[HEC_RECEIPT_LINE];
    put_item(out, before, "left behind", hec_receipt_where(line, r));
    for (int i = 0; i < r->left.count; i++)
        put_item(out, "", "and", r->left.list[i]);
}

static void put_verdict(struct hec_buf *out, const struct hec_receipt *r) {
    char sentence[HEC_ANSWER_SENTENCE], lines[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE], quality[HEC_QUALITY_SENTENCE];
    struct hec_answer answer = hec_receipt_answer(r);
    int count = hec_receipt_notes(r, lines);
    hec_markdown_text(out, "**", hec_answer_sentence(sentence, &answer), "**\n");
    put_item(out, "\n", "quality", hec_quality_sentence(quality, &r->result.quality));
    for (int i = 0; i < count; i++)
        put_item(out, "", "note", lines[i]);
    if (hec_receipt_fact(&r->facts, HEC_RECEIPT_EFFECT))
        put_item(out, "", "levers", hec_receipt_fact(&r->facts, HEC_RECEIPT_EFFECT));
    put_commands(out, r);
    hec_buf_printf(out, "\n%d pair%s of trials%s%s:\n\n", r->result.pairs, r->result.pairs == 1 ? "" : "s",
                   r->unit[0] ? "; a unit of work is a " : "", r->unit);
    hec_answer_table_markdown(out, &answer);
    put_item(out, "\n", "the trials took", hec_receipt_cost(lines[0], r));
    put_item(out, "", "this has paid", hec_receipt_paid(lines[0], r));
    put_left(out, "", r);
}

/* ---- what it rests on ---- */

static const char *number(text out, double value, const char *unit) {
    return isnan(value) ? "" : hec_format_si(out, value, 4, unit);
}

static void put_trials(struct hec_buf *out, const struct hec_receipt *r) {
    text joules, seconds, units, run;
    hec_buf_puts(out,
                 "\n| pair | | steady part | | units | whole trial |\n| ---: | --- | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < r->trial_count; i++) {
        const struct hec_experiment_trial *t = &r->trials[i];
        if (t->pair < 0)
            hec_buf_puts(out, "| warm-up");
        else
            hec_buf_printf(out, "| %d", t->pair + 1);
        hec_buf_printf(out, " | %s | %s | %s | %s | %s |\n", hec_receipt_side_name(t->side),
                       number(joules, t->steady.joules, "J"), number(seconds, t->steady.seconds, "s"),
                       isnan(t->steady.units) ? "" : hec_format_count(units, t->steady.units),
                       number(run, t->run.joules, "J"));
    }
}

static void put_facts(struct hec_buf *out, const char *title, const struct hec_receipt_facts *facts) {
    if (facts->count)
        hec_buf_printf(out, "\n%s:\n\n", title);
    for (int i = 0; i < facts->count; i++)
        put_item(out, "", facts->list[i].name, facts->list[i].value);
}

static void put_words(struct hec_buf *out, const char *title, const struct hec_receipt_words *words) {
    for (int i = 0; i < words->count; i++) {
        hec_buf_printf(out, "%s%s", i ? ", " : "\n", i ? "" : title);
        hec_markdown_text(out, "", words->list[i], "");
    }
    hec_buf_puts(out, words->count ? "\n" : "");
}

static void put_details(struct hec_buf *out, const struct hec_receipt *r) {
    char lines[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE];
    int count = hec_receipt_method(r, lines);
    hec_buf_puts(out, "\n<details><summary>How, where, and every trial</summary>\n\n");
    for (int i = 0; i < count; i++) {
        hec_markdown_text(out, "- ", lines[i], "\n");
    }
    put_item(out, "", "measured", r->created);
    put_item(out, "", "hec", r->hec_version);
    put_item(out, "", "folder", r->folder ? r->folder : "unknown");
    put_item(out, "", "caches of compilers",
             r->caches == HEC_RECEIPT_CACHES_TRIALS  ? "one set for all trials, empty at first"
             : r->caches == HEC_RECEIPT_CACHES_FRESH ? "fresh for each trial"
                                                     : "the user's own");
    put_trials(out, r);
    hec_tried_markdown(out, r);
    put_facts(out, "Machine and versions", &r->facts);
    put_facts(out, "Environment", &r->environment);
    put_words(out, "Set too, values left out: ", &r->withheld);
    hec_buf_puts(out, "\n</details>\n");
}

int hec_receipt_markdown(const struct hec_receipt *r, struct hec_buf *out) {
    if (hec_receipt_is_baseline(r)) {
        hec_buf_printf(out, "**a baseline of %d trial%s**\n", r->trial_count, r->trial_count == 1 ? "" : "s");
        put_commands(out, r);
        put_left(out, "\n", r);
    } else {
        put_verdict(out, r);
    }
    put_details(out, r);
    return hec_buf_error(out);
}
