#include "act/power_guardian.h"

#include "act/power_journal.h"
#include "act/power_restore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SAID_MAX (64 << 10)

/* A driver that is busy for a moment: its limits are not left behind for that. */
#define ATTEMPTS 20
#define ATTEMPT_NS 250000000L

struct lease {
    struct hec_power_device device;
    int lock;                           /* -1: not held */
    bool written[HEC_POWER_KNOB_COUNT]; /* there is an entry in the journal */
    struct hec_power_entry entry[HEC_POWER_KNOB_COUNT];
};

struct guardian {
    struct hec_power_machine machine;
    struct hec_power_entry holder;
    int count;
    struct lease leases[HEC_POWER_DEVICES];
};

/* Put everything back. Every device is tried; the first reason counts. */
static int release(struct guardian *g, struct hec_buf *said, struct hec_why *why) {
    int result = HEC_OK;
    for (int i = 0; i < g->count; i++) {
        struct lease *lease = &g->leases[i];
        bool kept = false;
        for (int k = 0; k < HEC_POWER_KNOB_COUNT; k++) {
            struct hec_why reason = {""};
            int err =
                lease->written[k] ? hec_power_restore_entry(&g->machine, &lease->entry[k], said, &reason) : HEC_OK;
            lease->written[k] = lease->written[k] && err < 0;
            kept |= lease->written[k];
            if (err < 0 && result == HEC_OK)
                result = hec_fail(why, err, "%.300s", reason.text);
        }
        if (!kept && lease->lock >= 0) {
            hec_power_journal_unlock(lease->device.uuid, g->machine.name, lease->lock);
            lease->lock = -1;
        }
    }
    return result;
}

/* What a lease left whose holder and guardian were killed, under the lock. A damaged entry is an error: what was there before is
 * not known. */
static int put_back_left(const struct guardian *g, const struct lease *lease, struct hec_why *why) {
    struct hec_power_entry left;
    struct hec_buf said;
    int err = HEC_OK;
    hec_buf_init(&said, SAID_MAX);
    for (int k = 0; k < HEC_POWER_KNOB_COUNT && err >= 0; k++) {
        err = hec_power_journal_read(lease->device.uuid, g->machine.name, (enum hec_power_knob)k, &left, why);
        if (err == HEC_OK)
            err = hec_power_restore_entry(&g->machine, &left, &said, why);
        else if (err == HEC_ERR_NOTFOUND)
            err = HEC_OK;
    }
    hec_buf_free(&said);
    return err < 0 ? err : HEC_OK;
}

/* Everything that can be known before the first write. */
static int prepare(struct guardian *g, struct lease *lease, const struct power_request *request, struct hec_why *why) {
    int err = hec_power_device_check(&g->machine, &lease->device, request->knob, request->value, why);
    if (err < 0 || lease->lock >= 0)
        return err;
    err = hec_power_journal_lock(lease->device.uuid, g->machine.name, &lease->lock, why);
    return err < 0 ? err : put_back_left(g, lease, why);
}

static int write_one(struct guardian *g, struct lease *lease, const struct power_request *request,
                     struct hec_why *why) {
    struct hec_power_entry *entry = &lease->entry[request->knob];
    int err = HEC_OK;
    if (lease->written[request->knob]) {
        entry->before = entry->value;
    } else {
        *entry = g->holder;
        entry->knob = request->knob;
        memcpy(entry->uuid, lease->device.uuid, sizeof entry->uuid);
        err = hec_power_device_read(&g->machine, &lease->device, request->knob, &entry->prior, why);
        if (err == HEC_OK && request->knob == HEC_POWER_CLOCK && entry->prior)
            err = hec_fail(why, HEC_ERR_BUSY,
                           "somebody limits the clocks of the %s already, and what was set cannot be read",
                           lease->device.name);
    }
    entry->value = request->value;
    if (err == HEC_OK)
        err = hec_power_journal_write(entry, why);
    if (err < 0)
        return err;
    lease->written[request->knob] = true;
    return hec_power_device_write(&g->machine, &lease->device, request->knob, request->value, true, why);
}

static int set(struct guardian *g, const struct power_request *request, struct hec_why *why) {
    if (request->knob == HEC_POWER_CLOCK && !g->machine.simulated)
        return hec_fail(
            why, HEC_ERR_UNSUPPORTED,
            "a lock of clocks cannot be read from the driver, so what was there could not be put back: cap the power");
    int err = HEC_OK;
    for (int i = 0; i < g->count && err == HEC_OK; i++)
        err = prepare(g, &g->leases[i], request, why);
    for (int i = 0; i < g->count && err == HEC_OK; i++)
        err = write_one(g, &g->leases[i], request, why);
    return err;
}

static void answer(struct guardian *g, const struct power_request *request, struct power_reply *reply) {
    struct hec_buf said;
    struct hec_why late = {""};
    hec_buf_init(&said, SAID_MAX);
    *reply = (struct power_reply){.err = HEC_OK};
    if (request->wish == POWER_SET)
        reply->err = set(g, request, &reply->why);
    if (request->wish != POWER_SET || reply->err < 0) {
        int err = release(g, &said, &late);
        if (err < 0)
            *reply = (struct power_reply){.err = err, .why = late};
        else if (reply->err == HEC_OK && said.length)
            snprintf(reply->why.text, sizeof reply->why.text, "%.*s", (int)strcspn(said.data, "\n"), said.data);
    }
    hec_buf_free(&said);
}

static int start(struct guardian *g, const struct hec_power_options *options, struct hec_why *why) {
    struct hec_buf said;
    struct hec_power_device devices[HEC_POWER_DEVICES];
    int left;
    hec_buf_init(&said, SAID_MAX);
    hec_power_restore_all(&left, &said); /* what stays behind of these very devices is met again by prepare */
    hec_buf_free(&said);
    int err = hec_power_machine_open(options->simulated, &g->machine, why);
    if (err < 0)
        return err;
    memcpy(g->holder.machine, g->machine.name, sizeof g->holder.machine);
    memcpy(g->holder.boot, g->machine.boot, sizeof g->holder.boot);
    memcpy(g->holder.driver, g->machine.driver, sizeof g->holder.driver);
    int count = hec_power_devices(&g->machine, options->visible, devices, why);
    for (int i = 0; i < count; i++)
        g->leases[i] = (struct lease){.device = devices[i], .lock = -1};
    g->count = count < 0 ? 0 : count;
    return count < 0 ? count : HEC_OK;
}

/* Also a client that was killed in the middle of a request. */
static void put_back(struct guardian *g) {
    struct hec_buf said;
    struct hec_why why;
    hec_buf_init(&said, SAID_MAX);
    for (int i = 0; i < ATTEMPTS && release(g, &said, &why) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = ATTEMPT_NS}, NULL);
    hec_buf_free(&said);
}

void power_guardian_serve(const struct hec_power_options *options, int socket, const struct hec_power_entry *holder) {
    struct guardian *g = calloc(1, sizeof *g);
    struct power_reply reply = {.err = HEC_ERR_NOMEM};
    struct power_request request;
    ssize_t got;
    if (g) {
        g->holder = *holder;
        reply.err = start(g, options, &reply.why);
    }
    bool serving = send(socket, &reply, sizeof reply, MSG_NOSIGNAL) == (ssize_t)sizeof reply && reply.err == HEC_OK;
    while (serving) {
        while ((got = recv(socket, &request, sizeof request, 0)) < 0 && errno == EINTR)
            ;
        if (got != (ssize_t)sizeof request)
            break;
        answer(g, &request, &reply);
        serving = send(socket, &reply, sizeof reply, MSG_NOSIGNAL) == (ssize_t)sizeof reply;
    }
    if (g) {
        put_back(g);
        hec_power_machine_close(&g->machine);
        free(g);
    }
}
