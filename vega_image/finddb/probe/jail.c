/* Runs one program of a stranger's root file system with nothing of the host around it.
 *
 * usage: jail STAGE ROOT TOOLS MEMORY_BYTES CPU_SECONDS FILE_BYTES NAME=VALUE... -- PROGRAM ARG...
 *
 * PROGRAM sees ROOT read-only, TOOLS read-only at /probe, a small /tmp, /dev/null and
 * /dev/urandom; no network, no other process, no capability, no /proc. STAGE is an empty
 * folder. Works for any user that may make user namespaces. Standard streams stay open, no
 * other descriptor does. Before PROGRAM starts "jailed" is written to stdout.
 *
 * Exit: that of PROGRAM; 128+N when signal N ended it (also said on stderr); 71 when the
 * isolation cannot be made, and then PROGRAM was not started.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_ISOLATION = 71, INSIDE_ID = 1000, THREADS = 512, OPEN_FILES = 256 };

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "jail: cannot %s: %s\n", what, strerror(errno));
    exit(NO_ISOLATION);
}

static void must(int bad, const char *what)
{
    if (bad)
        fail(what);
}

static void write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    must(file < 0 || write(file, text, strlen(text)) < 0, path);
    close(file);
}

/* An id that is not 0 inside: the program keeps no capability over its execve. */
static void leave_host(uid_t uid, gid_t gid)
{
    char text[64];
    must(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC |
                 CLONE_NEWUTS | CLONE_NEWCGROUP), "make namespaces");
    write_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%d %u 1\n", INSIDE_ID, uid);
    write_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%d %u 1\n", INSIDE_ID, gid);
    write_file("/proc/self/gid_map", text);
}

/* --- the file system ----------------------------------------------------------------- */

struct mount_attributes {
    uint64_t set, clear, propagation, userns;
};

static void bind_read_only(const char *source, const char *target)
{
    enum { SYS_MOUNT_SETATTR = 442, RECURSIVE = 0x8000 };
    struct mount_attributes attributes = {.set = 1 | 2 | 4}; /* RDONLY, NOSUID, NODEV */
    must(mount(source, target, NULL, MS_BIND | MS_REC, NULL), "bind a folder");
    must((int)syscall(SYS_MOUNT_SETATTR, AT_FDCWD, target, RECURSIVE, &attributes,
                      sizeof attributes), "make a folder read-only");
}

static int kept_out(const char *name)
{
    static const char *const names[] = {".", "..", "dev", "proc", "sys", "tmp", "run", "probe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return 0;
}

static void path_of(char *out, const char *folder, const char *name)
{
    errno = ENAMETOOLONG;
    must(snprintf(out, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX, "name a file");
}

static void place(const char *root, const char *stage, const char *name)
{
    char source[PATH_MAX], target[PATH_MAX], link[PATH_MAX];
    struct stat status;
    path_of(source, root, name);
    path_of(target, stage, name);
    must(lstat(source, &status), source);
    if (S_ISLNK(status.st_mode)) {
        ssize_t length = readlink(source, link, sizeof link - 1);
        must(length < 0, source);
        link[length] = '\0';
        must(symlink(link, target), target);
    } else if (S_ISDIR(status.st_mode)) {
        must(mkdir(target, 0755), target);
        bind_read_only(source, target);
    }
}

static void place_all(const char *root, const char *stage)
{
    DIR *folder = opendir(root);
    must(!folder, root);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (!kept_out(entry->d_name))
            place(root, stage, entry->d_name);
    closedir(folder);
}

static void place_device(const char *stage, const char *device)
{
    char target[PATH_MAX];
    path_of(target, stage, device + 1);
    int file = open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    must(file < 0, target);
    close(file);
    must(mount(device, target, NULL, MS_BIND, NULL), device);
}

static void build_root(const char *stage, const char *root, const char *tools)
{
    char path[PATH_MAX];
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "detach the mounts");
    must(mount("none", stage, "tmpfs", MS_NOSUID, "size=1m,mode=755"), "mount a root");
    place_all(root, stage);
    path_of(path, stage, "probe");
    must(mkdir(path, 0755), path);
    bind_read_only(tools, path);
    path_of(path, stage, "dev");
    must(mkdir(path, 0755), path);
    place_device(stage, "/dev/null");
    place_device(stage, "/dev/urandom");
    path_of(path, stage, "tmp");
    must(mkdir(path, 0755), path);
    must(mount("none", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64m,mode=1777"),
         "mount /tmp");
    must(mount(NULL, stage, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL),
         "make the root read-only");
    must(chdir(stage) || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
         chdir("/tmp"), "leave the host's root");
}

/* --- limits -------------------------------------------------------------------------- */

static uint64_t number(const char *text)
{
    char *end;
    errno = EINVAL;
    uint64_t value = strtoull(text, &end, 10);
    must(*end || end == text, "read a number");
    return value;
}

static void limit(int what, uint64_t value)
{
    struct rlimit now = {.rlim_cur = value, .rlim_max = value}, before;
    must(getrlimit(what, &before), "read a limit");
    if (before.rlim_max != RLIM_INFINITY && before.rlim_max < value)
        now.rlim_cur = now.rlim_max = before.rlim_max;
    must(setrlimit(what, &now), "set a limit");
}

#define TRAP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define REFUSED(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), TRAP

/* Sockets, processes and all that reaches other namespaces end the program (SIGSYS). */
static void forbid_calls(void)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        REFUSED(socket), REFUSED(socketpair), REFUSED(fork), REFUSED(vfork), REFUSED(ptrace),
        REFUSED(mount), REFUSED(umount2), REFUSED(pivot_root), REFUSED(chroot),
        REFUSED(unshare), REFUSED(setns), REFUSED(bpf), REFUSED(perf_event_open),
        REFUSED(userfaultfd), REFUSED(keyctl), REFUSED(add_key), REFUSED(request_key),
        REFUSED(process_vm_readv), REFUSED(process_vm_writev), REFUSED(open_by_handle_at),
        REFUSED(io_uring_setup), REFUSED(init_module), REFUSED(finit_module),
        REFUSED(kexec_load), REFUSED(setsid), REFUSED(open_tree), REFUSED(move_mount),
        REFUSED(fsopen),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
        TRAP,
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up privileges");
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0), "forbid system calls");
}

static void bound(char **limits)
{
    limit(RLIMIT_AS, number(limits[0]));
    limit(RLIMIT_CPU, number(limits[1]));
    limit(RLIMIT_FSIZE, number(limits[2]));
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, OPEN_FILES);
    limit(RLIMIT_NPROC, THREADS);
}

static _Noreturn void start(char **limits, char **environment, char **program)
{
    bound(limits);
    must((int)syscall(SYS_close_range, 3U, ~0U, 0U), "close files");
    must(write(STDOUT_FILENO, "jailed\n", 7) != 7, "write");
    forbid_calls();
    execve(program[0], program, environment);
    fail("start the program");
}

static int awaited(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        must(errno != EINTR, "wait");
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "jail: ended by signal %d\n", WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

static pid_t forked(void)
{
    pid_t child = fork();
    must(child < 0, "fork");
    return child;
}

/* The first process of a pid namespace is deaf to signals it does not handle, so it is not
 * PROGRAM; when it dies, and it dies with its parent, all others in there do. */
static _Noreturn void inside(char **argv, char **environment, char **program)
{
    must(prctl(PR_SET_PDEATHSIG, SIGKILL), "die with the caller");
    build_root(argv[1], argv[2], argv[3]);
    pid_t child = forked();
    if (!child)
        start(argv + 4, environment, program);
    exit(awaited(child));
}

int main(int argc, char **argv)
{
    enum { FIXED = 7 };
    char **mark = argv + (argc < FIXED ? argc : FIXED);
    while (*mark && strcmp(*mark, "--"))
        mark++;
    errno = EINVAL;
    must(!*mark || !mark[1], "understand the arguments");
    *mark = NULL;
    leave_host(geteuid(), getegid());
    pid_t child = forked();
    if (!child)
        inside(argv, argv + FIXED, mark + 1);
    return awaited(child);
}
