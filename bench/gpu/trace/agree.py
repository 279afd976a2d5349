"""The same steps seen by HEC and by torch.profiler, in turns inside one process: the command of `hec run --trace=full`.

    agree.py ROUNDS STEPS FILE     FILE: where the profiler's traces go meanwhile

ResNet-18 with a batch from pinned and labels from pageable memory each step, the loss fetched at the end. The tracer is
paused but for its own rounds, so that what is in the run file and what the profiler counted are the same steps, equally
often. Prints JSON: the profiler's totals; busy is the union of kernels, copies and memsets.
"""
import collections
import json
import os
import sys
import time

import torch
import torchvision

import switch

rounds, steps, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
torch.empty(1, device="cuda")  # CUDA is up and the tracer in the process, nothing was launched
hec = switch.Hec(hooks=False)
hec.set(False)
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(64, 3, 224, 224).pin_memory()
labels = torch.randint(0, 1000, (64,))


def work():
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.to("cuda", non_blocking=True)), labels.cuda())
        loss.backward()
        optimizer.step()
    loss.item()
    torch.cuda.synchronize()


def union_us(intervals):
    total, end = 0.0, float("-inf")
    for start, stop in sorted(intervals):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


work()
busy, kernels, copies, memset_bytes = 0.0, collections.Counter(), collections.Counter(), 0
for _ in range(rounds):
    hec.set(True)
    time.sleep(switch.QUIET_S)
    work()
    time.sleep(0.1)
    hec.set(False)
    time.sleep(0.1)
    work()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as session:
        work()
    session.export_chrome_trace(path)
    with open(path) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    os.unlink(path)
    busy += union_us([(e["ts"], e["ts"] + e["dur"]) for e in events])
    for e in events:
        if e["cat"] == "kernel":
            kernels[e["name"]] += 1
        elif e["cat"] == "gpu_memcpy":
            copies[e["name"]] += e["args"]["bytes"]
        else:
            memset_bytes += e["args"].get("bytes", 0)
print(json.dumps({"busy_us": busy, "kernels": kernels, "copies": copies, "memset_bytes": memset_bytes,
                  "tracer": hec.library is not None}), flush=True)
