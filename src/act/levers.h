/* Levers: what HEC changes of a command from outside. The table is levers.def; those of a framework are applied by
 * python/hec/levers in the program, all others by variables and placement of the command. Nothing outlives the command. */
#pragma once

#include "base/error.h"
#include "diagnose/finding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hec_lever_place {
    HEC_LEVER_PLACE_PROGRAM,
    HEC_LEVER_PLACE_DEVICE,
    HEC_LEVER_PLACE_TORCH,
    HEC_LEVER_PLACE_JAX,
    HEC_LEVER_PLACE_TENSORFLOW,
    HEC_LEVER_PLACES
};
enum hec_lever_risk {
    HEC_LEVER_RISK_EXACT,
    HEC_LEVER_RISK_ULP,
    HEC_LEVER_RISK_DRAWS,
    HEC_LEVER_RISK_NUMERICS,
    HEC_LEVER_RISK_SEMANTICS,
    HEC_LEVER_RISKS
};

struct hec_lever_row {
    const char *name;
    enum hec_lever_place place;
    enum hec_lever_risk risk;
    const char *family, *value;
    uint64_t answers;                /* bits (1 << enum hec_lever_id) of what findings ask for */
    bool always;                     /* worth a trial without a finding */
    bool inference, training;        /* nothing to do in a program that trains; in one that does not */
    bool ranks;                      /* nothing to do in a job of one rank */
    bool live;                       /* switched while the program runs, between two steps */
    bool convolutions;               /* nothing to do in a program without them */
    bool passes;                     /* nothing to do in a program whose steps have one backward pass */
    bool named;                      /* changes semantics, and is applied where it is named */
    const char *what, *needs, *code; /* code: what to paste; the name of the value stands in it for that */
};

const struct hec_lever_row *hec_lever_row(int i); /* NULL: there are no more */
const struct hec_lever_row *hec_lever_find(const char *name);
const char *hec_lever_place_name(enum hec_lever_place place); /* "program", "pytorch" ... */
const char *hec_lever_risk_name(enum hec_lever_risk risk);    /* "exact" ... */

/* A variable that it sets, and how that joins what is there; NULL: no more. */
enum hec_lever_how { HEC_LEVER_SET, HEC_LEVER_LIST /* after a comma */, HEC_LEVER_PATHS /* after a colon */ };
struct hec_lever_variable {
    const char *name;
    enum hec_lever_how how;
    const char *value; /* %s: the lever's */
};
const struct hec_lever_variable *hec_lever_variable(const struct hec_lever_row *row, int i);
bool hec_lever_needs_value(const struct hec_lever_row *row);

#define HEC_LEVERS_MAX 24
#define HEC_LEVER_VALUE 24
#define HEC_LEVER_NAME 72 /* with "knob." before the name of a knob */
#define HEC_LEVER_TEXT (HEC_LEVER_NAME + HEC_LEVER_VALUE)
#define HEC_LEVERS_TEXT 1536

struct hec_lever_use {
    const struct hec_lever_row *row; /* hec_lever_knob: a knob of the program */
    char value[HEC_LEVER_VALUE];     /* "": it chooses */
    char knob[64];                   /* its name, of a knob; else "" */
};
struct hec_lever_set {
    struct hec_lever_use list[HEC_LEVERS_MAX];
    int count;
};

/* The row of all knobs: none of the table. A knob of the program is in sets as a lever is, "knob.NAME=VALUE": it is set by HEC_KNOBS, and
 * what it changes of the numbers nobody knows. */
const struct hec_lever_row *hec_lever_knob(void);
/* "tf32", "knob.batch" */
char *hec_lever_use_name(const struct hec_lever_use *use, char out[HEC_LEVER_NAME]);
/* The same with "=VALUE", where it has one: as hec_lever_set_add takes it. */
char *hec_lever_use_text(const struct hec_lever_use *use, char out[HEC_LEVER_TEXT]);
/* They cannot be in one set: one of a family, another value of a knob. */
bool hec_lever_excludes(const struct hec_lever_use *one, const struct hec_lever_use *other);

/* "tf32,loader_workers=8,knob.batch=64" after what is in the set. HEC_ERR_USAGE: no such lever, a value that it does not take, one that
 * is in the set, or another of its family. */
int hec_lever_set_add(struct hec_lever_set *set, const char *text, struct hec_why *why);
/* What to paste, with the lever's value where it has one. Cut to size. */
void hec_lever_paste(const struct hec_lever_use *use, char *out, size_t size);
void hec_lever_set_text(const struct hec_lever_set *set, char text[HEC_LEVERS_TEXT]);
