/* dcgm-exporter's fields (dcgm.def), and its list of those to show: lines of `NAME, type, help`, `#` begins a comment. */
#pragma once

#include "agent/node.h"
#include "base/error.h"
#include "model/run.h"
#include "report/export/exposition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEC_DCGM_MAX 128       /* fields of a page */
#define HEC_DCGM_HELP_SIZE 256 /* bytes of a help text from a file */
#define HEC_DCGM_SKIPPED_SIZE 4096

/* The labels of each of its series, in its order; then those of pods and hpc_job. Hostname is hostname since its version 4.5.3.
 * DCGM_FI_DEV_XID_ERRORS has err_code and err_msg too: its value, and what that says (xids.def). */
#define HEC_DCGM_LABELS "gpu, UUID, pci_bus_id, device, modelName, GPU_I_PROFILE, GPU_I_ID, Hostname"

enum hec_dcgm_set { HEC_DCGM_DEFAULT, HEC_DCGM_LISTED, HEC_DCGM_ASKED, HEC_DCGM_OLD };
enum hec_dcgm_how {
    HEC_DCGM_VALUE,
    HEC_DCGM_TOTAL,
    HEC_DCGM_SHARE,
    HEC_DCGM_COUNT,
    HEC_DCGM_POWER_DEFAULT, /* power_limit_default_mw of struct hec_device */
    HEC_DCGM_NODE,
    HEC_DCGM_ABSENT,
    HEC_DCGM_LABEL
};

/* Of `metric` and `plus`: there is none. */
#define HEC_DCGM_NONE HEC_METRIC_COUNT

struct hec_dcgm_field {
    const char *name;
    enum hec_family_kind kind;
    enum hec_dcgm_set set;
    enum hec_dcgm_how how;
    enum hec_metric metric, plus;
    double factor;
    const char *help;
    size_t label;              /* of HEC_DCGM_LABEL: where its text lies in struct hec_device */
    enum hec_node_total total; /* of HEC_DCGM_NODE */
    const char *why;           /* of HEC_DCGM_ABSENT */
};

const struct hec_dcgm_field *hec_dcgm_field(size_t i); /* NULL: there are no more */
/* The devices and drivers that have it; NULL: all. */
const char *hec_dcgm_needs(const struct hec_dcgm_field *field);

/* Whose fields are shown, as dcgm-exporter's -d says it. */
struct hec_dcgm_devices {
    bool instances; /* those of GPU instances */
    uint64_t gpus;  /* those of the GPUs themselves: a bit each */
};

/* f (all), g (GPUs), i (instances), g:0,2-4 and g+i. HEC_ERR_USAGE with a sentence. */
int hec_dcgm_devices_parse(const char *text, struct hec_dcgm_devices *out, struct hec_why *why);
bool hec_dcgm_shows(const struct hec_dcgm_devices *devices, int index);

/* What a page shows, in order. */
struct hec_dcgm_chosen {
    const struct hec_dcgm_field *field;
    enum hec_family_kind kind; /* as the file says, else the field's */
    char help[HEC_DCGM_HELP_SIZE];
};

struct hec_dcgm_list {
    struct hec_dcgm_chosen chosen[HEC_DCGM_MAX];
    size_t count;
    size_t skipped_count;                /* fields that are not in the table, */
    char skipped[HEC_DCGM_SKIPPED_SIZE]; /* and their names, as many as fit */
};

void hec_dcgm_list_default(struct hec_dcgm_list *list, bool all, bool old);

/* The list of a file's text instead, plus the older names where `old`. HEC_ERR_CORRUPT with the line: not three fields, a type
 * that is none of gauge, counter, label, a name that cannot be a field of DCGM, one twice. */
int hec_dcgm_list_parse(struct hec_dcgm_list *list, const char *text, size_t length, bool old, struct hec_why *why);
