/* Inside src/report: an answer on a page and in Markdown. */
#ifndef HEC_REPORT_WORDS_ANSWER_PRINT_H
#define HEC_REPORT_WORDS_ANSWER_PRINT_H

#include "report/words/answer.h"
#include "report/page.h"

void hec_answer_page(struct hec_page *page, const struct hec_answer *answer); /* the sentence */
void hec_answer_table_page(struct hec_page *page, const struct hec_answer *answer);
void hec_answer_table_markdown(struct hec_buf *out, const struct hec_answer *answer);

#endif
