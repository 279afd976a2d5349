#include "model/part.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NAME_MAX_LENGTH 96

#define HEC_PART_SOURCE(id, text) static const char source_##id[] = text;
#define HEC_PART(...)
#include "model/part.def"
#undef HEC_PART_SOURCE
#undef HEC_PART

static const struct hec_part table[] = {
#define HEC_PART_SOURCE(id, text)
#define HEC_PART(id, name, workload, names, fp64, fp64_tensor, fp32, tf32, fp16, fp8, int8, fp4, bandwidth, memory,    \
                 tdp, sms, source, note)                                                                               \
    {#id, name, HEC_PART_##workload, names, {fp64, fp64_tensor, fp32, tf32, fp16, fp8, int8, fp4}, bandwidth, memory,  \
     tdp, sms,  source_##source,     note},
#include "model/part.def"
#undef HEC_PART_SOURCE
#undef HEC_PART
};

int hec_part_count(void) {
    return (int)(sizeof table / sizeof table[0]);
}

const struct hec_part *hec_part_at(int index) {
    return index >= 0 && index < hec_part_count() ? &table[index] : NULL;
}

static bool vendor_word(const char *word, size_t length) {
    /* older drivers write "Tesla T4" and "A100-SXM4-40GB", newer ones "NVIDIA …" */
    static const char *const words[] = {"nvidia", "tesla", "geforce", "amd", "instinct"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return true;
    return false;
}

/* Lower case, words joined by one space, vendor words left out. False when it does not fit. */
static bool normalise(const char *text, size_t length, char out[NAME_MAX_LENGTH]) {
    size_t used = 0, word = 0; /* word: where the current word starts in out */
    for (size_t i = 0; i <= length; i++) {
        bool inside = i < length && isalnum((unsigned char)text[i]);
        if (inside) {
            if (used + 2 >= NAME_MAX_LENGTH)
                return false;
            out[used++] = (char)tolower((unsigned char)text[i]);
        } else if (used > word) {
            if (vendor_word(out + word, used - word))
                used = word;
            else
                out[used++] = ' ';
            word = used;
        }
    }
    if (used > 0)
        used--; /* the last space */
    out[used] = '\0';
    return true;
}

static bool matches(const struct hec_part *part, const char *wanted) {
    char known[NAME_MAX_LENGTH];
    for (const char *at = part->driver_names; *at;) {
        size_t length = strcspn(at, "|");
        if (normalise(at, length, known) && strcmp(known, wanted) == 0)
            return true;
        at += length;
        at += *at == '|';
    }
    return false;
}

const struct hec_part *hec_part_find(const char *name) {
    char wanted[NAME_MAX_LENGTH];
    if (!name || !normalise(name, strlen(name), wanted) || wanted[0] == '\0')
        return NULL;
    for (int i = 0; i < hec_part_count(); i++)
        if (matches(&table[i], wanted))
            return &table[i];
    return NULL;
}

double hec_part_link_bytes_per_s(const struct hec_part *part) {
    static const struct {
        const char *id;
        double gb_per_s;
    } links[] = {
#define HEC_PART_SOURCE(id, text)
#define HEC_PART(...)
#define HEC_PART_LINK(id, gb_per_s) {#id, gb_per_s},
#include "model/part.def"
#undef HEC_PART_SOURCE
#undef HEC_PART
    };
    for (size_t i = 0; part && i < sizeof links / sizeof links[0]; i++)
        if (strcmp(links[i].id, part->id) == 0)
            return links[i].gb_per_s * 1e9 / 2;
    return NAN;
}

double hec_part_peak_mhz(const struct hec_part *part, int cuda_major, int cuda_minor) {
    static const struct {
        int major, minor; /* -1: any */
        double flop;      /* of an SM a clock, dense */
    } rows[] = {{7, -1, 1024}, {8, 0, 2048}, {8, -1, 1024}, {9, -1, 4096}, {10, -1, 8192}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].major == cuda_major && (rows[i].minor < 0 || rows[i].minor == cuda_minor))
            return part->peak_tflops[HEC_PRECISION_FP16] * 1e6 / (part->sms * rows[i].flop);
    return NAN;
}

const char *hec_part_class_name(enum hec_part_class workload) {
    static const char *const names[HEC_PART_CLASS_COUNT] = {"training", "inference", "edge", "workstation"};
    return names[workload];
}

const char *hec_precision_name(enum hec_precision precision) {
    static const char *const names[HEC_PRECISION_COUNT] = {"fp64", "fp64_tensor", "fp32", "tf32",
                                                           "fp16", "fp8",         "int8", "fp4"};
    return names[precision];
}

double hec_part_flop_per_joule(const struct hec_part *part, enum hec_precision precision) {
    double peak = part->peak_tflops[precision];
    if (isnan(peak) || isnan(part->tdp_w) || part->tdp_w <= 0)
        return NAN;
    return peak * 1e12 / part->tdp_w;
}
