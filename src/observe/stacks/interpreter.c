#include "observe/stacks/interpreter.h"

#include "observe/stacks/elf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PTHREAD_BYTES 1024 /* of a thread's descriptor in libc: its number lies at 720 in glibc on x86-64 */
#define LINE_BYTES (PATH_MAX + 256)
#define CANDIDATES_MAX 16

static size_t read_memory(void *context, const struct iovec *pieces, size_t count, void *to) {
    const struct hec_python_process *process = context;
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += pieces[i].iov_len;
    const struct iovec local = {to, size};
    ssize_t got = process_vm_readv(process->pid, &local, 1, pieces, count, 0);
    return got > 0 ? (size_t)got : 0;
}

/* ---- the file that the interpreter is in ---- */

static bool read_file(void *context, uint64_t offset, void *to, size_t size) {
    int fd = *(const int *)context;
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* A file that the process has mapped: by its own root, else by ours. */
static int open_mapped(pid_t pid, const char *path, unsigned long inode) {
    char own[LINE_BYTES];
    struct stat status;
    snprintf(own, sizeof own, "/proc/%d/root%s", (int)pid, path);
    const char *const paths[] = {own, path};
    for (size_t i = 0; i < 2; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            (i == 0 || (unsigned long)status.st_ino == inode))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

/* 3.MINOR in "python3.10", "libpython3.8.so.1.0"; -1: the name says nothing. */
static int minor_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = strstr(slash ? slash + 1 : path, "python3.");
    int minor;
    return name && sscanf(name, "python3.%3d", &minor) == 1 ? minor : -1;
}

struct candidate {
    char path[PATH_MAX];
    uint64_t start;
    unsigned long inode;
};

/* Why nothing came; errno is that of the read. */
static int unreadable(const struct hec_python_process *process, struct hec_why *why) {
    if (errno == ESRCH || errno == EFAULT)
        return hec_fail(why, errno == ESRCH ? HEC_ERR_LOST : HEC_ERR_NOTFOUND, "process %d changes", (int)process->pid);
    return hec_fail(why, HEC_ERR_PERMISSION, "the memory of process %d may not be read: %s", (int)process->pid,
                    strerror(errno));
}

static int lay_out(struct hec_python_process *process, uint64_t version_at, const char *path, struct hec_why *why) {
    struct hec_python *python = &process->python;
    unsigned char told[HEC_PYTHON_TOLD_BYTES];
    uint64_t version;
    int minor = minor_of(path);
    if (!hec_memory_read(&process->memory, python->runtime, told, sizeof told))
        return unreadable(process, why);
    if (version_at) {
        if (!hec_memory_read(&process->memory, version_at, &version, sizeof version))
            return unreadable(process, why);
        minor = version >> 24 == 3 ? (int)(version >> 16 & 0xff) : 0;
    }
    bool known = minor >= HEC_PYTHON_MINOR_TOLD ? hec_python_layout_told(told, sizeof told, &python->layout)
                                                : hec_python_layout_of(minor, &python->layout);
    return known ? HEC_OK
                 : hec_fail(why, HEC_ERR_UNSUPPORTED,
                            "process %d is a Python whose stacks are not known how to read (%.160s, 3.%d)",
                            (int)process->pid, path, minor);
}

static int look(struct hec_python_process *process, const struct candidate *c, struct hec_why *why) {
    struct hec_elf_symbol symbols[] = {{"_PyRuntime", 0}, {".PyRuntime", 0}, {"Py_Version", 0}, {"PyCode_Type", 0}};
    uint64_t base = 0;
    int fd = open_mapped(process->pid, c->path, c->inode);
    if (fd < 0)
        return HEC_ERR_NOTFOUND;
    const struct hec_elf_file file = {&fd, read_file};
    bool found = hec_elf_find(&file, symbols, sizeof symbols / sizeof symbols[0], &base);
    close(fd);
    uint64_t runtime = symbols[0].address ? symbols[0].address : symbols[1].address, bias = c->start - base;
    if (!found || !runtime)
        return HEC_ERR_NOTFOUND;
    process->python =
        (struct hec_python){.runtime = runtime + bias, .code_type = symbols[3].address ? symbols[3].address + bias : 0};
    return lay_out(process, symbols[2].address ? symbols[2].address + bias : 0, c->path, why);
}

static bool is_driver(const char *name) {
    return strncmp(name, "libcuda.so", 10) == 0;
}

bool hec_python_process_uses_device(pid_t pid) {
    char path[64], *line = malloc(LINE_BYTES);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = line ? fopen(path, "re") : NULL;
    while (maps && !found && fgets(line, LINE_BYTES, maps)) {
        const char *slash = strrchr(line, '/');
        found = slash && is_driver(slash + 1);
    }
    if (maps)
        fclose(maps);
    free(line);
    return found;
}

/* What one read gives of /proc/PID/name; "": nothing. */
static void read_proc(pid_t pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
}

int64_t hec_python_process_pages(pid_t pid) {
    char text[64];
    read_proc(pid, "statm", text, sizeof text);
    return text[0] ? atoll(text) : -1;
}

/* By its first argument, which everybody may read. */
static bool is_called_python(pid_t pid) {
    char name[PATH_MAX];
    read_proc(pid, "cmdline", name, sizeof name);
    return strstr(name, "python") != NULL;
}

/* The program's file, and files named like an interpreter, where they begin; the number of them, -1: see errno. */
static int candidates(struct hec_python_process *process, struct candidate *out, int room) {
    char path[64], program[PATH_MAX], *line = malloc(LINE_BYTES);
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    ssize_t length = readlink(path, program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process->pid);
    FILE *maps = line ? fopen(path, "re") : NULL;
    int count = 0;
    while (maps && fgets(line, LINE_BYTES, maps)) {
        unsigned long start, offset, inode;
        int at = 0;
        if (sscanf(line, "%lx-%*x %*s %lx %*s %lu %n", &start, &offset, &inode, &at) < 3 || line[at] != '/')
            continue;
        char *file = line + at, *slash;
        file[strcspn(file, "\n")] = '\0';
        slash = strrchr(file, '/');
        process->uses_device |= is_driver(slash + 1);
        if (offset != 0 || count == room || strlen(file) >= PATH_MAX ||
            (strcmp(file, program) != 0 && !strstr(slash, "python")))
            continue;
        out[count].start = start;
        out[count].inode = inode;
        strcpy(out[count++].path, file);
    }
    int error = errno;
    if (maps)
        fclose(maps);
    free(line);
    errno = error;
    return maps ? count : -1;
}

/* Field 28 of /proc/PID/stat. */
static uint64_t stack_of(pid_t pid) {
    char text[1024];
    read_proc(pid, "stat", text, sizeof text);
    const char *at = strrchr(text, ')'); /* of field 2, a name in which anything may stand */
    for (int field = 2; at && field < 28; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static int32_t inner_pid(pid_t pid) {
    char path[64], line[256];
    int32_t inner = pid;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "NSpid:", 6) == 0) {
            const char *last = strrchr(line, '\t');
            inner = last ? atoi(last + 1) : inner;
            break;
        }
    if (status)
        fclose(status);
    return inner;
}

int hec_python_process_open(pid_t pid, struct hec_python_process *process, struct hec_why *why) {
    *process = (struct hec_python_process){
        .pid = pid, .memory = {process, read_memory}, .inner_pid = inner_pid(pid), .stack = stack_of(pid)};
    struct candidate *list = malloc(CANDIDATES_MAX * sizeof *list);
    int count = list ? candidates(process, list, CANDIDATES_MAX) : 0;
    int err = count < 0 ? HEC_ERR_LOST : HEC_ERR_NOTFOUND;
    if (count < 0 && (errno == EACCES || errno == EPERM) && is_called_python(pid))
        err = unreadable(process, why);
    for (int i = 0; i < count && err == HEC_ERR_NOTFOUND; i++)
        err = look(process, &list[i], why);
    free(list);
    return err;
}

/* ---- threads ---- */

bool hec_python_is_main(const struct hec_python_process *process, const struct hec_python_thread *thread) {
    return hec_python_has(process->python.layout.runtime_main_thread)
               ? thread->main
               : thread->native_id == (uint64_t)process->inner_pid;
}

static bool is_thread(pid_t pid, pid_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)pid, (int)tid);
    return tid > 0 && access(path, F_OK) == 0;
}

/* The thread that the process numbers so. */
static pid_t outer(const struct hec_python_process *process, pid_t inner) {
    char path[64];
    pid_t found = 0;
    if (process->inner_pid == process->pid)
        return is_thread(process->pid, inner) ? inner : 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        if (tid > 0 && inner_pid(tid) == inner)
            found = tid;
    }
    if (folder)
        closedir(folder);
    return found;
}

pid_t hec_python_process_tid(const struct hec_python_process *process, const struct hec_python_thread *thread,
                             const struct hec_python_thread *main, int *id_at) {
    int32_t number;
    if (hec_python_is_main(process, thread))
        return process->pid;
    if (thread->native_id)
        return thread->native_id <= INT32_MAX ? outer(process, (pid_t)thread->native_id) : 0;
    if (!main)
        return 0;
    if (*id_at < 0) {
        int32_t words[PTHREAD_BYTES / sizeof(int32_t)];
        if (!hec_memory_read(&process->memory, main->id, words, sizeof words))
            return 0;
        for (int i = 0; i < (int)(sizeof words / sizeof words[0]) && *id_at < 0; i++)
            if (words[i] == process->inner_pid)
                *id_at = i * (int)sizeof(int32_t);
    }
    if (*id_at < 0 || !hec_memory_read(&process->memory, thread->id + (uint64_t)*id_at, &number, sizeof number))
        return 0;
    return number > 0 ? outer(process, number) : 0;
}
