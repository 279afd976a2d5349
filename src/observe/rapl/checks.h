/* Whether CPU and DRAM energy can be read here: rows for `hec doctor`. */
#ifndef HEC_OBSERVE_RAPL_CHECKS_H
#define HEC_OBSERVE_RAPL_CHECKS_H

#include "model/check.h"

/* Appends the rows of area "cpu energy". powercap_path: NULL for /sys/class/powercap; cpuinfo_path: NULL for
 * /proc/cpuinfo, which shows a virtual machine. */
void hec_rapl_check(const char *powercap_path, const char *cpuinfo_path, struct hec_check_list *list);

#endif
