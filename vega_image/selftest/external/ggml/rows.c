/* Taking, setting, joining, counting and ordering rows. */
#include "trial.h"

#include "numbers.h"

#include <math.h>
#include <stdlib.h>

static double *table(const Case *row, const char *slot, size_t count, int type)
{
    double *values = numbers(count), unit = type == T_Q8_0 || type == T_Q4_0 ? 0.25 : 1;
    uint64_t key = stream_key(row->id, slot);
    int64_t limit = type == T_Q4_0 ? 7 : type == T_Q8_0 ? 127 : 2048;
    for (size_t i = 0; i < count; i++)
        values[i] = unit * (double)stream_int(key, i, limit);
    return values;
}

/* The first `taken` numbers of a shuffle of 0..count-1. */
static double *shuffled(const Case *row, const char *slot, size_t count, size_t taken)
{
    double *values = numbers(count);
    uint64_t key = stream_key(row->id, slot);
    for (size_t i = 0; i < count; i++)
        values[i] = (double)i;
    for (size_t i = 0; i < taken; i++) {
        size_t other = i + (size_t)(stream_word(key, i) % (count - i));
        double held = values[i];
        values[i] = values[other];
        values[other] = held;
    }
    return values;
}

static double unit_of(int type)
{
    return type == T_Q8_0 || type == T_Q4_0 ? 0.25 : 1;
}

static void get_rows(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, taken = (size_t)row->c;
    double *a = table(row, "a", width * (size_t)row->b, row->type), *ids = numbers(taken);
    uint64_t key = stream_key(row->id, "ids");
    for (size_t i = 0; i < taken; i++)
        ids[i] = (double)(stream_word(key, i) % (uint64_t)row->b);
    Tensor *ta = input(t, row->type, NE(row->a, row->b, 1, 1), a, unit_of(row->type));
    t->out = G.ggml_get_rows(t->context, ta, input(t, T_I32, NE(row->c, 1, 1, 1), ids, 1));
    t->count = width * taken;
    t->want = numbers(t->count);
    for (size_t i = 0; i < t->count; i++)
        t->want[i] = a[(size_t)ids[i / width] * width + i % width];
    free(a);
    free(ids);
}

/* Quantised on the way: each block of the source holds 127, so its scale is 1. */
static void set_rows(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, height = (size_t)row->b, set = (size_t)row->c;
    double *a = table(row, "a", width * height, row->type), *b = numbers(width * set);
    double *ids = shuffled(row, "ids", height, set);
    uint64_t key = stream_key(row->id, "b");
    for (size_t i = 0; i < width * set; i++)
        b[i] = i % 32 == 5 ? 127 : (double)stream_int(key, i, 126);
    Tensor *ta = input(t, row->type, NE(row->a, row->b, 1, 1), a, unit_of(row->type));
    t->inputs[0].overwritten = true;
    Tensor *tb = input(t, T_F32, NE(row->a, row->c, 1, 1), b, 1);
    Tensor *ti = input(t, T_I64, NE(row->c, 1, 1, 1), ids, 1);
    t->out = G.ggml_set_rows(t->context, ta, tb, ti);
    t->out_type = row->type;
    t->count = width * height;
    t->want = numbers(t->count);
    for (size_t i = 0; i < t->count; i++)
        t->want[i] = a[i];
    for (size_t i = 0; i < width * set; i++)
        t->want[(size_t)ids[i / width] * width + i % width] = b[i];
    free(a);
    free(b);
    free(ids);
}

static void concat(Trial *t)
{
    const Case *row = t->row;
    int64_t first[4] = {row->a, row->b, row->c, 1}, second[4] = {row->a, row->b, row->c, 1};
    second[row->d] += 3;
    size_t n[2] = {(size_t)(first[0] * first[1] * first[2]),
                   (size_t)(second[0] * second[1] * second[2])};
    double *part[2] = {table(row, "a", n[0], T_F32), table(row, "b", n[1], T_F32)};
    Tensor *ta = input(t, T_F32, first, part[0], 1), *tb = input(t, T_F32, second, part[1], 1);
    t->out = G.ggml_concat(t->context, ta, tb, row->d);
    t->count = n[0] + n[1];
    t->want = numbers(t->count);
    size_t inner = 1, at = 0;
    for (int i = 0; i < row->d; i++)
        inner *= (size_t)first[i];
    size_t run[2] = {inner * (size_t)first[row->d], inner * (size_t)second[row->d]};
    for (size_t outer = 0; outer < n[0] / run[0]; outer++)
        for (int which = 0; which < 2; which++)
            for (size_t i = 0; i < run[which]; i++)
                t->want[at++] = part[which][outer * run[which] + i];
    free(part[0]);
    free(part[1]);
}

static void repeat(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, height = (size_t)row->b;
    double *a = table(row, "a", width * height, T_F32);
    Tensor *like = G.ggml_new_tensor(t->context, T_F32, 4, NE(3 * row->a, 2 * row->b, 1, 1));
    t->out = G.ggml_repeat(t->context, input(t, T_F32, NE(row->a, row->b, 1, 1), a, 1), like);
    t->count = 6 * width * height;
    t->want = numbers(t->count);
    for (size_t i = 0; i < t->count; i++)
        t->want[i] = a[i / (3 * width) % height * width + i % width];
    free(a);
}

static void sum_rows(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a;
    double *a = table(row, "a", width * (size_t)row->b, T_F32);
    t->out = G.ggml_sum_rows(t->context, input(t, T_F32, NE(row->a, row->b, 1, 1), a, 1));
    t->count = (size_t)row->b;
    t->want = numbers(t->count);
    for (size_t i = 0; i < width * t->count; i++)
        t->want[i / width] += a[i];
    free(a);
}

/* Rows are shuffles, so that no two numbers of a row are equal. */
static void ordered(Trial *t)
{
    const Case *row = t->row;
    size_t width = (size_t)row->a, height = (size_t)row->b;
    bool all = row->op == ARGSORT;
    double *a = numbers(width * height);
    t->count = all ? width * height : height;
    t->want = numbers(t->count);
    for (size_t j = 0; j < height; j++) {
        char slot[24] = {'r', (char)('0' + j / 10), (char)('0' + j % 10), 0};
        double *order = shuffled(row, slot, width, width);
        for (size_t i = 0; i < width; i++) {
            a[j * width + i] = order[i];
            size_t rank = (size_t)(row->d ? (double)width - 1 - order[i] : order[i]);
            if (all)
                t->want[j * width + rank] = (double)i;
            else if (order[i] == (double)width - 1)
                t->want[j] = (double)i;
        }
        free(order);
    }
    Tensor *ta = input(t, T_F32, NE(row->a, row->b, 1, 1), a, 1);
    t->out = all ? G.ggml_argsort(t->context, ta, row->d) : G.ggml_argmax(t->context, ta);
    t->out_type = T_I32;
    free(a);
}

void build_rows(Trial *t)
{
    switch (t->row->op) {
    case GET_ROWS:
        get_rows(t);
        break;
    case SET_ROWS:
        set_rows(t);
        break;
    case CONCAT:
        concat(t);
        break;
    case REPEAT:
        repeat(t);
        break;
    case SUM_ROWS:
        sum_rows(t);
        break;
    default:
        ordered(t);
    }
}
