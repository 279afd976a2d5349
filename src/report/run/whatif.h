/* What `hec whatif` says: how a run would go with edits of its schedule. */
#pragma once

#include "diagnose/replay/whatif.h"
#include "report/run/report.h"

#define HEC_WHATIF_SCHEMA "hec.whatif/1"
#define HEC_WHATIF_EDITS_SCHEMA "hec.edits/1"

/* questions: those of the answers. all: also those that change nothing. */
int hec_whatif_terminal(const struct hec_whatif *whatif, const struct hec_whatif_question *questions, bool all,
                        const struct hec_report_style *style, struct hec_buf *out);
int hec_whatif_json(const struct hec_whatif *whatif, const struct hec_whatif_question *questions, struct hec_buf *out);
/* The edits, a line each. */
int hec_whatif_list(const struct hec_report_style *style, struct hec_buf *out);
int hec_whatif_list_json(struct hec_buf *out);
