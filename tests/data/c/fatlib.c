/* The host side of a HIP file without HIP: it registers its wrappers when there is somebody
   to register with, as libamdhip64's callers do. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct wrapper {
  uint32_t magic, version;
  const char *binary;
  void *unused;
};
extern struct wrapper wrappers[2];
extern void **__hipRegisterFatBinary(const void *) __attribute__((weak));

static const char *const words[] = {"vega", "twenty", "sixty compute units"};
const char *const *exported_words = words;
_Thread_local int calls;
static int zeros[5000];

__attribute__((constructor)) static void register_all(void) {
  for (int i = 0; i < 2; i++)
    if (__hipRegisterFatBinary) __hipRegisterFatBinary(&wrappers[i]);
}

int answer(int which) {
  calls++;
  zeros[which] += wrappers[which].magic == 0x48495046;
  return (int)wrappers[which].binary[0] + zeros[which] + (exported_words[2][0] == 's');
}

#ifdef PROGRAM
int main(void) {
  printf("%d %d\n", answer(0), answer(1));
  return 0;
}
#endif
