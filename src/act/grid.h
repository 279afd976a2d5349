/* The settings that a sweep tries: every combination of the values of a few parameters, put into the words of a command. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define HEC_GRID_PARAMETERS_MOST 4
#define HEC_GRID_ARMS_MOST 64 /* each is run several times */
#define HEC_GRID_NAME 32

struct hec_grid_parameter {
    char name[HEC_GRID_NAME];
    char **value; /* as they are put in */
    int count;
    bool ordered; /* all of them are numbers, and differ: number[] */
    double number[HEC_GRID_ARMS_MOST];
    bool knob;         /* given as a knob of that name */
    const char *lever; /* of the reserved names power (W) and clock (MHz): the lever that sets it; NULL: none */
};

struct hec_grid {
    struct hec_grid_parameter parameter[HEC_GRID_PARAMETERS_MOST];
    int parameters, arms; /* arms: the product of their counts, the last parameter changing first */
    int batch;            /* {accumulate} is effective_batch by the value of this one, where that is not 0 */
    int64_t effective_batch;
};

/* "NAME=V1,V2,...": a value is a text, or a range: "32..1024*2" (doubling), "0..16+4", "0..3". An empty grid is all 0. HEC_ERR_USAGE
 * with a sentence. */
int hec_grid_add(struct hec_grid *grid, const char *text, struct hec_why *why);
void hec_grid_free(struct hec_grid *grid);
/* The parameter of that name is given as a knob. */
int hec_grid_set_knob(struct hec_grid *grid, const char *name, struct hec_why *why);
/* {accumulate} becomes effective_batch / the value of the parameter `batch`, which each of its values has to divide. */
int hec_grid_accumulate(struct hec_grid *grid, const char *batch, int64_t effective_batch, struct hec_why *why);
/* Every parameter is in the words or a knob. */
int hec_grid_check(const struct hec_grid *grid, char *const *words, struct hec_why *why);

const char *hec_grid_value(const struct hec_grid *grid, int arm, int parameter);

/* The command of an arm: {NAME} in each word replaced. *out ends with NULL, and is freed with hec_grid_free_words. HEC_ERR_NOMEM. */
int hec_grid_words(const struct hec_grid *grid, int arm, char *const *words, char ***out);
void hec_grid_free_words(char **words);
