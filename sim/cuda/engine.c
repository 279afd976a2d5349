/* The device as a program sees it: streams in order, two copy engines, kernels of different streams side by side. When an
 * operation is put on a stream, its start and end are known at once. */
#include "sim/cuda/double.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LATENCY_NS 1500    /* from the end of the call to the start on an idle device; modelled */
#define KERNEL_GAP_NS 800  /* between kernels of a stream; modelled */
#define NODE_GAP_NS 500    /* between nodes of a graph; modelled */
#define COPY_SETUP_NS 1300 /* of any copy or memset */

/* Bytes a microsecond: PCIe generation 5 as measured on an H200, device memory modelled. */
#define H2D_PINNED 52000
#define H2D_PAGEABLE 8000
#define D2H_PINNED 50000
#define D2H_PAGEABLE 7000
#define D2D 1500000
#define PEER 350000
#define SET 2000000

static int64_t at_rate(uint64_t bytes, int64_t bytes_a_us) {
    return COPY_SETUP_NS + (int64_t)((__int128)bytes * 1000 / bytes_a_us);
}

static int64_t duration_of(const struct sim_work *work) {
    if (work->kind == SIM_OP_KERNEL)
        return work->duration_ns;
    if (work->kind == SIM_OP_MEMSET)
        return at_rate(work->bytes, SET);
    switch (work->copy) {
    case SIM_COPY_HTOD:
        return at_rate(work->bytes, work->from == SIM_MEMORY_PINNED ? H2D_PINNED : H2D_PAGEABLE);
    case SIM_COPY_DTOH:
        return at_rate(work->bytes, work->to == SIM_MEMORY_PINNED ? D2H_PINNED : D2H_PAGEABLE);
    case SIM_COPY_PTOP:
        return at_rate(work->bytes, PEER);
    default:
        return at_rate(work->bytes, D2D);
    }
}

static enum sim_activity activity_of(const struct sim_work *work) {
    if (work->kind == SIM_OP_KERNEL)
        return work->function->activity;
    if (work->kind == SIM_OP_COPY && work->copy == SIM_COPY_HTOD)
        return work->from == SIM_MEMORY_PINNED ? SIM_COPY_PINNED : SIM_COPY_PAGEABLE;
    if (work->kind == SIM_OP_COPY && work->copy == SIM_COPY_DTOH)
        return SIM_COPY_D2H;
    return SIM_ELEMENTWISE;
}

/* Power: where two operations overlap, the one that was launched first counts. */
static void draw_power(struct sim_cu_device *device, enum sim_activity activity, int64_t start_ns, int64_t end_ns) {
    struct sim_piece pieces[2];
    if (start_ns < device->powered_ns)
        start_ns = device->powered_ns;
    if (end_ns <= start_ns)
        return;
    sim_segment_extend(sim_cu.world, device->world_device, getpid(), activity, start_ns, end_ns - start_ns, pieces);
    device->powered_ns = end_ns;
}

/* The null stream waits for the blocking streams and they for it. */
static int64_t earliest(const struct CUstream_st *stream, int64_t now_ns) {
    struct CUctx_st *context = stream->context;
    int64_t start = now_ns + LATENCY_NS;
    if (stream == &context->null) {
        for (const struct CUstream_st *s = context->streams; s; s = s->next)
            if (s->blocking && s->tail_ns > start)
                start = s->tail_ns;
    } else if (stream->blocking && context->null.tail_ns > start) {
        start = context->null.tail_ns;
    }
    return start;
}

/* Under the lock: place one operation and describe it. */
static void place(struct CUstream_st *stream, const struct sim_work *work, int64_t not_before_ns, int64_t gap_ns,
                  struct sim_op *op) {
    struct sim_cu_device *device = &sim_cu.devices[stream->context->ordinal];
    int64_t start = stream->tail_ns + gap_ns > not_before_ns ? stream->tail_ns + gap_ns : not_before_ns;
    int64_t *engine = work->kind != SIM_OP_COPY     ? NULL
                      : work->copy == SIM_COPY_HTOD ? &device->engine_ns[0]
                      : work->copy == SIM_COPY_DTOH ? &device->engine_ns[1]
                                                    : NULL;
    if (engine && *engine > start)
        start = *engine;
    int64_t end =
        start + sim_segment_lasts_ns(sim_cu.world, device->world_device, activity_of(work), start, duration_of(work));
    if (engine)
        *engine = end;
    stream->tail_ns = end;
    draw_power(device, activity_of(work), start, end);
    op->kind = work->kind;
    op->start_ns = start;
    op->end_ns = end;
    op->node = work->node;
    if (work->kind == SIM_OP_KERNEL) {
        op->u.kernel.name = work->function->name;
        memcpy(op->u.kernel.grid, work->grid, sizeof work->grid);
        memcpy(op->u.kernel.block, work->block, sizeof work->block);
        op->u.kernel.registers = work->function->registers;
        op->u.kernel.static_shared_bytes = work->function->static_shared_bytes;
        op->u.kernel.dynamic_shared_bytes = work->dynamic_shared_bytes;
    } else if (work->kind == SIM_OP_COPY) {
        op->u.copy.bytes = work->bytes;
        op->u.copy.copy = work->copy;
        op->u.copy.from = work->from;
        op->u.copy.to = work->to;
        op->u.copy.async = work->async;
        op->u.copy.peer = work->peer;
    } else {
        op->u.memset.bytes = work->bytes;
        op->u.memset.value = work->value;
        op->u.memset.async = work->async;
    }
}

static struct sim_op header(const struct CUstream_st *stream, const struct sim_cu_scope *scope) {
    return (struct sim_op){.correlation = scope->correlation,
                           .launch_ns = scope->start_ns,
                           .device = (uint32_t)stream->context->ordinal,
                           .context = stream->context->id,
                           .stream = stream->id};
}

/* Take the lock when the stream has room for another operation. */
static void lock_with_room(struct CUstream_st *stream) {
    for (;;) {
        pthread_mutex_lock(&sim_cu.lock);
        int64_t oldest = stream->launched < SIM_STREAM_DEPTH ? 0 : stream->ends_ns[stream->launched % SIM_STREAM_DEPTH];
        if (oldest <= sim_cu_now())
            return;
        pthread_mutex_unlock(&sim_cu.lock);
        sim_cu_wait_until(oldest);
    }
}

static void note_end(struct CUstream_st *stream) {
    stream->ends_ns[stream->launched++ % SIM_STREAM_DEPTH] = stream->tail_ns;
}

static CUresult record_node(struct CUgraph_st *graph, const struct sim_work *work) {
    pthread_mutex_lock(&sim_cu.lock);
    CUresult result = sim_cu_graph_add(graph, work);
    pthread_mutex_unlock(&sim_cu.lock);
    return result;
}

CUresult sim_cu_submit(CUstream stream, const struct sim_work *work, const struct sim_cu_scope *scope,
                       int64_t *end_ns) {
    if (stream->capture) {
        *end_ns = 0;
        return record_node(stream->capture, work);
    }
    struct sim_op op = header(stream, scope);
    lock_with_room(stream);
    place(stream, work, earliest(stream, sim_cu_now()), work->kind == SIM_OP_KERNEL ? KERNEL_GAP_NS : 0, &op);
    note_end(stream);
    pthread_mutex_unlock(&sim_cu.lock);
    *end_ns = op.end_ns;
    sim_cu_report(&op);
    return SIM_CUDA_SUCCESS;
}

CUresult sim_cu_submit_graph(CUstream stream, const struct CUgraphExec_st *exec, const struct sim_cu_scope *scope) {
    struct sim_op whole = header(stream, scope);
    struct sim_op *ops = calloc(exec->count ? exec->count : 1, sizeof *ops);
    if (!ops)
        return SIM_CUDA_ERROR_OUT_OF_MEMORY;
    lock_with_room(stream);
    int64_t start = earliest(stream, sim_cu_now());
    for (size_t i = 0; i < exec->count; i++) {
        ops[i] = header(stream, scope);
        ops[i].graph = exec->id;
        ops[i].graph_level = exec->graph_level;
        place(stream, &exec->work[i], start, i ? NODE_GAP_NS : KERNEL_GAP_NS, &ops[i]);
    }
    note_end(stream);
    pthread_mutex_unlock(&sim_cu.lock);
    for (size_t i = 0; i < exec->count; i++)
        sim_cu_report(&ops[i]);
    if (exec->count) {
        whole.kind = SIM_OP_GRAPH;
        whole.graph = exec->id;
        whole.graph_level = exec->graph_level;
        whole.start_ns = ops[0].start_ns;
        whole.end_ns = ops[exec->count - 1].end_ns;
        sim_cu_report(&whole);
    }
    free(ops);
    return SIM_CUDA_SUCCESS;
}

int64_t sim_cu_stream_tail(CUstream stream) {
    pthread_mutex_lock(&sim_cu.lock);
    int64_t tail = stream->tail_ns;
    pthread_mutex_unlock(&sim_cu.lock);
    return tail;
}

int64_t sim_cu_context_tail(CUcontext context) {
    pthread_mutex_lock(&sim_cu.lock);
    int64_t tail = context->null.tail_ns;
    for (const struct CUstream_st *s = context->streams; s; s = s->next)
        if (s->tail_ns > tail)
            tail = s->tail_ns;
    pthread_mutex_unlock(&sim_cu.lock);
    return tail;
}

void sim_cu_synchronize(const struct sim_cu_scope *scope, int64_t t_ns, enum sim_sync_kind type, uint32_t stream,
                        uint32_t event) {
    if (t_ns > sim_cu_now())
        sim_cu_wait_until(t_ns);
    struct sim_op op = {.kind = SIM_OP_SYNC,
                        .correlation = scope->correlation,
                        .launch_ns = scope->start_ns,
                        .start_ns = scope->start_ns,
                        .end_ns = sim_cu_now(),
                        .stream = stream,
                        .u.sync = {type, event}};
    if (scope->context) {
        op.device = (uint32_t)scope->context->ordinal;
        op.context = scope->context->id;
    }
    sim_cu_report(&op);
}
