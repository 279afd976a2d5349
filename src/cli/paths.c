#include "cli/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int hec_path_lib(const char *name, char path[PATH_MAX], struct hec_why *why) {
    char exe[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (length < 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "cannot tell where hec is: %s", strerror(errno));
    exe[length] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = '\0';
    if (snprintf(path, PATH_MAX, "%s/../%s/%s", exe, HEC_LIBDIR, name) >= PATH_MAX || access(path, R_OK) != 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "%s is missing beside hec (looked for %s)", name, path);
    return HEC_OK;
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

void hec_path_run_file(char *const *argv, char path[PATH_MAX]) {
    char name[64];
    snprintf(name, sizeof name, "%s", work_name(argv));
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || strchr("/\\*?\"'<>|: ", *c))
            *c = '_';
    snprintf(path, PATH_MAX, "%s.hec", name[0] ? name : "run");
    for (int i = 2; i < 100000 && access(path, F_OK) == 0; i++)
        snprintf(path, PATH_MAX, "%s-%d.hec", name, i);
}

int hec_path_private_folder(char path[PATH_MAX], struct hec_why *why) {
    const char *const parents[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        /* a socket's path must fit sun_path (108 bytes): long parents are passed over */
        if (!parents[i] || !parents[i][0] || strlen(parents[i]) > 70)
            continue;
        snprintf(path, PATH_MAX, "%s/hec-XXXXXX", parents[i]);
        if (mkdtemp(path))
            return HEC_OK;
    }
    return hec_fail(why, HEC_ERR_IO, "cannot make a temporary folder: %s", strerror(errno));
}
