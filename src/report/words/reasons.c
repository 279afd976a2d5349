#include "report/words/reasons.h"

#include "report/words/fill.h"

#include <string.h>

static const struct {
    const char *words, *numbers;
} table[] = {
    [HEC_REASON_NONE] = {"", ""},
#define HEC_REASON_WORDS(id, said) [HEC_REASON_##id].words = said,
#include "report/words/reasons.def"
#define HEC_REASON(id, ...) [HEC_REASON_##id].numbers = #__VA_ARGS__,
#define HEC_REASON_PLAIN(id) [HEC_REASON_##id].numbers = "",
#include "diagnose/reasons.def"
};

enum { /* a reason that has no words is missed here, and one of no row above */
       WORDED = 1
#define HEC_REASON_WORDS(id, said) +1
#include "report/words/reasons.def"
};
_Static_assert((int)WORDED == (int)HEC_REASON_COUNT, "each reason has words");

/* Of a row that names no number of its own there is a "?", which the test of the table looks for. */
static const char *text_of(const void *context, const char *word) {
    return strncmp(word, "text}", 5) == 0 ? ((const struct hec_reason *)context)->text : "?";
}

char *hec_reason_words(char out[HEC_REASON_SIZE], const struct hec_reason *reason) {
    struct hec_fill fill = {.out = out,
                            .size = HEC_REASON_SIZE,
                            .value = reason->number,
                            .count = HEC_REASON_NUMBERS,
                            .names = table[reason->id].numbers,
                            .cause = HEC_CAUSE_COUNT,
                            .text_of = text_of,
                            .context = reason,
                            .text_most = HEC_REASON_TEXT};
    return hec_fill(&fill, table[reason->id].words);
}
