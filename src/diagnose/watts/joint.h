/* States and kernel classes of a device priced together.
 *
 * pricing.h takes compute for one class. Where its kernels differ much (small ones of 130 W between products of 670 W)
 * that is wrong for the states beside them too: the launches among small kernels would pay for what the kernels do not
 * take. Where the readings separate kernel classes, they and the states are priced in one. Figures:
 * docs/decisions/0007-unmixing.md. */
#pragma once

#include "diagnose/states/ledger.h"
#include "diagnose/watts/unmix.h"

struct hec_energy;

/* The classes of an unmixing: all idle states are one but for startup and tail, which may be without a context. */
enum { HEC_JOINT_EDGE, HEC_JOINT_IDLE, HEC_JOINT_COPY, HEC_JOINT_COMM, HEC_JOINT_FIRST };

struct hec_joint {
    struct hec_unmix *unmix; /* readings and pieces are in it; from here on also the total and beliefs */
    int groups;
    const int *group;        /* of each kernel class, FIRST or more */
    const int64_t *tight_ns; /* of the launch state: in pieces that count as this group, of what was traced */
    double limit_w;          /* NAN unknown */
    const struct hec_energy *energy;
};

/* Sets of classes whose samples count by residuals of their own, for hec_unmix_options. class_of: by group, the kernel
 * class. */
void hec_joint_quiet(int groups, const int *class_of, struct hec_unmix_options *options);

/* *done: rows and kernel classes have been priced anew. It is false, and nothing changed, where idling, or most of
 * compute class by class, was never seen alone for 0.1 s, where classes do not differ by much, and where one is not
 * known well enough. 0 or HEC_ERR_NOMEM. */
int hec_joint_price(struct hec_ledger_device *ledger, const struct hec_joint *joint, bool *done);
