/* MIG devices that come and go, against a scripted driver under a virtual clock. */
#include "base/clock.h"
#include "observe/nvml/internal.h"
#include "observe/nvml/tuning.h"
#include "tests/unit/kept.h"

#include <limits.h>
#include <unistd.h>

#define START (1000 * HEC_NS_PER_S)
#define SLOTS 4
#define WHOLE ((hec_nvml_device)(intptr_t)100)

/* Slot i holds the MIG device of GPU instance id[i] (0: empty), as compute instance compute[i]. */
static struct {
    int64_t now;
    unsigned mig;
    unsigned id[SLOTS], compute[SLOTS];
    bool names, attributes;
    int gpm_code, list_code, samples, sampled;
    unsigned pid_in; /* GPU instance of the one process */
} fake;

static int64_t fake_mono(void) {
    return fake.now;
}
static const struct hec_clock_source fake_clock = {fake_mono, fake_mono};

static unsigned slot_of(hec_nvml_device mig) {
    return (unsigned)((intptr_t)mig - 1);
}
static int f_init(void) {
    return 0;
}
static int f_count(unsigned *count) {
    *count = 1;
    return 0;
}
static int f_by_index(unsigned index, hec_nvml_device *device) {
    (void)index;
    *device = WHOLE;
    return 0;
}
static int f_name(hec_nvml_device device, char *name, unsigned length) {
    if (device == WHOLE || !fake.names)
        snprintf(name, length, "NVIDIA H200 141GB HBM3e");
    else
        snprintf(name, length, "NVIDIA H200 MIG %s%ug.18gb", fake.compute[slot_of(device)] ? "1c." : "",
                 fake.id[slot_of(device)]);
    return 0;
}
static int f_uuid(hec_nvml_device device, char *uuid, unsigned length) {
    if (device == WHOLE)
        snprintf(uuid, length, "GPU-0");
    else
        snprintf(uuid, length, "MIG-%u-%u", fake.id[slot_of(device)], fake.compute[slot_of(device)]);
    return 0;
}
static int f_mode(hec_nvml_device device, unsigned *current, unsigned *pending) {
    (void)device;
    *current = *pending = fake.mig;
    return 0;
}
static int f_max(hec_nvml_device device, unsigned *count) {
    (void)device;
    *count = SLOTS;
    return 0;
}
static int f_mig(hec_nvml_device device, unsigned slot, hec_nvml_device *mig) {
    (void)device;
    *mig = (hec_nvml_device)(intptr_t)(slot + 1);
    return fake.id[slot] ? 0 : HEC_NVML_NOT_FOUND;
}
static int f_gi(hec_nvml_device mig, unsigned *id) {
    *id = fake.id[slot_of(mig)];
    return 0;
}
static int f_ci(hec_nvml_device mig, unsigned *id) {
    *id = fake.compute[slot_of(mig)];
    return 0;
}
static int f_attributes(hec_nvml_device mig, struct hec_nvml_attributes *attributes) {
    *attributes = (struct hec_nvml_attributes){.gpu_instance_slices = fake.id[slot_of(mig)], .memory_mib = 16384};
    return fake.attributes ? 0 : HEC_NVML_NOT_SUPPORTED;
}
static int f_memory(hec_nvml_device device, struct hec_nvml_memory_v2 *memory) {
    memory->used = (device == WHOLE ? 50ull : 10ull * fake.id[slot_of(device)]) << 20;
    memory->free = 1 << 20;
    memory->reserved = 1 << 10;
    return 0;
}
static int f_alloc(hec_nvml_gpm_sample *sample) {
    *sample = calloc(1, sizeof(unsigned));
    fake.samples++;
    return 0;
}
static int f_free(hec_nvml_gpm_sample sample) {
    free(sample);
    fake.samples--;
    return 0;
}
static int f_sample(hec_nvml_device device, unsigned id, hec_nvml_gpm_sample sample) {
    assert_ptr_equal(device, WHOLE);
    *(unsigned *)(void *)sample = id;
    fake.sampled++;
    for (int i = 0; i < SLOTS; i++)
        if (fake.id[i] == id)
            return fake.gpm_code;
    return HEC_NVML_INVALID_ARGUMENT;
}
static int f_metrics(struct hec_nvml_gpm_metrics *request) {
    assert_int_equal(*(unsigned *)(void *)request->sample1, *(unsigned *)(void *)request->sample2);
    for (unsigned i = 0; i < request->count; i++) {
        request->metrics[i].code = request->metrics[i].id == 20 ? HEC_NVML_NOT_SUPPORTED : 0;
        request->metrics[i].value = 10.0 * *(unsigned *)(void *)request->sample1;
    }
    return 0;
}
static int f_processes(hec_nvml_device device, unsigned *count, struct hec_nvml_process *processes) {
    bool here = device == WHOLE || fake.id[slot_of(device)] == fake.pid_in;
    *count = here && fake.pid_in;
    processes[0] = (struct hec_nvml_process){(unsigned)getpid(), 1 << 20, fake.pid_in, 0};
    return device == WHOLE ? fake.list_code : 0;
}

static struct hec_observe_options options = {.interval_ns = HEC_NS_PER_S};
static void *collector;

static int set_up(void **state) {
    (void)state;
    memset(&fake, 0, sizeof fake);
    kept_clear();
    fake.now = START;
    fake.mig = 1;
    fake.names = fake.attributes = true;
    hec_clock_set_source(&fake_clock);
    struct hec_nvml table = {.init = f_init,
                             .device_count = f_count,
                             .device_by_index = f_by_index,
                             .device_name = f_name,
                             .device_uuid = f_uuid,
                             .memory_v2 = f_memory,
                             .compute_processes = f_processes,
                             .mig_mode = f_mode,
                             .mig_max_count = f_max,
                             .mig_by_index = f_mig,
                             .gpu_instance_id = f_gi,
                             .compute_instance_id = f_ci,
                             .attributes = f_attributes,
                             .gpm_sample_alloc = f_alloc,
                             .gpm_sample_free = f_free,
                             .gpm_mig_sample_get = f_sample,
                             .gpm_metrics = f_metrics};
    return nvml_observer_open(&table, &options, &keeping, &collector, NULL);
}

static int tear_down(void **state) {
    (void)state;
    hec_collector_nvml.close(collector);
    hec_clock_set_source(NULL);
    assert_int_equal(fake.samples, 0);
    return 0;
}

/* What the last of so many rounds reported. */
static void rounds(int count) {
    for (int i = 0; i < count; i++) {
        kept.gpu_instances = 0;
        int64_t next = hec_collector_nvml.poll(collector, fake.now);
        assert_true(next > fake.now);
        fake.now = next;
    }
}

static const struct hec_gpu_process *last_process(void) {
    return &kept.gpu_process[kept.gpu_processes - 1];
}

static int64_t active(int i) {
    return kept.gpu_instance[i].counters[HEC_GPM_SM_ACTIVE - HEC_GPM_GR_ACTIVE];
}

TEST(test_come_and_go) {
    fake.id[0] = 3;
    fake.id[2] = 1;
    rounds(1);
    assert_int_equal(kept.gpu_instances, 2);
    assert_int_equal(kept.gpu_instance[0].until_ns, INT64_MIN); /* one sample says nothing */
    assert_int_equal(active(0), -1);
    rounds(2);
    assert_int_equal(kept.gpu_instance[0].id, 3);
    assert_string_equal(kept.gpu_instance[0].uuid, "MIG-3-0");
    assert_string_equal(kept.gpu_instance[0].profile, "3g.18gb");
    assert_int_equal(kept.gpu_instance[0].slices, 3);
    assert_int_equal(kept.gpu_instance[0].slices_of, SLOTS);
    assert_int_equal(kept.gpu_instance[1].memory_used_kib, 10 << 10);
    assert_int_equal(kept.gpu_instance[1].until_ns - kept.gpu_instance[1].from_ns, HEC_NS_PER_S);
    assert_int_equal(active(0), 300);
    assert_int_equal(active(1), 100);
    assert_int_equal(kept.gpu_instance[1].counters[HEC_GPM_PCIE_TX - HEC_GPM_GR_ACTIVE], -1);
    fake.id[2] = 0; /* destroyed: it does not answer, and at the next turn it is not there */
    fake.id[3] = 2;
    fake.compute[3] = 1;
    rounds(2);
    assert_int_equal(kept.gpu_instances, 2);
    assert_int_equal(kept.gpu_instance[1].id, 2);
    assert_string_equal(kept.gpu_instance[1].profile, "2g.18gb"); /* of the GPU instance, also of a part of it */
    assert_int_equal(active(0), 300);
    fake.id[1] = fake.id[3]; /* another compute instance in the same: one reading for both */
    rounds(11);
    assert_int_equal(kept.gpu_instances, 3);
    int before = fake.sampled;
    rounds(1);
    assert_int_equal(fake.sampled - before, 2);
    assert_int_equal(active(1), 200);
    assert_int_equal(active(2), 200);
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
    memset(fake.id, 0, sizeof fake.id);
    fake.mig = 0; /* not divided any more */
    rounds(12);
    assert_int_equal(kept.gpu_instances, 0);
    assert_int_equal(kept_device(0)->mig_enabled, 0);
    fake.mig = 1;
    fake.id[0] = 3;
    rounds(22);
    assert_int_equal(kept.gpu_instances, 1);
    assert_int_equal(kept_device(0)->mig_enabled, 1);
}

TEST(test_refused) {
    fake.id[0] = 2;
    fake.gpm_code = HEC_NVML_NOT_SUPPORTED;
    fake.names = false; /* then its attributes say what it is */
    rounds(5);
    assert_int_equal(kept.gpu_instance[0].until_ns, INT64_MIN);
    assert_int_equal(kept.gpu_instance[0].memory_used_kib, 20 << 10);
    assert_string_equal(kept.gpu_instance[0].profile, "2g.16gb");
    assert_int_equal(fake.sampled, 1); /* never asked again, and nothing said */
    assert_int_equal(kept_events(HEC_EVENT_SENSOR_FAILED), 0);
}

/* Who may not see all processes of a divided device is refused the list of the whole. */
TEST(test_processes) {
    fake.id[0] = 3;
    fake.id[2] = 1;
    fake.pid_in = 1;
    rounds(2);
    assert_int_equal(last_process()->gpu_instance, 1);
    fake.list_code = HEC_NVML_NO_PERMISSION;
    fake.pid_in = 3;
    int before = kept_samples(HEC_GPU_CONTEXTS, 0);
    rounds(2);
    assert_int_equal(last_process()->gpu_instance, 3);
    assert_int_equal(kept_samples(HEC_GPU_CONTEXTS, 0) - before, 2);
    assert_int_equal(last_process()->memory_kib, 1 << 10);
    fake.list_code = 0;
    fake.pid_in = UINT_MAX;
    rounds(1);
    assert_int_equal(last_process()->gpu_instance, -1);
}

EACH_TEST(set_up, tear_down)
