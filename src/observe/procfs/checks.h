/* What of the host can be observed here: rows for `hec doctor`. */
#ifndef HEC_OBSERVE_PROCFS_CHECKS_H
#define HEC_OBSERVE_PROCFS_CHECKS_H

#include "model/check.h"

/* Appends the rows of area "host". proc_path: NULL for /proc. root_path: prefix of the files that show a container and
 * its CPU quota, NULL for none. */
void hec_procfs_check(const char *proc_path, const char *root_path, struct hec_check_list *list);

#endif
