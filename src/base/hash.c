/* SipHash-1-3 (Aumasson and Bernstein, 2012), as the hash tables of Rust and Python have it. */
#include "base/hash.h"

#include "base/clock.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

size_t hec_keys_find(const uint64_t *slots, size_t size, const char *key, size_t length, uint64_t *hash) {
    uint64_t sum = hec_hash(key, length);
    *hash = sum ? sum : 1;
    size_t at = (size_t)((sum ^ sum >> 32) % size);
    while (slots[at] && slots[at] != *hash)
        at = (at + 1) % size;
    return at;
}

static uint64_t secret[2];
static pthread_once_t drawn = PTHREAD_ONCE_INIT;

static void draw(void) {
    if (getrandom(secret, sizeof secret, GRND_NONBLOCK) == (ssize_t)sizeof secret)
        return;
    secret[0] = (uint64_t)hec_clock_mono_ns(); /* without the call, or while the machine boots */
    secret[1] = (uint64_t)(uintptr_t)&secret;
}

static inline uint64_t rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static inline void mix_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t hec_hash(const void *bytes, size_t length) {
    pthread_once(&drawn, draw);
    uint64_t v[4] = {secret[0] ^ UINT64_C(0x736f6d6570736575), secret[1] ^ UINT64_C(0x646f72616e646f6d),
                     secret[0] ^ UINT64_C(0x6c7967656e657261), secret[1] ^ UINT64_C(0x7465646279746573)};
    const unsigned char *at = bytes;
    uint64_t word, last = (uint64_t)length << 56;
    size_t left = length;
    for (; left >= 8; at += 8, left -= 8) {
        memcpy(&word, at, 8);
        mix_word(v, word);
    }
    for (size_t i = 0; i < left; i++)
        last |= (uint64_t)at[i] << 8 * i;
    mix_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
