/* hec gather: a run file to give away, or to keep as a test. */
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/joined.h"
#include "launch/facts.h"
#include "cli/output.h"
#include "report/receipt/receipt.h"
#include "store/copy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* RUN.hec becomes RUN-gathered.hec. */
static void default_output(const char *from, char path[PATH_MAX]) {
    size_t length = strlen(from), suffix = strlen(".hec");
    if (length > suffix && strcmp(from + length - suffix, ".hec") == 0)
        length -= suffix;
    snprintf(path, PATH_MAX, "%.*s-gathered.hec", (int)length, from);
}

/* Of several files one, which they must all be of. */
static int join(const struct hec_args *args, struct hec_joined *joined, struct hec_why *why) {
    int err = hec_joined_make(args->rest, args->rest_count, joined, why);
    for (int i = 0; i < args->rest_count && err >= 0 && args->rest_count > 1; i++)
        if (!joined->path[0] || !joined->is_part[i])
            err = joined->apart[0]
                      ? hec_fail(why, HEC_ERR_USAGE, "%s", joined->apart)
                      : hec_fail(why, HEC_ERR_USAGE,
                                 "%s: not of one job with the others: other ranks of as many, in the same time",
                                 args->rest[i]);
    return err;
}

int hec_verb_gather(struct hec_args *args) {
    if (args->rest_count < 1)
        return hec_args_wrong(args, "no file");
    char path[PATH_MAX], when[40];
    struct hec_why why = {""};
    struct hec_joined joined;
    int err = hec_output_path(args, false, path, &why);
    if (err < 0) {
        hec_error("%s", why.text);
        return err;
    }
    bool given = path[0];
    if (!given)
        default_output(args->rest[0], path);
    hec_facts_wall_time(hec_clock_wall_ns(), when);
    bool hide = !hec_args_has(args, HEC_OPT_KEEP_NAMES);
    const char *const drop[] = {"folder", NULL};
    const struct hec_store_fact facts[] = {{"gathered", when}, {"gathered_by", "hec " HEC_VERSION}};
    const struct hec_store_scrub scrub = {
        .hostname = hide,
        .uuids = hide,
        .paths = hide,
        .withhold = hide ? hec_receipt_without_secrets : NULL,
        .drop = hide ? drop : NULL,
        .facts = facts,
        .fact_count = sizeof facts / sizeof facts[0],
    };
    err = join(args, &joined, &why);
    if (err >= 0)
        err = hec_store_copy(joined.path[0] ? joined.path : args->rest[0], path, hec_args_has(args, HEC_OPT_FORCE),
                             &scrub, &why);
    if (err < 0)
        hec_error("%s", why.text[0] ? why.text : hec_err_text(err));
    else if (why.text[0])
        hec_warn("a part of %s is damaged and left out: %s", args->rest[0], why.text);
    hec_joined_free(&joined);
    if (err >= 0 && !given)
        hec_text_print(stdout, path);
    return err;
}
