/* A sweep for people: what is recommended, then every setting. */
#include "report/page.h"
#include "report/receipt/words.h"
#include "report/sweep/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char text[HEC_FORMAT_SIZE];
typedef char line_text[HEC_SWEEP_LINE];

#define LINES_SHOWN 6 /* of a grid; all are in the JSON */

static void put_advice(struct hec_page *page, const struct hec_sweep_report *r) {
    line_text line;
    enum hec_tone tone = r->result.recommended < 0 || r->result.kept ? HEC_TONE_BOLD : HEC_TONE_GOOD;
    hec_page_row(page, 2, "advice", tone, "%s", hec_sweep_advice(line, r));
    for (int i = 0; i < r->result.lines && i < LINES_SHOWN; i++)
        hec_page_row(page, 2, i ? "" : "plateau", HEC_TONE_PLAIN, "%s", hec_sweep_plateau(line, r, &r->result.line[i]));
    for (int i = 0, put = 0; i < r->result.lines && put < LINES_SHOWN; i++)
        if (r->result.line[i].cliff || r->result.lines == 1)
            hec_page_row(page, 2, put++ ? "" : "cliff", HEC_TONE_PLAIN, "%s",
                         hec_sweep_cliff(line, r, &r->result.line[i]));
    if (r->result.lines > LINES_SHOWN)
        hec_page_row(page, 2, "", HEC_TONE_DIM, "%d lines more are in --json", r->result.lines - LINES_SHOWN);
    char notes[HEC_SWEEP_NOTES][HEC_SWEEP_LINE];
    int count = hec_sweep_notes(r, notes);
    for (int i = 0; i < count; i++)
        hec_page_row(page, 2, i ? "" : "note", HEC_TONE_WARN, "%s", notes[i]);
}

static const char *number(text out, double value, int digits, const char *unit) {
    return isnan(value) ? "-" : hec_format_si(out, value, digits, unit);
}

/* Ten columns for the setting; a longer one stands on a line of its own. */
static void put_arm(struct hec_page *page, const struct hec_sweep_report *r, int index) {
    static const char *const marks[2][2] = {{"", " *"}, {" <", " <*"}}; /* recommended, on the front */
    const struct hec_sweep_arm *arm = &r->result.arm[index];
    char values[HEC_SWEEP_LABEL], label[HEC_SWEEP_LABEL];
    text speed, joules, change, range, p99, memory;
    line_text why;
    hec_format_clean(label, sizeof label, hec_sweep_values(values, r, index),
                     page->utf8); /* bytes, so never wider than it seems */
    if (strlen(label) > 10) {
        hec_page_line(page, 2, "", HEC_TONE_PLAIN, "%s", label);
        label[0] = '\0';
    }
    if (!arm->trials) {
        hec_page_line(page, 2, label, HEC_TONE_WARN, "%s", hec_sweep_why(why, r, index));
        return;
    }
    hec_sweep_change(change, range, &arm->to_first[HEC_SWEEP_OBJECTIVE]);
    hec_page_line(page, 2, label,
                  index == r->result.recommended      ? HEC_TONE_GOOD
                  : arm->passed == HEC_SWEEP_ELIGIBLE ? HEC_TONE_PLAIN
                                                      : HEC_TONE_DIM,
                  "%9s %9s %8s %-16.16s %8s %5s%s", number(speed, arm->figure[HEC_SWEEP_SPEED].value, 3, "/s"),
                  number(joules, arm->figure[HEC_SWEEP_JOULES].value, 4, "J"), index ? change : "first",
                  index ? range : "", number(p99, arm->figure[HEC_SWEEP_P99].value, 3, "s"),
                  hec_format_share(memory, 1 - arm->headroom), marks[index == r->result.recommended][arm->front]);
    if (arm->passed)
        hec_page_row(page, 2, "", HEC_TONE_WARN, "passed over: %s", hec_sweep_why(why, r, index));
}

static void put_table(struct hec_page *page, const struct hec_sweep_report *r) {
    char names[HEC_SWEEP_LABEL] = "";
    static const char *const of[] = {"energy", "time", "energy*time", "cost"};
    for (int i = 0; i < r->plan.parameters; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? " " : "", r->parameter[i].name);
    hec_page_row(page, 0, "Settings", HEC_TONE_PLAIN, "%s; a unit is a %s; %d round%s%s", names, hec_sweep_unit(r),
                 r->result.rounds, r->result.rounds == 1 ? "" : "s",
                 r->result.between_runs ? "" : " (of each setting)");
    hec_page_line(page, 0, "", HEC_TONE_DIM, "%9s %9s %8.8s %-16s %8s %5s", "units/s", "a unit",
                  of[r->result.objective], "95 % interval", "p99 step", "mem");
    for (int i = 0; i < r->result.arms; i++)
        put_arm(page, r, i);
    hec_page_row(
        page, 2, "", HEC_TONE_DIM,
        "< recommended; * on the front: no other is shown to be better in energy, units/s or p99 and as good in the rest");
}

int hec_sweep_terminal(const struct hec_sweep_report *r, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_page page;
    struct hec_buf command;
    line_text line;
    hec_page_init(&page, style, out);
    hec_buf_init(&command, 1 << 20);
    hec_receipt_command(&command, &r->conditions, 0);
    hec_page_row(&page, 2, "command", HEC_TONE_PLAIN, "%s", hec_buf_text(&command));
    hec_buf_free(&command);
    put_advice(&page, r);
    hec_page_blank(&page);
    put_table(&page, r);
    hec_page_row(&page, 0, "Cost", HEC_TONE_PLAIN, "%s", hec_sweep_cost(line, r));
    hec_page_row(&page, 0, "Left", HEC_TONE_PLAIN, "%s", hec_receipt_where(line, &r->conditions));
    return hec_buf_error(out);
}
