#include "base/trace.h"
#include "report/run/terminal_device.h"
#include "report/words/facts.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SAME 0.005 /* shares that print alike */
#define SHOWN 3
#define LABEL_COLUMNS 13
#define COMMAND_COLUMNS 48 /* longer ones are not repeated */
#define CLASSES_SHOWN 4
#define CLASS_LEAST 0.05 /* of compute */

typedef char text[HEC_FORMAT_SIZE];

/* ---- the answer ---- */

static bool used(const struct hec_summary *s) {
    for (int i = 0; i < s->device_count; i++)
        if (s->devices[i].readings.used)
            return true;
    return false;
}

/* Once in a report, and only where it is true: where there was a trace, or another has its place, there is no advice. */
static const char *command_of(const struct hec_summary *s) {
    return s->command[0] && strlen(s->command) <= COMMAND_COLUMNS ? s->command : "...";
}

static void put_what_a_trace_adds(struct hec_page *page, const struct hec_summary *s) {
    const struct hec_trace_cost *t = &s->trace;
    bool tried = t->processes && t->mode != HEC_TRACE_OFF && t->why.id, simulated = s->simulated[0];
    if (hec_summary_traced(s) || s->imported[0] || (!tried && !used(s)))
        return;
    if (t->records > 0 && t->why.id)
        hec_page_row(page, 2, "kernels", HEC_TONE_PLAIN, "not recorded: %s", HEC_SAY(&t->why));
    else if (tried)
        hec_page_row(page, 2, "trace", HEC_TONE_WARN, "none: %s", HEC_SAY(&t->why));
    else if (t->holder[0])
        hec_page_row(page, 2, "trace", HEC_TONE_WARN, "none: %s had CUPTI", t->holder);
    else if (t->processes && t->mode != HEC_TRACE_OFF)
        hec_page_row(page, 2, "trace", HEC_TONE_PLAIN, "nothing ran on the GPU while it was traced");
    else
        hec_page_row(page, 2, "trace", HEC_TONE_PLAIN,
                     "none. It would add the cause, the lines of the program and the savings: "
                     "hec run %s%s%s--trace auto -- %s",
                     simulated ? "--sim " : "", s->simulated, simulated ? " " : "", command_of(s));
}

void hec_terminal_headline(struct hec_page *page, const struct hec_summary *s) {
    char headline[512];
    const struct hec_finding *first = s->job.findings.count ? &s->job.findings.list[0] : NULL;
    bool healthy = first && first->cause == HEC_CAUSE_NONE && !hec_summary_failed(s);
    enum hec_tone tone = healthy ? HEC_TONE_GOOD : hec_findings_top(&s->job.findings) ? HEC_TONE_WARN : HEC_TONE_BOLD;
    hec_headline(headline, sizeof headline, s);
    if (headline[0])
        hec_page_row(page, 2, "found", tone, "%s", headline);
    put_what_a_trace_adds(page, s);
}

void hec_terminal_loss(struct hec_page *page, const struct hec_summary *s) {
    char words[160];
    if (hec_loss_words(words, s))
        hec_page_row(page, 2, "note", HEC_TONE_BAD, "%s", words);
}

void hec_terminal_caveats(struct hec_page *page, const struct hec_summary *s) {
    char caveats[HEC_CAVEATS_MAX][160];
    int count = used(s) ? hec_caveats(s, caveats) : 0, first = s->steps.nonfinite ? 1 : 0;
    for (int i = first; i < count; i++)
        hec_page_row(page, 2, i > first ? "" : "note", HEC_TONE_PLAIN, "%s", caveats[i]);
}

/* ---- findings ---- */

static void put_saving(struct hec_page *page, const struct hec_summary *s, const struct hec_finding *f) {
    char words[HEC_SAVES_WORDS];
    if (hec_saves_words(words, s, f)[0])
        hec_page_row(page, 2, "saves", HEC_TONE_BOLD, "%s", words);
    if (hec_step_saving_words(words, f)[0])
        hec_page_row(page, 2, "a step", HEC_TONE_BOLD, "%s", words);
    if (f->rest_seconds < f->step_seconds.best - SAME && hec_rest_words(words, f->rest_seconds, f->rest_joules)[0])
        hec_page_row(page, 2, "then", HEC_TONE_PLAIN, "after the findings above: %s", words);
}

/* Of several that were replayed. */
static void put_together(struct hec_page *page, const struct hec_findings *findings) {
    char words[HEC_SAVES_WORDS];
    int replayed = 0;
    for (int i = 0; i < findings->count; i++)
        replayed += isfinite(findings->list[i].rest_seconds);
    if (replayed > 1 && hec_rest_words(words, findings->together_seconds, findings->together_joules)[0])
        hec_page_row(page, 0, "Together", HEC_TONE_BOLD, "%s, by replay with the answers to %d findings", words,
                     replayed);
    if (findings->next != HEC_CAUSE_NONE && hec_rest_words(words, findings->next_seconds, findings->next_joules)[0])
        hec_page_row(page, 0, "Then", HEC_TONE_BOLD,
                     "%s would be the limit, by replay: its answer would save another %s (hec explain %s)",
                     hec_cause_name(findings->next), words, hec_cause_name(findings->next));
}

static void put_line(struct hec_page *page, const char *label, const struct hec_finding_line *l) {
    text share;
    char place[256];
    hec_format_share(share, l->share);
    hec_place_words(place, sizeof place, l->file, l->line, l->function,
                    page->columns - LABEL_COLUMNS - (int)strlen(share) - 6);
    hec_page_line(page, 2, label, HEC_TONE_PLAIN, "%s (%s)", place, share);
}

static void put_lever(struct hec_page *page, const struct hec_finding *f) {
    char lever[HEC_FACT_SIZE];
    hec_page_row(page, 2, "lever", HEC_TONE_PLAIN, "%s", hec_lever_words(lever, f));
}

static int widest(const char *code) {
    int most = 0;
    while (*code) {
        int length = (int)strcspn(code, "\n");
        most = length > most ? length : most;
        code += length + (code[length] == '\n');
    }
    return most;
}

static void put_advice(struct hec_page *page, const struct hec_summary *s, const struct hec_finding *f) {
    const char *code = hec_finding_code(s, f);
    put_lever(page, f);
    if (!code)
        return;
    int wide = widest(code);
    if (wide <= page->columns - 4) /* else `hec explain` shows it */
        hec_page_code(page, wide <= page->columns - LABEL_COLUMNS - 2 ? LABEL_COLUMNS + 2 : 4, code);
}

/* What is not worth acting on gets its title, unless all is asked for. */
static void put_finding(struct hec_page *page, const struct hec_summary *s, const struct hec_finding *f, int number,
                        bool whole, uint64_t chapters) {
    char label[24], saves[128] = "", words[HEC_FACT_SIZE], devices[HEC_DEVICES_WORDS];
    text saving;
    enum hec_tone tone = f->cause == HEC_CAUSE_NONE ? HEC_TONE_GOOD : f->actionable ? HEC_TONE_WARN : HEC_TONE_PLAIN;
    snprintf(label, sizeof label, "%s%d", number == 1 ? "Findings  " : "          ", number);
    if (!whole && hec_saving_words(saving, f)[0])
        snprintf(saves, sizeof saves, ": %s", saving);
    hec_page_row(page, 0, label, tone, "%s%s (confidence %.2f)%s", hec_finding_devices_words(devices, s, f, chapters),
                 hec_title_words(words, f), f->confidence, saves);
    if (!whole)
        return;
    put_saving(page, s, f);
    for (int i = 0; i < f->evidence_count; i++)
        hec_page_row(page, 2, i ? "" : "because", HEC_TONE_PLAIN, "- %s",
                     hec_evidence_words(words, f, &f->evidence[i]));
    for (int i = 0; i < f->line_count; i++)
        put_line(page, i ? "" : "line", &f->lines[i]);
    put_advice(page, s, f);
}

/* It would print as "0 % (0 to 0)". */
static bool saves_nothing(const struct hec_finding *f) {
    const struct hec_saving *s = isfinite(f->joules.best) ? &f->joules : &f->seconds;
    return f->cause != HEC_CAUSE_NONE && isfinite(s->high) && s->high < 0.005;
}

void hec_terminal_findings(struct hec_page *page, const struct hec_summary *s, uint64_t chapters, bool all) {
    const struct hec_findings *findings = &s->job.findings;
    int shown = 0, more = 0;
    for (int i = 0; i < findings->count; i++) {
        const struct hec_finding *f = &findings->list[i];
        if (f->cause == HEC_CAUSE_NONE && i && hec_findings_top(findings)) /* busy, yet something is worth fixing */
            continue;
        if (hec_finding_stands_for(findings, f, chapters))
            continue;
        if (!all && (shown == SHOWN || (shown && saves_nothing(f)))) {
            more++;
            continue;
        }
        if (!shown)
            hec_page_blank(page);
        put_finding(page, s, f, ++shown, all || f->actionable || f->cause == HEC_CAUSE_NONE || hec_finding_tells(f),
                    chapters);
    }
    if (more)
        hec_page_row(page, 0, "", HEC_TONE_DIM, "and %d more (hec report -v shows all, and all of each)", more);
    put_together(page, findings);
}

/* ---- what stands above them ---- */

void hec_terminal_scale_out(struct hec_page *page, const struct hec_findings *findings) {
    static const char *const words[] = {"unknown", "optimise first", "yes"};
    const struct hec_scale_out *s = &findings->scale_out;
    char why[HEC_FACT_SIZE];
    if (s->verdict == HEC_SCALE_UNKNOWN)
        return;
    hec_page_blank(page);
    hec_page_row(page, 0, "Scale out?", s->verdict == HEC_SCALE_OUT ? HEC_TONE_GOOD : HEC_TONE_BOLD, "%s: %s",
                 words[s->verdict], hec_scale_words(why, s));
}

void hec_terminal_latency(struct hec_page *page, const struct hec_latency *l) {
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"compute", l->compute_s},
                 {"memory", l->memory_s},
                 {"batching", l->batching_s},
                 {"transport", l->transport_s},
                 {"the program", l->host_s}};
    char line[512] = "";
    text seconds, share;
    if (!l->valid)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].seconds > 0)
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s %s (%s)", line[0] ? ", " : "",
                     parts[i].name, hec_format_seconds(seconds, parts[i].seconds),
                     hec_format_share(share, parts[i].seconds / l->total_s));
    hec_page_blank(page);
    hec_page_row(page, 0, "Latency", HEC_TONE_PLAIN, "%s a call: %s", hec_format_seconds(seconds, l->total_s), line);
}

/* ---- kinds of kernels ---- */

static const char *limit_words(enum hec_roofline_limit limit) {
    static const char *const words[HEC_LIMITS] = {"", ", limited by arithmetic", ", limited by memory",
                                                  ", leaves the device underfilled", ", limited by latency"};
    return (unsigned)limit < HEC_LIMITS ? words[limit] : "";
}

void hec_terminal_classes(struct hec_page *page, const struct hec_device_diagnosis *device) {
    const struct hec_ledger_device *d = device->ledger;
    const struct hec_class_profile *profile = hec_profile_of(device);
    char line[640] = "";
    double last = INFINITY;
    if (!d || !d->rows[HEC_STATE_COMPUTE].ns)
        return;
    for (int shown = 0; shown < CLASSES_SHOWN; shown++) {
        int best = -1;
        for (int c = 0; c < HEC_KERNEL_CLASS_COUNT; c++)
            if ((double)d->classes[c].ns < last && (best < 0 || d->classes[c].ns > d->classes[best].ns))
                best = c;
        double share = best < 0 ? 0 : (double)d->classes[best].ns / (double)d->rows[HEC_STATE_COMPUTE].ns;
        if (share < CLASS_LEAST)
            break;
        text part, watts = "";
        if (isfinite(d->classes[best].watts))
            snprintf(watts, sizeof watts, " at %.0f W", d->classes[best].watts);
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s %s%s%s", line[0] ? "; " : "",
                 hec_kernel_class_name((enum hec_kernel_class)best), hec_format_share(part, share), watts,
                 profile && profile->has_counters ? limit_words(profile->class[best].point.limit) : "");
        last = (double)d->classes[best].ns;
    }
    if (line[0])
        hec_page_row(page, 4, "compute", HEC_TONE_PLAIN, "%s", line);
}

/* ---- what to type next ---- */

#define COMMAND_LONGEST 160
#define NEXT_COLUMNS 26 /* longer commands stand alone */

struct next {
    struct hec_page *page;
    bool brief;
    int shown;
};

/* A command alone can be copied with its line; what it is for stands beside short ones. */
static void put_next(struct next *n, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_next(struct next *n, const char *what, const char *format, ...) {
    char command[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    bool alone = n->brief || strlen(command) > NEXT_COLUMNS;
    hec_page_row(n->page, n->brief ? 2 : 0,
                 n->shown++ ? ""
                 : n->brief ? "next"
                            : "Next",
                 HEC_TONE_PLAIN, "%-*s%s%s", alone ? 0 : NEXT_COLUMNS, command, alone ? "" : "  ", alone ? "" : what);
}

void hec_terminal_next(struct hec_page *page, const struct hec_summary *s, bool brief) {
    const struct hec_finding *top = hec_findings_top(&s->job.findings);
    struct next n = {page, brief, 0};
    if (brief && s->file[0])
        put_next(&n, "", "hec report %s", s->file);
    if (!s->device_count && !s->imported[0])
        put_next(&n, "what can be measured here, and how", "hec doctor");
    if (top)
        put_next(&n, "its meaning, its signs, its answers", "hec explain %s", hec_cause_name(top->cause));
    if (top && s->command[0] && !s->imported[0])
        put_next(&n, "what saves joules here, with proof", "hec try %s%s%s-- %s", s->simulated[0] ? "--sim " : "",
                 s->simulated, s->simulated[0] ? " " : "",
                 strlen(s->command) <= COMMAND_LONGEST ? s->command : "COMMAND");
    if (!brief && used(s))
        put_next(&n, "busy, host, SM active: in words", "hec explain words");
}

/* ---- the end of `hec run` ---- */

void hec_terminal_brief_finding(struct hec_page *page, const struct hec_summary *s) {
    const struct hec_finding *f = hec_findings_top(&s->job.findings);
    if (!f)
        return;
    if (f->line_count)
        put_line(page, "line", &f->lines[0]);
    put_lever(page, f);
}
