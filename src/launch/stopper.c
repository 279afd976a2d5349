#include "launch/stopper.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GRACE_NS (10 * HEC_NS_PER_S)
#define PROCESSES_MAX 256 /* whose steps are counted */

struct counted {
    pid_t pid;
    int64_t steps[HEC_STEP_SOURCE_COUNT];
};

struct hec_stopper {
    struct hec_stop stop;
    pid_t command;
    int command_fd; /* of the process, so that its number's next bearer is safe; -1: an old kernel */
    int64_t start_ns;
    int64_t first_ns; /* the first step of the best source; 0: none yet */
    enum hec_step_source best;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ended, enough;
    enum hec_stopped why;
    struct counted counted[PROCESSES_MAX];
    int count;
};

int hec_stopper_create(const struct hec_stop *stop, struct hec_stopper **out, struct hec_why *why) {
    struct hec_stopper *s = *out = calloc(1, sizeof *s);
    if (!s)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory to end the command after its steps");
    s->stop = *stop;
    s->stop.grace_ns = stop->grace_ns ? stop->grace_ns : GRACE_NS;
    s->command_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return HEC_OK;
}

/* The sources in the order in which the analysis goes by them. */
static const enum hec_step_source order[] = {HEC_STEP_MARKED, HEC_STEP_OPTIMIZER, HEC_STEP_MODULE};
#define ORDER (sizeof order / sizeof order[0])

static int64_t steps_of(const struct counted *c, enum hec_step_source by) {
    for (size_t i = 0; i < ORDER; i++) {
        if (c->steps[order[i]])
            return c->steps[order[i]];
        if (order[i] == by)
            break;
    }
    return 0;
}

/* A better source than before: what came until now was no step of it. */
static void note_first(struct hec_stopper *s, enum hec_step_source source) {
    size_t was = 0, is = 0;
    while (was < ORDER && order[was] != s->best)
        was++;
    while (is < ORDER && order[is] != source)
        is++;
    if (!s->stop.working_ns || is == ORDER || (s->first_ns && is >= was))
        return;
    s->best = source;
    s->first_ns = hec_clock_mono_ns();
    pthread_cond_signal(&s->wake);
}

void hec_stopper_step(struct hec_stopper *s, pid_t pid, enum hec_step_source source) {
    int i = 0;
    pthread_mutex_lock(&s->lock);
    note_first(s, source);
    while (i < s->count && s->counted[i].pid != pid)
        i++;
    if (i == s->count && s->count < PROCESSES_MAX)
        s->counted[s->count++] = (struct counted){.pid = pid};
    if (i < s->count && (unsigned)source < HEC_STEP_SOURCE_COUNT) {
        s->counted[i].steps[source]++;
        if (!s->enough && ((s->stop.steps && steps_of(&s->counted[i], s->stop.by) >= s->stop.steps) ||
                           (s->stop.enough && atomic_load(s->stop.enough)))) {
            s->enough = true;
            pthread_cond_signal(&s->wake);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static void send_signal(const struct hec_stopper *s, int number) {
    if (s->command_fd >= 0)
        syscall(SYS_pidfd_send_signal, s->command_fd, number, NULL, 0);
    else
        kill(s->command, number);
}

/* When its time is over, by what is known now. */
static int64_t deadline(const struct hec_stopper *s) {
    int64_t after_ns = s->start_ns + s->stop.after_ns, latest_ns = s->start_ns + s->stop.latest_ns;
    if (!s->stop.after_ns)
        return INT64_MAX;
    if (!s->stop.working_ns || after_ns >= latest_ns)
        return after_ns;
    int64_t worked_ns = s->first_ns ? s->first_ns + s->stop.working_ns : latest_ns;
    return worked_ns < after_ns ? after_ns : worked_ns < latest_ns ? worked_ns : latest_ns;
}

/* Until the command has ended, there was enough (where `or_enough`), or the time has come: false then. until_ns 0: its deadline, which a
 * first step may move. Locked. */
static bool wait_until(struct hec_stopper *s, int64_t until_ns, bool or_enough) {
    while (!s->ended && !(or_enough && s->enough)) {
        int64_t by_ns = until_ns ? until_ns : deadline(s);
        struct timespec until = {by_ns / HEC_NS_PER_S, by_ns % HEC_NS_PER_S};
        if (by_ns == INT64_MAX)
            pthread_cond_wait(&s->wake, &s->lock);
        else if (pthread_cond_timedwait(&s->wake, &s->lock, &until) && by_ns >= (until_ns ? until_ns : deadline(s)))
            return s->ended || (or_enough && s->enough);
    }
    return true;
}

static void *stop_main(void *argument) {
    struct hec_stopper *s = argument;
    pthread_mutex_lock(&s->lock);
    bool in_time = wait_until(s, 0, true);
    if (!s->ended) {
        s->why = in_time ? HEC_STOPPED_STEPS : HEC_STOPPED_TIME;
        send_signal(s, SIGTERM);
        send_signal(s, SIGCONT);
        if (!wait_until(s, hec_clock_mono_ns() + s->stop.grace_ns, false))
            send_signal(s, SIGKILL);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int hec_stopper_begin(struct hec_stopper *s, pid_t command, int64_t start_ns, struct hec_why *why) {
    s->command = command;
    s->command_fd = (int)syscall(SYS_pidfd_open, command, 0);
    s->start_ns = start_ns;
    int errnum = pthread_create(&s->thread, NULL, stop_main, s);
    s->running = errnum == 0;
    return errnum ? hec_fail(why, HEC_ERR_NOMEM, "cannot start a thread: %s", strerror(errnum)) : HEC_OK;
}

enum hec_stopped hec_stopper_end(struct hec_stopper *s) {
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    return s->why;
}

void hec_stopper_free(struct hec_stopper *s) {
    if (!s)
        return;
    if (s->command_fd >= 0)
        close(s->command_fd);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
