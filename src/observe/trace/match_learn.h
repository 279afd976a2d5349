/* What matching has learned of a process: small tables of fixed size; the least trusted entry makes room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEC_MATCH_NAMES 8192u  /* functions of a large framework that one process launches: some thousands */
#define HEC_MATCH_STEPS 16384u /* pairs of them that follow each other */

struct hec_match_learned {
    struct hec_match_fact {
        uint64_t key; /* 0: empty */
        uint32_t value;
        uint32_t trust;
    } names[HEC_MATCH_NAMES], steps[HEC_MATCH_STEPS];
};

enum hec_match_says { HEC_MATCH_CONFLICT, HEC_MATCH_UNKNOWN, HEC_MATCH_AGREE };

/* Whether the function has this name. */
enum hec_match_says hec_match_name_says(const struct hec_match_learned *learned, uint64_t func, uint32_t name);
void hec_match_name_seen(struct hec_match_learned *learned, uint64_t func, uint32_t name);
/* How far ids advance over a step from one call to the next; false: it is not known or it varies. */
bool hec_match_step_get(const struct hec_match_learned *learned, uint64_t key, uint32_t *ids);
void hec_match_step_seen(struct hec_match_learned *learned, uint64_t key, uint32_t ids);
