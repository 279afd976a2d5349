/* The node's sums, fed by hand: every joule and every second in one state, whatever counters, devices and clocks do. */
#include "agent/live.h"
#include "agent/node.h"
#include "agent/state_file.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "observe/recorder.h"
#include "sim/world.h"
#include "tests/unit/folder.h"
#include "tests/unit/sim_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#define S HEC_NS_PER_S
#define UUID "GPU-00000000-0000-0000-0000-000000000001"

static int64_t now_ns, wall_ns;
static int64_t fake_mono(void) {
    return now_ns;
}
static int64_t fake_wall(void) {
    return wall_ns + now_ns;
}
static const struct hec_clock_source fake_clock = {fake_mono, fake_wall};

static struct hec_node *node;

static int set_up(void **state) {
    now_ns = 1000 * S;
    wall_ns = INT64_C(1700000000) * S;
    hec_clock_set_source(&fake_clock);
    node = hec_node_new(S, NULL);
    return node ? folder_make(state) : -1;
}
static int tear_down(void **state) {
    hec_node_free(node);
    hec_clock_set_source(NULL);
    return folder_remove(state);
}

static void see(int index, const char *uuid) {
    struct hec_device device = {.index = index, .power_limit_mw = 700000};
    snprintf(device.uuid, sizeof device.uuid, "%s", uuid);
    node->sink.device(node, &device);
}

/* One round of readings, `seconds` after the last. util in permille; contexts < 0: the lists failed. */
static void reads(int index, double seconds, int64_t counter_mj, int util, int contexts) {
    now_ns += (int64_t)(seconds * 1e9);
    node->sink.sample(node, HEC_GPU_ENERGY, index, now_ns, counter_mj);
    node->sink.sample(node, HEC_GPU_UTIL, index, now_ns, util);
    if (contexts > 0)
        node->sink.gpu_process(node, &(struct hec_gpu_process){.device = index, .pid = getpid(), .last_ns = now_ns});
    if (contexts >= 0)
        node->sink.sample(node, HEC_GPU_CONTEXTS, index, now_ns, contexts);
    hec_node_tick(node, now_ns);
}

static int64_t total(int index, enum hec_node_total which) {
    return node->devices[index]->total[which];
}

/* What must hold at any time. since_ns: when the device was first seen. */
static void adds_up(int index, int64_t since_ns) {
    int64_t mj = 0, ns = 0;
    for (int i = 0; i < HEC_AGENT_STATES; i++) {
        assert_true(total(index, HEC_NODE_BUSY_MJ + i) >= 0 && total(index, HEC_NODE_BUSY_NS + i) >= 0);
        mj += total(index, HEC_NODE_BUSY_MJ + i);
        ns += total(index, HEC_NODE_BUSY_NS + i);
    }
    assert_int_equal(mj, total(index, HEC_NODE_ENERGY_MJ));
    assert_int_equal(ns, now_ns - since_ns);
    assert_int_equal(hec_shares_total_uj(node->devices[index]->shares), 1000 * total(index, HEC_NODE_ENERGY_MJ));
}

TEST(test_states) {
    int64_t since = now_ns;
    see(0, UUID);
    reads(0, 0, 5000000, 0, 0);
    for (int i = 1; i <= 10; i++) { /* 80 W, nobody there */
        reads(0, 1, 5000000 + i * 80000, 0, 0);
        node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 80000);
    }
    for (int i = 1; i <= 10; i++) { /* 120 W, somebody there */
        reads(0, 1, 5800000 + i * 120000, 0, 1);
        node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 120000);
    }
    for (int i = 1; i <= 10; i++)
        reads(0, 1, 7000000 + i * 600000, 1000, 1); /* busy */
    adds_up(0, since);
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 8000000);
    assert_int_equal(total(0, HEC_NODE_IDLE_FREE_MJ), 800000);
    assert_int_equal(total(0, HEC_NODE_IDLE_ALLOCATED_MJ), 1200000);
    assert_int_equal(total(0, HEC_NODE_BUSY_MJ), 6000000);
    assert_in_range(total(0, HEC_NODE_BUSY_NS), 9 * S, 10 * S);
    assert_int_equal(total(0, HEC_NODE_UNOBSERVED_MJ), 0);
    /* busy for half of the time: the floor that was seen is what the other half drew */
    int64_t busy = total(0, HEC_NODE_BUSY_MJ);
    reads(0, 5, 13000000 + 1800000, 500, 1); /* 360 W = (600 + 120) / 2 */
    assert_in_range(total(0, HEC_NODE_BUSY_MJ) - busy, 1450000, 1550000);
    adds_up(0, since);
}

/* A page that is made in the middle of a round shows the counter up to which the totals go. */
TEST(test_a_page_in_the_middle_of_a_round) {
    see(0, UUID);
    reads(0, 0, 5000000, 0, 0);
    reads(0, 1, 5080000, 0, 0);
    node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns + S, 5160000);
    hec_node_tick(node, now_ns + S);
    const struct hec_node_device *device = node->devices[0];
    assert_int_equal((int64_t)hec_node_value_of(node, device, HEC_GPU_ENERGY, now_ns + S) - 5000000,
                     total(0, HEC_NODE_ENERGY_MJ));
    node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns + S, 0);
    assert_int_equal((int64_t)hec_node_value_of(node, device, HEC_GPU_ENERGY, now_ns + S), 5160000);
}

/* What Slurm gave to a job is allocated, whether or not anything has a context there; and the idle joules are the job's. */
TEST(test_allocated_by_a_job) {
    node->jobs.folder = folder;
    folder_text("0", "30 ann\n");
    assert_int_equal(chmod(in_folder("0"), 0644), 0);
    see(0, UUID);
    reads(0, 0, 5000000, 0, 0);
    for (int i = 1; i <= 10; i++)
        reads(0, 1, 5000000 + i * 80000, 0, 0);
    assert_int_equal(total(0, HEC_NODE_IDLE_FREE_MJ), 0);
    assert_int_equal(total(0, HEC_NODE_IDLE_ALLOCATED_MJ), 800000);
    assert_true(total(0, HEC_NODE_IDLE_ALLOCATED_NS) >= 9 * S);
    const struct hec_shares_row *row = hec_shares_row(node->devices[0]->shares, 3);
    assert_string_equal(row->tenant.job, "30");
    assert_string_equal(row->tenant.user, "ann");
    assert_int_equal(row->uj[HEC_SHARES_IDLE], 800000000);
    folder_text("0", "0\n"); /* no job */
    for (int i = 11; i <= 20; i++)
        reads(0, 1, 5000000 + i * 80000, 0, 0);
    assert_true(total(0, HEC_NODE_IDLE_FREE_MJ) >= 720000);
}

static struct hec_job_map map;
static size_t jobs_at(int device, int instance, const char *first) {
    const struct hec_tenant *found[4] = {NULL};
    size_t count = hec_job_map_find(&map, device, instance, found, 4);
    assert_string_equal(count ? found[0]->job : "", first);
    return count;
}

TEST(test_map_of_jobs) {
    map = (struct hec_job_map){.folder = folder};
    folder_text("0", "41 ann 40_7\n42\n41\n");
    folder_text("1.2", "43.server ann 4_x\n");
    folder_text("3", "44\n");
    folder_text("x", "45\n");
    folder_text("4x", "45\n");
    folder_text("5", "%s", "");
    folder_text("6", "0\n");
    for (const char *name = "0356"; *name; name++)
        assert_int_equal(chmod(in_folder((char[]){*name, '\0'}), *name == '3' ? 0666 : 0644), 0);
    assert_int_equal(chmod(in_folder("1.2"), 0644), 0);
    assert_int_equal(hec_job_map_poll(&map, 5 * S, NULL), HEC_OK);
    assert_int_equal(map.count, 4);
    assert_int_equal(jobs_at(0, -1, "41"), 2); /* each once */
    assert_int_equal(jobs_at(0, 3, "41"), 2);  /* who has the whole has each part */
    const struct hec_tenant *found[4] = {NULL};
    hec_job_map_find(&map, 0, -1, found, 4);
    assert_string_equal(found[0]->array_task, "40_7");
    assert_string_equal(found[1]->array_task, "");
    hec_job_map_find(&map, 1, -1, found, 4);
    assert_string_equal(found[0]->user, "ann");
    assert_string_equal(found[0]->array_task, ""); /* no task's number */
    assert_int_equal(jobs_at(1, -1, "43.server"), 1);
    assert_int_equal(jobs_at(1, 2, "43.server"), 1);
    assert_int_equal(jobs_at(1, 1, ""), 0);
    assert_int_equal(jobs_at(3, -1, ""), 0); /* anybody may write there */
    assert_int_equal(map.left_out, 1);
    assert_int_equal(jobs_at(6, -1, ""), 0);
    folder_text("0", "%s", "");
    assert_int_equal(hec_job_map_poll(&map, 5 * S + 1, NULL), HEC_OK); /* not due */
    assert_int_equal(jobs_at(0, -1, "41"), 2);
    assert_int_equal(hec_job_map_poll(&map, 6 * S, NULL), HEC_OK);
    assert_int_equal(jobs_at(0, -1, ""), 0);
    map.folder = "/nowhere";
    assert_int_equal(hec_job_map_poll(&map, 9 * S, NULL), HEC_ERR_NOTFOUND);
    assert_int_equal(map.count, 0);
}

static void power(int watts, int util) {
    now_ns += S;
    node->sink.sample(node, HEC_GPU_UTIL, 0, now_ns, util);
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, INT64_C(1000) * watts);
}

/* Between two bursts of work the floor is learned within 10 s, however rarely the counter is read. What the first readings after the work
 * say is not of an idle device. */
TEST(test_floor_by_power) {
    see(0, UUID);
    reads(0, 0, 5000000, 1000, 1);
    for (int i = 0; i < 20; i++)
        power(600, 1000);
    assert_int_equal(hec_shares_floor(node->devices[0]->shares).held_mw, HEC_SHARES_UNKNOWN);
    power(400, 0);
    power(200, 0);
    for (int i = 0; i < 6; i++)
        power(120, 0);
    assert_int_equal(hec_shares_floor(node->devices[0]->shares).held_mw, 120000);
    /* short pauses, in which it never settles, change nothing */
    for (int i = 0; i < 40; i++)
        power(90, i % 2 ? 0 : 500);
    assert_int_equal(hec_shares_floor(node->devices[0]->shares).held_mw, 120000);
    node->sink.missing(node, HEC_GPU_UTIL, 0, now_ns); /* nor what it draws while nobody knows whether it works */
    for (int i = 0; i < 10; i++) {
        now_ns += S;
        node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 50000);
    }
    assert_int_equal(hec_shares_floor(node->devices[0]->shares).held_mw, 120000);
}

/* Back to 0, back a little, a leap: no joule is invented, and what can have been drawn is counted. */
static int tensor = 500, tx_kib; /* permille; to the host */

/* A reading a second for so long: engine, SMs and occupancy in permille, bytes from the host in KiB/s, watts. */
static int verdict_after(int seconds, int engine, int sm, int occupancy, int rx_kib, int watts, int reasons,
                         int contexts) {
    const struct {
        enum hec_metric metric;
        int64_t value;
    } shown[] = {{HEC_GPU_UTIL, engine},          {HEC_GPM_GR_ACTIVE, engine},
                 {HEC_GPM_SM_ACTIVE, sm},         {HEC_GPM_SM_OCCUPANCY, occupancy},
                 {HEC_GPM_PCIE_RX, rx_kib},       {HEC_GPM_PCIE_TX, tx_kib},
                 {HEC_GPU_POWER, watts * 1000},   {HEC_GPU_THROTTLE, reasons},
                 {HEC_GPM_TENSOR_ACTIVE, tensor}, {HEC_GPU_CONTEXTS, contexts}};
    for (int s = 0; s < seconds; s++) {
        now_ns += S;
        for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
            node->sink.sample(node, shown[i].metric, 0, now_ns, shown[i].value);
    }
    return hec_verdict_of(&node->devices[0]->verdict, &node->devices[0]->info, now_ns, NULL);
}

TEST(test_verdicts) {
    see(0, UUID);
    assert_int_equal(verdict_after(2, 0, 0, 0, 0, 70, 0, 0), HEC_VERDICT_UNKNOWN); /* too few */
    assert_int_equal(verdict_after(1, 0, 0, 0, 0, 70, 0, 0), HEC_AGENT_VERDICT_IDLE_FREE);
    assert_int_equal(verdict_after(90, 0, 0, 0, 0, 115, 0, 1), HEC_AGENT_VERDICT_IDLE_ALLOCATED);
    assert_int_equal(verdict_after(90, 990, 950, 400, 0, 600, 0, 1), HEC_AGENT_VERDICT_HEALTHY);
    assert_int_equal(verdict_after(90, 990, 950, 400, 0, 600, 0x40, 1), HEC_AGENT_VERDICT_THROTTLED);
    assert_int_equal(verdict_after(90, 500, 300, 200, 20 << 20, 250, 0, 1), HEC_AGENT_VERDICT_TRANSFER_BOUND);
    /* as much data as a loader brings to a device that waits for it: copies do not explain the idle time */
    assert_int_equal(verdict_after(90, 300, 250, 200, 4 << 20, 250, 0, 1), HEC_AGENT_VERDICT_STARVED);
    tx_kib = 20 << 20;
    assert_int_equal(verdict_after(90, 500, 300, 200, 0, 250, 0, 1), HEC_AGENT_VERDICT_TRANSFER_BOUND);
    tx_kib = 0;
    assert_int_equal(verdict_after(90, 600, 100, 30, 0, 150, 0, 1), HEC_AGENT_VERDICT_OVERHEAD_BOUND);
    assert_int_equal(verdict_after(90, 100, 80, 60, 0, 150, 0, 1), HEC_AGENT_VERDICT_STARVED);
    assert_int_equal(verdict_after(90, 700, 600, 300, 0, 400, 0, 1), HEC_VERDICT_UNKNOWN); /* none of them */
    assert_int_equal(verdict_after(90, 990, 950, 400, 0, 600, 0, 1), HEC_AGENT_VERDICT_HEALTHY);
    tensor = 150; /* busy, and with what is not known */
    assert_int_equal(verdict_after(90, 990, 950, 400, 0, 600, 0, 1), HEC_VERDICT_UNKNOWN);
    tensor = 500;
    assert_int_equal(verdict_after(20, 0, 0, 0, 0, 115, 0, 1),
                     HEC_VERDICT_UNKNOWN); /* of the minute, not of the moment */
    now_ns += 61 * S;
    assert_int_equal(hec_verdict_of(&node->devices[0]->verdict, &node->devices[0]->info, now_ns, NULL),
                     HEC_VERDICT_UNKNOWN);
}

/* 400 W at three quarters of the clock for 10 s, slowed by heat: a quarter of 4 kJ. */
TEST(test_throttle_lost) {
    see(0, UUID);
    node->sink.sample(node, HEC_GPU_SM_CLOCK, 0, now_ns, 2000);
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 400000);
    node->sink.sample(node, HEC_GPU_THROTTLE, 0, now_ns, 0x4); /* by the power limit: that is no loss */
    node->sink.sample(node, HEC_GPU_SM_CLOCK, 0, now_ns, 1500);
    reads(0, 1, 1000, 990, 1);
    assert_int_equal(total(0, HEC_NODE_THROTTLE_LOST_UJ), 0);
    node->sink.sample(node, HEC_GPU_THROTTLE, 0, now_ns, 0x20);
    for (int i = 0; i < 10; i++)
        reads(0, 1, 2000 + i, 990, 1);
    assert_int_equal(total(0, HEC_NODE_THROTTLE_LOST_UJ), 1000000000);
}

TEST(test_counter_set) {
    int64_t since = now_ns;
    see(0, UUID);
    reads(0, 0, 900000000, 0, 0);
    reads(0, 1, 900100000, 0, 0);
    reads(0, 1, 50000, 0, 0); /* began again: 50 J since */
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 150000);
    reads(0, 1, 150000, 0, 0);
    reads(0, 1, 900400000, 0, 0); /* no device draws 900 kJ in a second */
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 250000);
    reads(0, 1, 900500000, 0, 0);
    reads(0, 1, 900499000, 0, 0); /* an odd counter that runs back by a joule */
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 350000);
    assert_int_equal(total(0, HEC_NODE_RESETS), 3);
    adds_up(0, since);
}

TEST(test_lost_and_back) {
    int64_t since = now_ns;
    see(0, UUID);
    reads(0, 0, 1000000, 1000, 1);
    reads(0, 1, 1500000, 1000, 1);
    assert_false(hec_node_troubled(node));
    now_ns += S;
    node->sink.event(node, HEC_EVENT_DEVICE_LOST, 0, now_ns, "gone");
    assert_true(hec_node_troubled(node));
    assert_false(node->devices[0]->up);
    assert_true(node->devices[0]->newest[HEC_GPU_UTIL].t_ns == INT64_MIN);
    now_ns += 60 * S;
    hec_node_tick(node, now_ns);
    hec_node_restart(node);
    see(0, ""); /* opened, and lost at once: it has no name */
    assert_string_equal(node->devices[0]->info.uuid, UUID);
    now_ns += 60 * S;
    see(0, UUID);
    reads(0, 1, 1500000 + 122 * 80000, 0, 0);
    assert_int_equal(total(0, HEC_NODE_UNOBSERVED_MJ), 122 * 80000);
    assert_in_range(total(0, HEC_NODE_UNOBSERVED_NS), 120 * S, 122 * S);
    assert_int_equal(total(0, HEC_NODE_BUSY_MJ), 500000);
    adds_up(0, since);
    assert_false(hec_node_troubled(node));
    /* one that only falls silent */
    now_ns += 7 * S;
    hec_node_tick(node, now_ns);
    assert_true(node->devices[0]->up);
    now_ns += 20 * S;
    hec_node_tick(node, now_ns);
    assert_false(node->devices[0]->up);
    adds_up(0, since);
}

/* A round of readings that is late (a busy machine, a paused virtual one) is no silence of a device: it was not asked. */
TEST(test_not_asked) {
    int64_t since = now_ns;
    see(0, UUID);
    reads(0, 0, 1000000, 1000, 1);
    int64_t unobserved_ns = total(0, HEC_NODE_UNOBSERVED_NS);
    node->rounds.due_ns = now_ns + S;
    now_ns += 61 * S;
    hec_node_tick(node, now_ns);
    assert_true(node->devices[0]->up);
    assert_false(hec_node_troubled(node));
    assert_in_range(total(0, HEC_NODE_UNOBSERVED_NS) - unobserved_ns, 45 * S, 60 * S); /* nor is it known what it did */
    node->rounds = (struct hec_rounds){.due_ns = INT64_MAX, .late_ns = 60 * S};
    reads(0, 1, 1000000 + 61 * 80000, 1000, 1);
    assert_int_equal(total(0, HEC_NODE_UNOBSERVED_MJ), 61 * 80000);
    adds_up(0, since);
    /* asked, and silent */
    now_ns += 20 * S;
    hec_node_tick(node, now_ns);
    assert_false(node->devices[0]->up);
    adds_up(0, since);
}

/* The last one stays known, whatever becomes of the device and of the driver, until another device is there. */
TEST(test_xid) {
    see(0, UUID);
    reads(0, 0, 1000000, 0, 0);
    assert_true(isnan(hec_node_value_of(node, node->devices[0], HEC_GPU_XID, now_ns))); /* not watched */
    node->sink.sample(node, HEC_GPU_XID, 0, now_ns, 0);
    assert_true(hec_node_value_of(node, node->devices[0], HEC_GPU_XID, now_ns) == 0);
    node->sink.missing(node, HEC_GPU_XID, 0, now_ns);
    assert_true(isnan(hec_node_value_of(node, node->devices[0], HEC_GPU_XID, now_ns)));
    node->sink.sample(node, HEC_GPU_XID, 0, now_ns, 79);
    node->sink.event(node, HEC_EVENT_DEVICE_LOST, 0, now_ns, "gone");
    now_ns += 600 * S;
    assert_true(hec_node_value_of(node, node->devices[0], HEC_GPU_XID, now_ns) == 79);
    hec_node_restart(node);
    see(0, UUID);
    node->sink.sample(node, HEC_GPU_XID, 0, now_ns, 0); /* none since it is watched again */
    assert_true(hec_node_value_of(node, node->devices[0], HEC_GPU_XID, now_ns) == 79);
    see(0, "GPU-00000000-0000-0000-0000-000000000002");
    node->sink.sample(node, HEC_GPU_XID, 0, now_ns, 0);
    assert_true(hec_node_value_of(node, node->devices[0], HEC_GPU_XID, now_ns) == 0);
}

/* Lists of processes that fail: the joules are still counted, and are nobody's. */
TEST(test_no_lists) {
    int64_t since = now_ns;
    see(0, UUID);
    for (int i = 0; i <= 10; i++)
        reads(0, 1, 1000000 + i * 300000, 1000, -1);
    reads(0, 1, 1000000 + 11 * 300000, 1000, 0);
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 11 * 300000);
    adds_up(0, since);
}

/* Another device at the same index, and the first one again: each goes on where it was. */
TEST(test_exchanged) {
    see(0, UUID);
    reads(0, 0, 1000000, 0, 0);
    reads(0, 1, 1080000, 0, 0);
    see(0, "GPU-other");
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 0);
    reads(0, 1, 77000000, 0, 0);
    reads(0, 1, 77080000, 0, 0);
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 80000);
    see(0, UUID);
    reads(0, 1, 1400000, 0, 0);
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 80000 + 320000);
    assert_int_equal(total(0, HEC_NODE_UNOBSERVED_MJ), 320000);
}

/* More than it takes, of things that never end. */
TEST(test_bounds) {
    see(-1, UUID);
    see(HEC_DEVICE_MAX, UUID);
    see(0, UUID);
    node->sink.sample(node, HEC_GPU_ENERGY, 63, now_ns, 1);
    node->sink.sample(node, HEC_GPU_ENERGY, -5, now_ns, 1);
    for (int pid = 1; pid <= HEC_NODE_PROCESSES_MAX + 10; pid++)
        node->sink.gpu_process(node, &(struct hec_gpu_process){.device = 0, .pid = pid, .last_ns = now_ns});
    assert_int_equal(node->devices[0]->process_count, HEC_NODE_PROCESSES_MAX);
    assert_int_equal(node->dropped_processes, 10);
    reads(0, 0, 1, 0, 1);
    reads(0, 5, 1, 0, 1);
    assert_int_equal(node->devices[0]->process_count, 0);
    for (int i = 0; i < 3 * HEC_DEVICE_MAX; i++) {
        char uuid[32];
        snprintf(uuid, sizeof uuid, "GPU-%d", i);
        see(0, uuid);
        now_ns += S;
    }
    assert_true(node->kept_count <= HEC_DEVICE_MAX && node->dropped_devices > 0);
    for (int i = 0; i < 2 * HEC_NODE_DOMAINS_MAX; i++)
        node->sink.sample(node, HEC_RAPL_PACKAGE_ENERGY, i, now_ns, 1);
    assert_int_equal(node->domain_count, HEC_NODE_DOMAINS_MAX);
}

/* ---- MIG ---- */

static void instance(int id, int seconds, int engine, int sm) {
    struct hec_gpu_instance record = {.id = id,
                                      .slices = id,
                                      .slices_of = 7,
                                      .t_ns = now_ns,
                                      .from_ns = now_ns - seconds * S,
                                      .until_ns = seconds ? now_ns : INT64_MIN};
    snprintf(record.uuid, sizeof record.uuid, "MIG-%d", id);
    memset(record.counters, 0xff, sizeof record.counters);
    record.counters[0] = engine;
    record.counters[HEC_GPM_SM_ACTIVE - HEC_GPM_GR_ACTIVE] = sm;
    node->sink.gpu_instance(node, &record);
}

static void mig_round(int64_t counter_mj, int window_s, int busy) {
    now_ns += S;
    node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, counter_mj);
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, busy ? 480000 : 80000);
    instance(3, window_s, busy, busy / 2);
    if (counter_mj < 20000000)
        instance(1, window_s, busy / 4, -1);
    node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, 1);
    hec_node_tick(node, now_ns);
}

/* NVML has no utilisation of a divided device: it is busy and idle by its instances, until they are gone. */
TEST(test_instances) {
    int64_t since = now_ns, mj = 1000000;
    see(0, UUID);
    for (int i = 0; i < 20; i++)
        mig_round(mj += 80000, 1, 0);
    assert_int_equal(hec_shares_floor(node->devices[0]->shares).held_mw, 80000);
    assert_int_equal(total(0, HEC_NODE_BUSY_MJ), 0);
    for (int i = 0; i < 10; i++)
        mig_round(mj += 480000, 1, 1000);
    assert_in_range(total(0, HEC_NODE_BUSY_MJ), 4700000, 4900000);
    const struct hec_node_device *device = node->devices[0];
    assert_int_equal(device->instance_count, 2);
    assert_int_equal(device->instances[0].sm_permille, 214); /* half of the time on 3 of 7 slices */
    assert_int_equal(device->instances[1].sm_permille, 36);  /* no such counter: the engine's */
    mig_round(mj += 480000, 0, 1000);                        /* it is not known any more */
    assert_int_equal(device->instances[0].sm_permille, HEC_SHARES_UNKNOWN);
    int64_t busy = total(0, HEC_NODE_BUSY_MJ);
    mig_round(mj += 480000, 0, 1000);
    assert_int_equal(total(0, HEC_NODE_BUSY_MJ), busy);
    adds_up(0, since);
    /* A round that comes late, as on a busy machine: whoever looks between its readings sees what was there. */
    now_ns += 10 * S;
    node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, mj += 800000);
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 80000);
    hec_node_tick(node, now_ns);
    assert_int_equal(device->instance_count, 2);
    mj = 20000000;
    for (int i = 0; i < 3; i++)
        mig_round(mj += 80000, 1, 0);
    assert_int_equal(device->instance_count, 1);
}

/* Between two readings of the counter an instance did the mean of its windows, by their length. */
TEST(test_windows_of_an_instance) {
    see(0, UUID);
    mig_round(1000000, 1, 0);
    mig_round(1080000, 1, 0);
    now_ns += 2 * S;
    instance(3, 2, 600, 600);
    now_ns += 2 * S;
    instance(3, 2, 300, 150);
    now_ns += S;
    instance(3, 1, 0, 0);
    node->sink.sample(node, HEC_GPU_ENERGY, 0, now_ns, 2000000);
    node->sink.sample(node, HEC_GPU_CONTEXTS, 0, now_ns, 1);
    hec_node_tick(node, now_ns);
    assert_int_equal(node->devices[0]->instances[0].sm_permille, 129); /* 3 of 7 slices of (2 x 600 + 2 x 150) / 5 */
    assert_int_equal(node->devices[0]->instances[0].engine_permille,
                     360); /* of its own engine: (2 x 600 + 2 x 300) / 5 */
}

/* ---- the state file ---- */

static struct hec_state_file file;

static void renew(void) {
    hec_node_free(node);
    node = hec_node_new(S, NULL);
    assert_non_null(node);
}

static void open_file(void) {
    struct hec_why why;
    if (hec_state_file_open(&file, folder, geteuid(), &why) < 0)
        fail_msg("%s", why.text);
}

/* The wall clock is set by hours, forth and back, between two lives: time that the agent was away is the kernel's, not the
 * clock's; and a device that is not there now is not forgotten. */
TEST(test_kept) {
    int before = open_files();
    open_file();
    see(0, UUID);
    see(1, "GPU-two");
    reads(0, 0, 1000000, 0, 0);
    reads(1, 0, 2000000, 0, 0);
    reads(0, 1, 1080000, 0, 0);
    reads(1, 0, 2090000, 0, 0);
    node->sink.sample(node, HEC_RAPL_PACKAGE_ENERGY, 0, now_ns, 500);
    node->sink.sample(node, HEC_RAPL_PACKAGE_ENERGY, 0, now_ns, 1500);
    for (int i = 0; i < 40; i++) /* twenty numbers, each twice */
        node->sink.sample(node, HEC_GPU_XID, 0, now_ns, 13 + i % 20);
    node->sink.sample(node, HEC_GPU_XID, 0, now_ns, 0);
    for (int life = 0; life < 3; life++) {
        assert_int_equal(hec_state_file_save(&file, node, life == 1), HEC_OK);
        assert_int_equal(hec_state_file_save(&file, node, false), HEC_OK);
        wall_ns += (life ? -5 : 3) * 3600 * S;
        renew();
        struct hec_why why = {""};
        if (hec_state_file_load(&file, node, &why) < 0)
            fail_msg("%s", why.text);
        assert_int_equal(node->kept_count, 2);
        assert_int_equal(node->domains[0].total_uj, 1000);
    }
    see(0, UUID);
    assert_int_equal(node->devices[0]->xids.count, HEC_XIDS_MAX);
    assert_int_equal(node->devices[0]->xids.seen[1].number, 14);
    assert_int_equal(node->devices[0]->xids.seen[1].times, 2);
    assert_int_equal(node->devices[0]->xids.others, 8);
    reads(0, 1, 1200000, 0, 0);
    assert_int_equal(total(0, HEC_NODE_ENERGY_MJ), 200000);
    assert_int_equal(total(0, HEC_NODE_UNOBSERVED_MJ), 120000);
    assert_in_range(total(0, HEC_NODE_UNOBSERVED_NS), S, 3 * S); /* the lives took no time but this second */
    assert_int_equal(node->kept_count, 1);
    assert_int_equal(node->kept[0].total[HEC_NODE_ENERGY_MJ], 90000);
    node->sink.sample(node, HEC_RAPL_PACKAGE_ENERGY, 0, now_ns, 9000); /* a recorder's first reading adds nothing */
    assert_int_equal(node->domains[0].total_uj, 1000);
    hec_state_file_close(&file);
    assert_int_equal(open_files(), before);
}

/* Every byte that is changed, and every length: never believed, never a crash; the other file is read instead. */
TEST(test_damaged) {
    static char text[4096], copy[4096];
    open_file();
    see(0, UUID);
    reads(0, 0, 1000000, 0, 0);
    reads(0, 1, 1080000, 0, 0);
    hec_state_file_save(&file, node, false);
    size_t length = file_read(in_folder("state"), text, sizeof text - 1);
    assert_in_range(length, 100, sizeof text - 2);
    for (size_t i = 0; i < 2 * length; i++) {
        memcpy(copy, text, length);
        if (i < length)
            copy[i] ^= 0x11;
        folder_write("state", copy, i < length ? length : i - length);
        renew();
        assert_true(hec_state_file_load(&file, node, NULL) < 0);
        assert_int_equal(node->kept_count, 0);
    }
    folder_write("state.synced", text, length);
    folder_write("state", copy, 50);
    renew();
    assert_int_equal(hec_state_file_load(&file, node, NULL), HEC_OK);
    assert_int_equal(node->kept_count, 1);
    hec_state_file_close(&file);
}

static const struct hec_shares_row *tenant_kept(void) {
    const struct hec_shares *shares = node->kept[0].shares;
    assert_int_equal(hec_shares_count(shares), 4);
    return hec_shares_row(shares, 3);
}

/* How far a tenant's joules may be off goes on after a restart. Of joules of a version that did not note it nothing is known, of those that
 * it gave nobody nothing is in doubt. */
TEST(test_error_kept) {
    static char text[4096], old[4096];
    const struct hec_shares_row row = {
        .tenant = {.user = "ann"}, .uj = {7000000, 2000000, 0}, .error = {9e10, 4e5, 3e5}};
    open_file();
    see(0, UUID);
    assert_int_equal(hec_shares_restore(node->devices[0]->shares, &row), HEC_OK);
    node->devices[0]->total[HEC_NODE_ENERGY_MJ] = 9000;
    hec_state_file_save(&file, node, false);
    size_t length = file_read(in_folder("state"), text, sizeof text - 1);
    renew();
    assert_int_equal(hec_state_file_load(&file, node, NULL), HEC_OK);
    assert_near(hec_share_error_bound_uj(&tenant_kept()->error), hec_share_error_bound_uj(&row.error), 1);
    assert_near(hec_share_error_bound_uj(&row.error), sqrt(1.96 * 1.96 * (9e10 + 16e10) + 9e10), 1);

    char *doubt = strstr(text, " 9e+10 400000 300000\t"), digest[HEC_SHA256_TEXT];
    assert_non_null(doubt);
    size_t before = (size_t)(doubt - text), cut = strlen(" 9e+10 400000 300000");
    length -= cut;
    memcpy(old, text, before);
    memcpy(old + before, doubt + cut, length - before);
    size_t body = length - strlen("sha256 ") - HEC_SHA256_TEXT;
    hec_sha256(digest, old, body);
    memcpy(old + body + strlen("sha256 "), digest, HEC_SHA256_TEXT - 1);
    folder_write("state", old, length);
    renew();
    assert_int_equal(hec_state_file_load(&file, node, NULL), HEC_OK);
    assert_int_equal(tenant_kept()->uj[HEC_SHARES_ACTIVE], 7000000);
    assert_true(isnan(hec_share_error_bound_uj(&tenant_kept()->error)));
    hec_state_file_save(&file, node, false); /* and stays unknown */
    renew();
    assert_int_equal(hec_state_file_load(&file, node, NULL), HEC_OK);
    assert_true(isnan(hec_share_error_bound_uj(&tenant_kept()->error)));
    hec_state_file_close(&file);
}

/* ---- days ---- */

/* A day of simulated GPUs through the real collector, with load that comes and goes, against the truth of the simulation: two
 * every 10 s, or with HEC_AGENT_DAY=N so many every second (bench/agent/idle). */
TEST(test_day) {
    static const struct hec_collector *const all[] = {&hec_collector_nvml, NULL};
    const char *asked = getenv("HEC_AGENT_DAY");
    int devices = asked ? atoi(asked) : 2;
    char text[64];
    snprintf(text, sizeof text, "h200x%d,clock=virtual", devices);
    make_world(text);
    hec_clock_set_source(&world_clock);
    renew();
    struct hec_observe_options options = {.nvml_path = HEC_BINARY_DIR "/lib/hec/sim/libnvidia-ml.so.1",
                                          .interval_ns = asked ? S : 10 * S};
    node->interval_ns = options.interval_ns;
    struct hec_lane_set lane;
    int64_t t = world_mono(), begin = t, busy_until = t, opened;
    hec_lane_open(&lane, HEC_LANE_GPU, all, &options, &node->sink);
    assert_int_equal(sim_context_open(world, 0, 0, getpid(), 1 << 20, &opened), HEC_OK);
    for (int round = 0; t < begin + 86400 * S; round++) {
        struct sim_piece pieces[2];
        if (round % 7 < 3 && busy_until <= t) {
            assert_true(sim_segment_append(world, 0, getpid(), SIM_GEMM_BF16, t, 25 * S, pieces) >= 0);
            busy_until = t + 25 * S;
        }
        int64_t due = hec_lane_poll(&lane, t);
        now_ns = t;
        t = due > t ? due : t + S;
        sim_world_set_now_ns(world, t);
        hec_node_tick(node, t);
    }
    now_ns = t;
    for (int device = 0; device < devices; device++) {
        struct hec_node_device *d = node->devices[device];
        assert_true(d->up && d->total[HEC_NODE_RESETS] == 0 && d->total[HEC_NODE_UNOBSERVED_MJ] == 0);
        int64_t mj = 0, ns = 0;
        for (int i = 0; i < HEC_AGENT_STATES; i++) {
            mj += d->total[HEC_NODE_BUSY_MJ + i];
            ns += d->total[HEC_NODE_BUSY_NS + i];
        }
        assert_int_equal(mj, d->total[HEC_NODE_ENERGY_MJ]);
        assert_int_equal(hec_shares_total_uj(d->shares), 1000 * mj);
        assert_in_range(ns, 86390 * S, 86420 * S);
    }
    /* no sample was lost: the sum is the counter's own difference, from the first reading to the last */
    assert_in_range(node->devices[1]->total[HEC_NODE_IDLE_FREE_MJ], 82000 * INT64_C(86380), 82000 * INT64_C(86420));
    assert_true(node->devices[0]->total[HEC_NODE_BUSY_MJ] > node->devices[0]->total[HEC_NODE_IDLE_ALLOCATED_MJ]);
    hec_lane_close(&lane);
    destroy_world(NULL);
    hec_clock_set_source(&fake_clock);
}

/* The last minutes add up to the counter, what it has not said yet is not known, and their number has an end. */
TEST(test_history) {
    static struct hec_live live;
    struct hec_history *history = &live.history;
    memset(&live, 0, sizeof live);
    see(0, UUID);
    for (int i = 0; i < 9; i++) { /* the counter is read every third time */
        now_ns += S;
        if (i % 3 == 0)
            reads(0, 0, INT64_C(300000) * (i + 1), 500, 1);
        node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 100000 + i);
        hec_history_add(history, node, now_ns);
    }
    assert_int_equal(hec_history_count(history), 9);
    assert_null(hec_history_at(history, 1, 0));
    double joules = 0;
    for (size_t i = 0; i < 9; i++) {
        const struct hec_history_point *p = hec_history_at(history, 0, i);
        assert_true(fabs((double)p->power_w - 100 - (double)i / 1000) < 1e-4);
        /* nothing is known before the first difference, and after the last value */
        assert_int_equal(isfinite(p->state_w[HEC_AGENT_STATE_BUSY]), i >= 1 && i < 7);
        for (int s = 0; s < HEC_AGENT_STATES && i >= 1 && i < 7; s++)
            joules += (double)p->state_w[s];
    }
    assert_true(fabs(joules - 1800) < 0.1); /* 300 W, six seconds */

    struct hec_buf text;
    hec_buf_init(&text, HEC_PAGE_LENGTH_MAX);
    const struct hec_page_options options = {.hostname = "<b>\x1b\xff"};
    assert_int_equal(
        hec_live_make(&live, node, &options, &(struct hec_page_agent){.resident_bytes = -1}, now_ns, &text), 0);
    json_t *root = json_loads(hec_buf_text(&text), 0, NULL), *causes = json_object_get(root, "causes");
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "hostname")), "<b>??");
    assert_int_equal(json_array_size(json_object_get(causes, "watts")), 7); /* not what is not known yet */
    assert_true(json_is_null(json_array_get(json_array_get(json_object_get(causes, "watts"), 0), 0)));
    json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    assert_int_equal(json_array_size(json_object_get(device, "power_history_w")), 9);
    assert_true(json_is_null(json_object_get(device, "temperature_c")));
    assert_true(json_is_null(json_object_get(json_object_get(root, "self"), "resident_bytes")));
    json_decref(root);
    hec_buf_free(&text);

    for (int i = 0; i < 2 * HEC_HISTORY_POINTS; i++)
        hec_history_add(history, node, now_ns += S);
    assert_int_equal(hec_history_count(history), HEC_HISTORY_POINTS);
    assert_true(isnan(hec_history_at(history, 0, 0)->state_w[0]));
    reads(0, 1, 4000000, 500, 1); /* what a counter says after that is of all points that are left */
    hec_history_add(history, node, now_ns);
    assert_true(isfinite(hec_history_at(history, 0, 0)->state_w[0]));
    node->sink.sample(node, HEC_GPU_POWER, 0, now_ns, 100000);
    node->devices[0]->up = false; /* the last that it said is not of now */
    hec_history_add(history, node, now_ns += S);
    assert_true(isnan(hec_history_at(history, 0, hec_history_count(history) - 1)->power_w));
    hec_history_free(history);
}

EACH_TEST(set_up, tear_down)
