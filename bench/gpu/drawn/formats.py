#!/usr/bin/env python3
"""What number format, layout and row length bring, at drawn sizes: formats.py SECONDS SEED >lines.jsonl

Programs of the grammar run one after the other in this process, each as it is drawn but with these set one way and the other: seconds and
joules of a step between two edges of the energy counter, and what its kernels take in six more steps. A line a program and setting."""
import collections
import ctypes
import json
import random
import sys
import time

import grammar
import write_torch

LEAST_S = 0.3  # of steady steps
MODELS = ("cnn", "diffusion", "mlp", "transformer", "lstm")
# name -> (precision, inefficiencies)
SETTINGS = {"fp32": ("tf32", ("full_precision",)), "tf32": ("tf32", ()), "bf16": ("autocast", ())}


def counter():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, value = ctypes.c_void_p(), ctypes.c_ulonglong()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))

    def read():
        nvml.nvmlDeviceGetTotalEnergyConsumption(device, ctypes.byref(value))
        return value.value / 1e3

    return read


class Steps:
    """Ends the loop of a program that is measured."""

    def __init__(self, torch, joules):
        self.torch, self.joules, self.count, self.phase, self.kernels = torch, joules, 0, "warm", {}
        self.begin = time.perf_counter()

    def step(self, units):
        now = time.perf_counter()
        self.count += 1
        if self.phase == "warm" and self.count > 10 and now - self.begin > 0.1:
            self.phase, self.last = "edge", self.joules()
        elif self.phase == "edge" and self.joules() != self.last:
            self.phase, self.from_j, self.from_s, self.from_step = "steady", self.joules(), now, self.count
        elif self.phase == "steady" and now - self.from_s > LEAST_S:
            self.phase, self.last = "end", self.joules()
        elif self.phase == "end" and self.joules() != self.last:
            steps = self.count - self.from_step
            self.torch.cuda.synchronize()
            self.step_s, self.step_j = (now - self.from_s) / steps, (self.joules() - self.from_j) / steps
            self.phase, self.profiled = "profile", 0
            self.profiler = self.torch.profiler.profile(activities=[self.torch.profiler.ProfilerActivity.CUDA])
            self.profiler.start()
        elif self.phase == "profile":
            self.profiled += 1
            if self.profiled == 6:
                self.torch.cuda.synchronize()
                self.profiler.stop()
                total = collections.Counter()
                for event in self.profiler.events():
                    if event.device_type == self.torch.autograd.DeviceType.CUDA:
                        total[event.name] += event.self_device_time_total
                self.kernels = {name[:160]: round(us / 6, 2) for name, us in total.most_common(24)}
                return False
        return True

    def end(self):
        pass


def measured(torch, joules, spec):
    namespace = {"__name__": "drawn"}
    torch.backends.cudnn.allow_tf32 = True
    exec(compile(write_torch.source(spec), "drawn", "exec"), namespace)
    steps = Steps(torch, joules)
    namespace["main"](steps)
    return {"step_s": steps.step_s, "step_j": steps.step_j, "kernels_us": steps.kernels}


def variants(spec):
    layouts = ((), ("layout",)) if spec["model"] in ("cnn", "diffusion") else ((),)
    for name, (precision, faults) in SETTINGS.items():
        if precision == "autocast" and (spec["captured"] or spec["model"] == "lstm"):
            precision = "bf16"
        for layout in layouts:
            yield {"format": name, "channels_last": not layout}, {**spec, "precision": precision,
                                                                   "faults": dict.fromkeys(faults + layout)}
        if spec["model"] in ("mlp", "transformer") and name != "fp32":
            yield {"format": name, "odd": True}, {**spec, "precision": precision, "faults": {"odd_shapes": None}}


def main():
    import torch
    joules, rng = counter(), random.Random(int(sys.argv[2]))
    until, at = time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < until:
        model, at = MODELS[at % len(MODELS)], at + 1
        loop = "infer" if model == "diffusion" else rng.choice(("train", "infer"))
        spec = {"seed": 0, "framework": "torch", "model": model, "loop": loop, **grammar.size_of(rng, model, loop), "optimizer": "AdamW",
                "feed": "resident", "report_every": 10, "eval_every": 16, "load": 0.5, "style": 1, "knobs": {},
                "captured": model in ("diffusion", "lstm")}
        for setting, varied in variants(spec):
            if time.monotonic() > until:
                break
            said = {name: spec[name] for name in ("model", "loop", "width", "depth", "batch", "side", "length") if name in spec}
            try:
                print(json.dumps({**said, **setting, **measured(torch, joules, varied)}), flush=True)
            except (RuntimeError, AttributeError) as error:
                print(json.dumps({**said, **setting, "failed": str(error)[-200:]}), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
