/* What a finding says, by ids and numbers: never by its words, which are the report's. */
#ifndef TESTS_UNIT_FINDING_NUMBERS_H
#define TESTS_UNIT_FINDING_NUMBERS_H

#include "diagnose/finding.h"

#include <math.h>
#include <stddef.h>

/* The fact in a finding's title or evidence; NULL: it does not say that. */
static inline const struct hec_evidence *fact_of(const struct hec_finding *f, enum hec_evidence_id id) {
    for (int i = 0; i < f->evidence_count; i++)
        if (f->evidence[i].what == id)
            return &f->evidence[i];
    return f->title.what == id ? &f->title : NULL;
}

static inline bool is_near(double value, double expected) {
    return fabs(value - expected) <= 1e-9 + 1e-6 * fabs(expected);
}

/* That fact, and its first number is this. */
static inline bool shows(const struct hec_finding *f, enum hec_evidence_id id, double value) {
    const struct hec_evidence *fact = fact_of(f, id);
    return fact && is_near(fact->value[0], value);
}

/* The lever, and its first parameter is this (0 where it has none). */
static inline bool answers(const struct hec_finding *f, enum hec_lever_id id, double parameter) {
    return f->lever.id == id && is_near(f->lever.value[0], parameter);
}

/* Each fact has a number that is known, unless it is about no number at all. */
static inline bool has_numbers(const struct hec_finding *f) {
    for (int i = 0; i < f->evidence_count; i++)
        if (!isfinite(f->evidence[i].value[0]) && hec_evidence_unit(f->evidence[i].what)[0])
            return false;
    return f->evidence_count > 0 && f->evidence_count <= HEC_EVIDENCE_MAX && isfinite(f->title.value[0]);
}

#endif
