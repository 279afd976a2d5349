/* Blocks: what goes in comes out, time is off by no more than promised, and no text breaks the unpacker. */
#include "store/pack.h"
#include "unit.h"

static uint64_t state = 7;

static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static struct hec_block block;
static int64_t t_in[HEC_BLOCK_VALUES], v_in[HEC_BLOCK_VALUES], t_out[HEC_BLOCK_VALUES], v_out[HEC_BLOCK_VALUES];
static uint8_t valid_in[HEC_BLOCK_VALUES], valid_out[HEC_BLOCK_VALUES];

static const char *unpack(void) {
    return hec_unpack(&block, block.v, (size_t)(block.n * block.v_width), block.r, (size_t)(block.n * block.r_width),
                      t_out, v_out, valid_out);
}

static void check(int n, bool exact, int64_t tolerance_us) {
    hec_pack(t_in, v_in, valid_in, n, exact, &block);
    assert_null(unpack());
    for (int k = 0; k < n; k++) {
        assert_int_equal(valid_out[k], valid_in[k]);
        assert_int_equal(v_out[k], valid_in[k] ? v_in[k] : 0);
        assert_true(llabs(t_out[k] - t_in[k]) <= tolerance_us);
    }
    assert_int_equal(t_out[0], t_in[0]);
    assert_int_equal(t_out[n - 1], t_in[n - 1]);
}

TEST(random_blocks_come_back) {
    for (int round = 0; round < 20000; round++) {
        int n = 1 + (int)(random_bits() % HEC_BLOCK_VALUES);
        int bits = (int)(random_bits() % 39); /* 2^38 < 90^6 */
        int time_bits = (int)(random_bits() % 29);
        int64_t base = (int64_t)(random_bits() >> 2) - (INT64_C(1) << 61);
        t_in[0] = (int64_t)(random_bits() % 1000000000000) - 500000000000;
        for (int k = 0; k < n; k++) {
            v_in[k] = base + (int64_t)(random_bits() & ((UINT64_C(1) << bits) - 1));
            valid_in[k] = random_bits() % 8 != 0 || round % 2;
            if (k > 0)
                t_in[k] = t_in[k - 1] + (int64_t)(random_bits() & ((UINT64_C(1) << time_bits) - 1));
        }
        check(n, true, 0);
        check(n, false, 1000);
    }
}

TEST(extremes_come_back) {
    for (int i = 0; i < 3; i++) {
        t_in[0] = i == 1 ? HEC_BLOCK_TIME_MAX_US : i == 2 ? -HEC_BLOCK_TIME_MAX_US : 0;
        v_in[0] = i == 1 ? INT64_MAX : i == 2 ? INT64_MIN : 0;
        valid_in[0] = 1;
        check(1, true, 0);
    }
    t_in[0] = 0;
    t_in[1] = t_in[2] = HEC_BLOCK_RANGE;
    v_in[0] = INT64_MAX - HEC_BLOCK_RANGE;
    v_in[1] = INT64_MAX;
    v_in[2] = 0;
    valid_in[0] = valid_in[1] = 1;
    valid_in[2] = 0;
    check(3, true, 0);
    assert_int_equal(block.v_width, HEC_BLOCK_WIDTH_MAX);
    assert_int_equal(hec_pack_width(HEC_BLOCK_RANGE), HEC_BLOCK_WIDTH_MAX);
    assert_int_equal(hec_pack_width(HEC_BLOCK_RANGE + 1), HEC_BLOCK_WIDTH_MAX + 1);
}

TEST(even_and_constant_take_no_text) {
    for (int k = 0; k < 500; k++) {
        t_in[k] = 20000 * k + k % 3 * 300;
        v_in[k] = 42;
        valid_in[k] = 1;
    }
    check(500, false, 1000);
    assert_int_equal(block.v_width, 0);
    assert_int_equal(block.r_width, 0);
    check(500, true, 0);
    assert_int_equal(block.r_width, 2);
    /* 1 ms is not little where values are 2 ms apart: a tenth of it is the most */
    for (int k = 0; k < 500; k++)
        t_in[k] = 2000 * k + k % 3 * 300;
    check(500, false, 100);
    assert_int_equal(block.r_width, 2);
}

TEST(one_missing_in_a_constant) {
    for (int k = 0; k < 10; k++) {
        t_in[k] = 1000000 * k;
        v_in[k] = -7;
        valid_in[k] = k != 4;
    }
    check(10, false, 1000);
    assert_int_equal(block.v_width, 1);
    memset(valid_in, 0, 10);
    check(10, false, 1000);
}

/* Any change of a valid block is refused or gives values in order of time: never a crash. */
TEST(damaged_blocks) {
    int refused = 0;
    for (int round = 0; round < 100000; round++) {
        int n = 1 + (int)(random_bits() % 20);
        for (int k = 0; k < n; k++) {
            t_in[k] = k * 1000 + (int64_t)(random_bits() % 900);
            v_in[k] = (int64_t)(random_bits() % 100000);
            valid_in[k] = random_bits() % 4 != 0;
        }
        hec_pack(t_in, v_in, valid_in, n, true, &block);
        switch (random_bits() % 9) {
        case 0:
            block.n = (int)(random_bits() % 1100) - 100;
            break;
        case 1:
            block.v_width = (int)(random_bits() % 10) - 2;
            break;
        case 2:
            block.r_width = (int)(random_bits() % 10) - 2;
            break;
        case 3:
            block.t0_us = (int64_t)random_bits();
            break;
        case 4:
            block.t1_us = (int64_t)random_bits();
            break;
        case 5:
            block.v_base = INT64_MAX - (int64_t)(random_bits() % 100000);
            break;
        case 6:
            block.r_base = (int64_t)random_bits();
            break;
        case 7:
            block.v[random_bits() % 40] = (char)random_bits();
            break;
        default:
            block.r[random_bits() % 40] = (char)random_bits();
            break;
        }
        size_t v_length = block.n > 0 && block.v_width > 0 ? (size_t)block.n * (size_t)block.v_width : 0;
        size_t r_length = block.n > 0 && block.r_width > 0 ? (size_t)block.n * (size_t)block.r_width : 0;
        if (v_length > sizeof block.v || r_length > sizeof block.r)
            continue;
        if (hec_unpack(&block, block.v, v_length, block.r, r_length, t_out, v_out, valid_out)) {
            refused++;
            continue;
        }
        for (int k = 1; k < block.n; k++)
            assert_true(t_out[k] >= t_out[k - 1]);
    }
    assert_true(refused > 40000);
}

TEST(lengths_must_match) {
    for (int k = 0; k < 5; k++) {
        t_in[k] = k;
        v_in[k] = k * 100;
        valid_in[k] = 1;
    }
    hec_pack(t_in, v_in, valid_in, 5, true, &block);
    assert_null(unpack());
    assert_non_null(hec_unpack(&block, block.v, 9, block.r, 0, t_out, v_out, valid_out));
    assert_non_null(hec_unpack(&block, block.v, 11, block.r, 0, t_out, v_out, valid_out));
    assert_non_null(hec_unpack(&block, block.v, 10, block.r, 1, t_out, v_out, valid_out));
    block.v[2] = '~';
    assert_string_equal(unpack(), "a block's missing value is malformed");
    block.v[2] = ' ';
    assert_string_equal(unpack(), "a block's values hold a character that is no digit");
}
