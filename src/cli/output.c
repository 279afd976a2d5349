#include "cli/output.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    bool same = length > 0 && fstat(fd, &at) == 0;
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
        if (status.st_uid != geteuid() && status.st_uid != 0) /* the kernel sees to that in some folders only */
            return EACCES;
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

static int exists(const char *path, struct hec_why *why) {
    return hec_fail(why, HEC_ERR_EXISTS, "%.300s exists already; -f overwrites it", path);
}

/* Where a name leads, and whether a file can be there. Without force through no link. */
static int find(const struct hec_args *args, const char *given, int rights, char path[PATH_MAX], struct hec_why *why) {
    struct stat status;
    if (snprintf(path, PATH_MAX, "%s", given) >= PATH_MAX)
        return hec_fail(why, HEC_ERR_USAGE, "%.300s...: the path is too long", given);
    if (hec_output_own(path) >= 0)
        return HEC_OK;
    bool link = lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
    int errnum = resolve(path);
    if (errnum == 0)
        errnum = check_folder(path, rights);
    if (errnum)
        return hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", given, strerror(errnum));
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is a directory", given);
    if (link && !hec_args_has(args, HEC_OPT_FORCE))
        return hec_fail(why, HEC_ERR_EXISTS, "%.300s exists already, as a link; -f writes where it leads", given);
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
    return find(args, given, X_OK, path, why);
}

/* A descriptor that hec was given, and may write to. */
static int check_own(const char *path, struct hec_why *why) {
    int flags = fcntl(hec_output_own(path), F_GETFL);
    int errnum = flags < 0 ? errno : (flags & O_ACCMODE) == O_RDONLY ? EBADF : 0;
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", path, strerror(errnum))
                  : HEC_OK;
}

/* What may be at a path that is written: nothing, a terminal or what takes all (/dev/null), with force a regular file, or a pipe of the
 * user's own. */
static int check_place(const char *path, bool force, struct hec_why *why) {
    struct stat there;
    if (hec_output_own(path) >= 0)
        return check_own(path, why);
    if (lstat(path, &there) != 0)
        return errno == ENOENT
                   ? HEC_OK
                   : hec_fail(why, hec_err_from_errno(errno), "cannot create %.300s: %s", path, strerror(errno));
    if (S_ISDIR(there.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is a directory", path);
    if (hec_output_is_sink(&there))
        return HEC_OK;
    if (!force && !S_ISREG(there.st_mode))
        return hec_fail(why, HEC_ERR_EXISTS, "%.300s exists already, and is no plain file; -f writes into it", path);
    if (!force)
        return exists(path, why);
    if (S_ISREG(there.st_mode))
        return HEC_OK;
    if (!S_ISFIFO(there.st_mode))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is neither a plain file nor a pipe", path);
    if (there.st_uid != geteuid())
        return hec_fail(why, HEC_ERR_PERMISSION, "%.300s is a pipe of another user, and is not written into", path);
    return HEC_OK;
}

static bool is_replaced(const char *path) {
    struct stat there;
    return hec_output_own(path) < 0 && (lstat(path, &there) != 0 || S_ISREG(there.st_mode));
}

/* By making the file that is to take its name, and dropping it: rights alone do not tell (a file system of the kernel's, a full disk). */
static int check_beside(const char *path, struct hec_why *why) {
    struct hec_new_file file;
    int errnum = check_folder(path, W_OK | X_OK);
    if (!errnum && hec_new_file_open(&file, path, true) < 0)
        errnum = errno;
    else if (!errnum)
        hec_new_file_drop(&file);
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", path, strerror(errnum))
                  : HEC_OK;
}

static int check_new(const char *path, bool force, struct hec_why *why) {
    int err = check_place(path, force, why);
    if (err < 0 || hec_output_own(path) >= 0)
        return err;
    if (is_replaced(path))
        return check_beside(path, why);
    return access(path, W_OK) == 0
               ? HEC_OK
               : hec_fail(why, hec_err_from_errno(errno), "cannot write %.300s: %s", path, strerror(errno));
}

int hec_output_new(const struct hec_args *args, const char *path, struct hec_why *why) {
    return check_new(path, hec_args_has(args, HEC_OPT_FORCE), why);
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
    int err = find(args, given, W_OK | X_OK, path, why);
    if (err < 0)
        return err;
    if (same_file(path, receipt))
        return hec_fail(why, HEC_ERR_USAGE, "%.300s is the receipt; the %s needs a file of its own", given, what);
    return hec_output_new(args, path, why);
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

int hec_output_summary(const struct hec_args *args, char path[PATH_MAX], bool *grows, struct hec_why *why) {
    const char *given = hec_args_value(args, HEC_OPT_SUMMARY), *of_step = getenv("GITHUB_STEP_SUMMARY");
    path[0] = '\0';
    *grows = false;
    if (!given)
        return HEC_OK;
    if (!given[0])
        return hec_fail(why, HEC_ERR_USAGE, "--md needs the name of a file");
    *grows = of_step && strcmp(given, of_step) == 0;
    if (*grows && snprintf(path, PATH_MAX, "%s", given) < PATH_MAX)
        return HEC_OK;
    int err = find(args, given, W_OK | X_OK, path, why);
    return err < 0 ? err : hec_output_new(args, path, why);
}

/* What is read is not replaced by what is said of it. */
static int check_sources(const struct hec_args *args, const char *path, struct hec_why *why) {
    struct stat there, source;
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode))
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
    if (err == HEC_OK && path[0] && strcmp(path, "-") != 0 && (err = check_sources(args, path, &why)) == HEC_OK)
        err = hec_output_new(args, path, &why);
    if (err < 0) {
        hec_error("%s", why.text);
    } else if (hec_args_has(args, HEC_OPT_HTML) && !path[0] && isatty(STDOUT_FILENO) == 1) {
        hec_error("a page is not for a terminal; -o FILE writes it to FILE, and `> FILE` does too");
        err = HEC_ERR_USAGE;
    }
    return err;
}

/* ---- the file ---- */

/* A descriptor of hec's own goes on where it is. */
static int open_into(const char *path) {
    int own = hec_output_own(path), fd = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 3) : hec_output_there(path, 0);
    int how = own >= 0 || fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (how < 0 || fcntl(fd, F_SETFL, how & ~O_NONBLOCK) == 0)
        return fd;
    close(fd);
    return -1;
}

static int fail_open(struct hec_output *output, struct hec_why *why) {
    int errnum = errno;
    hec_new_file_drop(&output->new);
    return hec_fail(why, hec_err_from_errno(errnum), "cannot create %.300s: %s", output->path, strerror(errnum));
}

int hec_output_open(struct hec_output *output, const char *path, bool force, struct hec_why *why) {
    *output = (struct hec_output){.path = path, .force = force, .new.fd = -1};
    int err = check_place(path, force, why), fd;
    if (err < 0)
        return err;
    if (is_replaced(path))
        fd = hec_new_file_open(&output->new, path, true) == 0 ? fcntl(output->new.fd, F_DUPFD_CLOEXEC, 3) : -1;
    else
        fd = open_into(path);
    output->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!output->file && fd >= 0)
        close(fd);
    return output->file ? HEC_OK : fail_open(output, why);
}

int hec_output_close(struct hec_output *output, bool whole, struct hec_why *why) {
    int errnum = whole && ferror(output->file) ? EIO : 0;
    if (fclose(output->file) != 0 && !errnum)
        errnum = errno;
    if (whole && !errnum && output->new.fd >= 0 && hec_new_file_place(&output->new, output->force) != 0)
        errnum = errno;
    hec_new_file_drop(&output->new);
    if (!whole || !errnum)
        return HEC_OK;
    return errnum == EEXIST
               ? exists(output->path, why)
               : hec_fail(why, hec_err_from_errno(errnum), "cannot write %.300s: %s", output->path, strerror(errnum));
}

static int put(FILE *file, const struct hec_buf *text) {
    bool ended = text->length && hec_buf_text(text)[text->length - 1] == '\n';
    return fwrite(hec_buf_text(text), 1, text->length, file) == text->length && (ended || fputc('\n', file) != EOF) &&
                   fflush(file) == 0
               ? 0
               : errno;
}

int hec_output_write(const char *path, const struct hec_buf *text, bool force, struct hec_why *why) {
    struct hec_output output;
    int err = hec_output_open(&output, path, force, why);
    if (err < 0)
        return err;
    int errnum = put(output.file, text);
    err = hec_output_close(&output, errnum == 0, why);
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot write %.300s: %s", path, strerror(errnum)) : err;
}

/* Of whichever user it is: in a container of a CI job it is the runner's. */
int hec_output_append(const char *path, const struct hec_buf *text, struct hec_why *why) {
    struct stat there;
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW, errnum;
    int fd = open(path, flags, 0666);
    bool plain = fd >= 0 && fstat(fd, &there) == 0 && S_ISREG(there.st_mode);
    FILE *file = plain ? fdopen(fd, "a") : NULL;
    errnum = file ? put(file, text) : fd >= 0 && !plain ? EINVAL : errno;
    if (!file && fd >= 0)
        close(fd);
    if (file && fclose(file) != 0 && !errnum)
        errnum = errno;
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot write %.300s: %s", path, strerror(errnum))
                  : HEC_OK;
}

int hec_output_print(const struct hec_args *args, const struct hec_buf *text) {
    char path[PATH_MAX];
    struct hec_why why = {""};
    int err = hec_buf_error(text) ? hec_buf_error(text) : hec_output_path(args, true, path, &why);
    if (err == HEC_OK && (!path[0] || strcmp(path, "-") == 0))
        return hec_print(text);
    if (err == HEC_OK)
        err = hec_output_write(path, text, hec_args_has(args, HEC_OPT_FORCE), &why);
    if (err < 0)
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
    return err;
}
