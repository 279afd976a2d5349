/* kill -9 of an experiment at random moments: of its keeper, of its worker, of both at once. No process of a trial is left, no
 * mount, no scratch folder, and the user's folders are bit for bit as before; after both were killed: when the next one
 * has started. trials9 [ROUNDS [SEED [UID]]], in the current folder, which is removed from nobody. */
#include "base/clock.h"
#include "launch/keeper.h"
#include "launch/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MARKER "TRIALS9_ROUND"
#define PATIENCE_NS (20 * HEC_NS_PER_S)

static uint64_t state = 1;
static char base[512];

static uint64_t random_below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void pause_us(uint64_t us) {
    nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL);
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    int status = system(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* What a trial does to the folders, and what it leaves running: a child, a daemon of its own session that has lost its parent, and one
 * that starts another all the time. */
static const char trial[] =
    "sleep 1000 & (setsid sh -c 'while :; do echo x >>$HOME/log; sleep 0.003; done' >/dev/null 2>&1 &)\n"
    "(setsid sh -c 'f() { (sleep 0.002; f) & }; f' >/dev/null 2>&1 &)\n"
    "echo new >model; mv model moved; ln -s moved link; chmod 000 kept; chmod 755 kept; rm -rf kept; mkdir kept\n"
    "mkdir -p deep/er/still; chmod 000 deep/er; echo t >$TMPDIR/t; echo t >/dev/shm/trials9-$$; touch -d 2001-01-01 $HOME/other\n"
    "rm -rf $HOME/.cache; mkdir -p $HOME/.cache/new; cp /bin/sh $HOME/.cache/new\n";

static int experiment(int trials) {
    static char scratch[600]; /* as long as the process */
    char worker[600];
    snprintf(scratch, sizeof scratch, "%s/scratch", base);
    snprintf(worker, sizeof worker, "%s/state/worker", base);
    struct hec_layer_options layers = {.scratch_parent = scratch};
    struct hec_layer *layer;
    struct hec_why why;
    if (hec_keeper_start(&layers, NULL, &why) < 0)
        return fprintf(stderr, "%s\n", why.text), 3;
    FILE *file = fopen(worker, "w");
    if (!file)
        return 3;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    if (trials == 0)
        return 0;
    if (hec_layer_open(&layers, &layer, &why) < 0)
        return fprintf(stderr, "%s\n", why.text), 77;
    for (int i = 0; i < trials; i++) {
        char script[4096], output[600];
        snprintf(script, sizeof script, "%ssleep 0.%02d\n", trial, i % 5);
        snprintf(output, sizeof output, "%s/state/trial.hec", base);
        char *command[] = {"sh", "-ec", script, NULL};
        struct hec_session_options options = hec_session_defaults();
        struct hec_session *session;
        struct hec_session_result result;
        int status;
        options.command = command;
        options.output = output;
        options.simulated = "h200";
        options.overwrite = options.tied = true;
        options.trace = HEC_TRACE_OFF;
        options.layer = layer;
        if (hec_session_start(&options, &session, &status, &why) < 0)
            return fprintf(stderr, "%s\n", why.text), 4;
        hec_session_wait(session, &result);
        hec_session_close(session);
        if (result.exit_status != 0)
            return fprintf(stderr, "a trial ended with %d\n", result.exit_status), 5;
        if (!hec_keeper_sweep() || hec_layer_renew(layer, &why) < 0)
            return fprintf(stderr, "%s\n", why.text), 6;
    }
    hec_layer_close(layer);
    return 0;
}

static void fingerprint(char text[256]) {
    char command[2048];
    snprintf(command, sizeof command,
             "cd '%s' && { find home data tmp -printf '%%p %%y %%m %%U %%G %%T@ %%s %%l\\n' | sort; find home data tmp "
             "-type f -exec sha256sum {} + | sort; } | sha256sum",
             base);
    FILE *pipe = popen(command, "r");
    if (!pipe || !fgets(text, 256, pipe))
        snprintf(text, 256, "none");
    if (pipe)
        pclose(pipe);
}

/* Processes of this round, by their environment. */
static int processes(const char *marker) {
    static char text[1 << 20];
    DIR *folder = opendir("/proc");
    int found = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        int fd = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
        ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text);
        if (fd >= 0)
            close(fd);
        found += length > 0 && memmem(text, (size_t)length, marker, strlen(marker)) != NULL;
    }
    if (folder)
        closedir(folder);
    return found;
}

static pid_t start(const char *self, const char *marker, uid_t user, int trials) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    char home[600], text[16], number[16];
    snprintf(home, sizeof home, "%s/home", base);
    setenv("HOME", home, 1);
    snprintf(home, sizeof home, "%s/tmp", base);
    setenv("TMPDIR", home, 1);
    snprintf(home, sizeof home, "%s/run", base);
    setenv("XDG_RUNTIME_DIR", home, 1);
    snprintf(text, sizeof text, "%d", trials);
    snprintf(number, sizeof number, "%u", user);
    putenv(strdup(marker));
    if (user && (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0))
        _exit(101);
    if (chdir("home/project") != 0)
        _exit(102);
    execl(self, self, "--experiment", base, text, NULL);
    _exit(103);
}

static pid_t worker_of(pid_t keeper) {
    char path[600];
    int worker = 0;
    snprintf(path, sizeof path, "%s/state/worker", base);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &worker) != 1)
        worker = 0;
    if (file)
        fclose(file);
    return worker > 0 && kill(keeper, 0) == 0 ? worker : 0;
}

/* What is left of a round, as a sentence; "": nothing. */
static const char *left(const char *marker) {
    if (processes(marker) > 0)
        return "a process is left";
    if (shell("test -z \"$(ls -A '%s/scratch' '%s/run' | grep ^hec)\"", base, base) != 0)
        return "a scratch folder is left";
    if (shell("! grep -qF ' %s/' /proc/self/mountinfo && ! ls /dev/shm/trials9-* >/dev/null 2>&1", base) != 0)
        return "a mount is left, or a file in /dev/shm";
    return "";
}

static const char *wait_until_clean(const char *marker) {
    int64_t until_ns = hec_clock_mono_ns() + PATIENCE_NS;
    const char *what;
    while (*(what = left(marker)) && hec_clock_mono_ns() < until_ns)
        pause_us(5000);
    return what;
}

enum victim { KEEPER, WORKER, BOTH, NOBODY, VICTIMS };
static const char *const victims[VICTIMS] = {"the keeper", "the worker", "both", "nobody"};

static int one_round(const char *self, int number, uid_t user, const char *expected) {
    char marker[64], found[256];
    snprintf(marker, sizeof marker, MARKER "=%d-%d-", (int)getpid(), number);
    enum victim victim = number % 10 == 9 ? NOBODY : (enum victim)random_below(3);
    uint64_t after_us = random_below(5) ? random_below(400000) : random_below(20000);
    shell("rm -f '%s/state/worker'", base);
    pid_t keeper = start(self, marker, user, victim == NOBODY ? 2 : 1000), worker = 0;
    int status;
    if (victim != NOBODY) {
        pause_us(after_us);
        worker = victim == KEEPER ? 0 : worker_of(keeper);
        if (victim != WORKER && kill(keeper, SIGSTOP) == 0)
            kill(keeper, SIGKILL);
        if (worker)
            kill(worker, SIGKILL);
        else if (victim == WORKER)
            kill(keeper, SIGKILL);
    }
    waitpid(keeper, &status, 0);
    if (victim == NOBODY && WIFEXITED(status) && WEXITSTATUS(status) == 77)
        return 77;
    if (victim == NOBODY && status != 0)
        return printf("round %d: the experiment ended with %x\n", number, (unsigned)status), 1;
    if (victim == BOTH) {
        pause_us(random_below(30000));
        keeper = start(self, "TRIALS9_NEXT=1", user, 0);
        waitpid(keeper, &status, 0);
        if (status != 0)
            return printf("round %d: the next one ended with %x\n", number, (unsigned)status), 1;
    }
    const char *what = wait_until_clean(marker);
    fingerprint(found);
    if (!*what && strcmp(found, expected) != 0)
        what = "the user's folders have changed";
    if (*what)
        printf("round %d: %s killed after %llu us: %s\n", number, victims[victim], (unsigned long long)after_us, what);
    return *what != '\0';
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--experiment") == 0) {
        snprintf(base, sizeof base, "%s", argv[2]);
        return experiment(atoi(argv[3]));
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 10, failures = 0, status;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)hec_clock_mono_ns() | 1;
    uid_t user = argc > 3 ? (uid_t)atoi(argv[3]) : 0;
    char self[512], expected[256];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0 || !getcwd(base, sizeof base - 16))
        return 2;
    self[length] = '\0';
    strcat(base, "/trials9");
    printf("seed %llu\n", (unsigned long long)state);
    if (shell(
            "rm -rf '%s' && mkdir -p '%s' && cd '%s' && mkdir -p home/project/kept/sub home/.cache/hub data tmp run scratch state "
            "&& echo old >home/project/model && echo x >home/project/kept/sub/f && echo c >home/.cache/hub/c && touch "
            "home/other && ln -s ../data home/link && chown -R %u:%u .",
            base, base, base, user, user) != 0 ||
        chdir(base) != 0)
        return 2;
    fingerprint(expected);
    for (int i = 0; i < rounds; i++) {
        status = one_round(self, i, user, expected);
        if (status == 77) {
            printf("this system allows no scratch layer\n");
            return 77;
        }
        failures += status != 0;
    }
    printf("%d of %d rounds left something behind\n", failures, rounds);
    return failures > 0;
}
