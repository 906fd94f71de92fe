/* Matrix products. Inputs are integers (times a power of two for quantised types), so small
 * that every partial sum in any order is exact in the accumulator the profile names. */
#include "trial.h"

#include "numbers.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 32, PEAK = 127 };

static int64_t root(int64_t square)
{
    int64_t r = (int64_t)sqrt((double)square);
    while (r * r > square)
        r--;
    while ((r + 1) * (r + 1) <= square)
        r++;
    return r;
}

typedef struct {
    int64_t weight, other; /* largest |A|, largest |B| beside the peaks */
    double unit;
    bool peaks;
} Range;

static Range quantised(int type, enum Profile profile, int64_t k)
{
    Range range = {1, 1, 1.0, true};
    if (profile == ANY)
        return range;
    range.weight = type == T_Q8_0 ? 127 : 7;
    const int64_t choices[] = {60, 20, 5};
    for (int i = 0; i < 3; i++) {
        range.other = choices[i];
        if (range.weight * (PEAK + 31 * range.other) * (k / BLOCK) <= 1 << 24)
            break;
    }
    int64_t worst = range.weight * (PEAK + 31 * range.other) * (k / BLOCK);
    while ((double)worst * range.unit > 65504)
        range.unit /= 2;
    return range;
}

static Range range_of(int type, enum Profile profile, int64_t k)
{
    if (type == T_Q8_0 || type == T_Q4_0)
        return quantised(type, profile, k);
    int64_t room = profile == ANY ? 2048 / k : profile == ACC ? 65504 / k : (1 << 24) / k;
    Range range = {root(room), root(room), 1.0, false};
    if (profile == WIDE_A || profile == WIDE_B)
        range.weight = profile == WIDE_A ? room : 1, range.other = profile == WIDE_B ? room : 1;
    return range;
}

static double draw(uint64_t key, size_t i, int64_t limit, bool sign_only)
{
    return (double)(sign_only ? stream_sign(key, i) : stream_int(key, i, limit));
}

static double *weights(const Case *row, size_t count, Range range)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, "a");
    for (size_t i = 0; i < count; i++)
        values[i] = range.unit * draw(key, i, range.weight, row->profile == WIDE_B);
    return values;
}

/* One element of each block of 32 is +-127, so that quantising the block is exact. */
static double *activations(const Case *row, size_t count, Range range)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, "b"), peak = stream_key(row->id, "peak");
    for (size_t i = 0; i < count; i++)
        values[i] = draw(key, i, range.other, row->profile == WIDE_A);
    for (size_t i = 0; range.peaks && i < count / BLOCK; i++) {
        uint64_t word = stream_word(peak, i);
        values[i * BLOCK + word % BLOCK] = word >> 63 ? PEAK : -PEAK;
    }
    return values;
}

static void dot(Trial *t, size_t at, const double *a, const double *b)
{
    int64_t k = t->row->c;
    double sum = 0, size = 0;
    for (int64_t i = 0; i < k; i++) {
        sum += a[i] * b[i];
        size += fabs(a[i] * b[i]);
    }
    t->want[at] = sum;
    if (t->degraded)
        t->degraded[at] = gamma_bound((double)k + 2, U16) * size;
}

static void results(Trial *t, size_t count)
{
    t->count = count;
    t->want = numbers(count);
    /* At half the accumulator's reach the bound would accept anything. */
    if (t->row->profile != ANY && t->row->c + 2 < 1024)
        t->degraded = numbers(count);
}

static void plain(Trial *t)
{
    const Case *row = t->row;
    size_t m = (size_t)row->a, n = (size_t)row->b, k = (size_t)row->c;
    size_t shared = (size_t)row->d, tables = shared == 1 ? 1 : 2, batches = tables * shared;
    Range range = range_of(row->type, row->profile, row->c);
    double *a = weights(row, tables * m * k, range), *b = activations(row, batches * n * k, range);
    Tensor *ta = input(t, row->type, NE(row->c, row->a, (int64_t)tables, 1), a, range.unit);
    Tensor *tb = input(t, T_F32, NE(row->c, row->b, (int64_t)batches, 1), b, 1);
    t->out = G.ggml_mul_mat(t->context, ta, tb);
    results(t, batches * n * m);
    for (size_t batch = 0; batch < batches; batch++)
        for (size_t j = 0; j < n; j++)
            for (size_t i = 0; i < m; i++)
                dot(t, (batch * n + j) * m + i, a + (batch / shared * m + i) * k,
                    b + (batch * n + j) * k);
    free(a);
    free(b);
}

static void by_expert(Trial *t)
{
    enum { EXPERTS = 4 };
    const Case *row = t->row;
    size_t m = (size_t)row->a, tokens = (size_t)row->b, k = (size_t)row->c, used = 2;
    Range range = range_of(row->type, row->profile, row->c);
    double *a = weights(row, EXPERTS * m * k, range);
    double *b = activations(row, tokens * used * k, range), *ids = numbers(tokens * used);
    uint64_t key = stream_key(row->id, "ids");
    for (size_t i = 0; i < tokens; i++) {
        uint64_t word = stream_word(key, i);
        ids[2 * i] = (double)(word % EXPERTS);
        ids[2 * i + 1] = (double)((word + 1 + (word >> 32) % (EXPERTS - 1)) % EXPERTS);
    }
    Tensor *ta = input(t, row->type, NE(row->c, row->a, EXPERTS, 1), a, range.unit);
    Tensor *tb = input(t, T_F32, NE(row->c, (int64_t)used, row->b, 1), b, 1);
    Tensor *ti = input(t, T_I32, NE((int64_t)used, row->b, 1, 1), ids, 1);
    t->out = G.ggml_mul_mat_id(t->context, ta, tb, ti);
    results(t, tokens * used * m);
    for (size_t slot = 0; slot < tokens * used; slot++)
        for (size_t i = 0; i < m; i++)
            dot(t, slot * m + i, a + ((size_t)ids[slot] * m + i) * k, b + slot * k);
    free(a);
    free(b);
    free(ids);
}

void build_products(Trial *t)
{
    if (t->row->op == MUL_MAT)
        plain(t);
    else
        by_expert(t);
}
