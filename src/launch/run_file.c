#include "launch/run_file.h"

#include "base/clock.h"
#include "launch/paths.h"
#include "store/create.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a kill -9 of hec may lose is one period. */
#define PERIOD_NS HEC_NS_PER_S

struct hec_flusher {
    struct hec_writer *writer;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping;
};

/* Sleep a period; true when it is time to end. */
static bool pause_or_stop(struct hec_flusher *flusher) {
    int64_t until_ns = hec_clock_mono_ns() + PERIOD_NS;
    struct timespec until = {until_ns / HEC_NS_PER_S, until_ns % HEC_NS_PER_S};
    pthread_mutex_lock(&flusher->lock);
    int err = 0;
    while (!flusher->stopping && err == 0)
        err = pthread_cond_timedwait(&flusher->wake, &flusher->lock, &until);
    bool stopping = flusher->stopping;
    pthread_mutex_unlock(&flusher->lock);
    return stopping;
}

static void *flush_main(void *argument) {
    struct hec_flusher *flusher = argument;
    do /* what cannot be written is kept and tried again; the writer says how long that lasted */
        hec_writer_flush(flusher->writer, NULL);
    while (!pause_or_stop(flusher));
    return NULL;
}

int hec_flusher_start(struct hec_writer *writer, struct hec_flusher **out, struct hec_why *why) {
    struct hec_flusher *flusher = calloc(1, sizeof *flusher);
    if (!flusher)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the run file's thread");
    flusher->writer = writer;
    pthread_mutex_init(&flusher->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&flusher->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int errnum = pthread_create(&flusher->thread, NULL, flush_main, flusher);
    if (errnum) {
        free(flusher);
        return hec_fail(why, HEC_ERR_NOMEM, "cannot start a thread: %s", strerror(errnum));
    }
    *out = flusher;
    return HEC_OK;
}

void hec_flusher_stop(struct hec_flusher *flusher) {
    pthread_mutex_lock(&flusher->lock);
    flusher->stopping = true;
    pthread_cond_signal(&flusher->wake);
    pthread_mutex_unlock(&flusher->lock);
    pthread_join(flusher->thread, NULL);
    pthread_cond_destroy(&flusher->wake);
    pthread_mutex_destroy(&flusher->lock);
    free(flusher);
}

#define NAMES_MAX 1000 /* of a command whose runs begin at the same time */

typedef int (*make_file)(struct hec_run_file *file, const char *path, void *context, struct hec_why *why);

/* Make a file of this name in a new folder where temporary files belong. */
static int make_elsewhere(struct hec_run_file *file, make_file make, void *context, struct hec_why *why) {
    char old[PATH_MAX], folder[PATH_MAX], path[PATH_MAX];
    snprintf(old, sizeof old, "%s", file->path); /* making a file changes it */
    const char *slash = strrchr(old, '/'), *name = slash ? slash + 1 : old;
    int err = HEC_ERR_FAILED;
    for (int i = 0; err != HEC_OK && hec_path_kept_folder(i, folder); i++) {
        if (!folder[0])
            continue;
        err = snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path ? make(file, path, context, why)
                                                                                    : HEC_ERR_LIMIT;
        if (err != HEC_OK)
            rmdir(folder);
    }
    if (err == HEC_OK)
        snprintf(file->path, sizeof file->path, "%s", path);
    return err;
}

static int make_writer(struct hec_run_file *file, const char *path, void *context, struct hec_why *why) {
    return hec_writer_create(path, false, *(const int64_t *)context, &file->writer, why);
}

static int make_named(struct hec_run_file *file, char *const *command, int64_t origin_ns, struct hec_why *why) {
    int err = HEC_ERR_EXISTS;
    for (int i = 0; i < NAMES_MAX && err == HEC_ERR_EXISTS; i++) { /* another run may take the free name first */
        hec_path_run_file(command, file->path);
        err = hec_writer_create(file->path, file->overwrite, origin_ns, &file->writer, why);
    }
    return err;
}

/* Where -f replaces a run, that stays until the new one is whole: what ends hec costs neither. One that was left so is replaced. */
static int make_given(struct hec_run_file *file, const char *given, int64_t origin_ns, struct hec_why *why) {
    struct stat status;
    bool replaces = file->overwrite && lstat(given, &status) == 0;
    char there[PATH_MAX]; /* as the writer calls it */
    snprintf(file->path, sizeof file->path, "%s", given);
    snprintf(there, sizeof there, "%s%s", given[0] == '/' ? "" : "./", given);
    int err = replaces ? hec_create_check(there, true, why) : HEC_OK;
    if (err == HEC_OK && replaces &&
        snprintf(file->beside, sizeof file->beside, "%s.unfinished", given) >= (int)sizeof file->beside)
        err = hec_fail(why, HEC_ERR_LIMIT, "%.300s: the name is too long", given);
    return err < 0 ? err
                   : hec_writer_create(replaces ? file->beside : given, file->overwrite, origin_ns, &file->writer, why);
}

int hec_run_file_open(struct hec_run_file *file, const char *given, char *const *command, bool overwrite,
                      int64_t origin_ns, struct hec_why *why) {
    int err;
    file->overwrite = overwrite;
    err = given ? make_given(file, given, origin_ns, why) : make_named(file, command, origin_ns, why);
    if (err == HEC_OK || (given && err != HEC_ERR_FULL))
        return err;
    file->beside[0] = '\0';
    snprintf(file->why, sizeof file->why, "%s", why->text);
    if (make_elsewhere(file, make_writer, &origin_ns, NULL) == HEC_OK)
        return HEC_OK;
    hec_warn("%s: the run is kept in memory", file->why);
    file->in_memory = true;
    return hec_writer_create_in_memory(origin_ns, &file->writer, why);
}

static int write_image(struct hec_run_file *file, const char *path, void *context, struct hec_why *why) {
    return hec_create_write(path, *(const bool *)context, &file->image, why);
}

/* Give what is in memory a file: where it was asked for, else where temporary files belong. */
static int save_image(struct hec_run_file *file) {
    bool as_asked = file->overwrite && file->in_memory, new = false; /* what came there during the run stays */
    if (write_image(file, file->path, &as_asked, NULL) == HEC_OK)
        return HEC_OK;
    return make_elsewhere(file, write_image, &new, NULL);
}

/* The file cannot be finished. What it has and what waits goes to memory. */
static int rescue(struct hec_run_file *file, struct hec_why *why) {
    int err = hec_writer_to_memory(file->writer, why);
    return err == HEC_OK ? hec_writer_finish(file->writer, why) : err;
}

static void note(struct hec_run_file_note *note, enum hec_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void note(struct hec_run_file_note *note, enum hec_log_level level, const char *format, ...) {
    va_list list;
    va_start(list, format);
    note->level = level;
    vsnprintf(note->text, sizeof note->text, format, list);
    va_end(list);
}

/* The new run is whole: the other one goes. */
static void replace(struct hec_run_file *file, struct hec_run_file_note *to) {
    struct hec_why why = {""};
    int err = hec_create_check(file->path, true, &why);
    if (err == HEC_OK)
        err = hec_create_place(file->beside, file->path, true, &why);
    if (err < 0) {
        note(to, HEC_LOG_WARNING, "%s: the run file is %s", why.text, file->beside);
        snprintf(file->path, sizeof file->path, "%s", file->beside);
    }
}

static void note_place(struct hec_run_file_note *to, const struct hec_run_file *file, const char *asked, bool saved,
                       int64_t lost) {
    char loss[64] = "";
    if (lost > 0)
        snprintf(loss, sizeof loss, "; %lld readings are lost", (long long)lost);
    if (saved)
        note(to, HEC_LOG_ERROR, "%s%s; the run file is %s", file->why, loss, file->path);
    else if (file->in_memory)
        note(to, HEC_LOG_ERROR, "%s%s; the run is reported from memory, and kept nowhere", file->why, loss);
    else
        note(to, HEC_LOG_ERROR, "%s%s; the run is reported from memory, and %s lacks its end", file->why, loss, asked);
}

bool hec_run_file_close(struct hec_run_file *file, struct hec_run_file_note *to) {
    struct hec_why why = {""};
    int64_t lost = 0;
    *to = (struct hec_run_file_note){0};
    int err = hec_writer_finish(file->writer, &why);
    bool at_its_place = hec_writer_is_whole(file->writer) && !file->in_memory;
    if (err != HEC_OK && at_its_place) {
        note(to, HEC_LOG_WARNING, "%s: %s", file->path, why.text);
        err = HEC_OK;
    } else if (err != HEC_OK) {
        snprintf(file->why, sizeof file->why, "%.250s: %.250s", file->path, why.text);
        err = rescue(file, &why);
    }
    if (err == HEC_OK && !at_its_place)
        err = hec_writer_image(file->writer, &file->image, &why);
    hec_writer_close(file->writer, &lost, NULL);
    file->writer = NULL;
    if (err != HEC_OK) {
        note(to, HEC_LOG_ERROR, "%s; %lld readings are lost%s", file->in_memory ? why.text : file->why, (long long)lost,
             file->in_memory ? "" : ", those written before are safe (`hec report` shows them)");
        return false;
    }
    if (at_its_place && file->beside[0])
        replace(file, to);
    if (at_its_place) {
        if (file->why[0])
            note(to, HEC_LOG_WARNING, "%s: the run file is %s", file->why, file->path);
        return true;
    }
    char asked[PATH_MAX];
    snprintf(asked, sizeof asked, "%s", file->beside[0] ? file->beside : file->path);
    bool saved = save_image(file) == HEC_OK;
    note_place(to, file, asked, saved, lost);
    if (saved && file->beside[0])
        hec_create_remove(file->beside);
    if (!saved)
        file->path[0] = '\0';
    return true;
}

void hec_run_file_discard(struct hec_run_file *file) {
    if (!file->writer)
        return;
    hec_writer_close(file->writer, NULL, NULL);
    file->writer = NULL;
    if (!file->in_memory)
        hec_create_remove(file->beside[0] ? file->beside : file->path);
}

void hec_run_file_free(struct hec_run_file *file) {
    free(file->image.bytes);
    file->image = (struct hec_image){NULL, 0};
}
