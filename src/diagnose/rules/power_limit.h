/* Inside rules/: no claim leaves a loop that draws more than its device may. */
#pragma once

#include "diagnose/rules/facts.h"

/* Where a finding's savings leave P watts, more than the device's power limit, on the mean of the steady part (which takes so many
 * seconds and joules), either fewer seconds go, or the device lowers its clock. Dynamic power goes with the clock and the square of the
 * voltage, and the voltage with the clock: P ~ f^3, so that the same work takes (limit / P)^(2/3) of the joules, in (P / limit)^(1/3) of
 * the time. Which of the two it is nobody knows: each is taken to explain half of log(P / limit), so that joules become (limit /
 * P)^(1/3) and seconds (P / limit)^(2/3) of what was left. Of fifteen drawn programs it is off by 4.7 points on the mean and 11 at most;
 * the clock alone by 5.9 and 18, no limit by 5.9 and 16 (bench/results/2026-11-28-h200x2-drawn-8). The low ends stay. */
void hec_power_limit_hold(const struct hec_facts *facts, double of_seconds, double of_joules, struct hec_finding *out);
