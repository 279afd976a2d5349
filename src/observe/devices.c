#include "observe/devices.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool parse_pci(const char *text, struct hec_device_name *name) {
    unsigned function;
    return sscanf(text, "%8x:%2x:%2x.%1x", &name->domain, &name->bus, &name->device, &function) == 4;
}

static int digit(char c) {
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6" */
static bool parse_uuid(const char *text, uint8_t uuid[16]) {
    if (strncmp(text, "GPU-", 4) != 0)
        return false;
    int nibbles = 0;
    for (text += 4; *text; text++) {
        if (*text == '-')
            continue;
        if (!isxdigit((unsigned char)*text) || nibbles == 32)
            return false;
        uuid[nibbles / 2] = (uint8_t)(nibbles % 2 ? uuid[nibbles / 2] | digit(*text) : digit(*text) << 4);
        nibbles++;
    }
    return nibbles == 32;
}

void hec_device_table_init(struct hec_device_table *table) {
    memset(table, 0, sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
}

void hec_device_table_free(struct hec_device_table *table) {
    pthread_mutex_destroy(&table->lock);
}

void hec_device_table_add(struct hec_device_table *table, const struct hec_device *device) {
    struct hec_device_name name = {.index = device->index};
    name.has_pci = parse_pci(device->pci_bus_id, &name);
    name.has_uuid = parse_uuid(device->uuid, name.uuid);
    pthread_mutex_lock(&table->lock);
    int at = 0;
    while (at < table->count && table->names[at].index != name.index)
        at++;
    if (at < HEC_DEVICE_MAX) {
        table->names[at] = name;
        table->count += at == table->count;
    }
    pthread_mutex_unlock(&table->lock);
}

void hec_device_table_complete(struct hec_device_table *table) {
    pthread_mutex_lock(&table->lock);
    table->complete = true;
    pthread_mutex_unlock(&table->lock);
}

int hec_device_table_find(struct hec_device_table *table, const uint8_t uuid[16], const char *pci_bus_id) {
    struct hec_device_name wanted;
    bool has_pci = parse_pci(pci_bus_id, &wanted);
    int by_pci = -1, by_uuid = -1;
    pthread_mutex_lock(&table->lock);
    for (int i = 0; i < table->count; i++) {
        const struct hec_device_name *name = &table->names[i];
        if (has_pci && name->has_pci && name->domain == wanted.domain && name->bus == wanted.bus &&
            name->device == wanted.device)
            by_pci = name->index;
        if (name->has_uuid && memcmp(name->uuid, uuid, sizeof name->uuid) == 0)
            by_uuid = name->index;
    }
    bool complete = table->complete;
    pthread_mutex_unlock(&table->lock);
    if (by_pci >= 0 || by_uuid >= 0)
        return by_pci >= 0 ? by_pci : by_uuid;
    return complete ? HEC_ERR_NOTFOUND : HEC_ERR_BUSY;
}

int hec_device_table_count(struct hec_device_table *table) {
    pthread_mutex_lock(&table->lock);
    int count = table->count;
    pthread_mutex_unlock(&table->lock);
    return count;
}
