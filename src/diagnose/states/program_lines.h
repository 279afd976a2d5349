/* Where a program's main threads were: lines by their share of the stack samples, whatever a device did then. For runs of which no
 * device's activities are known. */
#pragma once

#include "diagnose/states/source_lines.h"

/* Fed by a pass (pass.h), whose tables are to stay until the end. NULL: no memory. */
struct hec_pass_consumer;
struct hec_program_lines_builder;
struct hec_program_lines_builder *hec_program_lines_begin(const struct hec_timeline_tables *tables,
                                                          struct hec_pass_consumer *consumer);
/* At most `most`, of device HEC_DEVICE_NONE and state host; seconds and joules are NAN. Frees the builder. 0 or HEC_ERR_NOMEM. */
int hec_program_lines_end(struct hec_program_lines_builder *builder, int most, struct hec_source_lines *out);
void hec_program_lines_abandon(struct hec_program_lines_builder *builder); /* NULL is fine */
