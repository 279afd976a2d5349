/* Which processes and devices of a run belong together, and what waiting for each other costs them: found once, asked by rules
 * and words. */
#ifndef HEC_DIAGNOSE_JOB_H
#define HEC_DIAGNOSE_JOB_H

#include "diagnose/result.h"

struct hec_timeline_tables;

/* The ranks, by the tracks of their devices' streams. 0 or HEC_ERR_NOMEM. */
int hec_job_ranks(const struct hec_timeline_tables *tables, struct hec_job_diagnosis *job);
/* What belongs together, and the collectives, by the dossiers, which are complete. job.size is set. */
void hec_job_find(const struct hec_summary *summary, struct hec_job_diagnosis *job);

#endif
