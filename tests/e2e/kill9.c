/* kill -9 of a process that writes a run file, at random moments: the file opens, every value and kernel whose flush had
 * returned is there, and nothing is there that was not written. kill9 [ROUNDS [SEED]], in the current folder. */
#include "rounds.h"

#include "base/clock.h"
#include "store/reader.h"
#include "store/writer.h"

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define PATH "kill9.hec"
#define SPACING_NS (20 * HEC_NS_PER_MS)

/* What the writing process says through a pipe after each flush. */
struct progress {
    int64_t values;  /* of the series, all committed */
    int64_t kernels; /* of the timeline, all committed */
    int64_t closed;  /* hec_writer_close returned */
};

static int64_t value_at(int64_t i) {
    return i * 7919 % 700001;
}

#define KERNELS 700 /* a turn: six turns to a block */

static struct hec_activity kernel_at(int64_t i) {
    return (struct hec_activity){.kind = HEC_ACTIVITY_KERNEL,
                                 .track = 1,
                                 .name = 1,
                                 .start_ns = i * 9000 + i % 7 * 100,
                                 .end_ns = i * 9000 + 4000 + i % 11,
                                 .launch_ns = HEC_TIME_UNKNOWN,
                                 .launch_end_ns = HEC_TIME_UNKNOWN};
}

static atomic_bool stop;

static void *other_thread(void *context) {
    const struct hec_sink *s = context;
    for (int64_t i = 0; !atomic_load(&stop); i++) {
        s->sample(s->context, HEC_STEP_UNITS, 1, i * 1000000, 1);
        if (i % 16 == 0) {
            s->event(s->context, HEC_EVENT_NOTE, HEC_DEVICE_NONE, i, "a note");
            s->units(s->context, "step", 16);
            pause_us(500);
        }
    }
    return NULL;
}

/* flushes < 0: for ever */
static void write_until_killed(int pipe_fd, int64_t flushes) {
    struct hec_writer *writer;
    struct hec_why why;
    if (hec_writer_create(PATH, true, 0, &writer, &why) != HEC_OK) {
        fprintf(stderr, "%s\n", why.text);
        _exit(1);
    }
    const struct hec_sink *s = hec_writer_sink(writer);
    pthread_t thread;
    if (pthread_create(&thread, NULL, other_thread, (void *)(uintptr_t)s) != 0)
        _exit(1);
    s->trace_kernel(s->context, &(struct hec_kernel){.name = s->trace_name(s->context, "kernel")});
    s->trace_track(s->context, &(struct hec_track){.kind = HEC_TRACK_STREAM, .stream = 7});
    struct progress progress = {0};
    for (int64_t turn = 0; turn != flushes; turn++) {
        for (int i = 0; i < 50; i++, progress.values++)
            s->sample(s->context, HEC_GPU_POWER, 0, progress.values * SPACING_NS, value_at(progress.values));
        for (int i = 0; i < KERNELS; i++, progress.kernels++) {
            struct hec_activity a = kernel_at(progress.kernels);
            s->trace_activities(s->context, &a, 1);
        }
        if (hec_writer_flush(writer, &why) != HEC_OK) {
            fprintf(stderr, "%s\n", why.text);
            _exit(1);
        }
        if (write(pipe_fd, &progress, sizeof progress) != sizeof progress)
            _exit(1);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    if (hec_writer_close(writer, NULL, &why) != HEC_OK)
        _exit(1);
    progress.closed = 1;
    _exit(write(pipe_fd, &progress, sizeof progress) == sizeof progress ? 0 : 1);
}

struct check {
    int64_t count;
    bool wrong;
};

static int check_values(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    struct check *c = context;
    for (size_t i = 0; i < count; i++, c->count++)
        if (!valid[i] || value[i] != value_at(c->count) || llabs(t_ns[i] - c->count * SPACING_NS) > HEC_NS_PER_MS)
            c->wrong = true;
    return 0;
}

static int check_order(void *context, const int64_t *t_ns, const int64_t *value, const uint8_t *valid, size_t count) {
    struct check *c = context;
    for (size_t i = 0; i < count; i++, c->count++)
        if (!valid[i] || value[i] != 1 || t_ns[i] != c->count * 1000000)
            c->wrong = true;
    return 0;
}

static int check_kernels(void *context, const struct hec_activity *activities, size_t count) {
    struct check *c = context;
    for (size_t i = 0; i < count; i++, c->count++) {
        struct hec_activity a = kernel_at(c->count);
        if (memcmp(&activities[i], &a, sizeof a) != 0)
            c->wrong = true;
    }
    return 0;
}

static int ignore_event(void *context, enum hec_event_kind kind, int device, int64_t t_ns, const char *text) {
    (void)context, (void)kind, (void)device, (void)t_ns, (void)text;
    return 0;
}

/* NULL, or what is wrong */
static const char *check_file(const struct progress *progress, bool reported, struct hec_why *why) {
    struct hec_reader *reader;
    why->text[0] = '\0';
    if (access(PATH, F_OK) != 0)
        return reported ? "no file, though something was committed" : NULL; /* killed before it was created */
    if (hec_reader_open(PATH, &reader, why) != HEC_OK)
        return "it does not open";
    struct check power = {0}, steps = {0}, kernels = {0};
    const char *wrong = NULL;
    if (hec_reader_series(reader, HEC_GPU_POWER, 0, check_values, &power, why) != HEC_OK ||
        hec_reader_series(reader, HEC_STEP_UNITS, 1, check_order, &steps, why) != HEC_OK ||
        hec_reader_activities(reader, HEC_ACTIVITY_ALL, check_kernels, &kernels, why) != HEC_OK ||
        hec_reader_events(reader, ignore_event, NULL, why) != HEC_OK)
        wrong = "it cannot be read";
    else if (power.wrong || steps.wrong || kernels.wrong)
        wrong = "it holds values that were not written";
    else if (power.count < progress->values || kernels.count < progress->kernels)
        wrong = "values are missing that were committed";
    else if (reported && (power.count > progress->values + 50 || kernels.count > progress->kernels + KERNELS))
        /* before that it may be the last round's file */
        wrong = "it holds more values than were written";
    else if (progress->closed && !hec_reader_meta(reader, "store_closed"))
        wrong = "it was closed and does not say so";
    hec_reader_close(reader);
    if (!wrong && progress->closed && (access(PATH "-wal", F_OK) == 0 || access(PATH "-shm", F_OK) == 0))
        wrong = "it was closed, and more than one file is left";
    return wrong;
}

/* What is left where a kill falls between the making of the file and its naming. */
static void remove_unfinished(void) {
    glob_t found;
    if (glob(PATH ".*.new*", 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
}

static const char *one_round(struct progress *progress, struct hec_why *why) {
    int fds[2];
    if (pipe(fds) != 0)
        return strerror(errno);
    /* every third round ends in order unless it is killed first, so that kills fall into closing too */
    int64_t flushes = random_below(3) == 0 ? (int64_t)random_below(40) : -1;
    pid_t child = fork();
    if (child == 0) {
        close(fds[0]);
        write_until_killed(fds[1], flushes);
    }
    close(fds[1]);
    if (child < 0) {
        close(fds[0]);
        return strerror(errno);
    }
    /* short lives are likelier: creation and the first commits deserve as many kills as the rest */
    pause_us(random_below(2) ? random_below(20000) : random_below(300000));
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    remove_unfinished();
    struct progress next;
    bool reported = false;
    while (read(fds[0], &next, sizeof next) == sizeof next) {
        *progress = next;
        reported = true;
    }
    close(fds[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        return "the writing process failed";
    return check_file(progress, reported, why);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2654435761u + 1 : 1;
    int64_t values = 0, kernels = 0;
    int closed = 0;
    for (int i = 0; i < rounds; i++) {
        struct progress progress = {0};
        struct hec_why why = {""};
        if (i % 2) /* every other round meets what the last one left behind */
            unlink(PATH);
        const char *wrong = one_round(&progress, &why);
        if (wrong) {
            fprintf(stderr, "round %d, after %lld values: %s: %s\n", i, (long long)progress.values, wrong, why.text);
            return 1;
        }
        values += progress.values;
        kernels += progress.kernels;
        closed += progress.closed != 0;
    }
    printf("%d kills, %d after the end: every file opened; %lld committed values and %lld kernels, all there\n", rounds,
           closed, (long long)values, (long long)kernels);
    unlink(PATH);
    unlink(PATH "-wal");
    unlink(PATH "-shm");
    unlink(PATH "-journal"); /* of a file that was being made */
    return 0;
}
