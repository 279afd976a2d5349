/* The double of libnvidia-ml, loaded as a program loads NVIDIA's: through HEC's own binding, in virtual time. */
#include "driver/nvml.h"
#include "sim/ids.h"
#include "sim/nvml/abi.h"
#include "sim/sensor.h"
#include "tests/unit/sim_fixture.h"

#if __has_include(<nvml.h>)
#define HAVE_NVML_HEADER 1
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#endif

#include <dlfcn.h>
#include <limits.h>

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define DOUBLE_PATH HEC_BINARY_DIR "/" HEC_LIBDIR "/hec/"

static struct {
    struct hec_nvml nvml;
    hec_nvml_device device; /* the first */
    int64_t epoch;
} bench;

static void end(void) {
    if (!world)
        return;
    assert_int_equal(bench.nvml.shutdown(), 0);
    assert_int_equal(bench.nvml.shutdown(), SIM_NVML_UNINITIALIZED);
    hec_nvml_unload(&bench.nvml);
    memset(&bench, 0, sizeof bench);
    destroy_world(NULL);
}

/* A world with that description, bound and started, instead of the one before. */
static void begin(const char *text) {
    struct hec_why why = {""};
    char path[1024];
    end();
    make_world(text);
    snprintf(path, sizeof path, DOUBLE_PATH "%s", sim_spec_library(sim_world_spec(world)));
    if (hec_nvml_load(path, &bench.nvml, &why) != HEC_OK)
        fail_msg("%s", why.text);
    bench.epoch = sim_world_epoch_ns(world);
    assert_int_equal(bench.nvml.init(), 0);
    bench.nvml.device_by_index(0, &bench.device);
}

static int tear_down(void **state) {
    (void)state;
    end();
    return 0;
}
EACH_TEST(NULL, tear_down)

static int64_t at(int64_t since_ns) {
    sim_world_set_now_ns(world, bench.epoch + since_ns);
    return bench.epoch + since_ns;
}

static void work(int device, pid_t pid, enum sim_activity activity, int64_t duration_ns) {
    struct sim_piece pieces[2];
    int64_t now;
    assert_int_equal(sim_context_open(world, device, 0, pid, INT64_C(1) << 30, &now), HEC_OK);
    assert_true(sim_segment_append(world, device, pid, activity, now, duration_ns, pieces) > 0);
}

static void *symbol(const char *name) {
    void *found = dlsym(bench.nvml.library, name);
    if (!found)
        fail_msg("no symbol %s", name);
    return found;
}

#define SAME_SIZE(a, b) assert_int_equal(sizeof(a), sizeof(b))
#define SAME_OFFSET(a, member_a, b, member_b) assert_int_equal(offsetof(a, member_a), offsetof(b, member_b))

/* Two readings of nvml.h, made apart, agree. */
TEST(abi_agrees_with_the_binding) {
    SAME_SIZE(struct sim_nvml_pci, struct hec_nvml_pci);
    SAME_OFFSET(struct sim_nvml_pci, bus_id, struct hec_nvml_pci, bus_id);
    SAME_SIZE(struct sim_nvml_memory, struct hec_nvml_memory_v1);
    SAME_SIZE(struct sim_nvml_memory_v2, struct hec_nvml_memory_v2);
    SAME_OFFSET(struct sim_nvml_memory_v2, used, struct hec_nvml_memory_v2, used);
    assert_int_equal(SIM_NVML_VERSIONED(struct sim_nvml_memory_v2, 2), HEC_NVML_MEMORY_V2);
    SAME_SIZE(struct sim_nvml_utilization, struct hec_nvml_utilization);
    SAME_SIZE(struct sim_nvml_sample, struct hec_nvml_sample);
    SAME_SIZE(struct sim_nvml_field, struct hec_nvml_field);
    SAME_OFFSET(struct sim_nvml_field, ret, struct hec_nvml_field, code);
    SAME_OFFSET(struct sim_nvml_field, value, struct hec_nvml_field, value);
    SAME_SIZE(struct sim_nvml_process_v1, struct hec_nvml_process_v1);
    SAME_SIZE(struct sim_nvml_process_v2, struct hec_nvml_process);
    SAME_SIZE(struct sim_nvml_process_utilization, struct hec_nvml_process_utilization);
    SAME_OFFSET(struct sim_nvml_process_utilization, sm, struct hec_nvml_process_utilization, sm);
    SAME_SIZE(struct sim_nvml_gpm_metric, struct hec_nvml_gpm_metric);
    SAME_OFFSET(struct sim_nvml_gpm_metric, value, struct hec_nvml_gpm_metric, value);
    SAME_OFFSET(struct sim_nvml_gpm_metrics, metrics, struct hec_nvml_gpm_metrics, metrics);
    SAME_SIZE(struct sim_nvml_gpm_support, struct hec_nvml_gpm_support);
    SAME_SIZE(struct sim_nvml_attributes, struct hec_nvml_attributes);
    SAME_OFFSET(struct sim_nvml_attributes, memory_mib, struct hec_nvml_attributes, memory_mib);
    SAME_OFFSET(struct sim_nvml_attributes, gpu_instance_slices, struct hec_nvml_attributes, gpu_instance_slices);
    SAME_SIZE(struct sim_nvml_event, struct hec_nvml_event);
    SAME_OFFSET(struct sim_nvml_event, data, struct hec_nvml_event, data);
    assert_int_equal(SIM_NVML_EVENT_XID, HEC_NVML_EVENT_XID);
}

TEST(abi_agrees_with_the_real_header) {
#ifdef HAVE_NVML_HEADER
    SAME_SIZE(struct sim_nvml_pci, nvmlPciInfo_t);
    SAME_OFFSET(struct sim_nvml_pci, bus, nvmlPciInfo_t, bus);
    SAME_OFFSET(struct sim_nvml_pci, bus_id, nvmlPciInfo_t, busId);
    SAME_SIZE(struct sim_nvml_memory, nvmlMemory_t);
    SAME_OFFSET(struct sim_nvml_memory, used, nvmlMemory_t, used);
    SAME_SIZE(struct sim_nvml_memory_v2, nvmlMemory_v2_t);
    SAME_OFFSET(struct sim_nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
    assert_int_equal(SIM_NVML_VERSIONED(struct sim_nvml_memory_v2, 2), nvmlMemory_v2);
    SAME_SIZE(struct sim_nvml_utilization, nvmlUtilization_t);
    SAME_SIZE(struct sim_nvml_process_v1, nvmlProcessInfo_v1_t);
    SAME_SIZE(struct sim_nvml_process_v2, nvmlProcessInfo_v2_t);
    SAME_OFFSET(struct sim_nvml_process_v2, gpu_instance, nvmlProcessInfo_v2_t, gpuInstanceId);
    SAME_SIZE(struct sim_nvml_process_utilization, nvmlProcessUtilizationSample_t);
    SAME_OFFSET(struct sim_nvml_process_utilization, sm, nvmlProcessUtilizationSample_t, smUtil);
    SAME_SIZE(struct sim_nvml_process_utilization_info, nvmlProcessUtilizationInfo_v1_t);
    SAME_OFFSET(struct sim_nvml_process_utilization_info, sm, nvmlProcessUtilizationInfo_v1_t, smUtil);
    SAME_SIZE(struct sim_nvml_processes_utilization, nvmlProcessesUtilizationInfo_v1_t);
    assert_int_equal(SIM_NVML_VERSIONED(struct sim_nvml_processes_utilization, 1), nvmlProcessesUtilizationInfo_v1);
    SAME_SIZE(union sim_nvml_value, nvmlValue_t);
    SAME_SIZE(struct sim_nvml_sample, nvmlSample_t);
    SAME_OFFSET(struct sim_nvml_sample, value, nvmlSample_t, sampleValue);
    SAME_SIZE(struct sim_nvml_field, nvmlFieldValue_t);
    SAME_OFFSET(struct sim_nvml_field, ret, nvmlFieldValue_t, nvmlReturn);
    SAME_OFFSET(struct sim_nvml_field, value, nvmlFieldValue_t, value);
    SAME_SIZE(struct sim_nvml_temperature, nvmlTemperature_v1_t);
    assert_int_equal(SIM_NVML_VERSIONED(struct sim_nvml_temperature, 1), nvmlTemperature_v1);
    SAME_SIZE(struct sim_nvml_gpm_metric, nvmlGpmMetric_t);
    SAME_OFFSET(struct sim_nvml_gpm_metric, info, nvmlGpmMetric_t, metricInfo);
    SAME_OFFSET(struct sim_nvml_gpm_metrics, sample1, nvmlGpmMetricsGet_t, sample1);
    SAME_OFFSET(struct sim_nvml_gpm_metrics, metrics, nvmlGpmMetricsGet_t, metrics);
    SAME_SIZE(struct sim_nvml_gpm_support, nvmlGpmSupport_t);
    assert_int_equal(SIM_NVML_UNSIGNED_LONG_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
    assert_int_equal(SIM_NVML_UNSIGNED, NVML_VALUE_TYPE_UNSIGNED_INT);
    assert_int_equal(SIM_NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
    assert_int_equal(SIM_NVML_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
#else
    skip(); /* nvml.h is not installed */
#endif
}

TEST(newer_driver_exports_everything) {
    begin("h200,clock=virtual");
    static const char *const calls[] = {
#define SIM_CALL(name, since, cost_ns) #name,
#include "sim/nvml/calls.def"
#undef SIM_CALL
    };
    for (int i = 0; i < SIM_CALL_COUNT; i++)
        symbol(calls[i]);
    for (int i = 0; i < HEC_NVML_SYMBOL_COUNT; i++) /* HEC's binding finds all it knows */
        if (bench.nvml.version[i] == 0)
            fail_msg("the binding lacks row %d of driver/nvml_symbols.def", i);
    char text[64];
    assert_int_equal(bench.nvml.simulated(text, sizeof text), 0);
    assert_string_equal(text, "h200");
    assert_null(dlsym(bench.nvml.library, "sim_world_attach")); /* the model stays inside */
}

TEST(older_driver_lacks_what_it_lacked) {
    begin("h200,driver=450,clock=virtual");
    static const char *const later[] = {"nvmlDeviceGetMemoryInfo_v2",
                                        "nvmlGpmSampleGet",
                                        "nvmlGpmMetricsGet",
                                        "nvmlDeviceGetComputeRunningProcesses_v2",
                                        "nvmlDeviceGetComputeRunningProcesses_v3",
                                        "nvmlDeviceGetCurrentClocksEventReasons"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        assert_null(dlsym(bench.nvml.library, later[i]));
    assert_null(bench.nvml.memory_v2);
    assert_null(bench.nvml.gpm_sample_get);
    assert_null(bench.nvml.compute_processes);
    assert_non_null(bench.nvml.compute_processes_v1);
    assert_non_null(bench.nvml.clocks_event_reasons);
    char text[64];
    assert_int_equal(bench.nvml.driver_version(text, sizeof text), 0);
    assert_string_equal(text, "450.80.02");
    struct hec_nvml_field field = {.id = HEC_NVML_FIELD_POWER_INSTANT};
    assert_int_equal(bench.nvml.field_values(bench.device, 1, &field), 0);
    assert_int_equal(field.code, SIM_NVML_NOT_SUPPORTED);
    /* the first version of the process list has no instances: entries of 16 bytes */
    work(0, 11, SIM_GEMM_FP32, S);
    work(0, 12, SIM_GEMM_FP32, S);
    struct hec_nvml_process_v1 processes[2];
    unsigned count = 2;
    assert_int_equal(bench.nvml.compute_processes_v1(bench.device, &count, processes), 0);
    assert_int_equal(processes[0].pid, 11);
    assert_int_equal(processes[1].pid, 12);
    assert_int_equal(processes[1].used_bytes, 1 << 30);
}

TEST(describes_devices) {
    begin("h200x3,clock=virtual");
    unsigned count, value;
    char text[HEC_NVML_UUID_SIZE], uuid[SIM_UUID_SIZE];
    hec_nvml_device device, again;
    assert_int_equal(bench.nvml.device_count(&count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(bench.nvml.device_by_index(3, &device), SIM_NVML_INVALID_ARGUMENT);
    assert_int_equal(bench.nvml.device_by_index(2, &device), 0);
    assert_int_equal(bench.nvml.device_name(device, text, sizeof text), 0);
    assert_string_equal(text, "NVIDIA H200");
    assert_int_equal(bench.nvml.device_name(device, text, 5), SIM_NVML_INSUFFICIENT_SIZE);
    assert_int_equal(bench.nvml.device_uuid(device, text, sizeof text), 0);
    sim_uuid(2, uuid);
    assert_string_equal(text, uuid);
    int (*by_uuid)(const char *, hec_nvml_device *) = symbol("nvmlDeviceGetHandleByUUID");
    int (*by_bus)(const char *, hec_nvml_device *) = symbol("nvmlDeviceGetHandleByPciBusId_v2");
    assert_int_equal(by_uuid(text, &again), 0);
    assert_ptr_equal(device, again);
    assert_int_equal(by_uuid("GPU-nothing", &again), SIM_NVML_NOT_FOUND);
    struct hec_nvml_pci pci;
    assert_int_equal(bench.nvml.pci_info(device, &pci), 0);
    assert_string_equal(pci.bus_id, "00000000:28:00.0");
    assert_int_equal(pci.bus, 0x28);
    assert_int_equal(by_bus(pci.bus_id, &again), 0);
    assert_ptr_equal(device, again);
    assert_int_equal(bench.nvml.architecture(device, &value), 0);
    assert_int_equal(value, 9);
    struct hec_nvml_memory_v2 memory = {.version = HEC_NVML_MEMORY_V2};
    struct hec_nvml_memory_v1 memory_v1;
    work(2, 99, SIM_GEMM_FP32, S);
    assert_int_equal(bench.nvml.memory_v2(device, &memory), 0);
    assert_int_equal(bench.nvml.memory_v1(device, &memory_v1), 0);
    assert_int_equal(memory.used, 1 << 30);
    assert_int_equal(memory.total, memory.used + memory.free + memory.reserved);
    assert_int_equal(memory_v1.used, memory.used + memory.reserved);
    memory.version = 1;
    assert_int_equal(bench.nvml.memory_v2(device, &memory), SIM_NVML_ARGUMENT_VERSION_MISMATCH);
    /* handles are checked, as far as NVML checks them */
    assert_int_equal(bench.nvml.device_name((hec_nvml_device)&bench, text, sizeof text), SIM_NVML_INVALID_ARGUMENT);
    assert_int_equal(bench.nvml.device_name(NULL, text, sizeof text), SIM_NVML_INVALID_ARGUMENT);
}

TEST(needs_a_world) {
    begin("h200,clock=virtual");
    unsigned count;
    assert_int_equal(bench.nvml.init(), 0); /* counted */
    assert_int_equal(bench.nvml.shutdown(), 0);
    assert_int_equal(bench.nvml.device_count(&count), 0);
    assert_int_equal(bench.nvml.shutdown(), 0);
    assert_int_equal(bench.nvml.device_count(&count), SIM_NVML_UNINITIALIZED);
    char path[256];
    snprintf(path, sizeof path, "%s", getenv(SIM_WORLD_ENV));
    unsetenv(SIM_WORLD_ENV);
    assert_int_equal(bench.nvml.init(), SIM_NVML_DRIVER_NOT_LOADED);
    setenv(SIM_WORLD_ENV, path, 1);
    assert_int_equal(bench.nvml.init(), 0);
}

TEST(energy_and_fields) {
    begin("h200,clock=virtual");
    unsigned long long mj;
    unsigned mw;
    work(0, 1, SIM_GEMM_FP32, 10 * S);
    int64_t t = at(3 * S + 33 * MS);
    assert_int_equal(bench.nvml.energy(bench.device, &mj), 0);
    assert_int_equal(mj, sim_sensor_energy_mj(world, 0, t));
    struct hec_nvml_field fields[] = {{.id = 83}, {.id = 186}, {.id = 185}, {.id = 190}, {.id = 82}, {.id = 9999}};
    assert_int_equal(bench.nvml.field_values(bench.device, 6, fields), 0);
    assert_int_equal(fields[0].value.as_ulonglong, mj);
    assert_int_equal(fields[0].value_type, HEC_NVML_ULONGLONG);
    assert_int_equal(fields[0].time_us, (t + sim_world_wall_offset_ns(world)) / 1000);
    assert_int_equal(fields[1].value.as_unsigned, 652000);
    assert_int_equal(fields[2].value.as_unsigned, 652000);
    assert_int_equal(fields[3].value.as_unsigned, 700000);
    assert_int_equal(fields[4].code, 0);
    assert_int_equal(fields[5].code, SIM_NVML_NOT_SUPPORTED);
    assert_int_equal(bench.nvml.power_usage(bench.device, &mw), 0);
    assert_int_equal(mw, 652000);
    int (*set_limit)(hec_nvml_device, unsigned) = symbol("nvmlDeviceSetPowerManagementLimit");
    int (*range)(hec_nvml_device, unsigned *, unsigned *) = symbol("nvmlDeviceGetPowerManagementLimitConstraints");
    unsigned low, high;
    assert_int_equal(range(bench.device, &low, &high), 0);
    assert_int_equal(low, 200000);
    assert_int_equal(high, 700000);
    assert_int_equal(set_limit(bench.device, 199999), SIM_NVML_INVALID_ARGUMENT);
    assert_int_equal(set_limit(bench.device, 4000000000u), SIM_NVML_INVALID_ARGUMENT);
    assert_int_equal(set_limit(bench.device, 500000), 0);
    assert_int_equal(bench.nvml.power_limit_enforced(bench.device, &mw), 0);
    assert_int_equal(mw, 500000);
}

TEST(power_history) {
    begin("h200,clock=virtual");
    struct hec_nvml_sample samples[200];
    unsigned count = 0;
    int type = -1;
    at(10 * S + 7 * MS);
    assert_int_equal(bench.nvml.samples(bench.device, 0, 0, &type, &count, NULL), 0);
    assert_true(count >= SIM_HISTORY_LENGTH && count <= 200);
    count = 200;
    assert_int_equal(bench.nvml.samples(bench.device, 0, 0, &type, &count, samples), 0);
    assert_int_equal(type, HEC_NVML_UNSIGNED);
    assert_int_equal(count, SIM_HISTORY_LENGTH);
    for (unsigned i = 1; i < count; i++)
        assert_int_equal(samples[i].time_us - samples[i - 1].time_us, 20000);
    unsigned long long newest = samples[count - 1].time_us;
    assert_int_equal(newest, (bench.epoch + 10 * S + sim_world_wall_offset_ns(world)) / 1000);
    /* only what is newer */
    count = 200;
    assert_int_equal(bench.nvml.samples(bench.device, 0, newest, &type, &count, samples), SIM_NVML_NOT_FOUND);
    at(10 * S + 41 * MS);
    count = 200;
    assert_int_equal(bench.nvml.samples(bench.device, 0, newest, &type, &count, samples), 0);
    assert_int_equal(count, 2);
    assert_int_equal(samples[0].time_us, newest + 20000);
    /* no more than there is room for, the oldest first */
    count = 3;
    assert_int_equal(bench.nvml.samples(bench.device, 0, 0, &type, &count, samples), 0);
    assert_int_equal(count, 3);
    assert_true(samples[2].time_us < newest);
    count = 200;
    assert_int_equal(bench.nvml.samples(bench.device, 1, 0, &type, &count, samples), SIM_NVML_NOT_SUPPORTED);
    begin("h200,nopower,clock=virtual");
    count = 200;
    assert_int_equal(bench.nvml.samples(bench.device, 0, 0, &type, &count, samples), SIM_NVML_NOT_SUPPORTED);
}

static double metric(hec_nvml_gpm_sample a, hec_nvml_gpm_sample b, unsigned id, int expect) {
    struct hec_nvml_gpm_metrics metrics = {.version = 1, .count = 1, .sample1 = a, .sample2 = b};
    metrics.metrics[0].id = id;
    metrics.metrics[1].value = 12345; /* behind the count: not touched */
    assert_int_equal(bench.nvml.gpm_metrics(&metrics), 0);
    assert_int_equal(metrics.metrics[0].code, expect);
    assert_true(metrics.metrics[1].value == 12345);
    return metrics.metrics[0].value;
}

TEST(gpm_needs_more_than_100_ms) {
    begin("h200,clock=virtual");
    struct hec_nvml_gpm_support support = {.version = 1};
    assert_int_equal(bench.nvml.gpm_support(bench.device, &support), 0);
    assert_int_equal(support.supported, 1);
    hec_nvml_gpm_sample samples[4];
    const int64_t times[] = {1000, 1011, 1100, 1110};
    at(S);
    work(0, 1, SIM_TRAIN_FP32, 10 * S);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bench.nvml.gpm_sample_alloc(&samples[i]), 0);
        if (i == 0) { /* not taken yet */
            struct hec_nvml_gpm_metrics metrics = {
                .version = 1, .count = 1, .sample1 = samples[0], .sample2 = samples[0]};
            assert_int_equal(bench.nvml.gpm_metrics(&metrics), SIM_NVML_INVALID_ARGUMENT);
        }
        at(times[i] * MS);
        assert_int_equal(bench.nvml.gpm_sample_get(bench.device, samples[i]), 0);
    }
    for (int i = 1; i <= 2; i++) { /* 11 ms and 100 ms: success and nonsense */
        assert_true(isnan(metric(samples[0], samples[i], 2, 0)));
        assert_true(metric(samples[0], samples[i], 12, 0) == 0);
    }
    assert_true(fabs(metric(samples[0], samples[3], 2, 0) - 94) < 1e-9);
    assert_true(fabs(metric(samples[0], samples[3], 12, 0) - 72) < 1e-9);
    assert_true(fabs(metric(samples[0], samples[3], 21, 0) - 60) < 1e-9);
    assert_true(metric(samples[0], samples[3], 60, 0) == 0);
    metric(samples[0], samples[3], 248, SIM_NVML_INVALID_ARGUMENT);
    metric(samples[0], samples[3], 0, SIM_NVML_INVALID_ARGUMENT);
    for (int i = 0; i < 4; i++)
        assert_int_equal(bench.nvml.gpm_sample_free(samples[i]), 0);
    begin("a100,clock=virtual");
    assert_int_equal(bench.nvml.gpm_support(bench.device, &support), 0);
    assert_int_equal(support.supported, 0);
    bench.nvml.gpm_sample_alloc(&samples[0]);
    assert_int_equal(bench.nvml.gpm_sample_get(bench.device, samples[0]), SIM_NVML_NOT_SUPPORTED);
    bench.nvml.gpm_sample_free(samples[0]);
}

TEST(processes_and_their_utilisation) {
    begin("h200,clock=virtual");
    struct hec_nvml_process processes[2];
    struct hec_nvml_process_utilization used[8];
    unsigned count = 8;
    at(2 * S);
    assert_int_equal(bench.nvml.process_utilization(bench.device, used, &count, 0), SIM_NVML_NOT_FOUND);
    count = 0;
    assert_int_equal(bench.nvml.compute_processes(bench.device, &count, NULL), 0);
    work(0, 71, SIM_GEMM_FP32, 500 * MS);
    work(0, 72, SIM_WAIT_DATA, 100 * MS);
    work(0, 73, SIM_ELEMENTWISE, 200 * MS);
    count = 2;
    assert_int_equal(bench.nvml.compute_processes(bench.device, &count, processes), SIM_NVML_INSUFFICIENT_SIZE);
    assert_int_equal(count, 3);
    at(3 * S + MS);
    count = 8;
    assert_int_equal(bench.nvml.process_utilization(bench.device, used, &count, 0), 0);
    assert_int_equal(count, 2); /* who only waited is not listed */
    assert_int_equal(used[0].pid, 71);
    assert_int_equal(used[0].sm, 50);
    assert_int_equal(used[1].pid, 73);
    assert_int_equal(used[1].sm, 20);
    unsigned long long seen = used[0].time_us;
    count = 8;
    assert_int_equal(bench.nvml.process_utilization(bench.device, used, &count, seen), SIM_NVML_NOT_FOUND);
    struct hec_nvml_utilization utilization;
    at(2 * S);
    assert_int_equal(bench.nvml.utilization(bench.device, &utilization), 0);
    count = 8;
    assert_int_equal(bench.nvml.graphics_processes(bench.device, &count, processes), 0);
    assert_int_equal(count, 0);
}

TEST(mig_divides_the_first_device) {
    begin("h200x2,mig=1,clock=virtual");
    unsigned current, pending, id, count = 8;
    hec_nvml_device mig, other;
    char text[HEC_NVML_UUID_SIZE];
    unsigned long long mj;
    assert_int_equal(bench.nvml.mig_mode(bench.device, &current, &pending), 0);
    assert_int_equal(current, 1);
    bench.nvml.device_by_index(1, &other);
    assert_int_equal(bench.nvml.mig_mode(other, &current, &pending), 0);
    assert_int_equal(current, 0);
    assert_int_equal(bench.nvml.mig_by_index(other, 0, &mig), SIM_NVML_NOT_FOUND);
    assert_int_equal(bench.nvml.mig_by_index(bench.device, 2, &mig), SIM_NVML_NOT_FOUND);
    assert_int_equal(bench.nvml.mig_by_index(bench.device, 1, &mig), 0);
    assert_int_equal(bench.nvml.device_uuid(mig, text, sizeof text), 0);
    assert_int_equal(strncmp(text, "MIG-", 4), 0);
    assert_int_equal(bench.nvml.gpu_instance_id(mig, &id), 0);
    assert_int_equal(id, 2);
    assert_int_equal(bench.nvml.energy(mig, &mj), SIM_NVML_NOT_SUPPORTED);
    assert_int_equal(bench.nvml.energy(bench.device, &mj), 0);
    int (*parent)(hec_nvml_device, hec_nvml_device *) = symbol("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    assert_int_equal(parent(mig, &other), 0);
    assert_ptr_equal(other, bench.device);
    int64_t now;
    assert_int_equal(sim_context_open(world, 0, 1, 55, 1 << 20, &now), HEC_OK);
    struct hec_nvml_process processes[8];
    assert_int_equal(bench.nvml.compute_processes(bench.device, &count, processes), 0);
    assert_int_equal(count, 1);
    assert_int_equal(processes[0].gpu_instance, 2);
    bench.nvml.mig_by_index(bench.device, 0, &mig);
    assert_int_equal(bench.nvml.compute_processes(mig, &count, processes), 0);
    assert_int_equal(count, 0);
    /* counters by instance */
    int (*mig_sample)(hec_nvml_device, unsigned, hec_nvml_gpm_sample) = symbol("nvmlGpmMigSampleGet");
    struct sim_piece pieces[2];
    sim_segment_append(world, 0, 55, SIM_GEMM_FP32, now, S, pieces);
    for (unsigned instance = 1; instance <= 2; instance++) {
        hec_nvml_gpm_sample a, b;
        bench.nvml.gpm_sample_alloc(&a);
        bench.nvml.gpm_sample_alloc(&b);
        assert_int_equal(bench.nvml.gpm_sample_get(bench.device, a), SIM_NVML_NOT_SUPPORTED);
        at(instance * 200 * MS);
        assert_int_equal(mig_sample(bench.device, instance, a), 0);
        at(instance * 200 * MS + 150 * MS);
        assert_int_equal(mig_sample(bench.device, instance, b), 0);
        assert_true(fabs(metric(a, b, 2, 0) - (instance == 2 ? 98 : 0)) < 1e-9);
        assert_int_equal(mig_sample(bench.device, 3, b), SIM_NVML_INVALID_ARGUMENT);
        bench.nvml.gpm_sample_free(a);
        bench.nvml.gpm_sample_free(b);
    }
}

/* Under a lower limit less is read of memory, by a device and by its instances alike. */
TEST(gpm_traffic_goes_with_the_pace) {
    static const char *const machines[] = {"h200,cap=300,clock=virtual", "h200,cap=300,mig=7g,clock=virtual"};
    double pace = 1;
    for (unsigned divided = 0; divided < 2; divided++) {
        begin(machines[divided]);
        int (*mig_sample)(hec_nvml_device, unsigned, hec_nvml_gpm_sample) = symbol("nvmlGpmMigSampleGet");
        const struct sim_counters *row = &sim_activity_info(SIM_ELEMENTWISE)->counters;
        struct sim_active from, to;
        hec_nvml_gpm_sample samples[2];
        work(0, 60, SIM_ELEMENTWISE, 2 * S);
        if (!divided)
            pace = 1e9 / (double)sim_segment_lasts_ns(world, 0, SIM_ELEMENTWISE, at(S), S);
        for (int i = 0; i < 2; i++) {
            int64_t now = at(S + i * 200 * MS);
            bench.nvml.gpm_sample_alloc(&samples[i]);
            assert_int_equal(divided ? mig_sample(bench.device, 1, samples[i])
                                     : bench.nvml.gpm_sample_get(bench.device, samples[i]),
                             0);
            sim_world_active(world, 0, now, i ? &to : &from);
        }
        assert_true(pace < 0.9);
        assert_true(fabs(metric(samples[0], samples[1], 10, 0) - row->dram * pace / 10) < 1e-3);
        assert_true(fabs(metric(samples[0], samples[1], 2, 0) - row->sm / 10) < 1e-9);
        struct sim_active whole = sim_active_between(&from, &to);
        assert_true(fabs((double)whole.work_ns[SIM_ELEMENTWISE] / (double)whole.ns[SIM_ELEMENTWISE] - pace) < 1e-5);
        assert_int_equal(whole.work_ns[SIM_CONTEXT], whole.ns[SIM_CONTEXT]);
        for (int i = 0; i < 2; i++)
            bench.nvml.gpm_sample_free(samples[i]);
    }
}

/* Two instances that work at the same time: each adds its part, which goes by SMs, and shows its own counters and memory. */
TEST(instances_work_side_by_side) {
    begin("h200,mig=3g+1g,clock=virtual");
    static const double parts[] = {60.0 / 132, 16.0 / 132};
    static const enum sim_activity does[] = {SIM_TRAIN_BF16, SIM_GEMM_FP32};
    hec_nvml_device mig[2];
    struct hec_nvml_attributes attributes;
    struct hec_nvml_utilization utilization;
    struct hec_nvml_memory_v2 memory = {.version = HEC_NVML_MEMORY_V2};
    struct sim_piece pieces[2];
    char text[HEC_NVML_NAME_SIZE];
    unsigned percent, period;
    int64_t now, nj = 0;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(bench.nvml.mig_by_index(bench.device, i, &mig[i]), 0);
        assert_int_equal(bench.nvml.device_name(mig[i], text, sizeof text), 0);
        assert_string_equal(text, i ? "NVIDIA H200 MIG 1g.18gb" : "NVIDIA H200 MIG 3g.71gb");
        assert_int_equal(bench.nvml.attributes(mig[i], &attributes), 0);
        assert_int_equal(attributes.gpu_instance_slices, i ? 1 : 3);
        assert_int_equal(attributes.memory_mib, i ? 17971 : 71885);
        assert_int_equal(sim_context_open(world, 0, (int)i, 50 + (int)i, INT64_C(1) << (30 + i), &now), HEC_OK);
        assert_int_equal(bench.nvml.memory_v2(mig[i], &memory), 0);
        assert_int_equal(memory.used, 1ull << (30 + i));
    }
    nj = sim_world_energy_nj(world, 0, now);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sim_segment_append(world, 0, 50 + i, does[i], now, S, pieces), 1);
        int32_t above = sim_activity_power_mw(sim_world_profile(world), does[i]) - 120000;
        assert_in_range(pieces[0].power_mw, 120000 + (int)(above * parts[i]) - 1, 120000 + (int)(above * parts[i]) + 1);
    }
    assert_int_equal(pieces[0].start_ns, now); /* it does not wait for the other */
    at(now - sim_world_epoch_ns(world) + S);
    nj = sim_world_energy_nj(world, 0, now + S) - nj;
    assert_true(fabs((double)nj * 1e-9 - 120 - 278 * parts[0] - 532 * parts[1]) < 0.001);
    assert_int_equal(bench.nvml.utilization(bench.device, &utilization), SIM_NVML_NOT_SUPPORTED);
    assert_int_equal(bench.nvml.encoder_utilization(bench.device, &percent, &period), SIM_NVML_NOT_SUPPORTED);
    assert_int_equal(bench.nvml.attributes(bench.device, &attributes), SIM_NVML_NOT_SUPPORTED);
    assert_int_equal(sim_context_close(world, 0, 50, &now), HEC_OK);
    struct sim_active active;
    sim_world_instance_active(world, 0, 0, now, &active);
    assert_int_equal(active.ns[SIM_TRAIN_BF16], S);
    assert_int_equal(active.ns[SIM_CONTEXT], 0);
    sim_world_instance_active(world, 0, 1, now, &active);
    assert_int_equal(active.ns[SIM_GEMM_FP32], S);
}

TEST(faults_show) {
    begin("h200x2,lost@2,reset@3:1,fail=nvmlDeviceGetClockInfo@1,hang=nvmlDeviceGetTemperature@4,"
          "clock=virtual");
    unsigned value;
    unsigned long long before, after;
    hec_nvml_device second;
    bench.nvml.device_by_index(1, &second);
    assert_int_equal(bench.nvml.clock(bench.device, HEC_NVML_CLOCK_SM, &value), 0);
    at(S);
    assert_int_equal(bench.nvml.clock(bench.device, HEC_NVML_CLOCK_SM, &value), SIM_NVML_UNKNOWN);
    at(2 * S);
    assert_int_equal(bench.nvml.power_usage(bench.device, &value), SIM_NVML_GPU_IS_LOST);
    assert_int_equal(bench.nvml.device_by_index(0, &bench.device), SIM_NVML_GPU_IS_LOST);
    assert_int_equal(bench.nvml.device_count(&value), 0);
    assert_int_equal(value, 2);
    assert_int_equal(bench.nvml.power_usage(second, &value), 0); /* the others go on */
    assert_int_equal(bench.nvml.energy(second, &before), 0);
    at(3 * S);
    assert_int_equal(bench.nvml.energy(second, &after), 0);
    assert_true(after < before);
    at(4 * S);
    assert_int_equal(bench.nvml.temperature(second, 0, &value), SIM_NVML_TIMEOUT);
}

/* One set of both devices: each XID once and in order, none from before the registration, and what says why before the loss. */
TEST(xids_are_events) {
    begin("h200x2,xid=13@1,xid=79@4:1,xid=31@3,lost@5:1,clock=virtual");
    hec_nvml_device second;
    hec_nvml_event_set set;
    struct hec_nvml_event event;
    bench.nvml.device_by_index(1, &second);
    assert_int_equal(bench.nvml.event_set_create(&set), 0);
    assert_int_equal(bench.nvml.event_register(bench.device, 1, set), SIM_NVML_NOT_SUPPORTED);
    at(2 * S);
    assert_int_equal(bench.nvml.event_register(bench.device, HEC_NVML_EVENT_XID, set), 0);
    assert_int_equal(bench.nvml.event_register(second, HEC_NVML_EVENT_XID, set), 0);
    assert_int_equal(bench.nvml.event_wait(set, &event, 0), SIM_NVML_TIMEOUT);
    at(6 * S);
    assert_int_equal(bench.nvml.event_wait(set, &event, 0), 0);
    assert_ptr_equal(event.device, bench.device);
    assert_int_equal(event.data, 31);
    assert_int_equal(event.gpu_instance, UINT_MAX);
    assert_int_equal(bench.nvml.event_wait(set, &event, 0), 0);
    assert_ptr_equal(event.device, second);
    assert_int_equal(event.type, HEC_NVML_EVENT_XID);
    assert_int_equal(event.data, 79);
    assert_int_equal(bench.nvml.event_wait(set, &event, 0), SIM_NVML_GPU_IS_LOST);
    assert_int_equal(bench.nvml.event_set_free(set), 0);
}

TEST(pascal_has_no_counter) {
    begin("p100,clock=virtual");
    unsigned long long mj;
    unsigned mw;
    char text[64];
    assert_int_equal(bench.nvml.energy(bench.device, &mj), SIM_NVML_NOT_SUPPORTED);
    assert_int_equal(bench.nvml.power_usage(bench.device, &mw), 0);
    assert_int_equal(mw, 31000);
    bench.nvml.simulated(text, sizeof text);
    assert_non_null(strstr(text, "not measured"));
}

/* In real time, calls take at least what they cost. */
TEST(calls_cost_time) {
    begin("h200,slow=nvmlDeviceGetPowerUsage:30");
    unsigned value;
    unsigned long long mj;
    int64_t t0 = sim_world_now_ns(world);
    assert_int_equal(bench.nvml.energy(bench.device, &mj), 0);
    int64_t t1 = sim_world_now_ns(world);
    assert_true(t1 - t0 >= 4300000);
    assert_int_equal(bench.nvml.power_usage(bench.device, &value), 0);
    assert_true(sim_world_now_ns(world) - t1 >= 30 * MS);
}
