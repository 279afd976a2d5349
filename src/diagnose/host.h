/* The host's and HEC's own rows of a summary. */
#ifndef HEC_DIAGNOSE_HOST_H
#define HEC_DIAGNOSE_HOST_H

#include "diagnose/result.h"

/* Fill out->host (but processes) and out->self; out->seconds and out->events are set. 0 or a negative error. */
int hec_host_fill(struct hec_meter *meter, struct hec_summary *out, struct hec_why *why);

/* The sentence of the event "NAME: sentence" that says why a source is unavailable; NULL when there is none. */
const char *hec_source_unavailable(const struct hec_summary *summary, const char *name);

#endif
