/* dcgm-exporter's command line and variables, for `hec agent` in its place (exporter.def). */
#pragma once

#include "cli/cli.h"

/* Before hec_args_parse, argv[0] being the verb: options that have no counterpart are said and taken out, and the rest is put as HEC writes
 * it: --kubernetes=true, -collectors FILE. */
void hec_exporter_arguments(int *argc, char **argv);
/* Variables of those without a counterpart. */
void hec_exporter_variables(struct hec_args *args);
/* As Go reads a switch; what is none of its words is off. */
bool hec_exporter_is_true(const char *value);
