#include "cli/output.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/kept_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Progress on a terminal, for what takes longer than a second; silent anywhere else. */

#define QUIET_NS HEC_NS_PER_S
#define EVERY_NS (100 * HEC_NS_PER_MS)
#define WIDTH 79 /* one line of any terminal */

void hec_progress_begin(struct hec_progress *progress) {
    const char *term = getenv("TERM");
    *progress = (struct hec_progress){
        .begin_ns = hec_clock_mono_ns(),
        .terminal = isatty(STDERR_FILENO) == 1 && term && strcmp(term, "dumb") != 0,
    };
}

void hec_progress_show(struct hec_progress *progress, const char *what, double share) {
    if (!progress->terminal)
        return;
    int64_t now_ns = hec_clock_mono_ns();
    if (now_ns - progress->begin_ns < QUIET_NS || now_ns - progress->shown_ns < EVERY_NS)
        return;
    progress->shown_ns = now_ns;
    progress->shown = true;
    if (isnan(share))
        fprintf(stderr, "\r\033[K%.*s", WIDTH, what);
    else
        fprintf(stderr, "\r\033[K%3.0f %%  %.*s", 100 * fmin(fmax(share, 0), 1), WIDTH - 8, what);
    fflush(stderr);
}

void hec_progress_now(struct hec_progress *progress, const char *what) {
    progress->begin_ns = progress->shown_ns = INT64_MIN / 2;
    hec_progress_show(progress, what, NAN);
}

void hec_progress_end(struct hec_progress *progress) {
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}

#define LINKS_MAX 40 /* as many as the kernel follows */

/* The file that an existing path leads to, in the kernel's way: it refuses links that others left in a shared folder.
 * Devices, pipes and what /proc holds keep their names. */
static int follow(char path[PATH_MAX]) {
    struct stat at, there;
    char self[40], real[PATH_MAX];
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, real, sizeof real - 1);
    bool same = length > 0 && fstat(fd, &at) == 0 && S_ISREG(at.st_mode);
    close(fd);
    if (!same)
        return 0;
    real[length] = '\0';
    if (stat(real, &there) == 0 && there.st_dev == at.st_dev && there.st_ino == at.st_ino)
        memcpy(path, real, (size_t)length + 1);
    return 0;
}

/* A link to what does not exist becomes the name that it holds. */
static int read_link(char path[PATH_MAX]) {
    char to[PATH_MAX], joined[PATH_MAX];
    ssize_t length = readlink(path, to, sizeof to - 1);
    if (length < 0)
        return errno;
    to[length] = '\0';
    const char *slash = strrchr(path, '/');
    int folder = slash && to[0] != '/' ? (int)(slash - path) + 1 : 0;
    if (snprintf(joined, sizeof joined, "%.*s%s", folder, path, to) >= (int)sizeof joined)
        return ENAMETOOLONG;
    memcpy(path, joined, strlen(joined) + 1);
    return 0;
}

static int resolve(char path[PATH_MAX]) {
    struct stat status;
    for (int i = 0; i < LINKS_MAX; i++) {
        if (lstat(path, &status) != 0)
            return errno == ENOENT ? 0 : errno;
        if (!S_ISLNK(status.st_mode))
            return 0;
        int errnum = follow(path);
        if (errnum != ENOENT)
            return errnum;
        if ((errnum = read_link(path)) != 0)
            return errnum;
    }
    return ELOOP;
}

/* With its slash; "." where the path has none. */
static char *folder_of(const char *path, char folder[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return folder;
}

/* An error about a folder that does not exist names the path as given, not a file that is made beside it. */
static int check_folder(const char *path, int rights) {
    char folder[PATH_MAX];
    return access(folder_of(path, folder), rights) == 0 ? 0 : errno;
}

/* Where a name leads, and whether a file can be there. */
static int find(const char *given, int rights, char path[PATH_MAX], struct hec_why *why) {
    struct stat status;
    if (snprintf(path, PATH_MAX, "%s", given) >= PATH_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s...: the path is too long", given);
    int errnum = resolve(path);
    if (errnum == 0)
        errnum = check_folder(path, rights);
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", given, strerror(errnum));
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is a directory", given);
    return HEC_OK;
}

int hec_output_path(const struct hec_args *args, bool stream, char path[PATH_MAX], struct hec_why *why) {
    const char *given = hec_args_value(args, HEC_OPT_OUTPUT);
    path[0] = '\0';
    if (!given)
        return HEC_OK;
    if (!given[0])
        return hec_fail(why, HEC_ERR_USAGE, "--output needs the name of a file");
    if (strcmp(given, "-") == 0 && !stream)
        return hec_fail(why, HEC_ERR_USAGE,
                        "a run file cannot be written to standard output; -o needs the name of a file");
    if (strcmp(given, "-") == 0) {
        snprintf(path, PATH_MAX, "-");
        return HEC_OK;
    }
    return find(given, X_OK, path, why);
}

int hec_output_new(const struct hec_args *args, const char *path, struct hec_why *why) {
    struct stat status;
    bool there = stat(path, &status) == 0;
    if (there && !S_ISREG(status.st_mode))
        return access(path, W_OK) == 0
                   ? HEC_OK
                   : hec_fail(why, hec_err_from_errno(errno), "cannot write %.300s: %s", path, strerror(errno));
    int errnum = check_folder(path, W_OK | X_OK); /* a plain file is made beside it, and takes its name */
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", path, strerror(errnum));
    if (there && !hec_args_has(args, HEC_OPT_FORCE))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s exists already; -f overwrites it", path);
    return HEC_OK;
}

/* Also where neither is there yet. */
static bool same_file(const char *one, const char *other) {
    char folder[PATH_MAX];
    const char *names[] = {strrchr(one, '/'), strrchr(other, '/')};
    struct stat at[2];
    return strcmp(names[0] ? names[0] + 1 : one, names[1] ? names[1] + 1 : other) == 0 &&
           stat(folder_of(one, folder), &at[0]) == 0 && stat(folder_of(other, folder), &at[1]) == 0 &&
           at[0].st_dev == at[1].st_dev && at[0].st_ino == at[1].st_ino;
}

/* Where a file goes that is kept beside the receipt. what: "page". */
static int find_another(const struct hec_args *args, const char *what, const char *given, const char *receipt,
                        char path[PATH_MAX], struct hec_why *why) {
    int err = find(given, W_OK | X_OK, path, why);
    if (err < 0)
        return err;
    if (same_file(path, receipt))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is the receipt; the %s needs a file of its own", given, what);
    if (!hec_args_has(args, HEC_OPT_FORCE) && access(path, F_OK) == 0)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s exists already; -f overwrites it", given);
    return HEC_OK;
}

int hec_output_first_run(const struct hec_args *args, const char *receipt, char path[PATH_MAX], struct hec_why *why) {
    const char *given = hec_args_value(args, HEC_OPT_FIRST_RUN);
    path[0] = '\0';
    if (!given)
        return HEC_OK;
    if (!given[0] || strcmp(given, "-") == 0)
        return hec_fail(why, HEC_ERR_USAGE, "--first-run needs the name of a file");
    return find_another(args, "first run", given, receipt, path, why);
}

int hec_output_page(const struct hec_args *args, const char *receipt, char path[PATH_MAX], struct hec_why *why) {
    const char *given = hec_args_value(args, HEC_OPT_PAGE);
    char beside[PATH_MAX + 8];
    path[0] = '\0';
    if (!hec_args_has(args, HEC_OPT_PAGE))
        return HEC_OK;
    if (given && (!given[0] || strcmp(given, "-") == 0))
        return hec_fail(why, HEC_ERR_USAGE, "--html=FILE needs the name of a file");
    size_t length = strlen(receipt);
    bool json = length > 5 && strcmp(receipt + length - 5, ".json") == 0;
    snprintf(beside, sizeof beside, "%.*s.html", (int)(json ? length - 5 : length), receipt);
    return find_another(args, "page", given ? given : beside, receipt, path, why);
}

/* What is read is not replaced by what is said of it. */
static int check_sources(const struct hec_args *args, const char *path, struct hec_why *why) {
    struct stat there, source;
    if (!path[0] || stat(path, &there) != 0 || !S_ISREG(there.st_mode))
        return HEC_OK;
    for (int i = 0; i < args->rest_count; i++)
        if (stat(args->rest[i], &source) == 0 && source.st_dev == there.st_dev && source.st_ino == there.st_ino)
            return hec_fail(why, HEC_ERR_USAGE, "%.300s is what is read, so it is not overwritten", path);
    return HEC_OK;
}

int hec_output_check(const struct hec_args *args) {
    char path[PATH_MAX];
    struct hec_why why = {""};
    int err = hec_output_path(args, true, path, &why);
    if (err == HEC_OK)
        err = check_sources(args, path, &why);
    if (err < 0) {
        hec_error("%s", why.text);
    } else if (hec_args_has(args, HEC_OPT_HTML) && !path[0] && isatty(STDOUT_FILENO) == 1) {
        hec_error("a page is not for a terminal; -o FILE writes it to FILE, and `> FILE` does too");
        err = HEC_ERR_USAGE;
    }
    return err;
}

FILE *hec_output_open(const char *path, int flags) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags, 0666);
    int how = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    FILE *out = how >= 0 && fcntl(fd, F_SETFL, how & ~O_NONBLOCK) == 0 ? fdopen(fd, "w") : NULL;
    if (!out && fd >= 0)
        close(fd);
    return out;
}

/* What is no plain file is not replaced. */
static int write_into(const char *path, const struct hec_buf *text, struct hec_why *why) {
    FILE *out = hec_output_open(path, 0);
    bool done = out && fwrite(hec_buf_text(text), 1, text->length, out) == text->length;
    int errnum = errno;
    if (out && fclose(out) != 0 && done) {
        errnum = errno;
        done = false;
    }
    return done ? HEC_OK : hec_fail(why, hec_err_from_errno(errnum), "cannot write %s: %s", path, strerror(errnum));
}

int hec_output_write(const char *path, const struct hec_buf *text, struct hec_why *why) {
    struct stat there;
    return stat(path, &there) == 0 && !S_ISREG(there.st_mode)
               ? write_into(path, text, why)
               : hec_kept_file_write(path, hec_buf_text(text), true, why);
}

int hec_output_print(const struct hec_args *args, const struct hec_buf *text) {
    char path[PATH_MAX];
    struct hec_why why = {""};
    int err = hec_buf_error(text) ? hec_buf_error(text) : hec_output_path(args, true, path, &why);
    if (err == HEC_OK && (!path[0] || strcmp(path, "-") == 0))
        return hec_print(text);
    if (err == HEC_OK)
        err = hec_output_write(path, text, &why);
    if (err < 0)
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
    return err;
}
