/* The simulated machine of a test, which the doubles find, and its time. */
#pragma once

#include "base/clock.h"
#include "sim/world.h"
#include "unit.h"

static struct sim_world *world;

static inline struct sim_world *new_world(const char *text) {
    struct sim_spec spec;
    struct sim_world *made = NULL;
    struct hec_why why = {""};
    if (sim_spec_parse(text, &spec, &why) != HEC_OK || sim_world_create(&spec, &made, &why) != HEC_OK)
        fail_msg("%s: %s", text, why.text);
    return made;
}

static inline int destroy_world(void **state) {
    (void)state;
    hec_clock_set_source(NULL);
    sim_world_destroy(world);
    world = NULL;
    return unsetenv(SIM_WORLD_ENV);
}

/* In place of the one before. */
static inline void make_world(const char *text) {
    destroy_world(NULL);
    world = new_world(text);
    setenv(SIM_WORLD_ENV, sim_world_path(world), 1);
}

static inline int64_t world_mono(void) {
    return sim_world_now_ns(world);
}

static inline int64_t world_wall(void) {
    return sim_world_now_ns(world) + sim_world_wall_offset_ns(world);
}

__attribute__((unused)) static const struct hec_clock_source world_clock = {world_mono, world_wall};
