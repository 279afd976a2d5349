/* A set of levers on the way into a command: its environment, its place, and what is recorded of both. */
#pragma once

#include "act/levers.h"
#include "base/buf.h"
#include "base/error.h"
#include "launch/environ.h"
#include "launch/child.h"
#include "launch/session.h"

#define HEC_LEVERS_ENV "HEC_LEVERS" /* names and values for python/hec/levers */

struct hec_applied {
    char text[HEC_LEVERS_TEXT];
    struct hec_buf knobs; /* for HEC_KNOBS; empty: no lever is a knob */
    struct hec_environ environ;
    struct hec_placement placement;
    bool placed;
    char facts_text[HEC_LEVERS_MAX][2][HEC_SESSION_FACT];
    const char *facts[2 * HEC_LEVERS_MAX + 1]; /* key, text ... NULL: how each lever of the environment took effect */
};

/* For a command that has the environment `from` so far, and knobs set besides (as hec_session_options has them; NULL: those of the
 * environment). HEC_ERR_UNSUPPORTED: what a lever needs is not here, or the user has set what it would change. Free it in any case. */
int hec_apply(const struct hec_lever_set *set, char *const *from, const char *knobs, struct hec_applied *out,
              struct hec_why *why);
/* Into a session, which it has to outlive. */
void hec_apply_to(const struct hec_applied *applied, struct hec_session_options *session);
void hec_applied_free(struct hec_applied *applied);

/* Where a command runs best: beside its GPUs. */
#define HEC_PLACE_TEXT 160

/* CPUs and memory of the NUMA node of the GPUs that the command sees, and that in words. HEC_ERR_UNSUPPORTED: one node, GPUs at
 * several nodes, none, or none of its CPUs is ours. sysfs: of another machine, for tests; NULL: of this one. */
int hec_place_beside_devices(const struct hec_environ *environment, const char *sysfs, struct hec_placement *out,
                             char what[HEC_PLACE_TEXT], struct hec_why *why);
