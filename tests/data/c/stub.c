/* Preloaded in place of HIP's registration: one line for each bundle a file registers.
   "good" is a plain bundle behind a sound wrapper, whose gfx906 entry is a code object. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char MAGIC[] = "__CLANG_OFFLOAD_BUNDLE__";
static const char WANTED[] = "amdgcn-amd-amdhsa--gfx906";
struct wrapper {
  uint32_t magic, version;
  const unsigned char *binary;
  void *unused;
};
static unsigned registered, bad, functions;

static uint64_t word(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, 8);
  return value;
}

static uint64_t fnv1a(const unsigned char *bytes, uint64_t size) {
  uint64_t hash = 14695981039346656037u;
  for (uint64_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

static int is_gfx906(const unsigned char *id, uint64_t length) {
  uint64_t wanted = sizeof WANTED - 1;
  return length > wanted && !memcmp(id + length - wanted, WANTED, wanted);
}

static int is_code_object(const unsigned char *at, uint64_t size) {
  return size >= 64 && !memcmp(at, "\177ELF\2\1\1\100", 8) && at[48] == 0x2f;
}

void **__hipRegisterFatBinary(const void *data) {
  static void *slot;
  const struct wrapper *wrapper = data;
  uint64_t entries = 0, size = 0, hash = 0;
  int good = 0;
  Dl_info from = {0};
  if (wrapper->magic == 0x48495046 && wrapper->version == 1 &&
      !memcmp(wrapper->binary, MAGIC, sizeof MAGIC - 1)) {
    const unsigned char *row = wrapper->binary + 32;
    entries = word(wrapper->binary + 24);
    for (uint64_t i = 0; i < entries; i++) {
      uint64_t length = word(row + 16);
      if (is_gfx906(row + 24, length)) {
        size = word(row + 8);
        good = is_code_object(wrapper->binary + word(row), size);
        hash = fnv1a(wrapper->binary + word(row), size);
      }
      row += 24 + length;
    }
  }
  dladdr(data, &from);
  const char *slash = from.dli_fname ? strrchr(from.dli_fname, '/') : NULL;
  printf("bundle %s %u entries=%lu good=%d size=%lu fnv=%016lx\n",
         slash ? slash + 1 : "?", registered++, entries, good, size, hash);
  fflush(stdout);
  bad += !good;
  return &slot;
}

void __hipRegisterFunction(void *m, const void *host, char *d, const char *name, unsigned limit,
                           void *t, void *b, void *bd, void *gd, int *w) {
  functions++;
}
void __hipRegisterVar(void *m, void *v, char *h, char *d, int e, size_t s, int c, int g) {}
void __hipRegisterManagedVar(void *m, void **p, void *i, const char *n, size_t s, unsigned a) {}
void __hipRegisterSurface(void *m, void *v, char *h, char *d, int t, int e) {}
void __hipRegisterTexture(void *m, void *v, char *h, char *d, int t, int n, int e) {}
void __hipUnregisterFatBinary(void **m) {}

__attribute__((destructor)) static void total(void) {
  printf("total bundles=%u bad=%u functions=%u\n", registered, bad, functions);
}
