/* Inside src/diagnose: the table of kernels, one row a name and device. */
#ifndef HEC_DIAGNOSE_TIMELINE_KERNELS_H
#define HEC_DIAGNOSE_TIMELINE_KERNELS_H

#include "diagnose/timeline/device.h"

/* The rows of one device are appended to *rows (malloc'ed), most seconds first; capability: of that device, or NULL
 * where unknown; devices: so many share the room for rows. 0 or HEC_ERR_NOMEM. */
int hec_timeline_kernel_rows(const struct hec_timeline_device *d, const struct hec_timeline_tables *tables,
                             const struct hec_device *capability, size_t devices, struct hec_kernel_row **rows,
                             int *count);

#endif
