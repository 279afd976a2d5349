/* hec top: what the command line says, for the library of the screen. */
#include "top/top.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/load.h"
#include "launch/simulation.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int choose(const struct hec_args *args, struct hec_top_options *options) {
    struct hec_report_style style;
    double interval_s = 1;
    const char *sort = hec_args_value(args, HEC_OPT_SORT), *filter = hec_args_value(args, HEC_OPT_FILTER);
    int err = hec_args_number(args, HEC_OPT_INTERVAL, 0.2, 3600, &interval_s);
    if (err < 0 || (err = hec_load_style(args, STDOUT_FILENO, &style)) < 0)
        return err;
    if (sort && (strchr(sort, ' ') || !sort[0] || !strstr(" " HEC_TOP_SORTS " ", sort))) {
        hec_error("top: --sort needs one of: %s", HEC_TOP_SORTS);
        return HEC_ERR_USAGE;
    }
    *options = (struct hec_top_options){
        .interval_ns = (int64_t)(interval_s * (double)HEC_NS_PER_S),
        .sort = sort,
        .filter = filter,
        .once = hec_args_has(args, HEC_OPT_ONCE),
        .waste = hec_args_has(args, HEC_OPT_WASTE),
        .json = hec_args_has(args, HEC_OPT_JSON),
        .schema = hec_args_has(args, HEC_OPT_SCHEMA),
        .color = style.color,
        .utf8 = style.utf8,
        .columns = style.columns,
    };
    return HEC_OK;
}

int hec_verb_top(struct hec_args *args) {
    struct hec_top_options options;
    int (*entry)(const struct hec_top_options *) = NULL;
    struct hec_simulation *simulation = NULL;
    struct hec_why why = {""};
    int err = choose(args, &options);
    if (err < 0)
        return err;
    const char *spec = hec_args_value(args, HEC_OPT_SIM);
    if (spec && (err = hec_simulation_begin(spec, &simulation, &why)) == HEC_OK)
        options.nvml_path = hec_simulation_nvml(simulation);
    if (err == HEC_OK)
        err = hec_module_load(HEC_TOP_LIBRARY, HEC_TOP_ENTRY, &entry, &why);
    if (err < 0)
        hec_error("top: %s", why.text);
    else
        err = entry(&options);
    hec_simulation_end(simulation);
    return err;
}
