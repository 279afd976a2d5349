#include "diagnose/build.h"
#include "diagnose/physics.h"

#include <math.h>
#include <string.h>

static uint64_t bit(const struct hec_device_summary *d) {
    return d->device.index >= 0 && d->device.index < 64 ? UINT64_C(1) << d->device.index : 0;
}

/* Joules of the used devices among those (bits by index); both are NAN unless all of them are valid. Returns how many. */
static int add_energy(const struct hec_summary *out, uint64_t devices, double *joules, double *bound) {
    int used = 0;
    bool all_valid = true;
    *joules = *bound = 0;
    for (int i = 0; i < out->device_count; i++) {
        const struct hec_device_summary *d = &out->devices[i].readings;
        if (!d->used || !(devices & bit(d)))
            continue;
        used++;
        all_valid &= d->energy.valid;
        *joules += d->energy.joules;
        *bound += d->energy.bound_joules; /* errors of devices may have one cause (a late clock): no square root */
    }
    if (!used || !all_valid)
        *joules = *bound = NAN;
    return used;
}

static double dollars_of(const struct hec_summary *out, double joules, int devices) {
    double hours = out->price.dollars_per_gpu_hour > 0 ? devices * out->seconds / 3600 : 0;
    return joules / HEC_JOULES_PER_KWH * out->price.dollars_per_kwh + hours * out->price.dollars_per_gpu_hour;
}

static void add_totals(struct hec_summary *out, const struct hec_price *price) {
    out->price = *price;
    int used = add_energy(out, UINT64_MAX, &out->joules, &out->bound_joules);
    out->dollars = dollars_of(out, out->joules, used);
    out->grams_co2 = out->joules / HEC_JOULES_PER_KWH * price->grams_co2_per_kwh;
}

/* The devices of the programs whose steps count this unit; all that are used where there are no steps. */
static uint64_t devices_of(const struct hec_summary *out, const char *unit, uint64_t used) {
    uint64_t devices = 0;
    for (int i = 0; i < out->device_count; i++) {
        const struct hec_device_diagnosis *d = &out->devices[i];
        if (d->readings.used && d->steps.count && d->steps.units > 0 && strcmp(d->steps.unit, unit) == 0)
            devices |= bit(&d->readings);
    }
    return devices ? devices : used;
}

static void price_units(struct hec_summary *out) {
    uint64_t used = 0;
    for (int i = 0; i < out->device_count; i++)
        used |= out->devices[i].readings.used ? bit(&out->devices[i].readings) : 0;
    if (!out->unit_count) {
        struct hec_unit_summary *unit = &out->units[out->unit_count++];
        *unit = (struct hec_unit_summary){.name = "run", .is_default = true, .count = 1};
    }
    for (int i = 0; i < out->unit_count; i++) {
        struct hec_unit_summary *unit = &out->units[i];
        double per = unit->count > 0 ? 1 / unit->count : NAN, joules, bound;
        unit->devices = unit->is_default ? used : devices_of(out, unit->name, used);
        unit->part_of_devices = unit->devices != used;
        int devices = add_energy(out, unit->devices, &joules, &bound);
        unit->per_second = out->seconds > 0 ? unit->count / out->seconds : NAN;
        unit->joules_per_unit = joules * per;
        unit->joules_per_unit_bound = bound * per;
        unit->dollars_per_unit = dollars_of(out, joules, devices) * per;
        unit->grams_co2_per_unit = joules / HEC_JOULES_PER_KWH * out->price.grams_co2_per_kwh * per;
    }
}

void hec_totals_find(struct hec_summary *out, const struct hec_price *price) {
    add_totals(out, price);
    price_units(out);
}
