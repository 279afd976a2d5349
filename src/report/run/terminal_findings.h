/* Inside src/report: findings and what stands above them in the report for people. */
#ifndef HEC_REPORT_RUN_TERMINAL_FINDINGS_H
#define HEC_REPORT_RUN_TERMINAL_FINDINGS_H

#include "diagnose/result.h"
#include "report/page.h"

/* The answer in one sentence, and without a trace what one would add. */
void hec_terminal_headline(struct hec_page *page, const struct hec_summary *summary);
/* What limits what the findings say (words/findings.h). */
void hec_terminal_caveats(struct hec_page *page, const struct hec_summary *summary);
/* The first findings, or all: title, saving, evidence, lines, lever, code. Those of devices with no chapter of their own are named by
 * the device that stands for them. */
void hec_terminal_findings(struct hec_page *page, const struct hec_summary *summary, uint64_t chapters, bool all);
/* Optimise or scale out; where a request's time goes. */
void hec_terminal_scale_out(struct hec_page *page, const struct hec_findings *findings);
void hec_terminal_latency(struct hec_page *page, const struct hec_latency *latency);
/* What each kind of kernel of a device took, and what limits it: one row. */
void hec_terminal_classes(struct hec_page *page, const struct hec_device_diagnosis *device);
/* What to type next: brief, commands alone. */
void hec_terminal_next(struct hec_page *page, const struct hec_summary *summary, bool brief);
/* Line and lever of the finding that is worth most, for the end of `hec run`: at most 3 lines. */
void hec_terminal_brief_finding(struct hec_page *page, const struct hec_summary *summary);

#endif
