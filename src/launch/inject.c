#include "launch/inject.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/ring.h"
#include "launch/guard.h"
#include "launch/paths.h"
#include "model/trace.h"
#include "observe/marks/marks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool hec_inject_is_ours(const char *value) {
    const char *slash = strrchr(value, '/');
    return strcmp(slash ? slash + 1 : value, HEC_INJECT_LIBRARY) == 0;
}

static bool write_name(struct hec_ring *ring, uint32_t id, const char *text) {
    size_t length = strlen(text), pieces = (length + HEC_RING_NAME_PIECE - 1) / HEC_RING_NAME_PIECE;
    bool written = true;
    for (size_t i = 0; i < pieces && written; i++) {
        struct hec_ring_record record = {.t_ns = hec_clock_mono_ns(), .kind = HEC_RING_NAME};
        size_t at = i * HEC_RING_NAME_PIECE, left = length - at;
        record.u.name = (struct hec_ring_name){
            .id = id, .piece = (uint8_t)i, .pieces = (uint8_t)pieces, .length = (uint16_t)length};
        memcpy(record.u.name.text, text + at, left < HEC_RING_NAME_PIECE ? left : HEC_RING_NAME_PIECE);
        written = hec_ring_write(ring, &record);
    }
    return written;
}

/* An outer `hec run` will see nothing of the command: report why, as a tracer would. Where that fails it only says
 * less. */
static void report_outer(const struct hec_environ *env) {
    const char *socket = hec_environ_get(env, HEC_TRACE_ENV_SOCKET), *mode = hec_environ_get(env, HEC_TRACE_ENV_MODE);
    struct hec_ring ring;
    int fd, at = mode ? hec_trace_mode_find(mode) : HEC_TRACE_AUTO;
    if (!socket || !*socket || at < 0 || hec_ring_create(HEC_RING_RECORDS_MIN, HEC_RING_TRACE, &ring, &fd) != HEC_OK)
        return;
    const union hec_trace_payload payload = {.process = {.abi = HEC_TRACE_ABI, .mode = (uint32_t)at, .why = 1}};
    struct hec_ring_record record = {.t_ns = hec_clock_mono_ns(), .kind = HEC_TRACE_PROCESS};
    memcpy(record.u.bytes, payload.bytes, sizeof record.u.bytes);
    if (write_name(&ring, payload.process.why, HEC_TRACE_WHY_NESTED) && hec_ring_write(&ring, &record))
        hec_ring_send(socket, HEC_RING_TRACE, 0, fd);
    hec_ring_unmap(&ring);
    close(fd);
}

void hec_inject_tracer(struct hec_inject *inject, const char *socket, struct hec_environ *env) {
    struct hec_why why;
    char library[PATH_MAX], memory[32];
    const char *taken = hec_environ_get(env, HEC_INJECT_VARIABLE);
    if (inject->mode == HEC_TRACE_OFF) {
        snprintf(inject->why, sizeof inject->why, "switched off by --trace off");
        /* what an outer `hec run` set must not reach the command by way of this one */
        if (taken && hec_inject_is_ours(taken)) {
            report_outer(env);
            hec_environ_set(env, HEC_TRACE_ENV_MODE, hec_trace_mode_name(HEC_TRACE_OFF));
        }
        return;
    }
    if (taken && *taken && !hec_inject_is_ours(taken)) {
        snprintf(inject->why, sizeof inject->why, HEC_INJECT_VARIABLE " is taken by %s", taken);
        return;
    }
    if (hec_path_lib("hec/" HEC_INJECT_LIBRARY, library, &why) < 0) {
        snprintf(inject->why, sizeof inject->why, "%s", why.text);
        return;
    }
    report_outer(env);
    snprintf(memory, sizeof memory, "%.0f", inject->memory_mb);
    hec_environ_set(env, HEC_INJECT_VARIABLE, library);
    hec_environ_set(env, HEC_TRACE_ENV_SOCKET, socket);
    hec_environ_set(env, HEC_TRACE_ENV_MODE, hec_trace_mode_name(inject->mode));
    hec_environ_set(env, HEC_TRACE_ENV_MEMORY, memory);
    inject->traced = true;
}

void hec_inject_no_cupti(const char *why, struct hec_environ *env) {
    if (why[0] || hec_environ_get(env, HEC_TRACE_ENV_NO_CUPTI))
        hec_environ_set(env, HEC_TRACE_ENV_NO_CUPTI, why);
}

void hec_inject_for_agent(struct hec_inject *inject, const char *socket, uint32_t tag, struct hec_environ *env) {
    struct hec_guard_watch guard;
    struct hec_why why;
    char library[PATH_MAX], number[16];
    hec_environ_set(env, HEC_MARKS_ENV_SOCKET, socket);
    if (hec_path_lib("libhec.so.0", library, &why) == HEC_OK)
        hec_environ_set(env, HEC_MARKS_ENV_LIBRARY, library);
    hec_inject_hooks(inject, env);
    hec_inject_tracer(inject, socket, env);
    hec_guard_watch_begin(&guard, inject->mode, false);
    hec_inject_no_cupti(guard.out, env);
    snprintf(number, sizeof number, "%u", (unsigned)tag);
    if (tag)
        hec_environ_set(env, HEC_RING_ENV_JOB, number);
}

void hec_inject_record(const struct hec_inject *inject, pid_t root, int64_t start_ns, const struct hec_sink *sink) {
    struct hec_tracer tracer = {
        .pid = root,
        .mode = inject->mode,
        .cupti_version = -1,
        .driver_version = -1,
        .first_ns = start_ns,
        .last_ns = start_ns,
        .estimate_ppm = -1,
        .budget_ppm = -1,
    };
    snprintf(tracer.why, sizeof tracer.why, "%.*s", (int)sizeof tracer.why - 1, inject->why);
    sink->tracer(sink->context, &tracer);
    if (inject->mode == HEC_TRACE_OFF)
        return;
    hec_sink_event(sink, HEC_EVENT_SOURCE_UNAVAILABLE, HEC_DEVICE_NONE, start_ns, "trace: %s", inject->why);
}

int hec_inject_hooks_folder(char path[PATH_MAX], struct hec_why *why) {
    return hec_path_share("hec/python/hooks", path, why);
}

void hec_inject_hooks(const struct hec_inject *inject, struct hec_environ *env) {
    struct hec_why why;
    char folder[PATH_MAX];
    if (!inject->hooks) {
        if (hec_environ_get(env, "HEC_HOOKS")) /* of an outer `hec run` */
            hec_environ_set(env, "HEC_HOOKS", "0");
        return;
    }
    if (hec_inject_hooks_folder(folder, &why) < 0) {
        hec_info("no Python hooks: %s", why.text);
        return;
    }
    hec_environ_set(env, "HEC_HOOKS", "1");
    hec_environ_set(env, "HEC_HOOKS_FOLDER", folder);
    hec_environ_prepend(env, "PYTHONPATH", folder);
}
