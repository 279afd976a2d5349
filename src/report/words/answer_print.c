#include "report/words/answer_print.h"

void hec_answer_page(struct hec_page *page, const struct hec_answer *answer) {
    static const enum hec_tone tones[] = {[HEC_VERDICT_NOT_SHOWN] = HEC_TONE_BOLD,
                                          [HEC_VERDICT_SAVED] = HEC_TONE_GOOD,
                                          [HEC_VERDICT_LOST] = HEC_TONE_BAD,
                                          [HEC_VERDICT_FASTER] = HEC_TONE_GOOD,
                                          [HEC_VERDICT_SLOWER] = HEC_TONE_BAD};
    char sentence[HEC_ANSWER_SENTENCE];
    hec_page_row(page, 2, "found", tones[hec_answer_verdict(answer)], "%s", hec_answer_sentence(sentence, answer));
}

void hec_answer_table_page(struct hec_page *page, const struct hec_answer *answer) {
    hec_page_line(page, 0, "", HEC_TONE_DIM, "%9s %9s  %7s  %s", "A", "B", "B to A", "95 % interval");
    for (int i = 0; i < HEC_QUANTITY_COUNT; i++) {
        struct hec_quantity_words words;
        if (hec_quantity_words(answer, i, &words))
            hec_page_line(page, 2, words.label, HEC_TONE_PLAIN, "%9s %9s  %7s  %-16s %s", words.value[0],
                          words.value[1], words.change, words.range, words.shown);
    }
}

void hec_answer_table_markdown(struct hec_buf *out, const struct hec_answer *answer) {
    hec_buf_puts(out, "| | A | B | B to A | 95 % interval | |\n| --- | ---: | ---: | ---: | ---: | --- |\n");
    for (int i = 0; i < HEC_QUANTITY_COUNT; i++) {
        struct hec_quantity_words words;
        if (hec_quantity_words(answer, i, &words))
            hec_buf_printf(out, "| %s | %s | %s | %s | %s | %s |\n", words.label, words.value[0], words.value[1],
                           words.change, words.range, words.shown);
    }
}
