/* A run as Markdown, for a pull request or a notebook: the answer and what it rests on, the rest folded away.
 * Names from outside stand in code spans: no markup, no link, nobody is mentioned. */
#include "report/words/facts.h"
#include "report/words/findings.h"
#include "report/words/results.h"
#include "report/markdown.h"
#include "report/run/report.h"
#include "report/words/screen.h"
#include "report/words/summary.h"
#include "report/run/parallelism.h"
#include "report/run/ranks.h"
#include "report/run/terminal_device.h"
#include "report/words/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KERNELS_SHOWN 10
#define KERNEL_COLUMNS 96
#define FINDINGS_SHOWN 3
#define LINE_COLUMNS 96
#define LEAST_SHARE 0.0005 /* a row below prints as 0.0 % */

typedef char text[HEC_FORMAT_SIZE];

static void put_row(struct hec_buf *out, const char *name, const char *words) {
    hec_buf_printf(out, "| %s | ", name);
    hec_markdown_text(out, "", words, " |\n");
}

static void put_took(const struct hec_summary *s, struct hec_buf *out) {
    char words[HEC_SUMMARY_WORDS], caveats[HEC_CAVEATS_MAX][160];
    hec_buf_puts(out, "\n| | |\n| --- | --- |\n");
    put_row(out, "Run", hec_outcome_words(words, s));
    hec_energy_words(words, s, true);
    put_row(out, "energy", words);
    for (int i = 0; i < s->unit_count; i++)
        if (!s->units[i].is_default)
            put_row(out, "work", hec_unit_words(words, s, &s->units[i], true));
    for (int i = 0; i < s->printed_count; i++)
        put_row(out, "printed", hec_printed_words(words, s, &s->printed[i], true));
    if (hec_cost_words(words, s)[0])
        put_row(out, "cost", words);
    for (int i = 0; i < s->lever_count; i++) {
        hec_lever_took_words(words, &s->levers[i]);
        put_row(out, "lever", words);
    }
    if (hec_knobs_words(words, s)[0])
        put_row(out, "knobs", words);
    int count = hec_summary_used(s) ? hec_caveats(s, caveats) : 0;
    for (int i = s->steps.nonfinite ? 1 : 0; i < count; i++)
        put_row(out, "note", caveats[i]);
}

/* ---- devices ---- */

static void put_devices(const struct hec_summary *s, struct hec_buf *out) {
    text gpu, joules, watts, busy;
    uint64_t rows = hec_terminal_gpu_rows(s, false);
    hec_buf_puts(out, "\n| GPU | energy | mean power | busy |\n| --- | ---: | ---: | ---: |\n");
    for (int i = 0; i < s->device_count; i++) {
        const struct hec_device_summary *d = &s->devices[i].readings;
        double mean = hec_terminal_watts(d), of = hec_terminal_busy(&s->devices[i]);
        if (rows & hec_device_bit(d->device.index))
            hec_buf_printf(out, "| %s | %s | %s | %s |\n", hec_format_gpu(gpu, d->device.index),
                           d->energy.valid ? hec_format_si(joules, d->energy.joules, 3, "J") : "",
                           isfinite(mean) ? hec_format_si(watts, mean, 3, "W") : "",
                           isfinite(of) ? hec_format_share(busy, of) : "");
    }
    if (hec_summary_used(s) > __builtin_popcountll(rows))
        hec_buf_printf(out, "\nand %d more\n", hec_summary_used(s) - __builtin_popcountll(rows));
}

static void put_ledger(const struct hec_summary *s, const struct hec_ledger_device *d, struct hec_buf *out) {
    text name, seconds, share, joules, watts;
    if (!d || !d->window_ns)
        return;
    hec_markdown_text(out, "\nWhere the time of ", hec_device_word(name, s, d->device), "");
    hec_buf_puts(out,
                 " went:\n\n| state | time | share | energy | mean power |\n| --- | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        const struct hec_ledger_row *r = &d->rows[i];
        double part = (double)r->ns / (double)d->window_ns;
        if (part >= LEAST_SHARE)
            hec_buf_printf(out, "| %s | %s | %s | %s | %s |\n", hec_state_name((enum hec_state)i),
                           hec_format_si(seconds, r->seconds, 3, "s"), hec_format_share(share, part),
                           isfinite(r->joules) ? hec_format_si(joules, r->joules, 3, "J") : "",
                           hec_state_watts_words(watts, r, true));
    }
    if (d->basis != HEC_LEDGER_MEASURED)
        hec_buf_printf(out, "\nSeconds by %s.%s\n", hec_ledger_basis_text(d->basis),
                       d->waiting_likely ? " Waiting: likely, by calls, stacks and telemetry." : "");
}

static void put_kernels(const struct hec_device_timeline *t, struct hec_buf *out) {
    const struct hec_kernel_column *column;
    text cell;
    if (!t || !t->row_count)
        return;
    hec_buf_printf(out, "\n<details><summary>Kernels of %s that took longest</summary>\n\n",
                   hec_format_gpu(cell, t->device));
    for (column = hec_kernel_columns; column->head; column++)
        if (column->markdown)
            hec_buf_printf(out, "| %s ", column->head);
    hec_buf_puts(out, "| kernel |\n");
    for (column = hec_kernel_columns; column->head; column++)
        hec_buf_puts(out, column->markdown ? "| ---: " : "");
    hec_buf_puts(out, "| --- |\n");
    for (int i = 0; i < t->row_count && i < KERNELS_SHOWN; i++) {
        const struct hec_kernel_row *k = &t->rows[i];
        char name[600];
        for (column = hec_kernel_columns; column->head; column++)
            if (column->markdown)
                hec_buf_printf(out, "| %s ", column->text(cell, k));
        hec_buf_puts(out, "| ");
        hec_markdown_code(out, hec_kernel_short(name, sizeof name, k->name, KERNEL_COLUMNS), true);
        hec_buf_puts(out, " |\n");
    }
    hec_buf_puts(out, "\n</details>\n");
}

/* ---- findings ---- */

static void put_finding(const struct hec_summary *s, const struct hec_finding *f, uint64_t chapters,
                        struct hec_buf *out) {
    char words[HEC_FACT_SIZE], saves[HEC_SAVES_WORDS], place[256], devices[HEC_DEVICES_WORDS];
    text share;
    const char *code = hec_finding_code(s, f);
    hec_buf_printf(out, "\n<details><summary>%s", hec_finding_devices_words(devices, s, f, chapters));
    hec_markdown_html(out, hec_title_words(words, f));
    hec_buf_printf(out, " (confidence %.2f)", f->confidence);
    if (hec_saves_words(saves, s, f)[0])
        hec_buf_printf(out, "; fixing it would save %s", saves);
    hec_buf_puts(out, "</summary>\n\n");
    for (int i = 0; i < f->evidence_count; i++) {
        hec_markdown_text(out, "- ", hec_evidence_words(words, f, &f->evidence[i]), "\n");
    }
    for (int i = 0; i < f->line_count; i++) {
        const struct hec_finding_line *l = &f->lines[i];
        hec_buf_puts(out, "- ");
        hec_markdown_code(out, hec_place_words(place, sizeof place, l->file, l->line, l->function, LINE_COLUMNS),
                          false);
        hec_buf_printf(out, " (%s)\n", hec_format_share(share, l->share));
    }
    hec_markdown_text(out, "\n", hec_lever_words(words, f), "\n");
    if (code)
        hec_buf_printf(out, "\n```python\n%s```\n", code);
    hec_buf_printf(out, "\n`hec explain %s`: its meaning, its signs, its answers\n\n</details>\n",
                   hec_cause_name(f->cause));
}

static void put_findings(const struct hec_summary *s, uint64_t chapters, struct hec_buf *out) {
    static const char *const verdicts[] = {"unknown", "optimise first", "yes"};
    char words[HEC_FACT_SIZE];
    int shown = 0;
    for (int i = 0; i < s->job.findings.count && shown < FINDINGS_SHOWN; i++) {
        const struct hec_finding *f = &s->job.findings.list[i];
        bool shown_already = hec_finding_stands_for(&s->job.findings, f, chapters);
        if (shown_already || (!f->actionable && !hec_finding_tells(f) && !(f->cause == HEC_CAUSE_NONE && !i)))
            continue;
        put_finding(s, f, chapters, out);
        shown++;
    }
    if (s->job.findings.scale_out.verdict == HEC_SCALE_UNKNOWN)
        return;
    hec_buf_printf(out, "\nScale out? %s: ", verdicts[s->job.findings.scale_out.verdict]);
    hec_markdown_text(out, "", hec_scale_words(words, &s->job.findings.scale_out), "\n");
}

int hec_report_markdown(const struct hec_summary *s, struct hec_buf *out) {
    const struct hec_report_style style = {.utf8 = true};
    struct hec_screen screen;
    uint64_t chapters = hec_terminal_chapters(s, false);
    hec_count_devices(s);
    hec_screen_of(s, &style, "FILE", &screen);
    hec_screen_markdown(out, s, &screen);
    put_took(s, out);
    if (hec_summary_used(s) > 1)
        put_devices(s, out);
    hec_markdown_ranks(out, s);
    hec_markdown_parallelism(out, s);
    for (int i = 0; i < s->device_count; i++)
        if (chapters & hec_device_bit(s->devices[i].readings.device.index))
            put_ledger(s, s->devices[i].ledger, out);
    put_findings(s, chapters, out);
    for (int i = 0; i < s->device_count; i++)
        if (chapters & hec_device_bit(s->devices[i].readings.device.index))
            put_kernels(s->devices[i].timeline, out);
    return hec_buf_error(out);
}
