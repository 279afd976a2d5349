/* Inside src/diagnose: which processes' devices are to be inferred, and what is needed for it: from calls, and from device
 * activities where a process has windows. */
#ifndef HEC_DIAGNOSE_STATES_INFERRED_SURVEY_H
#define HEC_DIAGNOSE_STATES_INFERRED_SURVEY_H

#include "diagnose/states/inferred/device.h"
#include "diagnose/timeline/pass.h"

#define HEC_INFERRED_CALLS                                                                                             \
    (HEC_ACTIVITY_BIT(HEC_ACTIVITY_BURST) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_SYNC) | HEC_ACTIVITY_BIT(HEC_ACTIVITY_API))

#define HEC_INFERRED_QUEUED_NS 20000 /* state.h, rules 1 and 4: what has been launched begins sooner */

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
    double busy_ns, launches;  /* inside of windows */
    double rest_ns, waited_ns; /* there between activities: all, and with work launched, for what no trace shows */
    int64_t busy_until_ns, graph_ns;
};

struct hec_inferred_survey {
    const struct hec_timeline_tables *tables;
    struct hec_inferred_process *processes;
    size_t process_count;
    struct hec_inferred_process **by_track;
    struct hec_inferred_use *uses;
    size_t use_count;
    struct hec_inferred_rates rates;
    int only_device; /* of the run; -1: there are several, or none */
};

/* Begin; take calls in the order of time; decide; then where a process that is inferred has windows, what was seen in the
 * same order. The pass is to stay. 0 or HEC_ERR_NOMEM; free it all the same. */
int hec_inferred_survey_begin(struct hec_inferred_survey *survey, const struct hec_pass *pass);
int hec_inferred_survey_take(struct hec_inferred_survey *survey, const struct hec_activity *a, size_t count);
int hec_inferred_survey_decide(struct hec_inferred_survey *survey);
int hec_inferred_survey_seen(void *survey, const struct hec_activity *a, size_t count);
void hec_inferred_survey_free(struct hec_inferred_survey *survey);
/* Of a call or a device activity; NULL: none. */
struct hec_inferred_use *hec_inferred_survey_use(const struct hec_inferred_survey *survey,
                                                 const struct hec_activity *a);
bool hec_inferred_process_seen(struct hec_inferred_process *process, int64_t t_ns);
/* Windows leave too much of [first, last] out. */
bool hec_inferred_process_unseen(struct hec_inferred_process *process, int64_t first_ns, int64_t last_ns);
/* How many launches an activity of a thread stands for. */
double hec_inferred_launches(const struct hec_activity *a);

#endif
