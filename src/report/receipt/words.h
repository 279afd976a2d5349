/* Inside src/report: what a receipt says, in words; one wording for the terminal, Markdown and JSON. */
#pragma once

#include "report/words/answer.h"
#include "report/receipt/receipt.h"

enum { HEC_QUALITY_SENTENCE = 400, HEC_RECEIPT_LINE = 320, HEC_RECEIPT_LINES = 6 };

struct hec_answer hec_receipt_answer(const struct hec_receipt *receipt);
/* What limits the verdict, and how it follows from the trials. The number of sentences. */
int hec_receipt_notes(const struct hec_receipt *receipt, char out[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE]);
int hec_receipt_method(const struct hec_receipt *receipt, char out[HEC_RECEIPT_LINES][HEC_RECEIPT_LINE]);
/* "pass: the loss of B is ..." */
char *hec_quality_sentence(char out[HEC_QUALITY_SENTENCE], const struct hec_quality *quality);
/* "1.2 kJ and 3 min 4 s in 18 trials" */
char *hec_receipt_cost(char out[HEC_RECEIPT_LINE], const struct hec_receipt *receipt);
/* "after 1.2 million samples (1.1 to 1.4 million)"; why not, where it does not. */
char *hec_receipt_paid(char out[HEC_RECEIPT_LINE], const struct hec_receipt *receipt);
/* "what they wrote went into a scratch layer on disk, over /home/x and /tmp" */
char *hec_receipt_where(char out[HEC_RECEIPT_LINE], const struct hec_receipt *receipt);

/* Stable. */
const char *hec_look_step_name(enum hec_look_step step);
const char *hec_quality_name(enum hec_quality_verdict verdict);
const char *hec_quality_why_name(enum hec_quality_why why);
const char *hec_quality_part_name(enum hec_quality_part part);
const char *hec_quality_gradient_name(int gradient); /* "all", "first", "part_1" ... */
const char *hec_receipt_writes_name(enum hec_receipt_writes writes);
const char *hec_receipt_caches_name(enum hec_receipt_caches caches);
const char *hec_receipt_side_name(int side);

/* Whether it proves that B saves joules (time, where joules are not known) and still does the same work, as far as that can be judged; else
 * why not. */
bool hec_receipt_proves(const struct hec_receipt *receipt, const char **why_not);

/* The command line of a side, B's (of one alone: its) with levers: hec run --with tf32,compile -- python train.py */
void hec_receipt_command(struct hec_buf *out, const struct hec_receipt *receipt, int side);
