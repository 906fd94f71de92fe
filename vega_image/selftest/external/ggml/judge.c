#include "judge.h"

#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *id, *sha256;
} Golden;

static const Golden GOLDENS[] = {
#define GOLDEN(id, sha256) {id, sha256},
#include "golden.def"
#undef GOLDEN
    {NULL, NULL},
};

static const char *const FAULTS[] = {"bit-flip", "zeroed-tile", "swapped-columns",
                                     "last-element-dropped", "nan", "fp16-output"};

bool fault_known(const char *name)
{
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++)
        if (strcmp(FAULTS[i], name) == 0)
            return true;
    return false;
}

/* The element whose fault shows best: the largest one, in units of its bound. */
static size_t telling(const Trial *t)
{
    size_t at = 0;
    double most = -1;
    for (size_t i = 0; i < t->count; i++) {
        double size = fabs(t->want[i]) / (t->bound ? t->bound[i] : 1);
        if (size > most) {
            most = size;
            at = i;
        }
    }
    return at;
}

static void plant(const char *fault, const Trial *t, double *values)
{
    size_t at = telling(t), count = t->count;
    if (strcmp(fault, "bit-flip") == 0)
        values[at] = values[at] == 0 ? 1 : values[at] * (1 + 0x1p-10);
    else if (strcmp(fault, "zeroed-tile") == 0)
        for (size_t i = at / 4 * 4; i < count && i < at / 4 * 4 + 4; i++)
            values[i] = 0;
    else if (strcmp(fault, "last-element-dropped") == 0)
        values[count - 1] = values[count - 1] == 0 ? -1 : 0;
    else if (strcmp(fault, "nan") == 0)
        values[at] = NAN;
    for (size_t i = 0; strcmp(fault, "swapped-columns") == 0 && i + 1 < count; i += 2) {
        double held = values[i];
        values[i] = values[i + 1];
        values[i + 1] = held;
    }
    for (size_t i = 0; strcmp(fault, "fp16-output") == 0 && i < count; i++)
        values[i] = half_to(half_from(values[i]));
}

static Judgement said(enum Verdict verdict, const char *detail)
{
    Judgement judgement = {verdict, NAN, NAN, ""};
    snprintf(judgement.detail, sizeof judgement.detail, "%s", detail);
    return judgement;
}

/* Poisons everything with NaN, uploads, computes, downloads; NULL or what went wrong. */
static const char *compute(const Session *session, Trial *t, Buffer buffer, uint8_t *bytes)
{
    size_t size = encoded_size(t->out_type, t->count);
    if (G.ggml_nbytes(t->out) != size)
        return "the result has another size";
    /* A clear may write words, of which 0xff makes no NaN; the result gets bytes. */
    G.ggml_backend_buffer_clear(buffer, 0xff);
    memset(bytes, 0xff, size);
    G.ggml_backend_tensor_set(t->out, bytes, 0, size);
    for (int i = 0; i < t->input_count; i++)
        G.ggml_backend_tensor_set(t->inputs[i].tensor, t->inputs[i].bytes, 0, t->inputs[i].size);
    if (G.ggml_backend_graph_compute(session->backend, t->graph) != 0)
        return "the back end gave up";
    G.ggml_backend_tensor_get(t->out, bytes, 0, size);
    for (int i = 0; i < t->input_count; i++) {
        const Input *in = &t->inputs[i];
        void *back = wanted(in->size);
        G.ggml_backend_tensor_get(in->tensor, back, 0, in->size);
        bool same = in->overwritten || memcmp(back, in->bytes, in->size) == 0;
        free(back);
        if (!same)
            return "an input changed on the device";
    }
    return NULL;
}

static Judgement exact(const Trial *t, const double *got, size_t worst, double error)
{
    char hex[65], want[65];
    Judgement judgement = {error == 0 ? MATCH : MISMATCH, error, 0, ""};
    sha256_doubles(got, t->count, hex);
    sha256_doubles(t->want, t->count, want);
    if ((strcmp(hex, want) == 0) != (error == 0))
        return said(INVALID, "hash and comparison disagree");
    if (error != 0)
        snprintf(judgement.detail, sizeof judgement.detail,
                 "first wrong element %zu of %zu: got %.9g, expected %.9g", worst, t->count,
                 got[worst], t->want[worst]);
    return judgement;
}

static Judgement bounded(const Trial *t, const double *bound, const double *got)
{
    Judgement judgement = {MATCH, 0, 0, ""};
    double most = -1;
    for (size_t i = 0; i < t->count; i++) {
        double error = fabs(got[i] - t->want[i]), ratio = error / bound[i];
        if (ratio > most) {
            most = ratio;
            judgement.error = error;
            judgement.bound = bound[i];
        }
        if (ratio > 1 && judgement.verdict == MATCH) {
            judgement.verdict = MISMATCH;
            snprintf(judgement.detail, sizeof judgement.detail,
                     "first wrong element %zu of %zu: got %.9g, expected %.9g +- %.3g", i,
                     t->count, got[i], t->want[i], bound[i]);
        }
    }
    return judgement;
}

static Judgement compare(const Trial *t, const double *got)
{
    size_t first = t->count;
    double error = 0;
    for (size_t i = 0; i < t->count; i++) {
        if (!isfinite(got[i])) {
            Judgement judgement = {NOT_FINITE, NAN, NAN, ""};
            snprintf(judgement.detail, sizeof judgement.detail,
                     "element %zu of %zu: got %g, expected %.9g", i, t->count, got[i], t->want[i]);
            return judgement;
        }
        error = fmax(error, fabs(got[i] - t->want[i]));
        if (got[i] != t->want[i] && first == t->count)
            first = i;
    }
    return t->bound ? bounded(t, t->bound, got) : exact(t, got, first, error);
}

/* The reference above and the shipped hash were made by two programs; they have to agree. */
static bool golden_agrees(const Trial *t)
{
    char hex[65];
    sha256_doubles(t->want, t->count, hex);
    for (const Golden *golden = GOLDENS; golden->id; golden++)
        if (strcmp(golden->id, t->row->id) == 0)
            return strcmp(golden->sha256, hex) == 0;
    return t->bound != NULL;
}

/* Before a result counts, a fault planted in a copy of the right one has to be seen. */
static bool fault_is_seen(const Trial *t)
{
    double *copy = numbers(t->count);
    memcpy(copy, t->want, t->count * sizeof *copy);
    bool clean = compare(t, copy).verdict == MATCH;
    plant("bit-flip", t, copy);
    bool seen = compare(t, copy).verdict == MISMATCH;
    free(copy);
    return clean && seen;
}

static bool restored(const Trial *t, const double *got)
{
    for (size_t i = 0; t->grid > 0 && i < t->count; i++)
        if (nearbyint(got[i] / t->grid) * t->grid != t->want[i])
            return false;
    return true;
}

static Judgement repeated(const Session *session, Trial *t, Buffer buffer)
{
    size_t size = encoded_size(t->out_type, t->count);
    uint8_t *first = wanted(size), *again = wanted(size);
    double *got = numbers(t->count);
    const char *problem = compute(session, t, buffer, first);
    bool steady = true;
    for (int i = 1; i < session->repeats && !problem && steady; i++) {
        problem = compute(session, t, buffer, again);
        steady = memcmp(first, again, size) == 0;
    }
    decode(t->out_type, first, t->count, got);
    if (session->plant)
        plant(session->plant, t, got);
    Judgement judgement = compare(t, got);
    if (judgement.verdict == MISMATCH && t->degraded) {
        Judgement wide = bounded(t, t->degraded, got);
        if (wide.verdict == MATCH && restored(t, got)) {
            wide.verdict = DEGRADED;
            snprintf(wide.detail, sizeof wide.detail, "%s", judgement.detail);
            judgement = wide;
        }
    }
    if (problem)
        judgement = said(strstr(problem, "gave up") ? CRASHED : MISMATCH, problem);
    else if (!steady && judgement.verdict == MATCH)
        judgement = said(MISMATCH, "two runs differ");
    free(first);
    free(again);
    free(got);
    return judgement;
}

static bool supported(const Session *session, const Trial *t)
{
    for (int i = 0; i < t->step_count; i++)
        if (!G.ggml_backend_supports_op(session->backend, t->steps[i]))
            return false;
    return G.ggml_backend_supports_op(session->backend, t->out);
}

static Judgement judged(const Session *session, const Case *row)
{
    Trial trial;
    trial_open(&trial, row);
    Judgement judgement;
    Buffer buffer = NULL;
    if (!golden_agrees(&trial))
        judgement = said(INVALID, "the reference does not have the shipped hash");
    else if (!fault_is_seen(&trial))
        judgement = said(INVALID, "a planted fault was not seen");
    else if (!supported(session, &trial))
        judgement = said(UNSUPPORTED, "the back end has no such operation");
    else if (!(buffer = G.ggml_backend_alloc_ctx_tensors(trial.context, session->backend)))
        judgement = said(CRASHED, "no memory on the device");
    else
        judgement = repeated(session, &trial, buffer);
    if (buffer)
        G.ggml_backend_buffer_free(buffer);
    trial_close(&trial);
    return judgement;
}

static const Case *twin_of(const Case *row)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        const Case *other = &CASES[i];
        if (other->profile == ANY && other->op == row->op && other->type == row->type &&
            other->a == row->a && other->b == row->b && other->c == row->c && other->d == row->d)
            return other;
    }
    return NULL;
}

Judgement judge_case(const Session *session, const Case *row)
{
    Judgement judgement = judged(session, row);
    if (judgement.verdict != DEGRADED)
        return judgement;
    if (row->op == ATTENTION || row->op == FLASH_ATTN)
        return judgement;
    const Case *twin = twin_of(row);
    if (!twin || judged(session, twin).verdict != MATCH)
        judgement.verdict = MISMATCH;
    return judgement;
}

static void print_number(double value)
{
    if (isfinite(value))
        printf("%.17g", value);
    else
        printf("null");
}

void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text >= ' ')
            putchar(*text);
    putchar('"');
}

void print_judgement(const Session *session, const Case *row, const Judgement *judgement,
                     double seconds)
{
    static const char *const names[] = {"MATCH", "DEGRADED", "MISMATCH", "NOT_FINITE",
                                        "CRASHED", "UNSUPPORTED", "INVALID"};
    printf("{\"case\":\"%s\",\"verdict\":\"%s\",\"error\":", row->id, names[judgement->verdict]);
    print_number(judgement->error);
    printf(",\"bound\":");
    print_number(judgement->bound);
    printf(",\"device\":");
    print_text(session->device);
    printf(",\"seconds\":%.6f,\"detail\":", seconds);
    print_text(judgement->detail);
    printf("}\n");
    fflush(stdout);
}
