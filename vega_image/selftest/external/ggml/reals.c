/* Operations of real numbers: exact where their arguments make them so, else by a bound that
 * follows from the rounding errors of the steps (u = 2^-24). */
#include "trial.h"

#include "numbers.h"

#include <math.h>
#include <stdlib.h>

static double *reals(const Case *row, const char *slot, size_t count)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, slot);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)stream_int(key, i, 1 << 16) / (1 << 13);
    return values;
}

/* 0, or a multiple of 32 at least 128 away from it: there e^-x is 0 beside 1, or infinite. */
static double *saturating(const Case *row, const char *slot, size_t count)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, slot);
    for (size_t i = 0; i < count; i++) {
        double step = (double)stream_int(key, i, 7);
        values[i] = step == 0 ? 0 : 32 * step + (step > 0 ? 96 : -96);
    }
    return values;
}

static void results(Trial *t, size_t count)
{
    t->count = count;
    t->want = numbers(count);
    if (t->row->profile == REAL)
        t->bound = numbers(count);
}

/* Unmasked are 2^k equal numbers, the others larger: the result is 2^-k and 0. */
static void masked_row(const Case *row, size_t j, double *x, double *mask, double *want)
{
    size_t width = (size_t)row->a, kept = 1;
    uint64_t key = stream_key(row->id, "a"), pick = stream_key(row->id, "mask");
    uint64_t choice = stream_word(pick, j);
    for (uint64_t k = choice % 6; k && 2 * kept <= width; k--)
        kept *= 2;
    size_t stride = width / kept, start = (size_t)(choice >> 32) % stride;
    double level = (double)stream_int(key, j, 50);
    for (size_t i = 0; i < width; i++) {
        bool in = i % stride == start && i / stride < kept;
        x[i] = in ? level : level + 1 + (double)(i % 7);
        mask[i] = in ? 0 : -INFINITY;
        want[i] = in ? 1.0 / (double)kept : 0;
    }
}

static void soft_max(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, height = (size_t)row->b;
    results(t, width * height);
    double *x = row->profile == REAL ? reals(row, "a", t->count) : numbers(t->count);
    double *mask = numbers(t->count);
    for (size_t j = 0; j < height; j++) {
        double *at = x + j * width, *want = t->want + j * width, top = -INFINITY, sum = 0;
        if (row->profile != REAL) {
            masked_row(row, j, at, mask + j * width, want);
            continue;
        }
        for (size_t i = 0; i < width; i++)
            top = fmax(top, at[i]);
        for (size_t i = 0; i < width; i++)
            sum += exp(at[i] - top);
        for (size_t i = 0; i < width; i++) {
            want[i] = exp(at[i] - top) / sum;
            t->bound[j * width + i] =
                want[i] * ((double)width + 12 + 2 * (top - at[i])) * U32 + TINY;
        }
    }
    Tensor *ta = input(t, T_F32, NE(row->a, row->b, 1, 1), x, 1), *tm = NULL;
    if (row->profile != REAL)
        tm = input(t, T_F32, NE(row->a, row->b, 1, 1), mask, 1);
    t->out = G.ggml_soft_max_ext(t->context, ta, tm, 1.0f, 0.0f);
    free(x);
    free(mask);
}

static void rms_norm(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, height = (size_t)row->b;
    float eps = 0x1p-17f;
    results(t, width * height);
    double *x = reals(row, "a", t->count), *w = reals(row, "b", width);
    for (size_t j = 0; j < height; j++) {
        double sum = 0;
        for (size_t i = 0; i < width; i++)
            sum += x[j * width + i] * x[j * width + i];
        double scale = 1 / sqrt(sum / (double)width + (double)eps);
        for (size_t i = 0; i < width; i++) {
            size_t at = j * width + i;
            t->want[at] = x[at] * scale * (row->d ? w[i] : 1);
            /* Half the sum's error (it is under a root), root and quotient, two products. */
            t->bound[at] =
                fabs(t->want[at]) * (gamma_bound((double)width + 3, U32) / 2 + 12 * U32) + TINY;
        }
    }
    Tensor *ta = input(t, T_F32, NE(row->a, row->b, 1, 1), x, 1);
    t->out = G.ggml_rms_norm(t->context, ta, eps);
    if (row->d)
        t->out = G.ggml_mul(t->context, step(t, t->out), input(t, T_F32, NE(row->a, 1, 1, 1), w, 1));
    free(x);
    free(w);
}

static void turn(Trial *t, const double *x, size_t at, size_t partner, double angle[2])
{
    double c = cos(angle[0]), s = sin(angle[0]), size = fabs(x[at]) + fabs(x[partner]);
    t->want[at] = x[at] * c - x[partner] * s;
    t->want[partner] = x[at] * s + x[partner] * c;
    /* The angle's error, 4 ulp for sine and cosine, two products and a sum. */
    if (t->bound)
        t->bound[at] = t->bound[partner] = size * (angle[1] + 11 * U32) + TINY;
}

static void rope(Trial *t)
{
    const Case *row = t->row;
    size_t size = (size_t)row->a, heads = (size_t)row->b, tokens = (size_t)row->c;
    bool neox = row->d == 1;
    results(t, size * heads * tokens);
    double *x = reals(row, "a", t->count), *pos = numbers(tokens);
    uint64_t key = stream_key(row->id, "pos");
    for (size_t i = 0; i < tokens && row->profile == REAL; i++)
        pos[i] = (double)(stream_word(key, i) % 4096);
    for (size_t vector = 0; vector < heads * tokens; vector++)
        for (size_t i = 0; i < size / 2; i++) {
            size_t at = vector * size + (neox ? i : 2 * i);
            double angle = pos[vector / heads] * pow(10000.0, -2.0 * (double)i / (double)size);
            double error = angle * (2 * (double)i + 34) * U32;
            turn(t, x, at, at + (neox ? size / 2 : 1), (double[2]){angle, error});
        }
    Tensor *ta = input(t, T_F32, NE(row->a, row->b, row->c, 1), x, 1);
    Tensor *tp = input(t, T_I32, NE(row->c, 1, 1, 1), pos, 1);
    t->out = G.ggml_rope_ext(t->context, ta, tp, NULL, row->a, neox ? ROPE_NEOX : ROPE_NORMAL,
                             8192, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f);
    free(x);
    free(pos);
}

static Tensor *activation(Trial *t, Tensor *a, Tensor *b)
{
    switch (t->row->op) {
    case SILU:
        return G.ggml_silu(t->context, a);
    case GELU:
        return G.ggml_gelu(t->context, a);
    case RELU:
        return G.ggml_relu(t->context, a);
    case SWIGLU:
        return G.ggml_swiglu_split(t->context, a, b);
    default:
        return G.ggml_geglu_split(t->context, a, b);
    }
}

static void activations(Trial *t)
{
    const Case *row = t->row;
    bool gated = row->op == SWIGLU || row->op == GEGLU;
    results(t, (size_t)row->a * (size_t)row->b);
    double *x = row->profile == REAL ? reals(row, "a", t->count) : saturating(row, "a", t->count);
    double *gate = row->profile == REAL ? reals(row, "b", t->count) : saturating(row, "b", t->count);
    for (size_t i = 0; i < t->count; i++) {
        double y = row->profile == REAL ? x[i] / (1 + exp(-x[i])) : fmax(x[i], 0);
        t->want[i] = gated ? y * gate[i] : y;
        if (t->bound)
            t->bound[i] = (12 + 2 * fabs(x[i])) * U32 * fabs(t->want[i]) + TINY;
    }
    Tensor *ta = input(t, T_F32, NE(row->a, row->b, 1, 1), x, 1), *tb = NULL;
    if (gated)
        tb = input(t, T_F32, NE(row->a, row->b, 1, 1), gate, 1);
    t->out = activation(t, ta, tb);
    free(x);
    free(gate);
}

void build_reals(Trial *t)
{
    switch (t->row->op) {
    case SOFT_MAX:
        soft_max(t);
        break;
    case RMS_NORM:
        rms_norm(t);
        break;
    case ROPE:
        rope(t);
        break;
    default:
        activations(t);
    }
}
