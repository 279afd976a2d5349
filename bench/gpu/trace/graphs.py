#!/usr/bin/env python3
"""What CUPTI and HEC cost programs that replay CUDA graphs.

    bench/gpu/trace/graphs.py --hec dist/hec-portable/bin/hec    # loops of replays without and beside HEC, by half seconds
    bench/gpu/trace/graphs.py --left                             # one CUPTI client: what stays after its kinds are off

A loop's step is the replay of a graph and, every so many, reading what it computed.
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time

LOOPS = {"mlp": 1, "lstm": 1, "queue": 50}  # and the result is read every so many steps
KINDS = {"kernels": [10], "serial kernels": [3], "copies and memsets": [1, 2]}
CASES = ("during", "made before", "made during", "made after")
BUFFER_BYTES = 1 << 22


def network(kind):
    import torch
    from torch import nn
    torch.manual_seed(0)
    if kind == "lstm":
        model = nn.LSTM(512, 512, 1, batch_first=True).cuda()
        head = nn.Linear(512, 10).cuda()
        optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], capturable=True)
        x, wanted = torch.randn(128, 64, 512).cuda(), torch.randint(10, (128,)).cuda()

        def step():
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.cross_entropy(head(model(x)[0][:, -1]), wanted)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step
    layers, width, rows = (60, 1024, 64) if kind == "mlp" else (200, 512, 32)

    def layer():
        parts = [nn.Linear(width, width), nn.GELU()]
        return nn.Sequential(*parts, nn.LayerNorm(width)) if kind == "mlp" else nn.Sequential(*parts)
    model = nn.Sequential(*[layer() for _ in range(layers)]).cuda().half()
    x = torch.randn(rows, width).cuda().half()
    return torch.no_grad()(lambda: model(x))


def captured(step):
    import torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    return graph.replay, result


def timed(launch, result, seconds, read=1):
    """Median us in the launch, mean ms a step."""
    calls, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        before = time.perf_counter()
        launch()
        calls.append(time.perf_counter() - before)
        if len(calls) % read == 0:
            float(result.float().sum())
    return 1e6 * statistics.median(calls), 1e3 * (time.perf_counter() - begin) / len(calls)


def loop(kind, seconds):
    launch, result = captured(network(kind))
    for half in range(int(2 * seconds)):
        print("%s %4.1f s  launch %7.1f us  step %7.3f ms" % (kind, half / 2, *timed(launch, result, 0.5, LOOPS[kind])), flush=True)


class Client:
    """A client of CUPTI in this process, as small as can be."""

    def __init__(self, kinds):
        import torch
        torch.cuda.init()
        paths = [line.split()[-1] for line in open("/proc/self/maps") if "libcupti.so" in line]
        self.cupti, self.kinds, self.buffers = ctypes.CDLL(paths[0]), kinds, []
        size = ctypes.POINTER(ctypes.c_size_t)
        self.give = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), size, size)(self.requested)
        self.take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
            lambda *_: None)

    def requested(self, buffer, size, records):
        self.buffers.append(ctypes.create_string_buffer(BUFFER_BYTES + 64))
        buffer[0], size[0], records[0] = (ctypes.addressof(self.buffers[-1]) + 15) & ~15, BUFFER_BYTES, 0

    def on(self):
        self.cupti.cuptiActivityRegisterCallbacks(self.give, self.take)
        for kind in self.kinds:
            self.cupti.cuptiActivityEnable(kind)

    def off(self, finalize):
        import torch
        for kind in self.kinds:
            self.cupti.cuptiActivityDisable(kind)
        self.cupti.cuptiActivityFlushAll(0)
        if finalize:
            torch.cuda.synchronize()
            self.cupti.cuptiFinalize()


def left(case, kinds, finalize):
    step = network("mlp")
    result, client, said = step(), Client(KINDS[kinds]), []
    if case in ("during", "made before"):
        replay, result = captured(step)
        said.append("before %6.1f us %6.3f ms" % timed(replay, result, 1))
    client.on()
    if case == "made during":
        replay, result = captured(step)
    if case == "during":
        said.append("traced %6.1f us %6.3f ms" % timed(replay, result, 1))
    else:
        timed(step, result, 1)
    client.off(finalize)
    timed(step, result, 0.5)
    if case == "made after":
        replay, result = captured(step)
    said.append("afterwards %6.1f us %6.3f ms" % timed(replay, result, 1))
    print("%-12s %-18s %s %s" % (case, kinds, "finalized" if finalize else "         ", ", ".join(said)), flush=True)
    os._exit(0)  # CUPTI's exit handlers are not what is measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hec")
    parser.add_argument("--left", action="store_true")
    parser.add_argument("--seconds", type=float, default=7)
    parser.add_argument("--loop", choices=LOOPS, help=argparse.SUPPRESS)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.loop:
        return loop(args.loop, args.seconds)
    if args.case:
        return left(args.case[0], args.case[1], args.case[2] == "finalize")
    again = [sys.executable, os.path.abspath(__file__)]
    if args.left:
        rows = [(case, "kernels", how) for how in ("off", "finalize") for case in CASES]
        for row in rows + [("during", kinds, "off") for kinds in KINDS if kinds != "kernels"]:
            subprocess.run([*again, "--case", *row], check=False)
    if args.hec:
        with tempfile.TemporaryDirectory() as folder:
            for kind in LOOPS:
                command = [*again, "--loop", kind, "--seconds", str(args.seconds)]
                print("without HEC")
                subprocess.run(command, check=True)
                print("beside HEC", flush=True)
                subprocess.run([args.hec, "run", "-q", "-f", "-o", f"{folder}/run.hec", "--", *command], check=True)
                print(subprocess.run([args.hec, "report", f"{folder}/run.hec"], check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
