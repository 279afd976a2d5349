/* One device's limits through a driver that fails in each of its ways: what is returned, and what is said word for word; and the
 * levers that ask for them, on the simulated GPU. */
#include "act/power_device.h"
#include "act/power_levers.h"
#include "act/trials.h"
#include "sim/state.h"
#include "folder.h"
#include "sim_fixture.h"

#include <unistd.h>

#define DEVICES 3
#define SETTING 0x2 /* NVML's bit: clocks were set */

/* What each call of the driver returns, and what it says; limits and clocks in its units. */
static struct {
    int count, index, range, limit, enforced, set, max, lock, unlock, reasons;
    unsigned mw, holds_mw, mhz;
    unsigned long long bits;
    int lost; /* the device of this index cannot be opened */
    const char *name[DEVICES];
} driver;

static int devices_of(unsigned *count) {
    *count = DEVICES;
    return driver.count;
}
static int by_index(unsigned index, hec_nvml_device *device) {
    *device = (hec_nvml_device)&driver.name[index];
    return (int)index == driver.lost ? HEC_NVML_GPU_IS_LOST : driver.index;
}
static int name_of(hec_nvml_device device, char *name, unsigned length) {
    snprintf(name, length, "%s", *(const char **)device);
    return HEC_NVML_SUCCESS;
}
static int uuid_of(hec_nvml_device device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-%d", (int)((const char **)device - driver.name));
    return HEC_NVML_SUCCESS;
}
static int range_of(hec_nvml_device device, unsigned *least, unsigned *most) {
    (void)device;
    *least = 200000, *most = 700000;
    return driver.range;
}
static int limit_of(hec_nvml_device device, unsigned *mw) {
    (void)device;
    *mw = driver.mw;
    return driver.limit;
}
static int enforced_of(hec_nvml_device device, unsigned *mw) {
    (void)device;
    *mw = driver.holds_mw;
    return driver.enforced;
}
static int set_limit(hec_nvml_device device, unsigned mw) {
    (void)device;
    driver.mw = driver.set == HEC_NVML_SUCCESS ? mw : driver.mw;
    return driver.set;
}
static int max_of(hec_nvml_device device, int type, unsigned *mhz) {
    (void)device;
    assert_int_equal(type, HEC_NVML_CLOCK_SM);
    *mhz = 1980;
    return driver.max;
}
static int lock_clocks(hec_nvml_device device, unsigned least, unsigned most) {
    (void)device;
    assert_int_equal(least, most);
    driver.mhz = least;
    return driver.lock;
}
static int unlock_clocks(hec_nvml_device device) {
    (void)device;
    driver.mhz = 0;
    return driver.unlock;
}
static int reasons_of(hec_nvml_device device, unsigned long long *bits) {
    (void)device;
    *bits = driver.bits;
    return driver.reasons;
}

static struct hec_power_machine machine;
static struct hec_power_device device = {.name = "H200"};
static struct hec_why why;
static int64_t value;

static int begin(void **state) {
    (void)state;
    memset(&driver, 0, sizeof driver);
    driver.mw = driver.holds_mw = 500000;
    driver.lost = -1;
    driver.name[0] = driver.name[1] = driver.name[2] = "H200";
    why.text[0] = '\0';
    value = -1;
    machine = (struct hec_power_machine){.nvml = {.device_count = devices_of,
                                                  .device_by_index = by_index,
                                                  .device_name = name_of,
                                                  .device_uuid = uuid_of,
                                                  .power_limit_range = range_of,
                                                  .power_limit = limit_of,
                                                  .power_limit_enforced = enforced_of,
                                                  .power_limit_set = set_limit,
                                                  .clock_max = max_of,
                                                  .clocks_lock = lock_clocks,
                                                  .clocks_unlock = unlock_clocks,
                                                  .clocks_event_reasons = reasons_of}};
    return 0;
}

static void said(int err, int expected, const char *text) {
    if (err != expected || strcmp(why.text, text) != 0)
        fail_msg("%d \"%s\", not %d \"%s\"", err, why.text, expected, text);
    begin(NULL);
}

TEST(values_in_words) {
    static const struct {
        enum hec_power_knob knob;
        int64_t value;
        const char *words;
    } cases[] = {{HEC_POWER_CAP, 400000, "400 W"}, {HEC_POWER_CAP, 612345, "612.345 W"},
                 {HEC_POWER_CAP, 0, "0 W"},        {HEC_POWER_CLOCK, 1200, "1200 MHz"},
                 {HEC_POWER_CLOCK, 1, "1 MHz"},    {HEC_POWER_CLOCK, 0, "no lock"},
                 {HEC_POWER_CLOCK, -1, "no lock"}};
    char words[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hec_power_value_words(cases[i].knob, cases[i].value, words);
        assert_string_equal(words, cases[i].words);
    }
}

#define CHECK(knob, value) hec_power_device_check(&machine, &device, knob, value, &why)
#define READ(knob) hec_power_device_read(&machine, &device, knob, &value, &why)
#define WRITE(knob, value, enforced) hec_power_device_write(&machine, &device, knob, value, enforced, &why)

TEST(what_a_device_takes) {
    said(CHECK(HEC_POWER_CAP, 200000), HEC_OK, "");
    said(CHECK(HEC_POWER_CAP, 700000), HEC_OK, "");
    said(CHECK(HEC_POWER_CAP, 199999), HEC_ERR_USAGE, "199.999 W: the H200 takes 200 W to 700 W");
    said(CHECK(HEC_POWER_CAP, 700001), HEC_ERR_USAGE, "700.001 W: the H200 takes 200 W to 700 W");
    said(CHECK(HEC_POWER_CLOCK, 1), HEC_OK, "");
    said(CHECK(HEC_POWER_CLOCK, 1980), HEC_OK, "");
    said(CHECK(HEC_POWER_CLOCK, 0), HEC_ERR_USAGE, "no lock: the H200 takes 1 MHz to 1980 MHz");
    said(CHECK(HEC_POWER_CLOCK, 1981), HEC_ERR_USAGE, "1981 MHz: the H200 takes 1 MHz to 1980 MHz");
    driver.range = HEC_NVML_NOT_SUPPORTED;
    assert_int_equal(CHECK(HEC_POWER_CAP, 400000), HEC_ERR_UNSUPPORTED);
    assert_int_equal(CHECK(HEC_POWER_CLOCK, 1000), HEC_OK);
    driver.max = HEC_NVML_GPU_IS_LOST;
    assert_int_equal(CHECK(HEC_POWER_CLOCK, 1000), HEC_ERR_LOST);
    assert_int_equal(strncmp(why.text, "H200: ", 6), 0);
}

/* Each call that a driver may lack: what needs it says so, the other knob goes on. */
TEST(what_a_driver_lacks) {
    const struct {
        void **call;
        bool cap;
    } needs[] = {{(void **)&machine.nvml.power_limit_range, true}, {(void **)&machine.nvml.power_limit, true},
                 {(void **)&machine.nvml.power_limit_set, true},   {(void **)&machine.nvml.clock_max, false},
                 {(void **)&machine.nvml.clocks_lock, false},      {(void **)&machine.nvml.clocks_unlock, false}};
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        *needs[i].call = NULL;
        assert_int_equal(CHECK(needs[i].cap ? HEC_POWER_CLOCK : HEC_POWER_CAP, needs[i].cap ? 1000 : 400000), HEC_OK);
        said(CHECK(needs[i].cap ? HEC_POWER_CAP : HEC_POWER_CLOCK, needs[i].cap ? 400000 : 1000), HEC_ERR_UNSUPPORTED,
             needs[i].cap ? "the driver of the H200 cannot set power limits"
                          : "the driver of the H200 cannot lock clocks");
    }
    machine.nvml.power_limit = NULL;
    said(READ(HEC_POWER_CAP), HEC_ERR_UNSUPPORTED, "the driver of the H200 cannot read power limits");
    machine.nvml.clocks_event_reasons = NULL;
    said(READ(HEC_POWER_CLOCK), HEC_ERR_UNSUPPORTED,
         "the driver of the H200 cannot say whether its clocks are limited");
    machine.nvml.power_limit_enforced = NULL;
    assert_int_equal(WRITE(HEC_POWER_CAP, 400000, false), HEC_OK);
    said(WRITE(HEC_POWER_CAP, 400000, true), HEC_ERR_UNSUPPORTED,
         "the driver of the H200 cannot say which power limit holds");
    machine.nvml.power_limit_set = NULL;
    assert_int_equal(WRITE(HEC_POWER_CAP, 400000, true), HEC_ERR_UNSUPPORTED);
    machine.nvml.clocks_lock = NULL;
    assert_int_equal(WRITE(HEC_POWER_CLOCK, 1000, true), HEC_ERR_UNSUPPORTED);
}

TEST(what_is_set_is_read) {
    assert_int_equal(READ(HEC_POWER_CAP), HEC_OK);
    assert_int_equal(value, 500000);
    driver.limit = HEC_NVML_NO_PERMISSION;
    assert_int_equal(READ(HEC_POWER_CAP), HEC_ERR_PERMISSION);
    assert_int_equal(strncmp(why.text, "the power limit cannot be read: ", 32), 0);
    static const unsigned long long bits[] = {0, SETTING, 0x4, SETTING | 0x4};
    for (int i = 0; i < 4; i++) {
        driver.bits = bits[i];
        assert_int_equal(READ(HEC_POWER_CLOCK), HEC_OK);
        assert_int_equal(value, i & 1);
    }
    driver.reasons = HEC_NVML_GPU_IS_LOST;
    assert_int_equal(READ(HEC_POWER_CLOCK), HEC_ERR_LOST);
    assert_int_equal(strncmp(why.text, "why the clocks are limited cannot be read: ", 43), 0);
}

TEST(what_is_written_is_read_back) {
    driver.holds_mw = 400000;
    assert_int_equal(WRITE(HEC_POWER_CAP, 400000, true), HEC_OK);
    assert_int_equal(driver.mw, 400000);
    driver.holds_mw = 300000;
    assert_int_equal(WRITE(HEC_POWER_CAP, 400000, false), HEC_OK);
    said(WRITE(HEC_POWER_CAP, 400000, true), HEC_ERR_FAILED,
         "a limit from outside the driver holds the H200 at 300 W, not at 400 W");
    driver.enforced = HEC_NVML_NOT_SUPPORTED;
    assert_int_equal(WRITE(HEC_POWER_CAP, 400000, true), HEC_ERR_UNSUPPORTED);
    assert_int_equal(strncmp(why.text, "the power limit that holds cannot be read: ", 43), 0);
    driver.set = HEC_NVML_NO_PERMISSION;
    said(WRITE(HEC_POWER_CAP, 400000, true), HEC_ERR_PERMISSION,
         "the driver lets only the administrator change limits of the H200: run hec as root");
    driver.set = HEC_NVML_IN_USE;
    assert_int_equal(WRITE(HEC_POWER_CAP, 400000, true), HEC_ERR_BUSY);
    assert_int_equal(strncmp(why.text, "the H200 does not take 400 W: ", 30), 0);
    begin(NULL);
    assert_int_equal(WRITE(HEC_POWER_CLOCK, 1200, true), HEC_OK);
    assert_int_equal(driver.mhz, 1200);
    driver.unlock = HEC_NVML_NOT_SUPPORTED;
    assert_int_equal(WRITE(HEC_POWER_CLOCK, 1100, true), HEC_OK);
    assert_int_equal(WRITE(HEC_POWER_CLOCK, 0, true), HEC_ERR_UNSUPPORTED);
    assert_int_equal(driver.mhz, 0);
    assert_int_equal(strncmp(why.text, "the H200 does not take no lock: ", 32), 0);
    driver.reasons = HEC_NVML_GPU_IS_LOST;
    assert_int_equal(WRITE(HEC_POWER_CLOCK, 1200, true), HEC_ERR_LOST);
}

TEST(devices_are_found) {
    struct hec_power_device devices[HEC_POWER_DEVICES];
    assert_int_equal(hec_power_devices(&machine, NULL, devices, &why), 3);
    assert_int_equal(hec_power_devices(&machine, "2,0", devices, &why), 2);
    assert_string_equal(devices[0].uuid, "GPU-0");
    assert_string_equal(devices[1].uuid, "GPU-2");
    said(hec_power_devices(&machine, "", devices, &why), HEC_ERR_NOTFOUND, "no GPU whose limits could be set");
    assert_int_equal(hec_power_device_find(&machine, "GPU-1", &device, &why), HEC_OK);
    assert_string_equal(device.uuid, "GPU-1");
    said(hec_power_device_find(&machine, "GPU-7", &device, &why), HEC_ERR_NOTFOUND, "there is no device GPU-7 now");
    driver.lost = 1; /* nothing of it is asked for, and the others are there */
    assert_int_equal(hec_power_device_find(&machine, "GPU-1", &device, &why), HEC_ERR_NOTFOUND);
    assert_int_equal(hec_power_device_find(&machine, "GPU-2", &device, &why), HEC_OK);
    machine.nvml.device_uuid = NULL; /* of an old driver */
    assert_int_equal(hec_power_devices(&machine, NULL, devices, &why), 3);
    assert_string_equal(devices[0].uuid, "");
    assert_string_equal(devices[0].name, "H200");
    driver.count = HEC_NVML_DRIVER_NOT_LOADED;
    assert_int_equal(hec_power_devices(&machine, NULL, devices, &why), HEC_ERR_UNSUPPORTED);
    assert_int_equal(strncmp(why.text, "the devices cannot be counted: ", 31), 0);
    assert_int_equal(hec_power_device_find(&machine, "GPU-2", &device, &why), HEC_ERR_UNSUPPORTED);
}

static const char *nvml_of_system; /* in its place; NULL: the system's */
void *__real_dlopen(const char *name, int how);
void *__wrap_dlopen(const char *name, int how);
void *__wrap_dlopen(const char *name, int how) {
    return __real_dlopen(nvml_of_system && name && strstr(name, "nvidia-ml") ? nvml_of_system : name, how);
}

/* The boot of this machine is the kernel's; of one whose driver cannot be used nothing is open. */
TEST(this_machine) {
    char boot[64];
    struct hec_power_machine here;
    static const struct hec_power_machine nothing;
    make_world("h200x2");
    nvml_of_system = HEC_BINARY_DIR "/lib/hec/sim/libnvidia-ml.so.1";
    int before = open_files();
    if (hec_power_machine_open(NULL, &here, &why) != HEC_OK)
        fail_msg("%s", why.text);
    boot[file_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot - 1)] = '\0';
    assert_int_equal(strlen(boot), 37);
    boot[36] = '\0';
    assert_string_equal(here.boot, boot);
    assert_string_equal(here.name, "");
    assert_true(here.driver[0] >= '1' && here.driver[0] <= '9');
    assert_true(here.initialised && here.simulated);
    struct hec_power_device devices[HEC_POWER_DEVICES];
    assert_int_equal(hec_power_devices(&here, NULL, devices, &why), 2);
    hec_power_machine_close(&here);
    assert_memory_equal(&here, &nothing, sizeof here);
    nvml_of_system = "/nowhere/libnvidia-ml.so.1";
    memset(&here, 1, sizeof here);
    assert_true(hec_power_machine_open(NULL, &here, &why) < 0);
    assert_memory_equal(&here, &nothing, sizeof here);
    assert_true(why.text[0] != '\0');
    nvml_of_system = NULL;
    destroy_world(NULL);
    assert_true(open_files() <= before);
}

/* Numbers mean the same to CUDA and to the driver where the devices are alike, or CUDA_DEVICE_ORDER says so. */
TEST(numbers_of_devices_that_differ_are_refused) {
    struct hec_power_device devices[HEC_POWER_DEVICES];
    driver.name[2] = "L4";
    said(hec_power_devices(&machine, "0", devices, &why), HEC_ERR_USAGE,
         "CUDA_VISIBLE_DEVICES=0 means other devices to CUDA than to the driver where they differ: set "
         "CUDA_DEVICE_ORDER=PCI_BUS_ID, or name them by UUID");
    driver.name[2] = "L4";
    assert_int_equal(hec_power_devices(&machine, "GPU-2", devices, &why), 1);
    assert_string_equal(devices[0].name, "L4");
    assert_int_equal(hec_power_devices(&machine, NULL, devices, &why), 3);
    setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST", 1);
    assert_int_equal(hec_power_devices(&machine, "0", devices, &why), HEC_ERR_USAGE);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    assert_int_equal(hec_power_devices(&machine, "0", devices, &why), 1);
    unsetenv("CUDA_DEVICE_ORDER");
}

/* ---- levers ---- */

static struct hec_lever_set levers_of(const char *text) {
    struct hec_lever_set set = {.count = 0};
    assert_int_equal(hec_lever_set_add(&set, text, &why), HEC_OK);
    return set;
}

TEST(levers_of_devices) {
    struct hec_lever_set both = levers_of("threads=2,power_cap=400,clock=1500"), other = levers_of("threads=2,tf32");
    char words[32];
    assert_true(hec_power_levers_in(&both));
    assert_false(hec_power_levers_in(&other) || hec_power_levers_in(NULL));
    hec_power_lever_words(&both.list[1], words);
    assert_string_equal(words, "400 W");
    hec_power_lever_words(&both.list[2], words);
    assert_string_equal(words, "1500 MHz");
    assert_int_equal(hec_power_levers_set(NULL, &other, &why), HEC_OK);
    said(hec_power_levers_set(NULL, &both, &why), HEC_ERR_UNSUPPORTED,
         "power_cap: limits of devices are not changed here");
}

static char machine_path[64], machine_spec[128];

static struct sim_setting setting(void) {
    struct sim_setting found = {-1, -1};
    int fd = sim_state_attach(machine_path);
    sim_state_read(fd, 0, &found);
    close(fd);
    return found;
}

static int seen_mw, seen_mhz, meanwhile_mw; /* while the trial's command ran; then somebody sets meanwhile_mw */

static int measure(void *context, const struct hec_session *session, const struct hec_session_result *result,
                   struct hec_why *said_why) {
    (void)context, (void)session, (void)result, (void)said_why;
    seen_mw = setting().cap_mw, seen_mhz = setting().clock_mhz;
    if (meanwhile_mw)
        sim_state_write(machine_path, 0, &(struct sim_setting){meanwhile_mw, 0});
    return HEC_OK;
}

/* A trial is under its levers, what was there comes back after it, and under limits that somebody changed it is none. */
TEST_WITH(trials_are_under_their_levers, folder_make, folder_remove) {
    char *command[] = {"true", NULL}, boot[SIM_BOOT_SIZE];
    struct hec_trials_options options = {
        .session = hec_session_defaults(), .caches = HEC_CACHES_USER, .in_place = true};
    struct hec_lever_set levers = levers_of("power_cap=400,clock=1500"), wrong = levers_of("power_cap=900");
    struct hec_power_guard *guard;
    struct hec_trials *trials;
    struct hec_trial_end end;
    int fd;
    begin(NULL);
    setenv("HEC_STATE_DIR", folder, 1);
    setenv("TMPDIR", folder, 1);
    assert_int_equal(chmod(folder, 0700), 0);
    snprintf(machine_path, sizeof machine_path, "%s/machine", folder);
    snprintf(machine_spec, sizeof machine_spec, "h200,state=%s", machine_path);
    assert_int_equal(sim_state_open(machine_path, "h200", &(struct sim_setting){650000, 0}, &fd, boot, NULL), HEC_OK);
    close(fd);
    const struct hec_power_options power = {.simulated = machine_spec};
    assert_int_equal(hec_power_guard_open(&power, &guard, &why), HEC_OK);
    options.session.simulated = machine_spec;
    options.session.trace = HEC_TRACE_OFF;
    options.session.hooks = false;
    for (int guarded = 0; guarded < 2; guarded++) {
        options.guard = guarded ? guard : NULL;
        assert_int_equal(hec_trials_open(&options, &trials, &why), HEC_OK);
        seen_mw = 0;
        int err = hec_trials_run(trials, command, &levers, measure, NULL, &end, &why);
        assert_int_equal(err, guarded ? HEC_OK : HEC_ERR_UNSUPPORTED);
        assert_int_equal(seen_mw, guarded ? 400000 : 0); /* else it did not run */
        assert_int_equal(seen_mhz, guarded ? 1500 : 0);
        assert_int_equal(setting().cap_mw, 650000);
        assert_int_equal(setting().clock_mhz, 0);
        if (guarded) {
            seen_mw = 0;
            assert_int_equal(hec_trials_run(trials, command, &wrong, measure, NULL, &end, &why), HEC_ERR_USAGE);
            assert_string_equal(why.text, "900 W: the NVIDIA H200 takes 200 W to 700 W");
            assert_int_equal(seen_mw, 0);
            assert_int_equal(hec_trials_run(trials, command, NULL, measure, NULL, &end, &why), HEC_OK);
            assert_int_equal(seen_mw, 650000);
            meanwhile_mw = 333000;
            assert_int_equal(hec_trials_run(trials, command, &levers, measure, NULL, &end, &why), HEC_ERR_BUSY);
            assert_non_null(strstr(why.text, "somebody has set 333 W meanwhile"));
            assert_int_equal(setting().cap_mw, 333000);
        }
        hec_trials_close(trials);
    }
    assert_int_equal(hec_power_guard_close(guard, &why), HEC_OK);
    unsetenv("HEC_STATE_DIR");
    unsetenv("TMPDIR");
}

EACH_TEST(begin, NULL)
