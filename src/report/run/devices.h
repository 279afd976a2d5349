/* `hec devices`: this machine's GPUs, and the table of known parts with the vendors' figures (model/part.def). */
#ifndef HEC_REPORT_RUN_DEVICES_H
#define HEC_REPORT_RUN_DEVICES_H

#include "report/run/report.h"

#define HEC_DEVICES_SCHEMA "hec.devices/1"

/* devices: what the driver found, count of them (0: none; why is the caller's to say). parts: the table too.
 * json: an object {schema, devices[], parts[]} (parts only when asked for); otherwise text for a terminal.
 * Returns HEC_OK, HEC_ERR_NOMEM or HEC_ERR_LIMIT. */
int hec_report_devices(const struct hec_device *devices, int count, bool parts, bool json,
                       const struct hec_report_style *style, struct hec_buf *out);

#endif
