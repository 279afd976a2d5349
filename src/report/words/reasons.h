/* Inside src/report and what uses it: a reason in words. The table is words/reasons.def. */
#pragma once

#include "diagnose/reason.h"

#define HEC_REASON_SIZE 640

/* "the device was lost at 3.20 s, before any reading"; "" of none. */
char *hec_reason_words(char out[HEC_REASON_SIZE], const struct hec_reason *reason);
/* The same, with its room: it lasts as long as the block that it stands in. */
#define HEC_SAY(reason) hec_reason_words((char[HEC_REASON_SIZE]){""}, reason)
