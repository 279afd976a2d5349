#include "diagnose/timeline/occupancy.h"

#include <math.h>

#define REGISTERS 65536 /* of an SM */
#define REGISTER_UNIT 256
#define WARP_UNIT 4 /* one scheduler each */
#define WARP 32

struct multiprocessor {
    int major, minor;
    int warps, blocks, block_registers, shared_kib;
};

static const struct multiprocessor table[] = {
#define HEC_SM(major, minor, warps, blocks, registers, shared) {major, minor, warps, blocks, registers, shared},
#include "diagnose/timeline/occupancy.def"
};

static const struct multiprocessor *find(int major, int minor) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].major == major && table[i].minor == minor)
            return &table[i];
    return NULL;
}

static int64_t round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

struct hec_occupancy hec_occupancy_of(int cuda_major, int cuda_minor, const struct hec_kernel *kernel) {
    const struct hec_occupancy unknown = {NAN, "", 0};
    const struct multiprocessor *sm = find(cuda_major, cuda_minor);
    int64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (kernel->block[i] <= 0 || kernel->block[i] > 1024)
            return unknown;
        threads *= kernel->block[i];
    }
    if (!sm || threads > 1024 || kernel->registers < 0 || kernel->registers > 255 || kernel->static_shared_bytes < 0 ||
        kernel->dynamic_shared_bytes < 0 || kernel->static_shared_bytes > 1 << 20 ||
        kernel->dynamic_shared_bytes > 1 << 20)
        return unknown;

    int64_t shared = kernel->static_shared_bytes + kernel->dynamic_shared_bytes;
    int64_t warps = (threads + WARP - 1) / WARP; /* of a block */
    int64_t fit = sm->warps / warps;
    struct hec_occupancy out = {NAN, "warps", 0};
    if (sm->blocks < fit) {
        fit = sm->blocks;
        out.limiter = "block";
    }
    if (kernel->registers > 0) {
        int64_t of_warp = round_up((int64_t)kernel->registers * WARP, REGISTER_UNIT);
        int64_t at_once = sm->block_registers / of_warp / WARP_UNIT * WARP_UNIT; /* warps, of one block's registers */
        int64_t by_registers = at_once / warps * (REGISTERS / sm->block_registers);
        if (by_registers < fit) {
            fit = by_registers;
            out.limiter = "registers";
        }
    }
    int64_t reserved = sm->major >= 8 ? 1024 : 0;
    if (shared + reserved > 0) {
        int64_t by_shared = (int64_t)sm->shared_kib * 1024 / round_up(shared + reserved, sm->major >= 8 ? 128 : 256);
        if (by_shared < fit) {
            fit = by_shared;
            out.limiter = "shared";
        }
    }
    if (fit < 1)
        return unknown; /* it ran, so the configuration that was recorded is not the whole truth */
    out.blocks = (int)fit;
    out.limit = (double)(fit * warps) / sm->warps;
    if (fit * warps == sm->warps)
        out.limiter = "warps";
    return out;
}
