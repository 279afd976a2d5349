/* The double of libcuda: graphs, by capture of a stream or node by node. Nodes run one after the other, in the order in
 * which they were added; dependencies are not looked at. */
#include "sim/cuda/double.h"

#include <stdlib.h>
#include <string.h>

CUresult sim_cu_graph_add(struct CUgraph_st *graph, const struct sim_work *work) {
    if (graph->count == graph->room) {
        size_t room = graph->room ? 2 * graph->room : 64;
        struct sim_work *grown = realloc(graph->work, room * sizeof *grown);
        if (!grown)
            return SIM_CUDA_ERROR_OUT_OF_MEMORY;
        graph->work = grown;
        graph->room = room;
    }
    graph->work[graph->count] = *work;
    graph->work[graph->count].node = ++sim_cu.next_node;
    graph->count++;
    return SIM_CUDA_SUCCESS;
}

static CUgraph make(void) {
    CUgraph graph = calloc(1, sizeof *graph);
    if (graph)
        graph->id = __atomic_add_fetch(&sim_cu.next_graph, 1, __ATOMIC_RELAXED);
    return graph;
}

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    (void)mode;
    SIM_CU_ENTER(cuStreamBeginCapture_v2);
    CUstream stream = sim_cu_stream(handle);
    if (!stream || stream == &stream->context->null)
        SIM_CU_LEAVE(stream ? SIM_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : SIM_CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    stream->capture = make();
    SIM_CU_LEAVE(stream->capture ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    SIM_CU_ENTER(cuStreamEndCapture);
    CUstream stream = sim_cu_stream(handle);
    if (!stream || !graph)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    if (!stream->capture)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    *graph = stream->capture;
    stream->capture = NULL;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuStreamIsCapturing(CUstream handle, int *status) {
    SIM_CU_ENTER(cuStreamIsCapturing);
    CUstream stream = sim_cu_stream(handle);
    if (!stream || !status)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *status = stream->capture ? 1 : 0;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
    SIM_CU_ENTER(cuGraphCreate);
    if (!graph || flags)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    *graph = make();
    SIM_CU_LEAVE(*graph ? SIM_CUDA_SUCCESS : SIM_CUDA_ERROR_OUT_OF_MEMORY);
}

SIM_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    SIM_CU_ENTER(cuGraphDestroy);
    if (!graph)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    free(graph->work);
    free(graph);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

/* A node's handle is its id. */
SIM_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS *parameters) {
    (void)dependencies, (void)count;
    SIM_CU_ENTER(cuGraphAddKernelNode);
    struct sim_work work;
    if (!node || !graph || !parameters)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    CUresult result = sim_cu_kernel(parameters, &work);
    if (result == SIM_CUDA_SUCCESS) {
        pthread_mutex_lock(&sim_cu.lock);
        result = sim_cu_graph_add(graph, &work);
        *node = (CUgraphNode)(uintptr_t)sim_cu.next_node;
        pthread_mutex_unlock(&sim_cu.lock);
    }
    SIM_CU_LEAVE(result);
}

SIM_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    SIM_CU_ENTER(cuGraphGetNodes);
    if (!graph || !count)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; nodes && i < *count && i < graph->count; i++)
        nodes[i] = (CUgraphNode)(uintptr_t)graph->work[i].node;
    if (!nodes || *count > graph->count)
        *count = graph->count;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *result, CUgraph graph, unsigned long long flags) {
    (void)flags;
    SIM_CU_ENTER(cuGraphInstantiateWithFlags);
    if (!result || !graph)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    if (!exec || (graph->count && !(exec->work = malloc(graph->count * sizeof *exec->work)))) {
        free(exec);
        SIM_CU_LEAVE(SIM_CUDA_ERROR_OUT_OF_MEMORY);
    }
    if (graph->count)
        memcpy(exec->work, graph->work, graph->count * sizeof *exec->work);
    exec->count = graph->count;
    exec->id = __atomic_add_fetch(&sim_cu.next_graph, 1, __ATOMIC_RELAXED);
    exec->graph_level = sim_cu_graph_level();
    *result = exec;
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}

SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
    SIM_CU_ENTER(cuGraphLaunch);
    CUstream stream = sim_cu_stream(handle);
    if (!exec || !stream)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_HANDLE);
    SIM_CU_LEAVE(sim_cu_submit_graph(stream, exec, &scope));
}

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
    SIM_CU_ENTER(cuGraphExecDestroy);
    if (!exec)
        SIM_CU_LEAVE(SIM_CUDA_ERROR_INVALID_VALUE);
    free(exec->work);
    free(exec);
    SIM_CU_LEAVE(SIM_CUDA_SUCCESS);
}
