/* vega-ggml: what a back end of libggml computes, against integers.
 *
 *   vega-ggml --level r1|r2|r3|r4 --json [--device NAME] [--library FILE] [--backends DIR]
 *             [--case ID] [--after ID] [--plant FAULT] [--strict] [--list]
 *
 * One JSON line for the device and one per case on stdout, or one with the problem. Exit
 * status: 0 all right, 2 usage, 7 no such device or no libggml, 8 wrong numbers, 9 something
 * unproven. Nothing of libggml is linked. */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *library, *backends, *device, *only, *after, *plant;
    int level;
    bool strict, list;
} Options;

static int usage(const char *what)
{
    fprintf(stderr, "vega-ggml: %s\nusage: vega-ggml --level r1|r2|r3|r4 --json [--device NAME]"
            " [--library FILE] [--backends DIR] [--case ID] [--after ID] [--plant FAULT]"
            " [--strict] [--list]\n", what);
    exit(2);
}

static const char **place(Options *options, const char *word)
{
    const char *names[] = {"--library", "--backends", "--device", "--case", "--after", "--plant"};
    const char **places[] = {&options->library, &options->backends, &options->device,
                             &options->only, &options->after, &options->plant};
    for (size_t i = 0; i < 6; i++)
        if (strcmp(word, names[i]) == 0)
            return places[i];
    return NULL;
}

static const Case *named(const char *id)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        if (strcmp(CASES[i].id, id) == 0)
            return &CASES[i];
    usage("no such case");
    return NULL;
}

static Options parse(int argc, char **argv)
{
    Options options = {.library = "libggml.so.0", .level = 2};
    for (int i = 1; i < argc; i++) {
        const char **value = place(&options, argv[i]);
        if (strcmp(argv[i], "--json") == 0)
            continue;
        if (strcmp(argv[i], "--strict") == 0 || strcmp(argv[i], "--list") == 0) {
            *(argv[i][2] == 's' ? &options.strict : &options.list) = true;
            continue;
        }
        if (i + 1 == argc)
            usage("a word too many, or its value missing");
        const char *word = argv[++i];
        if (value)
            *value = word;
        else if (strcmp(argv[i - 1], "--level") == 0 && word[0] == 'r' && word[1] >= '1' &&
                 word[1] <= '4' && !word[2])
            options.level = word[1] - '0';
        else
            usage(argv[i - 1]);
    }
    if (options.only)
        named(options.only);
    if (options.after)
        named(options.after);
    if (options.plant && !fault_known(options.plant))
        usage("no such fault");
    return options;
}

static void quiet(int level, const char *text, void *data)
{
    (void)level;
    (void)data;
    fputs(text, stderr);
}

static int refused(const char *what, const char *which)
{
    char text[600];
    snprintf(text, sizeof text, "%s%s", what, which);
    printf("{\"problem\":");
    print_text(text);
    printf("}\n");
    fflush(stdout);
    fprintf(stderr, "vega-ggml: %s\n", text);
    return 7;
}

/* Who computes, before any case: a reader must be able to tell a card from a renderer. */
static void introduce(Dev device)
{
    static const char *const kinds[] = {"cpu", "gpu", "igpu", "accel"};
    unsigned type = (unsigned)G.ggml_backend_dev_type(device);
    printf("{\"device\":");
    print_text(G.ggml_backend_dev_name(device));
    printf(",\"description\":");
    print_text(G.ggml_backend_dev_description(device));
    printf(",\"kind\":\"%s\"}\n", type < 4 ? kinds[type] : "other");
    fflush(stdout);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The device asked for; else the first graphics card; the processor only by its name. */
static Dev choose(const char *name)
{
    for (size_t i = 0; i < G.ggml_backend_dev_count(); i++) {
        Dev device = G.ggml_backend_dev_get(i);
        int type = G.ggml_backend_dev_type(device);
        fprintf(stderr, "device %s: %s\n", G.ggml_backend_dev_name(device),
                G.ggml_backend_dev_description(device));
        if (name ? strcmp(G.ggml_backend_dev_name(device), name) == 0
                 : type == DEVICE_GPU || type == DEVICE_IGPU)
            return device;
    }
    return NULL;
}

static bool selected(const Options *options, const Case *row, bool *reached)
{
    bool on = *reached;
    if (options->after && strcmp(row->id, options->after) == 0)
        *reached = true;
    if (options->only)
        return strcmp(row->id, options->only) == 0;
    return on && row->level <= options->level;
}

static int run(const Options *options, Backend backend, const char *device)
{
    Session session = {backend, device, options->plant, options->level == 4 ? 10 : 2};
    bool reached = !options->after, wrong = false, unproven = false;
    size_t done = 0;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        if (!selected(options, &CASES[i], &reached))
            continue;
        double began = now();
        Judgement judgement = judge_case(&session, &CASES[i]);
        print_judgement(&session, &CASES[i], &judgement, now() - began);
        enum Verdict verdict = judgement.verdict;
        done++;
        wrong |= verdict == MISMATCH || verdict == NOT_FINITE || verdict == CRASHED ||
                 (verdict == DEGRADED && options->strict);
        unproven |= verdict == INVALID || (verdict == UNSUPPORTED && CASES[i].required);
    }
    return wrong ? 8 : unproven || !done ? 9 : 0;
}

int main(int argc, char **argv)
{
    Options options = parse(argc, argv);
    bool reached = !options.after;
    if (options.list) {
        for (size_t i = 0; i < CASE_COUNT; i++)
            if (selected(&options, &CASES[i], &reached))
                printf("{\"case\":\"%s\",\"required\":%s}\n", CASES[i].id,
                       CASES[i].required ? "true" : "false");
        return 0;
    }
    const char *problem = ggml_open(options.library);
    if (problem)
        return refused("no libggml: ", problem);
    G.ggml_log_set(quiet, NULL);
    if (options.backends)
        G.ggml_backend_load_all_from_path(options.backends);
    else
        G.ggml_backend_load_all();
    Dev device = choose(options.device);
    Backend backend = device ? G.ggml_backend_dev_init(device, NULL) : NULL;
    if (!backend)
        return refused("no device ", options.device ? options.device : "but the processor");
    introduce(device);
    int status = run(&options, backend, G.ggml_backend_dev_name(device));
    G.ggml_backend_free(backend);
    return status;
}
