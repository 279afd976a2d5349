/* kill -9 of `hec ab` at random moments: of its supervisor, of its worker, of both at once. No process of a trial is left, no
 * mount, no scratch folder; the receipt so far can be verified; the user's folders are bit for bit as before. After both were killed:
 * when the next one has started. trials9 HEC [ROUNDS [SEED [UID]]], in the current folder. */
#include "rounds.h"
#include "user_folders.h"

#include "base/clock.h"
#include "base/live.h"
#include "launch/descendants.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MARKER "TRIALS9_ROUND"
#define RECEIPT "receipt.json"
#define PATIENCE_NS (20 * HEC_NS_PER_S)

static char base[512];
static time_t began;
static uid_t owner;
static int receipts;

/* What a trial does to the folders, and what it leaves running: a child, a daemon of its own session that has lost its parent, and one
 * that starts another all the time. */
static const char trial[] =
    "sleep 1000 & (setsid sh -c 'while :; do echo x >>$HOME/log; sleep 0.003; done' >/dev/null 2>&1 &)\n"
    "(setsid sh -c 'f() { (sleep 0.002; f) & }; f' >/dev/null 2>&1 &)\n"
    "echo new >model; mv model moved; ln -s moved link; chmod 000 kept; chmod 755 kept; rm -rf kept; mkdir kept\n"
    "mkdir -p deep/er/still; chmod 000 deep/er; echo t >$TMPDIR/t; echo t >/dev/shm/trials9-$$; touch -d 2001-01-01 $HOME/other\n"
    "rm -rf $HOME/.cache; mkdir -p $HOME/.cache/new; cp /bin/sh $HOME/.cache/new; sleep 0.1\n";

/* Of the folder that holds the receipt, and of that for temporary files. */
static void restore_times(void) {
    shell("touch -d 2001-01-01 '%s/home/project' '%s/tmp'", base, base);
}

static void set(const char *name, const char *folder) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", base, folder);
    setenv(name, path, 1);
}

/* An experiment of so many pairs. */
static pid_t start(const char *hec, const char *marker, uid_t user, const char *pairs, const char *command) {
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    set("HOME", "home");
    set("TMPDIR", "tmp");
    set("XDG_RUNTIME_DIR", "run");
    join_round(marker, user);
    if (chdir("home/project") != 0 || !freopen("../../out", "a", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
        _exit(102);
    execl(hec, hec, "ab", "--sim", "h200", "-u", "10", "--warm-up", "0", "--pairs", pairs, "-f", "-o", RECEIPT, "--",
          "sh", "-ec", command, ":::", "sh", "-ec", command, NULL);
    _exit(103);
}

/* The first child of the supervisor, once there is one. */
static pid_t worker_of(pid_t supervisor) {
    char path[64];
    int worker = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &worker) != 1)
        worker = 0;
    if (file)
        fclose(file);
    return worker;
}

/* Private folders in `parent` that are newer than this test and whose maker is gone; others may run beside. */
static bool abandoned(const char *parent) {
    char path[900];
    struct stat status;
    bool found = false;
    DIR *list = opendir(parent);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (strncmp(entry->d_name, "hec-", 4) != 0 && strncmp(entry->d_name, ".hec-", 5) != 0)
            continue;
        snprintf(path, sizeof path, "%.500s/%s/owner", parent, entry->d_name);
        int fd = open(path, O_RDONLY);
        found |= fd >= 0 && fstat(fd, &status) == 0 && status.st_mtime >= began && status.st_uid == owner &&
                 !hec_live_held(fd);
        if (fd >= 0)
            close(fd);
    }
    if (list)
        closedir(list);
    return found;
}

/* What is left of a round, as a sentence; "": nothing. */
static const char *left(const char *marker) {
    if (process_of(marker, NULL))
        return "a process is left";
    if (abandoned("/var/tmp") || shell("ls -A '%s/tmp' '%s/run' | grep -qE '^\\.?hec-'", base, base) == 0)
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
static const char *const victims[VICTIMS] = {"the supervisor", "the worker", "both", "nobody"};

/* There is none before the first pair. */
static bool receipt_holds(const char *hec) {
    bool there = access("home/project/" RECEIPT, F_OK) == 0;
    receipts += there;
    return !there || shell("'%s' verify home/project/" RECEIPT " >out 2>&1", hec) == 0;
}

static int one_round(const char *hec, int number, uid_t user, const char *expected) {
    char marker[64], found[256];
    snprintf(marker, sizeof marker, MARKER "=%d-%d-", (int)getpid(), number);
    enum victim victim = number % 10 == 9 ? NOBODY : (enum victim)random_below(3);
    uint64_t after_us = random_below(5) ? random_below(1500000) : random_below(50000);
    bool verified = true;
    int status, next;
    pid_t supervisor = start(hec, marker, user, victim == NOBODY ? "2" : "40", trial), worker;
    if (victim != NOBODY) {
        pause_us(after_us);
        kill(supervisor, SIGSTOP); /* for both at once */
        worker = victim == KEEPER ? 0 : worker_of(supervisor);
        if (worker)
            kill(worker, SIGKILL);
        kill(supervisor, victim == WORKER && worker ? SIGCONT : SIGKILL);
    }
    waitpid(supervisor, &status, 0);
    if (victim == NOBODY && status != 0)
        return printf("round %d: the experiment ended with %x\n", number, (unsigned)status),
               shell("cat '%s/out'", base), 1;
    if (victim == BOTH) {
        pause_us(random_below(30000));
        verified = receipt_holds(hec);
        waitpid(start(hec, "TRIALS9_NEXT=1", user, "2", "exit 1"), &next, 0);
    }
    const char *what = wait_until_clean(marker);
    if (victim != BOTH)
        verified = receipt_holds(hec);
    unlink("home/project/" RECEIPT);
    restore_times();
    fingerprint(base, found);
    if (!*what && !verified)
        what = "the receipt cannot be verified";
    if (!*what && strcmp(found, expected) != 0)
        what = "the user's folders have changed";
    if (*what)
        printf("round %d: %s killed after %llu us: %s\n", number, victims[victim], (unsigned long long)after_us, what),
            shell(
                "ls -ldA '%s'/tmp/*hec* '%s'/run/*hec* /tmp/*hec-* /var/tmp/*hec-* 2>/dev/null | tail -5; ls -la '%s'/tmp/*hec*/* "
                "'%s'/run/*hec*/*; tail -3 out",
                base, base, base, base);
    return *what != '\0';
}

int main(int argc, char **argv) {
    const char *hec = argc > 1 ? argv[1] : "hec";
    int rounds = argc > 2 ? atoi(argv[2]) : 10, failures = 0;
    state = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)hec_clock_mono_ns() | 1;
    uid_t user = argc > 4 ? (uid_t)atoi(argv[4]) : 0;
    char expected[256];
    int shared = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* One such test at a time: what another's hec left there a moment ago would be taken for this one's. */
    if (shared < 0 || flock(shared, LOCK_EX) != 0 || !getcwd(base, sizeof base - 16))
        return 2;
    strcat(base, "/trials9");
    began = time(NULL);
    owner = user ? user : geteuid();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %llu\n", (unsigned long long)state);
    if (shell(
            "rm -rf '%s' && mkdir -p '%s' && cd '%s' && mkdir -p home/project/kept/sub home/.cache/hub data tmp run && "
            "echo old >home/project/model && echo x >home/project/kept/sub/f && echo c >home/.cache/hub/c && touch "
            "home/other && ln -s ../data home/link && chown -R %u:%u .",
            base, base, base, user, user) != 0 ||
        chdir(base) != 0)
        return 2;
    restore_times();
    fingerprint(base, expected);
    if (shell("cd home/project && '%s' ab --sim h200 --warm-up 0 --pairs 2 -u 1 -f -o " RECEIPT
              " -- true ::: true >../../first 2>&1 && rm " RECEIPT,
              hec))
        return 77;
    for (int i = 0; i < rounds; i++)
        failures += one_round(hec, i, user, expected) != 0;
    printf("%d of %d rounds left something behind; %d receipts\n", failures, rounds, receipts);
    if (!failures && (chdir("..") != 0 || shell("rm -rf '%s'", base) != 0))
        return 2;
    return failures > 0;
}
