/* Inside src/report: the ranks of a job, a row each, in the report for people (rank.def has the columns). */
#pragma once

#include "report/page.h"

#define HEC_JOB_MISSING_WORDS 128
#define HEC_JOB_WORDS 512

/* Several ranks belong to it. */
bool hec_job_is(const struct hec_summary *summary);
/* "1, 3 to 7": ranks of the job that the run has nothing of; "": none, or their numbers are not known. */
char *hec_job_missing(char text[HEC_JOB_MISSING_WORDS], const struct hec_job_diagnosis *job);

/* What is known of the job as a whole. Returns text. */
char *hec_job_words(const struct hec_summary *summary, char *text, size_t size);
/* FILE:LINE and function that held the device up most in the loop; "": not known. Returns text. */
char *hec_rank_line(char *text, size_t size, const struct hec_device_diagnosis *device);

/* Nothing where the run is no job of several ranks. */
void hec_terminal_ranks(struct hec_page *page, const struct hec_summary *summary);
void hec_markdown_ranks(struct hec_buf *out, const struct hec_summary *summary);
