/* hec sim: play a workload on the simulated machine of `hec run --sim`, or list what can be played. */
#define HEC_HEADER_ONLY
#include <hec/hec.h>

#include "base/log.h"
#include "cli/cli.h"
#include "sim/play.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The listing gives the truth of a case for this long, on the profile that is measured. */
#define LISTED_SECONDS 10.0
#define LISTED_PROFILE "h200"

static int print_json(json_t *root) {
    char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(root);
    if (!text)
        return HEC_ERR_NOMEM;
    puts(text);
    free(text);
    return HEC_OK;
}

static int list_json(void) {
    json_t *root = sim_cases_json(), *entry;
    size_t i;
    json_array_foreach(json_object_get(root, "cases"), i, entry) {
        struct sim_truth truth;
        const struct sim_case *workload = sim_case_at((int)i);
        if (sim_case_truth(workload, LISTED_SECONDS, sim_profile_find(LISTED_PROFILE), 0, 0, &truth) < 0)
            continue;
        struct sim_show_truth shown;
        if (sim_show_predict(workload, LISTED_SECONDS, sim_profile_find(LISTED_PROFILE), 0, 0, &shown) < 0)
            continue;
        json_object_set_new(entry, "truth", sim_truth_json(&truth, NULL));
        json_object_set_new(json_object_get(entry, "truth"), "states", sim_ledger_json(&shown));
        json_object_set_new(json_object_get(entry, "truth"), "profile", json_string(LISTED_PROFILE));
    }
    return print_json(root);
}

static int list_text(void) {
    printf("%-18s %-11s %8s %9s  %s\n", "case", "planted", "W", "busy", "what it does");
    for (int i = 0; i < sim_case_count(); i++) {
        const struct sim_case *workload = sim_case_at(i);
        struct sim_truth truth;
        int err = sim_case_truth(workload, LISTED_SECONDS, sim_profile_find(LISTED_PROFILE), 0, 0, &truth);
        if (err < 0)
            return err;
        printf("%-18s %-11s %8.0f %8.0f%%  %s\n", workload->name, workload->cause, truth.joules / truth.seconds,
               100 * truth.work_seconds / truth.seconds, workload->meaning);
    }
    return HEC_OK;
}

static void mark_step(void *context, double units) {
    (void)context;
    hec_step(units);
}

/* The program's word for a wait, as the hooks of Python give it. */
static void mark_phase(void *context, const char *name, int64_t start_ns, int64_t end_ns) {
    int (**interval)(const char *, int64_t, int64_t) = context;
    if (!*interval) {
        const char *path = getenv("HEC_LIB");
        void *library = path && path[0] == '/' && getenv("HEC_SOCKET") ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        void *symbol = library ? dlsym(library, "hec_hook_interval") : NULL;
        memcpy(interval, &symbol, sizeof *interval);
    }
    if (*interval)
        (*interval)(name, start_ns, end_ns - start_ns);
}

static int play(const struct hec_args *args) {
    double seconds = 5, device = 0, seed = 0;
    if (hec_args_number(args, HEC_OPT_SECONDS, 0.1, 1e6, &seconds) < 0 ||
        hec_args_number(args, HEC_OPT_DEVICE, 0, SIM_DEVICE_MAX - 1, &device) < 0 ||
        hec_args_number(args, HEC_OPT_SEED, 0, 4294967295.0, &seed) < 0)
        return HEC_ERR_USAGE;
    struct sim_play_options options = {.seconds = seconds, .device = (int)device, .seed = (uint64_t)seed};
    int (*interval)(const char *, int64_t, int64_t) = NULL;
    if (hec_args_has(args, HEC_OPT_MARKS)) {
        options.on_step = mark_step;
        options.on_phase = mark_phase;
        options.context = &interval;
    }
    struct sim_truth truth;
    struct sim_show_truth shown;
    options.shown = &shown;
    struct hec_why why = {""};
    int err = sim_play(args->rest[0], &options, &truth, &why);
    if (err < 0) {
        hec_error("sim: %s", why.text[0] ? why.text : hec_err_text(err));
        return err;
    }
    return hec_args_has(args, HEC_OPT_JSON) ? print_json(sim_truth_json(&truth, &shown)) : HEC_OK;
}

int hec_verb_sim(struct hec_args *args) {
    if (hec_args_has(args, HEC_OPT_LIST))
        return hec_args_has(args, HEC_OPT_JSON) ? list_json() : list_text();
    if (args->rest_count != 1) {
        hec_error("sim: one case, please; `hec sim --list` shows them");
        return HEC_ERR_USAGE;
    }
    return play(args);
}
