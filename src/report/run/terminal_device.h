/* Inside src/report: what was measured of a device, in the report for people. */
#pragma once

#include "report/format.h"
#include "report/page.h"

/* ---- findings and what stands above them in the report for people ---- */

/* What limits what the findings say (words/findings.h), but a loss that is no number, which stands first of all. */
void hec_terminal_caveats(struct hec_page *page, const struct hec_summary *summary);
/* The first finding with what it rests on, and the titles of the next; page->all: all, with saving, lever and code. code_shown: on the
 * first screen. Those of devices with no chapter of their own are named by
 * the device that stands for them. */
void hec_terminal_findings(struct hec_page *page, const struct hec_summary *summary, uint64_t chapters,
                           bool code_shown);
/* Optimise or scale out; where a request's time goes. */
void hec_terminal_scale_out(struct hec_page *page, const struct hec_findings *findings);
void hec_terminal_latency(struct hec_page *page, const struct hec_latency *latency);
/* What each kind of kernel of a device took, and what limits it: one row. */
void hec_terminal_classes(struct hec_page *page, const struct hec_device_diagnosis *device);

/* ---- the timeline in the report for people. Each prints nothing where there is nothing to say ---- */

/* Rows of one device: what its time went to, gaps, launches, copies; timeline NULL: none. */
void hec_terminal_device_timeline(struct hec_page *page, const struct hec_device_timeline *timeline);
/* Where the program is, of a run of which no device's activities are known (terminal_ledger.c). */
void hec_terminal_lines(struct hec_page *page, const struct hec_summary *summary);
/* What each state of one device took, and the lines that held it up (terminal_ledger.c). */
void hec_terminal_ledger(struct hec_page *page, const struct hec_summary *summary,
                         const struct hec_device_diagnosis *device);
/* The kernels that take most time, of the devices that are bits (1 << hec_device.index). */
void hec_terminal_kernels(struct hec_page *page, const struct hec_summary *summary, uint64_t devices);
/* Those to go by, and what other programs on other devices did. */
void hec_terminal_steps(struct hec_page *page, const struct hec_summary *summary);
/* How the run was traced and what it cost. */
void hec_terminal_trace(struct hec_page *page, const struct hec_summary *summary);

/* A column of the table of kernels (kernel.def), in front of their names. */
struct hec_kernel_column {
    const char *head;
    int width; /* in the terminal */
    bool markdown;
    char *(*text)(char cell[HEC_FORMAT_SIZE], const struct hec_kernel_row *k);
};
extern const struct hec_kernel_column hec_kernel_columns[]; /* the last has no head */

/* Several devices in one table, and what differs between them; nothing where the run used one (terminal_gpus.c). */
void hec_terminal_gpus(struct hec_page *page, const struct hec_summary *summary);
/* The devices that get a ledger, a chapter and kernels of their own, as bits (1 << hec_device.index): the one that is most
 * like the others and those that differ from it, a few; all: every one that was used. */
uint64_t hec_terminal_chapters(const struct hec_summary *summary, bool all);
/* Those that have a row in the table, of many devices a few: the typical one and what differs from it. */
uint64_t hec_terminal_gpu_rows(const struct hec_summary *summary, bool all);
double hec_terminal_busy(const struct hec_device_diagnosis *device); /* share of the run, by the ledger; NAN unknown */
double hec_terminal_watts(const struct hec_device_summary *device);  /* mean over the run; NAN unknown */
/* Energy, power, use, timeline; what telemetry shows where nothing was traced. */
void hec_terminal_device(struct hec_page *page, const struct hec_summary *summary,
                         const struct hec_device_diagnosis *device);
/* A row each of those that the command did not use. */
void hec_terminal_unused(struct hec_page *page, const struct hec_summary *summary);
/* All that were used, on one line at the end of `hec run`; one of them. */
