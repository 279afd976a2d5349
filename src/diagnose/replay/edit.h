/* What-ifs: small edits of a schedule, by name. */
#ifndef HEC_DIAGNOSE_REPLAY_EDIT_H
#define HEC_DIAGNOSE_REPLAY_EDIT_H

#include "diagnose/finding.h"
#include "diagnose/replay/replay.h"

enum hec_edit {
#define HEC_REPLAY_EDIT(id, name, cause, least, most, value) HEC_EDIT_##id,
#include "diagnose/replay/edits.def"
    HEC_EDIT_COUNT
};

struct hec_edit_info {
    const char *name;
    enum hec_cause cause; /* whose answer it is */
    double least, most,
        value; /* what may be given, and what holds where nothing is; NAN: something must be; least == most: nothing may be */
};

const struct hec_edit_info *hec_edit_info(enum hec_edit edit);
enum hec_edit hec_edit_find(const char *name, size_t length); /* HEC_EDIT_COUNT: none */
struct hec_replay_edit hec_edit_with(enum hec_edit edit, double value);

#endif
