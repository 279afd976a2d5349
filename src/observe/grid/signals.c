#include "observe/grid/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool same(const struct hec_signals_seen *a, const struct hec_signals_seen *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* The whole of a plain file, of the size that it had when it was opened. *bytes is the caller's to free, also after an error. */
static int slurp(int fd, off_t size, char **bytes, size_t *length) {
    *length = 0;
    *bytes = malloc((size_t)size + 1);
    if (!*bytes)
        return HEC_ERR_NOMEM;
    while (*length < (size_t)size) {
        ssize_t got = read(fd, *bytes + *length, (size_t)size - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return hec_err_from_errno(errno);
        if (got == 0)
            break;
        *length += (size_t)got;
    }
    return HEC_OK;
}

static int parse_file(int fd, off_t size, const char *path, bool carbon, struct hec_signal *out, struct hec_why *why) {
    struct hec_why own = {""};
    char *bytes;
    size_t length;
    int err = slurp(fd, size, &bytes, &length);
    if (err < 0)
        snprintf(own.text, sizeof own.text, "%s", hec_err_text(err));
    else
        err = hec_signal_parse(bytes, length, carbon, out, &own);
    free(bytes);
    return err < 0 ? hec_fail(why, err, "%.250s: %.250s", path, own.text) : HEC_OK;
}

/* 1: it is another file than the one that was seen, and was read into *out; 0: it is the same. */
static int read_file(struct hec_signals_file *file, bool carbon, struct hec_signal *out, struct hec_why *why) {
    struct stat status;
    struct hec_signals_seen now = {0};
    int fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), errnum = errno;
    if (fd >= 0 && fstat(fd, &status) == 0)
        now = (struct hec_signals_seen){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
    bool is_same = same(&now, &file->seen);
    file->seen = now;
    int err = HEC_OK;
    if (fd < 0)
        err = hec_fail(why, hec_err_from_errno(errnum), "%.300s: %s", file->path, strerror(errnum));
    else if (!is_same && !S_ISREG(status.st_mode))
        err = hec_fail(why, HEC_ERR_CORRUPT, "%.300s is no plain file", file->path);
    else if (!is_same && status.st_size > (off_t)HEC_SIGNAL_FILE_MOST)
        err = hec_fail(why, HEC_ERR_LIMIT, "%.300s is larger than 64 MiB", file->path);
    else if (!is_same)
        err = parse_file(fd, status.st_size, file->path, carbon, out, why);
    if (fd >= 0)
        close(fd);
    return is_same ? 0 : err < 0 ? err : 1;
}

/* With the first of the others. */
static int check_alike(const struct hec_signals *signals, const struct hec_signals_file *file,
                       const struct hec_signal *read, struct hec_why *why) {
    for (int i = 0; i < signals->count; i++) {
        const struct hec_signals_file *other = &signals->files[i];
        if (other == file)
            continue;
        if (other->signal.kind != read->kind)
            return hec_fail(
                why, HEC_ERR_USAGE,
                "%.180s has %s carbon and %.180s has %s carbon: they answer other questions, and are not to be mixed",
                file->path, hec_signal_kind_name(read->kind), other->path, hec_signal_kind_name(other->signal.kind));
        if (strcmp(other->signal.source, read->source) != 0)
            return hec_fail(why, HEC_ERR_USAGE, "%.140s is of %s and %.140s of %s: they are not to be mixed",
                            file->path, read->source, other->path, other->signal.source);
    }
    return HEC_OK;
}

static int renew(struct hec_signals *signals, struct hec_signals_file *file, struct hec_why *why) {
    struct hec_signal read = {0};
    int changed = read_file(file, signals->carbon, &read, why);
    if (changed <= 0)
        return changed;
    int err = check_alike(signals, file, &read, why);
    if (err < 0) {
        hec_signal_free(&read);
        return err;
    }
    hec_signal_free(&file->signal);
    file->signal = read;
    return 1;
}

int hec_signals_add(struct hec_signals *signals, const char *path, struct hec_why *why) {
    if (signals->count == HEC_SIGNALS_MOST)
        return hec_fail(why, HEC_ERR_USAGE, "more than %d files", HEC_SIGNALS_MOST);
    struct hec_signals_file *file = &signals->files[signals->count];
    *file = (struct hec_signals_file){.path = path, .seen = {.size = -1}};
    int err = renew(signals, file, why);
    if (err < 0)
        return err;
    signals->count++;
    return HEC_OK;
}

void hec_signals_free(struct hec_signals *signals) {
    for (int i = 0; i < signals->count; i++)
        hec_signal_free(&signals->files[i].signal);
    signals->count = 0;
}

int hec_signals_renew(struct hec_signals *signals, struct hec_why *why) {
    int changed = 0, first = HEC_OK;
    for (int i = 0; i < signals->count; i++) {
        int result = renew(signals, &signals->files[i], first < 0 ? NULL : why);
        if (result < 0 && first == HEC_OK)
            first = result;
        changed += result > 0;
    }
    return first < 0 ? first : changed;
}

double hec_signals_at(const struct hec_signals *signals, int64_t t_s) {
    for (int i = signals->count; i-- > 0;) {
        const struct hec_signal_value *value = hec_signal_at(&signals->files[i].signal, t_s);
        if (value)
            return value->value;
    }
    return NAN;
}

int64_t hec_signals_next(const struct hec_signals *signals, int64_t t_s) {
    int64_t first = INT64_MAX;
    for (int i = 0; i < signals->count; i++) {
        int64_t next = hec_signal_next(&signals->files[i].signal, t_s);
        if (next < first)
            first = next;
    }
    return first;
}

double hec_signals_mean(const struct hec_signals *signals, double from_s, double until_s) {
    double sum = 0;
    if (!(until_s > from_s))
        return hec_signals_at(signals, (int64_t)floor(from_s));
    for (double at = from_s; at < until_s;) {
        int64_t t_s = (int64_t)floor(at), next_s = hec_signals_next(signals, t_s);
        double value = hec_signals_at(signals, t_s),
               end = next_s == INT64_MAX ? until_s : fmin((double)next_s, until_s);
        if (isnan(value))
            return NAN;
        sum += value * (end - at);
        at = end;
    }
    return sum / (until_s - from_s);
}

const char *hec_signals_label(const struct hec_signals *signals, char out[128]) {
    const struct hec_signal *first = &signals->files[0].signal;
    out[0] = '\0';
    if (signals->count && signals->carbon)
        snprintf(out, 128, "%s, %s", hec_signal_kind_name(first->kind), first->source);
    return out;
}
