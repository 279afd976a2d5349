/* The power guard: its journal against hostile files, one device against a table of functions, leases on the simulated GPU.
 * What kills do is in tests/e2e/guard9.c. */
#include "act/power_guard.h"
#include "act/power_journal.h"
#include "act/power_restore.h"
#include "sim/state.h"
#include "folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static char machine_path[64], machine_spec[128];

static int begin(void **state) {
    folder_make(state);
    snprintf(machine_path, sizeof machine_path, "%s/machine", folder);
    snprintf(machine_spec, sizeof machine_spec, "h200x2,state=%s", machine_path);
    setenv("HEC_STATE_DIR", folder, 1);
    return chmod(folder, 0700);
}

static struct hec_power_entry example(void) {
    return (struct hec_power_entry){.uuid = "GPU-51a1ed00-0000-4000-8000-000000000000",
                                    .boot = "b-1",
                                    .driver = "580.1",
                                    .prior = 613001,
                                    .value = 400000,
                                    .before = 350000,
                                    .holder = 4711,
                                    .holder_start = 99,
                                    .program = "hec run --with power_cap=400"};
}

static bool there(const struct hec_power_entry *entry) {
    struct hec_power_entry found;
    return hec_power_journal_read(entry->uuid, entry->machine, entry->knob, &found, NULL) == HEC_OK;
}

static struct hec_why why;
static struct hec_buf said;

static int before_each(void **state) {
    (void)state;
    why.text[0] = '\0';
    hec_buf_free(&said);
    hec_buf_init(&said, 4096);
    return 0;
}

/* ---- the journal ---- */

static void text_of(const struct hec_power_entry *entry, struct hec_buf *text) {
    hec_buf_init(text, 65536);
    assert_int_equal(hec_power_entry_print(entry, text), HEC_OK);
}

TEST(entries_are_read_as_written) {
    struct hec_power_entry entry = example(), found;
    struct hec_buf text, again;
    text_of(&entry, &text);
    assert_int_equal(hec_power_entry_parse(text.data, text.length, &found, NULL), HEC_OK);
    text_of(&found, &again);
    assert_string_equal(hec_buf_text(&text), hec_buf_text(&again));
    assert_int_equal(found.prior, entry.prior);
    hec_buf_free(&again);
    for (size_t length = 0; length < text.length; length++) { /* of a file that was cut, no part is believed */
        char *cut = malloc(length ? length : 1);
        memcpy(cut, text.data, length);
        assert_int_equal(hec_power_entry_parse(cut, length, &found, NULL), HEC_ERR_CORRUPT);
        free(cut);
    }
    hec_buf_free(&text);
}

TEST(hostile_entries_are_refused) {
    static const struct {
        const char *from, *to; /* what is replaced in a good one */
        int err;
    } cases[] = {
        {"hec.power/1", "hec.power/2", HEC_ERR_VERSION},
        {"hec.power/1", "other/1", HEC_ERR_CORRUPT},
        {"\"cap\"", "\"fan\"", HEC_ERR_CORRUPT},
        {"\"cap\"", "7", HEC_ERR_CORRUPT},
        {"\"cap\"", "\"clock\"", HEC_ERR_CORRUPT}, /* of clocks only "not locked" can be put back */
        {"613001", "-1", HEC_ERR_CORRUPT},
        {"613001", "0", HEC_ERR_CORRUPT},
        {"613001", "1e5", HEC_ERR_CORRUPT},
        {"613001", "99999999999", HEC_ERR_CORRUPT},
        {"613001", "\"613001\"", HEC_ERR_CORRUPT},
        {"400000", "0", HEC_ERR_CORRUPT},
        {"GPU-51a1ed00-0000", "../../etc/passwd", HEC_ERR_CORRUPT},
        {"GPU-51a1ed00-0000", "GPU-\\u0000", HEC_ERR_CORRUPT},
        {"GPU-51a1ed00-0000-4000-8000-000000000000", "x", HEC_ERR_CORRUPT},
        {"\"machine\": \"\"", "\"machine\": \"h200\"", HEC_ERR_CORRUPT}, /* keeps nothing: it cannot have an entry */
        {"b-1", "b-\\u001b[2J", HEC_ERR_CORRUPT},
        {"4711", "0", HEC_ERR_CORRUPT},
        {"\"driver\"", "\"uuid\"", HEC_ERR_CORRUPT}, /* twice */
        {"\"prior\"", "\"Prior\"", HEC_ERR_CORRUPT},
        {"hec run --with power_cap=400", "\\u001b]0;x\\u0007", HEC_OK}, /* words for people: cleaned */
    };
    struct hec_power_entry entry = example(), found;
    struct hec_buf good;
    text_of(&entry, &good);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_buf bad;
        const char *at = strstr(good.data, cases[i].from);
        assert_non_null(at);
        hec_buf_init(&bad, 65536);
        hec_buf_printf(&bad, "%.*s%s%s", (int)(at - good.data), good.data, cases[i].to, at + strlen(cases[i].from));
        if (hec_power_entry_parse(bad.data, bad.length, &found, &why) != cases[i].err)
            fail_msg("%s -> %s: %s", cases[i].from, cases[i].to, why.text);
        assert_true(cases[i].err == HEC_OK ? !strchr(found.program, '\033') : why.text[0] != '\0');
        hec_buf_free(&bad);
    }
    hec_buf_free(&good);
}

static void count_seen(void *context, const char *path, int err, const struct hec_power_entry *entry,
                       const char *reason) {
    int *counts = context;
    (void)path, (void)entry;
    counts[err == HEC_OK ? 0 : 1]++;
    assert_true(err == HEC_OK || strlen(reason) > 10);
}

/* An entry under the name of another device is none of that device's. */
TEST(an_entry_speaks_of_its_own_device) {
    struct hec_power_entry entry = example();
    char from[400], to[400];
    int counts[2] = {0, 0};
    assert_int_equal(hec_power_journal_write(&entry, NULL), HEC_OK);
    snprintf(from, sizeof from, "%s/power-%s-cap.json", folder, entry.uuid);
    snprintf(to, sizeof to, "%s/power-GPU-00000000-cap.json", folder);
    assert_int_equal(link(from, to), 0);
    hec_power_journal_each(count_seen, counts);
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 1);
    assert_int_equal(unlink(to), 0);
    assert_int_equal(hec_power_journal_remove(&entry, NULL), HEC_OK);
    assert_false(there(&entry));
}

/* ---- one device, against a table of functions ---- */

static struct {
    unsigned limit, least, most, enforced; /* enforced 0: as the limit */
    unsigned long long reasons;
    int set_code, writes;
    unsigned wrong; /* the driver sets so much more than it is asked to */
} fake;

static int fake_count(unsigned *count) {
    *count = 1;
    return HEC_NVML_SUCCESS;
}
static int fake_by_index(unsigned index, hec_nvml_device *device) {
    *device = (hec_nvml_device)&fake;
    return index ? HEC_NVML_INVALID_ARGUMENT : HEC_NVML_SUCCESS;
}
static int fake_name(hec_nvml_device device, char *name, unsigned length) {
    (void)device;
    snprintf(name, length, "H200");
    return HEC_NVML_SUCCESS;
}
static int fake_uuid(hec_nvml_device device, char *uuid, unsigned length) {
    (void)device;
    snprintf(uuid, length, "%s", example().uuid);
    return HEC_NVML_SUCCESS;
}
static int fake_limit(hec_nvml_device device, unsigned *mw) {
    (void)device;
    *mw = fake.limit;
    return HEC_NVML_SUCCESS;
}
static int fake_enforced(hec_nvml_device device, unsigned *mw) {
    (void)device;
    *mw = fake.enforced && fake.enforced < fake.limit ? fake.enforced : fake.limit;
    return HEC_NVML_SUCCESS;
}
static int fake_range(hec_nvml_device device, unsigned *least, unsigned *most) {
    (void)device;
    *least = fake.least;
    *most = fake.most;
    return HEC_NVML_SUCCESS;
}
static int fake_set(hec_nvml_device device, unsigned mw) {
    (void)device;
    fake.writes++;
    if (fake.set_code == HEC_NVML_SUCCESS)
        fake.limit = mw + fake.wrong;
    return fake.set_code;
}

static struct hec_power_machine fake_machine(const char *boot, unsigned limit) {
    struct hec_power_machine machine = {.nvml = {.device_count = fake_count,
                                                 .device_by_index = fake_by_index,
                                                 .device_name = fake_name,
                                                 .device_uuid = fake_uuid,
                                                 .power_limit = fake_limit,
                                                 .power_limit_enforced = fake_enforced,
                                                 .power_limit_range = fake_range,
                                                 .power_limit_set = fake_set}};
    snprintf(machine.boot, sizeof machine.boot, "%s", boot);
    memset(&fake, 0, sizeof fake);
    fake.limit = limit;
    fake.least = 200000;
    fake.most = 700000;
    return machine;
}

/* Restoring is done by a process of its own, of which nothing is left. */
TEST(restoring_leaves_nothing_open) {
    int before = 0, after = 0;
    for (int round = 0; round < 4; round++) {
        int *count = round ? &after : &before, left = -1;
        assert_true(hec_power_restore(&left, &said, &why) >= 0);
        assert_int_equal(left, 0);
        *count = open_files();
    }
    assert_int_equal(after, before);
}

/* An entry that cannot be removed is no success: the next run would put back what is not there any more. */
TEST(what_cannot_be_removed_is_said) {
    struct hec_power_entry entry = example();
    char path[600];
    snprintf(path, sizeof path, "%s/power-%s-cap.json", folder, entry.uuid);
    assert_int_equal(hec_power_journal_remove(&entry, &why), HEC_OK); /* there is none */
    assert_int_equal(hec_power_journal_write(&entry, &why), HEC_OK);
    assert_true(there(&entry));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(hec_power_journal_remove(&entry, &why) < 0);
    assert_non_null(strstr(why.text, "cannot remove"));
    assert_int_equal(rmdir(path), 0);
}

/* What was left of a write that was killed goes, with its lock; no other file does. */
TEST(what_was_half_written_goes) {
    static const char *const names[] = {"power-GPU-1-cap.json.x7", "power-GPU-1.lock", "other-GPU-1-cap.json.x7"};
    int counts[2] = {0, 0};
    folder_text(names[0], "{");
    folder_text(names[2], "{");
    hec_power_journal_each(count_seen, counts);
    assert_int_equal(counts[0] + counts[1], 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(access(in_folder(names[i]), F_OK), i < 2 ? -1 : 0);
    assert_int_equal(unlink(in_folder(names[2])), 0);
}

TEST(what_was_there_is_put_back) {
    static const struct {
        const char *boot;
        unsigned found, expected; /* mW */
        int result;
        bool words;
    } cases[] = {
        {"b-1", 400000, 613001, 1, false}, /* what hec wrote */
        {"b-1", 350000, 613001, 1, false}, /* what it wrote before, killed before it wrote this */
        {"b-1", 613001, 613001, 0, false}, /* killed before it wrote anything */
        {"b-1", 500000, 500000, 0, true},  /* somebody else has been here */
        {"b-2", 700000, 700000, 0, false}, /* a restart: the driver's default */
        {"b-2", 400000, 613001, 1, false}, /* a restart that kept it */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hec_power_machine machine = fake_machine(cases[i].boot, cases[i].found);
        struct hec_power_entry entry = example();
        hec_buf_clear(&said);
        assert_int_equal(hec_power_journal_write(&entry, NULL), HEC_OK);
        assert_int_equal(hec_power_restore_entry(&machine, &entry, &said, NULL), cases[i].result);
        assert_int_equal(fake.limit, cases[i].expected);
        assert_int_equal(fake.writes, cases[i].result);
        assert_true(cases[i].words == (said.length > 0));
        assert_false(there(&entry));
    }
}

TEST(what_cannot_be_put_back_stays_in_the_journal) {
    struct hec_power_entry entry = example();
    struct hec_power_machine machine = fake_machine("b-1", 400000);
    assert_int_equal(hec_power_journal_write(&entry, NULL), HEC_OK);
    fake.set_code = HEC_NVML_NO_PERMISSION;
    assert_int_equal(hec_power_restore_entry(&machine, &entry, &said, &why), HEC_ERR_PERMISSION);
    assert_non_null(strstr(why.text, "root"));
    fake.set_code = HEC_NVML_SUCCESS;
    fake.wrong = 1; /* mW */
    assert_int_equal(hec_power_restore_entry(&machine, &entry, &said, &why), HEC_ERR_FAILED);
    assert_true(there(&entry));
    fake.wrong = 0;
    fake.limit = 400000;
    snprintf(entry.uuid, sizeof entry.uuid, "GPU-another-one"); /* not there now */
    assert_int_equal(hec_power_restore_entry(&machine, &entry, &said, &why), HEC_ERR_NOTFOUND);
    entry = example();
    assert_int_equal(hec_power_restore_entry(&machine, &entry, &said, &why), 1);
}

TEST(writing_reads_back) {
    struct hec_power_machine machine = fake_machine("b-1", 700000);
    struct hec_power_device device;
    assert_int_equal(hec_power_devices(&machine, NULL, &device, &why), 1);
    assert_int_equal(hec_power_device_check(&machine, &device, HEC_POWER_CAP, 199999, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "200 W to 700 W"));
    assert_int_equal(hec_power_device_check(&machine, &device, HEC_POWER_CAP, 700001, &why), HEC_ERR_USAGE);
    assert_int_equal(hec_power_device_check(&machine, &device, HEC_POWER_CAP, 700000, &why), HEC_OK);
    assert_int_equal(hec_power_device_check(&machine, &device, HEC_POWER_CLOCK, 1000, &why), HEC_ERR_UNSUPPORTED);
    assert_int_equal(hec_power_device_write(&machine, &device, HEC_POWER_CAP, 400000, true, &why), HEC_OK);
    fake.enforced = 300000; /* a limit of the chassis */
    assert_int_equal(hec_power_device_write(&machine, &device, HEC_POWER_CAP, 400000, true, &why), HEC_ERR_FAILED);
    assert_non_null(strstr(why.text, "at 300 W, not at 400 W"));
    assert_int_equal(hec_power_device_write(&machine, &device, HEC_POWER_CAP, 250000, true, &why), HEC_OK);
    fake.wrong = 5000; /* a driver that takes what it likes */
    assert_int_equal(hec_power_device_write(&machine, &device, HEC_POWER_CAP, 400000, false, &why), HEC_ERR_FAILED);
    assert_non_null(strstr(why.text, " was set to 400 W, and says 405 W"));
    assert_int_equal(hec_power_devices(&machine, "1", &device, &why), HEC_ERR_NOTFOUND);
}

/* ---- leases on the simulated GPU ---- */

static struct sim_setting setting(int device) {
    struct sim_setting found = {-1, -1};
    int fd = sim_state_attach(machine_path);
    sim_state_read(fd, device, &found);
    close(fd);
    return found;
}

static void new_machine(int32_t cap_mw) {
    char boot[SIM_BOOT_SIZE];
    int fd;
    unlink(machine_path);
    assert_int_equal(sim_state_open(machine_path, "h200", &(struct sim_setting){cap_mw, 0}, &fd, boot, NULL), HEC_OK);
    close(fd);
}

static struct hec_power_guard *open_on(const char *spec, const char *visible) {
    struct hec_power_guard *guard;
    if (hec_power_guard_open(&(struct hec_power_options){.simulated = spec, .visible = visible}, &guard, &why) !=
        HEC_OK)
        fail_msg("%s", why.text);
    return guard;
}

TEST(a_lease_puts_back_exactly) {
    new_machine(456789);
    struct hec_power_guard *guard = open_on(machine_spec, "1");
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_int_equal(setting(0).cap_mw, 456789); /* not visible */
    assert_int_equal(setting(1).cap_mw, 300000);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 250000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CLOCK, 1200, &why), HEC_OK);
    assert_int_equal(setting(1).clock_mhz, 1200);
    assert_int_equal(hec_power_guard_clear(guard, &why), HEC_OK);
    assert_int_equal(setting(1).cap_mw, 456789);
    assert_int_equal(setting(1).clock_mhz, 0);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 200000, &why), HEC_OK);
    /* what a device does not take ends the lease, and leaves no half of it */
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 900000, &why), HEC_ERR_USAGE);
    assert_non_null(strstr(why.text, "200 W to 700 W"));
    assert_int_equal(setting(1).cap_mw, 456789);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 222000, &why), HEC_OK);
    why.text[0] = '\0';
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    assert_string_equal(why.text, "");
    assert_int_equal(setting(1).cap_mw, 456789);
}

TEST(somebody_elses_change_is_left_alone) {
    new_machine(500000);
    struct hec_power_guard *guard = open_on(machine_spec, NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    sim_state_write(machine_path, 0, &(struct sim_setting){650000, 0});
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    assert_non_null(strstr(why.text, "somebody has set 650 W"));
    assert_int_equal(setting(0).cap_mw, 650000);
    assert_int_equal(setting(1).cap_mw, 500000);
}

TEST(a_second_lease_is_refused_by_name) {
    char pid[24];
    new_machine(500000);
    struct hec_power_guard *first = open_on(machine_spec, "1"), *second = open_on(machine_spec, NULL);
    assert_int_equal(hec_power_guard_set(first, HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_set(second, HEC_POWER_CAP, 400000, &why), HEC_ERR_BUSY);
    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    assert_non_null(strstr(why.text, pid));
    assert_non_null(strstr(why.text, "test_power_guard"));
    assert_int_equal(setting(0).cap_mw, 500000); /* the one device that it could have had */
    assert_int_equal(setting(1).cap_mw, 300000);
    assert_int_equal(hec_power_guard_close(first, &why), HEC_OK);
    assert_int_equal(hec_power_guard_set(second, HEC_POWER_CAP, 400000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_close(second, &why), HEC_OK);
    assert_int_equal(setting(1).cap_mw, 500000);
}

TEST(without_rights_it_says_so) {
    struct hec_power_guard *guard;
    assert_int_equal(hec_power_guard_open(&(struct hec_power_options){0}, &guard, &why), HEC_ERR_PERMISSION);
    assert_non_null(strstr(why.text, "--allow-power"));
    guard = open_on("h200,norights", NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_ERR_PERMISSION);
    assert_non_null(strstr(why.text, "root"));
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    guard = open_on("h200,outside=350", NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 400000, &why), HEC_ERR_FAILED);
    assert_non_null(strstr(why.text, "from outside the driver"));
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_OK);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
}

/* What the guardian cannot open is said by the first reply, and nothing runs then. */
TEST(a_machine_that_cannot_be_opened_is_refused) {
    static const struct {
        const char *spec, *visible;
        int err;
        const char *says;
    } cases[] = {
        {"h300", NULL, HEC_ERR_USAGE, "h300"},
        {"h200,state=/nowhere/at/all", NULL, HEC_ERR_NOTFOUND, "/nowhere/at/all"},
        {"h200", "7", HEC_ERR_NOTFOUND, "no GPU whose limits could be set"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct hec_power_options options = {.simulated = cases[i].spec, .visible = cases[i].visible};
        struct hec_power_guard *guard = (struct hec_power_guard *)&why;
        why.text[0] = '\0';
        int err = hec_power_guard_open(&options, &guard, &why);
        if (err != cases[i].err || !strstr(why.text, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].spec, err, why.text);
        assert_null(guard);
    }
}

/* Whoever limits clocks already set something that could not be put back. */
TEST(clocks_that_are_limited_are_left_alone) {
    new_machine(700000);
    sim_state_write(machine_path, 0, &(struct sim_setting){700000, 1500});
    struct hec_power_guard *guard = open_on(machine_spec, "0");
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CLOCK, 1200, &why), HEC_ERR_BUSY);
    assert_int_equal(setting(0).clock_mhz, 1500);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
}

static pid_t run_lease(void (*what)(void)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        what();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return pid;
}

static void lease_and_leave(void) {
    struct hec_power_guard *guard = open_on(machine_spec, NULL);
    hec_power_guard_set(guard, HEC_POWER_CAP, 300000, NULL);
}

/* Without a word: the guardian sees that its client is gone, on a busy machine some time later. */
TEST(an_exit_ends_the_lease) {
    int left = 1;
    new_machine(432100);
    run_lease(lease_and_leave);
    for (int i = 0; i < 1000 && left; i++) {
        assert_true(hec_power_restore(&left, &said, NULL) >= 0); /* waits for a guardian that is putting back */
        if (left)
            usleep(10000);
    }
    assert_int_equal(left, 0);
    assert_int_equal(setting(0).cap_mw, 432100);
    assert_int_equal(setting(1).cap_mw, 432100);
}

/* What nobody put back: as after a power failure, with the boot's id in the file or another one. */
TEST(the_next_one_puts_back) {
    struct hec_power_entry entry = example();
    struct hec_power_machine machine;
    int left;
    for (int restarted = 0; restarted < 2; restarted++) {
        new_machine(611000);
        assert_int_equal(hec_power_machine_open(machine_spec, &machine, NULL), HEC_OK);
        memcpy(entry.machine, machine.name, sizeof entry.machine);
        memcpy(entry.boot, machine.boot, sizeof entry.boot);
        hec_power_machine_close(&machine);
        assert_int_equal(hec_power_journal_write(&entry, NULL), HEC_OK);
        sim_state_write(machine_path, 0, &(struct sim_setting){400000, 0});
        if (restarted)
            assert_int_equal(sim_state_restart(machine_path, &(struct sim_setting){700000, 0}), HEC_OK);
        hec_buf_clear(&said);
        assert_int_equal(hec_power_restore(&left, &said, NULL), !restarted);
        assert_int_equal(left, 0);
        assert_int_equal(setting(0).cap_mw, restarted ? 700000 : 613001);
        assert_false(there(&entry));
    }
    /* a simulated machine that is gone took its limits with it */
    assert_int_equal(hec_power_journal_write(&entry, NULL), HEC_OK);
    unlink(machine_path);
    assert_int_equal(hec_power_restore(&left, &said, NULL), 0);
    assert_int_equal(left, 0);
    assert_false(there(&entry));
}

TEST(a_damaged_journal_blocks_its_device) {
    struct hec_power_entry entry = example();
    struct hec_power_machine machine;
    char path[400], key[HEC_POWER_KEY];
    int left;
    new_machine(500000);
    assert_int_equal(hec_power_machine_open(machine_spec, &machine, NULL), HEC_OK);
    assert_int_equal(hec_power_entry_key(entry.uuid, machine.name, key), HEC_OK);
    hec_power_machine_close(&machine);
    snprintf(path, sizeof path, "%s/power-%s-cap.json", folder, key);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "{\"schema\": \"hec.power/1\"", 24), 24);
    close(fd);
    struct hec_power_guard *guard = open_on(machine_spec, NULL);
    assert_int_equal(hec_power_guard_set(guard, HEC_POWER_CAP, 300000, &why), HEC_ERR_CORRUPT);
    assert_non_null(strstr(why.text, path));
    assert_int_equal(setting(0).cap_mw, 500000);
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    assert_int_equal(hec_power_restore(&left, &said, NULL), 0);
    assert_int_equal(left, 1);
    assert_non_null(strstr(said.data, path));
    assert_int_equal(unlink(path), 0);
}

EACH_TEST(before_each, NULL)
ALL_TESTS(begin, folder_remove)
