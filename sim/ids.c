#include "sim/ids.h"

#include "sim/world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_uuid(int device, char text[SIM_UUID_SIZE]) {
    snprintf(text, SIM_UUID_SIZE, "GPU-51a1ed%02x-0000-4000-8000-%012x", (unsigned)device, (unsigned)device);
}

void sim_mig_uuid(int device, int instance, char text[SIM_UUID_SIZE]) {
    snprintf(text, SIM_UUID_SIZE, "MIG-51a1ed%02x-0000-4001-8000-%012x", (unsigned)device, (unsigned)instance);
}

unsigned sim_bus(int device) {
    return 0x18u + 8u * (unsigned)device;
}

/* One entry of the list. Without MIG a device is one slot; a divided device shows only one instance to a program. */
static bool match(const struct sim_spec *spec, const char *entry, size_t length, int *device, int *instance) {
    char uuid[SIM_UUID_SIZE], *end;
    *instance = 0;
    if (length > 0 && isdigit((unsigned char)entry[0])) {
        long index = strtol(entry, &end, 10);
        *device = (int)index;
        return end == entry + length && index < spec->count;
    }
    for (*device = 0; *device < spec->count; ++*device) {
        sim_uuid(*device, uuid);
        if (length > 4 && length <= strlen(uuid) && strncmp(uuid, entry, length) == 0)
            return true;
    }
    for (*instance = 0; spec->mig && *instance < spec->mig; ++*instance) {
        *device = 0;
        sim_mig_uuid(0, *instance, uuid);
        if (length > 4 && length <= strlen(uuid) && strncmp(uuid, entry, length) == 0)
            return true;
    }
    return false;
}

int sim_visible_device(const struct sim_spec *spec, const char *visible, int ordinal, int *device, int *instance,
                       struct hec_why *why) {
    if (!visible) {
        *device = ordinal;
        *instance = 0;
        if (ordinal >= 0 && ordinal < spec->count)
            return HEC_OK;
        return hec_fail(why, HEC_ERR_NOTFOUND, "there is no device %d: %d simulated", ordinal, spec->count);
    }
    const char *entry = visible;
    for (int seen = 0; ordinal >= 0; seen++) {
        entry += strspn(entry, " ");
        size_t length = strcspn(entry, ",");
        size_t trimmed = length;
        while (trimmed > 0 && entry[trimmed - 1] == ' ')
            trimmed--;
        if (!match(spec, entry, trimmed, device, instance))
            break;
        if (seen == ordinal)
            return HEC_OK;
        if (entry[length] == '\0')
            break;
        entry += length + 1;
    }
    return hec_fail(why, HEC_ERR_NOTFOUND, "CUDA_VISIBLE_DEVICES=%.80s leaves no device %d", visible, ordinal);
}
