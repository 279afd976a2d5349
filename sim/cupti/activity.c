/* The double of libcupti: what is traced. */
#include "sim/cupti/double.h"

#include <stdlib.h>
#include <string.h>

/* The highest kind of each version's CUpti_ActivityKind. */
#define KIND_MAX (SIM_CUPTI >= 128 ? 54u : 52u)

static void lock(void) {
    pthread_mutex_lock(&sim_cupti.lock);
}

static void unlock(void) {
    pthread_mutex_unlock(&sim_cupti.lock);
}

static CUptiResult usable(void) {
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    return sim_cupti_held() ? SIM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED : SIM_CUPTI_SUCCESS;
}

/* Under the lock: a copy of the latest choice to change. */
static struct sim_choice *choose(void) {
    struct sim_choice next = {0};
    if (sim_cupti.choice_head)
        next = sim_cupti.choices[(sim_cupti.choice_head - 1) % SIM_CHOICE_MAX];
    next.t_ns = sim_cupti_now();
    struct sim_choice *slot = &sim_cupti.choices[sim_cupti.choice_head % SIM_CHOICE_MAX];
    *slot = next;
    __atomic_store_n(&sim_cupti.choice_head, sim_cupti.choice_head + 1, __ATOMIC_RELEASE);
    return slot;
}

/* Under the lock: what was traced at t; NULL: nothing yet. */
static const struct sim_choice *choice_at(int64_t t_ns) {
    uint64_t low = sim_cupti.choice_head > SIM_CHOICE_MAX ? sim_cupti.choice_head - SIM_CHOICE_MAX : 0;
    for (uint64_t i = sim_cupti.choice_head; i > low; i--)
        if (sim_cupti.choices[(i - 1) % SIM_CHOICE_MAX].t_ns <= t_ns)
            return &sim_cupti.choices[(i - 1) % SIM_CHOICE_MAX];
    return NULL;
}

static CUptiResult turn(CUpti_ActivityKind kind, bool on) {
    CUptiResult ready = usable();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (kind == 0 || kind > KIND_MAX)
        return SIM_CUPTI_ERROR_INVALID_KIND;
    lock();
    struct sim_choice *choice = choose();
    uint64_t bit = UINT64_C(1) << kind;
    choice->kinds = on ? choice->kinds | bit : choice->kinds & ~bit;
    if (!on && kind == SIM_KIND_DRIVER)
        memset(choice->driver, 0, sizeof choice->driver);
    unlock();
    if (on)
        sim_cupti_start_worker();
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    return turn(kind, true);
}

SIM_EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    return turn(kind, false);
}

/* The double has no settings of single contexts. */
SIM_EXPORT CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
    return context ? turn(kind, true) : SIM_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
    return context ? turn(kind, false) : SIM_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT CUptiResult cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on) {
    CUptiResult ready = usable();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (cbid == 0 || cbid >= SIM_CBID_MAX)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    lock();
    struct sim_choice *choice = choose();
    uint64_t *word = &choice->driver[cbid / 64], bit = UINT64_C(1) << cbid % 64;
    *word = on ? *word | bit : *word & ~bit;
    unlock();
    if (on)
        sim_cupti_start_worker();
    return SIM_CUPTI_SUCCESS;
}

/* The double has no runtime, so that there are no calls of it. */
SIM_EXPORT CUptiResult cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
    (void)cbid, (void)enable;
    return usable();
}

/* ---- what the device reports ---- */

static bool has(const struct sim_choice *choice, uint32_t kind) {
    return choice->kinds >> kind & 1;
}

static bool has_call(const struct sim_choice *choice, const struct sim_op *op) {
    return has(choice, SIM_KIND_DRIVER) ||
           (op->u.api.cbid < SIM_CBID_MAX && (choice->driver[op->u.api.cbid / 64] >> op->u.api.cbid % 64 & 1));
}

/* A graph is traced as one or by its nodes, as was chosen when it was instantiated. */
static bool wanted(const struct sim_choice *choice, const struct sim_op *op) {
    bool node = op->graph && op->kind != SIM_OP_GRAPH;
    if (node && op->graph_level)
        return false;
    switch (op->kind) {
    case SIM_OP_KERNEL:
        return has(choice, SIM_KIND_KERNEL) || has(choice, SIM_KIND_CONCURRENT_KERNEL);
    case SIM_OP_COPY:
        return has(choice, op->u.copy.copy == SIM_COPY_PTOP ? SIM_KIND_MEMCPY2 : SIM_KIND_MEMCPY);
    case SIM_OP_MEMSET:
        return has(choice, SIM_KIND_MEMSET);
    case SIM_OP_GRAPH:
        return op->graph_level && has(choice, SIM_KIND_GRAPH_TRACE);
    case SIM_OP_SYNC:
        return has(choice, SIM_KIND_SYNCHRONIZATION);
    case SIM_OP_API:
        return has_call(choice, op);
    }
    return false;
}

static bool keep(const struct sim_choice *choice, const struct sim_op *op) {
    if (sim_cupti.pending_count == sim_cupti.pending_room) {
        size_t room = sim_cupti.pending_room ? 2 * sim_cupti.pending_room : 4096;
        struct sim_pending *grown = realloc(sim_cupti.pending, room * sizeof *grown);
        if (!grown)
            return false;
        sim_cupti.pending = grown;
        sim_cupti.pending_room = room;
    }
    sim_cupti.pending[sim_cupti.pending_count++] =
        (struct sim_pending){*op, has(choice, SIM_KIND_KERNEL) ? SIM_KIND_KERNEL : SIM_KIND_CONCURRENT_KERNEL};
    return true;
}

void sim_cupti_op(void *context, const struct sim_op *op) {
    (void)context;
    if (!__atomic_load_n(&sim_cupti.choice_head, __ATOMIC_ACQUIRE))
        return;
    lock();
    const struct sim_choice *choice = choice_at(op->launch_ns);
    bool is_wanted = choice && sim_cupti.request && wanted(choice, op);
    bool later = op->kind <= SIM_OP_GRAPH;
    if (is_wanted && later && !keep(choice, op))
        sim_cupti.dropped++;
    unlock();
    if (!is_wanted)
        return;
    if (later) {
        sim_cupti_prepare();
        if (!op->planned && !op->graph)
            sim_world_spend(sim_cupti.world, sim_cupti_spec()->cost_ns);
        return;
    }
    uint8_t record[SIM_SIZE_MAX];
    sim_cupti_write(0, record, sim_cupti_record(op, 0, record));
}

bool sim_cupti_graph_level(void *context) {
    (void)context;
    lock();
    const struct sim_choice *choice = choice_at(sim_cupti_now());
    bool whole = choice && has(choice, SIM_KIND_GRAPH_TRACE);
    unlock();
    return whole;
}

/* ---- settings ---- */

/* Process-wide: the last one to register gets every buffer that is handed back from now on, also those that another one
 * gave. */
SIM_EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                      CUpti_BuffersCallbackCompleteFunc complete) {
    CUptiResult ready = usable();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (!request || !complete)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    lock();
    sim_cupti.request = request;
    sim_cupti.complete = complete;
    unlock();
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
    CUptiResult ready = usable();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    lock();
    sim_cupti.timestamp = callback;
    sim_cupti.timestamp_offset_ns = callback ? (int64_t)callback() - sim_cupti_now() : 0;
    unlock();
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
    sim_cupti.latency = enable;
    return sim_cupti_ready();
}

/* What these would add, the double has not. */
#define ACCEPTED(name)                                                                                                 \
    SIM_EXPORT CUptiResult name(uint8_t enable) {                                                                      \
        (void)enable;                                                                                                  \
        return sim_cupti_ready();                                                                                      \
    }
ACCEPTED(cuptiActivityEnableLaunchAttributes)
ACCEPTED(cuptiActivityEnableDeviceGraph)
ACCEPTED(cuptiActivityEnableAllSyncRecords)

/* Hardware tracing is for newer devices than those that are simulated. */
SIM_EXPORT CUptiResult cuptiActivityEnableHWTrace(uint8_t enable) {
    CUptiResult ready = sim_cupti_ready();
    return ready == SIM_CUPTI_SUCCESS && enable ? SIM_CUPTI_ERROR_NOT_SUPPORTED : ready;
}

/* Attributes by CUPTI's number: size and default. */
static struct {
    size_t size;
    uint64_t value;
} attributes[] = {{8, 3200000}, {8, 8388608}, {8, 250}, {8, 25000}, {8, 250},    {1, 0},
                  {8, 3},       {8, 3},       {1, 0},   {1, 1},     {8, 3200000}};

static CUptiResult check_attribute(int attribute, const size_t *size, const void *value) {
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    if (attribute < 0 || (size_t)attribute >= sizeof attributes / sizeof attributes[0] || !size || !value)
        return SIM_CUPTI_ERROR_INVALID_PARAMETER;
    return *size < attributes[attribute].size ? SIM_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT : SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityGetAttribute(int attribute, size_t *size, void *value) {
    CUptiResult checked = check_attribute(attribute, size, value);
    if (checked == SIM_CUPTI_SUCCESS) {
        *size = attributes[attribute].size;
        memcpy(value, &attributes[attribute].value, *size);
    }
    return checked;
}

SIM_EXPORT CUptiResult cuptiActivitySetAttribute(int attribute, size_t *size, void *value) {
    CUptiResult checked = check_attribute(attribute, size, value);
    if (checked == SIM_CUPTI_SUCCESS) {
        *size = attributes[attribute].size;
        memcpy(&attributes[attribute].value, value, *size);
    }
    return checked;
}

static __thread uint64_t external[64];
static __thread int external_count;

SIM_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
    (void)kind;
    if (external_count == 64)
        return SIM_CUPTI_ERROR_MAX_LIMIT_REACHED;
    external[external_count++] = id;
    return SIM_CUPTI_SUCCESS;
}

SIM_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last) {
    (void)kind;
    if (!external_count)
        return SIM_CUPTI_ERROR_QUEUE_EMPTY;
    external_count--;
    if (last)
        *last = external[external_count];
    return SIM_CUPTI_SUCCESS;
}

/* Detaches: buffers go back, everything is off and forgotten. It may begin again. */
SIM_EXPORT CUptiResult cuptiFinalize(void) {
    CUptiResult ready = sim_cupti_ready();
    if (ready != SIM_CUPTI_SUCCESS)
        return ready;
    sim_cupti_write_finished();
    sim_cupti_deliver(true);
    lock();
    struct sim_choice *choice = choose();
    *choice = (struct sim_choice){.t_ns = choice->t_ns};
    sim_cupti.request = NULL;
    sim_cupti.complete = NULL;
    sim_cupti.timestamp = NULL;
    sim_cupti.pending_count = 0;
    unlock();
    sim_cupti_forget_subscriber();
    return SIM_CUPTI_SUCCESS;
}
