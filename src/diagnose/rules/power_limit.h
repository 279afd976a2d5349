/* Inside rules/: no claim leaves a loop that draws more than its device may. */
#pragma once

#include "diagnose/rules/facts.h"

/* Where a finding's savings leave more watts than the device's power limit, on the mean of the steady part (which takes so many seconds
 * and joules), the device lowers its clock. Dynamic power goes with the clock and the square of the voltage, and the voltage with the
 * clock: P ~ f^3, so that the same work takes (limit / P)^(2/3) of the joules, in (P / limit)^(1/3) of the time. The low ends stay. */
void hec_power_limit_hold(const struct hec_facts *facts, double of_seconds, double of_joules, struct hec_finding *out);
