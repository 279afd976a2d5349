/* Leases of several devices whose driver fails in the middle: what is written, remembered and put back, and what is said. The devices are
 * made up, in memory that the guardian shares. */
#include "act/power_guard.h"
#include "act/power_journal.h"
#include "act/power_restore.h"
#include "launch/descendants.h"
#include "tests/unit/folder.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define DEVICES 3
#define MACHINE "h200x3,state=/made/up"

static struct shared {
    int64_t now[HEC_POWER_KNOB_COUNT][DEVICES]; /* mW; whether clocks are limited */
    char fails;                                 /* c(heck), r(ead), w(rite), o(pen), n: write what was there before */
    int at, times;                              /* on which device, and how often; -1: always */
    int err;
    int writes, sleeps, mends_after, opened, closed;
    pid_t opened_by;
    char visible[16];
} * s;

static bool failing(char what, int device) {
    if (s->fails != what || (s->at != device && s->at >= 0) || s->times == 0)
        return false;
    s->times -= s->times > 0;
    return true;
}

static int index_of(const struct hec_power_device *device) {
    return atoi(device->uuid + strlen("GPU-0000000"));
}

static void fill(struct hec_power_device *device, int i) {
    *device = (struct hec_power_device){0};
    snprintf(device->uuid, sizeof device->uuid, "GPU-0000000%d", i);
    snprintf(device->name, sizeof device->name, "fake %d", i);
}

void hec_power_value_words(enum hec_power_knob knob, int64_t value, char words[32]) {
    snprintf(words, 32, "%s %d", knob == HEC_POWER_CAP ? "cap" : "clock", (int)value);
}
int hec_power_machine_open(const char *spec, struct hec_power_machine *machine, struct hec_why *why) {
    *machine = (struct hec_power_machine){.simulated = spec != NULL, .boot = "boot-1", .driver = "570.9"};
    snprintf(machine->name, sizeof machine->name, "%s", spec ? spec : "");
    if (failing('o', -1))
        return hec_fail(why, s->err, "no driver");
    s->opened++;
    s->opened_by = getpid();
    return HEC_OK;
}
void hec_power_machine_close(struct hec_power_machine *machine) {
    (void)machine;
    s->closed++;
}
int hec_power_devices(const struct hec_power_machine *machine, const char *visible, struct hec_power_device *devices,
                      struct hec_why *why) {
    (void)machine;
    snprintf(s->visible, sizeof s->visible, "%s", visible ? visible : "");
    for (int i = 0; i < DEVICES; i++)
        fill(&devices[i], i);
    return failing('d', -1) ? hec_fail(why, s->err, "no device") : DEVICES;
}
int hec_power_device_find(const struct hec_power_machine *machine, const char *uuid, struct hec_power_device *device,
                          struct hec_why *why) {
    (void)machine, (void)why;
    fill(device, atoi(uuid + strlen("GPU-0000000")));
    return HEC_OK;
}
int hec_power_device_check(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t value, struct hec_why *why) {
    (void)machine, (void)knob, (void)value;
    return failing('c', index_of(device)) ? hec_fail(why, s->err, "%s takes no such value", device->name) : HEC_OK;
}
int hec_power_device_read(const struct hec_power_machine *machine, const struct hec_power_device *device,
                          enum hec_power_knob knob, int64_t *value, struct hec_why *why) {
    (void)machine;
    *value = s->now[knob][index_of(device)];
    return failing('r', index_of(device)) ? hec_fail(why, s->err, "%s says nothing", device->name) : HEC_OK;
}
int hec_power_device_write(const struct hec_power_machine *machine, const struct hec_power_device *device,
                           enum hec_power_knob knob, int64_t value, bool enforced, struct hec_why *why) {
    int i = index_of(device);
    (void)machine;
    s->writes++;
    /* what is put back need not be what holds */
    if (enforced ? failing('w', i) : failing('n', i))
        return hec_fail(why, s->err, "%s takes nothing", device->name);
    s->now[knob][i] = knob == HEC_POWER_CAP ? value : value > 0;
    return HEC_OK;
}

/* Of a guardian that tries again. */
int nanosleep(const struct timespec *time, struct timespec *left) {
    (void)left;
    assert_true(time->tv_sec == 0 && time->tv_nsec > 0);
    if (++s->sleeps == s->mends_after)
        s->fails = '\0';
    return 0;
}

static struct hec_why why;
static struct hec_buf said;
static pid_t guardian; /* the latest that has not been waited for */

static int set_up(void **state) {
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* guardians belong to this process when who started them has ended */
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < DEVICES; i++)
        s->now[HEC_POWER_CAP][i] = 700000 + i;
    why.text[0] = '\0';
    hec_buf_init(&said, 4096);
    int made = folder_make(state);
    setenv("HEC_STATE_DIR", folder, 1);
    return made || chmod(folder, 0700);
}
static int tear_down(void **state) {
    if (guardian &&
        kill(guardian, SIGKILL) == 0) /* of a test that failed in the middle: it would wait for this process */
        waitpid(guardian, NULL, 0);
    guardian = 0;
    munmap(s, sizeof *s);
    hec_buf_free(&said);
    unsetenv("HEC_STATE_DIR");
    return folder_remove(state);
}
EACH_TEST(set_up, tear_down)

static struct hec_power_guard *guard_of(const char *spec) {
    struct hec_power_guard *guard;
    const struct hec_power_options options = {.simulated = spec, .visible = "1,2", .allowed = !spec};
    if (hec_power_guard_open(&options, &guard, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_string_equal(s->visible, "1,2");
    guardian = s->opened_by;
    return guard;
}

/* How many entries and locks lie in the journal's folder. */
static void lie_there(int entries, int locks) {
    int found[2] = {0, 0};
    DIR *files = opendir(folder);
    for (struct dirent *file; (file = readdir(files));)
        if (file->d_name[0] != '.')
            found[strstr(file->d_name, ".lock") != NULL]++;
    closedir(files);
    assert_int_equal(found[0], entries);
    assert_int_equal(found[1], locks);
}

static struct hec_power_entry entry_of(int device, enum hec_power_knob knob, const char *machine) {
    char uuid[32];
    struct hec_power_entry entry;
    snprintf(uuid, sizeof uuid, "GPU-0000000%d", device);
    if (hec_power_journal_read(uuid, machine, knob, &entry, &why) != HEC_OK)
        fail_msg("%s", why.text);
    return entry;
}

static void assert_caps(int64_t zero, int64_t one, int64_t two) {
    assert_int_equal(s->now[HEC_POWER_CAP][0], zero);
    assert_int_equal(s->now[HEC_POWER_CAP][1], one);
    assert_int_equal(s->now[HEC_POWER_CAP][2], two);
}

/* Until the guardian has ended, and with it its locks. */
static void until_gone(void) {
    while (waitpid(guardian, NULL, 0) < 0 && errno == EINTR)
        ;
    guardian = 0;
}

/* How this program was called. */
static const char *own_program(void) {
    static char line[128];
    size_t length = file_read("/proc/self/cmdline", line, sizeof line - 1);
    while (length > 0 && line[length - 1] == '\0')
        length--;
    line[length] = '\0';
    for (size_t i = 0; i < length; i++)
        line[i] = line[i] ? line[i] : ' ';
    return line;
}

TEST(what_is_remembered_of_each_device) {
    const char *program = own_program();
    struct hec_power_guard *guard = guard_of(NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_string_equal(why.text, "");
    assert_caps(300000, 300000, 300000);
    lie_there(3, 3);
    for (int i = 0; i < DEVICES; i++) {
        struct hec_power_entry entry = entry_of(i, HEC_POWER_CAP, "");
        assert_int_equal(entry.prior, 700000 + i);
        assert_int_equal(entry.value, 300000);
        assert_int_equal(entry.before, 0);
        assert_int_equal(entry.holder, getpid());
        assert_int_equal(entry.holder_start, (int64_t)hec_process_start(getpid()));
        assert_string_equal(entry.boot, "boot-1");
        assert_string_equal(entry.driver, "570.9");
        assert_string_equal(entry.machine, "");
        assert_string_equal(entry.program, program);
    }
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 250000, &why), HEC_OK);
    assert_int_equal(entry_of(2, HEC_POWER_CAP, "").prior, 700002);
    assert_int_equal(entry_of(2, HEC_POWER_CAP, "").value, 250000);
    assert_int_equal(entry_of(2, HEC_POWER_CAP, "").before, 300000);
    assert_int_equal(hec_power_guard_clear(guard, &why), HEC_OK);
    assert_string_equal(why.text, "");
    assert_caps(700000, 700001, 700002);
    lie_there(0, 0);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 200000, &why), HEC_OK);
    assert_int_equal(entry_of(0, HEC_POWER_CAP, "").before, 0);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    assert_caps(700000, 700001, 700002);
    lie_there(0, 0);
    until_gone();
    assert_int_equal(s->closed, 1);
    assert_int_equal(hec_power_guard_close(NULL, &why), HEC_OK);
}

TEST(one_device_alone) {
    struct hec_power_guard *guard = guard_of(NULL);
    assert_int_equal(hec_power_guard_set_of(guard, "GPU-00000001", HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_set_of(guard, "GPU-00000002", HEC_POWER_CAP, 250000, &why), HEC_OK);
    assert_caps(700000, 300000, 250000);
    lie_there(2, 2);
    assert_int_equal(hec_power_guard_clear_of(guard, "GPU-00000001", &why), HEC_OK);
    assert_caps(700000, 700001, 250000);
    lie_there(1, 1);
    assert_int_equal(hec_power_guard_set_of(guard, "GPU-00000007", HEC_POWER_CAP, 300000, &why), HEC_ERR_NOTFOUND);
    assert_string_equal(why.text, "there is no GPU GPU-00000007");
    assert_caps(700000, 700001, 250000);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    assert_caps(700000, 700001, 700002);
    lie_there(0, 0);
}

/* Nor is it written over: what a guard set before and does not find any more is an administrator's. */
TEST(what_somebody_else_set_is_not_written_over) {
    struct hec_power_guard *guard = guard_of(NULL);
    assert_int_equal(hec_power_guard_set_of(guard, "GPU-00000001", HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_set_of(guard, "GPU-00000002", HEC_POWER_CAP, 300000, &why), HEC_OK);
    s->now[HEC_POWER_CAP][1] = 444000;
    assert_int_equal(hec_power_guard_set_of(guard, "GPU-00000001", HEC_POWER_CAP, 250000, &why), HEC_ERR_BUSY);
    assert_string_equal(why.text, "somebody else has set the limit of the fake 1 to cap 444000, which stays");
    assert_caps(700000, 444000, 300000);
    lie_there(1, 1);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    assert_caps(700000, 444000, 700002);
    lie_there(0, 0);
}

TEST(clocks_of_a_real_device_are_not_locked) {
    struct hec_power_guard *guard = guard_of(NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CLOCK, 1200, &why), HEC_ERR_UNSUPPORTED);
    assert_non_null(strstr(why.text, "cap the power"));
    assert_int_equal(s->writes, 0);
    lie_there(0, 0);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    guard = guard_of(MACHINE);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CLOCK, 1200, &why), HEC_OK);
    assert_int_equal(entry_of(1, HEC_POWER_CLOCK, MACHINE).value, 1200);
    assert_int_equal(entry_of(1, HEC_POWER_CLOCK, MACHINE).prior, 0);
    assert_string_equal(entry_of(1, HEC_POWER_CLOCK, MACHINE).machine, MACHINE);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    lie_there(6, 3);
    assert_int_equal(hec_power_guard_clear(guard, &why), HEC_OK);
    assert_int_equal(s->now[HEC_POWER_CLOCK][1], 0);
    lie_there(0, 0);
    s->now[HEC_POWER_CLOCK][2] = 1; /* somebody has */
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CLOCK, 1200, &why), HEC_ERR_BUSY);
    assert_string_equal(why.text, "somebody limits the clocks of the fake 2 already, and what was set cannot be read");
    assert_int_equal(s->now[HEC_POWER_CLOCK][0] + s->now[HEC_POWER_CLOCK][1], 0);
    lie_there(0, 0);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
}

/* After an error everything is as it was before. */
TEST(a_device_that_fails_in_the_middle) {
    static const struct {
        char what;
        int at, err;
        const char *says;
        int writes; /* of new values and of old ones */
    } row[] = {{'c', 2, HEC_ERR_FAILED, "fake 2 takes no such value", 0},
               {'c', 0, HEC_ERR_USAGE, "fake 0 takes no such value", 0},
               {'r', 0, HEC_ERR_FAILED, "fake 0 says nothing", 0},
               {'r', 1, HEC_ERR_FAILED, "fake 1 says nothing", 2},
               {'w', 0, HEC_ERR_FAILED, "fake 0 takes nothing", 1},
               {'w', 1, HEC_ERR_PERMISSION, "fake 1 takes nothing", 3},
               {'w', 2, HEC_ERR_FAILED, "fake 2 takes nothing", 5}};
    struct hec_power_guard *guard = guard_of(NULL);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (int again = 0; again < 2; again++) {
            s->writes = 0;
            s->at = row[i].at;
            s->times = 1;
            s->err = row[i].err;
            s->fails = row[i].what;
            why.text[0] = '\0';
            assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), row[i].err);
            assert_string_equal(why.text, row[i].says);
            assert_int_equal(s->writes, row[i].writes);
            assert_caps(700000, 700001, 700002);
            lie_there(0, 0);
        }
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    lie_there(0, 0);
}

/* Every device is tried, the first reason counts, and what could not be put back stays known and locked. */
TEST(a_device_that_cannot_be_put_back) {
    struct hec_power_guard *guard = guard_of(NULL);
    for (int all = 0; all < 2; all++) {
        assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
        s->at = all ? -1 : 1;
        s->times = -1;
        s->err = HEC_ERR_FAILED;
        s->fails = 'n';
        assert_int_equal(hec_power_guard_clear(guard, &why), HEC_ERR_FAILED);
        assert_string_equal(why.text, all ? "fake 0 takes nothing" : "fake 1 takes nothing");
        assert_caps(all ? 300000 : 700000, 300000, all ? 300000 : 700002);
        lie_there(all ? 3 : 1, all ? 3 : 1);
        s->fails = '\0';
        assert_int_equal(hec_power_guard_clear(guard, &why), HEC_OK);
        assert_caps(700000, 700001, 700002);
        lie_there(0, 0);
    }
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
}

/* A driver that is busy for a moment is asked again, twenty times. */
TEST(the_guardian_tries_again) {
    for (int mends = 0; mends < 2; mends++) {
        struct hec_power_guard *guard = guard_of(NULL);
        int closed = s->closed;
        assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
        s->sleeps = 0;
        s->mends_after = mends ? 0 : 3;
        s->at = 2;
        s->times = -1;
        s->err = HEC_ERR_FAILED;
        s->fails = 'n';
        assert_int_equal(hec_power_guard_close(guard, &why), HEC_ERR_FAILED);
        until_gone();
        assert_int_equal(s->closed, closed + 1);
        assert_int_equal(s->sleeps, mends ? 20 : 3);
        assert_caps(700000, 700001, mends ? 300000 : 700002);
        lie_there(mends, mends); /* the lock is let go with the process, its file stays */
    }
    int left = -1;
    assert_true(hec_power_restore(&left, &said, &why) >= 0); /* as soon as nobody holds it */
    assert_int_equal(left, 1);
    assert_non_null(strstr(hec_buf_text(&said), "left as it is: fake 2 takes nothing\n"));
    assert_int_equal(hec_power_restore(NULL, &said, &why), 0); /* who does not ask how many */
    s->fails = '\0';
    hec_buf_clear(&said);
    assert_int_equal(hec_power_restore(&left, &said, &why), 1);
    assert_string_equal(hec_buf_text(&said), "GPU-00000002: cap 700002 is back\n");
    assert_int_equal(left, 0);
    lie_there(0, 0);
}

TEST(what_somebody_else_set_is_left_alone) {
    struct hec_power_guard *guard = guard_of(NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    s->now[HEC_POWER_CAP][1] = 444000;
    s->now[HEC_POWER_CAP][2] = 555000;
    assert_int_equal(hec_power_guard_clear(guard, &why), HEC_OK);
    assert_string_equal(why.text,
                        "fake 1 GPU-00000001: somebody has set cap 444000 meanwhile, which is left alone (hec "
                        "set cap 300000, and cap 700001 was there)"); /* of several the first */
    assert_caps(700000, 444000, 555000);
    lie_there(0, 0);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
}

static struct hec_power_entry left_entry(int device, int64_t prior, int64_t value) {
    struct hec_power_entry entry = {
        .boot = "boot-1", .driver = "570.9", .holder = 1 << 30, .holder_start = 5, .program = "gone"};
    snprintf(entry.uuid, sizeof entry.uuid, "GPU-0000000%d", device);
    entry.prior = prior;
    entry.value = value;
    assert_int_equal(hec_power_journal_write(&entry, &why), HEC_OK);
    return entry;
}

/* What others left is put back before anything is set: when it begins, and where that failed, for the device at hand. */
TEST(what_was_left_comes_first) {
    for (int late = 0; late < 2; late++) {
        left_entry(1, 650000, 700001);
        s->fails = late ? 'o' : '\0';
        s->at = -1;
        s->times = 1;
        s->err = HEC_ERR_FAILED;
        struct hec_power_guard *guard = guard_of(NULL);
        assert_int_equal(s->now[HEC_POWER_CAP][1], late ? 700001 : 650000);
        assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
        assert_int_equal(entry_of(1, HEC_POWER_CAP, "").prior, 650000);
        assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
        assert_caps(700000, 650000, 700002);
        lie_there(0, 0);
        s->now[HEC_POWER_CAP][1] = 700001;
    }
    left_entry(1, 650000, 700001);
    s->at = 1;
    s->times = -1;
    s->fails = 'n';
    struct hec_power_guard *guard = guard_of(NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_ERR_FAILED);
    assert_string_equal(why.text, "fake 1 takes nothing");
    assert_caps(700000, 700001, 700002);
    s->fails = '\0';
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    int left = -1;
    assert_int_equal(hec_power_restore(&left, &said, &why), 1);
    assert_caps(700000, 650000, 700002);
}

/* Where the guardian is killed, its client puts back. */
TEST(a_guardian_that_is_killed) {
    for (int fails = 0; fails < 2; fails++) {
        struct hec_power_guard *guard = guard_of(NULL);
        assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
        assert_int_equal(kill(guardian, SIGKILL), 0);
        until_gone();
        assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 200000, &why), HEC_ERR_LOST);
        assert_string_equal(why.text, "the guardian of the power limits was killed");
        s->at = 0;
        s->times = -1;
        s->err = HEC_ERR_FAILED;
        s->fails = fails ? 'n' : '\0';
        assert_int_equal(fails ? hec_power_guard_close(guard, &why) : hec_power_guard_clear(guard, &why),
                         fails ? HEC_ERR_FAILED : HEC_OK);
        assert_caps(fails ? 300000 : 700000, 700001, 700002);
        if (fails)
            assert_non_null(strstr(why.text, "-cap.json: left as it is: fake 0 takes nothing"));
        else
            assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
        lie_there(fails, 0);
    }
}

TEST(what_cannot_be_opened) {
    static const char whats[] = "od";
    for (int i = 0; whats[i]; i++) {
        int before = open_files();
        struct hec_power_guard *guard = (struct hec_power_guard *)&why;
        s->fails = whats[i];
        s->at = s->times = -1;
        s->err = HEC_ERR_FAILED;
        assert_int_equal(hec_power_guard_open(&(struct hec_power_options){.allowed = true}, &guard, &why),
                         HEC_ERR_FAILED);
        assert_string_equal(why.text, i ? "no device" : "no driver");
        assert_null(guard);
        assert_int_equal(open_files(), before);
    }
}

/* ---- the lock of a device ---- */

/* Another process holds it until the pipe is closed. */
static pid_t holder_of(const char *uuid, int out[2]) {
    char byte;
    int ready[2], fd;
    assert_int_equal(pipe(out) | pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(out[1]);
        int err = hec_power_journal_lock(uuid, "", &fd, NULL);
        bool told = write(ready[1], &err, 1) == 1;
        _exit(told && read(out[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(out[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    close(ready[0]);
    return pid;
}

TEST(who_holds_a_lock_is_named) {
    static const struct {
        bool entry, alive;
        const char *says;
        int sleeps;
    } row[] = {{false, false, "another hec is about to change the limits of GPU-00000001", 300},
               {true, true, "already holds the limits of GPU-00000001", 0},
               {true, false,
                "process 1073741824 (gone), which has ended and whose guardian puts them back, already holds", 300}};
    int fd, pipes[2], status;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        pid_t pid = holder_of("GPU-00000001", pipes);
        if (row[i].entry) {
            struct hec_power_entry entry = left_entry(1, 650000, 700001);
            if (row[i].alive) {
                entry.holder = getpid();
                entry.holder_start = (int64_t)hec_process_start(getpid());
                assert_int_equal(hec_power_journal_write(&entry, &why), HEC_OK);
            }
        }
        s->sleeps = 0;
        assert_int_equal(hec_power_journal_lock("GPU-00000001", "", &fd, &why), HEC_ERR_BUSY);
        if (!strstr(why.text, row[i].says))
            fail_msg("%s", why.text);
        assert_int_equal(s->sleeps, row[i].sleeps);
        assert_int_equal(hec_power_journal_lock("GPU-00000002", "", &fd, &why), HEC_OK); /* another device's */
        hec_power_journal_unlock("GPU-00000002", "", fd);
        assert_int_equal(fcntl(fd, F_GETFD), -1);
        close(pipes[1]);
        waitpid(pid, &status, 0);
        assert_int_equal(hec_power_journal_lock("GPU-00000001", "", &fd, &why), HEC_OK);
        lie_there(row[i].entry, 1);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        hec_power_journal_unlock("GPU-00000001", "", fd);
        lie_there(row[i].entry, 0);
    }
    assert_int_equal(hec_power_journal_lock("short", "", &fd, &why), HEC_ERR_UNSUPPORTED);
    assert_string_equal(why.text, "the device has no UUID by which its limit could be remembered");
    assert_int_equal(mkdir(in_folder("power-GPU-00000003.lock"), 0700), 0);
    assert_true(hec_power_journal_lock("GPU-00000003", "", &fd, &why) < 0);
    assert_non_null(strstr(why.text, "cannot open "));
    char path[PATH_MAX];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[PATH_MAX - 20] = '\0';
    setenv("HEC_STATE_DIR", path, 1);
    assert_int_equal(hec_power_journal_lock("GPU-00000003", "", &fd, &why), HEC_ERR_LIMIT);
    assert_string_equal(why.text, "the state folder's name is too long");
}
