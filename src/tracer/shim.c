/* Between other users of CUPTI and the library. CUPTI's buffers are one set of callbacks for the whole process, so
 * whoever registers last gets everybody's buffers; Kineto says "bufferCompleted called with unknown buffer" to ours and
 * loses its own. Here nobody is displaced: ours stay registered, and each buffer goes to whom it belongs.
 *
 * A shim is found by code that was bound before us through its slots (got.c), by later code through the library's symbol
 * table. It takes the control lock for the switch only, never while it calls the library for the other user. */
#include "tracer/tracer.h"

#include <dlfcn.h>
#include <link.h>

#define SECOND_MAX 8u

#define SHIM(name, parameters)                                                                                         \
    typedef uint32_t(*call_##name) parameters;                                                                         \
    static uint32_t shim_##name parameters;
#include "tracer/shims.def"
#undef SHIM

enum {
#define SHIM(name, parameters) HOOK_##name,
#include "tracer/shims.def"
#undef SHIM
    HOOKS
};

static struct hec_got_hook hooks[HOOKS] = {
#define SHIM(name, parameters) [HOOK_##name] = {"cupti" #name, NULL, NULL},
#include "tracer/shims.def"
#undef SHIM
};
#define REAL(name) ((call_##name)hooks[HOOK_##name].real)

static uintptr_t library_base;
static uint32_t hooks_wanted, symbols_changed;
static uint64_t generation;
static char early_user[128];
static void *second[SECOND_MAX]; /* subscribers of the second version of the API */

/* ---- whose buffer ---- */

static bool serving_them(void) {
    return __atomic_load_n(&hec_hold.serving, __ATOMIC_ACQUIRE) == HEC_HOLD_THEM || !hec_inject_live();
}

void hec_shim_requested(uint8_t **buffer, size_t *size, size_t *records_max) {
    hec_cupti_requested theirs = __atomic_load_n(&hec_hold.requested, __ATOMIC_ACQUIRE);
    if (serving_them() && theirs) {
        theirs(buffer, size, records_max);
        return;
    }
    *buffer = hec_inject_live() ? hec_buffers_take() : NULL;
    *size = *buffer ? HEC_TRACER_BUFFER_BYTES : 0;
    *records_max = 0;
}

static void parse(void *context, uint32_t stream, uint8_t *buffer, size_t valid) {
    const struct hec_cupti *cupti = &hec_tracer.library.calls;
    int64_t before = hec_out_thread_cpu_ns();
    size_t dropped = 0;
    hec_records_parse(cupti, buffer, valid);
    if (context && cupti->ActivityGetNumDroppedRecords(context, stream, &dropped) == HEC_CUPTI_SUCCESS)
        hec_records_count_dropped(dropped);
    if (!hec_thread_is_own())
        hec_records_add_self(hec_out_thread_cpu_ns() - before);
}

/* Records that are theirs in a buffer that is ours: CUPTI had kept it from before. */
static void hand_over(void *context, uint32_t stream, const uint8_t *buffer, size_t valid) {
    hec_cupti_requested request = __atomic_load_n(&hec_hold.requested, __ATOMIC_ACQUIRE);
    hec_cupti_completed complete = __atomic_load_n(&hec_hold.completed, __ATOMIC_ACQUIRE);
    uint8_t *copy = NULL;
    size_t size = 0, records_max = 0;
    if (!request || !complete)
        return;
    request(&copy, &size, &records_max);
    if (!copy)
        return;
    if (size < valid)
        valid = 0; /* no known user has buffers below ours of 128 KB */
    memcpy(copy, buffer, valid);
    complete(context, stream, copy, size, valid);
}

void hec_shim_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    bool theirs_now = serving_them();
    if (hec_buffers_ours(buffer)) {
        if (valid > 0 && valid <= HEC_TRACER_BUFFER_BYTES) {
            if (!theirs_now)
                parse(context, stream, buffer, valid);
            else if (hec_inject_live())
                hand_over(context, stream, buffer, valid);
        }
        hec_buffers_give(buffer);
        return;
    }
    /* the other way round: ours in a buffer of theirs */
    if (!theirs_now && valid > 0) {
        parse(context, stream, buffer, valid);
        valid = 0;
    }
    hec_cupti_completed complete = __atomic_load_n(&hec_hold.completed, __ATOMIC_ACQUIRE);
    if (complete)
        complete(context, stream, buffer, size, valid);
}

/* ---- shims ---- */

/* Somebody begins: make room, and report who. */
static void begin(const void *caller) {
    char name[64];
    if (!hec_inject_live() || hec_hold_inside())
        return;
    __atomic_store_n(&hec_hold.last_ns, hec_out_now_ns(), __ATOMIC_RELAXED);
    if (hec_hold_enter()) {
        hec_hold_stand_down(hec_hold_caller(caller, name, sizeof name), 0);
        hec_hold_leave();
    } else {
        __atomic_store_n(&hec_hold.missed, true, __ATOMIC_RELEASE); /* hec_thread makes up for it */
    }
}

static void touch(void) {
    __atomic_store_n(&hec_hold.last_ns, hec_out_now_ns(), __ATOMIC_RELAXED);
}

static uint64_t bit(uint32_t kind) {
    return UINT64_C(1) << (kind < 64 ? kind : 63);
}

static uint32_t shim_ActivityRegisterCallbacks(hec_cupti_requested requested, hec_cupti_completed completed) {
    begin(__builtin_return_address(0));
    if (!requested || !completed)
        return REAL(ActivityRegisterCallbacks)(requested, completed);
    __atomic_store_n(&hec_hold.requested, requested, __ATOMIC_RELEASE);
    __atomic_store_n(&hec_hold.completed, completed, __ATOMIC_RELEASE);
    __atomic_store_n(&hec_hold.forever, false, __ATOMIC_RELEASE); /* now their callbacks are known */
    return REAL(ActivityRegisterCallbacks)(hec_shim_requested, hec_shim_completed);
}

static uint32_t enabled(uint32_t kind, uint32_t result, uint64_t before) {
    if (result != HEC_CUPTI_SUCCESS && !(before & bit(kind)))
        __atomic_fetch_and(&hec_hold.kinds, ~bit(kind), __ATOMIC_ACQ_REL);
    touch();
    return result;
}

static uint32_t shim_ActivityEnable(uint32_t kind) {
    uint64_t before = __atomic_fetch_or(&hec_hold.kinds, bit(kind), __ATOMIC_ACQ_REL);
    begin(__builtin_return_address(0));
    return enabled(kind, REAL(ActivityEnable)(kind), before);
}

static uint32_t shim_ActivityEnableAndDump(uint32_t kind) {
    uint64_t before = __atomic_fetch_or(&hec_hold.kinds, bit(kind), __ATOMIC_ACQ_REL);
    begin(__builtin_return_address(0));
    return enabled(kind, REAL(ActivityEnableAndDump)(kind), before);
}

static uint32_t shim_ActivityEnableContext(void *context, uint32_t kind) {
    __atomic_fetch_add(&hec_hold.contexts, 1, __ATOMIC_ACQ_REL);
    begin(__builtin_return_address(0));
    uint32_t result = REAL(ActivityEnableContext)(context, kind);
    if (result != HEC_CUPTI_SUCCESS)
        __atomic_fetch_sub(&hec_hold.contexts, 1, __ATOMIC_ACQ_REL);
    touch();
    return result;
}

static uint32_t shim_ActivityDisable(uint32_t kind) {
    /* What they never enabled may be on for us: for them it is off, and stays so. */
    if (!(__atomic_load_n(&hec_hold.kinds, __ATOMIC_ACQUIRE) & bit(kind)) && !serving_them())
        return HEC_CUPTI_SUCCESS;
    uint32_t result = REAL(ActivityDisable)(kind);
    __atomic_fetch_and(&hec_hold.kinds, ~bit(kind), __ATOMIC_ACQ_REL);
    touch();
    return result;
}

static uint32_t shim_ActivityDisableContext(void *context, uint32_t kind) {
    uint32_t result = REAL(ActivityDisableContext)(context, kind);
    uint32_t now = __atomic_load_n(&hec_hold.contexts, __ATOMIC_ACQUIRE);
    while (now > 0 &&
           !__atomic_compare_exchange_n(&hec_hold.contexts, &now, now - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    touch();
    return result;
}

static uint32_t shim_ActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
    begin(__builtin_return_address(0));
    return REAL(ActivityEnableRuntimeApi)(cbid, enable);
}

static uint32_t shim_ActivityEnableDriverApi(uint32_t cbid, uint8_t enable) {
    begin(__builtin_return_address(0));
    return REAL(ActivityEnableDriverApi)(cbid, enable);
}

static uint32_t shim_ActivityFlushAll(uint32_t flags) {
    bool ours = !serving_them();
    if (ours && (flags & HEC_CUPTI_FLUSH_FORCED))
        hec_records_forced(true);
    uint32_t result = REAL(ActivityFlushAll)(flags);
    if (!ours)
        touch();
    return result;
}

static uint32_t shim_ActivityRegisterTimestampCallback(void *callback) {
    begin(__builtin_return_address(0));
    return REAL(ActivityRegisterTimestampCallback)(callback);
}

static uint32_t shim_SetThreadIdType(uint32_t type) {
    begin(__builtin_return_address(0));
    return REAL(SetThreadIdType)(type);
}

static uint32_t shim_Subscribe(void **subscriber, void *callback, void *user) {
    begin(__builtin_return_address(0));
    return REAL(Subscribe)(subscriber, callback, user);
}

static uint32_t shim_Subscribe_v2(void **subscriber, void *callback, void *user, void *parameters) {
    __atomic_fetch_add(&hec_hold.second, 1, __ATOMIC_ACQ_REL);
    begin(__builtin_return_address(0));
    uint32_t result = REAL(Subscribe_v2)(subscriber, callback, user, parameters);
    if (result != HEC_CUPTI_SUCCESS || !subscriber) {
        __atomic_fetch_sub(&hec_hold.second, 1, __ATOMIC_ACQ_REL);
        return result;
    }
    for (uint32_t i = 0; i < SECOND_MAX; i++) {
        void *none = NULL;
        if (__atomic_compare_exchange_n(&second[i], &none, *subscriber, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            break;
    }
    return result;
}

static uint32_t shim_Unsubscribe(void *subscriber) {
    uint32_t result = REAL(Unsubscribe)(subscriber);
    for (uint32_t i = 0; subscriber && i < SECOND_MAX; i++) {
        void *it = subscriber;
        if (__atomic_compare_exchange_n(&second[i], &it, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            __atomic_fetch_sub(&hec_hold.second, 1, __ATOMIC_ACQ_REL);
            break;
        }
    }
    touch();
    return result;
}

/* Everything in CUPTI is gone afterwards, of theirs and of ours; both register and enable anew. */
static uint32_t shim_Finalize(void) {
    begin(__builtin_return_address(0));
    uint32_t result = REAL(Finalize)();
    __atomic_store_n(&hec_tracer.registered, false, __ATOMIC_RELEASE);
    __atomic_store_n(&hec_hold.kinds, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&hec_hold.contexts, 0, __ATOMIC_RELEASE);
    touch();
    return result;
}

/* ---- installing ---- */

static bool framework(const char *module) {
    /* these register when a profile begins, and are seen then */
    static const char *const known[] = {"torch", "kineto", "xla", "jax", "tensorflow"};
    const char *slash = strrchr(module, '/');
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(slash ? slash : module, known[i]))
            return true;
    return false;
}

static bool visit(const char *module, const struct hec_got_hook *hook, bool bound, void *context) {
    (void)context;
    if (bound && hook == &hooks[HOOK_ActivityRegisterCallbacks] && !early_user[0] && !framework(module)) {
        const char *slash = strrchr(module, '/');
        const char *name = slash ? slash + 1 : module[0] ? module : "the program itself";
        memcpy(early_user, name, strnlen(name, sizeof early_user - 1));
    }
    return bound; /* else it will find the changed symbol */
}

void hec_shim_open(const struct hec_library *library) {
    struct link_map *map = NULL;
    if (hooks_wanted > 0 || dlinfo(library->handle, RTLD_DI_LINKMAP, &map) != 0 || !map)
        return; /* done already, before a fork */
    library_base = (uintptr_t)map->l_addr;
    void *const shims[HOOKS] = {
#define SHIM(name, parameters) [HOOK_##name] = (void *)shim_##name,
#include "tracer/shims.def"
#undef SHIM
    };
    for (uint32_t i = 0; i < HOOKS; i++) {
        hooks[i].shim = shims[i];
        hooks[i].real = dlsym(library->handle, hooks[i].name);
        hooks_wanted += hooks[i].real != NULL;
    }
    /* the symbols first: what is bound from now on finds the shims */
    symbols_changed = hec_got_patch_symbols(hooks, HOOKS);
    hec_got_patch(hooks, HOOKS, library_base, visit, NULL);
    generation = hec_got_generation();
}

void hec_shim_rescan(void) {
    if (symbols_changed == hooks_wanted || hooks_wanted == 0)
        return;
    uint64_t now = hec_got_generation();
    if (now == generation)
        return;
    generation = now;
    hec_got_patch(hooks, HOOKS, library_base, visit, NULL);
}

bool hec_shim_early_user(char *text, size_t bytes) {
    if (!early_user[0])
        return false;
    size_t length = strnlen(early_user, bytes - 1);
    memcpy(text, early_user, length);
    text[length] = '\0';
    return true;
}
