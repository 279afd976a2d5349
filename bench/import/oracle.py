"""Holistic Trace Analysis' temporal breakdown, recomputed from a trace in exact integers of nanoseconds.

An independent second opinion for what HTA and hec say: union of intervals over all streams of a rank; communication
kernels are those whose name begins with "nccl" or contains "ncclKernel" (HTA's expressions)."""
import gzip
import json
import re
from decimal import Decimal

COMM = re.compile(r"^nccl.*|.*ncclKernel.*")
BUSY = {"kernel", "gpu_memcpy", "gpu_memset"}


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        document = json.load(file, parse_float=Decimal)
    return document if isinstance(document, dict) else {"traceEvents": document}


def union(intervals):
    total, end = 0, None
    merged = []
    for a, b in sorted(intervals):
        if end is None or a > end:
            merged.append([a, b])
            end = b
        elif b > end:
            merged[-1][1] = end = b
    total = sum(b - a for a, b in merged)
    return total, merged


def both(left, right):
    i = j = total = 0
    while i < len(left) and j < len(right):
        total += max(0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total


def breakdown(document, sync=False):
    """Nanoseconds: window, busy, idle, compute, non_compute, comm, overlap (of comm with compute); counts."""
    compute, comm, memory, synchronizations = [], [], [], []
    counts = {}
    for event in document["traceEvents"]:
        category = str(event.get("cat", "")).lower()
        if event.get("ph") != "X" or not (category in BUSY or (sync and category == "cuda_sync")):
            continue
        start = round(Decimal(event["ts"]) * 1000)
        interval = (start, start + round(Decimal(event["dur"]) * 1000))
        counts[category] = counts.get(category, 0) + 1
        if category == "kernel":
            (comm if COMM.match(event["name"]) else compute).append(interval)
        elif category == "cuda_sync":
            synchronizations.append(interval)
        else:
            memory.append(interval)
    everything = compute + comm + memory + synchronizations
    if not everything:
        return None
    busy, _ = union(everything)
    window = max(b for _, b in everything) - min(a for a, _ in everything)
    compute_ns, compute_union = union(compute)
    comm_ns, comm_union = union(comm)
    return {
        "window": window,
        "busy": busy,
        "idle": window - busy,
        "compute": compute_ns,
        "non_compute": busy - compute_ns,
        "comm": comm_ns,
        "overlap": both(compute_union, comm_union),
        "counts": counts,
    }


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:]:
        print(name, breakdown(load(name)), breakdown(load(name), sync=True), sep="\n  ")
