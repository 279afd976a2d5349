/* Inside rules/: whether something outside of a loop sets its pace: requests, which come when they come, or the workers of its
 * loader, which are no faster. What is saved of a step's time is then waited for the next one, and of its joules stays saved what
 * is drawn above waiting. */
#pragma once

#include "diagnose/rules/facts.h"

enum hec_pacer { HEC_PACE_OWN, HEC_PACE_REQUESTS, HEC_PACE_LOADER };

struct hec_pace {
    enum hec_pacer by;
    double least;  /* of the steady part's time its work takes with any answer; 0: nothing holds it back */
    double unsure; /* that much less it may take */
};

struct hec_pace hec_pace_of(const struct hec_summary *summary, const struct hec_device_diagnosis *device);
/* Takes what is waited instead from a finding's savings, of the run's and of a step's, and says so; `of_*` are those of the steady
 * part. Savings of what sets the pace itself stay. */
void hec_pace_hold(const struct hec_facts *facts, double of_seconds, double of_joules, struct hec_finding *finding);
