/* The collector against a scripted driver under a virtual clock: every call advances the clock by what it costs. */
#include "base/clock.h"
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"
#include "tests/unit/kept.h"

#include <unistd.h>

#define MS HEC_NS_PER_MS
#define US HEC_NS_PER_US
#define START (1000 * HEC_NS_PER_S)
#define WALL_OFFSET (INT64_C(1700000000) * HEC_NS_PER_S)
#define PERIOD (INT64_C(99940) * US)
#define DEVICES 3

static struct {
    int64_t now, wall_step;
    int count;
    int64_t energy_cost, temperature_cost;
    int64_t lost_at[DEVICES]; /* 0: never */
    int64_t reset_at;
    int64_t fail_from, fail_to; /* utilisation fails in between */
    int history;                /* 1, 0: not supported */
    int instant;
    int64_t gpm_sampled[16];
    int gpm_samples;
    bool gpm_odd; /* metric 1 is not a number, 2 is absurd, 3 unsupported */
    int energy_calls;
    bool run_process;
    bool waits;        /* another process has a context and never runs */
    int xids[DEVICES]; /* that wait: n, n - 1 ... 1 */
    int sets;          /* of events, that exist */
    int register_code, wait_code;
} fake;

/* ---- the clock ---- */

static int64_t fake_mono(void) {
    return fake.now;
}

static int64_t fake_wall(void) {
    return fake.now + WALL_OFFSET + fake.wall_step;
}

static const struct hec_clock_source fake_clock = {fake_mono, fake_wall};

/* ---- the driver ---- */

static int index_of(hec_nvml_device device) {
    return (int)(intptr_t)device - 1;
}

static int spend(hec_nvml_device device, int64_t cost) {
    int i = index_of(device);
    fake.now += cost;
    return fake.lost_at[i] && fake.now >= fake.lost_at[i] ? HEC_NVML_GPU_IS_LOST : HEC_NVML_SUCCESS;
}

static int f_init(void) {
    return 0;
}
static int f_count(unsigned *count) {
    *count = (unsigned)fake.count;
    return 0;
}
static int f_by_index(unsigned index, hec_nvml_device *device) {
    *device = (hec_nvml_device)(intptr_t)(index + 1);
    return fake.lost_at[index] == 1 ? HEC_NVML_GPU_IS_LOST : 0;
}
static int f_name(hec_nvml_device device, char *name, unsigned length) {
    snprintf(name, length, "Fake %d", index_of(device));
    return 0;
}
static int f_uuid(hec_nvml_device device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-0000000%d-0000-0000-0000-000000000000", index_of(device));
    return 0;
}
static int f_energy(hec_nvml_device device, unsigned long long *energy) {
    int code = spend(device, fake.energy_cost / 2);
    int64_t since = fake.reset_at && fake.now >= fake.reset_at ? fake.reset_at : 0;
    *energy = (unsigned long long)((fake.now - since) / PERIOD * 30000);
    fake.now += fake.energy_cost / 2;
    fake.energy_calls++;
    return code;
}
static int f_samples(hec_nvml_device device, int type, unsigned long long last, int *value_type, unsigned *count,
                     struct hec_nvml_sample *samples) {
    (void)type;
    (void)last;
    int code = spend(device, 100 * US);
    if (!fake.history)
        return HEC_NVML_NOT_SUPPORTED;
    if (!samples) {
        *count = 120;
        return code;
    }
    *value_type = HEC_NVML_UNSIGNED;
    *count = 119;
    int64_t newest = fake.now / (20 * MS);
    for (int i = 0; i < 119; i++) { /* a ring: it does not begin with the oldest */
        int64_t at = (newest - (i * 8 + 3) % 119) * 20 * MS;
        samples[i].time_us = (unsigned long long)((at + WALL_OFFSET + fake.wall_step) / US);
        samples[i].value.as_unsigned = (unsigned)(at / (20 * MS) % 1000);
    }
    samples[5].time_us = 0; /* an unused slot */
    return code;
}
static int f_fields(hec_nvml_device device, int count, struct hec_nvml_field *fields) {
    int code = spend(device, 3 * US);
    for (int i = 0; i < count; i++) {
        fields[i].code = fields[i].id == HEC_NVML_FIELD_POWER_INSTANT && !fake.instant ? HEC_NVML_INVALID_ARGUMENT : 0;
        fields[i].value_type = HEC_NVML_UNSIGNED;
        fields[i].value.as_unsigned = 55;
    }
    return code;
}
static int f_usage(hec_nvml_device device, unsigned *power) {
    *power = 77000;
    return spend(device, 5 * US);
}
static int f_utilization(hec_nvml_device device, struct hec_nvml_utilization *utilization) {
    int code = spend(device, 10 * US);
    *utilization = (struct hec_nvml_utilization){37, 5};
    return fake.fail_from && fake.now >= fake.fail_from && fake.now < fake.fail_to ? HEC_NVML_UNKNOWN : code;
}
static int f_temperature(hec_nvml_device device, int sensor, unsigned *celsius) {
    (void)sensor;
    *celsius = 40;
    return spend(device, fake.temperature_cost);
}
static int f_processes(hec_nvml_device device, unsigned *count, struct hec_nvml_process *processes) {
    const unsigned pids[] = {(unsigned)getpid(), (unsigned)getppid()};
    *count = !fake.run_process ? 0 : fake.waits ? 2 : 1;
    for (unsigned i = 0; i < *count; i++)
        processes[i] = (struct hec_nvml_process){.pid = pids[i], .used_bytes = 1 << 20};
    return spend(device, 20 * US);
}
static int f_process_utilization(hec_nvml_device device, struct hec_nvml_process_utilization *samples, unsigned *count,
                                 unsigned long long last) {
    int code = spend(device, 20 * US);
    if (!fake.run_process)
        return HEC_NVML_NOT_FOUND;
    *count = 1;
    samples[0] = (struct hec_nvml_process_utilization){.pid = (unsigned)getpid(), .time_us = last + 1000, .sm = 50};
    return code;
}
static int f_gpm_support(hec_nvml_device device, struct hec_nvml_gpm_support *support) {
    support->supported = 1;
    return spend(device, 0);
}
static int f_gpm_alloc(hec_nvml_gpm_sample *sample) {
    *sample = (hec_nvml_gpm_sample)&fake.gpm_sampled[fake.gpm_samples++];
    return 0;
}
static int f_gpm_free(hec_nvml_gpm_sample sample) {
    (void)sample;
    fake.gpm_samples--;
    return 0;
}
static int f_gpm_get(hec_nvml_device device, hec_nvml_gpm_sample sample) {
    *(int64_t *)(void *)sample = fake.now;
    return spend(device, 35 * US);
}
/* As the real one: windows up to 100 ms give zeros and success. */
static int f_gpm_metrics(struct hec_nvml_gpm_metrics *request) {
    int64_t window = *(int64_t *)(void *)request->sample2 - *(int64_t *)(void *)request->sample1;
    for (unsigned i = 0; i < request->count; i++) {
        struct hec_nvml_gpm_metric *metric = &request->metrics[i];
        metric->code = 0;
        metric->value = window > 100 * MS ? 12.34 : 0;
        if (fake.gpm_odd && metric->id == 1)
            metric->value = __builtin_nan("");
        if (fake.gpm_odd && metric->id == 2)
            metric->value = 1e6;
        if (fake.gpm_odd && metric->id == 3)
            metric->code = HEC_NVML_INVALID_ARGUMENT;
    }
    return 0;
}

struct hec_nvml_event_set_opaque {
    hec_nvml_device device;
};
static int f_event_set_create(hec_nvml_event_set *set) {
    *set = calloc(1, sizeof **set);
    fake.sets++;
    return 0;
}
static int f_event_set_free(hec_nvml_event_set set) {
    free(set);
    fake.sets--;
    return 0;
}
static int f_event_register(hec_nvml_device device, unsigned long long types, hec_nvml_event_set set) {
    set->device = device;
    return types == HEC_NVML_EVENT_XID ? fake.register_code : HEC_NVML_INVALID_ARGUMENT;
}
static int f_event_wait(hec_nvml_event_set set, struct hec_nvml_event *event, unsigned timeout_ms) {
    assert_int_equal(timeout_ms, 0);
    int code = spend(set->device, 20 * US), *xids = &fake.xids[index_of(set->device)];
    if (*xids == 0)
        return code ? code : fake.wait_code ? fake.wait_code : HEC_NVML_TIMEOUT;
    *event = (struct hec_nvml_event){set->device, HEC_NVML_EVENT_XID, (unsigned)(*xids)--, 0, 0};
    return 0;
}

static struct hec_nvml full_table(void) {
    return (struct hec_nvml){.init = f_init,
                             .device_count = f_count,
                             .device_by_index = f_by_index,
                             .device_name = f_name,
                             .device_uuid = f_uuid,
                             .energy = f_energy,
                             .samples = f_samples,
                             .field_values = f_fields,
                             .power_usage = f_usage,
                             .utilization = f_utilization,
                             .temperature = f_temperature,
                             .compute_processes = f_processes,
                             .graphics_processes = f_processes,
                             .process_utilization = f_process_utilization,
                             .gpm_support = f_gpm_support,
                             .gpm_sample_alloc = f_gpm_alloc,
                             .gpm_sample_free = f_gpm_free,
                             .gpm_sample_get = f_gpm_get,
                             .gpm_metrics = f_gpm_metrics,
                             .event_set_create = f_event_set_create,
                             .event_set_free = f_event_set_free,
                             .event_register = f_event_register,
                             .event_wait = f_event_wait};
}

static int xids_of(int device) {
    int n = 0;
    for (int i = 0; i < kept.samples; i++)
        n += kept.sample[i].metric == HEC_GPU_XID && kept.sample[i].subject == device && kept.sample[i].value > 0;
    return n;
}

/* ---- driving it ---- */

static struct hec_nvml table;
static struct hec_observe_options options;
static void *collector;

static void begin(void) {
    struct hec_why why;
    if (nvml_observer_open(&table, &options, &keeping, &collector, &why) != HEC_OK)
        fail_msg("%s", why.text);
}

static void run_until(int64_t end) {
    while (fake.now < end) {
        int64_t next = hec_collector_nvml.poll(collector, fake.now);
        if (next > end)
            next = end;
        if (next > fake.now)
            fake.now = next;
    }
}

static void end(void) {
    hec_collector_nvml.finish(collector, fake.now);
    hec_collector_nvml.close(collector);
}

/* A whole run, so many seconds long. */
static void observe(int seconds) {
    begin();
    run_until(START + seconds * HEC_NS_PER_S);
    end();
}

static const struct hec_gpu_process *last_process(void) {
    return &kept.gpu_process[kept.gpu_processes - 1];
}

static int set_up(void **state) {
    (void)state;
    memset(&fake, 0, sizeof fake);
    kept_clear();
    memset(&options, 0, sizeof options);
    table = full_table();
    fake.now = START;
    fake.count = 1;
    fake.energy_cost = 4300 * US;
    fake.temperature_cost = 10 * US;
    fake.history = fake.instant = 1;
    hec_clock_set_source(&fake_clock);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    hec_clock_set_source(NULL);
    return 0;
}

TEST(test_steady_minute) {
    fake.run_process = true;
    observe(60);
    for (int i = 0; i < kept.events; i++)
        if (kept.event[i].kind != HEC_EVENT_NOTE)
            fail_msg("%s: %s", hec_event_name(kept.event[i].kind), kept.event[i].text);
    assert_string_equal(kept_device(0)->name, "Fake 0");
    assert_true(kept_device(0)->has_energy_counter && kept_device(0)->has_power_history && kept_device(0)->has_gpm);
    assert_int_equal(kept_device(0)->memory_kib, -1); /* this driver does not say */
    assert_true(kept_device(0)->visible);

    /* energy: few calls, and every value sits on its true edge */
    assert_true(fake.energy_calls < 110);
    int energies = kept_samples(HEC_GPU_ENERGY, 0);
    assert_true(energies >= 25 && energies == kept_samples(HEC_GPU_ENERGY_SLACK, 0));
    assert_true(kept_value(HEC_GPU_ENERGY_SLACK, 0) <= 25000);
    for (int i = 0; i + 1 < kept.samples; i++) {
        if (kept.sample[i].metric != HEC_GPU_ENERGY)
            continue;
        int64_t edge = kept.sample[i].value / 30000 * PERIOD, slack = kept.sample[i + 1].value * US;
        assert_int_equal(kept.sample[i + 1].metric, HEC_GPU_ENERGY_SLACK);
        assert_int_equal(kept.sample[i + 1].t_ns, kept.sample[i].t_ns);
        assert_true(edge <= kept.sample[i].t_ns && edge >= kept.sample[i].t_ns - slack);
    }
    /* state: once a second; no sensor that this driver lacks */
    assert_in_range(kept_samples(HEC_GPU_UTIL, 0), 60, 62);
    assert_int_equal(kept_value(HEC_GPU_UTIL, 0), 370);
    assert_int_equal(kept_value(HEC_GPU_MEM_UTIL, 0), 50);
    assert_int_equal(kept_samples(HEC_GPU_SM_CLOCK, 0) + kept_missing(HEC_GPU_SM_CLOCK), 0);
    assert_in_range(kept_samples(HEC_GPU_POWER_INSTANT, 0), 60, 62);
    assert_in_range(kept_samples(HEC_GPM_SM_ACTIVE, 0), 480, 500);
    assert_int_equal(kept_value(HEC_GPM_SM_ACTIVE, 0), 123);
    assert_int_equal(kept_value(HEC_GPM_PCIE_TX, 0), 12636);
    assert_int_equal(kept_value(HEC_GPU_CONTEXTS, 0), 1);
    assert_int_equal(last_process()->pid, getpid());
    assert_int_equal(last_process()->visible, 1);
    assert_int_equal(last_process()->sm_util_permille, 500);
    assert_int_equal(last_process()->memory_max_kib, 2048); /* in both lists: 2 x 1 MiB */
    assert_true(kept.gpu_processes <= 8);
    assert_int_equal(fake.gpm_samples, 0); /* all freed */
}

TEST(test_history_is_ordered_and_complete) {
    observe(10);
    int64_t last = INT64_MIN, gaps = 0;
    int n = 0;
    for (int i = 0; i < kept.samples; i++) {
        if (kept.sample[i].metric != HEC_GPU_POWER)
            continue;
        assert_true(kept.sample[i].t_ns > last);
        if (last != INT64_MIN)
            gaps += kept.sample[i].t_ns - last > 41 * MS;
        if (n == 0)
            assert_true(kept.sample[i].t_ns <= START - 2300 * MS); /* from before the start */
        assert_int_equal(kept.sample[i].value, kept.sample[i].t_ns / (20 * MS) % 1000);
        last = kept.sample[i].t_ns;
        n++;
    }
    assert_int_equal(gaps, 0);
    assert_in_range(n, 600, 620);
    assert_true(last > START + 10 * HEC_NS_PER_S - 50 * MS);
}

TEST(test_clock_step) {
    const int64_t steps[] = {3600 * HEC_NS_PER_S, -3600 * HEC_NS_PER_S, -300 * MS};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        set_up(NULL);
        begin();
        run_until(START + 5 * HEC_NS_PER_S);
        fake.wall_step = steps[s]; /* the fake driver stamps all its samples anew: a worst case */
        run_until(START + 10 * HEC_NS_PER_S);
        end();
        int64_t last = INT64_MIN;
        int after = 0;
        for (int i = 0; i < kept.samples; i++) {
            if (kept.sample[i].metric != HEC_GPU_POWER)
                continue;
            assert_true(kept.sample[i].t_ns > last && kept.sample[i].t_ns < START + 11 * HEC_NS_PER_S);
            last = kept.sample[i].t_ns;
            after += last > START + 7 * HEC_NS_PER_S;
        }
        assert_true(after > 140);
        assert_int_equal(kept_events(HEC_EVENT_NOTE), 1);
    }
}

TEST(test_reset) {
    fake.reset_at = START + 20 * HEC_NS_PER_S;
    observe(40);
    assert_int_equal(kept_events(HEC_EVENT_COUNTER_RESET), 1);
    assert_non_null(kept_event(HEC_EVENT_COUNTER_RESET, "went back from"));
    assert_true(kept_value(HEC_GPU_ENERGY, 0) < 30000 * 210);
    assert_true(kept_value(HEC_GPU_ENERGY_SLACK, 0) < 25000);
}

TEST(test_lost_device_leaves_the_others) {
    fake.count = 3;
    fake.lost_at[1] = START + 5 * HEC_NS_PER_S;
    fake.lost_at[2] = 1; /* already when it is opened */
    observe(20);
    assert_int_equal(kept_events(HEC_EVENT_DEVICE_LOST), 2);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
    assert_true(kept_samples(HEC_GPU_UTIL, 0) >= 20);
    assert_in_range(kept_samples(HEC_GPU_UTIL, 1), 4, 6);
    assert_int_equal(kept_samples(HEC_GPU_UTIL, 2), 0);
    assert_true(kept_samples(HEC_GPU_ENERGY, 1) > 0); /* what was held was not thrown away */
    assert_int_equal(kept_device(2)->uuid[0], '\0');
}

TEST(test_failing_sensor) {
    fake.fail_from = START + 10 * HEC_NS_PER_S;
    fake.fail_to = START + 20 * HEC_NS_PER_S;
    observe(40);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 1);
    assert_non_null(kept_event(HEC_EVENT_SENSOR_FAILED, "utilisation"));
    assert_in_range(kept_missing(HEC_GPU_UTIL), 3, 5); /* tried again after 1, 2, 4, 8 s, not every second */
    assert_int_equal(kept_missing(HEC_GPU_UTIL), kept_missing(HEC_GPU_MEM_UTIL));
    assert_true(kept_samples(HEC_GPU_UTIL, 0) >= 24); /* works again */
    assert_true(kept_samples(HEC_GPU_TEMPERATURE, 0) >= 40);
}

TEST(test_slow_call_is_reported_once) {
    begin();
    run_until(START + 5 * HEC_NS_PER_S);
    fake.temperature_cost = 600 * MS;
    run_until(START + 20 * HEC_NS_PER_S);
    end();
    assert_int_equal(kept_events(HEC_EVENT_DEVICE_SLOW), 1);
    assert_non_null(kept_event(HEC_EVENT_DEVICE_SLOW, "temperature took 600 ms"));
}

TEST(test_gpm_windows_are_never_short) {
    options.gpm_window_ns = 70 * MS;
    observe(10);
    assert_in_range(kept_samples(HEC_GPM_SM_ACTIVE, 0), 80, 99);
    assert_int_equal(kept_missing(HEC_GPM_SM_ACTIVE), 0);
    for (int i = 0; i < kept.samples; i++)
        if (kept.sample[i].metric == HEC_GPM_SM_ACTIVE)
            assert_int_equal(kept.sample[i].value, 123); /* never the zero of a short window */
}

TEST(test_odd_gpm_values) {
    fake.gpm_odd = true;
    observe(3);
    assert_int_equal(kept_samples(HEC_GPM_GR_ACTIVE, 0), 0);
    assert_true(kept_missing(HEC_GPM_GR_ACTIVE) > 10);
    assert_int_equal(kept_samples(HEC_GPM_SM_ACTIVE, 0), 0);
    assert_true(kept_missing(HEC_GPM_SM_ACTIVE) > 10);
    assert_int_equal(kept_samples(HEC_GPM_SM_OCCUPANCY, 0) + kept_missing(HEC_GPM_SM_OCCUPANCY), 0);
    assert_true(kept_samples(HEC_GPM_TENSOR_ACTIVE, 0) > 10);
}

TEST(test_power_without_history) {
    fake.history = 0;
    observe(10);
    assert_int_equal(kept_device(0)->has_power_history, 0);
    assert_in_range(kept_samples(HEC_GPU_POWER, 0), 190, 202);
    assert_int_equal(kept_samples(HEC_GPU_POWER_INSTANT, 0), 0);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "every 50 ms"));

    set_up(NULL);
    fake.history = fake.instant = 0;
    observe(10);
    assert_in_range(kept_samples(HEC_GPU_POWER, 0), 95, 102);
    assert_int_equal(kept_value(HEC_GPU_POWER, 0), 77000);
    assert_non_null(kept_event(HEC_EVENT_NOTE, "average"));
}

/* For an observer that never ends: one wake-up an interval for all devices and sensors, the counter read plainly, and no
 * process kept that is gone. */
TEST(test_paced) {
    fake.count = DEVICES;
    fake.run_process = true;
    fake.energy_cost = 30 * MS;
    options.interval_ns = HEC_NS_PER_S;
    begin();
    int polls = 0;
    for (int64_t next = fake.now; next < START + 20 * HEC_NS_PER_S + 500 * MS; polls++) {
        fake.now = next > fake.now ? next : fake.now;
        next = hec_collector_nvml.poll(collector, fake.now);
    }
    assert_int_equal(polls, 21);
    for (int device = 0; device < DEVICES; device++) {
        assert_int_equal(kept_samples(HEC_GPU_ENERGY, device), 21);
        assert_int_equal(kept_samples(HEC_GPU_POWER, device), 21);
        assert_int_equal(kept_samples(HEC_GPU_UTIL, device), 21);
        assert_int_equal(kept_samples(HEC_GPM_SM_ACTIVE, device), 20);
        assert_int_equal(kept_samples(HEC_GPU_POWER_INSTANT, device), 0);
    }
    assert_int_equal(kept_events(HEC_EVENT_NOTE), 0);
    assert_int_equal(fake.energy_calls, 21 * DEVICES);
    assert_int_equal(kept.gpu_processes, 21 * DEVICES);
    assert_true(last_process()->sm_util_samples > 10);
    assert_int_equal(last_process()->sm_util_sum_permille, 500 * last_process()->sm_util_samples);
    int64_t last = last_process()->last_ns;
    fake.run_process = false;
    run_until(START + 25 * HEC_NS_PER_S);
    assert_int_equal(kept.gpu_processes, 22 * DEVICES); /* gone: said once */
    assert_int_equal(last_process()->last_ns, last);
    assert_int_equal(kept_value(HEC_GPU_CONTEXTS, 0), 0);
    struct nvml_observer *observer = collector;
    assert_int_equal(observer->devices[0].processes.count, 0);
    fake.run_process = fake.waits =
        true; /* who the driver leaves out did not run: the last that is reported is that one */
    run_until(START + 36 * HEC_NS_PER_S);
    assert_int_equal(last_process()->pid, getppid());
    assert_int_equal(last_process()->sm_util_sum_permille, 0);
    assert_true(last_process()->sm_util_samples > 5);
    fake.run_process = false;
    run_until(START + 37 * HEC_NS_PER_S);
    fake.reset_at = fake.now;
    run_until(START + 39 * HEC_NS_PER_S);
    assert_int_equal(kept_events(HEC_EVENT_COUNTER_RESET), DEVICES);
    end();
}

/* Each is a sample, also where several came between two readings, and of a device that is lost in the same moment; else 0. */
TEST(test_xid) {
    fake.count = 2;
    fake.lost_at[1] = START + 10 * HEC_NS_PER_S + 100 * US;
    options.interval_ns = HEC_NS_PER_S;
    begin();
    run_until(START + 5 * HEC_NS_PER_S - 500 * MS);
    assert_int_equal(kept_samples(HEC_GPU_XID, 0), 5);
    assert_int_equal(kept_value(HEC_GPU_XID, 0), 0);
    fake.xids[0] = 3;
    run_until(START + 10 * HEC_NS_PER_S - 500 * MS);
    assert_int_equal(kept_samples(HEC_GPU_XID, 0), 12);
    assert_int_equal(xids_of(0), 3);
    assert_int_equal(kept_value(HEC_GPU_XID, 0), 0);
    assert_int_equal(xids_of(1), 0);
    fake.wait_code = HEC_NVML_UNKNOWN; /* of the set: it is made anew */
    fake.xids[1] = 2;
    run_until(START + 12 * HEC_NS_PER_S);
    assert_int_equal(xids_of(1), 2);
    assert_int_equal(kept_value(HEC_GPU_XID, 1), 1);
    assert_int_equal(kept_events(HEC_EVENT_DEVICE_LOST), 1);
    assert_true(kept_missing(HEC_GPU_XID) > 0);
    fake.wait_code = 0;
    fake.xids[0] = 7;
    run_until(START + 20 * HEC_NS_PER_S);
    assert_int_equal(xids_of(0), 10);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 1);
    end();
    assert_int_equal(fake.sets, 0);
}

/* A driver that refuses, or has no such events: missing, not 0. Nobody asks in a run. */
TEST(test_no_xids) {
    static const int refused[] = {0, HEC_NVML_NOT_SUPPORTED, HEC_NVML_NO_PERMISSION};
    for (int i = 0; i < 3; i++) {
        options.interval_ns = i ? HEC_NS_PER_S : 0;
        fake.register_code = refused[i];
        begin();
        run_until(fake.now + 5 * HEC_NS_PER_S);
        assert_int_equal(fake.sets, 0);
        end();
        assert_int_equal(kept_samples(HEC_GPU_XID, 0), 0);
        assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), refused[i] == HEC_NVML_NO_PERMISSION);
    }
}

static int f_memory_v1(hec_nvml_device device, struct hec_nvml_memory_v1 *memory) {
    (void)device;
    *memory = (struct hec_nvml_memory_v1){8 << 20, 5 << 20, 3 << 20};
    return HEC_NVML_SUCCESS;
}
static int f_memory_v2_refused(hec_nvml_device device, struct hec_nvml_memory_v2 *memory) {
    (void)device;
    (void)memory;
    return HEC_NVML_NOT_SUPPORTED;
}

/* A device for which the driver refuses the call that says it: reserved memory is missing, not 0. */
TEST(test_reserved_memory_unknown) {
    table.memory_v1 = f_memory_v1;
    table.memory_v2 = f_memory_v2_refused;
    fake.count = 1;
    options.interval_ns = HEC_NS_PER_S;
    begin();
    run_until(START + 12 * HEC_NS_PER_S);
    assert_int_equal(kept_value(HEC_GPU_MEM_USED, 0), 3 << 10);
    assert_int_equal(kept_value(HEC_GPU_MEM_FREE, 0), 5 << 10);
    assert_int_equal(kept_samples(HEC_GPU_MEM_RESERVED, 0), 0);
    end();
}

/* The four mandatory functions and nothing else. */
TEST(test_oldest_driver) {
    table = (struct hec_nvml){
        .init = f_init, .device_count = f_count, .device_by_index = f_by_index, .device_name = f_name};
    observe(5);
    assert_int_equal(kept.samples, 0);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
    assert_false(kept_device(0)->has_energy_counter || kept_device(0)->has_power_history || kept_device(0)->has_gpm);
}

static int unsupported_energy(hec_nvml_device device, unsigned long long *energy) {
    (void)device;
    (void)energy;
    return HEC_NVML_NOT_SUPPORTED;
}

TEST(test_energy_not_supported) {
    table.energy = unsupported_energy;
    observe(5);
    assert_int_equal(kept_device(0)->has_energy_counter, 0);
    assert_int_equal(kept_samples(HEC_GPU_ENERGY, 0) + kept_missing(HEC_GPU_ENERGY), 0);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
}

TEST(test_visible_devices) {
    fake.count = 3;
    options.visible_devices = "GPU-00000002,GPU-00000000";
    begin();
    end();
    assert_true(kept_device(0)->visible && !kept_device(1)->visible && kept_device(2)->visible);
}

static int no_driver(void) {
    return HEC_NVML_DRIVER_NOT_LOADED;
}

TEST(test_open_failures) {
    struct hec_why why;
    table.init = no_driver;
    assert_int_equal(nvml_observer_open(&table, &options, &keeping, &collector, &why), HEC_ERR_UNSUPPORTED);
    assert_string_equal(why.text, "the NVIDIA driver does not start: the NVIDIA driver is not loaded");
    table.init = f_init;
    fake.count = 0;
    assert_int_equal(nvml_observer_open(&table, &options, &keeping, &collector, &why), HEC_ERR_NOTFOUND);
    options.nvml_path = "/nonexistent/libnvidia-ml.so.1";
    assert_int_equal(hec_collector_nvml.open(&options, &keeping, &collector, &why), HEC_ERR_NOTFOUND);
}

EACH_TEST(set_up, tear_down)
