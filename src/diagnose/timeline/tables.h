/* Inside src/diagnose: the definitions of a timeline, indexed by id. */
#pragma once

#include "diagnose/timeline/timeline.h"

/* Ids are dense; an id far beyond their number is left out as nonsense. Entry 0 and ids without a definition are empty
 * (text NULL, id 0). */
struct hec_timeline_tables {
    char **names; /* malloc'ed texts */
    size_t name_count;
    struct hec_track *tracks;
    size_t track_count;
    struct hec_kernel *kernels;
    uint8_t *classes; /* by kernel: enum hec_kernel_class of its name */
    size_t kernel_count;
    struct hec_frame *frames; /* of call stacks */
    size_t frame_count;
    struct hec_tracer *tracers;
    size_t tracer_count;
};

/* What a function of the input returned: an absent table is empty. */
static inline int hec_table_absent(int err) {
    return err == HEC_ERR_NOTFOUND || err > 0 ? 0 : err;
}
/* 0, HEC_ERR_NOMEM or what the input returned. Functions that are NULL give empty tables. */
int hec_timeline_tables_load(const struct hec_timeline_input *input, struct hec_timeline_tables *tables,
                             struct hec_why *why);
void hec_timeline_tables_free(struct hec_timeline_tables *tables);

/* "" when unknown */
const char *hec_timeline_name(const struct hec_timeline_tables *tables, uint32_t id);
/* NULL when unknown */
const struct hec_track *hec_timeline_track(const struct hec_timeline_tables *tables, uint32_t id);
/* Of a kernel that is not defined HEC_KERNEL_CLASS_OTHER. */
enum hec_kernel_class hec_timeline_kernel_class(const struct hec_timeline_tables *tables, uint32_t kernel);
/* What counts as communication, everywhere: kernels of that class. */
static inline bool hec_timeline_communicates(const struct hec_timeline_tables *tables, const struct hec_activity *a) {
    return a->kind == HEC_ACTIVITY_KERNEL && hec_timeline_kernel_class(tables, a->name) == HEC_KERNEL_CLASS_COMM;
}
/* Name id of a kernel, 0 when unknown. */
uint32_t hec_timeline_kernel_name(const struct hec_timeline_tables *tables, uint32_t kernel);

/* Devices that have streams: different ones, ascending; malloc'ed. 0 or HEC_ERR_NOMEM. */
int hec_timeline_devices(const struct hec_timeline_tables *tables, int **devices, size_t *count);

/* The processes with streams on a device; HEC_DEVICE_NONE: on any. */
struct hec_pids {
    int *list; /* ascending; malloc'ed */
    size_t count;
};
int hec_timeline_pids(const struct hec_timeline_tables *tables, int device,
                      struct hec_pids *out); /* 0, HEC_ERR_NOMEM */
/* `pids` is a struct hec_pids: this is what hec_windows_traced asks. */
bool hec_pids_have(const void *pids, int32_t pid);

static inline bool hec_memory_of_host(uint8_t memory) {
    return memory == HEC_MEMORY_PAGEABLE || memory == HEC_MEMORY_PINNED || memory == HEC_MEMORY_HOST;
}

/* Times beyond +-36 years are left out, so that a damaged file cannot overflow the arithmetic. */
#define HEC_TIMELINE_TIME_MAX (INT64_C(1) << 60)
static inline bool hec_timeline_plausible(const struct hec_activity *a) {
    return a->start_ns >= -HEC_TIMELINE_TIME_MAX && a->end_ns <= HEC_TIMELINE_TIME_MAX && a->start_ns <= a->end_ns;
}
