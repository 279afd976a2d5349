/* Whether what enters a command is here: rows for `hec doctor`, areas "trace" and "python"; and what hec itself
 * has left. */
#ifndef HEC_CLI_CHECKS_H
#define HEC_CLI_CHECKS_H

#include "model/check.h"

#include <stdbool.h>

/* cuda_path: the CUDA driver's library, NULL: the system's. cupti_folder: where a libcupti is, NULL: looked for in the
 * toolkit and in the Python packages of this user; "": there is none. */
void hec_check_trace(const char *cuda_path, const char *cupti_folder, struct hec_check_list *list);
/* What the guard (launch/guard.h) remembers; forget: drops it first. simulated: of simulated GPUs. */
void hec_check_guard(bool simulated, bool forget, struct hec_check_list *list);
/* What hec has changed of power limits and clocks (act/power_journal.h), area "power"; put_back: tries that first. */
void hec_check_power(bool put_back, struct hec_check_list *list);
void hec_check_python(struct hec_check_list *list);

#endif
