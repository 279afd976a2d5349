/* Inside src/diagnose: which processes' devices are to be inferred, and what is needed for it: one pass over calls and
 * windows, and one over device activities where a process has windows. */
#ifndef HEC_DIAGNOSE_INFERRED_SURVEY_H
#define HEC_DIAGNOSE_INFERRED_SURVEY_H

#include "diagnose/inferred_device.h"
#include "diagnose/timeline_tables.h"
#include "diagnose/traced.h"

struct hec_inferred_process {
    int32_t pid, rank;
    bool timed;   /* its calls were timed */
    bool streams; /* it has activities on devices */
    bool inferred;
    int64_t first_ns, last_ns;    /* of its calls that give work or wait */
    struct hec_intervals windows; /* of CUPTI, joined */
};

/* A process on a device. */
struct hec_inferred_use {
    struct hec_inferred_process *process;
    int device;
    double busy_ns, launches; /* inside of windows */
    int64_t busy_until_ns, graph_ns;
};

struct hec_inferred_survey {
    struct hec_timeline_tables tables;
    struct hec_inferred_process *processes;
    size_t process_count;
    struct hec_inferred_process **by_track;
    struct hec_inferred_use *uses;
    size_t use_count;
    struct hec_inferred_rates rates;
    int only_device;     /* of the run; -1: there are several, or none */
    size_t window_count; /* of all processes */
};

/* 0, HEC_ERR_NOMEM or what the input returned. Free it all the same. */
int hec_inferred_survey_build(const struct hec_timeline_input *input, struct hec_inferred_survey *out,
                              struct hec_why *why);
void hec_inferred_survey_free(struct hec_inferred_survey *survey);
/* Of a call or a device activity; NULL: none. */
struct hec_inferred_use *hec_inferred_survey_use(const struct hec_inferred_survey *survey,
                                                 const struct hec_activity *a);
/* A window of a process that is inferred. */
bool hec_inferred_survey_hides(const struct hec_inferred_survey *survey, const struct hec_activity *window);
bool hec_inferred_process_seen(struct hec_inferred_process *process, int64_t t_ns);
/* How many launches an activity of a thread stands for. */
double hec_inferred_launches(const struct hec_activity *a);

#endif
