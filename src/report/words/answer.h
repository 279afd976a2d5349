/* Inside src/report: what B takes against A, as a verdict, a sentence and a table; one wording for compared runs and for receipts. */
#pragma once

#include "prove/compare.h"
#include "report/format.h"
#include "report/page.h"

enum { HEC_ANSWER_SENTENCE = 1024 };

enum hec_verdict {
    HEC_VERDICT_NOT_SHOWN,
    HEC_VERDICT_SAVED,  /* joules */
    HEC_VERDICT_LOST,   /* joules */
    HEC_VERDICT_FASTER, /* where joules are unknown */
    HEC_VERDICT_SLOWER,
    HEC_VERDICT_COUNT
};

struct hec_answer {
    struct hec_comparison quantity[HEC_QUANTITY_COUNT]; /* put there by hec_answer_put */
    const char *unit;                                   /* of work, that all runs count; "": there is none */
    bool two_runs;           /* one a side: what is shown holds of these two, and programs may differ by less */
    const char *no_interval; /* why there is none, where there is none */
};

/* Without an interval nothing is shown. */
void hec_answer_put(struct hec_answer *answer, enum hec_quantity quantity, const struct hec_comparison *comparison,
                    bool has_interval);
bool hec_answer_has_interval(const struct hec_answer *answer, enum hec_quantity quantity);

/* What the answer is about: of a unit of work, where all runs count the same one; else of a run. */
enum hec_quantity hec_answer_energy(const struct hec_answer *answer);
enum hec_quantity hec_answer_time(const struct hec_answer *answer);
enum hec_verdict hec_answer_verdict(const struct hec_answer *answer);
/* "saved: B takes 23 % fewer joules per sample than A (21 to 25), and is 1.3 times as fast (1.28 to 1.33)" */
char *hec_answer_sentence(char out[HEC_ANSWER_SENTENCE], const struct hec_answer *answer);

/* The quantity that stands at this place of a table, of HEC_QUANTITY_COUNT; false: it is not known of a side, or says nothing
 * here. */
struct hec_quantity_words {
    char label[16];                 /* "energy" */
    char value[2][HEC_FORMAT_SIZE]; /* of A, of B: "969.5 mJ" */
    char change[HEC_FORMAT_SIZE];   /* "-23.1 %" */
    char range[HEC_FORMAT_SIZE];    /* "-25 to -21 %", "" without an interval */
    const char *shown;              /* "better" */
};
bool hec_quantity_words(const struct hec_answer *answer, int at, struct hec_quantity_words *out);

const char *hec_verdict_name(enum hec_verdict verdict);    /* "not_shown": stable */
const char *hec_quantity_name(enum hec_quantity quantity); /* "joules_per_unit": stable */
const char *hec_quantity_unit(enum hec_quantity quantity); /* "J/unit": stable */
const char *hec_shown_name(enum hec_shown shown);          /* "better": stable */

/* As many decimals of a percentage as the width of its interval bears, and a number rounded to them, never "-0". */
int hec_change_decimals(double low, double high, double value);
double hec_change_rounded(double value, int decimals);

/* ---- an answer on a page and in Markdown ---- */

void hec_answer_page(struct hec_page *page, const struct hec_answer *answer); /* the sentence */
void hec_answer_table_page(struct hec_page *page, const struct hec_answer *answer);
void hec_answer_table_markdown(struct hec_buf *out, const struct hec_answer *answer);
