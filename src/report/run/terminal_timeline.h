/* Inside src/report: the timeline in the report for people. Each prints nothing where there is nothing to say. */
#ifndef HEC_REPORT_RUN_TERMINAL_TIMELINE_H
#define HEC_REPORT_RUN_TERMINAL_TIMELINE_H

#include "diagnose/result.h"
#include "report/format.h"
#include "report/page.h"

/* Rows of one device: what its time went to, gaps, launches, copies; timeline NULL: none. */
void hec_terminal_device_timeline(struct hec_page *page, const struct hec_device_timeline *timeline);
/* What each state of one device took, and the lines that held it up (terminal_ledger.c). */
void hec_terminal_ledger(struct hec_page *page, const struct hec_summary *summary,
                         const struct hec_device_diagnosis *device);
/* The kernels that take most time, of the devices that are bits (1 << hec_device.index). */
void hec_terminal_kernels(struct hec_page *page, const struct hec_summary *summary, uint64_t devices);
/* Those to go by, and what other programs on other devices did. */
void hec_terminal_steps(struct hec_page *page, const struct hec_summary *summary);
/* How the run was traced and what it cost. */
void hec_terminal_trace(struct hec_page *page, const struct hec_summary *summary);
/* For the end of `hec run`: a line of for whom the trace stood down, and one of steps where `lines` are left. */
void hec_terminal_brief(struct hec_page *page, const struct hec_summary *summary, int lines);

/* A column of the table of kernels (kernel.def), in front of their names. */
struct hec_kernel_column {
    const char *head;
    int width; /* in the terminal */
    bool markdown;
    char *(*text)(char cell[HEC_FORMAT_SIZE], const struct hec_kernel_row *k);
};
extern const struct hec_kernel_column hec_kernel_columns[]; /* the last has no head */

#endif
