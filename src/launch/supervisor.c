#include "launch/supervisor.h"

#include "launch/child.h"
#include "launch/descendants.h"
#include "launch/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What the mark says: the supervisor's namespace of process ids, its id there, and when it was started, as ids are used again. */
struct supervisor_id {
    uint64_t namespace;
    pid_t pid;
    unsigned long long start;
};

static struct {
    char mark[96];
    struct hec_layer_options layers;
    const char *const *folders;
    int alive; /* pipe: ends with the supervisor */
} supervisor = {.alive = -1};

const char *hec_supervisor_mark(void) {
    return supervisor.mark[0] ? supervisor.mark : NULL;
}

bool hec_supervisor_sweep(void) {
    return hec_descendants_kill(true);
}

static uint64_t own_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/* Of a supervisor that is gone. */
static bool is_orphan(const char *mark) {
    struct supervisor_id id = {0};
    return sscanf(mark, "%" SCNu64 ":%d:%llu", &id.namespace, &id.pid, &id.start) == 3 &&
           id.namespace == own_namespace() && hec_process_start(id.pid) != id.start;
}

static void clean(void) {
    hec_marked_kill(HEC_SUPERVISOR_ENV, is_orphan);
    hec_path_sweep();
    hec_layer_sweep(&supervisor.layers);
    for (size_t i = 0; supervisor.folders && supervisor.folders[i]; i++)
        hec_scratch_sweep(supervisor.folders[i]);
}

/* Held for good by the thread that finds the supervisor gone: nobody else starts a process any more, or ends this one. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool ends;

static void hold(void) {
    if (!ends)
        pthread_mutex_lock(&ending);
}

void hec_supervisor_exit(int signal, int status) {
    hold();
    hec_child_end_as(signal, status);
}

static void let_go(void) {
    if (!ends)
        pthread_mutex_unlock(&ending);
}

static void renew(void) {
    ending = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* What the worker holds locked is free only when it has ended: a process of its own waits for that. */
static void clean_after(pid_t worker) {
    if (fork() != 0)
        return;
    close_range(3, ~0U, 0);
    while (getppid() == worker)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    clean();
    _exit(0);
}

static void *watch(void *context) {
    char byte;
    (void)context;
    while (read(supervisor.alive, &byte, 1) < 0 && errno == EINTR) {
    }
    hold();
    ends = true;
    hec_descendants_kill(false); /* while daemons among them still come back to this process */
    clean_after(getpid());
    _exit(128 + SIGKILL);
}

/* It takes no signal, so that those of the process go where they did. */
static int start_watching(void) {
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    int errnum = pthread_atfork(hold, let_go, renew);
    if (errnum || atexit(hold) != 0)
        return errnum ? errnum : ENOMEM;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(&thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0)
        pthread_detach(thread);
    return errnum;
}

int hec_supervisor_start(const struct hec_layer_options *layers, const char *const *folders, struct hec_why *why) {
    struct hec_child worker = {0};
    int alive[2];
    supervisor.layers = *layers;
    supervisor.folders = folders;
    clean();
    snprintf(supervisor.mark, sizeof supervisor.mark, "%" PRIu64 ":%d:%llu", own_namespace(), (int)getpid(),
             hec_process_start(getpid()));
    if (pipe2(alive, O_CLOEXEC) != 0)
        return hec_fail(why, hec_err_from_errno(errno), "cannot start a supervisor: %s", strerror(errno));
    fflush(NULL);
    hec_child_prepare(&worker);
    hec_child_adopt();
    int early = hec_child_held(); /* it came before there was a worker to get it */
    worker.pid = fork();
    if (worker.pid > 0) {
        if (early)
            kill(worker.pid, early);
        close(alive[0]);
        hec_child_wait(&worker, false);
        hec_descendants_kill(true);
        clean();
        hec_child_end_as(worker.signal, worker.exit_code);
    }
    int errnum = worker.pid < 0 ? errno : 0;
    hec_child_release(&worker);
    close(alive[1]);
    if (errnum == 0) {
        supervisor.alive = alive[0];
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        errnum = start_watching();
    } else
        close(alive[0]);
    return errnum ? hec_fail(why, hec_err_from_errno(errnum), "cannot start a supervisor: %s", strerror(errnum))
                  : HEC_OK;
}
