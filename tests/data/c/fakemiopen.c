/* Stands for a libMIOpen: two solvers, and whatever a stranger's library might try.
 * CTOR: what its constructor does. A problem of 13 channels crashes it, 14 hangs it, of 15
 * makes it open a socket, of 16 makes it answer nonsense, of 17 makes it refuse. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct solution { float time; size_t workspace; uint64_t id; int algorithm; };
struct string { char *text; size_t length; char inside[16]; };
struct id { uint64_t value; unsigned char valid; };
static int channels;

#ifdef NEEDS
extern int NEEDS(void);
int needing(void) { return NEEDS(); }
#endif

__attribute__((constructor)) static void begin(void)
{
#if CTOR == 1
    socket(AF_INET, SOCK_STREAM, 0);
#elif CTOR == 2
    for (;;)
        fork();
#elif CTOR == 3
    for (;;)
        pause();
#elif CTOR == 4
    const char *places[] = {"/x", "/usr/x", "/probe/x", "/dev/x", "/tmp/x"};
    for (int i = 0; i < 5; i++) {
        errno = 0;
        int file = open(places[i], O_CREAT | O_WRONLY, 0600);
        fprintf(stderr, "Error write %s %d\n", places[i], file < 0 ? errno : 0);
        close(file);
    }
    const char *secrets[] = {"/etc/passwd", "/proc/self/status", "/root", SECRET};
    for (int i = 0; i < 4; i++) {
        errno = 0;
        int file = open(secrets[i], O_RDONLY);
        fprintf(stderr, "Error read %s %d\n", secrets[i], file < 0 ? errno : 0);
        close(file);
    }
    for (int file = 4; file < 64; file++)
        if (fcntl(file, F_GETFD) >= 0)
            fprintf(stderr, "Error descriptor %d is open\n", file);
    fprintf(stderr, "Error uid %d kill %d\n", getuid(), kill(-1, 0));
#elif CTOR == 5
    for (;;)
        memset(malloc(1 << 24), 1, 1 << 24);
#elif CTOR == 6
    for (;;)
        fputs("Error Error Error Error Error Error Error Error Error Error Error\n", stderr);
#endif
}

int miopenCreate(void **out) { *out = &channels; return 0; }
int miopenCreateTensorDescriptor(void **out) { *out = calloc(1, 4); return 0; }
int miopenDestroyTensorDescriptor(void *it) { free(it); return 0; }
int miopenSetTensorDescriptor(void *it, int type, int rank, const int *sizes)
{
    (void)it; (void)type; (void)rank;
    if (!channels)
        channels = sizes[1];
    return 0;
}
int miopenCreateConvolutionDescriptor(void **out) { *out = calloc(1, 4); return 0; }
int miopenDestroyConvolutionDescriptor(void *it) { channels = 0; free(it); return 0; }
int miopenInitConvolutionNdDescriptor(void) { return 0; }
int miopenSetConvolutionGroupCount(void) { return 0; }

static int get(void *h, void *a, void *b, void *c, void *d, size_t most, size_t *count,
               struct solution *out)
{
    (void)h; (void)a; (void)b; (void)c; (void)d; (void)most;
    if (channels == 13)
        abort();
    for (; channels == 14;)
        pause();
    if (channels == 15)
        socket(AF_UNIX, SOCK_STREAM, 0);
    if (channels == 17)
        return 7;
    *count = 1;
    out[0] = (struct solution){.time = 1, .id = channels == 16 ? 999 : 1};
    return 0;
}

#define DIRECTION(name) \
    int miopenConvolution##name##GetSolution(void *h, void *a, void *b, void *c, void *d, \
                                             size_t most, size_t *count, struct solution *out) \
    { return get(h, a, b, c, d, most, count, out); } \
    int miopenConvolution##name##CompileSolution(void) { return 0; } \
    int miopenConvolution##name##GetWorkSpaceSize(void) { return 3; } \
    int miopenFindConvolution##name##Algorithm(void) { return 3; }
DIRECTION(Forward)
DIRECTION(BackwardData)
DIRECTION(BackwardWeights)

void new_id(struct id *id, uint64_t value) __asm__("_ZN6miopen6solver2IdC1Em");
void new_id(struct id *id, uint64_t value) { id->value = value; id->valid = value < 3; }
int primitive(const struct id *id) __asm__("_ZNK6miopen6solver2Id12GetPrimitiveEv");
int primitive(const struct id *id) { (void)id; return 1; }
void name(struct string *out, const struct id *id)
    __asm__("_ZNK6miopen6solver2Id8ToStringB5cxx11Ev");
void name(struct string *out, const struct id *id)
{
    out->text = id->value == 1 ? "ConvDirectNaiveConvFwd" : "GemmFwdRest";
}
void algorithm(struct string *out, const struct id *id)
    __asm__("_ZNK6miopen6solver2Id7GetAlgoB5cxx11ENS_4conv9DirectionE");
void algorithm(struct string *out, const struct id *id)
{
    (void)id;
    out->text = "miopenConvolutionFwdAlgoDirect";
}
