#include "report/words/screen.h"

#include "base/text.h"
#include "base/trace.h"
#include "report/format.h"
#include "report/markdown.h"
#include "report/run/terminal_device.h"
#include "report/words/facts.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"
#include "report/words/summary.h"
#include "report/words/timeline.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COMMAND_COLUMNS 48  /* of a command within a sentence: longer ones are not repeated */
#define COMMAND_LONGEST 120 /* to be typed */
#define PLACE_COLUMNS 60

typedef char text[HEC_FORMAT_SIZE];

static const struct {
    const char *name;
    enum hec_tone tone;
} rows[HEC_SCREEN_ROWS] = {
#define HEC_SCREEN(id, name, tone) {name, tone},
#include "report/words/screen.def"
};

const char *hec_screen_name(enum hec_screen_id id) {
    return (unsigned)id < HEC_SCREEN_ROWS ? rows[id].name : "?";
}

/* ---- what each row says ---- */

static char *begin(struct hec_screen *screen, enum hec_screen_id id) {
    struct hec_screen_row *row = &screen->row[screen->count];
    *row = (struct hec_screen_row){.id = id};
    return row->text;
}

/* A row without words is none. */
static void end(struct hec_screen *screen) {
    screen->count += screen->row[screen->count].text[0] != '\0';
}

static void add(char *out, const char *between, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *out, const char *between, const char *format, ...) {
    char part[HEC_SCREEN_TEXT];
    size_t length = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);
    if (part[0])
        snprintf(out + length, HEC_SCREEN_TEXT - length, "%s%s", length ? between : "", part);
}

/* A call of hec with a file, as a shell takes it, whatever the file is called. */
static void add_call(char *out, const char *verb, const char *option, const char *file) {
    char path[HEC_SCREEN_TEXT];
    snprintf(path, sizeof path, "%s%s", file[0] == '-' ? "./" : "", file);
    const char *words[] = {"hec", verb, option ? option : path, option ? path : NULL, NULL};
    struct hec_buf line;
    hec_buf_init(&line, HEC_SCREEN_TEXT);
    hec_shell_line((char *const *)(uintptr_t)words, &line);
    add(out, "; ", "%s", hec_buf_text(&line));
    hec_buf_free(&line);
}

static const char *command_of(const struct hec_summary *s, size_t longest) {
    return s->command[0] && strlen(s->command) <= longest ? s->command : "COMMAND";
}

/* What to run for a trace where there was none; "": there was one, or it can have none. */
static char *trace_advice(char *out, const struct hec_summary *s) {
    const struct hec_trace_cost *t = &s->trace;
    out[0] = '\0';
    if (hec_summary_traced(s) || s->imported[0] || !hec_summary_used(s) || (t->processes && t->mode != HEC_TRACE_OFF) ||
        t->holder[0])
        return out;
    snprintf(out, HEC_SCREEN_TEXT,
             "hec run %s%s%s--trace auto -- %.600s would add the cause, the lines of the program and the savings",
             s->simulated[0] ? "--sim " : "", s->simulated, s->simulated[0] ? " " : "", command_of(s, COMMAND_COLUMNS));
    return out;
}

static void put_do(struct hec_screen *screen, const struct hec_summary *s, const struct hec_finding *f) {
    char *out = begin(screen, HEC_SCREEN_DO), lever[HEC_FACT_SIZE], place[256];
    if (f) {
        if (f->line_count && f->cause != HEC_CAUSE_NONE)
            add(out, "", "at %s: ",
                hec_place_words(place, sizeof place, f->lines[0].file, f->lines[0].line, f->lines[0].function,
                                PLACE_COLUMNS));
        add(out, "", "%s", hec_lever_words(lever, f));
        if (f->cause == HEC_CAUSE_NONE && s->job.findings.scale_out.verdict == HEC_SCALE_OUT)
            add(out, ": ", "%s", hec_scale_words(lever, &s->job.findings.scale_out));
        const char *code = f->actionable ? hec_finding_code(s, f) : NULL;
        int lines = 0;
        for (const char *c = code; c && *c; c++)
            lines += *c == '\n';
        screen->row[screen->count].code = lines <= HEC_SCREEN_CODE_LINES ? code : NULL;
    } else {
        trace_advice(out, s);
    }
    end(screen);
}

/* The second finding that is worth acting on, with what it saves after the first; where there is no first one, what may be one; else what
 * would be the limit then. */
static void put_then(struct hec_screen *screen, const struct hec_summary *s) {
    const struct hec_findings *all = &s->job.findings;
    uint64_t chapters = hec_terminal_chapters(s, false);
    char *out = begin(screen, HEC_SCREEN_THEN), rest[HEC_SAVES_WORDS];
    text saving;
    for (int i = 1; i < all->count && hec_findings_top(all) && !out[0]; i++) {
        const struct hec_finding *f = &all->list[i];
        if (!f->actionable || f->cause == all->list[0].cause || hec_finding_stands_for(all, f, chapters))
            continue;
        add(out, "", "%s", hec_cause_title(f->cause));
        if (f->replayed && hec_rest_words(rest, f->rest_seconds, f->rest_joules)[0])
            add(out, ": ", "another %s", rest);
        else if (hec_saving_words(saving, f)[0])
            add(out, ": ", "%s", saving);
    }
    const struct hec_finding *hint = hec_findings_top(all) ? NULL : hec_findings_hint(all);
    char why[HEC_FACT_SIZE];
    if (!out[0] && hint && hec_saving_words(saving, hint)[0])
        add(out, "", "not sure: %s; it would save %s", hec_evidence_words(why, hint, &hint->title), saving);
    if (!out[0] && all->next != HEC_CAUSE_NONE && hec_rest_words(rest, all->next_seconds, all->next_joules)[0])
        add(out, "", "%s would be next: %s", hec_cause_name(all->next), rest);
    end(screen);
}

static void put_loop(struct hec_screen *screen, const struct hec_summary *s, bool utf8) {
    char *out = begin(screen, HEC_SCREEN_LOOP), words[HEC_SUMMARY_WORDS], steps[HEC_STEPS_WORDS];
    const struct hec_unit_summary *unit = s->unit_count && !s->units[0].is_default ? &s->units[0] : NULL;
    text seconds;
    if (s->loop.known && !s->loop.steps)
        add(out, "", "%s, by its calls: the program reports no steps",
            hec_format_seconds(seconds, s->loop.seconds[HEC_RUN_LOOP]));
    else if (s->loop.known)
        add(out, "", "%s, %lld %s%s", hec_format_seconds(seconds, s->loop.seconds[HEC_RUN_LOOP]),
            (long long)s->loop.steps, s->steps.source == HEC_STEP_MODULE ? "" : "steps ",
            hec_steps_words(steps, s, s->steps.source));
    else if (hec_unsteady_words(words, s))
        add(out, "", "not separated: %.*s", (int)strcspn(words, ":"), words);
    else if (unit)
        add(out, "", "not known");
    if (unit)
        add(out,
            !s->loop.known  ? "; "
            : s->loop.steps ? ": "
                            : "; in the whole run ",
            "%s", hec_rate_words(words, s, unit, utf8));
    for (int i = 0; i < s->device_count; i++) /* ranks do alike: the first says it */
        if (isfinite(s->devices[i].mfu)) {
            add(out, "; ", "MFU %s or more", hec_format_share(seconds, s->devices[i].mfu));
            break;
        }
    if (s->printed_count)
        add(out, "; ", "the program says %s", hec_printed_words(words, s, &s->printed[0], utf8));
    end(screen);
}

/* What the run took as a whole: how it ended is worth a word where it did not end well, and first of all why its joules are not
 * known. */
static void add_run(char *out, const struct hec_summary *s, bool utf8) {
    char words[HEC_SUMMARY_WORDS];
    text seconds, joules;
    bool well = s->complete && s->exit_code == 0 && !s->stopped[0];
    bool known = hec_energy_words(words, s, utf8) == HEC_ENERGY_KNOWN;
    if (s->imported[0])
        add(out, "; ", "energy unavailable: time only");
    else if (!known)
        add(out, "; ", "energy %s", words);
    if (well && !s->imported[0])
        add(out, "; ", "the run %s%s%s", hec_format_seconds(seconds, s->seconds),
            s->simulated[0] ? " on a simulated " : "", s->simulated);
    else
        add(out, "; ", "the run %s", hec_outcome_words(words, s));
    if (known)
        add(out, ", ", "%s", hec_format_bounded(joules, s->joules, s->bound_joules, "J", utf8));
}

/* Where a finding says how long it compiled, once. */
static void add_compiling(char *out, const struct hec_summary *s) {
    text seconds;
    for (int i = 0; i < s->job.findings.count; i++) {
        const struct hec_evidence *title = &s->job.findings.list[i].title;
        if (title->what == HEC_EVIDENCE_COMPILING) {
            add(out, ", ", "%s of it compiling", hec_format_seconds(seconds, title->value[0]));
            return;
        }
    }
}

static void put_outside(struct hec_screen *screen, const struct hec_summary *s, bool utf8) {
    char *out = begin(screen, HEC_SCREEN_OUTSIDE), words[HEC_SUMMARY_WORDS];
    add_run(out, s, utf8);
    if (hec_summary_used(s) > 1)
        add(out, ", ", "%d GPUs", hec_summary_used(s));
    add_compiling(out, s);
    if (s->loop.known && s->loop.seconds[HEC_RUN_SETUP] > 0) {
        add(out, "; ", "set-up %s", hec_part_words(words, &s->loop, HEC_RUN_SETUP));
        add(out, ", mostly ", "%s", hec_setup_place_words(words, s));
    }
    if (s->loop.known && s->loop.seconds[HEC_RUN_END] > 0)
        add(out, "; ", "end %s", hec_part_words(words, &s->loop, HEC_RUN_END));
    end(screen);
}

static void put_next(struct hec_screen *screen, const struct hec_summary *s, bool brief, const char *file) {
    const struct hec_finding *top = hec_findings_top(&s->job.findings);
    char *out = begin(screen, HEC_SCREEN_PROVE);
    if (top && s->command[0] && !s->imported[0])
        add(out, "", "hec try %s%s%s-- %s", s->simulated[0] ? "--sim " : "", s->simulated, s->simulated[0] ? " " : "",
            command_of(s, COMMAND_LONGEST));
    end(screen);
    out = begin(screen, HEC_SCREEN_MORE);
    if (!s->device_count && !s->imported[0])
        add(out, "; ", "hec doctor");
    if (file[0] && brief)
        add_call(out, "report", NULL, file);
    if (s->job.findings.count)
        add(out, "; ", "hec explain %s", hec_cause_name(s->job.findings.list[0].cause));
    else if (hec_summary_used(s))
        add(out, "; ", "hec explain words");
    if (file[0] && !brief)
        add_call(out, "report", "-v", file);
    end(screen);
}

static bool grave(const struct hec_summary *s, const struct hec_event_summary *e) {
    return e->kind == HEC_EVENT_DEVICE_LOST || e->kind == HEC_EVENT_SURVIVORS || e->kind == HEC_EVENT_COUNTER_RESET ||
           e->kind == HEC_EVENT_STORE_FAILED || e->kind == HEC_EVENT_DAMAGED ||
           (e->kind == HEC_EVENT_TRACE_GUARD && strcmp(e->text, s->trace.why.text) != 0) ||
           (e->kind == HEC_EVENT_HOOKS_OUT && hec_summary_unhooked(s));
}

/* What of the trace is missing, in a few words: why stands in the row of the trace (-v). */
static void trust_trace(char *out, const struct hec_summary *s, bool tells) {
    const struct hec_trace_cost *t = &s->trace;
    bool inferred = false;
    for (int i = 0; i < s->device_count; i++)
        inferred |= s->devices[i].ledger && s->devices[i].ledger->basis == HEC_LEDGER_CALLS;
    char advice[HEC_SCREEN_TEXT];
    if (tells && trace_advice(advice, s)[0]) /* else it is what to do */
        add(out, "; ", "no trace: %s", advice);
    if (s->imported[0] || !hec_summary_used(s) || t->mode == HEC_TRACE_OFF)
        return;
    if (t->holder[0])
        add(out, "; ", "%s", hec_summary_traced(s) ? "" : "no trace: ");
    if (t->holder[0])
        add(out, "", "CUPTI was in use by %s", t->holder);
    else if (inferred)
        add(out, "; ", "kernels not seen: --trace full");
    else if (!hec_summary_traced(s) && t->processes && t->why.id)
        add(out, "; ", "no trace: %s", HEC_SAY(&t->why));
    else if (!hec_summary_traced(s) && t->processes)
        add(out, "; ", "nothing ran on the GPU while it was traced");
}

/* Of each caveat its first clause; in full they stand below. */
static void put_trust(struct hec_screen *screen, const struct hec_summary *s, bool tells) {
    char *out = begin(screen, HEC_SCREEN_TRUST), caveats[HEC_CAVEATS_MAX][160], unsteady[160] = "";
    int count = hec_summary_used(s) ? hec_caveats(s, caveats) : 0, told = 0;
    hec_unsteady_words(unsteady, s);
    for (int i = 0; i < s->event_count && !told; i++)
        if (grave(s, &s->events[i])) {
            text gpu;
            char words[HEC_SUMMARY_WORDS];
            bool of = s->events[i].device >= 0;
            add(out, "; ", "%s%s%s", of ? hec_format_gpu(gpu, s->events[i].device) : "", of ? ": " : "",
                hec_event_words(words, &s->events[i]));
            told++;
        }
    for (int i = s->steps.nonfinite ? 1 : 0; i < count; i++)
        if (strcmp(caveats[i], unsteady) != 0)
            add(out, "; ", "%.*s", (int)strcspn(caveats[i], ":"), caveats[i]);
    trust_trace(out, s, tells);
    end(screen);
}

void hec_screen_of(const struct hec_summary *s, const struct hec_report_style *style, const char *file,
                   struct hec_screen *out) {
    const struct hec_findings *all = &s->job.findings;
    const struct hec_finding *top = hec_findings_top(all);
    const struct hec_finding *first = all->count ? &all->list[0] : NULL;
    bool tells =
        top || (first && !hec_summary_failed(s) && (first->cause == HEC_CAUSE_NONE || hec_finding_tells(first)));
    char loss[160];
    out->count = 0;
    snprintf(begin(out, HEC_SCREEN_NOTE), HEC_SCREEN_TEXT, "%s", hec_loss_words(loss, s) ? loss : "");
    end(out);
    hec_found_words(begin(out, HEC_SCREEN_FOUND), HEC_SCREEN_TEXT, s);
    end(out);
    char *saves = begin(out, HEC_SCREEN_SAVES), words[HEC_SAVES_WORDS];
    if (top)
        add(saves, "", "%s", hec_saves_words(words, s, top));
    end(out);
    put_do(out, s, tells ? first : NULL);
    put_then(out, s);
    put_loop(out, s, style->utf8);
    put_outside(out, s, style->utf8);
    put_next(out, s, style->brief, file);
    put_trust(out, s, tells);
}

/* ---- on a terminal ---- */

#define LABEL_COLUMNS 13

static int lines_of(const struct hec_page *page, const struct hec_screen_row *row) {
    struct hec_buf scratch;
    struct hec_page measured = *page;
    hec_buf_init(&scratch, SIZE_MAX);
    measured.out = &scratch;
    measured.lines = 0;
    hec_page_row(&measured, 2, rows[row->id].name, HEC_TONE_PLAIN, "%s", row->text);
    hec_buf_free(&scratch);
    return measured.lines;
}

static int code_lines(const struct hec_page *page, const char *code) {
    int count = 0;
    for (; code && *code; code += strcspn(code, "\n") + 1, count++)
        if ((int)strcspn(code, "\n") > page->columns - 4) /* else `hec explain` shows it */
            return 0;
    return count;
}

static enum hec_tone tone_of(const struct hec_summary *s, enum hec_screen_id id) {
    const struct hec_findings *all = &s->job.findings;
    bool healthy = all->count && all->list[0].cause == HEC_CAUSE_NONE && !hec_summary_failed(s);
    if (id == HEC_SCREEN_FOUND)
        return healthy ? HEC_TONE_GOOD : hec_findings_top(all) ? HEC_TONE_WARN : HEC_TONE_BOLD;
    return id == HEC_SCREEN_OUTSIDE && !s->imported[0] && hec_summary_used(s) && !isfinite(s->joules) ? HEC_TONE_BAD
                                                                                                      : rows[id].tone;
}

/* Where both do not fit on a line, a program's folder gives way to its arguments. */
static void put_command(struct hec_page *page, const struct hec_summary *s) {
    const char *command = s->command[0] ? s->command : "(unknown command)";
    const char *slash = memrchr(command, '/', strcspn(command, " "));
    if (slash && strlen(command) + 16 > (size_t)page->columns)
        command = slash + 1;
    hec_page_line(page, 0, "hec", HEC_TONE_BOLD, "%s", command);
}

bool hec_screen_page(struct hec_page *page, const struct hec_summary *s, const struct hec_screen *screen, int most) {
    /* What is cut to a line first. */
    static const enum hec_screen_id order[] = {HEC_SCREEN_MORE,  HEC_SCREEN_THEN, HEC_SCREEN_OUTSIDE, HEC_SCREEN_TRUST,
                                               HEC_SCREEN_SAVES, HEC_SCREEN_LOOP, HEC_SCREEN_DO,      HEC_SCREEN_PROVE,
                                               HEC_SCREEN_NOTE,  HEC_SCREEN_FOUND};
    int lines[HEC_SCREEN_ROWS] = {0}, total = 1, code = 0;
    bool cut[HEC_SCREEN_ROWS] = {false};
    for (int i = 0; i < screen->count; i++) {
        total += lines[screen->row[i].id] = lines_of(page, &screen->row[i]);
        code += code_lines(page, screen->row[i].code);
    }
    bool with_code = code && total + code <= most;
    for (size_t k = 0; k < sizeof order / sizeof order[0] && total > most; k++) {
        cut[order[k]] = lines[order[k]] > 1;
        total -= cut[order[k]] ? lines[order[k]] - 1 : 0;
    }
    put_command(page, s);
    for (int i = 0; i < screen->count; i++) {
        const struct hec_screen_row *row = &screen->row[i];
        enum hec_tone tone = tone_of(s, row->id);
        if (cut[row->id])
            hec_page_line(page, 2, rows[row->id].name, tone, "%s", row->text);
        else
            hec_page_row(page, 2, rows[row->id].name, tone, "%s", row->text);
        if (row->code && with_code)
            hec_page_code(page, 4, row->code);
    }
    return with_code;
}

/* ---- in Markdown ---- */

void hec_screen_markdown(struct hec_buf *out, const struct hec_summary *s, const struct hec_screen *screen) {
    hec_markdown_code(out, s->command[0] ? s->command : "(unknown command)", false);
    hec_buf_puts(out, "\n\n");
    for (int i = 0; i < screen->count; i++) {
        const struct hec_screen_row *row = &screen->row[i];
        hec_buf_printf(out, "- **%s**: ", rows[row->id].name);
        if (row->id == HEC_SCREEN_PROVE || row->id == HEC_SCREEN_MORE)
            hec_markdown_code(out, row->text, false);
        else
            hec_markdown_text(out, "", row->text, "");
        hec_buf_puts(out, "\n");
        if (row->code)
            hec_buf_printf(out, "```python\n%s```\n", row->code);
    }
}
