/* Where the time and the energy of each device went: states, ledger, source lines and watts put together. */
#ifndef HEC_DIAGNOSE_DIAGNOSIS_H
#define HEC_DIAGNOSE_DIAGNOSIS_H

#include "diagnose/states/calls.h"
#include "diagnose/states/gaps.h"
#include "diagnose/states/ledger.h"
#include "diagnose/states/source_lines.h"
#include "diagnose/states/source_modules.h"
#include "diagnose/states/steady.h"
#include "diagnose/watts/watts.h"

/* Source lines kept of a state and device. */
#define HEC_DIAGNOSIS_LINES 10
/* Modules kept of a device. */
#define HEC_DIAGNOSIS_MODULES 10

/* What else is known of a device of the ledger. */
struct hec_device_result {
    struct hec_call_facts calls;
    struct hec_step_summary steps; /* what its processes do; count 0: none */
    struct hec_watts watts;
};

struct hec_diagnosis {
    struct hec_ledger ledger;       /* devices with activities, and those that are held and unused */
    struct hec_source_lines source; /* of idle states; empty without stack samples */
    struct hec_ledger steady;       /* seconds in the steady part alone (steady.h), device by device as in ledger */
    struct hec_source_lines steady_source;
    struct hec_source_modules modules; /* what launched compute; empty where no ranges or operators are known */
    struct hec_gaps gaps;              /* of the steady part */
    struct hec_device_result *results; /* by ledger device; malloc'ed, NULL: none */
};

struct hec_meter;
struct hec_device_summary;
struct hec_view;
struct hec_diagnosis_builder;

/* One pass (pass.h) feeds the ledger, the source lines and the watts. Seconds are always given; joules where the
 * device's energy is valid and its power readings span enough, and then the rows add up to that energy. A device's
 * watts by state come from its power history and the windows between the values of its energy counter (unmix.h), and
 * where those do not separate them from what is known of states beforehand (pricing.h), with bounds that are as wide;
 * of time that was not traced they count as those of the state that it is counted for.
 *
 * Of a trace in brief (timeline.h) there are ledgers, lines and watts. The pass is to stay until the end. watts: devices
 * have telemetry, which is to be read. Pure; linear in time; memory grows with what ledger.h, calls.h, source_lines.h,
 * inferred.h and watts.h say, and 64 bytes a reading of at most 2.8 hours: of longer runs every nth minute counts. 0 or
 * HEC_ERR_NOMEM. */
#define HEC_DIAGNOSIS_CONSUMERS 4
/* view: gets the pieces that the ledger is made of, unless it is NULL. */
int hec_diagnosis_begin(const struct hec_pass *pass, bool watts, struct hec_view *view,
                        struct hec_diagnosis_builder **out,
                        struct hec_pass_consumer *consumers); /* HEC_DIAGNOSIS_CONSUMERS of them */
/* timeline: of the same pass, complete. devices: energies filled in. Frees the builder in any case: 0,
 * HEC_ERR_NOMEM or what the input returned; on failure *out is empty. */
int hec_diagnosis_end(struct hec_diagnosis_builder *builder, struct hec_meter *meter,
                      const struct hec_timeline *timeline, const struct hec_device_summary *devices, int device_count,
                      struct hec_diagnosis *out, struct hec_why *why);
void hec_diagnosis_abandon(struct hec_diagnosis_builder *builder); /* NULL is fine */
void hec_diagnosis_free(struct hec_diagnosis *diagnosis);

/* The ledger of a device, and in *why (may be NULL) why it has no joules ("": it has). NULL:
 * the device has no activities. */
const struct hec_ledger_device *hec_diagnosis_of(const struct hec_diagnosis *diagnosis, int device, const char **why);

/* On what the watts of a device's ledger rest, a phrase; "": it has no joules, or no ledger. */
const char *hec_diagnosis_how(const struct hec_diagnosis *diagnosis, int device);

/* NULL: none of that device. */
const struct hec_ledger_device *hec_diagnosis_steady(const struct hec_diagnosis *diagnosis, int device);
const struct hec_call_facts *hec_diagnosis_calls(const struct hec_diagnosis *diagnosis, int device);
const struct hec_step_summary *hec_diagnosis_steps(const struct hec_diagnosis *diagnosis, int device);
const struct hec_class_profile *hec_diagnosis_profile(const struct hec_diagnosis *diagnosis, int device);

#endif
