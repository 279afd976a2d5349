/* From a run file to a summary: the adapter between store and diagnose, and the options that both verbs share. */
#pragma once

#include "cli/cli.h"
#include "diagnose/result.h"
#include "launch/session.h"
#include "report/run/report.h"
#include "store/reader.h"

/* --price, --carbon, --gpu-hour, or their environment variables, or the labelled defaults. HEC_ERR_USAGE after printing. */
int hec_load_price(const struct hec_args *args, struct hec_price *price);

/* Open the file and hand it to `use`, in the shape that the analysis and the exports read; what `use` returns is
 * returned. Units given on the command line (--units) replace recorded ones of the same name. */
int hec_load_input(const char *path, const struct hec_args *args,
                   int (*use)(void *context, const struct hec_summary_input *input, struct hec_why *why), void *context,
                   struct hec_why *why);

/* Read the file and analyse it. view: how many runs share the page that shows it; 0: there is none. */
int hec_load_summary(const char *path, const struct hec_args *args, const struct hec_price *price, int view,
                     struct hec_summary *summary, struct hec_why *why);

/* The same of a run that is open, without a page; path is where it is, or "". Closes the reader. */
int hec_load_summary_reader(struct hec_reader *reader, const char *path, const struct hec_args *args,
                            const struct hec_price *price, struct hec_summary *summary, struct hec_why *why);

/* knobs.c: whether the knobs among the levers took effect, by what the program read. */
void hec_knobs_attest(struct hec_summary *summary);

/* The --unit arguments, which are at most HEC_PRINTED_MAX. HEC_ERR_USAGE after printing a sentence. */
int hec_load_printed(const struct hec_args *args, const char *verb, struct hec_printed_unit list[HEC_PRINTED_MAX],
                     int *count);
/* One --units argument: N, or NAME=N. HEC_ERR_USAGE after printing a sentence. */
int hec_load_unit(const char *text, char name[64], double *count);

/* --trace, --hooks and --trace-memory. HEC_ERR_USAGE after printing. */
int hec_load_tracing(const struct hec_args *args, struct hec_session_options *options);

/* Colour and width for a stream; --color and NO_COLOR are honoured. HEC_ERR_USAGE after printing. */
int hec_load_style(const struct hec_args *args, int fd, struct hec_report_style *style);
