/* What a device took in a part of the run.
 *
 * Of intervals: between two readings of the energy counter its value is shared out as the power samples between them say, and
 * where there are none evenly in time. Readings are a second apart or more; the counter is right at each, so errors at the
 * instants do not add up. Where no counter was read, or it went backwards, the power samples say all.
 *
 * Of a part in any number of pieces (a phase has millions): the pieces are laid over the power history in bins of the run, and
 * what all bins hold is scaled to the energy of the run.
 *
 * Bound of either: the energy's own, and what may be charged to the wrong side of a beginning or an end. Power lies between 0
 * and the device's limit, no matter what a smoothing sensor shows, so an end displaces at most limit x tau / 2; and all of
 * them together no more than the part's own time, or the rest of the run, can hold (the whole is known). tau is 0.1 s with a
 * power history, and 1 s without one (the driver then gives a mean of the last second on many devices). */
#pragma once

#include "diagnose/meter/meter.h"

struct hec_joules {
    double joules; /* NAN unknown */
    double bound;  /* |truth - joules| is at most this; NAN where the run's energy is not known */
};

/* out[i]: from edge[i] to edge[i + 1] (ascending, count + 1 of them); unknown where less than half of it was read. device: with its
 * energy. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_meter_joules(struct hec_meter *meter, const struct hec_device_summary *device, const int64_t *edge, int count,
                     struct hec_joules *out, struct hec_why *why);

#define HEC_METER_BINS 65536

/* A part of the run in pieces. Zeroed at first, with end_ns of the run and room for shares. */
struct hec_meter_part {
    int64_t end_ns;
    float *share;         /* of each bin */
    int64_t united_to_ns; /* the union of the pieces ends here so far */
    double seconds;       /* of it */
    int64_t edges;        /* of it, within the run */
    struct hec_joules of; /* of all devices so far */
};

/* Pieces come in ascending order of start and may overlap. */
void hec_meter_part_add(struct hec_meter_part *part, int64_t start_ns, int64_t end_ns);
/* Adds what a device took in each of the parts, once they have all of their pieces. 0, HEC_ERR_NOMEM or what the input returned. */
int hec_meter_parts(struct hec_meter *meter, const struct hec_device_summary *device, struct hec_meter_part *parts,
                    int count, struct hec_why *why);
