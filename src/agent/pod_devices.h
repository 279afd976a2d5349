/* Which container of Kubernetes holds which GPU: the kubelet's answer, taken apart. Pure: bytes in, rows out. */
#pragma once

#include "agent/identity.h"

#include <stddef.h>
#include <stdint.h>

#define HEC_POD_DEVICES_MAX 2048 /* rows; more are left out and counted */

/* What a device plugin calls a GPU, or a part of it: GPU-UUID, MIG-UUID, MIG-GPU-UUID/GI/CI, nvidiaN, nvidiaN/giM (GKE); each
 * perhaps with a replica for time slicing, ::N or /vgpuN, which says nothing of the device. */
struct hec_device_name {
    char uuid[96]; /* of the GPU ("GPU-..."), or of the MIG device ("MIG-..."); "": known by minor */
    int minor;     /* N of nvidiaN, or -1 */
    int instance;  /* GPU instance, or -1: not said */
};

struct hec_pod_device {
    struct hec_device_name name;
    struct hec_tenant holder; /* pod_namespace, pod, container */
};

struct hec_pod_devices {
    struct hec_pod_device *rows;
    size_t count, capacity;
    uint64_t left_out; /* rows beyond the maximum, names too long, or with characters that names of Kubernetes lack */
};

/* The message v1.ListPodResourcesResponse; resources of NVIDIA's plugin alone ("nvidia.com/..."). Rows are replaced on success.
 * HEC_ERR_CORRUPT: no such message, or one that wants too much memory; HEC_ERR_NOMEM. */
int hec_pod_devices_parse(struct hec_pod_devices *devices, const uint8_t *bytes, size_t size);
void hec_pod_devices_free(struct hec_pod_devices *devices);

/* A GPU or an instance of it, by all the names that it has. */
struct hec_device_place {
    const char *uuid;     /* of the GPU */
    const char *mig_uuid; /* of the MIG device; NULL: the whole GPU */
    int minor, instance;  /* -1: unknown; the whole GPU */
};

/* Who holds it, or the whole of it: at most `most` different holders into out; returns how many there are. */
size_t hec_pod_devices_find(const struct hec_pod_devices *devices, const struct hec_device_place *place,
                            const struct hec_tenant **out, size_t most);
