#include "trial.h"

#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>

#define F32 T_F32
#define F16 T_F16
#define Q8_0 T_Q8_0
#define Q4_0 T_Q4_0
const Case CASES[] = {
#define CASE(id, op, type, profile, a, b, c, d, level, required)                                \
    {id, op, type, profile, a, b, c, d, level, required},
#include "cases.def"
#undef CASE
};
const size_t CASE_COUNT = sizeof CASES / sizeof *CASES;

void *wanted(size_t size)
{
    void *memory = calloc(size ? size : 1, 1);
    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

double *numbers(size_t count)
{
    return wanted(count * sizeof(double));
}

double gamma_bound(double n, double u)
{
    return n * u / (1 - n * u);
}

Tensor *input(Trial *trial, int type, const int64_t ne[4], const double *values, double unit)
{
    size_t count = (size_t)(ne[0] * ne[1] * ne[2] * ne[3]);
    Input *slot = &trial->inputs[trial->input_count++];
    slot->tensor = G.ggml_new_tensor(trial->context, type, 4, ne);
    slot->size = encoded_size(type, count);
    slot->bytes = wanted(slot->size);
    encode(type, values, count, unit, slot->bytes);
    if (slot->size != G.ggml_nbytes(slot->tensor)) {
        fprintf(stderr, "libggml lays out type %d otherwise\n", type);
        exit(1);
    }
    return slot->tensor;
}

Tensor *step(Trial *trial, Tensor *made)
{
    trial->steps[trial->step_count++] = made;
    return made;
}

void trial_open(Trial *trial, const Case *row)
{
    *trial = (Trial){.row = row, .out_type = T_F32};
    struct ggml_init_params room = {1 << 20, NULL, true};
    trial->context = G.ggml_init(room);
    if (row->op <= MUL_MAT_ID)
        build_products(trial);
    else if (row->op <= CONT)
        build_elements(trial);
    else if (row->op <= ARGSORT)
        build_rows(trial);
    else if (row->op <= GEGLU)
        build_reals(trial);
    else
        build_attention(trial);
    trial->graph = G.ggml_new_graph(trial->context);
    G.ggml_build_forward_expand(trial->graph, trial->out);
}

void trial_close(Trial *trial)
{
    for (int i = 0; i < trial->input_count; i++)
        free(trial->inputs[i].bytes);
    free(trial->want);
    free(trial->bound);
    free(trial->degraded);
    G.ggml_free(trial->context);
}
