/* `hec doctor`: what can be measured here, what not, and what would enable it. */
#ifndef HEC_REPORT_RUN_DOCTOR_H
#define HEC_REPORT_RUN_DOCTOR_H

#include "model/check.h"
#include "report/run/report.h"

#define HEC_DOCTOR_SCHEMA "hec.doctor/1"

/* json: an object {schema, checks[{area,name,status,finding,remedy,cost}], ok, limited, missing, omitted}; otherwise
 * text for a terminal, by area in the order of their first row. Returns HEC_OK, HEC_ERR_NOMEM or HEC_ERR_LIMIT. */
int hec_report_doctor(const struct hec_check_list *list, bool json, const struct hec_report_style *style,
                      struct hec_buf *out);

#endif
