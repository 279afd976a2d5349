#include "launch/simulation.h"

#include "launch/paths.h"
#include "sim/state.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hec_simulation {
    struct sim_world *world;
    char nvml[PATH_MAX], cuda[PATH_MAX];
    char cupti[PATH_MAX]; /* folder; "": there is none */
};

int hec_simulation_begin(const char *text, struct hec_simulation **out, struct hec_why *why) {
    struct sim_spec spec;
    int err = sim_spec_parse(text, &spec, why);
    if (err < 0)
        return err;
    struct hec_simulation *simulation = calloc(1, sizeof *simulation);
    if (!simulation)
        return hec_fail(why, HEC_ERR_NOMEM, "no memory for the simulated machine");
    char library[128];
    snprintf(library, sizeof library, "hec/%s", sim_spec_library(&spec));
    err = hec_path_lib(library, simulation->nvml, why);
    if (err == HEC_OK)
        err = hec_path_lib("hec/sim/libcuda.so.1", simulation->cuda, why);
    if (err == HEC_OK && sim_spec_cupti_folder(&spec)) {
        snprintf(library, sizeof library, "hec/%s", sim_spec_cupti_folder(&spec));
        err = hec_path_lib(library, simulation->cupti, why);
    }
    if (err == HEC_OK)
        err = sim_world_create(&spec, &simulation->world, why);
    if (err < 0) {
        free(simulation);
        return err;
    }
    setenv(SIM_WORLD_ENV, sim_world_path(simulation->world), 1);
    *out = simulation;
    return HEC_OK;
}

const char *hec_simulation_nvml(const struct hec_simulation *simulation) {
    return simulation->nvml;
}

const char *hec_simulation_cuda(const struct hec_simulation *simulation) {
    return simulation->cuda;
}

const char *hec_simulation_cupti(const struct hec_simulation *simulation) {
    return simulation->cupti;
}

int hec_simulation_spec(const struct hec_simulation *simulation, char text[HEC_SIMULATION_SPEC]) {
    const struct sim_spec *spec = sim_world_spec(simulation->world);
    if (!spec->state[0])
        return HEC_ERR_NOTFOUND;
    snprintf(text, HEC_SIMULATION_SPEC, "%sx%d,state=%s", spec->profile, spec->count, spec->state);
    return HEC_OK;
}

const char *hec_simulation_boot(const struct hec_simulation *simulation) {
    return sim_world_boot(simulation->world);
}

void hec_simulation_keep_state(const char *path) {
    if (path)
        setenv(SIM_STATE_ENV, path, 1);
    else
        unsetenv(SIM_STATE_ENV);
}

/* The folder of a file, in front of those where the command's libraries are looked for. */
static int look_in_folder_of(struct hec_environ *env, const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    return hec_environ_prepend(env, "LD_LIBRARY_PATH", folder);
}

int hec_simulation_environ(const struct hec_simulation *simulation, struct hec_environ *env) {
    int err = hec_environ_set(env, SIM_WORLD_ENV, sim_world_path(simulation->world));
    if (err == HEC_OK && simulation->cupti[0])
        err = hec_environ_prepend(env, "LD_LIBRARY_PATH", simulation->cupti);
    if (err == HEC_OK)
        err = look_in_folder_of(env, simulation->cuda);
    return err < 0 ? err : look_in_folder_of(env, simulation->nvml); /* that of an old driver has its own folder */
}

int hec_simulation_hand_down(const struct hec_simulation *simulation, struct hec_environ *env, int *fd, char **path) {
    char room[HEC_SIMULATION_PATH];
    memset(room, ' ', sizeof room);
    room[sizeof room - 1] = '\0';
    int err = hec_environ_set(env, SIM_WORLD_ENV, room);
    *path = err == HEC_OK ? (char *)hec_environ_get(env, SIM_WORLD_ENV) : NULL;
    *fd = atoi(strrchr(sim_world_path(simulation->world), '/') + 1); /* /proc/PID/fd/N */
    return err;
}

void hec_simulation_end(struct hec_simulation *simulation) {
    if (!simulation)
        return;
    unsetenv(SIM_WORLD_ENV);
    sim_world_destroy(simulation->world);
    free(simulation);
}
