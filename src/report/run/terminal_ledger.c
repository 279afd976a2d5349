/* The ledger in the report for people: where the time (and joules) of a device went, and which lines held it up. */
#include "report/run/terminal_device.h"
#include "report/words/findings.h"
#include "report/words/reasons.h"
#include "report/words/results.h"
#include "report/format.h"
#include "report/words/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BAR_COLUMNS 12
#define MEANING_COLUMNS 110 /* from this width on each state says what it means */
#define FIGURES_COLUMNS 53  /* in front of that */
#define LEAST_SHARE 0.0005  /* a row below prints as 0.0 % */
#define LINES_SHOWN 3
#define LINES_SHOWN_ALL 8
#define LINES_LEAST 0.005 /* of the device's time */
#define MODULES_SHOWN 2
#define MODULES_SHOWN_ALL 5
#define MODULES_LEAST 0.02 /* of the kernels */
#define LABEL_COLUMNS 13
#define LINE_COLUMNS 25 /* in front of a line's place, and the room that hec_page_line keeps */

typedef char text[HEC_FORMAT_SIZE];

static void put_title(struct hec_page *page, const struct hec_ledger_device *d, const char *device) {
    text whole, joules;
    bool known = isfinite(d->joules);
    hec_format_seconds(whole, (double)d->window_ns / 1e9);
    hec_page_row(page, 0, "Ledger", HEC_TONE_BOLD, "time %sof %s: %s%s%s", known ? "and joules " : "", device, whole,
                 known ? ", " : "", known ? hec_format_si(joules, d->joules, 4, "J") : "");
}

static void bar_of(char *bar, const struct hec_page *page, double share) {
    int filled = (int)lround(share * BAR_COLUMNS);
    bar[0] = '\0';
    for (int i = 0; i < BAR_COLUMNS; i++)
        strcat(bar, i < filled ? page->utf8 ? "\u2588" : "#" : page->utf8 ? "\u00b7" : ".");
}

/* On a wide page each state says what it means; on others `hec explain words` does. */
static void put_with_meaning(struct hec_page *page, const char *label, enum hec_tone tone, const char *line,
                             const char *meaning) {
    int columns = 0;
    for (const char *c = line; *c; c++)
        columns += ((unsigned char)*c & 0xc0) != 0x80;
    if (page->columns < MEANING_COLUMNS)
        meaning = "";
    int gap = meaning[0] && columns < FIGURES_COLUMNS ? FIGURES_COLUMNS - columns : 0;
    hec_page_line(page, 2, label, tone, "%s%*s%s%s", line, gap, "", meaning[0] ? "  " : "", meaning);
}

static void put_row(struct hec_page *page, enum hec_state state, const struct hec_ledger_row *r, double share) {
    text seconds, part, joules, watts;
    char bar[4 * BAR_COLUMNS + 1], energy[128] = "", line[384];
    bar_of(bar, page, share);
    if (isfinite(r->joules)) {
        int digits = (int)strcspn(hec_state_watts_words(watts, r, page->utf8), " ");
        snprintf(energy, sizeof energy, " %9s  %*s%s", hec_format_si(joules, r->joules, 3, "J"),
                 digits < 4 ? 4 - digits : 0, "", watts);
    }
    snprintf(line, sizeof line, "%s %8s %6s%s", bar, hec_format_si(seconds, r->seconds, 3, "s"),
             hec_format_share(part, share), energy);
    put_with_meaning(page, hec_state_name(state), HEC_TONE_PLAIN, line, hec_state_meaning(state));
}

static void put_headings(struct hec_page *page, bool joules) {
    char line[128];
    snprintf(line, sizeof line, "%*s %8s %6s%s", BAR_COLUMNS, "", "time", "share",
             joules ? "    energy    mean power" : "");
    put_with_meaning(page, "", HEC_TONE_DIM, line, "meaning");
}

static void put_lines(struct hec_page *page, const struct hec_source_lines *source, const struct hec_ledger_device *d) {
    /* The lines of all idle states, largest first: few, so by repeated search. */
    double last = INFINITY, least = LINES_LEAST * (double)d->window_ns / 1e9;
    int last_at = -1;
    for (int shown = 0; shown < (page->all ? LINES_SHOWN_ALL : LINES_SHOWN); shown++) {
        int best = -1;
        for (int i = 0; i < source->count; i++) {
            const struct hec_source_line *l = &source->lines[i];
            bool later = l->seconds < last || (l->seconds == last && i > last_at);
            if (later && l->seconds >= least && (best < 0 || l->seconds > source->lines[best].seconds))
                best = i;
        }
        if (best < 0)
            return;
        const struct hec_source_line *l = &source->lines[best];
        text seconds, joules;
        char place[512];
        hec_place_words(place, sizeof place, l->file, l->line, l->function,
                        page->columns - LABEL_COLUMNS - LINE_COLUMNS);
        if (!shown)
            hec_page_line(page, 2, "", HEC_TONE_DIM, "%9s %9s  %s", "time", isfinite(l->joules) ? "energy" : "",
                          "idle at these lines of the program");
        hec_page_line(page, 2, hec_state_name(l->state), HEC_TONE_PLAIN, "%9s %9s  %s",
                      hec_format_si(seconds, l->seconds, 3, "s"),
                      isfinite(l->joules) ? hec_format_si(joules, l->joules, 3, "J") : "", place);
        last = l->seconds;
        last_at = best;
    }
}

void hec_terminal_lines(struct hec_page *page, const struct hec_summary *summary) {
    for (int i = 0; i < summary->device_count; i++)
        if (summary->devices[i].ledger)
            return; /* which has them by what the device did */
    for (int i = 0; i < summary->lines.count && i < LINES_SHOWN; i++) {
        const struct hec_source_line *l = &summary->lines.lines[i];
        char place[512];
        text share;
        hec_place_words(place, sizeof place, l->file, l->line, l->function,
                        page->columns - LABEL_COLUMNS - LINE_COLUMNS);
        if (!i) {
            hec_page_blank(page);
            hec_page_line(page, 0, "Program", HEC_TONE_DIM, "%9s  %s", "time", "its main thread is at these lines");
        }
        hec_page_line(page, 2, "", HEC_TONE_PLAIN, "%9s  %s", hec_format_share(share, l->share), place);
    }
}

static void put_modules(struct hec_page *page, const struct hec_source_modules *modules) {
    int shown = 0;
    for (int i = 0; i < modules->count && shown < (page->all ? MODULES_SHOWN_ALL : MODULES_SHOWN); i++) {
        const struct hec_source_module *m = &modules->modules[i];
        text share, seconds;
        char name[sizeof m->name];
        if (m->share < MODULES_LEAST)
            continue;
        hec_format_clean(name, sizeof name, m->name, false);
        if (!shown++)
            hec_page_line(page, 2, "", HEC_TONE_DIM, "%9s %9s  %s", "time", "share", "kernels launched by");
        hec_page_line(page, 2, "compute", HEC_TONE_PLAIN, "%9s %9s  %.*s", hec_format_si(seconds, m->seconds, 3, "s"),
                      hec_format_share(share, m->share), page->columns - LABEL_COLUMNS - LINE_COLUMNS, name);
    }
}

void hec_terminal_ledger(struct hec_page *page, const struct hec_summary *summary,
                         const struct hec_device_diagnosis *device) {
    text name;
    const struct hec_ledger_device *d = device->ledger;
    if (!d || !d->window_ns)
        return;
    hec_page_blank(page);
    put_title(page, d, hec_device_word(name, summary, d->device));
    put_headings(page, isfinite(d->joules));
    for (int i = 0; i < HEC_STATE_COUNT; i++) {
        double share = (double)d->rows[i].ns / (double)d->window_ns;
        if (share >= LEAST_SHARE)
            put_row(page, (enum hec_state)i, &d->rows[i], share);
    }
    if (d->basis != HEC_LEDGER_MEASURED)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "seconds by %s", hec_ledger_basis_text(d->basis));
    if (d->waiting_likely)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "waiting: likely, by calls, stacks and telemetry");
    if (device->readings.others == HEC_OTHERS_BUSY &&
        (double)d->rows[HEC_STATE_UNKNOWN].ns >= LEAST_SHARE * (double)d->window_ns)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "unknown: launched, and mostly waiting for the others' turns");
    if (d->basis == HEC_LEDGER_CALLS && page->all) /* the first screen says so */
        hec_page_row(page, 2, "", HEC_TONE_DIM, "kernels were not seen: --trace=full shows them");
    if (device->watts->why.id)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "no joules: %s", HEC_SAY(&device->watts->why));
    const struct hec_reason *how = &device->watts->how;
    if (how->id && !hec_reason_measured(how) && page->all) /* each row has its bound */
        hec_page_row(page, 2, "", HEC_TONE_DIM, "watts %s", HEC_SAY(how));
    put_lines(page, &device->source, d);
    put_modules(page, &device->modules);
}
