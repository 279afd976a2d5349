#include "store/pack.h"

#include <string.h>

#define BASE 90
#define FIRST '#'
#define MISSING '~'

int hec_pack_width(int64_t range) {
    int width = 0;
    while (range > 0) {
        width++;
        range /= BASE;
    }
    return width;
}

static void put(char *at, int width, uint64_t number) {
    for (int j = 0; j < width; j++) {
        at[j] = (char)(FIRST + number % BASE);
        number /= BASE;
    }
}

/* -1: not a number */
static int64_t get(const char *at, int width) {
    int64_t number = 0;
    for (int j = width - 1; j >= 0; j--) {
        int digit = (unsigned char)at[j] - FIRST;
        if (digit < 0 || digit >= BASE)
            return -1;
        number = number * BASE + digit;
    }
    return number;
}

static int64_t even(const struct hec_block *block, int k) {
    return block->n > 1 ? block->t0_us + k * (block->t1_us - block->t0_us) / (block->n - 1) : block->t0_us;
}

static void pack_times(const int64_t *t_us, bool exact, struct hec_block *block) {
    int64_t low = 0, high = 0;
    for (int k = 0; k < block->n; k++) {
        int64_t r = t_us[k] - even(block, k);
        low = r < low ? r : low;
        high = r > high ? r : high;
    }
    int64_t spacing = block->n > 1 ? (block->t1_us - block->t0_us) / (block->n - 1) : 0;
    int64_t tolerance = exact ? 0 : spacing / 20 < 1000 ? spacing / 20 : 1000;
    if (-low <= tolerance && high <= tolerance)
        low = high = 0;
    block->r_base = low;
    block->r_width = hec_pack_width(high - low);
    for (int k = 0; block->r_width && k < block->n; k++)
        put(block->r + k * block->r_width, block->r_width, (uint64_t)(t_us[k] - even(block, k) - low));
}

static void pack_values(const int64_t *v, const uint8_t *valid, struct hec_block *block) {
    int64_t low = 0, high = 0;
    bool any = false, all = true;
    for (int k = 0; k < block->n; k++) {
        if (!valid[k]) {
            all = false;
            continue;
        }
        low = !any || v[k] < low ? v[k] : low;
        high = !any || v[k] > high ? v[k] : high;
        any = true;
    }
    block->v_base = low;
    block->v_width = hec_pack_width(high - low);
    if (!all && block->v_width == 0)
        block->v_width = 1;
    for (int k = 0; block->v_width && k < block->n; k++) {
        if (valid[k])
            put(block->v + k * block->v_width, block->v_width, (uint64_t)(v[k] - low));
        else
            memset(block->v + k * block->v_width, MISSING, (size_t)block->v_width);
    }
}

void hec_pack(const int64_t *t_us, const int64_t *v, const uint8_t *valid, int n, bool exact, struct hec_block *block) {
    block->n = n;
    block->t0_us = t_us[0];
    block->t1_us = t_us[n - 1];
    pack_times(t_us, exact, block);
    pack_values(v, valid, block);
}

const char *hec_unpack(const struct hec_block *head, const char *v, size_t v_length, const char *r, size_t r_length,
                       int64_t *t_us, int64_t *value, uint8_t *valid) {
    if (head->n < 1 || head->n > HEC_BLOCK_VALUES)
        return "a block's number of values is out of range";
    if (head->v_width < 0 || head->v_width > HEC_BLOCK_WIDTH_MAX || head->r_width < 0 ||
        head->r_width > HEC_BLOCK_WIDTH_MAX)
        return "a block's width is out of range";
    if (v_length != (size_t)head->n * (size_t)head->v_width || r_length != (size_t)head->n * (size_t)head->r_width)
        return "a block's text does not have the length of its values";
    if (head->t0_us > head->t1_us || head->t0_us < -HEC_BLOCK_TIME_MAX_US || head->t1_us > HEC_BLOCK_TIME_MAX_US ||
        head->r_base > 0 || head->r_base < -HEC_BLOCK_RANGE)
        return "a block's times are out of range";
    for (int k = 0; k < head->n; k++) {
        int64_t residual = get(r + k * head->r_width, head->r_width);
        if (residual < 0)
            return "a block's times hold a character that is no digit";
        t_us[k] = even(head, k) + head->r_base + residual;
        if (t_us[k] < head->t0_us || t_us[k] > head->t1_us || (k > 0 && t_us[k] < t_us[k - 1]))
            return "a block's times are not in order";
        valid[k] = 1;
        if (head->v_width && v[k * head->v_width] == MISSING) {
            for (int j = 1; j < head->v_width; j++)
                if (v[k * head->v_width + j] != MISSING)
                    return "a block's missing value is malformed";
            valid[k] = 0;
            value[k] = 0;
            continue;
        }
        int64_t number = get(v + k * head->v_width, head->v_width);
        if (number < 0)
            return "a block's values hold a character that is no digit";
        if (__builtin_add_overflow(head->v_base, number, &value[k]))
            return "a block's value does not fit 64 bits";
    }
    if (t_us[0] != head->t0_us || t_us[head->n - 1] != head->t1_us)
        return "a block's times do not begin and end where it says";
    return NULL;
}
