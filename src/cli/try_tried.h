/* Of `hec try`: from trials of a search to the rows of its receipt, and what levers say of themselves in a trial. */
#pragma once

#include "act/search.h"
#include "report/receipt/receipt.h"

void hec_try_seen(const struct hec_summary *trial, struct hec_search_seen *out);
/* What levers that were switched in one program say of themselves in the end, by candidate. */
void hec_try_lived(const struct hec_summary *trial, const struct hec_candidates *candidates,
                   struct hec_search_lived *out);
/* A row of each set, in the order in which they were first tried. HEC_ERR_NOMEM. */
int hec_try_fill(struct hec_receipt *receipt, const struct hec_search *search, const struct hec_search_outcome *outcome,
                 uint32_t kept);
