/* Ask the real libamd_comgr for the code object of one GPU, as the HIP runtime does.
 *
 * usage: comgr FILE OFFSET ISA      (ISA e.g. amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-)
 *
 * clr's hip_fatbin.cpp takes a bundle that is plain by amd_comgr_lookup_code_object on its
 * first 4096 bytes, a compressed one (version 2 or 3) by the action UNBUNDLE on as many bytes
 * as its header says. The numbers are those of amd_comgr.h, interface version 3.
 * Prints "SIZE HASH" of what comgr found (FNV-1a, 64 bits), or fails with a number.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t handle; } handle;
typedef struct { const char *isa; size_t size; uint64_t offset; } code_object_info;
enum { KIND_FATBIN = 0x10, KIND_OBJ_BUNDLE = 0x14, KIND_EXECUTABLE = 0x8, UNBUNDLE = 0xF };

int amd_comgr_create_data(int kind, handle *data);
int amd_comgr_set_data(handle data, size_t size, const char *bytes);
int amd_comgr_set_data_name(handle data, const char *name);
int amd_comgr_get_data(handle data, size_t *size, char *bytes);
int amd_comgr_create_data_set(handle *set);
int amd_comgr_data_set_add(handle set, handle data);
int amd_comgr_create_action_info(handle *info);
int amd_comgr_action_info_set_bundle_entry_ids(handle info, const char *ids[], size_t count);
int amd_comgr_do_action(int kind, handle info, handle input, handle result);
int amd_comgr_action_data_count(handle set, int kind, size_t *count);
int amd_comgr_action_data_get_data(handle set, int kind, size_t index, handle *data);
int amd_comgr_lookup_code_object(handle data, code_object_info *list, size_t size);

static void need(int bad, int code, const char *what) {
    if (bad) {
        fprintf(stderr, "%s: %d\n", what, bad);
        exit(code);
    }
}

static int answer(const char *bytes, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    printf("%zu %016llx\n", size, (unsigned long long)hash);
    return size ? 0 : 5;
}

static int plain(const char *image, const char *isa) {
    handle data;
    code_object_info found = {isa, 0, 0};
    need(amd_comgr_create_data(KIND_FATBIN, &data), 3, "create_data");
    need(amd_comgr_set_data(data, 4096, image), 3, "set_data");
    need(amd_comgr_lookup_code_object(data, &found, 1), 4, "lookup_code_object");
    return answer(image + found.offset, found.size);
}

static int compressed(const char *image, const char *isa) {
    uint16_t version;
    uint64_t total = 0;
    char id[256];
    const char *ids[] = {id};
    handle bundled, unbundled, input, info, item;
    size_t count = 0, size = 0;
    memcpy(&version, image + 4, 2);
    memcpy(&total, image + 8, version == 2 ? 4 : 8);
    snprintf(id, sizeof id, "hipv4-%s", isa);
    need(amd_comgr_create_data_set(&bundled), 3, "create_data_set");
    need(amd_comgr_create_data_set(&unbundled), 3, "create_data_set");
    need(amd_comgr_create_data(KIND_OBJ_BUNDLE, &input), 3, "create_data");
    need(amd_comgr_set_data(input, total, image), 3, "set_data");
    need(amd_comgr_set_data_name(input, "hipfatbin"), 3, "set_data_name");
    need(amd_comgr_data_set_add(bundled, input), 3, "data_set_add");
    need(amd_comgr_create_action_info(&info), 3, "create_action_info");
    need(amd_comgr_action_info_set_bundle_entry_ids(info, ids, 1), 3, "set_bundle_entry_ids");
    need(amd_comgr_do_action(UNBUNDLE, info, bundled, unbundled), 4, "unbundle");
    need(amd_comgr_action_data_count(unbundled, KIND_EXECUTABLE, &count), 4, "data_count");
    need(count != 1, 4, "not one code object");
    need(amd_comgr_action_data_get_data(unbundled, KIND_EXECUTABLE, 0, &item), 4, "get_data");
    need(amd_comgr_get_data(item, &size, NULL), 4, "get_data");
    char *bytes = malloc(size + 1);
    need(amd_comgr_get_data(item, &size, bytes), 4, "get_data");
    return answer(bytes, size);
}

int main(int argc, char **argv) {
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    need(file == NULL, 2, "usage: comgr FILE OFFSET ISA");
    fseek(file, 0, SEEK_END);
    long end = ftell(file), from = strtol(argv[2], NULL, 0);
    need(from < 0 || from >= end, 2, "offset");
    char *image = calloc(1, (size_t)(end - from) + 4096);
    fseek(file, from, SEEK_SET);
    need(fread(image, 1, (size_t)(end - from), file) != (size_t)(end - from), 2, "read");
    return memcmp(image, "CCOB", 4) ? plain(image, argv[3]) : compressed(image, argv[3]);
}
