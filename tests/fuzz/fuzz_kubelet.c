/* What a kubelet may send: bytes of HTTP/2 in two pieces, whose message is taken apart; or ('P' first) the message alone. */
#include "agent/kubelet.h"
#include "agent/pod_devices.h"

#include <stdlib.h>
#include <string.h>

static void parse(const uint8_t *bytes, size_t size) {
    struct hec_pod_devices devices = {0};
    const struct hec_tenant *holders[4];
    uint8_t *copy = malloc(size + !size); /* of the exact length, so that a read too far is seen */
    if (!copy)
        return;
    memcpy(copy, bytes, size);
    if (hec_pod_devices_parse(&devices, copy, size) != HEC_OK && devices.count > 0)
        abort();
    if (devices.count > HEC_POD_DEVICES_MAX)
        abort();
    for (size_t i = 0; i < devices.count && i < 16; i++) {
        const struct hec_pod_device *row = &devices.rows[i];
        if (!row->holder.pod[0] || !row->holder.pod_namespace[0] || !row->holder.container[0] ||
            (!row->name.uuid[0] && row->name.minor < 0))
            abort();
        bool mig = strncmp(row->name.uuid, "MIG-", 4) == 0;
        struct hec_device_place place = {.uuid = row->name.uuid,
                                         .mig_uuid = mig ? row->name.uuid : NULL,
                                         .minor = row->name.minor,
                                         .instance = row->name.instance};
        if (hec_pod_devices_find(&devices, &place, holders, 4) == 0)
            abort();
    }
    hec_pod_devices_free(&devices);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct hec_grpc *call;
    struct hec_why why = {""};
    const uint8_t *bytes;
    size_t length;
    if (size > 0 && data[0] == 'P') {
        parse(data + 1, size - 1);
        return 0;
    }
    if (hec_grpc_begin("/v1.PodResourcesLister/List", &call) != HEC_OK)
        return 0;
    while (hec_grpc_output(call, &bytes) > 0)
        ;
    int err = hec_grpc_input(call, data, size / 2, &why);
    while (err == HEC_OK && hec_grpc_output(call, &bytes) > 0)
        ;
    if (err == HEC_OK && !hec_grpc_done(call))
        err = hec_grpc_input(call, data + size / 2, size - size / 2, &why);
    if (err == HEC_OK ? why.text[0] != '\0' : why.text[0] == '\0')
        abort();
    if (err == HEC_OK && hec_grpc_done(call)) {
        bytes = hec_grpc_message(call, &length);
        parse(bytes, length);
    }
    hec_grpc_end(call);
    return 0;
}
