/* Inside src/report: the ranks of a job, a row each, in the report for people (rank.def has the columns). */
#pragma once

#include "report/page.h"

#define HEC_JOB_MISSING_WORDS 128

/* Several ranks belong to it. */
bool hec_job_is(const struct hec_summary *summary);
/* "1, 3 to 7": ranks of the job that the run has nothing of; "": none, or their numbers are not known. */
char *hec_job_missing(char text[HEC_JOB_MISSING_WORDS], const struct hec_job_diagnosis *job);

/* The device of a rank; NULL: none is known, or it has several. */
const struct hec_device_diagnosis *hec_rank_device(const struct hec_summary *summary, const struct hec_rank *rank);
double hec_rank_joules(const struct hec_device_diagnosis *device); /* NAN unknown */
/* FILE:LINE and function that held the device up most in the loop; "": not known. Returns text. */
char *hec_rank_line(char *text, size_t size, const struct hec_device_diagnosis *device);

/* Nothing where the run is no job of several ranks. */
void hec_terminal_ranks(struct hec_page *page, const struct hec_summary *summary);
void hec_markdown_ranks(struct hec_buf *out, const struct hec_summary *summary);
