#include "act/power_levers.h"

#include "act/power_device.h"

#include <stdlib.h>
#include <string.h>

static enum hec_power_knob knob_of(const struct hec_lever_use *use) {
    return strcmp(use->row->name, "clock") == 0 ? HEC_POWER_CLOCK : HEC_POWER_CAP;
}

static int64_t value_of(const struct hec_lever_use *use) {
    int64_t number = strtoll(use->value, NULL, 10);
    return knob_of(use) == HEC_POWER_CAP && number < INT32_MAX ? number * 1000 : number;
}

bool hec_power_levers_in(const struct hec_lever_set *set) {
    for (int i = 0; set && i < set->count; i++)
        if (set->list[i].row->place == HEC_LEVER_PLACE_DEVICE)
            return true;
    return false;
}

int hec_power_levers_set(struct hec_power_guard *guard, const struct hec_lever_set *set, struct hec_why *why) {
    int err = HEC_OK;
    for (int i = 0; i < set->count && err == HEC_OK; i++) {
        const struct hec_lever_use *use = &set->list[i];
        if (use->row->place != HEC_LEVER_PLACE_DEVICE)
            continue;
        err = guard ? hec_power_guard_set(guard, knob_of(use), value_of(use), why)
                    : hec_fail(why, HEC_ERR_UNSUPPORTED, "%s: limits of devices are not changed here", use->row->name);
    }
    return err;
}

void hec_power_lever_words(const struct hec_lever_use *use, char words[32]) {
    hec_power_value_words(knob_of(use), value_of(use), words);
}
