/* Known GPU parts (part.def): peaks, bandwidth and power as their vendors state them, to compare a measurement with.
 * Vendors' figures, never measurements: label them so. */
#pragma once

enum hec_part_class {
    HEC_PART_TRAINING,
    HEC_PART_INFERENCE,
    HEC_PART_EDGE,
    HEC_PART_WORKSTATION,
    HEC_PART_CLASS_COUNT
};

enum hec_precision {
    HEC_PRECISION_FP64, /* vector pipe */
    HEC_PRECISION_FP64_TENSOR,
    HEC_PRECISION_FP32, /* vector pipe */
    HEC_PRECISION_TF32,
    HEC_PRECISION_FP16, /* and bf16 */
    HEC_PRECISION_FP8,
    HEC_PRECISION_INT8,
    HEC_PRECISION_FP4,
    HEC_PRECISION_COUNT
};

struct hec_part {
    const char *id;   /* "H200_SXM": stable, used in JSON */
    const char *name; /* for people */
    enum hec_part_class workload;
    const char *driver_names;                /* '|' between alternatives */
    double peak_tflops[HEC_PRECISION_COUNT]; /* dense; 0: no such unit, NAN: unknown */
    double memory_gb_per_s;                  /* decimal; NAN: unknown */
    double memory_gb;
    double tdp_w;
    double sms;         /* streaming multiprocessors; NAN: unknown, or another vendor's units */
    const char *source; /* where the figures were checked, with a year; one string for all rows that share it */
    const char *note;   /* "" when there is none */
};

int hec_part_count(void);
/* NULL when index is out of range. The order is that of the table: by generation. */
const struct hec_part *hec_part_at(int index);
/* The part that a driver calls by this name ("NVIDIA H200", "NVIDIA A100-SXM4-80GB"); NULL when it is not in the table.
 * A slice of a part ("… MIG 1g.10gb") and a virtual GPU ("GRID …") are not the part: NULL. */
const struct hec_part *hec_part_find(const char *name);

/* Bytes a second that it sends over NVLink, at most: half of what its vendor states for both ways. NAN: it is not known to have any. */
double hec_part_link_bytes_per_s(const struct hec_part *part);

/* MHz at which a part of this compute capability reaches its dense peak of half-precision products, by what one of its SMs does a
 * clock (NVIDIA's white papers of V100, A100, H100, Blackwell); NAN: not known. */
double hec_part_peak_mhz(const struct hec_part *part, int cuda_major, int cuda_minor);

const char *hec_part_class_name(enum hec_part_class workload); /* "training" */
const char *hec_precision_name(enum hec_precision precision);  /* "fp16": stable, used in JSON */

/* Derived: peak FLOP/s divided by the maximum power, that is FLOP per joule if the peak were reached at that power,
 * which real programs do not. NAN when either is unknown, 0 when the part has no such unit. */
double hec_part_flop_per_joule(const struct hec_part *part, enum hec_precision precision);
