#include "cli/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int beside(const char *folder, const char *name, char path[PATH_MAX], struct hec_why *why) {
    char exe[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (length < 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "cannot tell where hec is: %s", strerror(errno));
    exe[length] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = '\0';
    if (snprintf(path, PATH_MAX, "%s/../%s/%s", exe, folder, name) >= PATH_MAX || access(path, R_OK) != 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "%s is missing beside hec (looked for %s)", name, path);
    return HEC_OK;
}

int hec_path_lib(const char *name, char path[PATH_MAX], struct hec_why *why) {
    return beside(HEC_LIBDIR, name, path, why);
}

int hec_path_share(const char *name, char path[PATH_MAX], struct hec_why *why) {
    return beside(HEC_DATADIR, name, path, why);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Commands whose first operand names the work better than they do. */
static const char *const interpreters[] = {"python", "bash",     "sh",         "zsh",       "node", "perl",  "ruby",
                                           "julia",  "torchrun", "accelerate", "deepspeed", "env",  "nohup", "uv"};

static const char *work_name(char *const *argv) {
    const char *name = base_name(argv[0]);
    for (size_t i = 0; i < sizeof interpreters / sizeof interpreters[0]; i++) {
        size_t length = strlen(interpreters[i]);
        /* python3.11 is python; bashful is not bash */
        if (strncmp(name, interpreters[i], length) != 0 ||
            strspn(name + length, "0123456789.") != strlen(name + length))
            continue;
        for (int a = 1; argv[a]; a++)
            if (strchr(argv[a], '.') && argv[a][0] != '-' && !strpbrk(argv[a], " =;|&"))
                return base_name(argv[a]);
        return name;
    }
    return name;
}

/* NAME.hec, or the first NAME-N.hec that does not exist. */
static void free_path(char *name, char path[PATH_MAX]) {
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || strchr("/\\*?\"'<>|: ", *c))
            *c = '_';
    snprintf(path, PATH_MAX, "%s.hec", name[0] ? name : "run");
    for (int i = 2; i < 100000 && access(path, F_OK) == 0; i++)
        snprintf(path, PATH_MAX, "%s-%d.hec", name, i);
}

void hec_path_run_file(char *const *argv, char path[PATH_MAX]) {
    char name[64];
    snprintf(name, sizeof name, "%s", work_name(argv));
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    free_path(name, path);
}

void hec_path_import_file(const char *trace, char path[PATH_MAX]) {
    static const char *const suffixes[] = {".gz", ".json", ".sqlite", ".trace", ".pt"};
    char name[128];
    snprintf(name, sizeof name, "%s", base_name(trace));
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t length = strlen(name), suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(name + length - suffix, suffixes[i]) == 0)
            name[length - suffix] = '\0';
    }
    free_path(name, path);
}

#define PRIVATE_PREFIX "hec-"
#define STALE_SECONDS 60 /* a younger folder may belong to a hec that is just starting */

/* Nobody listens on the socket of a hec that was killed. */
static bool is_stale(const char *folder, const char *socket_path) {
    struct stat status;
    if (lstat(folder, &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        time(NULL) - status.st_mtime < STALE_SECONDS)
        return false;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool refused = connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

void hec_path_remove_folder(const char *path) {
    static const char *const sockets[] = {HEC_PATH_SOCKET, HEC_PATH_TRACE_SOCKET};
    char socket_path[PATH_MAX];
    for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++)
        if (snprintf(socket_path, sizeof socket_path, "%s/%s", path, sockets[i]) < (int)sizeof socket_path)
            unlink(socket_path);
    rmdir(path);
}

static void sweep(const char *parent) {
    DIR *list = opendir(parent);
    struct dirent *entry;
    while (list && (entry = readdir(list))) {
        char folder[100], socket_path[108]; /* what fits sun_path; others were not made by hec */
        if (strncmp(entry->d_name, PRIVATE_PREFIX, strlen(PRIVATE_PREFIX)) != 0 ||
            snprintf(folder, sizeof folder, "%s/%s", parent, entry->d_name) >= (int)sizeof folder)
            continue;
        snprintf(socket_path, sizeof socket_path, "%s/" HEC_PATH_SOCKET, folder);
        if (is_stale(folder, socket_path))
            hec_path_remove_folder(folder);
    }
    if (list)
        closedir(list);
}

int hec_path_private_folder(char path[PATH_MAX], struct hec_why *why) {
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        /* a socket's path must fit sun_path (108 bytes): long parents are passed over */
        if (!parents[i] || !parents[i][0] || strlen(parents[i]) > 70)
            continue;
        sweep(parents[i]);
        snprintf(path, PATH_MAX, "%s/" PRIVATE_PREFIX "XXXXXX", parents[i]);
        if (mkdtemp(path))
            return HEC_OK;
    }
    return hec_fail(why, HEC_ERR_IO, "cannot make a temporary folder: %s", strerror(errno));
}
