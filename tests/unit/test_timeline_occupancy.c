/* Occupancy limits against those of NVIDIA's occupancy calculator (cuda_occupancy.h's rules, worked out by hand). */
#include "diagnose/timeline/occupancy.h"
#include "unit.h"

static struct hec_occupancy of(int major, int minor, int threads, int registers, int64_t shared) {
    struct hec_kernel k = {.block = {threads, 1, 1}, .registers = registers, .dynamic_shared_bytes = shared};
    return hec_occupancy_of(major, minor, &k);
}

TEST(table) {
    static const struct {
        int major, minor, threads, registers;
        int64_t shared;
        double limit;
        const char *limiter;
    } rows[] = {
        {9, 0, 256, 32, 0, 1, "warps"},
        {9, 0, 128, 168, 0, 12.0 / 64, "registers"}, /* 5376 a warp: 12 warps, 3 blocks */
        {9, 0, 128, 255, 0, 8.0 / 64, "registers"},  /* 8192 a warp */
        {9, 0, 32, 32, 0, 0.5, "block"},             /* 32 blocks of one warp */
        {9, 0, 384, 168, 230000, 12.0 / 64, "registers"},
        {9, 0, 128, 32, 100000, 8.0 / 64, "shared"}, /* 101120 bytes with the reserve: 2 blocks of 233472 */
        {9, 0, 128, 32, 232448, 4.0 / 64, "shared"}, /* 227 KiB, all that a block may have */
        {9, 0, 33, 16, 0, 1, "warps"},               /* two warps each, 32 blocks */
        {8, 0, 1024, 33, 0, 0.5, "registers"},       /* 40 registers in units of 256 a warp: 48 warps, one block */
        {8, 6, 1024, 32, 0, 32.0 / 48, "warps"},     /* 48 warps: one block of 32 */
        {8, 6, 64, 32, 0, 32.0 / 48, "block"},       /* 16 blocks of 2 */
        {7, 5, 1024, 64, 0, 1, "warps"},
        {7, 0, 128, 32, 49152, 8.0 / 64, "shared"}, /* no reserve before 8.0 */
        {6, 2, 256, 64, 0, 32.0 / 64, "registers"}, /* 32768 registers a block, twice */
        {12, 0, 128, 32, 50000, 8.0 / 48, "shared"},
        {10, 0, 512, 128, 0, 16.0 / 64, "registers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hec_occupancy o = of(rows[i].major, rows[i].minor, rows[i].threads, rows[i].registers, rows[i].shared);
        assert_true(fabs(o.limit - rows[i].limit) < 1e-9);
        assert_string_equal(o.limiter, rows[i].limiter);
    }
}

TEST(unknown) {
    assert_true(isnan(of(5, 2, 128, 32, 0).limit)); /* not in the table */
    assert_true(isnan(of(0, 0, 128, 32, 0).limit)); /* no capability known */
    assert_true(isnan(of(9, 0, -1, 32, 0).limit));  /* imports */
    assert_true(isnan(of(9, 0, 128, -1, 0).limit));
    assert_true(isnan(of(9, 0, 128, 32, -1).limit));
    assert_true(isnan(of(9, 0, 2048, 32, 0).limit));
    assert_true(isnan(of(9, 0, 128, 32, 400000).limit)); /* could never have run */
    assert_true(isnan(of(9, 0, 128, 32, INT64_MAX).limit));
    assert_string_equal(of(5, 2, 128, 32, 0).limiter, "");
}
