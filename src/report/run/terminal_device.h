/* Inside src/report: what was measured of a device, in the report for people. */
#ifndef HEC_REPORT_RUN_TERMINAL_DEVICE_H
#define HEC_REPORT_RUN_TERMINAL_DEVICE_H

#include "diagnose/result.h"
#include "report/page.h"

/* Several devices in one table, and what differs between them; nothing where the run used one (terminal_gpus.c). */
void hec_terminal_gpus(struct hec_page *page, const struct hec_summary *summary);
/* The devices that get a ledger, a chapter and kernels of their own, as bits (1 << hec_device.index): the one that is most
 * like the others and those that differ from it, a few; all: every one that was used. */
uint64_t hec_terminal_chapters(const struct hec_summary *summary, bool all);
/* 1 << index; 0 for what a damaged file may say. */
uint64_t hec_terminal_bit(int device);
double hec_terminal_busy(const struct hec_device_diagnosis *device); /* share of the run, by the ledger; NAN unknown */
double hec_terminal_watts(const struct hec_device_summary *device);  /* mean over the run; NAN unknown */
/* Energy, power, use, timeline; what telemetry shows where nothing was traced. */
void hec_terminal_device(struct hec_page *page, const struct hec_summary *summary,
                         const struct hec_device_diagnosis *device);
/* A row each of those that the command did not use. */
void hec_terminal_unused(struct hec_page *page, const struct hec_summary *summary);
/* All that were used, on one line at the end of `hec run`; one of them. */
void hec_terminal_brief_together(struct hec_page *page, const struct hec_summary *summary);
void hec_terminal_brief_device(struct hec_page *page, const struct hec_device_diagnosis *device);

#endif
