/* Run inside the sandbox in place of the server: says what it could reach and write. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void dial(const char *host, int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, host, &to.sin_addr);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  int failed = s < 0 || connect(s, (struct sockaddr *)&to, sizeof to);
  printf("dial %s %s\n", host, failed ? strerror(errno) : "CONNECTED");
  s = socket(AF_INET, SOCK_DGRAM, 0);
  failed = s < 0 || sendto(s, "x", 1, 0, (struct sockaddr *)&to, sizeof to) < 0;
  printf("send %s %s\n", host, failed ? strerror(errno) : "SENT");
}

static void try_write(const char *folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/probe-wrote", folder);
  int f = open(path, O_CREAT | O_WRONLY, 0600);
  printf("write %s %s\n", folder, f < 0 ? strerror(errno) : "WROTE");
}

static void show(const char *name, const char *prefix) {
  char line[512];
  FILE *file = fopen(name, "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, prefix, strlen(prefix))) printf("status %s", line);
}

int main(int n, char **argument) {
  struct rlimit core;
  const char *folders[] = {"/", "/etc", "/usr", "/usr/bin", "/models", "/run", "/proc/sys/kernel",
                           "/sys", "/dev", "/dev/shm", "/tmp", "/run/vega"};
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("uid %d gid %d\n", getuid(), getgid());
  for (int i = 2; i < n; i++) dial(argument[i], atoi(argument[1]));
  for (unsigned i = 0; i < sizeof folders / sizeof *folders; i++) try_write(folders[i]);
  printf("model %s\n", open("/models/model.gguf", O_WRONLY) < 0 ? strerror(errno) : "WRITABLE");
  getrlimit(RLIMIT_CORE, &core);
  printf("core %ld\n", (long)core.rlim_max);
  show("/proc/self/status", "CapEff");
  show("/proc/self/status", "CapBnd");
  show("/proc/self/status", "NoNewPrivs");
  show("/proc/self/status", "Groups");
  return 0;
}
