/* Inside src/report: what a finding says, in words. The table is words/facts.def; nothing here decides anything. */
#pragma once

#include "diagnose/finding.h"

#define HEC_FACT_SIZE 320

/* "the device waits 223.9 ms a step of 230.9 ms for the loader"; "GPU 1: ..." of another device than the finding's. */
char *hec_evidence_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding,
                         const struct hec_evidence *evidence);
char *hec_title_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding);
/* The change that answers it. */
char *hec_lever_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding);
/* The same where no run says more: for `hec explain`. */
char *hec_lever_default_words(char out[HEC_FACT_SIZE], enum hec_lever_id id);
/* "busy 95 % of the time in use and little is left to fix: add devices" */
char *hec_scale_words(char out[HEC_FACT_SIZE], const struct hec_scale_out *scale);
/* "s/step": the unit of an evidence's first number. */
char *hec_evidence_unit_words(char out[HEC_FACT_SIZE], const struct hec_finding *finding,
                              const struct hec_evidence *evidence);
