/* Names of devices as plugins give them, and who holds a device by the kubelet's list (bytes written by hand). */
#include "agent/pod_devices.h"
#include "base/error.h"
#include "unit.h"

#define GPU "GPU-51a1ed00-0000-4000-8000-000000000001"
#define OTHER "GPU-51a1ed00-0000-4000-8000-000000000002"
#define MIG "MIG-51a1ed00-0000-4001-8000-000000000001"

/* A field of bytes with the number: protobuf's wire type 2. All shorter than 128 bytes, but for what is in a pod. */
static size_t field(uint8_t *out, int number, const void *bytes, size_t size) {
    size_t at = 0;
    out[at++] = (uint8_t)(number << 3 | 2);
    if (size > 127)
        out[at++] = (uint8_t)((size & 127) | 128);
    out[at++] = (uint8_t)(size > 127 ? size >> 7 : size);
    memcpy(out + at, bytes, size);
    return at + size;
}

static size_t text(uint8_t *out, int number, const char *bytes) {
    return field(out, number, bytes, strlen(bytes));
}

/* A pod with one container that holds one device. */
static size_t pod(uint8_t *out, const char *name, const char *resource, const char *id) {
    uint8_t device[512], container[512], all[512];
    size_t length = text(device, 1, resource);
    length += text(device + length, 2, id);
    size_t whole = text(container, 1, "main");
    whole += field(container + whole, 2, device, length);
    length = text(all, 1, name);
    length += text(all + length, 2, "ml");
    length += field(all + length, 3, container, whole);
    return field(out, 1, all, length);
}

TEST(names_of_devices) {
    static const struct {
        const char *text, *uuid;
        int minor, instance;
    } good[] = {
        {GPU, GPU, -1, -1},          {GPU "::3", GPU, -1, -1},        {MIG, MIG, -1, -1},
        {MIG "::0", MIG, -1, -1},    {"MIG-" GPU "/5/0", GPU, -1, 5}, {"nvidia7", "", 7, -1},
        {"nvidia0/gi11", "", 0, 11}, {"nvidia2/vgpu1", "", 2, -1},    {"nvidia2/gi3/vgpu1", "", 2, 3},
        {"nvidia2::4", "", 2, -1},
    };
    static const char *const bad[] = {
        "",           "GPU-",         "MIG-",         "MIG-" GPU, "nvidia",    "nvidiax",        "nvidia1/",
        "nvidia1/gi", "nvidia1/gi1x", "nvidia1/vgpu", "nvidia-1", "nvidia1::", "nvidia99999999", GPU "\n",
        GPU "::",     GPU "::1 ",     "eth0"};
    struct hec_pod_devices devices = {0};
    uint8_t bytes[1024];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(hec_pod_devices_parse(&devices, bytes, pod(bytes, "p", "nvidia.com/gpu", good[i].text)),
                         HEC_OK);
        assert_int_equal(devices.count, 1);
        const struct hec_device_name *name = &devices.rows[0].name;
        assert_string_equal(name->uuid, good[i].uuid);
        assert_int_equal(name->minor, good[i].minor);
        assert_int_equal(name->instance, good[i].instance);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hec_pod_devices_parse(&devices, bytes, pod(bytes, "p", "nvidia.com/gpu", bad[i])), HEC_OK);
        assert_true(devices.count == 0 && devices.left_out == 1);
    }
    hec_pod_devices_free(&devices);
}

static size_t holders(const struct hec_pod_devices *devices, const char *uuid, const char *mig_uuid, int minor,
                      int instance, const char *first) {
    const struct hec_tenant *found[2] = {NULL, NULL};
    struct hec_device_place place = {.uuid = uuid, .mig_uuid = mig_uuid, .minor = minor, .instance = instance};
    size_t count = hec_pod_devices_find(devices, &place, found, 2);
    if (count > 0)
        assert_string_equal(found[0]->pod, first);
    return count;
}

TEST(holders_of_devices_and_instances) {
    uint8_t bytes[4096];
    struct hec_pod_devices devices = {0};
    size_t size = pod(bytes, "whole", "nvidia.com/gpu", GPU);
    size += pod(bytes + size, "part", "nvidia.com/mig-1g.18gb", MIG);
    size += pod(bytes + size, "old", "nvidia.com/gpu", "MIG-" OTHER "/2/0");
    size += pod(bytes + size, "gke", "nvidia.com/gpu", "nvidia3/gi1");
    size += pod(bytes + size, "a", "nvidia.com/gpu.shared", "nvidia4::0");
    size += pod(bytes + size, "a", "nvidia.com/gpu.shared", "nvidia4::1");
    size += pod(bytes + size, "b", "nvidia.com/gpu.shared", "nvidia4::2");
    size += pod(bytes + size, "nic", "example.com/gpu", GPU);
    assert_int_equal(hec_pod_devices_parse(&devices, bytes, size), HEC_OK);
    assert_int_equal(devices.count, 7);
    assert_int_equal(holders(&devices, GPU, NULL, 0, -1, "whole"), 1);
    assert_int_equal(holders(&devices, GPU, NULL, 0, 2, "whole"), 1); /* who holds the whole holds each part */
    assert_int_equal(holders(&devices, OTHER, MIG, 1, 1, "part"), 1);
    assert_int_equal(holders(&devices, OTHER, NULL, 1, 2, "old"), 1);
    assert_int_equal(holders(&devices, OTHER, NULL, 1, 3, ""), 0);
    assert_int_equal(holders(&devices, "GPU-x", NULL, 3, 1, "gke"), 1);
    assert_int_equal(holders(&devices, "GPU-x", NULL, 3, -1, ""), 0); /* a part is not the whole */
    assert_int_equal(holders(&devices, "GPU-x", NULL, 4, -1, "a"), 2);
    assert_int_equal(holders(&devices, "GPU-x", NULL, -1, -1, ""), 0);
    assert_int_equal(hec_pod_devices_parse(&devices, (const uint8_t *)"\x0a\x7f", 2), HEC_ERR_CORRUPT);
    assert_int_equal(devices.count, 7); /* the last good one is kept */

    /* an empty pod takes two bytes here and many more in memory: not without bound */
    size_t many = 1 << 21;
    uint8_t *empties = malloc(2 * many);
    for (size_t i = 0; i < many; i++)
        memcpy(empties + 2 * i, "\x0a\x00", 2);
    assert_int_equal(hec_pod_devices_parse(&devices, empties, 2 * many), HEC_ERR_CORRUPT);
    free(empties);
    hec_pod_devices_free(&devices);
}
