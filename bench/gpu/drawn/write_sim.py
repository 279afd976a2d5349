"""Drawn programs on the simulated GPU: one step as `hec sim` takes it, ACTIVITY:MICROSECONDS with commas between.

Only what the simulated device is exact about: waits and copies that a fix takes away, and fp32 in place of TF32, of which both were measured
(sim/cases.def). What an inefficiency costs is drawn where the real program would show it."""
import math
import random

MODELS = ("mlp", "cnn", "transformer", "lstm", "gnn", "decode", "diffusion")
STEP_US = (8000, 40000)  # of the clean step, log-uniform
STEPS_A_CHECKPOINT = 8
FP32_BY_TF32 = 47500 / 25700
# inefficiency -> what it adds to a step
BEFORE = {"loader_workers": "wait_data", "loader_work": "wait_data", "pageable": "copy_h2d_pageable", "host_before": "wait_host"}
INSIDE = {"reads": "wait_sync", "barriers": "wait_sync", "host_inside": "wait_host"}
AFTER = {"logging": "wait_host", "host_after": "wait_host", "empty_cache": "wait_alloc", "no_pool": "wait_alloc"}
KNOWN = {*BEFORE, *INSIDE, *AFTER, "checkpoint", "full_precision"}

CAUSES = {"data", "copy", "host", "sync", "alloc", "checkpoint"}  # what a program has nothing of, unless it was drawn


def simulated(spec):
    """The spec with what the simulated device can show, or None; `us` are microseconds of the clean step and of each inefficiency in it."""
    if spec["model"] not in MODELS or spec["loop"] == "serve":
        return None
    rng = random.Random(spec["style"])
    clean = math.exp(rng.uniform(*map(math.log, STEP_US)))
    shares = {name: share or rng.uniform(0.1, 0.3) for name, share in spec["faults"].items() if name in KNOWN}
    total = clean / (1 - sum(share for name, share in shares.items() if name != "full_precision"))
    us = {"clean": round(clean)} | {name: max(1, round(share * total)) for name, share in shares.items() if name != "full_precision"}
    return {**spec, "faults": {name: spec["faults"][name] for name in shares}, "us": us}


def step(spec, without=frozenset()):
    """(text of what is played again and again, steps in it)"""
    active, us = set(spec["faults"]) - set(without), spec["us"]
    work = "train_tf32" if spec["precision"] == "tf32" else "train_bf16_tuned"
    length = us["clean"]
    if "full_precision" in active:
        work, length = "train_fp32", round(length * FP32_BY_TF32)
    segments = [f"{activity}:{us[name]}" for name, activity in BEFORE.items() if name in active]
    stops = [f"{activity}:{us[name]}" for name, activity in INSIDE.items() if name in active]
    parts = len(stops) + 1
    for stop in [*stops, None]:
        segments += [f"{work}:{length // parts}"] + [stop] * (stop is not None)
    segments += [f"{activity}:{us[name]}" for name, activity in AFTER.items() if name in active]
    if "checkpoint" not in spec["faults"]:
        return ",".join(segments), 1
    written = [f"wait_checkpoint:{us['checkpoint'] * STEPS_A_CHECKPOINT}"] * ("checkpoint" in active)
    return ",".join(segments * STEPS_A_CHECKPOINT + written), STEPS_A_CHECKPOINT
