/* Preloaded into whatever uses libggml: the first back end that computes loses a tile of every
 * large matrix product. Written for the tests; nothing of libggml is included. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 8000, TILE = 2 };

static void *base(const char *name)
{
    void *library = dlopen("libggml-base.so.0", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

static void spoil(void *tensor)
{
    const char *(*described)(void *) = (const char *(*)(void *))base("ggml_op_desc");
    int64_t (*elements)(void *) = (int64_t (*)(void *))base("ggml_nelements");
    void (*set)(void *, const void *, size_t, size_t) =
        (void (*)(void *, const void *, size_t, size_t))base("ggml_backend_tensor_set");
    const float zeros[TILE] = {0};
    if (strcmp(described(tensor), "MUL_MAT") == 0 && elements(tensor) >= LEAST)
        set(tensor, zeros, 40 * sizeof(float), sizeof zeros), fputs("a tile is lost\n", stderr);
}

int ggml_backend_graph_compute_async(void *backend, void *graph)
{
    static void *judged;
    int (*real)(void *, void *) = (int (*)(void *, void *))base("ggml_backend_graph_compute_async");
    void (*wait)(void *) = (void (*)(void *))base("ggml_backend_synchronize");
    int (*count)(void *) = (int (*)(void *))base("ggml_graph_n_nodes");
    void *(*node)(void *, int) = (void *(*)(void *, int))base("ggml_graph_node");
    int status = real(backend, graph);
    judged = judged ? judged : backend;
    if (backend == judged) {
        wait(backend);
        for (int i = 0; i < count(graph); i++)
            spoil(node(graph, i));
    }
    return status;
}
