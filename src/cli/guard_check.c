/* What the guard remembers, as rows for `hec doctor`, and forgetting it. */
#include "base/trace.h"
#include "cli/checks.h"
#include "launch/guard.h"
#include "model/trace.h"

#include <stdio.h>
#include <unistd.h>

#define AREA "trace"
#define NAME "guard"
#define SHOWN 8 /* of at most 64 */

/* Forgets what is asked for; a file that says nothing is removed as a whole. Returns how many, or an error. */
static int forget(struct hec_guard *guard, bool simulated, struct hec_why *why) {
    char path[PATH_MAX];
    int err = hec_guard_read(guard, why);
    if (err < 0 && hec_guard_path(path, why) == HEC_OK && unlink(path) == 0)
        return 0;
    int count = err < 0 ? err : hec_guard_forget(guard, simulated);
    if (count > 0 && (err = hec_guard_write(guard, why)) < 0)
        return err;
    return count;
}

static void add_entry(const struct hec_guard_entry *entry, const char *driver, struct hec_check_list *list) {
    char words[200];
    hec_guard_words(entry, words);
    if (!hec_guard_matches(entry, driver)) {
        hec_check_add(list, AREA, NAME, HEC_CHECK_OK, "%.160s: the driver or CUPTI is another one now", words);
        return;
    }
    struct hec_check *row =
        hec_check_add(list, AREA, NAME, HEC_CHECK_LIMITED, "%.160s, --trace=%s: auto stays without CUPTI", words,
                      hec_trace_mode_name(entry->mode));
    snprintf(row->remedy, sizeof row->remedy,
             "`hec doctor --forget%s` lets CUPTI in again; --trace=full attaches it all the same",
             hec_guard_is_simulated(entry) ? " --sim SPEC" : "");
}

void hec_check_guard(bool simulated, bool drop, struct hec_check_list *list) {
    struct hec_guard guard;
    struct hec_why why = {""};
    char driver[48];
    int forgotten = drop ? forget(&guard, simulated, &why) : 0, shown = 0;
    hec_guard_driver(simulated, driver);
    int err = forgotten < 0 ? forgotten : hec_guard_read(&guard, &why);
    if (err < 0) {
        struct hec_check *row = hec_check_add(list, AREA, NAME, HEC_CHECK_LIMITED, "%.250s", why.text);
        if (err == HEC_ERR_CORRUPT || err == HEC_ERR_VERSION)
            snprintf(row->remedy, sizeof row->remedy, "`hec doctor --forget` removes it");
        return;
    }
    for (int i = guard.count - 1; i >= 0; i--)
        if (hec_guard_is_simulated(&guard.entries[i]) == simulated && shown++ < SHOWN)
            add_entry(&guard.entries[i], driver, list);
    if (shown > SHOWN)
        hec_check_add(list, AREA, NAME, HEC_CHECK_OK, "and %d older ones", shown - SHOWN);
    if (!shown)
        hec_check_add(list, AREA, NAME, HEC_CHECK_OK, "no program is remembered that died with CUPTI attached%s",
                      forgotten > 0 ? "; forgotten just now" : "");
}
