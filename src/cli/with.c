#include "cli/with.h"

#include "base/log.h"
#include "cli/receipt_read.h"
#include "report/receipt/words.h"

#include <stdlib.h>
#include <string.h>

/* Those that a receipt has proven. */
static int add_proven(const char *path, struct hec_lever_set *set, struct hec_why *why) {
    struct hec_receipt receipt;
    json_t *root;
    int err = hec_receipt_load(path, &receipt, &root, why);
    if (err < 0)
        return err;
    const char *why_not;
    if (!receipt.levers.count)
        err = hec_fail(why, HEC_ERR_USAGE, "%.300s is of commands alone, without levers", path);
    else if (!hec_receipt_proves(&receipt, &why_not))
        err = hec_fail(why, HEC_ERR_USAGE, "%.300s proves nothing: %s", path, why_not);
    for (int i = 0; i < receipt.levers.count && err == HEC_OK; i++)
        err = hec_lever_set_add(set, receipt.levers.list[i], why);
    hec_receipt_free(&receipt);
    json_decref(root);
    return err;
}

int hec_with_parse(const struct hec_args *args, struct hec_lever_set *set) {
    struct hec_why why = {""};
    int err = HEC_OK;
    set->count = 0;
    for (int i = 0; i < args->given_count && err == HEC_OK; i++) {
        const char *value = args->given[i].value;
        if (args->given[i].option == HEC_OPT_WITH)
            err = value[0] == '@' ? add_proven(value + 1, set, &why) : hec_lever_set_add(set, value, &why);
    }
    for (int i = 0; i < set->count && err == HEC_OK; i++)
        if (set->list[i].row->place > HEC_LEVER_PLACE_DEVICE && hec_args_value(args, HEC_OPT_HOOKS) &&
            strcmp(hec_args_value(args, HEC_OPT_HOOKS), "off") == 0)
            err = hec_fail(&why, HEC_ERR_USAGE, "%s comes in by the Python hooks: not with --hooks=off",
                           set->list[i].row->name);
    if (err < 0)
        hec_error("--with: %s", why.text);
    return err;
}

int hec_with_guard(const struct hec_args *args, const struct hec_lever_set *set, const char *simulated,
                   struct hec_power_guard **guard) {
    const struct hec_power_options options = {.simulated = simulated,
                                              .visible = getenv("CUDA_VISIBLE_DEVICES"),
                                              .allowed = hec_args_has(args, HEC_OPT_ALLOW_POWER)};
    struct hec_why why = {""};
    *guard = NULL;
    int err = hec_power_levers_in(set) ? hec_power_guard_open(&options, guard, &why) : HEC_OK;
    if (err < 0)
        hec_error("%s%s", hec_args_has(args, HEC_OPT_WITH) ? "--with: " : "", why.text);
    return err;
}

int hec_with_guard_close(struct hec_power_guard *guard) {
    struct hec_why why = {""};
    int err = hec_power_guard_close(guard, &why);
    if (err < 0)
        hec_error("%s; `hec doctor --restore` tries again", why.text);
    else if (why.text[0])
        hec_warn("%s", why.text);
    return err;
}
