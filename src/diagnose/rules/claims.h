/* Inside rules/: how far claims were off where they were measured, and the intervals that follow (claims.def). */
#pragma once

#include "diagnose/finding.h"

/* Widens both intervals of a finding, of the run and of a step, by what claims of its cause were off. The best guesses stay. */
void hec_claims_widen(struct hec_finding *finding);
