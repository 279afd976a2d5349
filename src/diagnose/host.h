/* The host's and HEC's own rows of a summary. */
#ifndef HEC_DIAGNOSE_HOST_H
#define HEC_DIAGNOSE_HOST_H

#include "diagnose/result.h"

/* Fill out->host (but processes) and out->self; out->seconds and out->events are set. 0 or a negative error. */
int hec_host_fill(struct hec_meter *meter, struct hec_summary *out, struct hec_why *why);

#endif
