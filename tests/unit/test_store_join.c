/* Runs of one job become one. */
#include "store_file.h"

#include "store/join.h"

#define S HEC_NS_PER_S

/* A run of one rank: process 100 works on GPU `device`, whose UUID ends with `uuid`; and it sees GPU `beside` of another's. */
static const char *record(const char *name, const char *host, const char *rank, int device, int uuid, int beside,
                          int beside_uuid) {
    STORE_BEGIN(name, 0);
    const int devices[2][2] = {{device, uuid}, {beside, beside_uuid}};
    for (int i = 0; i < 2; i++) {
        struct hec_device d = store_device;
        d.index = devices[i][0];
        snprintf(d.uuid, sizeof d.uuid, "GPU-%d", devices[i][1]);
        s->device(s->context, &d);
        s->sample(s->context, HEC_GPU_UTIL, d.index, S, devices[i][1]);
    }
    s->meta(s->context, "hostname", host);
    s->meta(s->context, "command", host);
    s->meta(s->context, "rank.100", rank);
    s->meta(s->context, "sizes.100.model", rank);
    s->meta(s->context, "duration_ns", "5000000000");
    s->meta(s->context, "complete", "1");
    s->sample(s->context, HEC_HOST_CPU_BUSY, 0, S, 100 * uuid);
    s->process(s->context, &(struct hec_process){.pid = 100, .parent = 1, .start_ns = 0, .end_ns = 4 * S, .name = "x"});
    s->units(s->context, "sample", 10);
    struct hec_track track = {.kind = HEC_TRACK_STREAM, .pid = 100, .rank = -1, .device = device, .stream = 7};
    struct hec_track thread = {.kind = HEC_TRACK_THREAD, .pid = 100, .rank = -1, .device = -1, .stream = 100};
    struct hec_kernel kernel = {.name = s->trace_name(s->context, name), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct hec_activity a = {.start_ns = 2 * S,
                             .end_ns = 3 * S,
                             .launch_ns = S,
                             .launch_end_ns = S + 1,
                             .track = s->trace_track(s->context, &track),
                             .launch_track = s->trace_track(s->context, &thread),
                             .name = s->trace_kernel(s->context, &kernel),
                             .kind = HEC_ACTIVITY_KERNEL};
    s->trace_activities(s->context, &a, 1);
    store_close(writer);
    return path;
}

static int join(const char *const paths[], const int64_t *shifts, int count, const char *to, struct hec_why *why) {
    struct hec_join_run runs[4];
    const char *const facts[] = {"joined", "2", NULL};
    for (int i = 0; i < count; i++)
        runs[i] = (struct hec_join_run){store_open(paths[i]), shifts[i]};
    int err = hec_store_join(runs, count, facts, to, why);
    for (int i = 0; i < count; i++)
        hec_reader_close(runs[i].reader);
    return err;
}

TEST(two_hosts_become_one_run) {
    char one[256], other[256], all[256];
    struct hec_why why = {""};
    snprintf(one, sizeof one, "%s", record("one.hec", "left", "0 0 2 srun", 0, 11, 1, 12));
    snprintf(other, sizeof other, "%s", record("other.hec", "right", "1 0 2 srun", 0, 11, 1, 12));
    snprintf(all, sizeof all, "%s", in_folder("all.hec"));
    const char *const paths[] = {one, other};
    const int64_t shifts[] = {0, 7 * S};
    if (join(paths, shifts, 2, all, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_int_equal(store_number(all, "SELECT count(*) FROM device"), 4);
    assert_int_equal(store_number(all, "SELECT count(DISTINCT uuid) FROM device"), 2); /* as names that are hidden */
    assert_int_equal(store_number(all, "SELECT value = '0 0 2 srun left' FROM meta WHERE key = 'rank.100'"), 1);
    assert_int_equal(store_number(all, "SELECT value = '1 0 2 srun right' FROM meta WHERE key = 'rank.8388708'"), 1);
    assert_int_equal(store_number(all, "SELECT value = '0 0 2 srun' FROM meta WHERE key = 'sizes.100.model'"), 1);
    assert_int_equal(store_number(all, "SELECT value = '1 0 2 srun' FROM meta WHERE key = 'sizes.8388708.model'"), 1);
    assert_int_equal(store_number(all, "SELECT value = 'left, right' FROM meta WHERE key = 'hostname'"), 1);
    assert_int_equal(store_number(all, "SELECT value = 'left' FROM meta WHERE key = 'command'"), 1);
    assert_int_equal(store_number(all, "SELECT value FROM meta WHERE key = 'duration_ns'"), 12 * S);
    assert_int_equal(store_number(all, "SELECT value FROM meta WHERE key = 'joined'"), 2);
    assert_int_equal(store_number(all, "SELECT count FROM unit WHERE name = 'sample'"), 20);
    assert_int_equal(store_number(all, "SELECT start_ns FROM process WHERE pid = 8388708"), 7 * S);
    assert_int_equal(store_number(all, "SELECT count(*) FROM sample WHERE metric = 'host_cpu_busy'"), 1);
    assert_int_equal(store_number(all, "SELECT count(DISTINCT device_index) FROM track WHERE kind = 'stream'"), 2);
    assert_int_equal(store_number(all, "SELECT max(t0_ns) FROM activity_block WHERE kind = 'kernel'"), 9 * S);
    assert_int_equal(store_number(all, "SELECT count(*) FROM kernel"), 2);
    assert_int_equal(store_number(all, "SELECT count(*) FROM sample WHERE metric = 'gpu_util'"), 4);
}

/* Two runs beside each other on one host: both see both devices, and each uses one. */
TEST(a_device_that_both_saw_is_one) {
    char one[256], other[256], all[256];
    struct hec_why why = {""};
    snprintf(one, sizeof one, "%s", record("one.hec", "left", "0 0 2 srun", 0, 11, 1, 12));
    snprintf(other, sizeof other, "%s", record("other.hec", "left", "1 1 2 srun", 1, 12, 0, 11));
    snprintf(all, sizeof all, "%s", in_folder("both.hec"));
    const char *const paths[] = {one, other};
    const int64_t shifts[] = {0, S};
    if (join(paths, shifts, 2, all, &why) != HEC_OK)
        fail_msg("%s", why.text);
    assert_int_equal(store_number(all, "SELECT count(*) FROM device"), 2);
    assert_int_equal(store_number(all, "SELECT count(*) FROM sample WHERE metric = 'gpu_util'"), 2);
    assert_int_equal(store_number(all, "SELECT t_ns FROM sample WHERE metric = 'gpu_util' AND subject = 0"), S);
    assert_int_equal(store_number(all, "SELECT t_ns FROM sample WHERE metric = 'gpu_util' AND subject = 1"), 2 * S);
    assert_int_equal(store_number(all, "SELECT value = 'left' FROM meta WHERE key = 'hostname'"), 1);
}
