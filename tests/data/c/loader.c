/* dlopen what is named; "file:symbol" also looks the symbol up, "file:symbol()" calls it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int load(char *what) {
  char *name = strchr(what, ':');
  if (name) *name++ = '\0';
  void *handle = dlopen(what, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    printf("failed %s\n", dlerror());
    return 1;
  }
  char *call = name ? strstr(name, "()") : NULL;
  if (call) *call = '\0';
  void *symbol = name ? dlsym(handle, name) : NULL;
  if (name && !symbol) {
    printf("failed %s is not in %s\n", name, what);
    return 1;
  }
  if (call) printf("answers %d %d\n", ((int (*)(int))symbol)(0), ((int (*)(int))symbol)(1));
  printf("loaded %s\n", what);
  return 0;
}

int main(int count, char **names) {
  int failed = 0;
  for (int i = 1; i < count; i++) failed |= load(names[i]);
  return failed;
}
