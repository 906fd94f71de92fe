/* Compile a HIP kernel for gfx906 as MIOpen does: hipRTC, all headers given as texts.
 *
 * usage: hiprtc FOLDER SOURCE HEADER...      prints the size of the code object
 */
#include <stdio.h>
#include <stdlib.h>

int hiprtcCreateProgram(void **program, const char *source, const char *name, int count,
                        const char **headers, const char **names);
int hiprtcCompileProgram(void *program, int count, const char **options);
int hiprtcGetProgramLogSize(void *program, size_t *size);
int hiprtcGetProgramLog(void *program, char *log);
int hiprtcGetCodeSize(void *program, size_t *size);

static char *text(const char *folder, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *bytes = calloc(1, size + 1);
  if (fread(bytes, 1, size, file) != size) exit(2);
  return bytes;
}

int main(int argc, char **argv) {
  const char *options[] = {"--offload-arch=gfx906:sramecc+:xnack-", "-O3", "-std=c++17",
                           "-DMIOPEN_DONT_USE_HIP_RUNTIME_HEADERS", "-D__HIP_PLATFORM_AMD__=1",
                           "-DHIP_PACKAGE_VERSION_FLAT=7002000000ULL", "-DMIOPEN_USE_FP32=1",
                           "-DMIOPEN_FP8_CLIPPING=1", "-DMIOPEN_FP8_IEEE_EXPONENT_BIAS=0"};
  const char *headers[16], **names = (const char **)argv + 3;
  void *program = NULL;
  size_t size = 0;
  int count = argc - 3;
  if (count < 0 || count > 16) return 2;
  for (int i = 0; i < count; i++) headers[i] = text(argv[1], names[i]);
  if (hiprtcCreateProgram(&program, text(argv[1], argv[2]), argv[2], count, headers, names)) {
    return 3;
  }
  if (hiprtcCompileProgram(program, sizeof options / sizeof *options, options)) {
    hiprtcGetProgramLogSize(program, &size);
    char *log = calloc(1, size + 1);
    hiprtcGetProgramLog(program, log);
    fputs(log, stderr);
    return 4;
  }
  hiprtcGetCodeSize(program, &size);
  printf("%zu\n", size);
  return size ? 0 : 5;
}
