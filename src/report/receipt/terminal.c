/* The verdict of a receipt for people. */
#include "report/words/answer.h"
#include "report/receipt/words.h"

static void put_commands(struct hec_page *page, const struct hec_receipt *r) {
    for (int side = 0; side < 2; side++) {
        struct hec_buf line;
        if (!r->command[side].count)
            continue;
        hec_buf_init(&line, 1 << 20);
        hec_receipt_command(&line, r, side);
        hec_page_row(page, 2, hec_receipt_side_name(side), HEC_TONE_PLAIN, "%s", hec_buf_text(&line));
        hec_buf_free(&line);
    }
}

static void put_answer(struct hec_page *page, const struct hec_receipt *r, const struct hec_answer *answer) {
    static const enum hec_tone tones[] = {[HEC_QUALITY_PASS] = HEC_TONE_GOOD,
                                          [HEC_QUALITY_FAIL] = HEC_TONE_BAD,
                                          [HEC_QUALITY_CANNOT_JUDGE] = HEC_TONE_WARN};
    char lines[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE], quality[HEC_QUALITY_SENTENCE];
    int count = hec_receipt_notes(r, lines);
    hec_answer_page(page, answer);
    hec_page_row(page, 2, "quality", tones[r->result.quality.verdict], "%s",
                 hec_quality_sentence(quality, &r->result.quality));
    for (int i = 0; i < count; i++)
        hec_page_row(page, 2, i ? "" : "note", HEC_TONE_WARN, "%s", lines[i]);
    const char *effect = hec_receipt_fact(&r->facts, HEC_RECEIPT_EFFECT);
    if (effect)
        hec_page_row(page, 2, "levers", HEC_TONE_PLAIN, "%s", effect);
}

static void put_cost(struct hec_page *page, const struct hec_receipt *r) {
    char line[HEC_RECEIPT_LINE];
    hec_page_row(page, 0, "Cost", HEC_TONE_PLAIN, "%s", hec_receipt_cost(line, r));
    hec_page_row(page, 2, "paid", HEC_TONE_PLAIN, "%s", hec_receipt_paid(line, r));
}

static void put_left(struct hec_page *page, const struct hec_receipt *r) {
    char line[HEC_RECEIPT_LINE];
    hec_page_row(page, 0, "Left", HEC_TONE_PLAIN, "%s", hec_receipt_where(line, r));
    for (int i = 0; i < r->left.count; i++)
        hec_page_row(page, 2, "", HEC_TONE_PLAIN, "%s", r->left.list[i]);
}

int hec_receipt_terminal(const struct hec_receipt *r, const struct hec_report_style *style, struct hec_buf *out) {
    struct hec_answer answer = hec_receipt_answer(r);
    struct hec_page page;
    hec_page_init(&page, style, out);
    put_commands(&page, r);
    if (!hec_receipt_is_baseline(r)) {
        put_answer(&page, r, &answer);
        hec_page_blank(&page);
        hec_page_row(&page, 0, "Compared", HEC_TONE_PLAIN, "%d pair%s of trials", r->result.pairs,
                     r->result.pairs == 1 ? "" : "s");
        hec_answer_table_page(&page, &answer);
        put_cost(&page, r);
    }
    put_left(&page, r);
    return hec_buf_error(out);
}
