"""What a CUPTI client costs a PyTorch program in each of its states, and what the program survives.

    torch_states.py CLIENT.so STEP...

Steps: state (ns a launch, launch-bound), gstate (the same, and a node of a graph), replay (the graph once, waited for),
register, window=K+K (kinds on, launches, kinds off, flush), gwindow=K+K (with replays of the graph), on=K, off=K, flush,
finalize, finalize_callback (in the exit of the next cudaDeviceSynchronize), subscribe, unsubscribe, domains_off,
profile (torch.profiler, kernels counted), stress=N:MODE (see there), stall_register and stall_finalize, N* (repeat the steps up to ';' N times). JSON lines.
"""
import ctypes
import json
import statistics
import sys
import threading
import time

import torch

client = ctypes.CDLL(sys.argv[1])
client.client_records.restype = ctypes.c_ulonglong
x = torch.randn(1024, device="cuda")
graph = torch.cuda.CUDAGraph()
for _ in range(3):
    x.mul_(1.0)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    for _ in range(100):
        x.mul_(1.0)


def launches(count):
    for _ in range(count):
        x.mul_(1.0)


def replays(count):
    for _ in range(count // 100):
        graph.replay()


def per_kernel(loop, count, blocks):
    loop(count)
    torch.cuda.synchronize()
    times = []
    for _ in range(blocks):
        start = time.perf_counter_ns()
        loop(count)
        torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - start) / count)
    return round(statistics.median(times), 1)


def window(kinds, with_graph):
    codes = [client.client_set(kind, 1) for kind in kinds]
    launches(2000)
    if with_graph:
        replays(2000)
    torch.cuda.synchronize()
    codes += [client.client_set(kind, 0) for kind in kinds]
    client.client_flush(1)
    return {"kernels": client.client_records(10), "of": 4000 if with_graph else 2000, "codes": max(codes)}


def profile():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as session:
        launches(1000)
        torch.cuda.synchronize()
    return {"kernels": sum("elementwise" in e.name for e in session.events()), "of": 1000}


def longest_launch(call):
    """The longest launch of this thread, us, while another thread makes the call; and how long the call took."""
    took = []

    def work():
        time.sleep(0.02)
        start = time.perf_counter_ns()
        took.append(call())
        took.append((time.perf_counter_ns() - start) / 1e3)

    thread = threading.Thread(target=work)
    thread.start()
    longest = 0
    while thread.is_alive():
        for _ in range(200):
            start = time.perf_counter_ns()
            x.mul_(1.0)
            longest = max(longest, time.perf_counter_ns() - start)
        torch.cuda.synchronize()
    thread.join()
    return {"code": took[0], "call_us": round(took[1], 1), "stall_us": longest / 1e3}


def stress(cycles, mode):
    """Attach, enable, leave again, while two threads launch. mode: g replays a graph too, o switches the kinds off before
    leaving, c leaves in the exit of an API call."""
    stop = threading.Event()
    failed = []

    def work(own_graph):
        y = torch.randn(1024, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            try:
                while not stop.is_set():
                    for _ in range(100):
                        y.mul_(1.0)
                    if "g" in mode and own_graph:
                        graph.replay()
                    torch.cuda.synchronize()
            except Exception as error:  # the finding
                failed.append(str(error).splitlines()[0])

    threads = [threading.Thread(target=work, args=(i == 0,)) for i in range(2)]
    for thread in threads:
        thread.start()
    kernels, codes, done = 0, set(), 0
    for _ in range(cycles):
        codes.add(client.client_register())
        for kind in (10, 1, 2, 38):
            codes.add(client.client_set(kind, 1))
        time.sleep(0.02)
        if "o" in mode:
            for kind in (10, 1, 2, 38):
                codes.add(client.client_set(kind, 0))
            time.sleep(0.002)
        client.client_flush(1)
        codes.add(client.client_finalize("c" in mode))
        for _ in range(100 if "c" in mode else 0):
            if client.client_finalized() >= 0:
                break
            time.sleep(0.001)
        kernels += client.client_records(10)
        time.sleep(0.02)
        if failed:
            break
        done += 1
    stop.set()
    for thread in threads:
        thread.join()
    return {"cycles": done, "kernels": kernels, "codes": sorted(codes), "failed": failed}


def act(step):
    name, _, value = step.partition("=")
    kinds = [int(kind) for kind in value.split("+")] if value.replace("+", "").isdigit() else []
    if name == "state":
        return {"launch_ns": per_kernel(launches, 4000, 25)}
    if name == "gstate":
        return {"launch_ns": per_kernel(launches, 4000, 25), "graph_ns": per_kernel(replays, 20000, 10)}
    if name == "replay":
        replays(100)
        torch.cuda.synchronize()
        return {}
    if name in ("window", "gwindow"):
        return window(kinds, name == "gwindow")
    if name in ("on", "off"):
        return {"codes": [client.client_set(kind, name == "on") for kind in kinds]}
    if name == "flush":
        return {"code": client.client_flush(1), "kernels": client.client_records(10)}
    if name == "stall_register":
        return longest_launch(client.client_register)
    if name == "stall_finalize":
        return longest_launch(lambda: client.client_finalize(0))
    if name == "finalize_callback":
        armed = client.client_finalize(1)
        torch.cuda.synchronize()
        return {"armed": armed, "code": client.client_finalized()}
    if name == "finalize":
        return {"code": client.client_finalize(0)}
    if name == "profile":
        return profile()
    if name == "stress":
        cycles, _, mode = value.partition(":")
        return stress(int(cycles), mode)
    if name == "sleep":
        time.sleep(float(value))
        return {}
    return {"code": getattr(client, "client_" + name)()}


def run(steps, quiet=False):
    i = 0
    while i < len(steps):
        if steps[i].endswith("*"):
            end = steps.index(";", i)
            for _ in range(int(steps[i][:-1])):
                last = run(steps[i + 1:end], True)
            print(json.dumps({"repeated": steps[i] + " ".join(steps[i + 1:end]), "last": last}), flush=True)
            i = end + 1
            continue
        last = act(steps[i])
        if not quiet:
            print(json.dumps({"part": "torch_states", "step": steps[i], **last}), flush=True)
        i += 1
    return last


client.client_load()
try:
    run(sys.argv[2:])
except Exception as error:  # the CUDA error is the finding
    print(json.dumps({"part": "torch_states", "failed": str(error).splitlines()[0]}), flush=True)
    sys.exit(1)
