#include "launch/paths.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int beside(const char *folder, const char *name, char path[PATH_MAX], struct hec_why *why) {
    char exe[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (length < 0)
        return hec_fail(why, HEC_ERR_NOTFOUND, "cannot find out where hec is: %s", strerror(errno));
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

/* NAME.hec, or the first NAME-N.hec that does not exist. Whoever made the command chose its name: nothing in it is more than a letter
 * to a shell or a terminal, nor an option or a hidden file. */
static void free_path(const char *given, char path[PATH_MAX]) {
    char name[128];
    hec_text_clean(name, sizeof name, given, strlen(given), true);
    for (char *c = name; *c; c++)
        if (strchr("/\\*?\"'<>|: ;&$`()[]{}!#^~%", *c) || (c == name && strchr("-.=@+", *c)))
            *c = '_';
    snprintf(path, PATH_MAX, "%s.hec", name[0] ? name : "run");
    struct stat status; /* a link that leads nowhere takes a name, too */
    for (int i = 2; i < 100000 && lstat(path, &status) == 0; i++)
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

static bool is_folder(const char *path) {
    return path && path[0] == '/';
}

/* NULL: there is none. A socket's path must fit sun_path (108 bytes): long ones are passed over. */
#define SCRATCH_PARENTS 3
static const char *scratch_parent(int number) {
    const char *const parents[SCRATCH_PARENTS] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    return is_folder(parents[number]) && strlen(parents[number]) <= 70 ? parents[number] : NULL;
}

int hec_path_scratch(struct hec_scratch *scratch, struct hec_why *why) {
    int err = HEC_ERR_NOTFOUND;
    for (int i = 0; i < SCRATCH_PARENTS && err != HEC_OK; i++)
        if (scratch_parent(i))
            err = hec_scratch_make(scratch, scratch_parent(i), why);
    return err;
}

void hec_path_sweep(void) {
    for (int i = 0; i < SCRATCH_PARENTS; i++)
        if (scratch_parent(i))
            hec_scratch_sweep(scratch_parent(i));
}

int hec_path_state(const char *name, char path[PATH_MAX], struct hec_why *why) {
    const char *given = getenv("HEC_STATE_DIR"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;
    if (given && given[0])
        length = snprintf(path, PATH_MAX, "%s/%s", given, name);
    else if (is_folder(state)) /* the specification ignores relative ones */
        length = snprintf(path, PATH_MAX, "%s/hec/%s", state, name);
    else if (is_folder(home))
        length = snprintf(path, PATH_MAX, "%s/.local/state/hec/%s", home, name);
    else
        return hec_fail(why, HEC_ERR_NOTFOUND, "no place to remember anything: HOME is not set");
    return length < PATH_MAX - 16 ? HEC_OK : hec_fail(why, HEC_ERR_LIMIT, "the state folder's name is too long");
}

/* Not in XDG_RUNTIME_DIR: it goes when the user logs out. */
bool hec_path_kept_folder(int number, char path[PATH_MAX]) {
    const char *const parents[] = {getenv("TMPDIR"), "/tmp", "/var/tmp"};
    if (number < 0 || (size_t)number >= sizeof parents / sizeof parents[0])
        return false;
    bool made = is_folder(parents[number]) &&
                snprintf(path, PATH_MAX, "%s/hec-run-XXXXXX", parents[number]) < PATH_MAX && mkdtemp(path);
    if (!made)
        path[0] = '\0';
    return true;
}
