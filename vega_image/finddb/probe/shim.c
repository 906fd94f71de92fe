/* What libMIOpen asks of HIP, rocBLAS, hipRTC, comgr and roctx, answered without a GPU.
 *
 * One card is described: VEGA_ARCH, VEGA_CU and VEGA_MEMORY (bytes) say which, and nothing
 * else does. Work is accepted and not done: no kernel is compiled, none runs, so no number
 * may ever be read from here. A question about the card that has no honest answer is an
 * error, not a zero.
 *
 * The layouts are those of HIP 6 and 7 on x86-64 (hip_runtime_api.h, hipDeviceProp_tR0600).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };
enum { WAVE = 64, LDS_BYTES = 65536, THREADS_PER_BLOCK = 1024, CODE_BYTES = 64 };

struct properties {
    char name[256];
    unsigned char uuid[16];
    char luid[8];
    unsigned luid_mask;
    size_t total_global_memory;
    size_t shared_memory_per_block;
    int registers_per_block;
    int warp_size;
    size_t memory_pitch;
    int max_threads_per_block;
    int max_threads_dim[3];
    int max_grid_size[3];
    int clock_rate;
    size_t total_const_memory;
    int major;
    int minor;
    size_t texture_alignment[2];
    int device_overlap;
    int multiprocessors;
    unsigned char rest[1160 - 392];
    char arch_name[256];
    size_t max_shared_memory_per_multiprocessor;
    unsigned char end[1472 - 1424];
};

_Static_assert(offsetof(struct properties, total_global_memory) == 288, "HIP's layout");
_Static_assert(offsetof(struct properties, multiprocessors) == 388, "HIP's layout");
_Static_assert(offsetof(struct properties, arch_name) == 1160, "HIP's layout");
_Static_assert(sizeof(struct properties) == 1472, "HIP's layout");

static const char *arch(void)
{
    const char *given = getenv("VEGA_ARCH");
    return given ? given : "gfx906:sramecc+:xnack-";
}

static size_t number(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    size_t value = 0;
    if (!text || !*text)
        return otherwise;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (size_t)(*text - '0');
    return value;
}

static int units(void) { return (int)number("VEGA_CU", 60); }

static size_t memory(void) { return number("VEGA_MEMORY", (size_t)16 << 30); }

/* Callers pass arguments that are not looked at: harmless under the System V ABI. */
#define ACCEPTED(name) API int name(void) { return SUCCESS; }
#define HANDLE(name, number) \
    API int name(void **out) { *out = (void *)(uintptr_t)(number); return SUCCESS; }
#define OPAQUE(name, number) \
    API int name(uint64_t *out) { *out = (number); return SUCCESS; }

/* --- HIP --------------------------------------------------------------------------- */

ACCEPTED(hipInit)
ACCEPTED(hipSetDevice)
ACCEPTED(hipDeviceSynchronize)
ACCEPTED(hipGetLastError)
ACCEPTED(hipPeekAtLastError)
HANDLE(hipEventCreate, 0x11)
HANDLE(hipEventCreateWithFlags, 0x11)
ACCEPTED(hipEventDestroy)
ACCEPTED(hipEventRecord)
ACCEPTED(hipEventSynchronize)
ACCEPTED(hipEventQuery)
HANDLE(hipStreamCreate, 0x12)
HANDLE(hipStreamCreateWithFlags, 0x12)
ACCEPTED(hipStreamDestroy)
ACCEPTED(hipStreamSynchronize)
ACCEPTED(hipStreamWaitEvent)
ACCEPTED(hipMemcpy)
ACCEPTED(hipMemcpyAsync)
ACCEPTED(hipMemcpyWithStream)
ACCEPTED(hipMemset)
ACCEPTED(hipMemsetAsync)
HANDLE(hipModuleLoad, 0x13)
HANDLE(hipModuleLoadData, 0x13)
ACCEPTED(hipModuleUnload)
HANDLE(hipModuleGetFunction, 0x14)
ACCEPTED(hipModuleLaunchKernel)
ACCEPTED(hipExtModuleLaunchKernel)
ACCEPTED(hipModuleLaunchCooperativeKernel)

API int hipGetDevice(int *device)
{
    *device = 0;
    return SUCCESS;
}

API int hipGetDeviceCount(int *count)
{
    *count = 1;
    return SUCCESS;
}

API int hipDeviceTotalMem(size_t *bytes)
{
    *bytes = memory();
    return SUCCESS;
}

API int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    *total = memory();
    *free_bytes = *total - *total / 16;
    return SUCCESS;
}

API int hipMemPtrGetInfo(void *pointer, size_t *bytes)
{
    (void)pointer;
    *bytes = (size_t)1 << 20;
    return SUCCESS;
}

API int hipMalloc(void **pointer, size_t bytes)
{
    /* Only the address is ever used: kernels do not run and copies copy nothing. */
    *pointer = malloc(bytes && bytes < 4096 ? bytes : 4096);
    return *pointer ? SUCCESS : OUT_OF_MEMORY;
}

API int hipHostMalloc(void **pointer, size_t bytes)
{
    *pointer = malloc(bytes ? bytes : 1);
    return *pointer ? SUCCESS : OUT_OF_MEMORY;
}

API int hipFree(void *pointer)
{
    free(pointer);
    return SUCCESS;
}

API int hipHostFree(void *pointer) { return hipFree(pointer); }

API int hipEventElapsedTime(float *milliseconds)
{
    *milliseconds = 0.5F;
    return SUCCESS;
}

API const char *hipGetErrorString(int code)
{
    return code == SUCCESS ? "no error" : "vega-image's shim: there is no GPU here";
}

API const char *hipGetErrorName(int code)
{
    return code == SUCCESS ? "hipSuccess" : "hipErrorInvalidValue";
}

API int hipGetDevicePropertiesR0600(struct properties *out)
{
    const char *processor = arch();
    *out = (struct properties){0};
    strcpy(out->name, "AMD Radeon VII");
    strncpy(out->arch_name, processor, sizeof out->arch_name - 1);
    out->total_global_memory = memory();
    out->shared_memory_per_block = LDS_BYTES;
    out->max_shared_memory_per_multiprocessor = LDS_BYTES;
    out->registers_per_block = 65536;
    out->warp_size = WAVE;
    out->max_threads_per_block = THREADS_PER_BLOCK;
    for (int i = 0; i < 3; i++) {
        out->max_threads_dim[i] = THREADS_PER_BLOCK;
        out->max_grid_size[i] = INT32_MAX;
    }
    out->clock_rate = 1801000;
    out->major = 9;
    out->multiprocessors = units();
    return SUCCESS;
}

/* hipDeviceAttribute_t's numbers. */
API int hipDeviceGetAttribute(int *value, int attribute)
{
    switch (attribute) {
    case 26: case 27: case 28: case 56: *value = THREADS_PER_BLOCK; return SUCCESS;
    case 5: *value = 1801000; return SUCCESS;
    case 23: *value = 9; return SUCCESS;
    case 61: *value = 0; return SUCCESS;
    case 63: *value = units(); return SUCCESS;
    case 74: *value = LDS_BYTES; return SUCCESS;
    case 87: *value = WAVE; return SUCCESS;
    default:
        fprintf(stderr, "vega-shim: unanswered device attribute %d\n", attribute);
        return INVALID_VALUE;
    }
}

/* --- rocBLAS ----------------------------------------------------------------------- */

HANDLE(rocblas_create_handle, 0x21)
ACCEPTED(rocblas_destroy_handle)
ACCEPTED(rocblas_set_stream)
ACCEPTED(rocblas_set_atomics_mode)
ACCEPTED(rocblas_gemm_ex)
ACCEPTED(rocblas_gemm_ex3)
ACCEPTED(rocblas_gemm_strided_batched_ex)
ACCEPTED(rocblas_gemm_strided_batched_ex3)
ACCEPTED(rocblas_sgemv)

API int rocblas_get_atomics_mode(void *handle, int *mode)
{
    (void)handle;
    *mode = 1;
    return SUCCESS;
}

/* --- hipRTC ------------------------------------------------------------------------ */

HANDLE(hiprtcCreateProgram, 0x31)
ACCEPTED(hiprtcDestroyProgram)
ACCEPTED(hiprtcCompileProgram)
ACCEPTED(hiprtcAddNameExpression)
ACCEPTED(hiprtcGetProgramLog)

API int hiprtcVersion(int *major, int *minor)
{
    *major = 9;
    *minor = 0;
    return SUCCESS;
}

API int hiprtcGetCodeSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = CODE_BYTES;
    return SUCCESS;
}

API int hiprtcGetCode(void *program, char *code)
{
    (void)program;
    memset(code, 0, CODE_BYTES);
    return SUCCESS;
}

API int hiprtcGetProgramLogSize(void *program, size_t *bytes)
{
    (void)program;
    *bytes = 0;
    return SUCCESS;
}

API const char *hiprtcGetErrorString(int code)
{
    return code == SUCCESS ? "HIPRTC_SUCCESS" : "vega-image's shim: nothing is compiled here";
}

/* --- comgr: its handles are structs of one uint64_t --------------------------------- */

ACCEPTED(amd_comgr_release_data)
ACCEPTED(amd_comgr_set_data)
ACCEPTED(amd_comgr_set_data_name)
ACCEPTED(amd_comgr_destroy_data_set)
ACCEPTED(amd_comgr_data_set_add)
ACCEPTED(amd_comgr_destroy_action_info)
ACCEPTED(amd_comgr_action_info_set_isa_name)
ACCEPTED(amd_comgr_action_info_set_language)
ACCEPTED(amd_comgr_action_info_set_logging)
ACCEPTED(amd_comgr_action_info_set_option_list)
ACCEPTED(amd_comgr_action_info_set_options)
ACCEPTED(amd_comgr_do_action)
OPAQUE(amd_comgr_create_data_set, 0x42)
OPAQUE(amd_comgr_create_action_info, 0x43)

API int amd_comgr_create_data(int kind, uint64_t *data)
{
    (void)kind;
    *data = 0x41;
    return SUCCESS;
}

API int amd_comgr_get_data(uint64_t data, size_t *bytes, char *out)
{
    (void)data;
    if (out)
        memset(out, 0, *bytes < CODE_BYTES ? *bytes : CODE_BYTES);
    *bytes = CODE_BYTES;
    return SUCCESS;
}

API int amd_comgr_action_data_count(uint64_t set, int kind, size_t *count)
{
    (void)set;
    (void)kind;
    *count = 1;
    return SUCCESS;
}

API int amd_comgr_action_data_get_data(uint64_t set, int kind, size_t index, uint64_t *data)
{
    (void)set;
    (void)kind;
    (void)index;
    *data = 0x41;
    return SUCCESS;
}

API void amd_comgr_get_version(size_t *major, size_t *minor)
{
    *major = 3;
    *minor = 0;
}

API int amd_comgr_status_string(int status, const char **text)
{
    *text = status == SUCCESS ? "SUCCESS" : "vega-image's shim: nothing is compiled here";
    return SUCCESS;
}

/* --- roctx ------------------------------------------------------------------------- */

ACCEPTED(roctxRangePushA)
ACCEPTED(roctxRangePop)
ACCEPTED(roctxMarkA)

/* --- which databases and models the library opens ----------------------------------- */

static int ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static void note(const char *path, int found)
{
    static const char *const ends[] = {".model", ".fdb.txt", ".db.txt", ".kdb", ".db"};
    for (size_t i = 0; path && i < sizeof ends / sizeof *ends; i++)
        if (ends_with(path, ends[i])) {
            fprintf(stderr, "vega-shim: opened %d %s\n", found, path);
            return;
        }
}

typedef FILE *(*opener)(const char *, const char *);

static FILE *open_stream(const char *symbol, const char *path, const char *mode)
{
    void *found = dlsym(RTLD_NEXT, symbol);
    opener real;
    memcpy(&real, &found, sizeof real);
    FILE *file = real ? real(path, mode) : NULL;
    note(path, file != NULL);
    return file;
}

API FILE *fopen(const char *path, const char *mode) { return open_stream("fopen", path, mode); }

API FILE *fopen64(const char *path, const char *mode)
{
    return open_stream("fopen64", path, mode);
}
