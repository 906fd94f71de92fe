/* The part of libggml's public ABI that the suite calls, declared by ourselves: the suite is
 * compiled without libggml's headers and finds the functions at run time. Tensors, graphs,
 * contexts and back ends stay opaque, so that only function signatures, three enumerations and
 * ggml_init_params are relied upon. Type numbers are those stored in GGUF files; they are
 * checked against ggml_type_name() when the library is opened. */
#ifndef VEGA_GGMLAPI_H
#define VEGA_GGMLAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { T_F32 = 0, T_F16 = 1, T_Q4_0 = 2, T_Q8_0 = 8, T_I32 = 26, T_I64 = 27 };
enum { DEVICE_CPU = 0, DEVICE_GPU = 1, DEVICE_IGPU = 2, DEVICE_ACCEL = 3 };
enum { ROPE_NORMAL = 0, ROPE_NEOX = 2 };

typedef struct ggml_tensor Tensor;
typedef struct ggml_context Context;
typedef struct ggml_cgraph Graph;
typedef void *Backend;
typedef void *Buffer;
typedef void *Dev;

struct ggml_init_params {
    size_t mem_size;
    void *mem_buffer;
    bool no_alloc;
};

#define GGML_FUNCTIONS(F)                                                                       \
    F(const char *, ggml_version, (void))                                                       \
    F(const char *, ggml_type_name, (int))                                                      \
    F(Context *, ggml_init, (struct ggml_init_params))                                          \
    F(void, ggml_free, (Context *))                                                             \
    F(size_t, ggml_nbytes, (const Tensor *))                                                    \
    F(size_t, ggml_row_size, (int, int64_t))                                                    \
    F(Tensor *, ggml_new_tensor, (Context *, int, int, const int64_t *))                        \
    F(Graph *, ggml_new_graph, (Context *))                                                     \
    F(void, ggml_build_forward_expand, (Graph *, Tensor *))                                     \
    F(Tensor *, ggml_mul_mat, (Context *, Tensor *, Tensor *))                                  \
    F(Tensor *, ggml_mul_mat_id, (Context *, Tensor *, Tensor *, Tensor *))                     \
    F(Tensor *, ggml_add, (Context *, Tensor *, Tensor *))                                      \
    F(Tensor *, ggml_sub, (Context *, Tensor *, Tensor *))                                      \
    F(Tensor *, ggml_mul, (Context *, Tensor *, Tensor *))                                      \
    F(Tensor *, ggml_div, (Context *, Tensor *, Tensor *))                                      \
    F(Tensor *, ggml_scale, (Context *, Tensor *, float))                                       \
    F(Tensor *, ggml_rms_norm, (Context *, Tensor *, float))                                    \
    F(Tensor *, ggml_soft_max_ext, (Context *, Tensor *, Tensor *, float, float))               \
    F(Tensor *, ggml_rope_ext,                                                                  \
      (Context *, Tensor *, Tensor *, Tensor *, int, int, int, float, float, float, float,      \
       float, float))                                                                           \
    F(Tensor *, ggml_get_rows, (Context *, Tensor *, Tensor *))                                 \
    F(Tensor *, ggml_set_rows, (Context *, Tensor *, Tensor *, Tensor *))                       \
    F(Tensor *, ggml_cpy, (Context *, Tensor *, Tensor *))                                      \
    F(Tensor *, ggml_cont, (Context *, Tensor *))                                               \
    F(Tensor *, ggml_permute, (Context *, Tensor *, int, int, int, int))                        \
    F(Tensor *, ggml_concat, (Context *, Tensor *, Tensor *, int))                              \
    F(Tensor *, ggml_repeat, (Context *, Tensor *, Tensor *))                                   \
    F(Tensor *, ggml_sum_rows, (Context *, Tensor *))                                           \
    F(Tensor *, ggml_argmax, (Context *, Tensor *))                                             \
    F(Tensor *, ggml_argsort, (Context *, Tensor *, int))                                       \
    F(Tensor *, ggml_silu, (Context *, Tensor *))                                               \
    F(Tensor *, ggml_gelu, (Context *, Tensor *))                                               \
    F(Tensor *, ggml_relu, (Context *, Tensor *))                                               \
    F(Tensor *, ggml_swiglu_split, (Context *, Tensor *, Tensor *))                             \
    F(Tensor *, ggml_geglu_split, (Context *, Tensor *, Tensor *))                              \
    F(Tensor *, ggml_flash_attn_ext,                                                            \
      (Context *, Tensor *, Tensor *, Tensor *, Tensor *, float, float, float))                 \
    F(void, ggml_log_set, (void (*)(int, const char *, void *), void *))                        \
    F(void, ggml_backend_load_all, (void))                                                      \
    F(void, ggml_backend_load_all_from_path, (const char *))                                    \
    F(size_t, ggml_backend_dev_count, (void))                                                   \
    F(Dev, ggml_backend_dev_get, (size_t))                                                      \
    F(const char *, ggml_backend_dev_name, (Dev))                                               \
    F(const char *, ggml_backend_dev_description, (Dev))                                        \
    F(int, ggml_backend_dev_type, (Dev))                                                        \
    F(Backend, ggml_backend_dev_init, (Dev, const char *))                                      \
    F(void, ggml_backend_free, (Backend))                                                       \
    F(Buffer, ggml_backend_alloc_ctx_tensors, (Context *, Backend))                             \
    F(void, ggml_backend_buffer_clear, (Buffer, uint8_t))                                       \
    F(void, ggml_backend_buffer_free, (Buffer))                                                 \
    F(void, ggml_backend_tensor_set, (Tensor *, const void *, size_t, size_t))                  \
    F(void, ggml_backend_tensor_get, (const Tensor *, void *, size_t, size_t))                  \
    F(bool, ggml_backend_supports_op, (Backend, const Tensor *))                                \
    F(int, ggml_backend_graph_compute, (Backend, Graph *))

struct GgmlApi {
#define DECLARE(ret, name, args) ret(*name) args;
    GGML_FUNCTIONS(DECLARE)
#undef DECLARE
};

extern struct GgmlApi G;

/* Opens libggml and fills G; returns NULL or what is wrong (a static text). */
const char *ggml_open(const char *library);

#endif
