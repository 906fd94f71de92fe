/* One case made concrete: its tensors, its graph, and what the numbers have to be. */
#ifndef VEGA_TRIAL_H
#define VEGA_TRIAL_H

#include "ggmlapi.h"

enum Op {
    MUL_MAT, MUL_MAT_ID, ADD, SUB, MUL, DIV, SCALE, CPY, CPY_FROM, CONT, GET_ROWS, SET_ROWS,
    CONCAT, REPEAT, SUM_ROWS, ARGMAX, ARGSORT, SOFT_MAX, RMS_NORM, ROPE, SILU, GELU, RELU,
    SWIGLU, GEGLU, ATTENTION, FLASH_ATTN
};
enum Profile { BAL, WIDE_A, WIDE_B, ANY, ACC, REAL };

typedef struct {
    const char *id;
    enum Op op;
    int type;
    enum Profile profile;
    int a, b, c, d;
    int level;
    bool required;
} Case;

enum { MAX_INPUTS = 6, MAX_STEPS = 4 };

typedef struct {
    Tensor *tensor;
    void *bytes;
    size_t size;
    bool overwritten;
} Input;

/* `steps` are the operations before `out`, where a graph has several. `want` are the `count` right elements of `out`. `bound`: NULL where they must be exact, else
 * the allowed error of each. `degraded`: NULL, or the error of each that an accumulator of the
 * storage's precision may make;
 * `grid`: 0, or what the right answers are multiples of, so that rounding to it restores them. */
typedef struct {
    const Case *row;
    Context *context;
    Graph *graph;
    Input inputs[MAX_INPUTS];
    int input_count;
    Tensor *steps[MAX_STEPS];
    int step_count;
    Tensor *out;
    int out_type;
    size_t count;
    double *want, *bound, *degraded;
    double grid;
} Trial;

extern const Case CASES[];
extern const size_t CASE_COUNT;

/* Fills inputs, graph and expected numbers; allocates nothing on a device. */
void trial_open(Trial *trial, const Case *row);
void trial_close(Trial *trial);

/* For the builders. */
void *wanted(size_t size);
double *numbers(size_t count);
Tensor *input(Trial *trial, int type, const int64_t ne[4], const double *values, double unit);
Tensor *step(Trial *trial, Tensor *made);
double gamma_bound(double n, double u);
void build_products(Trial *t);
void build_elements(Trial *t);
void build_rows(Trial *t);
void build_reals(Trial *t);
void build_attention(Trial *t);

#define U32 0x1p-24
#define U16 0x1p-11
#define TINY 0x1p-126
#define NE(a, b, c, d) ((const int64_t[4]){a, b, c, d})

#endif
