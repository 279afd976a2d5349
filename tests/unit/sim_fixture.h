/* A simulated machine, which the doubles find. */
#ifndef HEC_TESTS_SIM_FIXTURE_H
#define HEC_TESTS_SIM_FIXTURE_H

#include "sim/world.h"
#include "unit.h"

static inline struct sim_world *make_world(const char *text) {
    struct sim_spec spec;
    struct sim_world *world = NULL;
    struct hec_why why = {""};
    if (sim_spec_parse(text, &spec, &why) != HEC_OK || sim_world_create(&spec, &world, &why) != HEC_OK)
        fail_msg("%s: %s", text, why.text);
    setenv(SIM_WORLD_ENV, sim_world_path(world), 1);
    return world;
}

#endif
