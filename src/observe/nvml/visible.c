#include "observe/nvml/visible.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 256 /* more entries than any machine has devices: 8 x 7 MIG slices is 56 */

/* What an entry names: a device and, with MIG, one of its instances. */
struct named {
    int device; /* -1: nothing */
    int mig;    /* index into migs, -1: the whole device */
};

static const struct named NOTHING = {-1, -1};

static bool same_start(const char *full, const char *start, size_t length) {
    return length > 0 && strlen(full) >= length && strncmp(full, start, length) == 0;
}

static struct named by_number(const struct hec_visible_input *input, const char *entry) {
    char *end;
    long value = strtol(entry, &end, 10);
    if (end == entry || value < 0 || value >= input->count)
        return NOTHING;
    return (struct named){(int)value, -1};
}

static struct named by_device_uuid(const struct hec_visible_input *input, const char *entry, size_t length) {
    struct named found = NOTHING;
    for (int i = 0; i < input->count; i++) {
        if (!same_start(input->uuids[i], entry, length))
            continue;
        if (found.device >= 0)
            return NOTHING; /* the prefix is not unique */
        found.device = i;
    }
    return found;
}

/* "MIG-GPU-<uuid>/<gpu instance>/<compute instance>", the form of drivers before R470 */
static struct named by_old_mig(const struct hec_visible_input *input, const char *entry) {
    const char *uuid = entry + strlen("MIG-");
    const char *slash = strchr(uuid, '/');
    int gi, ci;
    if (!slash || sscanf(slash, "/%d/%d", &gi, &ci) != 2)
        return NOTHING;
    struct named device = by_device_uuid(input, uuid, (size_t)(slash - uuid));
    if (device.device < 0)
        return NOTHING;
    for (int i = 0; i < input->mig_count; i++) {
        const struct hec_visible_mig *mig = &input->migs[i];
        if (mig->parent == device.device && mig->gpu_instance == gi && mig->compute_instance == ci)
            return (struct named){device.device, i};
    }
    return NOTHING;
}

static struct named by_mig_uuid(const struct hec_visible_input *input, const char *entry) {
    if (strncmp(entry, "MIG-GPU-", strlen("MIG-GPU-")) == 0)
        return by_old_mig(input, entry);
    struct named found = NOTHING;
    for (int i = 0; i < input->mig_count; i++) {
        if (!same_start(input->migs[i].uuid, entry, strlen(entry)))
            continue;
        if (found.device >= 0)
            return NOTHING;
        found = (struct named){input->migs[i].parent, i};
    }
    return found;
}

enum form { ORDINALS, DEVICE_UUIDS, MIG_UUIDS };

static enum form form_of(const char *entry) {
    if (strncmp(entry, "GPU-", 4) == 0)
        return DEVICE_UUIDS;
    return strncmp(entry, "MIG-", 4) == 0 ? MIG_UUIDS : ORDINALS;
}

static struct named resolve(const struct hec_visible_input *input, enum form form, const char *entry) {
    switch (form) {
    case DEVICE_UUIDS:
        return form_of(entry) == form ? by_device_uuid(input, entry, strlen(entry)) : NOTHING;
    case MIG_UUIDS:
        return form_of(entry) == form ? by_mig_uuid(input, entry) : NOTHING;
    default:
        return by_number(input, entry);
    }
}

/* Copies the next entry without the blanks around it; returns where the one after it starts, NULL at the end. */
static const char *next_entry(const char *text, char *entry, size_t size) {
    const char *comma = strchrnul(text, ',');
    const char *start = text, *end = comma;
    while (start < end && isspace((unsigned char)*start))
        start++;
    while (end > start && isspace((unsigned char)end[-1]))
        end--;
    snprintf(entry, size, "%.*s", (int)(end - start), start);
    return *comma ? comma + 1 : NULL;
}

int hec_visible_parse(const struct hec_visible_input *input, bool *visible, bool *by_ordinal) {
    for (int i = 0; i < input->count; i++)
        visible[i] = input->text == NULL;
    if (by_ordinal)
        *by_ordinal = false;
    if (!input->text)
        return input->count;

    struct named named[NAMED_MAX];
    int count = 0;
    char entry[128];
    const char *rest = next_entry(input->text, entry, sizeof entry);
    enum form form = form_of(entry);
    for (;;) {
        struct named found = resolve(input, form, entry);
        if (found.device < 0)
            break;
        for (int i = 0; i < count; i++)
            if (named[i].device == found.device && named[i].mig == found.mig)
                return 0; /* named twice: CUDA shows no device at all */
        if (count < NAMED_MAX)
            named[count++] = found;
        if (!rest)
            break;
        rest = next_entry(rest, entry, sizeof entry);
    }
    int shown = 0;
    for (int i = 0; i < count; i++) {
        shown += !visible[named[i].device];
        visible[named[i].device] = true;
    }
    if (by_ordinal)
        *by_ordinal = form == ORDINALS && shown > 0;
    return shown;
}
