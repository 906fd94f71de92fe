/* Asks a libMIOpen, loaded with dlopen(3), about convolution problems. No header of it is used.
 *
 * usage: probe LIBRARY < questions
 * Every question is one line and gets its answers in order on the stream that was stdout;
 * what the library itself prints there goes to stderr. All numbers are decimal:
 *
 *   names                            ->  name ID SOLVER FWD BWD WRW ... , then  names COUNT
 *   solve INDEX PROBLEM              ->  solve INDEX STATUS ID:TIME:WORKSPACE ...
 *   compile INDEX ID PROBLEM         ->  compile INDEX STATUS
 *   find INDEX PROBLEM               ->  find INDEX STATUS ALGO:TIME:WORKSPACE ...
 *
 * PROBLEM: DIRECTION(F|B|W) AXES(2|3) XTYPE WTYPE YTYPE XLAST WLAST YLAST GROUPS
 *          x.n x.c x.spatial... w.k w.c w.spatial... y.n y.k y.spatial... pad... stride... dilation...
 * where ?TYPE is a miopenDataType_t and ?LAST is 1 for channels-last. "ready" comes first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AXES = 3, RANK = AXES + 2, SOLUTIONS = 256, IDS = 1024, FOUND = 32 };
enum { CONVOLUTION_PRIMITIVE = 1 };
enum { USAGE = 64, CANNOT_LOAD = 65, CANNOT_CREATE = 66, BAD_QUESTION = 67, FORBIDDEN = 68 };

/* The library's types, as its C API has them (miopen.h of 2.x and 3.x). */
typedef void *handle;
struct solution {
    float time;
    size_t workspace;
    uint64_t id;
    int algorithm;
};
struct performance {
    int algorithm;
    float time;
    size_t memory;
};
struct cxx_string {
    char *text;
    size_t length;
    char inside[16];
};
struct solver_id {
    uint64_t value;
    unsigned char valid;
    unsigned char spare[23];
};

typedef int (*create_fn)(handle *);
typedef int (*destroy_fn)(handle);
typedef int (*set_tensor_fn)(handle, int, int, const int *, const int *);
typedef int (*init_convolution_fn)(handle, int, const int *, const int *, const int *, int);
typedef int (*set_groups_fn)(handle, int);
typedef int (*get_fn)(handle, handle, handle, handle, handle, size_t, size_t *, struct solution *);
typedef int (*compile_fn)(handle, handle, handle, handle, handle, uint64_t);
typedef int (*workspace_fn)(handle, handle, handle, handle, handle, size_t *);
typedef int (*find_fn)(handle, handle, const void *, handle, const void *, handle, handle,
                       void *, int, int *, struct performance *, void *, size_t, unsigned char);
typedef void (*id_fn)(struct solver_id *, uint64_t);
typedef int (*primitive_fn)(const struct solver_id *);
typedef void (*string_fn)(struct cxx_string *, const struct solver_id *);
typedef void (*directed_string_fn)(struct cxx_string *, const struct solver_id *, int);

struct api {
    create_fn create, create_tensor, create_convolution;
    destroy_fn destroy_tensor, destroy_convolution;
    set_tensor_fn set_tensor;
    init_convolution_fn init_convolution;
    set_groups_fn set_groups;
    get_fn get[3];
    compile_fn compile[3];
    workspace_fn workspace[3];
    find_fn find[3];
    id_fn id;
    primitive_fn primitive;
    string_fn name;
    directed_string_fn algorithm;
};

static const char DIRECTIONS[] = "FBW";
static FILE *answers;

static _Noreturn void refuse(int status, const char *what, const char *detail)
{
    fprintf(answers, "error %d %s: %s\n", status, what, detail ? detail : "");
    fflush(answers);
    _exit(status);
}

static void find_symbol(void *library, const char *name, void *slot)
{
    void *found = dlsym(library, name);
    if (!found)
        refuse(CANNOT_LOAD, "the library lacks a function", name);
    memcpy(slot, &found, sizeof found);
}

static void bind_directions(void *library, struct api *api)
{
    static const char *const names[] = {"Forward", "BackwardData", "BackwardWeights"};
    char name[96];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "miopenConvolution%sGetSolution", names[i]);
        find_symbol(library, name, &api->get[i]);
        snprintf(name, sizeof name, "miopenConvolution%sCompileSolution", names[i]);
        find_symbol(library, name, &api->compile[i]);
        snprintf(name, sizeof name, "miopenConvolution%sGetWorkSpaceSize", names[i]);
        find_symbol(library, name, &api->workspace[i]);
        snprintf(name, sizeof name, "miopenFindConvolution%sAlgorithm", names[i]);
        find_symbol(library, name, &api->find[i]);
    }
}

/* The registry is C++ (solver_id.hpp); there is no C function that lists solvers. */
static void bind_registry(void *library, struct api *api)
{
    find_symbol(library, "_ZN6miopen6solver2IdC1Em", &api->id);
    find_symbol(library, "_ZNK6miopen6solver2Id12GetPrimitiveEv", &api->primitive);
    find_symbol(library, "_ZNK6miopen6solver2Id8ToStringB5cxx11Ev", &api->name);
    find_symbol(library, "_ZNK6miopen6solver2Id7GetAlgoB5cxx11ENS_4conv9DirectionE",
                &api->algorithm);
}

static void bind(void *library, struct api *api)
{
    find_symbol(library, "miopenCreate", &api->create);
    find_symbol(library, "miopenCreateTensorDescriptor", &api->create_tensor);
    find_symbol(library, "miopenDestroyTensorDescriptor", &api->destroy_tensor);
    find_symbol(library, "miopenSetTensorDescriptor", &api->set_tensor);
    find_symbol(library, "miopenCreateConvolutionDescriptor", &api->create_convolution);
    find_symbol(library, "miopenDestroyConvolutionDescriptor", &api->destroy_convolution);
    find_symbol(library, "miopenInitConvolutionNdDescriptor", &api->init_convolution);
    find_symbol(library, "miopenSetConvolutionGroupCount", &api->set_groups);
    bind_directions(library, api);
    bind_registry(library, api);
}

/* --- reading a question -------------------------------------------------------------- */

struct problem {
    int direction, axes, types[3], last[3], groups;
    int sizes[3][RANK];
    int pad[AXES], stride[AXES], dilation[AXES];
};

static const char *cursor;

static uint64_t next_number(void)
{
    uint64_t value = 0;
    int digits = 0;
    while (*cursor == ' ')
        cursor++;
    for (; *cursor >= '0' && *cursor <= '9'; cursor++, digits++)
        value = value * 10 + (uint64_t)(*cursor - '0');
    if (!digits || digits > 18)
        refuse(BAD_QUESTION, "a number was expected", cursor);
    return value;
}

static void numbers(int *out, int count)
{
    for (int i = 0; i < count; i++) {
        uint64_t value = next_number();
        if (value > INT32_MAX)
            refuse(BAD_QUESTION, "a number is too large", cursor);
        out[i] = (int)value;
    }
}

static struct problem read_problem(void)
{
    struct problem p = {0};
    while (*cursor == ' ')
        cursor++;
    const char *direction = *cursor ? strchr(DIRECTIONS, *cursor) : NULL;
    if (!direction)
        refuse(BAD_QUESTION, "a direction was expected", cursor);
    p.direction = (int)(direction - DIRECTIONS);
    cursor++;
    numbers(&p.axes, 1);
    if (p.axes < 1 || p.axes > AXES)
        refuse(BAD_QUESTION, "1 to 3 axes were expected", cursor);
    numbers(p.types, 3);
    numbers(p.last, 3);
    numbers(&p.groups, 1);
    for (int i = 0; i < 3; i++)
        numbers(p.sizes[i], p.axes + 2);
    numbers(p.pad, p.axes);
    numbers(p.stride, p.axes);
    numbers(p.dilation, p.axes);
    return p;
}

/* --- asking -------------------------------------------------------------------------- */

struct asked {
    handle tensors[3], convolution;
    int status;
};

static void packed(const int *sizes, int rank, int channels_last, int *strides)
{
    int step = 1;
    if (channels_last) {
        strides[1] = 1;
        step = sizes[1];
    }
    for (int i = rank - 1; i >= 0; i--)
        if (!(channels_last && i == 1)) {
            strides[i] = step;
            step *= sizes[i];
        }
}

static struct asked describe(const struct api *api, const struct problem *p)
{
    struct asked a = {0};
    int strides[RANK];
    for (int i = 0; i < 3 && !a.status; i++) {
        packed(p->sizes[i], p->axes + 2, p->last[i], strides);
        a.status = api->create_tensor(&a.tensors[i]);
        if (!a.status)
            a.status = api->set_tensor(a.tensors[i], p->types[i], p->axes + 2, p->sizes[i],
                                       strides);
    }
    if (!a.status)
        a.status = api->create_convolution(&a.convolution);
    if (!a.status)
        a.status = api->init_convolution(a.convolution, p->axes, p->pad, p->stride,
                                         p->dilation, 0);
    if (!a.status && p->groups > 1)
        a.status = api->set_groups(a.convolution, p->groups);
    return a;
}

static void forget(const struct api *api, const struct asked *a)
{
    for (int i = 0; i < 3; i++)
        if (a->tensors[i])
            api->destroy_tensor(a->tensors[i]);
    if (a->convolution)
        api->destroy_convolution(a->convolution);
}

/* The immediate API's order: F (w, x, conv, y); B (dy, w, conv, dx); W (dy, x, conv, dw). */
static void in_order(const struct asked *a, int direction, handle out[3])
{
    static const int order[3][3] = {{1, 0, 2}, {2, 1, 0}, {2, 0, 1}};
    for (int i = 0; i < 3; i++)
        out[i] = a->tensors[order[direction][i]];
}

static void solve(const struct api *api, handle miopen)
{
    static struct solution found[SOLUTIONS];
    uint64_t index = next_number();
    struct problem p = read_problem();
    struct asked a = describe(api, &p);
    size_t count = 0;
    if (!a.status) {
        handle t[3];
        in_order(&a, p.direction, t);
        a.status = api->get[p.direction](miopen, t[0], t[1], a.convolution, t[2], SOLUTIONS,
                                         &count, found);
    }
    fprintf(answers, "solve %lu %d", (unsigned long)index, a.status);
    for (size_t i = 0; !a.status && i < count && i < SOLUTIONS; i++)
        fprintf(answers, " %lu:%.9g:%zu", (unsigned long)found[i].id, (double)found[i].time,
                found[i].workspace);
    fputc('\n', answers);
    forget(api, &a);
}

/* So that what the library logs on stderr can be told apart by question. */
static void mark(uint64_t index)
{
    fprintf(stderr, "vega-probe: question %lu\n", (unsigned long)index);
}

static void compile(const struct api *api, handle miopen)
{
    uint64_t index = next_number(), id = next_number();
    mark(index);
    struct problem p = read_problem();
    struct asked a = describe(api, &p);
    if (!a.status) {
        handle t[3];
        in_order(&a, p.direction, t);
        a.status = api->compile[p.direction](miopen, t[0], t[1], a.convolution, t[2], id);
    }
    fprintf(answers, "compile %lu %d\n", (unsigned long)index, a.status);
    forget(api, &a);
}

/* The Find API takes x before w in F; no number is computed, so any address will do. */
static void find(const struct api *api, handle miopen)
{
    static char memory[64];
    struct performance found[FOUND];
    uint64_t index = next_number();
    mark(index);
    struct problem p = read_problem();
    struct asked a = describe(api, &p);
    int count = 0, d = p.direction;
    if (!a.status) {
        handle t[3];
        size_t bytes = 0;
        in_order(&a, d, t);
        a.status = api->workspace[d](miopen, t[0], t[1], a.convolution, t[2], &bytes);
        handle first = d ? t[0] : t[1], second = d ? t[1] : t[0];
        if (!a.status)
            a.status = api->find[d](miopen, first, memory, second, memory, a.convolution, t[2],
                                    memory, FOUND, &count, found, bytes ? memory : NULL, bytes,
                                    0);
    }
    fprintf(answers, "find %lu %d", (unsigned long)index, a.status);
    for (int i = 0; !a.status && i < count && i < FOUND; i++)
        fprintf(answers, " %d:%.9g:%zu", found[i].algorithm, (double)found[i].time,
                found[i].memory);
    fputc('\n', answers);
    forget(api, &a);
}

static void names(const struct api *api)
{
    int count = 0;
    for (uint64_t value = 1; value < IDS; value++) {
        struct solver_id id = {0};
        struct cxx_string text;
        api->id(&id, value);
        if (!id.valid || api->primitive(&id) != CONVOLUTION_PRIMITIVE)
            continue;
        api->name(&text, &id);
        fprintf(answers, "name %lu %s", (unsigned long)value, text.text);
        for (int direction = 0; direction < 3; direction++) {
            api->algorithm(&text, &id, direction);
            fprintf(answers, " %s", text.text);
        }
        fputc('\n', answers);
        count++;
    }
    fprintf(answers, "names %d\n", count);
}

static void answer(const struct api *api, handle miopen, const char *line)
{
    static const struct {
        const char *word;
        void (*act)(const struct api *, handle);
    } words[] = {{"solve ", solve}, {"compile ", compile}, {"find ", find}};
    if (!strcmp(line, "names")) {
        names(api);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if (!strncmp(line, words[i].word, length)) {
            cursor = line + length;
            words[i].act(api, miopen);
            return;
        }
    }
    refuse(BAD_QUESTION, "unknown question", line);
}

/* --- starting ------------------------------------------------------------------------ */

static void forbidden(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char text[] = "error 68 forbidden system call: 0000\n";
    char *digit = text + sizeof text - 3;
    for (int left = info->si_syscall; left > 0 && *digit == '0'; left /= 10)
        *digit-- = (char)('0' + left % 10);
    if (write(fileno(answers), text, sizeof text - 1) < 0)
        _exit(FORBIDDEN);
    _exit(FORBIDDEN);
}

static void keep_answers_apart(void)
{
    int kept = dup(STDOUT_FILENO);
    if (kept < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(USAGE);
    answers = fdopen(kept, "w");
    if (!answers)
        _exit(USAGE);
    struct sigaction action = {.sa_sigaction = forbidden, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
}

int main(int argc, char **argv)
{
    keep_answers_apart();
    if (argc != 2)
        refuse(USAGE, "usage", "probe LIBRARY");
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        refuse(CANNOT_LOAD, "cannot load", dlerror());
    static struct api api;
    bind(library, &api);
    handle miopen = NULL;
    int status = api.create(&miopen);
    if (status)
        refuse(CANNOT_CREATE, "miopenCreate refuses this card", NULL);
    fputs("ready\n", answers);
    fflush(answers);
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        answer(&api, miopen, line);
        fflush(answers);
    }
    /* Destructors of a stranger's library prove nothing, and may hang. */
    _exit(0);
}
