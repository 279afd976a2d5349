#include "sim/sensor.h"

#include "base/clock.h"

static int64_t floor_to(int64_t t_ns, int64_t origin_ns, int64_t period_ns) {
    int64_t offset = t_ns - origin_ns;
    int64_t steps = offset / period_ns - (offset % period_ns < 0);
    return origin_ns + steps * period_ns;
}

int64_t sim_sensor_edge_ns(struct sim_world *world, int device, int64_t t_ns) {
    int64_t quantum = sim_world_profile(world)->quantum_ns;
    bool was_reset;
    int64_t phase = device * INT64_C(7300000) % quantum;
    int64_t edge = floor_to(t_ns, sim_world_epoch_ns(world) + phase, quantum);
    int64_t reset = sim_world_reset_ns(world, device, t_ns, &was_reset);
    return was_reset && edge < reset ? reset : edge;
}

uint64_t sim_sensor_energy_mj(struct sim_world *world, int device, int64_t t_ns) {
    bool was_reset;
    int64_t reset = sim_world_reset_ns(world, device, t_ns, &was_reset);
    int64_t from = was_reset ? sim_world_energy_nj(world, device, reset)
                             : -sim_energy_of(sim_world_profile(world)->idle_mw, SIM_LOADED_BEFORE_NS);
    return (uint64_t)(sim_world_energy_nj(world, device, sim_sensor_edge_ns(world, device, t_ns)) - from) / 1000000;
}

/* True mean power over (t0, t1]. */
static int32_t mean_mw(struct sim_world *world, int device, int64_t t0_ns, int64_t t1_ns) {
    int64_t nj = sim_world_energy_nj(world, device, t1_ns) - sim_world_energy_nj(world, device, t0_ns);
    return (int32_t)((__int128)nj * 1000 / (t1_ns - t0_ns));
}

/* Roughly normal (the sum of 12 uniforms), reproducible from the instant. */
static int32_t with_noise(struct sim_world *world, int device, int64_t t_ns, int32_t power_mw) {
    int32_t noise = sim_world_spec(world)->noise_mw;
    if (noise == 0)
        return power_mw;
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++)
        sum += sim_hash_unit((uint64_t)device, (uint64_t)(t_ns - sim_world_epoch_ns(world)), i);
    double noisy = power_mw + sum * noise;
    return noisy > 0 ? (int32_t)noisy : 0;
}

int64_t sim_sensor_history_last(struct sim_world *world, int64_t t_ns) {
    int64_t epoch = sim_world_epoch_ns(world);
    return (floor_to(t_ns, epoch, SIM_HISTORY_PERIOD_NS) - epoch) / SIM_HISTORY_PERIOD_NS;
}

int32_t sim_sensor_history_mw(struct sim_world *world, int device, int64_t k) {
    const struct sim_spec *spec = sim_world_spec(world);
    int64_t t = sim_world_epoch_ns(world) + k * SIM_HISTORY_PERIOD_NS, end = t - spec->sensor_lag_ns;
    int64_t window = spec->sensor_window_ns ? spec->sensor_window_ns : SIM_HISTORY_PERIOD_NS;
    return with_noise(world, device, t, mean_mw(world, device, end - window, end));
}

bool sim_sensor_history_lost(struct sim_world *world, int device, int64_t k) {
    int lose = sim_world_spec(world)->lose;
    return lose && sim_hash_unit((uint64_t)device, (uint64_t)k, 13) * lose < 1;
}

static int32_t polled(struct sim_world *world, int device, int64_t t_ns, int64_t window_ns) {
    int64_t edge = floor_to(t_ns, sim_world_epoch_ns(world), SIM_POWER_PERIOD_NS);
    return with_noise(world, device, edge, mean_mw(world, device, edge - window_ns, edge));
}

int32_t sim_sensor_instant_mw(struct sim_world *world, int device, int64_t t_ns) {
    return polled(world, device, t_ns, SIM_HISTORY_PERIOD_NS);
}

int32_t sim_sensor_average_mw(struct sim_world *world, int device, int64_t t_ns) {
    return polled(world, device, t_ns, HEC_NS_PER_S);
}

void sim_sensor_counters(struct sim_world *world, int device, int64_t t0_ns, int64_t t1_ns, struct sim_counters *mean) {
    struct sim_active before, after;
    sim_world_active(world, device, t0_ns, &before);
    sim_world_active(world, device, t1_ns, &after);
    struct sim_active active = sim_active_between(&before, &after);
    sim_counters_mean(sim_world_profile(world), &active, t1_ns - t0_ns, mean);
}

int sim_sensor_sm_clock_mhz(struct sim_world *world, int device, int64_t t_ns) {
    const struct sim_profile *profile = sim_world_profile(world);
    struct sim_instant instant = sim_world_at(world, device, t_ns);
    struct sim_limits limits = sim_world_limits(world, device);
    int clock = (int)(sim_clock_mhz(profile, instant.activity, instant.power_mw) + 1e-6);
    return limits.clock_mhz && clock > limits.clock_mhz ? limits.clock_mhz : clock;
}

int sim_sensor_temperature_c(struct sim_world *world, int device, int64_t t_ns) {
    return 28 + mean_mw(world, device, t_ns - 30 * HEC_NS_PER_S, t_ns) / 20000;
}

unsigned long long sim_sensor_throttle(struct sim_world *world, int device, int64_t t_ns) {
    struct sim_instant instant = sim_world_at(world, device, t_ns);
    unsigned long long set = sim_world_limits(world, device).clock_mhz ? 2 : 0; /* "applications clocks setting" */
    if (instant.held)
        return set | 4;
    return set | (sim_activity_info(instant.activity)->work ? 0 : 1);
}

int64_t sim_sensor_memory_bytes(struct sim_world *world, int device) {
    struct sim_context contexts[SIM_CONTEXT_MAX];
    int64_t bytes = 0, room = (sim_world_profile(world)->memory_mib - sim_world_profile(world)->reserved_mib) << 20;
    for (int i = 0, count = sim_world_contexts(world, device, contexts); i < count; i++)
        bytes += contexts[i].memory_bytes;
    return bytes < room ? bytes : room;
}
