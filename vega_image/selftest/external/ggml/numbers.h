/* Our own generator, SHA-256, and the encodings of tensors; nothing here calls libggml. */
#ifndef VEGA_NUMBERS_H
#define VEGA_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of `case:slot`: the key of one input tensor. */
uint64_t stream_key(const char *id, const char *slot);
/* Word number `index` of a stream: SplitMix64 of key + (index + 1) * golden ratio. */
uint64_t stream_word(uint64_t key, uint64_t index);
/* Uniform integer of [-limit, limit]. */
int64_t stream_int(uint64_t key, uint64_t index, int64_t limit);
/* -1 or 1. */
int64_t stream_sign(uint64_t key, uint64_t index);

uint16_t half_from(double value);
double half_to(uint16_t bits);

/* Elements -> bytes of a tensor type and back; quantised types need exact multiples of the
 * block scale `unit`. Returns the number of bytes. */
size_t encode(int type, const double *values, size_t count, double unit, void *bytes);
void decode(int type, const void *bytes, size_t count, double *values);
size_t encoded_size(int type, size_t count);

/* Lower-case hexadecimal SHA-256 of the little-endian doubles, minus zero written as zero. */
void sha256_doubles(const double *values, size_t count, char hex[65]);
void sha256_hex(const void *data, size_t size, char hex[65]);

#endif
