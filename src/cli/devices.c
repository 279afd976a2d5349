/* hec devices and hec doctor: what is here, and what can be measured of it. */
#include "base/log.h"
#include "cli/checks.h"
#include "cli/load.h"
#include "launch/simulation.h"
#include "observe/collector.h"
#include "report/run/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct look {
    struct hec_args args;
    struct hec_report_style style;
    struct hec_simulation *simulation;
    struct hec_observe_options observe;
    struct hec_buf out;
};

/* What both verbs begin with. HEC_OK, 1 (help was printed) or an error that was reported. */
static int begin(struct look *look, enum hec_verb verb, int argc, char **argv) {
    int err = hec_args_parse(verb, argc, argv, &look->args);
    if (err == HEC_OK && look->args.rest_count > 0) {
        hec_error("%s takes no operand: \"%s\"", hec_verb_info(verb)->name, look->args.rest[0]);
        err = HEC_ERR_USAGE;
    }
    if (err != HEC_OK || (err = hec_load_style(&look->args, STDOUT_FILENO, &look->style)) < 0)
        return err;
    const char *spec = hec_args_value(&look->args, HEC_OPT_SIM);
    struct hec_why why = {""};
    if (spec && (err = hec_simulation_begin(spec, &look->simulation, &why)) < 0) {
        hec_error("%s", why.text);
        return err;
    }
    look->observe.nvml_path = spec ? hec_simulation_nvml(look->simulation) : NULL;
    look->observe.visible_devices = getenv("CUDA_VISIBLE_DEVICES");
    hec_buf_init(&look->out, 16u << 20);
    return HEC_OK;
}

static int end(struct look *look, int err) {
    if (err >= 0)
        err = hec_print(&look->out);
    hec_buf_free(&look->out);
    hec_simulation_end(look->simulation);
    return hec_err_exit_status(err);
}

/* The GPUs of all vendors; why there are none where a collector says it. */
static int find_devices(const struct hec_observe_options *options, struct hec_device *devices) {
    struct hec_why why, first = {""};
    int count = 0;
    for (const struct hec_collector *const *all = hec_collectors_of(HEC_OBSERVER_RUN); *all; all++) {
        why.text[0] = '\0';
        int found = (*all)->devices ? (*all)->devices(options, devices + count, HEC_DEVICE_MAX - count, &why) : 0;
        count += found > 0 ? found : 0;
        if (found < 0 && !first.text[0])
            hec_fail(&first, found, "%s", why.text[0] ? why.text : hec_err_text(found));
    }
    if (count == 0 && first.text[0])
        hec_warn("%s", first.text);
    return count;
}

int hec_verb_devices(int argc, char **argv) {
    struct look look = {0};
    int err = begin(&look, HEC_VERB_DEVICES, argc, argv);
    if (err != HEC_OK)
        return err > 0 ? 0 : hec_err_exit_status(err);
    struct hec_device devices[HEC_DEVICE_MAX];
    int count = find_devices(&look.observe, devices);
    bool json = hec_args_has(&look.args, HEC_OPT_JSON);
    return end(&look, hec_report_devices(devices, count, hec_args_has(&look.args, HEC_OPT_PARTS), json, &look.style,
                                         &look.out));
}

int hec_verb_doctor(int argc, char **argv) {
    struct look look = {0};
    int err = begin(&look, HEC_VERB_DOCTOR, argc, argv);
    if (err != HEC_OK)
        return err > 0 ? 0 : hec_err_exit_status(err);
    struct hec_check_list list = {0};
    hec_check_power(hec_args_has(&look.args, HEC_OPT_RESTORE), &list); /* before this process opens a driver itself */
    for (const struct hec_collector *const *all = hec_collectors_of(HEC_OBSERVER_RUN); *all; all++)
        if ((*all)->check)
            (*all)->check(&look.observe, &list);
    hec_check_trace(look.simulation ? hec_simulation_cuda(look.simulation) : NULL,
                    look.simulation ? hec_simulation_cupti(look.simulation) : NULL, &list);
    hec_check_guard(look.simulation != NULL, hec_args_has(&look.args, HEC_OPT_FORGET), &list);
    hec_check_python(&list);
    return end(&look, hec_report_doctor(&list, hec_args_has(&look.args, HEC_OPT_JSON), &look.style, &look.out));
}
