/* `hec devices`: this machine's GPUs, and the table of known parts with the vendors' figures (model/part.def). */
#pragma once

#include "model/check.h"
#include "report/run/report.h"

#define HEC_DEVICES_SCHEMA "hec.devices/1"

/* devices: what the driver found, count of them (0: none; why is the caller's to say). parts: the table too.
 * json: an object {schema, devices[], parts[]} (parts only when asked for); otherwise text for a terminal.
 * Returns HEC_OK, HEC_ERR_NOMEM or HEC_ERR_LIMIT. */
int hec_report_devices(const struct hec_device *devices, int count, bool parts, bool json,
                       const struct hec_report_style *style, struct hec_buf *out);

/* ---- `hec doctor`: what can be measured here, what not, and what would enable it ---- */

#define HEC_DOCTOR_SCHEMA "hec.doctor/1"

/* json: an object {schema, checks[{area,name,status,finding,remedy,cost}], ok, limited, missing, omitted}; otherwise
 * text for a terminal, by area in the order of their first row. Returns HEC_OK, HEC_ERR_NOMEM or HEC_ERR_LIMIT. */
int hec_report_doctor(const struct hec_check_list *list, bool json, const struct hec_report_style *style,
                      struct hec_buf *out);
