#include "act/power_restore.h"

#include "act/power_journal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_ours(const struct hec_power_entry *entry, int64_t now) {
    if (entry->knob == HEC_POWER_CLOCK)
        return now != 0; /* a lock has no value that could be read */
    return now == entry->value || (entry->before && now == entry->before);
}

/* After a restart the driver has begun anew: a lock is gone, whoever limits clocks now is somebody else. */
static bool is_over(const struct hec_power_machine *machine, const struct hec_power_entry *entry) {
    return entry->knob == HEC_POWER_CLOCK && strcmp(machine->boot, entry->boot) != 0;
}

int hec_power_restore_entry(const struct hec_power_machine *machine, const struct hec_power_entry *entry,
                            struct hec_buf *said, struct hec_why *why) {
    struct hec_power_device device;
    int64_t now = 0;
    bool written = false;
    char prior[32], ours[32], found[32];
    int err = hec_power_device_find(machine, entry->uuid, &device, why);
    if (err == HEC_OK)
        err = hec_power_device_read(machine, &device, entry->knob, &now, why);
    if (err < 0)
        return err;
    hec_power_value_words(entry->knob, entry->prior, prior);
    hec_power_value_words(entry->knob, entry->value, ours);
    hec_power_value_words(entry->knob, now, found);
    if (now != entry->prior && is_ours(entry, now) && !is_over(machine, entry)) {
        if ((err = hec_power_device_write(machine, &device, entry->knob, entry->prior, false, why)) < 0)
            return err;
        written = true;
    } else if (now != entry->prior && strcmp(machine->boot, entry->boot) == 0) {
        hec_buf_printf(said,
                       "%s %s: somebody has set %s meanwhile, which is left alone (hec set %s, and %s was there)\n",
                       device.name, device.uuid, found, ours, prior);
    }
    err = hec_power_journal_remove(entry, why);
    return err < 0 ? err : written;
}

struct sweep {
    struct hec_buf *not_put_back, *put_back; /* words of each */
    int restored, left;
};

static void leave(struct sweep *sweep, const char *path, const char *why) {
    sweep->left++;
    hec_buf_printf(sweep->not_put_back, "%s: left as it is: %s\n", path, why);
}

/* A simulated machine whose file is gone took its limits with it. */
static bool is_gone(const struct hec_power_entry *entry) {
    const char *state = entry->machine[0] ? strstr(entry->machine, "state=") : NULL;
    return state && access(state + strlen("state="), F_OK) != 0 && errno == ENOENT;
}

static int restore_one(const struct hec_power_entry *entry, struct sweep *sweep, struct hec_why *why) {
    struct hec_power_machine machine;
    int err = hec_power_machine_open(entry->machine[0] ? entry->machine : NULL, &machine, why);
    if (err < 0)
        return err;
    err = hec_power_restore_entry(&machine, entry, sweep->put_back, why);
    hec_power_machine_close(&machine);
    if (err > 0) {
        char prior[32];
        hec_power_value_words(entry->knob, entry->prior, prior);
        hec_buf_printf(sweep->put_back, "%s: %s is back\n", entry->uuid, prior);
    }
    return err;
}

static void visit(void *context, const char *path, int err, const struct hec_power_entry *seen, const char *damage) {
    struct sweep *sweep = context;
    struct hec_power_entry entry;
    struct hec_why why = {""};
    int lock;
    if (err < 0) {
        leave(sweep, path, damage);
        return;
    }
    err = hec_power_journal_lock(seen->uuid, seen->machine, &lock, &why);
    if (err == HEC_ERR_BUSY) /* a lease, or another sweep */
        return;
    if (err == HEC_OK) {
        err = hec_power_journal_read(seen->uuid, seen->machine, seen->knob, &entry, &why);
        if (err == HEC_OK) {
            err = is_gone(&entry) ? hec_power_journal_remove(&entry, &why) : restore_one(&entry, sweep, &why);
            sweep->restored += err > 0;
        } else if (err == HEC_ERR_NOTFOUND) {
            err = HEC_OK;
        }
        hec_power_journal_unlock(seen->uuid, seen->machine, lock);
    }
    if (err < 0)
        leave(sweep, path, why.text);
}

int hec_power_restore_all(int *left, struct hec_buf *said) {
    struct hec_buf put_back;
    hec_buf_init(&put_back, said->maximum);
    struct sweep sweep = {.not_put_back = said, .put_back = &put_back};
    hec_power_journal_each(visit, &sweep);
    hec_buf_puts(said, hec_buf_text(&put_back));
    hec_buf_free(&put_back);
    *left = sweep.left;
    return sweep.restored;
}
