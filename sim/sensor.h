/* What the sensors of a simulated device show, which is not what is true: values come in quanta, on grids, with noise.
 * Shared by the double of libnvidia-ml and by tests. Times are of the world's clock. */
#pragma once

#include "sim/world.h"

#define SIM_HISTORY_PERIOD_NS INT64_C(20000000)     /* one power sample */
#define SIM_HISTORY_LENGTH 119                      /* what the driver keeps: 2.36 s */
#define SIM_POWER_PERIOD_NS INT64_C(100000000)      /* a new value of the polled power readings */
#define SIM_UTIL_WINDOW_NS INT64_C(166666667)       /* utilisation is a mean over this */
#define SIM_LOADED_BEFORE_NS INT64_C(3600000000000) /* the driver was loaded this long before the epoch, and idle */

/* The instant at which the counter took the value that it shows at t: the last edge of the grid of profile->quantum_ns
 * (each device has its own phase), or a reset since. */
int64_t sim_sensor_edge_ns(struct sim_world *world, int device, int64_t t_ns);
/* mJ since driver load, or since the last reset. */
uint64_t sim_sensor_energy_mj(struct sim_world *world, int device, int64_t t_ns);

/* Sample k of the power history is of epoch + k * SIM_HISTORY_PERIOD_NS. It is the mean over the time that the
 * specification's sensor averages, as late as that is (its period, and not at all), plus noise. */
int64_t sim_sensor_history_last(struct sim_world *world, int64_t t_ns);
int32_t sim_sensor_history_mw(struct sim_world *world, int device, int64_t k);
bool sim_sensor_history_lost(struct sim_world *world, int device, int64_t k);

/* Polled power: of the last 20 ms or of the last second before the last edge of SIM_POWER_PERIOD_NS, plus noise. */
int32_t sim_sensor_instant_mw(struct sim_world *world, int device, int64_t t_ns);
int32_t sim_sensor_average_mw(struct sim_world *world, int device, int64_t t_ns);

/* Mean counters over (t0, t1]. */
void sim_sensor_counters(struct sim_world *world, int device, int64_t t0_ns, int64_t t1_ns, struct sim_counters *mean);

int sim_sensor_sm_clock_mhz(struct sim_world *world, int device, int64_t t_ns);
/* 28 degrees and 0.05 a watt of the last 30 s. Modelled. */
int sim_sensor_temperature_c(struct sim_world *world, int device, int64_t t_ns);
/* NVML's mask of clocks event reasons: 1 idle, 4 power cap. */
unsigned long long sim_sensor_throttle(struct sim_world *world, int device, int64_t t_ns);
/* Memory that programs hold, without what the driver reserves. */
int64_t sim_sensor_memory_bytes(struct sim_world *world, int device);
