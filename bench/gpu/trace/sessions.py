"""torch.profiler in a program of its own: two sessions of ten steps of a small network. Prints the number of kernel and
copy events of each session, the same in every run.

    sessions.py FILE     the sessions' traces are written to FILE and read back, as people do
"""
import json
import os
import sys

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
host = torch.randn(64, 256).pin_memory()


def step():
    optimizer.zero_grad()
    model(host.to("cuda", non_blocking=True)).square().mean().backward()
    optimizer.step()


for _ in range(20):
    step()
torch.cuda.synchronize()
counts = []
for _ in range(2):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as session:
        for _ in range(10):
            step()
        torch.cuda.synchronize()
    session.export_chrome_trace(sys.argv[1])
    with open(sys.argv[1]) as file:
        events = json.load(file)["traceEvents"]
    counts += [sum(e.get("cat") == "kernel" for e in events), sum(e.get("cat") == "gpu_memcpy" for e in events)]
    os.unlink(sys.argv[1])
    for _ in range(20):
        step()
    torch.cuda.synchronize()
print(json.dumps(counts), flush=True)
