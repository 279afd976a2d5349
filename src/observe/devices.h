/* The devices of this run, for collectors that meet them under another name: CUDA numbers devices per process, NVML
 * for the machine. The recorder fills the table with what passes to the sink; any thread may ask. */
#pragma once

#include "model/run.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct hec_device_name {
    int index; /* hec_device.index */
    uint8_t uuid[16];
    uint32_t domain, bus, device;
    bool has_uuid, has_pci;
};

struct hec_device_table {
    pthread_mutex_t lock;
    struct hec_device_name names[HEC_DEVICE_MAX];
    int count;
    bool complete; /* whoever lists devices has done so, or there is nobody who could */
};

void hec_device_table_init(struct hec_device_table *table);
void hec_device_table_free(struct hec_device_table *table);

/* A later device of the same index replaces the earlier one. */
void hec_device_table_add(struct hec_device_table *table, const struct hec_device *device);
void hec_device_table_complete(struct hec_device_table *table);

/* hec_device.index of the device with this PCI bus id ("0000:0f:00.0", a domain of 4 or 8 digits), else with this
 * UUID: under MIG CUDA may give the UUID of the instance, but the bus id is the physical device's.
 * HEC_ERR_NOTFOUND: there is no such device; HEC_ERR_BUSY: not yet, the table is not complete. */
int hec_device_table_find(struct hec_device_table *table, const uint8_t uuid[16], const char *pci_bus_id);
int hec_device_table_count(struct hec_device_table *table);
