#include "diagnose/finding.h"

#include "base/names.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const causes[] = {
#define HEC_CAUSE(id, name, lever) #name,
#include "diagnose/cause.def"
};

const char *hec_cause_name(enum hec_cause cause) {
    return (unsigned)cause < HEC_CAUSE_COUNT ? causes[cause] : "?";
}

enum hec_cause hec_cause_find(const char *name) {
    for (size_t i = 0; i < HEC_CAUSE_COUNT; i++)
        if (strcmp(causes[i], name) == 0)
            return (enum hec_cause)i;
    return HEC_CAUSE_COUNT;
}

static const struct {
    const char *name, *unit, *more;
} evidence[] = {
#define HEC_EVIDENCE(id, name, unit, more) {name, unit, more},
#include "diagnose/evidence.def"
};

static const struct {
    const char *name, *parameters;
} levers[] = {
#define HEC_LEVER(id, edit, name, parameters) {name, parameters},
#include "diagnose/lever.def"
};

const char *hec_evidence_name(enum hec_evidence_id id) {
    return (unsigned)id < HEC_EVIDENCE_COUNT ? evidence[id].name : "?";
}

const char *hec_evidence_unit(enum hec_evidence_id id) {
    return (unsigned)id < HEC_EVIDENCE_COUNT ? evidence[id].unit : "?";
}

const char *hec_evidence_more(enum hec_evidence_id id) {
    return (unsigned)id < HEC_EVIDENCE_COUNT ? evidence[id].more : "";
}

const char *hec_lever_name(enum hec_lever_id id) {
    return (unsigned)id < HEC_LEVER_COUNT ? levers[id].name : "?";
}

const char *hec_lever_parameters(enum hec_lever_id id) {
    return (unsigned)id < HEC_LEVER_COUNT ? levers[id].parameters : "";
}

bool hec_finding_tells(const struct hec_finding *f) {
    bool may = f->cause == HEC_CAUSE_HANG || f->cause == HEC_CAUSE_QUIET || f->cause == HEC_CAUSE_COMPILE;
    return may && isnan(f->seconds.best) && isnan(f->joules.best);
}

HEC_NAME_OF(hec_scale_name, enum hec_scale, "unknown", "optimise", "scale_out")
