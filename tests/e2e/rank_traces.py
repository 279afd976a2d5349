"""Kineto traces of the ranks of a made job: steps of 30 ms, in each layer eight products and an all-reduce, which ends on all ranks at
once. One rank may begin each step LATE_US later."""
import json
import random

STEP_US, LATE_US = 30_000, 10_000
LAYERS, PRODUCTS, PRODUCT_US, REDUCE_US = 12, 8, 100, 500
ELEMENTS, APART_US = 12_500_000, 380


def kernel(name, device, stream, start_us, us, correlation, **more):
    return {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": start_us, "dur": us,
            "args": {"device": device, "stream": stream, "correlation": correlation, "grid": [128, 1, 1], "block": [256, 1, 1], **more}}


def call(name, rank, start_us, us, correlation):
    return {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1000 + rank, "tid": 1000 + rank, "ts": start_us, "dur": us,
            "args": {"correlation": correlation}}


def reduces(name, ranks):
    """What PyTorch says of an all-reduce."""
    return {"Collective name": "allreduce", "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS, "dtype": "BFloat16", "Group size": ranks,
            "Process Group Name": name, "Process Group Description": "default_pg"}


def trace(rank, ranks, late=None, steps=20, devices=8, halves=False, numbered=False, cut=None, ahead_us=0):
    """late: the rank that is; devices: of each host. halves: each half of the ranks is a communicator; the second begins its collectives
    APART_US later, and ends them nearly with the first. numbered: collectives as PyTorch 2.12 and newer do it. cut: the profiler of the late
    rank begins only when that many steps have passed, and its host's clock is ahead by so much."""
    second = halves and 2 * rank >= ranks
    says = reduces(str(1 + second) if halves else "0", ranks // 2 if halves else ranks)
    if numbered:
        says["Process Group Ranks"] = str(list(range(ranks)))
    events, device, correlation, rng = [], rank % devices, 1, random.Random(rank)
    for step in range(steps):
        start = 1e9 + step * STEP_US
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1000 + rank, "tid": 1000 + rank,
                       "ts": start, "dur": STEP_US - 100, "args": {}})
        host = start + 100 + LATE_US * (rank == late)
        free = host + 20  # the device
        last = start + 120 + LATE_US * (late is not None)  # as it is free on the last rank
        for layer in range(LAYERS):
            for _ in range(PRODUCTS):
                events += [call("cudaLaunchKernel", rank, host, 5, correlation),
                           kernel("ampere_bf16_gemm_128x128_ldg8", device, 7, free, PRODUCT_US, correlation)]
                correlation, host, free = correlation + 1, host + 8, free + PRODUCT_US + 2
            last += PRODUCTS * (PRODUCT_US + 2) + REDUCE_US
            begins = free + 2 * rng.random() + APART_US * second
            number = {"Seq": step * LAYERS + layer + 1} if numbered else {}
            events += [call("cudaLaunchKernel", rank, host, 5, correlation),
                       kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", device, 20, begins, last + 10 * second - begins, correlation, **says,
                              **number)]
            correlation, host, free, last = correlation + 1, host + 8, last + 2, last + 2
        events.append(call("cudaDeviceSynchronize", rank, host, free - host, correlation))
        correlation += 1
    if rank == late and cut is not None:
        events = [event for event in events if event["ts"] >= 1e9 + cut * STEP_US]
    for event in events if rank == late else ():
        event["ts"] += ahead_us
    return {"schemaVersion": 1, "deviceProperties": [{"id": device, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}, "traceEvents": events}


def annotated(category, name, rank, start_us, us):
    return {"ph": "X", "cat": category, "name": name, "pid": 1000 + rank, "tid": 1000 + rank, "ts": start_us, "dur": us, "args": {}}


BUCKETS = 4


def ddp_trace(rank, ranks, passes=4, no_sync=False, steps=10, optimizer=True, backward=True, tensor_parallel=False, loss=False):
    """DistributedDataParallel, which accumulates the gradients of so many passes for a step; of the last alone are they synchronised with
    no_sync. tensor_parallel: each pass reduces activations as well, among other ranks. loss: and the loss behind it."""
    events, device, correlation = [], rank % 8, 1
    host = free = 1e9
    def launch(name, stream, us, **more):
        nonlocal host, free, correlation
        begins = max(host + 6, free)
        events.extend([call("cudaLaunchKernel", rank, host, 5, correlation), kernel(name, device, stream, begins, us, correlation, **more)])
        correlation, host, free = correlation + 1, host + 8, begins + us + 2
    def reduce(group, elements, us):
        launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, us, **{**reduces(group, ranks), "dtype": "Float", "In msg nelems": elements,
                                                                    "Out msg nelems": elements})
    for step in range(steps):
        step_us = host
        for i in range(passes):
            begun_us = host
            events.append(annotated("user_annotation", "DistributedDataParallel.forward", rank, host, 190))
            for _ in range(8):
                launch("ampere_bf16_gemm_128x128_ldg8", 7, 200)
                if tensor_parallel:
                    reduce("1", 4_000_000, 100)
            host = begun_us + 200
            for _ in range(BUCKETS):
                launch("ampere_bf16_gemm_128x128_ldg8", 7, 400)
                if tensor_parallel:
                    reduce("1", 4_000_000, 100)
                if backward:
                    name = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
                    events.append(annotated("cpu_op", name, rank, host, 20))
                if not no_sync or i == passes - 1:
                    reduce("0", 6_000_000, 500)
                host += 20
            if loss:
                reduce("0", 1, 20)
            host += 100
        if optimizer:
            events.append(annotated("user_annotation", "Optimizer.step#AdamW.step", rank, host, 50))
        launch("multi_tensor_apply_kernel", 7, 200)
        events.append(call("cudaDeviceSynchronize", rank, host, free - host, correlation))
        correlation, host = correlation + 1, free + 5
        events.append(annotated("user_annotation", f"ProfilerStep#{step}", rank, step_us, host - step_us - 1))
    return {"schemaVersion": 1, "deviceProperties": [{"id": device, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0}],
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}, "traceEvents": events}


def write(folder, ranks, late=None, left_out=(), make=None, **more):
    """Of all but some; their paths. make: what makes them instead."""
    folder.mkdir(exist_ok=True)
    paths = []
    for rank in range(ranks):
        if rank in left_out:
            continue
        paths.append(folder / f"rank{rank}.json")
        paths[-1].write_text(json.dumps(make(rank, ranks, **more) if make else trace(rank, ranks, late, **more)))
    return paths
