/* The shared machine: who is on it, what the sensors show, and what faults do to them. */
#include "diagnose/meter/sensor_response.h"
#include "sim/sensor.h"
#include "sim/state.h"
#include "tests/unit/sim_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

/* Time since the epoch, in virtual time. */
static int64_t at(int64_t since_ns) {
    sim_world_set_now_ns(world, sim_world_epoch_ns(world) + since_ns);
    return sim_world_epoch_ns(world) + since_ns;
}

TEST(is_found_by_others) {
    struct sim_world *other;
    make_world("h200x2");
    struct hec_why why = {""};
    assert_int_equal(sim_world_attach(sim_world_path(world), &other, &why), HEC_OK);
    assert_int_equal(sim_world_spec(other)->count, 2);
    assert_int_equal(sim_world_epoch_ns(other), sim_world_epoch_ns(world));
    assert_int_equal(sim_world_set_cap_mw(world, 1, 400000), HEC_OK);
    assert_int_equal(sim_world_cap_mw(other, 1), 400000);
    assert_int_equal(sim_world_cap_mw(other, 0), 700000);
    assert_int_equal(sim_world_set_cap_mw(world, 1, 100000), HEC_ERR_USAGE);
    assert_int_equal(sim_world_set_cap_mw(world, 1, 800000), HEC_ERR_USAGE);
    sim_world_detach(other);
    assert_int_equal(sim_world_attach(NULL, &other, NULL), HEC_OK);
    sim_world_detach(other);
    char path[300];
    snprintf(path, sizeof path, "%s", sim_world_path(world));
    sim_world_destroy(world);
    world = NULL;
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(sim_world_attach(NULL, &other, &why), HEC_ERR_NOTFOUND);
    unsetenv(SIM_WORLD_ENV);
    assert_int_equal(sim_world_attach(NULL, &other, &why), HEC_ERR_NOTFOUND);
    assert_non_null(strstr(why.text, "--sim"));
    sim_world_detach(NULL);
    sim_world_destroy(NULL);
}

/* Attach to such bytes in memory of their own. */
static int attach_to(const char *bytes, size_t length, unsigned seals) {
    char path[64];
    struct sim_world *attached;
    int fd = memfd_create("damaged", MFD_ALLOW_SEALING);
    assert_true(fd >= 0 && pwrite(fd, bytes, length, 0) == (ssize_t)length);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int err = sim_world_attach(path, &attached, NULL);
    if (err == HEC_OK)
        sim_world_detach(attached);
    close(fd);
    return err;
}

TEST(refuses_foreign_files) {
    enum { SEALED = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW };
    struct sim_world *other;
    make_world("h200");
    struct stat status;
    int fd = open(sim_world_path(world), O_RDONLY);
    assert_int_equal(fstat(fd, &status), 0);
    size_t length = (size_t)status.st_size;
    char *bytes = malloc(length);
    assert_int_equal(read(fd, bytes, length), (ssize_t)length);
    close(fd);
    assert_int_equal(attach_to(bytes, length, SEALED), HEC_OK);
    assert_int_equal(attach_to(bytes, length, 0), HEC_ERR_CORRUPT); /* anybody may cut it off */
    assert_int_equal(attach_to(bytes, length, F_SEAL_GROW), HEC_ERR_CORRUPT);
    assert_int_equal(attach_to(bytes, length - 1, SEALED), HEC_ERR_CORRUPT);
    assert_int_equal(attach_to(bytes, 100, SEALED), HEC_ERR_CORRUPT);
    assert_int_equal(attach_to(bytes, 0, SEALED), HEC_ERR_CORRUPT);
    bytes[0] ^= 1;
    assert_int_equal(attach_to(bytes, length, SEALED), HEC_ERR_CORRUPT);
    memset(bytes, 0xa5, length);
    assert_int_equal(attach_to(bytes, length, SEALED), HEC_ERR_CORRUPT);
    free(bytes);
    char path[] = "sim-world-foreign-XXXXXX";
    fd = mkstemp(path);
    assert_int_equal(sim_world_attach(path, &other, NULL), HEC_ERR_CORRUPT);
    assert_int_equal(sim_world_attach("/dev/null", &other, NULL), HEC_ERR_CORRUPT);
    close(fd);
    unlink(path);
}

/* A process of the command that cuts the memory off would end all others with SIGBUS: it cannot. */
TEST(cannot_be_cut_off) {
    make_world("h200");
    int fd = open(sim_world_path(world), O_RDWR);
    struct stat before, after;
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &before), 0);
    assert_int_equal(truncate(sim_world_path(world), 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(open(sim_world_path(world), O_RDWR | O_TRUNC), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1); /* nor can it stop the others from writing */
    assert_int_equal(fstat(fd, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(sim_world_spec(world)->count, 1);
    close(fd);
}

/* Who uses the machine of a killed hec goes on; nobody finds it any more. */
TEST(a_killed_maker_leaves_nothing) {
    char path[300] = "";
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct sim_world *left = new_world("h200");
        const char *name = sim_world_path(left);
        if (write(ready[1], name, strlen(name)) > 0)
            pause();
        _exit(1);
    }
    assert_true(read(ready[0], path, sizeof path - 1) > 0);
    struct sim_world *used = NULL, *late = NULL;
    assert_int_equal(sim_world_attach(path, &used, NULL), HEC_OK);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(sim_world_attach(path, &late, NULL), HEC_ERR_NOTFOUND);
    assert_int_equal(sim_world_set_cap_mw(used, 0, 400000), HEC_OK);
    assert_int_equal(sim_world_cap_mw(used, 0), 400000);
    sim_world_detach(used);
    close(ready[0]);
    close(ready[1]);
}

/* Machines of one file have one power limit, now and later; what a workload brings with it goes with the run. */
TEST(limits_outlive_a_run) {
    char path[200], spec[240], base[128];
    assert_non_null(getcwd(base, sizeof base));
    snprintf(path, sizeof path, "%s/state-%d", base, (int)getpid());
    snprintf(spec, sizeof spec, "h200x2,cap=600,outside=500,state=%s", path);
    struct sim_world *one = new_world(spec), *other = new_world(spec), *seen;
    assert_int_equal(sim_world_attach(sim_world_path(other), &seen, NULL), HEC_OK);
    assert_int_equal(sim_world_set_cap_mw(one, 1, 456789), HEC_OK);
    assert_int_equal(sim_world_set_clock_mhz(one, 1, 1200), HEC_OK);
    sim_world_set_own_mw(one, 0, 300000);
    sim_world_destroy(one);
    assert_int_equal(sim_world_cap_mw(other, 1), 456789);
    assert_int_equal(sim_world_limits(seen, 1).cap_mw, 456789);
    assert_int_equal(sim_world_limits(seen, 1).clock_mhz, 1200);
    assert_int_equal(sim_world_cap_mw(seen, 0), 600000);
    assert_int_equal(sim_world_limits(seen, 0).cap_mw, 500000); /* outside */
    sim_world_set_own_mw(other, 0, 300000);
    assert_int_equal(sim_world_limits(seen, 0).cap_mw, 300000);
    assert_int_equal(sim_world_cap_mw(seen, 0), 600000);
    sim_world_detach(seen);
    sim_world_destroy(other);
    one = new_world(spec);
    char boot[64];
    snprintf(boot, sizeof boot, "%s", sim_world_boot(one));
    assert_int_equal(sim_world_cap_mw(one, 1), 456789);
    sim_world_destroy(one);
    assert_int_equal(sim_state_restart(path, &(struct sim_setting){700000, 0}), HEC_OK);
    one = new_world(spec);
    assert_int_equal(sim_world_cap_mw(one, 1), 700000);
    assert_string_not_equal(sim_world_boot(one), boot);
    sim_world_destroy(one);
    /* not a state; of other devices */
    struct sim_spec wrong;
    struct hec_why why;
    snprintf(spec, sizeof spec, "a100,state=%s", path);
    assert_int_equal(sim_spec_parse(spec, &wrong, &why), HEC_OK);
    assert_int_equal(sim_world_create(&wrong, &one, &why), HEC_ERR_USAGE);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(sim_world_create(&wrong, &one, &why), HEC_ERR_CORRUPT);
    unlink(path);
}

TEST(contexts_raise_the_idle_power) {
    make_world("h200,clock=virtual");
    struct sim_context contexts[SIM_CONTEXT_MAX];
    struct sim_piece pieces[2];
    int64_t t;
    at(1 * S);
    assert_int_equal(sim_segment_append(world, 0, 42, SIM_GEMM_FP32, 0, MS, pieces), HEC_ERR_NOTFOUND);
    assert_int_equal(sim_context_open(world, 0, 0, 42, 1 << 30, &t), HEC_OK);
    assert_int_equal(t, at(1 * S));
    at(2 * S);
    assert_int_equal(sim_context_open(world, 0, 0, 43, 1 << 20, &t), HEC_OK);
    assert_int_equal(sim_world_contexts(world, 0, contexts), 2);
    assert_int_equal(sim_sensor_memory_bytes(world, 0), (1 << 30) + (1 << 20));
    at(3 * S);
    sim_context_close(world, 0, 42, &t);
    at(4 * S);
    sim_context_close(world, 0, 43, &t);
    assert_int_equal(sim_context_close(world, 0, 43, &t), HEC_ERR_NOTFOUND);
    t = at(6 * S);
    assert_int_equal(sim_world_energy_nj(world, 0, t), 1000000 * INT64_C(1000) * (82 * 3 + 120 * 3));
}

TEST(the_past_is_not_rewritten) {
    make_world("h200,clock=virtual");
    struct sim_piece pieces[2];
    int64_t t, now = at(10 * S);
    sim_context_open(world, 0, 0, 42, 0, &t);
    assert_int_equal(sim_segment_append(world, 0, 42, SIM_GEMM_FP32, now - 5 * S, 10 * MS, pieces), 1);
    assert_int_equal(pieces[0].start_ns, now);
    /* closing takes the future back: from here on nothing */
    assert_int_equal(sim_segment_append(world, 0, 42, SIM_GEMM_FP32, now + 20 * MS, 1000 * MS, pieces), 1);
    now = at(10 * S + 100 * MS);
    sim_context_close(world, 0, 42, &t);
    int64_t nj = sim_world_energy_nj(world, 0, now);
    assert_int_equal(nj,
                     sim_energy_of(82000, 10 * S) + sim_energy_of(652000, 90 * MS) + sim_energy_of(120000, 10 * MS));
    assert_int_equal(sim_world_energy_nj(world, 0, now + S) - nj, sim_energy_of(82000, S));
}

TEST(a_killed_process_loses_its_context) {
    make_world("h200");
    struct sim_context contexts[SIM_CONTEXT_MAX];
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        int64_t t;
        struct sim_piece pieces[2];
        sim_context_open(world, 0, 0, getpid(), 1 << 20, &t);
        sim_segment_append(world, 0, getpid(), SIM_GEMM_FP32, t, 1000 * S, pieces);
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(sim_world_contexts(world, 0, contexts), 1);
    assert_int_equal(contexts[0].pid, child);
    kill(child, SIGKILL);
    /* a zombie holds no context: it goes before anybody waits for the child */
    int count = 1;
    for (int i = 0; i < 2000 && count; i++) {
        usleep(5000);
        count = sim_world_contexts(world, 0, contexts);
    }
    assert_int_equal(count, 0);
    int64_t t = sim_world_now_ns(world);
    assert_int_equal(sim_world_at(world, 0, t + S).activity, SIM_IDLE);
    assert_int_equal(sim_world_energy_nj(world, 0, t + 2 * S) - sim_world_energy_nj(world, 0, t + S),
                     sim_energy_of(82000, S));
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

/* Writers killed at any moment leave a machine that works. */
TEST(survives_killed_writers) {
    make_world("h200");
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0) {
            int64_t t;
            struct sim_piece pieces[2];
            for (;;) {
                sim_context_open(world, 0, 0, getpid(), 1 << 20, &t);
                for (int i = 0; i < 20; i++)
                    sim_segment_append(world, 0, getpid(), SIM_GEMM_FP32, t, 10000, pieces);
                sim_context_close(world, 0, getpid(), &t);
            }
        }
        usleep(1000 + 137 * (useconds_t)round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        int64_t now = sim_world_now_ns(world), energy = sim_world_energy_nj(world, 0, now);
        struct sim_active active;
        int64_t sum = 0;
        sim_world_active(world, 0, now, &active);
        for (int a = 0; a < SIM_ACTIVITY_COUNT; a++) {
            assert_true(active.ns[a] >= 0);
            assert_int_equal(active.work_ns[a], active.ns[a]);
            sum += active.ns[a];
        }
        assert_int_equal(sum, now - sim_world_epoch_ns(world));
        assert_true(energy >= sim_energy_of(82000, sum) && energy <= sim_energy_of(700000, sum));
    }
}

TEST(counter_moves_in_quanta) {
    make_world("h200x2,clock=virtual");
    struct sim_piece pieces[2];
    int64_t t, epoch = sim_world_epoch_ns(world);
    sim_context_open(world, 0, 0, 42, 0, &t);
    sim_segment_append(world, 0, 42, SIM_GEMM_FP32, t, 100 * S, pieces);
    /* since the driver was loaded: an hour of idling */
    assert_int_equal(sim_sensor_energy_mj(world, 0, epoch), UINT64_C(295200000));
    uint64_t last = sim_sensor_energy_mj(world, 0, epoch);
    int changes = 0;
    for (t = at(0); t < epoch + 10 * S; t += MS / 4) {
        uint64_t mj = sim_sensor_energy_mj(world, 0, t);
        int64_t edge = sim_sensor_edge_ns(world, 0, t);
        assert_true(edge <= t && t - edge < 99940000);
        if (mj != last) {
            changes++;
            assert_true(t - edge < MS / 4); /* just now */
            assert_int_equal((edge - epoch) % 99940000, 0);
            assert_int_equal(mj, 295200000 + (uint64_t)sim_world_energy_nj(world, 0, edge) / 1000000);
            last = mj;
        }
    }
    assert_int_equal(changes, 100);
    /* devices are not in phase */
    assert_int_not_equal(sim_sensor_edge_ns(world, 1, epoch + S), sim_sensor_edge_ns(world, 0, epoch + S));
}

TEST(counter_resets) {
    make_world("h200x2,clock=virtual,reset@2:1,reset@5:1");
    int64_t epoch = sim_world_epoch_ns(world);
    assert_true(sim_sensor_energy_mj(world, 1, epoch + 2 * S - 1) > 295200000);
    assert_int_equal(sim_sensor_energy_mj(world, 1, epoch + 2 * S), 0);
    assert_int_equal(sim_sensor_edge_ns(world, 1, epoch + 2 * S + MS), epoch + 2 * S);
    uint64_t mj = sim_sensor_energy_mj(world, 1, epoch + 5 * S - 1);
    assert_in_range(mj, 82 * 2900, 82 * 3000);
    assert_true(sim_sensor_energy_mj(world, 1, epoch + 6 * S) <= 82 * 1000);
    assert_true(sim_sensor_energy_mj(world, 0, epoch + 6 * S) > 295200000);
}

TEST(power_history_is_the_mean_of_its_period) {
    struct sim_world *noisy = new_world("h200,clock=virtual,noise=5");
    make_world("h200,clock=virtual");
    struct sim_piece pieces[2];
    int64_t t, epoch = sim_world_epoch_ns(world);
    sim_context_open(world, 0, 0, 42, 0, &t);
    sim_segment_append(world, 0, 42, SIM_GEMM_FP32, epoch + 25 * MS, 10 * MS, pieces);
    assert_int_equal(sim_sensor_history_last(world, epoch + 39 * MS), 1);
    assert_int_equal(sim_sensor_history_last(world, epoch + 40 * MS), 2);
    assert_int_equal(sim_sensor_history_mw(world, 0, 1), 120000);
    assert_int_equal(sim_sensor_history_mw(world, 0, 2), (652000 + 120000) / 2);
    assert_int_equal(sim_sensor_history_mw(world, 0, -5), 82000); /* before the world there was an idle device */
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < 5000; k++) {
        double deviation = sim_sensor_history_mw(noisy, 0, k) - 82000;
        sum += deviation;
        squares += deviation * deviation;
    }
    assert_true(fabs(sum / 5000) < 300 && fabs(sqrt(squares / 5000) - 5000) < 300);
    assert_int_equal(sim_sensor_history_mw(noisy, 0, 7), sim_sensor_history_mw(noisy, 0, 7));
    assert_int_equal(sim_sensor_energy_mj(noisy, 0, sim_world_epoch_ns(noisy)), UINT64_C(295200000));
    sim_world_destroy(noisy);
}

/* What hec calibrate makes of the readings of sensors of which it knows nothing: their window and their delay. */
TEST(sensors_are_found_out) {
    static const int wave_ms[] = {300, 150, 80,  250, 700, 120, 60, 400, 180, 90,  500, 220, 110, 340,
                                  70,  600, 200, 130, 450, 100, 65, 280, 900, 160, 85,  370, 140, 1200};
    uint64_t seed = getenv("HEC_TEST_SEED") ? strtoull(getenv("HEC_TEST_SEED"), NULL, 10) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint64_t run = 0; run < 6; run++) {
        char text[100];
        int64_t edges[32], now = 2 * S, created, epoch;
        static struct hec_sensor_reading readings[1000];
        struct sim_piece pieces[4];
        struct hec_sensor_response found;
        double window_ms = round(20 * pow(50, sim_hash_unit(seed, run, 0))),
               lag_ms = round(40 * sim_hash_unit(seed, run, 1));
        int edge_count = 0, count = 0, all = 0;
        snprintf(text, sizeof text, "h200,clock=virtual,sensor=%.0f:%.0f,noise=4,lose=20", window_ms, lag_ms);
        make_world(text);
        epoch = sim_world_epoch_ns(world);
        sim_context_open(world, 0, 0, 42, 0, &created);
        for (size_t i = 0; i < sizeof wave_ms / sizeof wave_ms[0]; i += 2) {
            edges[edge_count++] = epoch + now;
            sim_segment_append(world, 0, 42, SIM_ELEMENTWISE, epoch + now, wave_ms[i] * MS, pieces);
            edges[edge_count++] = epoch + now + wave_ms[i] * MS;
            now += (wave_ms[i] + wave_ms[i + 1]) * MS;
        }
        at(now);
        for (int64_t k = 90; k <= sim_sensor_history_last(world, epoch + now); k++, all++)
            if (!sim_sensor_history_lost(world, 0, k) && count < 1000)
                readings[count++] = (struct hec_sensor_reading){epoch + k * SIM_HISTORY_PERIOD_NS,
                                                                sim_sensor_history_mw(world, 0, k) / 1e3};
        assert_true(count < all && count > all * 8 / 10);
        assert_true(hec_sensor_response_fit(edges, edge_count, readings, count, &found));
        print_message("%s: %.0f ms, delay %.1f of %.1f ms\n", text, (double)found.window_ns * 1e-6,
                      (double)found.delay_ns * 1e-6, lag_ms + window_ms / 2);
        assert_true(fabs((double)found.window_ns * 1e-6 - window_ms) <= 0.1 * window_ms + 5);
        assert_true(fabs((double)found.delay_ns * 1e-6 - lag_ms - window_ms / 2) <= 0.02 * window_ms + 4);
    }
}

TEST(state_follows_the_activity) {
    make_world("h200,clock=virtual");
    struct sim_piece pieces[2];
    int64_t t, epoch = sim_world_epoch_ns(world);
    int cold = sim_sensor_temperature_c(world, 0, epoch);
    assert_int_equal(sim_sensor_throttle(world, 0, epoch), 1);
    assert_true(sim_sensor_sm_clock_mhz(world, 0, epoch) < 400);
    sim_context_open(world, 0, 0, 42, 0, &t);
    sim_segment_append(world, 0, 42, SIM_GEMM_BF16, epoch, 60 * S, pieces);
    assert_int_equal(sim_sensor_throttle(world, 0, epoch + 10 * MS), 0);
    assert_int_equal(sim_sensor_throttle(world, 0, epoch + S), 4);
    assert_true(sim_sensor_sm_clock_mhz(world, 0, epoch + S) < sim_sensor_sm_clock_mhz(world, 0, epoch + 10 * MS));
    assert_true(sim_sensor_temperature_c(world, 0, epoch + 40 * S) > cold + 25);
    assert_int_equal(sim_sensor_instant_mw(world, 0, epoch + 2 * S), 690900);
    struct sim_counters mean;
    sim_sensor_counters(world, 0, epoch + S, epoch + 2 * S, &mean);
    assert_true(fabs(mean.hmma - 880) < 1e-6);
}

TEST(time_can_stand_still) {
    make_world("h200,clock=virtual,lost@5");
    int64_t epoch = sim_world_epoch_ns(world);
    assert_int_equal(sim_world_now_ns(world), epoch);
    sim_world_spend(world, 3600 * S); /* costs nothing */
    assert_int_equal(sim_world_now_ns(world), epoch);
    at(4 * S);
    sim_world_set_now_ns(world, epoch); /* never back */
    assert_int_equal(sim_world_now_ns(world), epoch + 4 * S);
    assert_false(sim_world_lost(world, 0, epoch + 5 * S - 1));
    assert_true(sim_world_lost(world, 0, epoch + 5 * S));
}

EACH_TEST(NULL, destroy_world)
