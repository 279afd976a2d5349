/* A sweep as Markdown, for a pull request. */
#include "report/markdown.h"
#include "report/receipt/words.h"
#include "report/sweep/words.h"

#include <math.h>

typedef char text[HEC_FORMAT_SIZE];
typedef char line_text[HEC_SWEEP_LINE];

static void put_item(struct hec_buf *out, const char *name, const char *value) {
    hec_buf_printf(out, "- %s: ", name);
    hec_markdown_text(out, "", value, "\n");
}

/* "1.19 k/s (1.18 to 1.20)" */
static void put_figure(struct hec_buf *out, const struct hec_sweep_interval *figure, const char *unit) {
    text value, low, high;
    hec_buf_puts(out, " | ");
    if (isnan(figure->value))
        return;
    hec_buf_puts(out, hec_format_si(value, figure->value, 4, unit));
    if (isfinite(figure->low))
        hec_buf_printf(out, " (%s to %s)", hec_format_si(low, figure->low, 3, unit),
                       hec_format_si(high, figure->high, 3, unit));
}

static void put_arm(struct hec_buf *out, const struct hec_sweep_report *r, int index) {
    const struct hec_sweep_arm *arm = &r->result.arm[index];
    char label[HEC_SWEEP_LABEL];
    text change, range, memory;
    line_text why;
    hec_markdown_text(out, "| ", hec_sweep_label(label, r, index), "");
    put_figure(out, &arm->figure[HEC_SWEEP_SPEED], "/s");
    put_figure(out, &arm->figure[HEC_SWEEP_JOULES], "J");
    hec_sweep_change(change, range, &arm->to_first[HEC_SWEEP_OBJECTIVE]);
    hec_buf_printf(out, " | %s%s%s%s", index ? change : "", index && range[0] ? " (" : "", index ? range : "",
                   index && range[0] ? ")" : "");
    put_figure(out, &arm->figure[HEC_SWEEP_WATTS], "W");
    put_figure(out, &arm->figure[HEC_SWEEP_P50], "s");
    put_figure(out, &arm->figure[HEC_SWEEP_P99], "s");
    hec_buf_printf(out, " | %s | %d | ",
                   isnan(arm->memory_bytes) ? "" : hec_format_bytes(memory, arm->memory_bytes, ""), arm->trials);
    hec_markdown_text(out, "",
                      index == r->result.recommended ? "recommended"
                      : arm->passed                  ? hec_sweep_why(why, r, index)
                      : arm->front                   ? "on the front"
                                                     : "",
                      " |\n");
}

int hec_sweep_markdown(const struct hec_sweep_report *r, struct hec_buf *out) {
    static const char *const of[] = {"energy", "time", "energy × time", "cost"};
    char notes[HEC_SWEEP_NOTES][HEC_SWEEP_LINE];
    struct hec_buf command;
    line_text line;
    hec_markdown_text(out, "**", hec_sweep_advice(line, r), "**\n\n");
    hec_buf_init(&command, 1 << 20);
    hec_receipt_command(&command, &r->conditions, 0);
    put_item(out, "command", hec_buf_text(&command));
    hec_buf_free(&command);
    for (int i = 0; i < r->result.lines; i++) {
        put_item(out, "plateau", hec_sweep_plateau(line, r, &r->result.line[i]));
        put_item(out, "cliff", hec_sweep_cliff(line, r, &r->result.line[i]));
    }
    int count = hec_sweep_notes(r, notes);
    for (int i = 0; i < count; i++)
        put_item(out, "note", notes[i]);
    hec_buf_printf(
        out,
        "\n| setting | units/s | a %s | %s to the first | power | p50 step | p99 step | memory | trials | |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
        hec_sweep_unit(r), of[r->result.objective]);
    for (int i = 0; i < r->result.arms; i++)
        put_arm(out, r, i);
    hec_buf_puts(out, "\n");
    put_item(out, "the trials took", hec_sweep_cost(line, r));
    return hec_buf_error(out);
}
