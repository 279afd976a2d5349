/* hec agent: what the command line says, for the library of the agent. */
#include "agent/agent.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/exporter.h"
#include "jobs/jobs.h"
#include "launch/inject.h"
#include "launch/paths.h"
#include "launch/session.h"
#include "launch/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first that is given of an option of ours and dcgm-exporter's of the same meaning. */
static const char *either(const struct hec_args *args, enum hec_option ours, enum hec_option theirs) {
    const char *value = hec_args_value(args, ours);
    return value ? value : hec_args_value(args, theirs);
}

/* As asked for; else the usual place, where there is such a folder (systemd's RuntimeDirectory=hec) and the machine is real. */
static const char *jobs_socket(const struct hec_args *args) {
    const char *given = hec_args_value(args, HEC_OPT_JOBS);
    if (given)
        return given[0] ? given : NULL;
    return !hec_args_has(args, HEC_OPT_SIM) && access(HEC_JOBS_FOLDER, W_OK) == 0 ? HEC_JOBS_SOCKET : NULL;
}

/* What a job's environment has to hold, a variable a line. */
static int print_job_environment(const struct hec_args *args) {
    const struct hec_session_options defaults = hec_session_defaults();
    struct hec_inject inject = {.mode = defaults.trace, .memory_mb = defaults.trace_memory_mb, .hooks = defaults.hooks};
    const char *given = hec_args_value(args, HEC_OPT_JOBS);
    char *nothing[] = {NULL};
    struct hec_environ env;
    int err = hec_environ_copy(&env, nothing);
    hec_inject_for_agent(&inject, given && given[0] ? given : HEC_JOBS_SOCKET, 0, &env);
    for (size_t i = 0; i < env.count; i++)
        puts(env.list[i]);
    hec_environ_free(&env);
    return err;
}

/* Variables of dcgm-exporter, each for an option that was not given; the second is the option of HEC that goes before. */
static const struct {
    const char *name;
    enum hec_option option, before;
    bool is_switch;
} variables[] = {
    {"DCGM_EXPORTER_LISTEN", HEC_OPT_ADDRESS, HEC_OPT_LISTEN, false},
    {"DCGM_EXPORTER_INTERVAL", HEC_OPT_COLLECT_INTERVAL, HEC_OPT_INTERVAL, false},
    {"DCGM_EXPORTER_COLLECTORS", HEC_OPT_COLLECTORS, HEC_OPT_COLLECTORS, false},
    {"DCGM_EXPORTER_WEB_CONFIG_FILE", HEC_OPT_WEB_CONFIG_FILE, HEC_OPT_WEB_CONFIG, false},
    {"DCGM_POD_RESOURCES_KUBELET_SOCKET", HEC_OPT_KUBELET, HEC_OPT_KUBELET, false},
    {"DCGM_EXPORTER_DEVICES_STR", HEC_OPT_DEVICES, HEC_OPT_DEVICES, false},
    {"DCGM_REMOTE_HOSTENGINE_INFO", HEC_OPT_HOSTENGINE, HEC_OPT_HOSTENGINE, false},
    {"DCGM_EXPORTER_CONFIGMAP_DATA", HEC_OPT_CONFIGMAP, HEC_OPT_CONFIGMAP, false},
    {"DCGM_HPC_JOB_MAPPING_DIR", HEC_OPT_JOB_MAP, HEC_OPT_JOB_MAP, false},
    {"DCGM_EXPORTER_USE_OLD_NAMESPACE", HEC_OPT_OLD_NAMES, HEC_OPT_OLD_NAMES, true},
    {"DCGM_EXPORTER_NO_HOSTNAME", HEC_OPT_NO_HOSTNAME, HEC_OPT_NO_HOSTNAME, true},
    {"DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", HEC_OPT_DASHES, HEC_OPT_DASHES, true},
};

static void take_variables(struct hec_args *args) {
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        bool given = hec_args_has(args, variables[i].option) || hec_args_has(args, variables[i].before);
        if (!value || !value[0] || given || args->given_count == HEC_ARGS_MAX)
            continue;
        if (variables[i].is_switch && !hec_exporter_is_true(value))
            continue;
        args->given[args->given_count].option = variables[i].option;
        args->given[args->given_count++].value = variables[i].is_switch ? NULL : value;
    }
}

/* What of dcgm-exporter's HEC has no counterpart for. Another machine's GPUs are never shown as this one's. */
static int check_theirs(const struct hec_args *args) {
    static const char *const here[] = {"localhost",  "127.",        "[::1]", "tcp://localhost",
                                       "tcp://127.", "tcp://[::1]", "unix:"};
    const char *engine = hec_args_value(args, HEC_OPT_HOSTENGINE), *map = hec_args_value(args, HEC_OPT_CONFIGMAP);
    bool local = !engine;
    for (size_t i = 0; engine && i < sizeof here / sizeof here[0]; i++)
        local |= strncmp(engine, here[i], strlen(here[i])) == 0;
    if (map && strcmp(map, "none") != 0)
        hec_warn("agent: -m %s: HEC reads no ConfigMap; mount it and give its file to -f", map);
    if (local)
        return HEC_OK;
    hec_error("agent: -r %s: HEC reads the GPUs of its own machine and asks no host engine; start an agent there",
              engine);
    return HEC_ERR_USAGE;
}

static int choose(const struct hec_args *args, struct hec_agent_options *options) {
    double interval_s = 1, interval_ms = 0, scrape_s = HEC_AGENT_SCRAPE_S;
    if (hec_args_number(args, HEC_OPT_INTERVAL, 0.2, 3600, &interval_s) < 0 ||
        hec_args_number(args, HEC_OPT_SCRAPE_INTERVAL, 0, 600, &scrape_s) < 0 ||
        hec_args_number(args, HEC_OPT_COLLECT_INTERVAL, 200, 3.6e6, &interval_ms) < 0)
        return HEC_ERR_USAGE;
    if (!hec_args_has(args, HEC_OPT_INTERVAL) && interval_ms > 0)
        interval_s = interval_ms / 1e3;
    if (check_theirs(args) < 0)
        return HEC_ERR_USAGE;
    double window_s = 5, every_s = 60;
    if (hec_args_number(args, HEC_OPT_WINDOW, 0, 60, &window_s) < 0 ||
        hec_args_number(args, HEC_OPT_WINDOW_EVERY, 1, 86400, &every_s) < 0)
        return HEC_ERR_USAGE;
    double budget_w = 0;
    if (hec_args_number(args, HEC_OPT_POWER_BUDGET, 1, 1e6, &budget_w) < 0)
        return HEC_ERR_USAGE;
    if ((budget_w > 0) != hec_args_has(args, HEC_OPT_POWER_CLASSES)) {
        hec_error("agent: --power-budget and --power-classes need each other: the file says which jobs take part");
        return HEC_ERR_USAGE;
    }
    if (budget_w <= 0 && (hec_args_has(args, HEC_OPT_CARBON_FILE) || hec_args_has(args, HEC_OPT_PRICE_FILE))) {
        hec_error("agent: --carbon-file and --price-file are for conditions of --power-classes");
        return HEC_ERR_USAGE;
    }
    const char *listen = either(args, HEC_OPT_LISTEN, HEC_OPT_ADDRESS);
    *options = (struct hec_agent_options){
        .listen = listen ? listen : HEC_AGENT_LISTEN,
        .interval_ns = (int64_t)(interval_s * (double)HEC_NS_PER_S),
        .scrape_ns = (int64_t)(scrape_s * (double)HEC_NS_PER_S),
        .kubelet = hec_args_value(args, HEC_OPT_KUBELET),
        .account = hec_args_value(args, HEC_OPT_SERVICE_ACCOUNT),
        .web_config = either(args, HEC_OPT_WEB_CONFIG, HEC_OPT_WEB_CONFIG_FILE),
        .fields = hec_args_value(args, HEC_OPT_COLLECTORS),
        .devices = hec_args_value(args, HEC_OPT_DEVICES),
        .job_map = hec_args_value(args, HEC_OPT_JOB_MAP),
        .old_names = hec_args_has(args, HEC_OPT_OLD_NAMES),
        .all_series = hec_args_has(args, HEC_OPT_ALL_SERIES),
        .no_hostname = hec_args_has(args, HEC_OPT_NO_HOSTNAME),
        .dashes = hec_args_has(args, HEC_OPT_DASHES),
        .otlp = hec_args_value(args, HEC_OPT_OTLP),
        .user = hec_args_value(args, HEC_OPT_USER),
        .no_sandbox = hec_args_has(args, HEC_OPT_NO_SANDBOX),
        .verbose = hec_args_has(args, HEC_OPT_VERBOSE),
        .simulated = hec_args_value(args, HEC_OPT_SIM),
        .jobs = jobs_socket(args),
        .window_s = window_s,
        .window_every_s = every_s,
        .power_budget_w = budget_w,
        .power_classes = hec_args_value(args, HEC_OPT_POWER_CLASSES),
        .carbon_file = hec_args_value(args, HEC_OPT_CARBON_FILE),
        .price_file = hec_args_value(args, HEC_OPT_PRICE_FILE),
        .allow_power = hec_args_has(args, HEC_OPT_ALLOW_POWER),
    };
    return HEC_OK;
}

/* As asked for, as systemd gives it, or where hec remembers things; of a simulated machine only as asked for. */
static int find_state(const struct hec_args *args, char path[PATH_MAX], const char **out, struct hec_why *why) {
    const char *given = hec_args_value(args, HEC_OPT_STATE_DIR), *systemd = getenv("STATE_DIRECTORY");
    *out = given ? given : systemd;
    if (*out || hec_args_has(args, HEC_OPT_SIM))
        return HEC_OK;
    *out = path;
    return hec_path_state("agent", path, why);
}

int hec_verb_agent(struct hec_args *args) {
    struct hec_agent_options options;
    int (*entry)(const struct hec_agent_options *) = NULL;
    char state[PATH_MAX];
    struct hec_why why = {""};
    take_variables(args);
    hec_exporter_variables(args);
    int err = choose(args, &options);
    if (err < 0)
        return err;
    if (hec_args_has(args, HEC_OPT_JOB_ENVIRONMENT))
        return print_job_environment(args);
    const char *spec = hec_args_value(args, HEC_OPT_SIM);
    struct hec_simulation *simulation = NULL;
    err = find_state(args, state, &options.state_dir, &why);
    if (err == HEC_OK && spec && (err = hec_simulation_begin(spec, &simulation, &why)) == HEC_OK)
        options.nvml_path = hec_simulation_nvml(simulation);
    if (err == HEC_OK)
        err = hec_module_load(HEC_AGENT_LIBRARY, HEC_AGENT_ENTRY, &entry, &why);
    if (err < 0)
        hec_error("agent: %s", why.text);
    else
        err = entry(&options);
    hec_simulation_end(simulation);
    return err;
}
