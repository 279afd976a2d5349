/* Levers of a device's limits, by the power guard. */
#pragma once

#include "act/levers.h"
#include "act/power_guard.h"

/* Whether one of the set needs a guard. NULL: none. */
bool hec_power_levers_in(const struct hec_lever_set *set);
/* Set all of them. HEC_ERR_UNSUPPORTED: guard is NULL; else as hec_power_guard_set. */
int hec_power_levers_set(struct hec_power_guard *guard, const struct hec_lever_set *set, struct hec_why *why);
/* "400 W", of one of them */
void hec_power_lever_words(const struct hec_lever_use *use, char words[32]);
