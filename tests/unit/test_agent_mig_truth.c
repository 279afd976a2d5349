/* How wrong are the joules of a divided device's tenants? Simulated instances work side by side in bursts, each at watts of its own
 * activity, which go by SMs (sim/mig.def), and the agent sees what NVML gives: the device's counter, GPM by instance, and slices. Truth is
 * what each instance added to the power of the device with a context. */
#include "agent/node.h"
#include "base/clock.h"
#include "bench/uniform.h"
#include "observe/recorder.h"
#include "sim/world.h"
#include "tests/unit/sim_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define S HEC_NS_PER_S
#define WORLDS 42
#define SECONDS 600

static const char *const parts[] = {"3g+3g",       "3g+2g+1g", "4g+2g+1g",   "1g+1g+1g+1g+1g+1g+1g",
                                    "2g+2g+2g+1g", "4g+3g",    "3g+1g+1g+1g"};
static const enum sim_activity does[] = {SIM_GEMM_FP32,  SIM_ELEMENTWISE,       SIM_SMALL_KERNELS, SIM_TRAIN_TUNED,
                                         SIM_TRAIN_BF16, SIM_TRAIN_UNDERFILLED, SIM_TRAIN_NCHW,    SIM_COMM};

struct tenant {
    pid_t pid;
    enum sim_activity activity;
    double duty, period; /* s: it works for this part of each */
    int64_t from_ns, loads_ns, next_ns;
    double truth, active, bound; /* J */
};
static struct tenant tenants[SIM_MIG_MAX];

static void draw(struct tenant *tenant, int64_t begin_ns) {
    pid_t pid = tenant->pid;
    *tenant = (struct tenant){.pid = pid,
                              .activity = does[(int)(uniform() * sizeof does / sizeof does[0])],
                              .duty = 0.2 + 0.8 * uniform(),
                              .period = exp(log(0.5) + uniform() * log(120)),
                              .from_ns = begin_ns + 20 * S};
    tenant->loads_ns = tenant->from_ns + (int64_t)((12 + 30 * uniform()) * 1e9);
    tenant->next_ns = tenant->loads_ns;
}

/* What it begins until t. */
static void work(struct tenant *tenant, int instance, int64_t t_ns) {
    if (t_ns >= tenant->from_ns && tenant->from_ns) {
        int64_t now_ns;
        assert_int_equal(sim_context_open(world, 0, instance, tenant->pid, 1 << 30, &now_ns), HEC_OK);
        tenant->from_ns = 0;
    }
    while (tenant->next_ns < t_ns + 2 * S && !tenant->from_ns) {
        struct sim_piece pieces[2];
        int64_t lasts_ns = (int64_t)(tenant->duty * tenant->period * 1e9);
        int count = sim_segment_append(world, 0, tenant->pid, tenant->activity, tenant->next_ns, lasts_ns, pieces);
        assert_true(count > 0);
        for (int i = 0; i < count; i++)
            tenant->truth += (double)(pieces[i].end_ns - pieces[i].start_ns) * 1e-12 *
                             (pieces[i].power_mw - sim_world_profile(world)->context_mw);
        tenant->next_ns += (int64_t)(tenant->period * 1e9);
    }
}

struct sums {
    double tenants, nobody, idle, counter;
};

static struct sums play(const char *divided, int count) {
    static const struct hec_collector *const all[] = {&hec_collector_nvml, NULL};
    struct hec_identity *identity;
    struct hec_lane_set lane;
    struct hec_observe_options options = {.nvml_path = HEC_BINARY_DIR "/lib/hec/sim/libnvidia-ml.so.1",
                                          .interval_ns = S};
    char text[80];
    snprintf(text, sizeof text, "h200,clock=virtual,mig=%s", divided);
    make_world(text);
    hec_clock_set_source(&world_clock);
    assert_int_equal(hec_identity_open(&(struct hec_identity_options){.processes = true}, &identity), HEC_OK);
    struct hec_node *node = hec_node_new(S, identity);
    int64_t t = world_mono(), end = t + SECONDS * S;
    for (int i = 0; i < count; i++)
        draw(&tenants[i], t);
    hec_lane_open(&lane, HEC_LANE_GPU, all, &options, &node->sink);
    while (t < end) {
        for (int i = 0; i < count; i++)
            work(&tenants[i], i, t);
        int64_t due = hec_lane_poll(&lane, t);
        t = due > t ? due : t + S;
        sim_world_set_now_ns(world, t);
        hec_node_tick(node, t);
    }
    const struct hec_node_device *device = node->devices[0];
    struct sums sums = {.counter = (double)device->total[HEC_NODE_ENERGY_MJ] * 1e-3};
    for (size_t row = 0; row < hec_shares_count(device->shares); row++) {
        const struct hec_shares_row *share = hec_shares_row(device->shares, row);
        for (int i = 0; i < count; i++)
            if (share->tenant.pid == tenants[i].pid) {
                tenants[i].active = (double)share->uj[HEC_SHARES_ACTIVE] * 1e-6;
                tenants[i].bound = hec_share_error_bound_uj(&share->error) * 1e-6;
            }
        sums.tenants += (double)share->uj[HEC_SHARES_ACTIVE] * 1e-6;
        sums.nobody += (double)share->uj[HEC_SHARES_UNATTRIBUTED] * 1e-6;
        sums.idle += (double)share->uj[HEC_SHARES_IDLE] * 1e-6;
    }
    hec_lane_close(&lane);
    hec_node_free(node);
    destroy_world(NULL);
    return sums;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

TEST(tenants_of_instances_are_near_the_truth) {
    static double wrong[WORLDS * SIM_MIG_MAX], width[WORLDS * SIM_MIG_MAX], moved[WORLDS];
    int seen = 0, small = 0, held = 0;
    double nobody = 0, all = 0;
    for (int number = 0; number < WORLDS; number++) {
        const char *divided = parts[number % (int)(sizeof parts / sizeof parts[0])];
        int count = (int)(strlen(divided) + 1) / 3;
        struct sums sums = play(divided, count);
        double total = 0, away = 0;
        assert_true(fabs(sums.tenants + sums.nobody + sums.idle - sums.counter) < 1e-3 * sums.counter);
        for (int i = 0; i < count; i++) {
            total += tenants[i].truth;
            away += fabs(tenants[i].active - tenants[i].truth) / 2;
        }
        for (int i = 0; i < count; i++)
            if (tenants[i].truth > 0.03 * total) {
                held += fabs(tenants[i].active - tenants[i].truth) <= tenants[i].bound;
                width[seen] = tenants[i].bound / tenants[i].active;
                wrong[seen++] = fabs(tenants[i].active / tenants[i].truth - 1);
            } else /* kernels of microseconds add 4 W to a whole device: a relative error says nothing */
                small++;
        moved[number] = away / total;
        nobody += sums.nobody;
        all += sums.counter;
    }
    qsort(wrong, (size_t)seen, sizeof *wrong, ascending);
    qsort(width, (size_t)seen, sizeof *width, ascending);
    qsort(moved, WORLDS, sizeof *moved, ascending);
    printf(
        "joules of %d tenants in instances of %d devices: off by %.1f %% (median), %.1f %% (90 in 100), %.1f %% (worst), "
        "without %d that draw less than 3 %%; joules given to others: %.1f %% (median), %.1f %% (worst); nobody's: %.2f %%\n",
        seen, WORLDS, 100 * wrong[seen / 2], 100 * wrong[seen * 9 / 10], 100 * wrong[seen - 1], small,
        100 * moved[WORLDS / 2], 100 * moved[WORLDS - 1], 100 * nobody / all);
    printf("their bounds held for %.1f %%; they are %.0f %% (median), %.0f %% (90 in 100) of a tenant's joules\n",
           100.0 * held / seen, 100 * width[seen / 2], 100 * width[seen * 9 / 10]);
    assert_true(wrong[seen / 2] < 0.05);
    assert_true(moved[WORLDS / 2] < 0.04);
    assert_true(held >= 0.9 * seen);
    assert_true(nobody < 0.02 * all);
}

static int start_tenants(void **state) {
    (void)state;
    for (int i = 0; i < SIM_MIG_MAX; i++) {
        tenants[i].pid = fork();
        if (tenants[i].pid == 0)
            for (;;)
                pause();
    }
    return 0;
}
static int end_tenants(void **state) {
    (void)state;
    for (int i = 0; i < SIM_MIG_MAX; i++) {
        kill(tenants[i].pid, SIGKILL);
        waitpid(tenants[i].pid, NULL, 0);
    }
    return 0;
}

EACH_TEST(start_tenants, end_tenants)
