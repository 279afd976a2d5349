/* Bytes as a block of activities: kind, number of activities in two bytes, data. What the unpacker accepts keeps its
 * promises, and packed again it comes back the same. */
#include "store/activity_pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IDS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct hec_packer *packer;
    static struct hec_activity first[HEC_ACTIVITY_BLOCK], second[HEC_ACTIVITY_BLOCK];
    if (!packer && !(packer = hec_packer_new()))
        abort();
    if (size < 3)
        return 0;
    struct hec_activity_limits limits = {.tracks = IDS};
    for (int kind = 0; kind < HEC_ACTIVITY_KIND_COUNT; kind++)
        limits.name[kind] = IDS;
    struct hec_activity_head head = {.track = 1,
                                     .kind = (enum hec_activity_kind)(data[0] % HEC_ACTIVITY_KIND_COUNT),
                                     .t0_ns = -5,
                                     .n = (size_t)(data[1] | data[2] << 8)};
    if (hec_packer_unpack(packer, data + 3, size - 3, &head, &limits, first))
        return 0;
    int64_t before = head.t0_ns;
    for (size_t i = 0; i < head.n; i++) {
        const struct hec_activity *a = &first[i];
        if (a->start_ns < before || a->end_ns < a->start_ns || a->name > IDS || a->launch_track > IDS ||
            a->track != 1 || a->kind != head.kind || isinf(a->amount))
            abort();
        before = a->start_ns;
    }
    const unsigned char *bytes;
    size_t length = hec_packer_pack(packer, first, head.n, &bytes);
    unsigned char *copy = malloc(length);
    if (!copy || length > HEC_ACTIVITY_BLOCK_BYTES)
        abort();
    memcpy(copy, bytes, length);
    if (hec_packer_unpack(packer, copy, length, &head, &limits, second) ||
        memcmp(first, second, head.n * sizeof *first) != 0)
        abort();
    free(copy);
    return 0;
}
