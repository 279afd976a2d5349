/* The dossier of a device, built by hand: what it points to lies in one struct. */
#ifndef TESTS_UNIT_FAKE_DOSSIER_H
#define TESTS_UNIT_FAKE_DOSSIER_H

#include "diagnose/result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct fake_dossier {
    struct hec_device_timeline timeline;
    struct hec_kernel_row rows[8];
    struct hec_ledger_device ledger, steady;
    struct hec_gap_facts gaps;
    struct hec_call_facts calls;
    struct hec_watts watts;
    struct hec_source_line lines[8]; /* of both lists, which are empty */
};

/* All zero, and all there: a test takes away what its device does not have. */
static inline struct hec_device_diagnosis fake_dossier(struct fake_dossier *of, int device) {
    memset(of, 0, sizeof *of);
    of->timeline.device = of->ledger.device = of->steady.device = of->gaps.device = of->calls.device = device;
    of->timeline.rows = of->rows;
    return (struct hec_device_diagnosis){.readings.device.index = device,
                                         .timeline = &of->timeline,
                                         .ledger = &of->ledger,
                                         .steady = &of->steady,
                                         .gaps = &of->gaps,
                                         .calls = &of->calls,
                                         .watts = &of->watts,
                                         .source.lines = of->lines,
                                         .steady_source.lines = of->lines};
}

/* Nothing of it was traced. */
static inline void fake_dossier_untraced(struct hec_device_diagnosis *d) {
    d->timeline = NULL;
    d->ledger = d->steady = NULL;
    d->gaps = NULL;
    d->calls = NULL;
    d->watts = NULL;
}

/* So many seconds in calls of mean_us; of a name that tells class and precision. */
static inline struct hec_kernel_row *fake_kernel(struct fake_dossier *of, const char *name, double seconds,
                                                 double mean_us) {
    struct hec_kernel_row *k = &of->rows[of->timeline.row_count++];
    *k = (struct hec_kernel_row){
        .device = of->timeline.device, .seconds = seconds, .mean_us = mean_us, .grid = {-1, -1, -1}};
    k->count = llround(seconds * 1e6 / mean_us);
    k->kernel_class = hec_kernel_class_of(name);
    k->precision = hec_kernel_precision_of(name);
    snprintf(k->name, sizeof k->name, "%s", name);
    return k;
}

#endif
