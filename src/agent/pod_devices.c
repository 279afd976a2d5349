#include "agent/pod_devices.h"

#include "base/error.h"
#include "base/list.h"
#include "model/run.h"
#include <podresources.pb-c.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the parser may take for one message: two bytes of it can cost 100 of memory. A node of 250 pods takes 0.3 MB. */
#define MEMORY_MAX (16u << 20)
#define VENDOR HEC_VENDOR_NVIDIA /* whose device plugin is understood */

static bool take_number(const char **at, int *out) {
    int value = 0, length = 0;
    for (; isdigit((unsigned char)(*at)[length]) && length < 6; length++)
        value = value * 10 + (*at)[length] - '0';
    *at += length;
    *out = value;
    return length > 0;
}

/* [/giM][/vgpuN] or [/GI/CI], then [::N] */
static bool take_rest(const char *at, struct hec_device_name *out) {
    int ignored;
    if (strncmp(at, "/gi", 3) == 0) {
        at += 3;
        if (!take_number(&at, &out->instance))
            return false;
    } else if (*at == '/' && isdigit((unsigned char)at[1])) {
        at++;
        if (!take_number(&at, &out->instance) || *at++ != '/' || !take_number(&at, &ignored))
            return false;
    }
    if (strncmp(at, "/vgpu", 5) == 0) {
        at += 5;
        if (!take_number(&at, &ignored))
            return false;
    }
    if (strncmp(at, "::", 2) == 0) {
        at += 2;
        if (!take_number(&at, &ignored))
            return false;
    }
    return *at == '\0';
}

/* False: not the name of a GPU. */
static bool parse_name(const char *text, struct hec_device_name *out) {
    *out = (struct hec_device_name){.minor = -1, .instance = -1};
    const char *numbered = hec_vendor_info(VENDOR)->name;
    if (strncmp(text, numbered, strlen(numbered)) == 0) {
        const char *at = text + strlen(numbered);
        return take_number(&at, &out->minor) && take_rest(at, out);
    }
    bool mig = strncmp(text, "MIG-", 4) == 0;
    const char *uuid = mig && strncmp(text + 4, "GPU-", 4) == 0 ? text + 4 : text;
    size_t length = strspn(uuid, "GPUMI0123456789abcdefABCDEF-");
    if ((!mig && strncmp(text, "GPU-", 4) != 0) || length < 12 || length >= sizeof out->uuid)
        return false;
    memcpy(out->uuid, uuid, length);
    out->uuid[length] = '\0';
    return take_rest(uuid + length, out) && (uuid == text || out->instance >= 0);
}

/* protobuf-c's memory, bounded. */
struct purse {
    size_t left;
};

static void *take_memory(void *context, size_t size) {
    struct purse *purse = context;
    if (size > purse->left)
        return NULL;
    purse->left -= size;
    return malloc(size);
}

static void give_memory(void *context, void *memory) {
    (void)context;
    free(memory);
}

static bool take_name(char *out, size_t size, const char *text) {
    size_t length = strlen(text);
    if (length == 0 || length >= size || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != length)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

static int add_device(struct hec_pod_devices *devices, const struct hec_tenant *holder, const char *id) {
    struct hec_device_name name;
    if (!parse_name(id, &name) || devices->count == HEC_POD_DEVICES_MAX) {
        devices->left_out++;
        return HEC_OK;
    }
    if (!hec_list_room(devices->rows, devices->count, devices->capacity, 16))
        return HEC_ERR_NOMEM;
    devices->rows[devices->count++] = (struct hec_pod_device){name, *holder};
    return HEC_OK;
}

static int add_container(struct hec_pod_devices *devices, const V1__PodResources *pod,
                         const V1__ContainerResources *container) {
    struct hec_tenant holder = {0};
    const char *resources = hec_vendor_info(VENDOR)->resources;
    int err = HEC_OK;
    bool named = take_name(holder.pod, sizeof holder.pod, pod->name) &&
                 take_name(holder.pod_namespace, sizeof holder.pod_namespace, pod->namespace_) &&
                 take_name(holder.container, sizeof holder.container, container->name);
    for (size_t d = 0; d < container->n_devices && err == HEC_OK; d++) {
        const V1__ContainerDevices *held = container->devices[d];
        if (strncmp(held->resource_name, resources, strlen(resources)) != 0)
            continue;
        if (!named)
            devices->left_out += held->n_device_ids;
        for (size_t i = 0; i < held->n_device_ids && named && err == HEC_OK; i++)
            err = add_device(devices, &holder, held->device_ids[i]);
    }
    return err;
}

int hec_pod_devices_parse(struct hec_pod_devices *devices, const uint8_t *bytes, size_t size) {
    struct purse purse = {MEMORY_MAX};
    ProtobufCAllocator allocator = {take_memory, give_memory, &purse};
    V1__ListPodResourcesResponse *message = v1__list_pod_resources_response__unpack(&allocator, size, bytes);
    struct hec_pod_devices found = {0};
    int err = HEC_OK;
    if (!message)
        return HEC_ERR_CORRUPT;
    for (size_t p = 0; p < message->n_pod_resources; p++)
        for (size_t c = 0; c < message->pod_resources[p]->n_containers && err == HEC_OK; c++)
            err = add_container(&found, message->pod_resources[p], message->pod_resources[p]->containers[c]);
    v1__list_pod_resources_response__free_unpacked(message, &allocator);
    if (err != HEC_OK) {
        hec_pod_devices_free(&found);
        return err;
    }
    hec_pod_devices_free(devices);
    *devices = found;
    return HEC_OK;
}

void hec_pod_devices_free(struct hec_pod_devices *devices) {
    free(devices->rows);
    *devices = (struct hec_pod_devices){0};
}

static bool is_at(const struct hec_device_name *name, const struct hec_device_place *place) {
    if (strncmp(name->uuid, "MIG-", 4) == 0)
        return place->mig_uuid && strcmp(name->uuid, place->mig_uuid) == 0;
    if (name->uuid[0] ? strcmp(name->uuid, place->uuid) != 0 : name->minor < 0 || name->minor != place->minor)
        return false;
    return name->instance < 0 || name->instance == place->instance;
}

size_t hec_pod_devices_find(const struct hec_pod_devices *devices, const struct hec_device_place *place,
                            const struct hec_tenant **out, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < devices->count; i++) {
        const struct hec_tenant *holder = &devices->rows[i].holder;
        bool known = false;
        if (!is_at(&devices->rows[i].name, place))
            continue;
        for (size_t j = 0; j < count && j < most; j++)
            known |= hec_tenant_equal(out[j], holder);
        if (!known && count < most)
            out[count] = holder;
        count += !known;
    }
    return count;
}
