#include "report/run/terminal_device.h"
#include "report/words/facts.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAME 0.005 /* shares that print alike */
#define SHOWN 3
#define EVIDENCE_SHOWN 3
#define LINES_SHOWN 2
#define LABEL_COLUMNS 13
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

void hec_terminal_caveats(struct hec_page *page, const struct hec_summary *s) {
    char caveats[HEC_CAVEATS_MAX][160];
    int count = used(s) ? hec_caveats(s, caveats) : 0, first = s->steps.nonfinite ? 1 : 0;
    for (int i = first; i < count; i++)
        hec_page_row(page, 2, i > first ? "" : "note", HEC_TONE_PLAIN, "%s", caveats[i]);
}

/* ---- findings ---- */

static void put_saving(struct hec_page *page, const struct hec_summary *s, const struct hec_finding *f) {
    char words[HEC_SAVES_WORDS];
    if (page->all && hec_saves_words(words, s, f)[0])
        hec_page_row(page, 2, "saves", HEC_TONE_BOLD, "%s", words);
    if (page->all && hec_step_saving_words(words, f)[0])
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
                     "%s would be the limit, by replay: its answer saves another %s (hec explain %s)",
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

static void put_code(struct hec_page *page, const struct hec_summary *s, const struct hec_finding *f) {
    const char *code = f->actionable ? hec_finding_code(s, f) : NULL;
    int wide = code ? widest(code) : 0;
    if (code && wide <= page->columns - 4) /* else `hec explain` shows it */
        hec_page_code(page, wide <= page->columns - LABEL_COLUMNS - 2 ? LABEL_COLUMNS + 2 : 4, code);
}

/* Its title; what it rests on, where the first screen has the rest; all of it. */
enum much { TITLE, BASIS, WHOLE };

static void put_finding(struct hec_page *page, const struct hec_summary *s, const struct hec_finding *f, int number,
                        enum much much, uint64_t chapters) {
    char label[24], saves[HEC_SAVES_WORDS] = "", words[HEC_FACT_SIZE], devices[HEC_DEVICES_WORDS];
    text saving, speed;
    enum hec_tone tone = f->cause == HEC_CAUSE_NONE ? HEC_TONE_GOOD : f->actionable ? HEC_TONE_WARN : HEC_TONE_PLAIN;
    snprintf(label, sizeof label, "%s%d", number == 1 ? "Findings  " : "          ", number);
    if (much == TITLE && hec_saving_words(saving, f)[0])
        snprintf(saves, sizeof saves, ": %s%s%s", saving, hec_speed_words(speed, s, f)[0] ? "; " : "", speed);
    hec_page_row(page, 0, label, tone, "%s%s (confidence %.2f)%s", hec_finding_devices_words(devices, s, f, chapters),
                 hec_title_words(words, f), f->confidence, saves);
    if (much == TITLE)
        return;
    put_saving(page, s, f);
    for (int i = 0; i < f->evidence_count && (page->all || i < EVIDENCE_SHOWN); i++)
        hec_page_row(page, 2, i ? "" : "because", HEC_TONE_PLAIN, "- %s",
                     hec_evidence_words(words, f, &f->evidence[i]));
    for (int i = 0; i < f->line_count && (page->all || i < LINES_SHOWN); i++)
        put_line(page, i ? "" : "line", &f->lines[i]);
    if (much == WHOLE) {
        put_lever(page, f);
        put_code(page, s, f);
    }
}

/* It would print as "0 % (0 to 0)". */
static bool saves_nothing(const struct hec_finding *f) {
    const struct hec_saving *s = isfinite(f->joules.best) ? &f->joules : &f->seconds;
    return f->cause != HEC_CAUSE_NONE && isfinite(s->high) && s->high < 0.005;
}

void hec_terminal_findings(struct hec_page *page, const struct hec_summary *s, uint64_t chapters, bool code_shown) {
    const struct hec_findings *findings = &s->job.findings;
    int shown = 0, more = 0;
    for (int i = 0; i < findings->count; i++) {
        const struct hec_finding *f = &findings->list[i];
        if (f->cause == HEC_CAUSE_NONE && i && hec_findings_top(findings)) /* busy, yet something is worth fixing */
            continue;
        if (hec_finding_stands_for(findings, f, chapters))
            continue;
        if (!page->all && (shown == SHOWN || (shown && saves_nothing(f)))) {
            more++;
            continue;
        }
        if (!shown)
            hec_page_blank(page);
        bool first = !shown && (f->actionable || f->cause == HEC_CAUSE_NONE || hec_finding_tells(f));
        put_finding(page, s, f, ++shown, page->all ? WHOLE : first ? BASIS : TITLE, chapters);
        if (first && !page->all && !code_shown)
            put_code(page, s, f);
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
    if (page->all)
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
