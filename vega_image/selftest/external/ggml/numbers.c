#include "numbers.h"

#include "ggmlapi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32, Q8_BYTES = 34, Q4_BYTES = 18 };

uint64_t stream_key(const char *id, const char *slot)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = id; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    hash = (hash ^ ':') * 0x100000001b3u;
    for (const char *at = slot; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    return hash;
}

uint64_t stream_word(uint64_t key, uint64_t index)
{
    uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t stream_int(uint64_t key, uint64_t index, int64_t limit)
{
    uint64_t span = 2 * (uint64_t)limit + 1;
    return (int64_t)((stream_word(key, index) >> 32) % span) - limit;
}

int64_t stream_sign(uint64_t key, uint64_t index)
{
    return stream_word(key, index) >> 63 ? 1 : -1;
}

uint16_t half_from(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (size == 0)
        return sign;
    int exponent;
    frexp(size, &exponent);
    if (exponent < -13)
        exponent = -13;
    double steps = nearbyint(ldexp(size, 11 - exponent));
    if (steps >= 2048) {
        steps /= 2;
        exponent++;
    }
    if (isinf(value) || exponent > 16)
        return sign | 0x7c00;
    if (steps < 1024)
        return sign | (uint16_t)steps;
    return sign | (uint16_t)((exponent + 14) << 10) | (uint16_t)((int)steps - 1024);
}

double half_to(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31   ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

size_t encoded_size(int type, size_t count)
{
    switch (type) {
    case T_F32:
    case T_I32:
        return 4 * count;
    case T_F16:
        return 2 * count;
    case T_I64:
        return 8 * count;
    case T_Q8_0:
        return count / BLOCK * Q8_BYTES;
    case T_Q4_0:
        return count / BLOCK * Q4_BYTES;
    default:
        abort();
    }
}

static void encode_block(int type, const double *values, double unit, uint8_t *block)
{
    uint16_t scale = half_from(unit);
    memcpy(block, &scale, 2);
    for (int i = 0; i < BLOCK; i++) {
        int steps = (int)nearbyint(values[i] / unit);
        if (type == T_Q8_0)
            block[2 + i] = (uint8_t)(int8_t)steps;
        else if (i < BLOCK / 2)
            block[2 + i] = (uint8_t)(steps + 8);
        else
            block[2 + i - BLOCK / 2] |= (uint8_t)((steps + 8) << 4);
    }
}

static void decode_block(int type, const uint8_t *block, double *values)
{
    uint16_t scale;
    memcpy(&scale, block, 2);
    double unit = half_to(scale);
    for (int i = 0; i < BLOCK; i++) {
        int steps = type == T_Q8_0      ? (int8_t)block[2 + i]
                    : i < BLOCK / 2 ? (block[2 + i] & 15) - 8
                                        : (block[2 + i - BLOCK / 2] >> 4) - 8;
        values[i] = unit * steps;
    }
}

size_t encode(int type, const double *values, size_t count, double unit, void *bytes)
{
    uint8_t *at = bytes;
    if (type == T_Q8_0 || type == T_Q4_0) {
        size_t size = type == T_Q8_0 ? Q8_BYTES : Q4_BYTES;
        for (size_t i = 0; i < count / BLOCK; i++)
            encode_block(type, values + i * BLOCK, unit, at + i * size);
        return count / BLOCK * size;
    }
    for (size_t i = 0; i < count; i++) {
        float single = (float)values[i];
        int32_t word = type == T_I32 ? (int32_t)values[i] : 0;
        int64_t wide = type == T_I64 ? (int64_t)values[i] : 0;
        uint16_t half = type == T_F16 ? half_from(values[i]) : 0;
        if (type == T_F32)
            memcpy(at + 4 * i, &single, 4);
        else if (type == T_I32)
            memcpy(at + 4 * i, &word, 4);
        else if (type == T_I64)
            memcpy(at + 8 * i, &wide, 8);
        else
            memcpy(at + 2 * i, &half, 2);
    }
    return encoded_size(type, count);
}

void decode(int type, const void *bytes, size_t count, double *values)
{
    const uint8_t *at = bytes;
    if (type == T_Q8_0 || type == T_Q4_0) {
        size_t size = type == T_Q8_0 ? Q8_BYTES : Q4_BYTES;
        for (size_t i = 0; i < count / BLOCK; i++)
            decode_block(type, at + i * size, values + i * BLOCK);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        float single;
        int32_t word;
        uint16_t half;
        if (type == T_F32) {
            memcpy(&single, at + 4 * i, 4);
            values[i] = single;
        } else if (type == T_I32) {
            memcpy(&word, at + 4 * i, 4);
            values[i] = word;
        } else {
            memcpy(&half, at + 2 * i, 2);
            values[i] = half_to(half);
        }
    }
}

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t turn(uint32_t word, int by)
{
    return word >> by | word << (32 - by);
}

static void absorb(uint32_t state[8], const uint8_t *chunk)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)chunk[4 * i] << 24 | (uint32_t)chunk[4 * i + 1] << 16 |
               (uint32_t)chunk[4 * i + 2] << 8 | chunk[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
               (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t1 = v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                      ((e & v[5]) ^ (~e & v[6])) + ROUND[i] + w[i];
        uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void sha256_hex(const void *data, size_t size, char hex[65])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = data;
    size_t whole = size / 64;
    for (size_t i = 0; i < whole; i++)
        absorb(state, at + 64 * i);
    uint8_t tail[128] = {0};
    size_t rest = size - 64 * whole, padded = rest < 56 ? 64 : 128;
    if (rest)
        memcpy(tail, at + 64 * whole, rest);
    tail[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        tail[padded - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    absorb(state, tail);
    if (padded == 128)
        absorb(state, tail + 64);
    for (int i = 0; i < 32; i++) {
        uint8_t byte = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
        hex[2 * i] = "0123456789abcdef"[byte >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[byte & 15];
    }
    hex[64] = 0;
}

void sha256_doubles(const double *values, size_t count, char hex[65])
{
    double *plain = malloc(count * sizeof *plain + 1);
    if (!plain)
        abort();
    for (size_t i = 0; i < count; i++)
        plain[i] = values[i] == 0 ? 0.0 : values[i];
    sha256_hex(plain, count * sizeof *plain, hex);
    free(plain);
}
