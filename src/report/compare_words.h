/* Inside src/report: what a comparison says, in words; one wording for the terminal, Markdown and JSON. */
#ifndef HEC_REPORT_COMPARE_WORDS_H
#define HEC_REPORT_COMPARE_WORDS_H

#include "report/compare.h"
#include "report/format.h"

enum { HEC_VERSUS_SENTENCE = 1024, HEC_VERSUS_NOTES_MAX = 6, HEC_VERSUS_NOTE = 320 };

const char *hec_verdict_name(enum hec_verdict verdict); /* "not_shown": stable */
enum hec_verdict hec_versus_verdict(const struct hec_versus *versus);
/* The answer: "saved: B takes 23 % fewer joules per sample than A (21 to 25), and is 1.3 times as fast (1.28 to 1.33)". */
char *hec_versus_sentence(char out[HEC_VERSUS_SENTENCE], const struct hec_versus *versus);
/* What limits it: one run a side, unlike runs, joules that are not known. The number of sentences. */
int hec_versus_notes(const struct hec_versus *versus, char out[HEC_VERSUS_NOTES_MAX][HEC_VERSUS_NOTE]);

/* Several runs show by how much runs vary, and steps by how much the steady part does; with neither there is no interval, and
 * nothing is shown. */
bool hec_versus_has_interval(const struct hec_versus *versus, enum hec_quantity quantity);
bool hec_versus_by_step(const struct hec_versus *versus);    /* steps say when the work was done */
bool hec_versus_equal_work(const struct hec_versus *versus); /* of whole runs, as far as is known */
/* What the answer is about: of a unit of work, where all runs count the same one; else of a run. */
enum hec_quantity hec_versus_energy(const struct hec_versus *versus);
enum hec_quantity hec_versus_time(const struct hec_versus *versus);
enum hec_shown hec_versus_shown(const struct hec_versus *versus, enum hec_quantity quantity);

/* As many decimals of a percentage as the width of its interval bears, and a number rounded to them, never "-0". */
int hec_change_decimals(double low, double high, double value);
double hec_change_rounded(double value, int decimals);

/* The quantity that stands at this place of a table, of HEC_QUANTITY_COUNT; false: it is not known of a side, or says nothing
 * here. */
struct hec_quantity_words {
    char label[16];                 /* "energy" */
    char value[2][HEC_FORMAT_SIZE]; /* of A, of B: "969.5 mJ" */
    char change[HEC_FORMAT_SIZE];   /* "-23.1 %" */
    char range[HEC_FORMAT_SIZE];    /* "-25 to -21 %", "" without an interval */
    const char *shown;              /* "better" */
};
bool hec_quantity_words(const struct hec_versus *versus, int at, struct hec_quantity_words *out);
const char *hec_quantity_name(enum hec_quantity quantity); /* "joules_per_unit": stable */
const char *hec_quantity_unit(enum hec_quantity quantity); /* "J/unit": stable */
const char *hec_shown_name(enum hec_shown shown);          /* "better": stable */

/* "the driver: 580.95 in A, 575.57 in B" */
char *hec_unlike_words(char *out, size_t size, const struct hec_unlike *unlike);
/* "steady part, energy per sample" */
char *hec_quantities_of(char out[192], const struct hec_versus *versus);
/* "per sample", "per run": what the ledger's figures are of. */
char *hec_moved_per(char out[96], const struct hec_versus *versus);
/* "starved for data (would have saved 38 %)"; in 1 of 3 runs. which: 0 went, 1 came, 2 stayed. */
const char *hec_moved_fate(const struct hec_moved_cause *cause);
char *hec_moved_words(char out[192], const struct hec_versus *versus, const struct hec_moved_cause *cause);

#endif
