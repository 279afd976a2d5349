/* What the files of the double of libcuda share. */
#pragma once

#include "sim/cuda/exports.h"
#include "sim/cuda/hook.h"
#include "sim/cuda/union.h"
#include "sim/world.h"

#include <pthread.h>

#define SIM_EXPORT __attribute__((visibility("default")))

#define SIM_STREAM_DEPTH 1024 /* operations that a stream takes before a launch waits, as on the device */

enum sim_cu_code {
#define SIM_CU_ERROR(code, name, text) SIM_##name = code,
#include "sim/cuda/errors.def"
#undef SIM_CU_ERROR
};

enum sim_cu_call {
#define SIM_CU_CALL(name, base, cbid, cost_ns) SIM_CALL_##name,
#include "sim/cuda/calls.def"
#undef SIM_CU_CALL
    SIM_CU_CALL_COUNT
};

struct CUstream_st {
    struct CUctx_st *context;
    uint32_t id;
    bool blocking; /* waits for the null stream and the other way round */
    int64_t tail_ns;
    struct CUgraph_st *capture; /* not NULL: it records */
    uint64_t launched;          /* operations ever */
    int64_t ends_ns[SIM_STREAM_DEPTH];
    struct CUstream_st *next;
};

struct CUctx_st {
    uint32_t id;
    int ordinal; /* CUDA's */
    int references;
    bool primary;
    struct CUstream_st null;
    struct CUstream_st *streams; /* the others */
    struct CUctx_st *next;
};

struct CUevent_st {
    int64_t at_ns; /* when the device gets there; -1: not recorded */
    uint32_t id;
    bool timing;
    struct CUevent_st *next;
};

/* A kernel by name, with its simulated behaviour. Lives as long as the process. */
struct CUfunc_st {
    char *name;
    int64_t duration_ns; /* < 0: the first parameter of each launch says it, an int64_t */
    enum sim_activity activity;
    uint32_t registers, static_shared_bytes;
    struct CUfunc_st *next;
};

struct CUmod_st {
    struct CUfunc_st *functions;
    struct CUmod_st *next;
};

/* Something that a stream does; also a node of a graph. */
struct sim_work {
    enum sim_op_kind kind;
    const struct CUfunc_st *function;
    uint32_t grid[3], block[3], dynamic_shared_bytes;
    int64_t duration_ns;
    uint64_t bytes;
    uint8_t copy, from, to;
    uint32_t value, peer;
    bool async;
    uint64_t node;
};

struct CUgraph_st {
    uint32_t id;
    struct sim_work *work;
    size_t count, room;
};

struct CUgraphExec_st {
    uint32_t id; /* of the executable graph */
    bool graph_level;
    struct sim_work *work;
    size_t count;
};

/* The device as this process sees it. */
struct sim_cu_device {
    int world_device, instance;
    struct CUctx_st *primary;
    int64_t engine_ns[2]; /* copy engines, to and from the device: busy until */
    int64_t powered_ns;   /* up to where the machine knows what is done */
    struct sim_cuda_device_truth truth;
    struct sim_union busy, compute, copy;
};

struct sim_cu_state {
    pthread_mutex_t lock; /* guards everything below and the lists; never held while a listener is called */
    struct sim_world *world;
    pid_t pid; /* that initialised; a forked child has to begin anew and may not, as with NVIDIA's */
    int device_count;
    struct sim_cu_device devices[SIM_DEVICE_MAX];
    struct CUctx_st *contexts;
    uint32_t next_context, next_stream, next_event, next_graph;
    uint64_t next_node;
};
extern struct sim_cu_state sim_cu;

/* ---- driver.c: calls and listeners ---- */

struct sim_cu_scope {
    enum sim_cu_call call;
    uint32_t correlation;
    int64_t start_ns;
    CUcontext context;
};

/* Begin a call: SIM_CUDA_SUCCESS, or NOT_INITIALIZED. */
CUresult sim_cu_enter(struct sim_cu_scope *scope, enum sim_cu_call call);
/* End it: the host's cost is spent, the record reported. Returns result. */
CUresult sim_cu_leave(const struct sim_cu_scope *scope, CUresult result);

#define SIM_CU_ENTER(name)                                                                                             \
    struct sim_cu_scope scope;                                                                                         \
    do {                                                                                                               \
        CUresult entered = sim_cu_enter(&scope, SIM_CALL_##name);                                                      \
        if (entered != SIM_CUDA_SUCCESS)                                                                               \
            return entered;                                                                                            \
    } while (0)
#define SIM_CU_LEAVE(result) return sim_cu_leave(&scope, result)

/* Which device an ordinal means. HEC_ERR_NOTFOUND. */
int sim_cu_find_device(const char *visible, int ordinal, struct sim_cu_device *device);
void sim_cu_report(const struct sim_op *op);
bool sim_cu_graph_level(void);
int64_t sim_cu_now(void);
void sim_cu_spend(int64_t duration_ns);
void sim_cu_wait_until(int64_t t_ns);

/* ---- context.c ---- */

CUcontext sim_cu_current(void); /* NULL: none in this thread */
/* The stream that a handle means in the current context; NULL: no context, or not a stream of it. */
CUstream sim_cu_stream(CUstream handle);

/* ---- engine.c ---- */

/* Put work on a stream: SUCCESS, and *end_ns is when it is done. launch_ns: the call began. Waits where the stream is
 * full. */
CUresult sim_cu_submit(CUstream stream, const struct sim_work *work, const struct sim_cu_scope *scope, int64_t *end_ns);
/* All nodes of a graph, one after the other. */
CUresult sim_cu_submit_graph(CUstream stream, const struct CUgraphExec_st *exec, const struct sim_cu_scope *scope);
/* When everything on a stream / in a context is done. */
int64_t sim_cu_stream_tail(CUstream stream);
int64_t sim_cu_context_tail(CUcontext context);
/* Wait for t_ns in a call and report the synchronisation. */
void sim_cu_synchronize(const struct sim_cu_scope *scope, int64_t t_ns, enum sim_sync_kind type, uint32_t stream,
                        uint32_t event);

/* ---- launch.c ---- */

/* Check the parameters of a kernel and describe its work. */
CUresult sim_cu_kernel(const CUDA_KERNEL_NODE_PARAMS *parameters, struct sim_work *work);

/* ---- graph.c ---- */

/* Under the lock: put work behind the last node. */
CUresult sim_cu_graph_add(struct CUgraph_st *graph, const struct sim_work *work);

/* ---- memory.c ---- */

enum sim_memory_kind sim_cu_host_memory(const void *pointer);
