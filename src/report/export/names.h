/* Inside src/report: what the exports call things. */
#ifndef HEC_REPORT_EXPORT_NAMES_H
#define HEC_REPORT_EXPORT_NAMES_H

#include "diagnose/timeline/tables.h"

/* Definitions of a run. */
struct hec_export_tables {
    struct hec_timeline_tables timeline;
    char **readable; /* names of kernels that were asked for, by name id */
};

int hec_export_tables_load(const struct hec_timeline_input *input, struct hec_export_tables *tables,
                           struct hec_why *why);
void hec_export_tables_free(struct hec_export_tables *tables);

/* A number for the name of an activity, from 1 to hec_export_name_count - 1: the same for activities of one name. */
uint64_t hec_export_name_id(const struct hec_export_tables *tables, const struct hec_activity *a);
#define HEC_EXPORT_NAME_LAUNCH 15 /* of no activity */
uint64_t hec_export_name_count(const struct hec_export_tables *tables);
/* The name: a kernel's readable one, "copy host to device (pinned)", "train_step (train.py:42)" ... UTF-8. */
const char *hec_export_name(struct hec_export_tables *tables, const struct hec_activity *a, char *out, size_t size);

#endif
