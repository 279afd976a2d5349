/* What a device has taken so far, as its readings come: for the line of a run that goes on. By the counter; where there is
 * none, the power's integral, which is an estimate. */
#ifndef HEC_DIAGNOSE_METER_RUNNING_H
#define HEC_DIAGNOSE_METER_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

struct hec_running_joules { /* zeroed at first */
    bool counted;
    int64_t first_mj, last_mj; /* of the counter */
    int64_t last_power_ns;
    double power_j;
};

void hec_running_counter(struct hec_running_joules *running, int64_t mj);
void hec_running_power(struct hec_running_joules *running, int64_t t_ns, double watts);
double hec_running_joules(const struct hec_running_joules *running); /* NAN: nothing was read */

#endif
