/* Sums, products and copies of single elements. */
#include "trial.h"

#include "numbers.h"

#include <math.h>
#include <stdlib.h>

enum { BLOCK = 32 };

static double *integers(const Case *row, const char *slot, size_t count, int64_t limit)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, slot);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)stream_int(key, i, limit);
    return values;
}

static double apply(enum Op op, double a, double b)
{
    return op == ADD ? a + b : op == SUB ? a - b : op == MUL ? a * b : a / b;
}

static Tensor *node(Trial *t, Tensor *a, Tensor *b)
{
    switch (t->row->op) {
    case ADD:
        return G.ggml_add(t->context, a, b);
    case SUB:
        return G.ggml_sub(t->context, a, b);
    case MUL:
        return G.ggml_mul(t->context, a, b);
    default:
        return G.ggml_div(t->context, a, b);
    }
}

static void pair(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, second = row->d ? width : t->count;
    double *a = integers(row, "a", t->count, 1000), *b = integers(row, "b", second, 1000);
    for (size_t i = 0; row->op == DIV && i < second; i++)
        b[i] = b[i] == 0 ? 1 : b[i];
    Tensor *ta = input(t, T_F32, NE(row->a, row->b, row->c, 1), a, 1);
    Tensor *tb = input(t, T_F32, row->d ? NE(row->a, 1, 1, 1) : NE(row->a, row->b, row->c, 1), b, 1);
    t->out = node(t, ta, tb);
    if (row->op == DIV)
        t->bound = numbers(t->count);
    for (size_t i = 0; i < t->count; i++) {
        t->want[i] = apply(row->op, a[i], b[row->d ? i % width : i]);
        if (t->bound)
            t->bound[i] = 2 * 2.5 * U32 * fabs(t->want[i]) + TINY;
    }
    free(a);
    free(b);
}

static void scaled(Trial *t)
{
    const Case *row = t->row;
    double *a = integers(row, "a", t->count, 1000);
    t->out = G.ggml_scale(t->context, input(t, T_F32, NE(row->a, row->b, row->c, 1), a, 1), 0.125f);
    for (size_t i = 0; i < t->count; i++)
        t->want[i] = a[i] * 0.125;
    free(a);
}

/* Each block holds the number that makes its scale exactly 1. */
static double *copied_values(const Case *row, size_t count)
{
    int64_t limit = row->type == T_F16 ? 60000 : row->type == T_Q8_0 ? 126 : 7;
    double *values = integers(row, "a", count, limit);
    uint64_t peak = stream_key(row->id, "peak");
    for (size_t i = 0; row->type != T_F16 && i < count / BLOCK; i++) {
        uint64_t word = stream_word(peak, i);
        double size = row->type == T_Q8_0 ? (word >> 63 ? 127 : -127) : -8;
        values[i * BLOCK + word % BLOCK] = size;
    }
    return values;
}

static void copied(Trial *t)
{
    const Case *row = t->row;
    double *a = copied_values(row, t->count);
    Tensor *from = input(t, T_F32, NE(row->a, row->b, 1, 1), a, 1);
    Tensor *to = G.ggml_new_tensor(t->context, row->type, 4, NE(row->a, row->b, 1, 1));
    t->out = G.ggml_cpy(t->context, from, to);
    t->out_type = row->type;
    for (size_t i = 0; i < t->count; i++)
        t->want[i] = row->type == T_F16 ? half_to(half_from(a[i])) : a[i];
    free(a);
}

static void copied_back(Trial *t)
{
    const Case *row = t->row;
    double *a = integers(row, "a", t->count, 2048);
    Tensor *from = input(t, row->type, NE(row->a, row->b, 1, 1), a, 1);
    Tensor *to = G.ggml_new_tensor(t->context, T_F32, 4, NE(row->a, row->b, 1, 1));
    t->out = G.ggml_cpy(t->context, from, to);
    for (size_t i = 0; i < t->count; i++)
        t->want[i] = a[i];
    free(a);
}

static void permuted(Trial *t)
{
    const Case *row = t->row;
    size_t x = (size_t)row->a, y = (size_t)row->b, z = (size_t)row->c;
    double *a = integers(row, "a", t->count, 100000);
    Tensor *from = input(t, T_F32, NE(row->a, row->b, row->c, 1), a, 1);
    t->out = G.ggml_cont(t->context, G.ggml_permute(t->context, from, 1, 2, 0, 3));
    for (size_t k = 0; k < z; k++)
        for (size_t j = 0; j < y; j++)
            for (size_t i = 0; i < x; i++)
                t->want[(j * x + i) * z + k] = a[(k * y + j) * x + i];
    free(a);
}

void build_elements(Trial *t)
{
    t->count = (size_t)t->row->a * (size_t)t->row->b * (size_t)t->row->c;
    t->want = numbers(t->count);
    switch (t->row->op) {
    case SCALE:
        scaled(t);
        break;
    case CPY:
        copied(t);
        break;
    case CPY_FROM:
        copied_back(t);
        break;
    case CONT:
        permuted(t);
        break;
    default:
        pair(t);
    }
}
