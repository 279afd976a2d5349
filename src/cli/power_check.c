/* What the power guard has not put back, as rows for `hec doctor`, and putting it back. */
#include "act/power_device.h"
#include "act/power_guard.h"
#include "act/power_journal.h"
#include "cli/checks.h"
#include "launch/descendants.h"

#include <stdio.h>
#include <string.h>

#define AREA "power"
#define NAME "limits"

static void add_entry(void *context, const char *path, int err, const struct hec_power_entry *entry, const char *why) {
    struct hec_check_list *list = context;
    struct hec_check *row;
    char prior[32], value[32];
    if (err < 0) {
        row = hec_check_add(list, AREA, NAME, HEC_CHECK_LIMITED, "%.250s", why);
        snprintf(row->remedy, sizeof row->remedy, "when the limits are right (nvidia-smi -q), remove %.100s", path);
        return;
    }
    hec_power_value_words(entry->knob, entry->prior, prior);
    hec_power_value_words(entry->knob, entry->value, value);
    if (hec_process_start((pid_t)entry->holder) == (unsigned long long)entry->holder_start) {
        hec_check_add(list, AREA, NAME, HEC_CHECK_OK, "%.50s: %s, as long as process %lld (%.60s) runs; then %s",
                      entry->uuid, value, (long long)entry->holder, entry->program, prior);
        return;
    }
    row = hec_check_add(list, AREA, NAME, HEC_CHECK_LIMITED, "%.50s: %s instead of %s, left by process %lld (%.60s)",
                        entry->uuid, value, prior, (long long)entry->holder, entry->program);
    snprintf(row->remedy, sizeof row->remedy, "`hec doctor --restore` puts it back");
}

static void restore(struct hec_check_list *list) {
    struct hec_buf said;
    struct hec_why why = {""};
    char *rest, *line;
    int left;
    hec_buf_init(&said, 65536);
    if (hec_power_restore(&left, &said, &why) < 0)
        hec_check_add(list, AREA, NAME, HEC_CHECK_LIMITED, "%.250s", why.text);
    for (rest = said.data; rest && (line = strsep(&rest, "\n"));)
        if (*line)
            hec_check_add(list, AREA, NAME, HEC_CHECK_OK, "%.250s", line);
    hec_buf_free(&said);
}

void hec_check_power(bool put_back, struct hec_check_list *list) {
    int before = list->count;
    if (put_back)
        restore(list);
    hec_power_journal_each(add_entry, list);
    if (list->count == before)
        hec_check_add(list, AREA, NAME, HEC_CHECK_OK, "hec has changed none, or put them back");
}
