/* --with LEVER,... and --with @RECEIPT of run and ab. */
#pragma once

#include "act/power_levers.h"
#include "cli/cli.h"

/* Of all --with that were given. HEC_ERR_USAGE and others after printing. */
int hec_with_parse(const struct hec_args *args, struct hec_lever_set *set);

/* The guard that levers of devices need (hec_power_guard_open), on a simulated machine or (NULL) this one; NULL where there are
 * none. An error after printing. */
int hec_with_guard(const struct hec_args *args, const struct hec_lever_set *set, const char *simulated,
                   struct hec_power_guard **guard);
/* Everything is as it was, or a message says what is not. NULL is fine. */
int hec_with_guard_close(struct hec_power_guard *guard);
