/* --with LEVER,... and --with @RECEIPT of run and ab. */
#ifndef HEC_CLI_WITH_H
#define HEC_CLI_WITH_H

#include "act/levers.h"
#include "cli/cli.h"

/* Of all --with that were given. HEC_ERR_USAGE and others after printing. */
int hec_with_parse(const struct hec_args *args, struct hec_lever_set *set);

#endif
