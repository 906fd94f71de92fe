#include "ggmlapi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct GgmlApi G;

static char problem[512];

static bool named(int type, const char *name)
{
    const char *found = G.ggml_type_name(type);
    return found && strcmp(found, name) == 0;
}

const char *ggml_open(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        snprintf(problem, sizeof problem, "%s", dlerror());
        return problem;
    }
#define RESOLVE(ret, name, args)                                                                \
    *(void **)&G.name = dlsym(handle, #name);                                                   \
    if (!G.name) {                                                                              \
        snprintf(problem, sizeof problem, "%s has no " #name, library);                         \
        return problem;                                                                         \
    }
    GGML_FUNCTIONS(RESOLVE)
#undef RESOLVE
    if (!(named(T_F32, "f32") && named(T_F16, "f16") && named(T_Q4_0, "q4_0") &&
          named(T_Q8_0, "q8_0") && named(T_I32, "i32") && named(T_I64, "i64"))) {
        snprintf(problem, sizeof problem, "%s numbers its types otherwise", library);
        return problem;
    }
    return NULL;
}
