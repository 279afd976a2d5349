/* kill -9 of a process that sets power caps, of its guardian, of both, of neither, at random moments while they are set. The exact limits
 * that were there before are back: at once, or, where both were killed, when the next process that uses the guard has started.
 * guard9 [ROUNDS [SEED [UID]]], in the current folder; "guard9 hold STATE SEED" is the process. */
#include "rounds.h"

#include "act/power_guard.h"
#include "base/clock.h"
#include "sim/state.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DEVICES 2
#define LEAST_MW 200000
#define MOST_MW 700000
#define MARKER "GUARD9_ROUND"
#define REFUSED 3  /* exit status of a holder whose guardian was killed before it was ready */
#define WORDLESS 7 /* of one that ends without a word to its guardian */
#define PATIENCE_NS (20 * HEC_NS_PER_S)

static void spec_of(const char *path, char spec[400]) {
    snprintf(spec, 400, "h200x%d,state=%s", DEVICES, path);
}

/* ---- the holder ---- */

static int hold(const char *path) {
    char spec[400];
    struct hec_power_guard *guard;
    struct hec_why why = {""};
    spec_of(path, spec);
    int err = hec_power_guard_open(&(struct hec_power_options){.simulated = spec}, &guard, &why);
    if (err < 0)
        return err == HEC_ERR_LOST ? REFUSED : (fprintf(stderr, "open: %s\n", why.text), 6);
    uint64_t sets = 1 + random_below(12);
    for (uint64_t i = 0; i < sets && err == HEC_OK; i++) {
        if (random_below(4) == 0)
            err = hec_power_guard_set(guard, HEC_POWER_CLOCK, (int64_t)(600 + random_below(1300)), &why);
        else
            err = hec_power_guard_set(guard, HEC_POWER_CAP, (int64_t)(LEAST_MW + 1000 * random_below(500)), &why);
        if (err == HEC_OK && random_below(5) == 0)
            err = hec_power_guard_clear(guard, &why);
        pause_us(random_below(3000));
    }
    if (err < 0 && err != HEC_ERR_LOST)
        fprintf(stderr, "set: %s\n", why.text);
    if (random_below(8) == 0)
        _exit(WORDLESS);
    int closed = hec_power_guard_close(guard, &why);
    if (closed < 0)
        fprintf(stderr, "close: %s\n", why.text);
    return closed < 0 ? 5 : err < 0 && err != HEC_ERR_LOST ? 4 : 0;
}

/* ---- the rounds ---- */

static pid_t start(const char *self, const char *path, const char *marker, uid_t user) {
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)random_below(UINT64_C(1) << 62) + 1);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    join_round(marker, user);
    execl(self, self, "hold", path, seed, NULL);
    _exit(103);
}

static void read_settings(const char *path, struct sim_setting found[DEVICES]) {
    int fd = sim_state_attach(path);
    for (int i = 0; i < DEVICES; i++) {
        found[i] = (struct sim_setting){-1, -1};
        sim_state_read(fd, i, &found[i]);
    }
    close(fd);
}

static int entries(const char *folder) {
    DIR *list = opendir(folder);
    int count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));)
        count += strstr(entry->d_name, ".json") != NULL;
    if (list)
        closedir(list);
    return count;
}

enum victim { HOLDER, GUARDIAN, BOTH, NEITHER, VICTIMS };
static const char *const victims[VICTIMS] = {"the holder", "the guardian", "both", "neither"};
static int actuating, killed[VICTIMS];

/* Nobody of this round is left, so that what is not back never will be by itself. */
static bool wait_for_all(const char *marker) {
    int64_t until_ns = hec_clock_mono_ns() + PATIENCE_NS;
    pid_t left;
    while ((left = process_of(marker, NULL)) && hec_clock_mono_ns() < until_ns)
        pause_us(1000);
    return left == 0;
}

/* Until the first setting is about to be written, or the holder has ended. */
static void wait_for_lease(pid_t holder, const char *marker, const char *folder) {
    siginfo_t ended = {0};
    while (entries(folder) == 0 && process_of(marker, NULL) &&
           waitid(P_PID, (id_t)holder, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0)
        pause_us(200);
}

static const char *judge(const char *path, const struct sim_setting *prior, const char *folder) {
    struct sim_setting found[DEVICES];
    read_settings(path, found);
    for (int i = 0; i < DEVICES; i++) {
        if (found[i].cap_mw != prior[i].cap_mw)
            return "a cap is not as it was";
        if (found[i].clock_mhz != prior[i].clock_mhz)
            return "a lock of clocks is left";
    }
    return entries(folder) ? "the journal has entries" : "";
}

static const char *one_round(const char *self, const char *path, const char *folder, int number, uid_t user) {
    char marker[64];
    struct sim_setting prior[DEVICES], found[DEVICES];
    enum victim victim = (enum victim)random_below(VICTIMS);
    int status;
    snprintf(marker, sizeof marker, MARKER "=%d-%d-", (int)getpid(), number);
    for (int i = 0; i < DEVICES; i++) {
        prior[i] = (struct sim_setting){LEAST_MW + (int32_t)random_below(MOST_MW - LEAST_MW), 0};
        sim_state_write(path, i, &prior[i]);
    }
    pid_t holder = start(self, path, marker, user), guardian = 0;
    if (victim != NEITHER) {
        if (random_below(8)) /* else while they start */
            wait_for_lease(holder, marker, folder);
        pause_us(random_below(20000));
        kill(holder, SIGSTOP); /* for both at once */
        guardian = victim == HOLDER ? 0 : process_of(marker, "hec-power");
        if (guardian)
            kill(guardian, SIGKILL);
        read_settings(path, found);
        actuating += memcmp(found, prior, sizeof found) != 0 || entries(folder) > 0;
        kill(holder, victim == GUARDIAN ? SIGCONT : SIGKILL);
    }
    waitpid(holder, &status, 0);
    killed[victim]++;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != 0 && code != WORDLESS && !(guardian && code == REFUSED) && code != -1)
        return "the holder failed";
    if (!wait_for_all(marker))
        return "a process is left";
    /* nobody is left who could put anything back */
    if (victim == BOTH || (guardian && code == WORDLESS)) {
        waitpid(start(self, path, "GUARD9_NEXT=1", user), &status, 0);
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != WORDLESS) ||
            !wait_for_all("GUARD9_NEXT=1"))
            return "the next one failed";
    }
    return judge(path, prior, folder);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw) {
    (void)stat, (void)type, (void)ftw;
    return remove(path);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "hold") == 0) {
        state = strtoull(argv[3], NULL, 10) | 1;
        return hold(argv[2]);
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 10, failures = 0;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)hec_clock_mono_ns() | 1;
    uid_t user = argc > 3 ? (uid_t)atoi(argv[3]) : 0;
    char base[200], path[256], folder[256], self[512] = "", boot[SIM_BOOT_SIZE];
    struct hec_why why = {""};
    int fd;
    if (!getcwd(base, sizeof base) || readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    snprintf(folder, sizeof folder, "%s/guard9", base);
    snprintf(path, sizeof path, "%s/guard9/machine", base);
    setenv("HEC_STATE_DIR", folder, 1);
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) || (unlink(path) != 0 && errno != ENOENT) ||
        sim_state_open(path, "h200", &(struct sim_setting){MOST_MW, 0}, &fd, boot, &why) != HEC_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    close(fd);
    if (user && (chown(folder, user, user) != 0 || chown(path, user, user) != 0))
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("seed %llu\n", (unsigned long long)state);
    for (int i = 0; i < rounds; i++) {
        const char *what = one_round(self, path, folder, i, user);
        failures += *what != '\0';
        if (*what)
            printf("round %d: %s\n", i, what);
    }
    printf("%d of %d rounds left something behind; killed:", failures, rounds);
    for (int v = 0; v < VICTIMS; v++)
        printf(" %s %d%s", victims[v], killed[v], v + 1 < VICTIMS ? "," : "");
    printf("; settings were changed, or about to be, at %d kills\n", actuating);
    if (!failures && nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        perror(folder);
        return 2;
    }
    return failures > 0;
}
