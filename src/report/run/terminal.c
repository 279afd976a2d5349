/* The report for people: the answer first, then what supports it. */
#include "report/words/results.h"
#include "report/words/screen.h"
#include "report/page.h"
#include "report/run/report.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"
#include "report/words/summary.h"
#include "report/run/parallelism.h"
#include "report/run/ranks.h"
#include "report/run/terminal_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVENTS_SHOWN 4
#define EVENTS_SHOWN_ALL 10
#define PHASES_SHOWN 3
#define HOST_BUSY 0.5 /* of its cores: worth a line */
#define PHASES_SHOWN_ALL 8

typedef char text[HEC_FORMAT_SIZE];

/* ---- what it took ---- */

static void put_energy(struct hec_page *page, const struct hec_summary *s) {
    static const enum hec_tone tones[] = {
        [HEC_ENERGY_KNOWN] = HEC_TONE_BOLD, [HEC_ENERGY_ABSENT] = HEC_TONE_WARN, [HEC_ENERGY_INVALID] = HEC_TONE_BAD};
    char words[HEC_SUMMARY_WORDS];
    enum hec_energy_known known = hec_energy_words(words, s, page->utf8);
    hec_page_row(page, 2, "energy", tones[known], "%s", words);
}

static void put_units(struct hec_page *page, const struct hec_summary *s, int most) {
    char words[HEC_SUMMARY_WORDS];
    for (int i = 0; i < s->unit_count && i < most; i++)
        if (!s->units[i].is_default)
            hec_page_row(page, 2, i ? "" : "work", HEC_TONE_PLAIN, "%s",
                         hec_unit_words(words, s, &s->units[i], page->utf8));
}

/* By prices that nobody chose it says no more than the joules. */
static void put_cost(struct hec_page *page, const struct hec_summary *s) {
    char words[HEC_SUMMARY_WORDS];
    bool chosen = !s->price.dollars_default || !s->price.carbon_default || s->price.dollars_per_gpu_hour > 0;
    if ((page->all || chosen) && hec_cost_words(words, s)[0])
        hec_page_row(page, 2, "cost", HEC_TONE_PLAIN, "%s", words);
}

/* ---- host, phases, events, HEC ---- */

/* Whether each lever took effect: first of all after what the run took, for it says what was run. */
static void put_levers(struct hec_page *page, const struct hec_summary *s) {
    char words[HEC_SUMMARY_WORDS];
    for (int i = 0; i < s->lever_count; i++) {
        bool took = hec_lever_took_words(words, &s->levers[i]);
        hec_page_row(page, 2, i ? "" : "levers", took ? HEC_TONE_PLAIN : HEC_TONE_WARN, "%s", words);
    }
}

/* What the program read, and what was set and is not taken. */
static void put_knobs(struct hec_page *page, const struct hec_summary *s) {
    char words[HEC_SUMMARY_WORDS];
    if (hec_knobs_words(words, s)[0])
        hec_page_row(page, 2, "knobs", HEC_TONE_PLAIN, "%s", words);
    for (int i = 0; i < s->event_count; i++)
        if (s->events[i].kind == HEC_EVENT_KNOB_REFUSED)
            hec_page_row(page, 2, "", HEC_TONE_WARN, "%s", hec_event_words(words, &s->events[i]));
}

/* What --when waited for. */
static void put_waited(struct hec_page *page, const struct hec_summary *s) {
    char words[HEC_SUMMARY_WORDS];
    for (int i = 0; i < s->event_count; i++)
        if (s->events[i].kind == HEC_EVENT_WHEN)
            hec_page_row(page, 0, "When", HEC_TONE_PLAIN, "%s", hec_event_words(words, &s->events[i]));
}

/* The last of what --tune says. */
static void put_tuned(struct hec_page *page, const struct hec_summary *s) {
    const struct hec_event_summary *last = NULL;
    char words[HEC_SUMMARY_WORDS];
    for (int i = 0; i < s->event_count; i++)
        if (s->events[i].kind == HEC_EVENT_TUNE)
            last = &s->events[i];
    if (last)
        hec_page_row(page, 0, "Tuned", HEC_TONE_PLAIN, "%s", hec_event_words(words, last));
}

static void put_host(struct hec_page *page, const struct hec_summary *s) {
    const struct hec_host_summary *h = &s->host;
    text busy, memory, read, written, cpu, dram;
    if (page->all ||
        hec_summary_used(s) == s->device_count) /* else the rows of the unused devices stand apart already */
        hec_page_blank(page);
    char row[64] = "";
    if (h->cores_usable > 0 && h->cores_usable < h->cores)
        snprintf(row, sizeof row, "%d of %d cores usable", h->cores_usable, h->cores);
    else if (h->cores > 0)
        snprintf(row, sizeof row, "%d core%s", h->cores, h->cores == 1 ? "" : "s");
    if (isfinite(h->cpu_busy))
        snprintf(row + strlen(row), sizeof row - strlen(row), "%sCPU utilisation %.10s", row[0] ? ", " : "",
                 hec_format_share(busy, h->cpu_busy));
    if (page->all || !(h->cpu_busy < HOST_BUSY)) /* else it says nothing */
        hec_page_row(page, 0, "Host", HEC_TONE_PLAIN, "%s", row[0] ? row : "not recorded");
    if (isfinite(h->tree_cpu_seconds) && page->all)
        hec_page_row(page, 2, "command", HEC_TONE_PLAIN, "%.2f CPU seconds (%.2f cores), %s memory, read %s, wrote %s",
                     h->tree_cpu_seconds, h->tree_cores, hec_format_bytes(memory, h->rss_max_bytes, ""),
                     hec_format_bytes(read, h->read_bytes, ""), hec_format_bytes(written, h->written_bytes, ""));
    if (isfinite(h->package_joules))
        hec_page_row(page, 2, "CPU energy", HEC_TONE_PLAIN, "packages %s, DRAM %s%s",
                     hec_format_si(cpu, h->package_joules, 4, "J"),
                     isfinite(h->dram_joules) ? hec_format_si(dram, h->dram_joules, 4, "J") : "unavailable: ",
                     isfinite(h->dram_joules) ? "" : HEC_SAY(&h->dram_why));
    else if (page->all)
        hec_page_row(page, 2, "CPU energy", HEC_TONE_PLAIN, "unavailable: %s", HEC_SAY(&h->package_why));
}

static void put_phases(struct hec_page *page, const struct hec_summary *s) {
    int most = page->all ? PHASES_SHOWN_ALL : PHASES_SHOWN;
    for (int i = 0; i < s->phase_count && i < most; i++) {
        const struct hec_phase_summary *p = &s->phases[i];
        text seconds, share, joules = "";
        if (isfinite(p->joules))
            hec_format_bounded(joules, p->joules, p->bound_joules, "J", page->utf8);
        else if (p->energy != HEC_PHASE_ENERGY_KNOWN && isfinite(s->joules))
            snprintf(joules, sizeof joules, "energy unknown%s%.76s", page->all ? ": " : "",
                     page->all ? hec_phase_energy_text(p->energy) : "");
        hec_page_row(page, 0, i ? "" : "Phases", HEC_TONE_PLAIN, "%s: %s (%s), %lld time%s%s%s", p->name,
                     hec_format_seconds(seconds, p->seconds), hec_format_share(share, p->seconds / s->seconds),
                     (long long)p->count, p->count == 1 ? "" : "s", joules[0] ? ", " : "", joules);
    }
    if (s->phase_count > most)
        hec_page_row(page, 0, "", HEC_TONE_DIM, "and %d more (--json shows them)", s->phase_count - most);
}

/* Knobs, what was waited for, unavailable sources that have their own row, and why there is no trace, are no events for people. */
static bool shown_elsewhere(const struct hec_summary *s, const struct hec_event_summary *event) {
    if (event->kind == HEC_EVENT_KNOB || event->kind == HEC_EVENT_KNOB_RANGE || event->kind == HEC_EVENT_KNOB_REFUSED ||
        event->kind == HEC_EVENT_WHEN)
        return true;
    if (event->kind == HEC_EVENT_TRACE_GUARD)
        return strcmp(event->text, s->trace.why.text) == 0;
    return event->kind == HEC_EVENT_SOURCE_UNAVAILABLE &&
           (hec_vendor_event(event->text) || strncmp(event->text, "rapl:", 5) == 0);
}

static void put_events(struct hec_page *page, const struct hec_summary *s) {
    int shown = 0, more = s->events_omitted;
    for (int i = 0; i < s->event_count; i++) {
        const struct hec_event_summary *e = &s->events[i];
        char gpu[HEC_FORMAT_SIZE], where[HEC_FORMAT_SIZE + 2] = "", name[32], words[HEC_SUMMARY_WORDS];
        if (shown_elsewhere(s, e) || ((e->kind == HEC_EVENT_NOTE || e->kind == HEC_EVENT_TUNE) && !page->all))
            continue;
        if (shown == (page->all ? EVENTS_SHOWN_ALL : EVENTS_SHOWN)) {
            more++;
            continue;
        }
        if (e->device >= 0)
            snprintf(where, sizeof where, "%s, ", hec_format_gpu(gpu, e->device));
        snprintf(name, sizeof name, "%s", hec_event_name(e->kind));
        for (char *c = name; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        hec_page_row(page, 0, shown ? "" : "Events", e->kind == HEC_EVENT_DEVICE_LOST ? HEC_TONE_BAD : HEC_TONE_PLAIN,
                     "%.2f s: %s%s: %s", e->t_s, where, name, hec_event_words(words, e));
        shown++;
    }
    if (more)
        hec_page_row(page, 0, shown ? "" : "Events", HEC_TONE_DIM, "and %d more (--json shows up to %d)", more,
                     HEC_SUMMARY_EVENTS_MAX);
}

static void put_self(struct hec_page *page, const struct hec_summary *s, bool brief) {
    const struct hec_self_summary *h = &s->self;
    text share, memory, file, start, joules;
    char line[1024] = "";
    if (isfinite(h->cpu_seconds))
        snprintf(line, sizeof line, "%.3g CPU seconds (%s of a core)", h->cpu_seconds,
                 hec_format_share(share, h->cpu_share));
    else
        snprintf(line, sizeof line, "CPU time unknown");
    if (isfinite(h->rss_max_bytes) && page->all)
        snprintf(line + strlen(line), sizeof line - strlen(line), ", %s memory",
                 hec_format_bytes(memory, h->rss_max_bytes, ""));
    if (isfinite(h->start_seconds) && page->all)
        snprintf(line + strlen(line), sizeof line - strlen(line), ", %s to start",
                 hec_format_seconds(start, h->start_seconds));
    if (isfinite(h->joules))
        snprintf(line + strlen(line), sizeof line - strlen(line), ", about %s",
                 hec_format_si(joules, h->joules, 2, "J"));
    if (s->file[0] && (brief || page->all))
        snprintf(line + strlen(line), sizeof line - strlen(line), "; %s (%s)", s->file,
                 hec_format_bytes(file, h->file_bytes, ""));
    hec_page_row(page, brief ? 2 : 0, brief ? "hec's cost" : "HEC", HEC_TONE_DIM, "%s", line);
}

/* The first screen, whether levers took effect, HEC's cost. */
static void put_brief(struct hec_page *page, const struct hec_summary *s, const struct hec_screen *screen) {
    hec_screen_page(page, s, screen, HEC_SCREEN_LINES - 1);
    put_levers(page, s);
    put_knobs(page, s);
    put_waited(page, s);
    put_tuned(page, s);
    put_self(page, s, true);
}

/* What it took in all, and what limits what was found. */
static void put_run(struct hec_page *page, const struct hec_summary *s) {
    char words[HEC_SUMMARY_WORDS];
    hec_page_blank(page);
    hec_page_row(page, 0, "Run", HEC_TONE_PLAIN, "%s", hec_outcome_words(words, s));
    put_energy(page, s);
    put_units(page, s, HEC_SUMMARY_UNITS_MAX);
    for (int i = 0; i < s->printed_count; i++)
        hec_page_row(page, 2, i ? "" : "printed", HEC_TONE_PLAIN, "%s",
                     hec_printed_words(words, s, &s->printed[i], page->utf8));
    put_cost(page, s);
    put_levers(page, s);
    put_knobs(page, s);
    put_waited(page, s);
    put_tuned(page, s);
    hec_terminal_caveats(page, s);
}

int hec_report_terminal(const struct hec_summary *summary, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    struct hec_screen screen;
    hec_count_devices(summary);
    hec_page_init(&page, style, out);
    hec_screen_of(summary, style, summary->file, &screen);
    if (style->brief) {
        put_brief(&page, summary, &screen);
        return hec_buf_error(out);
    }
    bool code_shown = hec_screen_page(&page, summary, &screen, HEC_SCREEN_LINES);
    put_run(&page, summary);
    uint64_t chapters = hec_terminal_chapters(summary, style->all);
    hec_terminal_gpus(&page, summary);
    hec_terminal_ranks(&page, summary);
    hec_terminal_parallelism(&page, summary);
    for (int i = 0; i < summary->device_count; i++)
        if (chapters & hec_device_bit(summary->devices[i].readings.device.index))
            hec_terminal_ledger(&page, summary, &summary->devices[i]);
    hec_terminal_lines(&page, summary);
    hec_terminal_findings(&page, summary, chapters, code_shown);
    hec_terminal_scale_out(&page, &summary->job.findings);
    hec_terminal_latency(&page, &summary->job.findings.latency);
    hec_terminal_steps(&page, summary);
    for (int i = 0; i < summary->device_count; i++)
        if (chapters & hec_device_bit(summary->devices[i].readings.device.index))
            hec_terminal_device(&page, summary, &summary->devices[i]);
    hec_terminal_kernels(&page, summary, chapters);
    if (hec_summary_used(summary) < summary->device_count)
        hec_page_blank(&page);
    hec_terminal_unused(&page, summary);
    if (!summary->imported[0])
        put_host(&page, summary);
    put_phases(&page, summary);
    put_events(&page, summary);
    hec_terminal_trace(&page, summary);
    put_self(&page, summary, false);
    return hec_buf_error(out);
}
