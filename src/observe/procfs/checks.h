/* What of the host can be observed here: rows for `hec doctor`. */
#ifndef HEC_OBSERVE_PROCFS_CHECKS_H
#define HEC_OBSERVE_PROCFS_CHECKS_H

#include "observe/collector.h"

/* Appends the rows of area "host". Under proc_path/.. lie the files that show a container and its CPU quota. */
void hec_procfs_check(const struct hec_observe_options *options, struct hec_check_list *list);

#endif
