/* Attention as recall. Keys are random signs times 4; the second half of the keys repeats the
 * first with other values. A query is one of the keys: its score exceeds all others' by so
 * much that their weights are exactly 0. The mask hides one half or none, so the answer is one
 * value, or exactly the mean of two. */
#include "trial.h"

#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARED = 2, SIZE = 4, MARGIN = 128 };

typedef struct {
    size_t size, heads, keys, queries, key_heads;
    double *q, *k, *v, *mask;
} Recall;

static double *drawn(const Case *row, const char *slot, size_t count, int64_t limit)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, slot);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)(limit ? stream_int(key, i, limit) : SIZE * stream_sign(key, i));
    return values;
}

static size_t target(const Case *row, const Recall *r, size_t head, size_t query)
{
    uint64_t word = stream_word(stream_key(row->id, "target"), head * r->queries + query);
    return (size_t)(word % (r->keys / 2));
}

/* 0: first half hidden, 1: second half, 2: none. */
static size_t hidden(const Case *row, size_t query)
{
    return (size_t)(stream_word(stream_key(row->id, "hidden"), query) % 3);
}

static double score(const Recall *r, const double *q, const double *k)
{
    double sum = 0;
    for (size_t i = 0; i < r->size; i++)
        sum += q[i] * k[i];
    return sum;
}

static void certify(const Recall *r, size_t head, const double *q, size_t right)
{
    const double *k = r->k + head / SHARED * r->keys * r->size;
    for (size_t j = 0; j < r->keys / 2; j++)
        if (j != right && score(r, q, k + j * r->size) + MARGIN > score(r, q, q)) {
            fputs("attention: two keys too alike\n", stderr);
            exit(1);
        }
}

static Recall recall(const Case *row)
{
    Recall r = {(size_t)row->a, (size_t)row->b, (size_t)row->c, (size_t)row->d, 0, 0, 0, 0, 0};
    r.key_heads = r.heads / SHARED;
    r.k = drawn(row, "k", r.key_heads * r.keys * r.size, 0);
    r.v = drawn(row, "v", r.key_heads * r.keys * r.size, 30);
    r.q = numbers(r.heads * r.queries * r.size);
    r.mask = numbers(r.queries * r.keys);
    size_t half = r.keys / 2 * r.size;
    for (size_t i = 0; i < r.key_heads * r.keys * r.size; i++)
        if (i % (2 * half) >= half)
            r.k[i] = r.k[i - half];
    for (size_t i = 0; i < r.queries * r.keys; i++)
        if (hidden(row, i / r.keys) == (i % r.keys) / (r.keys / 2))
            r.mask[i] = -INFINITY;
    for (size_t i = 0; i < r.heads * r.queries; i++) {
        size_t head = i / r.queries, right = target(row, &r, head, i % r.queries);
        const double *k = r.k + (head / SHARED * r.keys + right) * r.size;
        for (size_t d = 0; d < r.size; d++)
            r.q[i * r.size + d] = k[d];
        certify(&r, head, r.q + i * r.size, right);
    }
    return r;
}

static void answers(Trial *t, const Recall *r)
{
    t->count = r->size * r->heads * r->queries;
    t->want = numbers(t->count);
    t->degraded = numbers(t->count);
    t->grid = 0.5;
    for (size_t i = 0; i < t->count; i++) {
        size_t d = i % r->size, head = i / r->size % r->heads, query = i / r->size / r->heads;
        size_t right = target(t->row, r, head, query), half = r->keys / 2 * r->size;
        const double *v = r->v + (head / SHARED * r->keys + right) * r->size + d;
        size_t which = hidden(t->row, query);
        t->want[i] = which == 0 ? v[half] : which == 1 ? v[0] : (v[0] + v[half]) / 2;
        /* Two weights and their sum in half precision, the products, their sum, a quotient. */
        t->degraded[i] = gamma_bound(6, U16) * fmax(fabs(v[0]), fabs(v[half]));
    }
}

static Tensor *values_across(Trial *t, const Recall *r)
{
    double *across = numbers(r->key_heads * r->keys * r->size);
    for (size_t head = 0; head < r->key_heads; head++)
        for (size_t j = 0; j < r->keys; j++)
            for (size_t d = 0; d < r->size; d++)
                across[(head * r->size + d) * r->keys + j] = r->v[(head * r->keys + j) * r->size + d];
    int64_t heads = (int64_t)r->key_heads;
    Tensor *made = input(t, T_F16, NE(t->row->c, t->row->a, heads, 1), across, 1);
    free(across);
    return made;
}

void build_attention(Trial *t)
{
    const Case *row = t->row;
    bool flash = row->op == FLASH_ATTN;
    Recall r = recall(row);
    int64_t heads = (int64_t)r.key_heads;
    answers(t, &r);
    Tensor *q = input(t, T_F32, NE(row->a, row->d, row->b, 1), r.q, 1);
    Tensor *k = input(t, T_F16, NE(row->a, row->c, heads, 1), r.k, 1);
    Tensor *mask = input(t, flash ? T_F16 : T_F32, NE(row->c, row->d, 1, 1), r.mask, 1);
    if (flash) {
        Tensor *v = input(t, T_F16, NE(row->a, row->c, heads, 1), r.v, 1);
        t->out = G.ggml_flash_attn_ext(t->context, q, k, v, mask, 1.0f, 0.0f, 0.0f);
    } else {
        Tensor *scores = step(t, G.ggml_mul_mat(t->context, k, q));
        Tensor *shares = step(t, G.ggml_soft_max_ext(t->context, scores, mask, 1.0f, 0.0f));
        Tensor *mixed = step(t, G.ggml_mul_mat(t->context, values_across(t, &r), shares));
        t->out = G.ggml_cont(t->context, G.ggml_permute(t->context, mixed, 0, 2, 1, 3));
    }
    free(r.q);
    free(r.k);
    free(r.v);
    free(r.mask);
}
