/* Inside src/report: words and ratios of a timeline that several reports use. */
#pragma once

#include "diagnose/result.h"

const char *hec_copy_direction_name(enum hec_copy_direction direction); /* "host_to_device" */
const char *hec_copy_host_name(enum hec_copy_host host);                /* "pageable", "pinned", "other" */

/* How steps are known, after their number: "of the optimizer", "calls of the outermost module"; "": there are none. */
const char *hec_step_source_words(enum hec_step_source source);

/* The same of a run, with the module's class where it is known: "calls of UNet2DModel". */
#define HEC_STEPS_WORDS 96
const char *hec_steps_words(char out[HEC_STEPS_WORDS], const struct hec_summary *summary, enum hec_step_source source);
/* What a sample of its steps is, after their number: " (the loader's batch)"; "": the program says it, or nobody knows. */
const char *hec_samples_words(const struct hec_summary *summary, enum hec_step_source source);

const char *hec_step_part_words(int part); /* "forward"; of HEC_STEP_PARTS "other": launched in none of them */

/* Whether the interval of its joules is narrow enough for a figure. */
#define HEC_PART_BOUND_MAX 0.5
bool hec_part_joules_known(const struct hec_device_part *part);

/* On what the FLOPs of a step rest: " by PyTorch's matrix products ... (6 calls counted, +-3 %)". */
#define HEC_FLOPS_WORDS 176
#define HEC_FLOPS_ALIKE 0.005 /* of calls that differ by less nothing is said */
#define HEC_FLOPS_SIGMAS 2
const char *hec_flops_words(char out[HEC_FLOPS_WORDS], const struct hec_model_flops *flops);

/* Bytes a second while copying; NAN unknown. */
double hec_copy_rate(const struct hec_copy_total *total);
/* Share of the steps' time that the main thread spent in the loader, NAN unknown. */
double hec_step_data_share(const struct hec_step_summary *steps);

/* A kernel's name in at most `columns` characters (>= 8): without return type and parameters; then, while it is too long,
 * without namespaces, with the first template arguments or none, and at last cut in the middle. Returns out. */
char *hec_kernel_short(char *out, size_t size, const char *name, int columns);
