#ifndef HEC_CLI_LOAD_LEVERS_H
#define HEC_CLI_LOAD_LEVERS_H

#include "diagnose/result.h"
#include "store/reader.h"

/* Returns how many there are. */
int hec_load_levers(struct hec_reader *reader, struct hec_lever_summary list[HEC_SUMMARY_LEVERS_MAX]);

#endif
