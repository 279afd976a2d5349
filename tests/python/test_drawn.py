"""The judge of bench/gpu/drawn on made results, and its grammar: what it draws, and that each fix changes the program and nothing else."""
import copy
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

from warm_python import HANGS_S

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu"
sys.path.insert(0, str(BENCH / "drawn"))
import grammar
import grammar_jobs
import judge
import writers


def turns(joules):
    return [{"seconds": 0.01, "joules": joules * (1 + error)} for error in (-0.001, 0.0, 0.001)]


def finding(cause, low, best, high, actionable=True, of="step"):
    step = {"joules_fraction": [low, best, high]} if of == "step" else None
    return {"cause": cause, "actionable": actionable, "predicted": {"joules_fraction": [low, best, high], "step": step}}


def result(truth, *findings, **more):
    """A program of which each fix saves what is said; those of probes are named so."""
    faults = {name: None for name in truth if not name.startswith("probe-")}
    spec = {"seed": 1, "framework": "torch", "model": "mlp", "loop": "train", "precision": "bf16", "batch": 8, "faults": faults}
    arms = {"base": turns(4.0)} | {grammar.fix_of(spec, name) if name in faults else name: turns(4.0 * (1 - saved)) for name, saved in truth.items()}
    made = {"seed": 1, "spec": spec, "truth": arms, "findings": list(findings), "headline": "", "printed": {"units": 100}, "joules": 800.0, **more}
    made["judged"] = judge.verdict(made)
    return made


NONE = {"cause": "none", "actionable": True, "predicted": {"joules_fraction": None, "step": None}}


@pytest.mark.parametrize("truth, findings, right", [
    ({"reads": 0.3}, [finding("sync", 0.2, 0.3, 0.4)], True),
    ({"reads": 0.3, "probe-host": 0.1}, [finding("host", 0.2, 0.3, 0.4)], False),  # another cause
    ({"reads": 0.3}, [finding("host", 0.2, 0.3, 0.4)], None),  # another cause, which nothing measures
    ({"reads": 0.3}, [NONE], False),  # called healthy
    ({"reads": 0.3}, [], False),  # nothing said
    ({"reads": 0.3}, [finding("host", 0.1, 0.2, 0.3, actionable=False), finding("sync", 0.2, 0.3, 0.4)], True),
    ({"reads": 0.3, "pageable": 0.28}, [finding("copy", 0.2, 0.3, 0.4)], True),  # as good as the largest
    ({"reads": 0.3, "pageable": 0.2}, [finding("copy", 0.2, 0.3, 0.4)], False),  # the smaller one first
    ({"small_batch": 0.6}, [finding("launch", 0.2, 0.3, 0.4)], True),  # one inefficiency, two names
    ({}, [NONE], True),
    ({}, [], True),
    ({}, [finding("memory", 0.05, 0.1, 0.2)], None),  # nothing tells whether it is so
    ({"probe-memory": 0.2}, [finding("memory", 0.05, 0.1, 0.2)], True),
    ({"probe-memory": 0.01}, [finding("memory", 0.05, 0.1, 0.2)], False),
    ({"reads": 0.01}, [NONE], True),  # there, and too little to count
    ({"reads": 0.03}, [finding("sync", 0.0, 0.03, 0.1)], True),  # said to be as little as it is
    ({"reads": 0.03}, [finding("sync", 0.05, 0.2, 0.3)], False),
    ({"reads": 0.03}, [finding("comm", 0.0, 0.03, 0.1)], None),
    ({"reads": 0.3, "probe-host": 0.0}, [finding("host", 0.0, 0.03, 0.1)], False),  # little said, much there
])
def test_first_finding(truth, findings, right):
    assert result(truth, *findings)["judged"]["first_right"] is right


@pytest.mark.parametrize("waits, right", [(0.5, True), (0.1, False)])
def test_a_server_that_waits_for_requests(waits, right):
    quiet = {"cause": "quiet", "actionable": False, "predicted": {"joules_fraction": None, "step": None}}
    assert result({}, quiet, waits=waits)["judged"]["first_right"] is right


def test_due_causes():
    judged = result({"reads": 0.3, "pageable": 0.11, "logging": 0.09}, finding("sync", 0.2, 0.3, 0.4))["judged"]
    assert judged["due"] == {"reads": True, "pageable": False}


@pytest.mark.parametrize("saved, best, false", [(0.01, 0.06, True), (0.01, 0.04, False), (0.03, 0.3, False), (-0.1, 0.05, True)])
def test_false_claims(saved, best, false):
    row, = result({"reads": saved}, finding("sync", 0.0, best, 0.5))["judged"]["claims"]
    assert row["false"] is false


@pytest.mark.parametrize("interval, holds", [((0.2, 0.25, 0.29), False), ((0.2, 0.25, 0.299), True), ((0.31, 0.4, 0.5), False), ((0.1, 0.2, 0.6), True)])
def test_intervals(interval, holds):
    row, = result({"reads": 0.3}, finding("sync", *interval))["judged"]["claims"]
    assert row["holds"] is holds


def test_a_claim_of_the_whole_run_is_compared_with_its_share():
    row, = result({"reads": 0.3}, finding("sync", 0.1, 0.15, 0.2, of="run"))["judged"]["claims"]
    assert row["saved"] == pytest.approx(0.15)  # 100 units of 4 J of 800 J


@pytest.mark.parametrize("model, cause, name, by", [
    ("elementwise", "memory", "unfused", "probe"),  # all of a chain is claimed, of which the fix has one function
    ("transformer", "memory", "unfused", "unfused"),  # the fused attention that is claimed is the fix
    ("mlp", "sync", "reads", "probe"),
    ("mlp", "copy", "pageable", "pageable"),
])
def test_a_claim_is_compared_with_what_it_is_of(model, cause, name, by):
    made = result({name: 0.3, f"probe-{cause}": 0.2})
    made["spec"]["model"] = model
    assert judge.brought(made, cause)[2] == by


def test_what_nothing_measures_is_not_judged():
    made = result({"reads": 0.3}, finding("sync", 0.2, 0.3, 0.4), finding("comm", 0.1, 0.2, 0.3))
    assert judge.unjudged([made]) == [(1, "comm", 0.2)]
    rows, _ = judge.totals([made])
    assert [row[2] for row in rows] == [1] * 11  # counted nowhere


def test_a_first_finding_that_nothing_measures_is_counted_apart():
    good = result({"reads": 0.3}, finding("sync", 0.25, 0.3, 0.35))
    unknown = result({"reads": 0.3}, finding("comm", 0.1, 0.2, 0.3))
    assert unknown["judged"]["unjudged"] == judge.UNMEASURED
    rows, _ = judge.totals([good, unknown])
    assert [(row[1], row[2]) for row in rows[:4]] == [(1, 1), (1, 2), (1, 2), (0, 2)]
    assert "| not measured |" in judge.table([unknown])


def with_turns(made, **arms):
    """The same with joules for each turn of these arms."""
    made["truth"] |= {arm: [{"seconds": 0.01, "joules": joules} for joules in turns] for arm, turns in arms.items()}
    made["judged"] = judge.verdict(made)
    return made


def test_a_program_whose_turns_vary_is_not_judged():
    made = with_turns(result({"reads": 0.3}, finding("sync", 0.25, 0.3, 0.35)), base=(4, 6, 9))
    assert made["judged"] == {"first_right": None, "unjudged": judge.NOISE, "claims": [], "due": {}}
    rows, median = judge.totals([made])
    assert [(row[1], row[2]) for row in rows[:4]] == [(0, 0), (0, 0), (0, 1), (1, 1)] and median is None
    assert "| noisy |" in judge.table([made])


@pytest.mark.parametrize("times, unjudged", [(1.2, None), (0.8, None), (1.5, judge.OTHERWISE), (0.5, judge.OTHERWISE)])
def test_a_program_that_runs_otherwise_among_its_arms_is_not_judged(times, unjudged):
    made = result({"reads": 0.3}, finding("sync", 0.2, 0.3, 0.4), printed={"units": 100, "seconds": 100 * 0.01 / times})
    assert made["judged"]["unjudged"] == unjudged
    rows, _ = judge.totals([made])
    assert rows[0][2] == (not unjudged)


@pytest.mark.parametrize("turns, false, unsure", [((3.97, 3.96, 3.98), True, False), ((3.6, 4.0, 4.4), False, True), ((3.0, 2.9, 3.1), False, False)])
def test_a_claim_is_false_where_the_turns_are_sure(turns, false, unsure):
    made = with_turns(result({"reads": 0.3}, finding("sync", 0.05, 0.1, 0.2)), base=(4, 4, 4), all=turns)
    row, = made["judged"]["claims"]
    assert (row["false"], row["unsure"]) == (false, unsure)
    assert judge.margin(made["truth"]) < 0.01 or unsure or turns[0] == 3.0


@pytest.mark.parametrize("busy, right", [(0.006, True), (0.009, False)])
def test_how_long_a_server_waits_is_measured(busy, right):
    """By its seconds a request without a pause between requests, 10 ms with."""
    quiet = {"cause": "quiet", "actionable": False, "predicted": {"joules_fraction": None, "step": None}}
    made = result({"probe-quiet": 0.3}, quiet, waits=0.5)
    made["truth"]["probe-quiet"] = [turn | {"seconds": busy} for turn in made["truth"]["probe-quiet"]]
    assert judge.verdict(made)["first_right"] is right


@pytest.mark.parametrize("text, last", [
    ("Traceback\nRuntimeError: out of memory\n", "RuntimeError: out of memory"),
    ("status 1: torch.AcceleratorError: CUDA error: capture\\nFor debugging pass CUDA_LAUNCH_BLOCKING=1\\n\\n')", "torch.AcceleratorError: CUDA error: capture"),
    ("its lane ended", "its lane ended"), ("", "")])
def test_the_line_of_an_error(text, last):
    assert last in judge.last_line(text)


def test_a_fix_that_another_cause_names_first():
    """A larger batch saves more than the launches that it makes fewer: what answers launching is measured by itself, where it is."""
    small = result({"small_batch": 0.8}, finding("launch", 0.1, 0.2, 0.3))
    assert judge.truth_of(small, "launch")[0] == pytest.approx(0.8) and judge.truth_of(small, "batch")[0] == pytest.approx(0.8)
    small["truth"]["probe-launch"] = [{"seconds": 0.01, "joules": 0.75}] * 3
    assert judge.truth_of(small, "launch")[2] == "probe" and judge.truth_of(small, "batch")[2] == "small_batch"
    small["truth"]["probe-batch"] = [{"seconds": 0.01, "joules": 2.0}] * 3  # four times the batch, as is claimed
    assert judge.truth_of(small, "batch")[0] == pytest.approx(0.8) and judge.brought(small, "batch")[0] == pytest.approx(0.5)
    assert judge.brought(small, "launch") == judge.truth_of(small, "launch")


def test_totals_can_fail():
    good = result({"reads": 0.3}, finding("sync", 0.25, 0.3, 0.35))
    bad = result({"reads": 0.3, "pageable": 0.0}, finding("copy", 0.4, 0.5, 0.6))
    failed = {"seed": 3, "spec": good["spec"], "failed": "Traceback\nRuntimeError: out of memory"}
    rows, median = judge.totals([good, bad, failed])
    assert [(row[1], row[2]) for row in rows] == [(1, 2), (1, 2), (0, 2), (0, 2), (1, 2), (1, 2), (0, 2), (1, 2), (1, 2), (0, 2), (0, 2)]
    assert median == pytest.approx(25)
    text = judge.table([good, bad, failed])
    assert "FALSE" in text and "not run: 3" in text and "out of memory" in text and "1 of 2, 50 %" in text
    assert "| `sync` | 1 | 0 | +0 | 1 | 0 |" in text and "| `copy` | 1 | 50 | +50 | 0 | 1 |" in text
    assert "of 0" in judge.table([]) and "cause |" not in judge.table([])


def test_what_time_ended_is_not_a_fault_of_the_program():
    cut = {"seed": 3, "spec": result({"reads": 0.3})["spec"], "failed": judge.CUT}
    assert "- cut: 3" in judge.table([cut]) and "not run" not in judge.table([cut])


@pytest.mark.parametrize("found, silent", [([], 1), ([NONE], 1), ([finding("straggler", 0.1, 0.2, 0.3)], 0)])
def test_nothing_said_of_what_costs_much(found, silent):
    rows, _ = judge.totals([result({"late_sleep": 0.3}, *found)])
    assert rows[-1][1:3] == (silent, 1)


def test_wilson():
    assert judge.wilson(0, 0) is None
    low, high = judge.wilson(90, 100)
    assert low == pytest.approx(0.8256, abs=1e-3) and high == pytest.approx(0.9448, abs=1e-3)
    assert judge.wilson(0, 10)[0] == 0 and judge.wilson(10, 10)[1] == pytest.approx(1)


# ---- the grammar, on fresh seeds ----

@pytest.fixture(scope="module")
def drawn():
    seeds = [random.SystemRandom().getrandbits(40) for _ in range(150)]
    print("seeds", seeds)
    return [(grammar_jobs if place < 50 else grammar).draw(seed) for place, seed in enumerate(seeds)]


def test_a_seed_is_a_program(drawn):
    for spec in drawn:
        again = (grammar_jobs if "ranks" in spec else grammar).draw(spec["seed"])
        assert again == spec
        before = copy.deepcopy(spec)
        assert writers.source(grammar.sized(spec, 0.01, 0.002)) == writers.source(grammar.sized(again, 0.01, 0.002))
        assert spec == before


def assert_whole(spec, text):
    """It is a program, and no placeholder of a writer is left in it."""
    if spec["framework"] != "cuda":
        compile(text, str(spec["seed"]), "exec")
    assert all("@" not in line.replace(" @ ", "").lstrip().lstrip("@") for line in text.splitlines()), spec


def test_each_fix_changes_the_program(drawn):
    for spec in drawn:
        spec = grammar.sized(spec, 0.01, 0.002)
        texts = {name: writers.source(spec, without) for name, without in grammar.fixes(spec).items()}
        assert len(set(texts.values())) == len(texts), spec
        for text in texts.values():
            assert_whole(spec, text)


def test_probes_change_the_program(drawn):
    probes = 0
    for spec in drawn:
        spec = grammar.sized(spec, 0.01, 0.002)
        for cause in ("batch", "precision", "memory", "launch", "sync", "host", "data", "copy", "quiet"):
            if writers.probe_of(spec, cause):
                probes += 1
                text = writers.source(spec, probe=cause)
                assert text != writers.source(spec), (spec, cause)
                assert_whole(spec, text)
    assert probes


def test_names_do_not_tell(drawn):
    """What a program reads like says nothing of what is wrong with it."""
    for spec in drawn:
        text = writers.source(grammar.sized(spec, 0.01, 0.002)).lower()
        for word in ("planted", "inefficien", "fault", "slow", "wasteful", "pageable", "chatty", "eager", "starv"):
            assert word not in text, (spec, word)


def test_shares_are_sizes(drawn):
    for spec in drawn:
        small, large = (grammar.sized(spec, step, 0.0)["knobs"] for step in (0.002, 0.02))
        assert sum(share or 0 for share in spec["faults"].values()) <= grammar.SHARES_TOGETHER + 0.01
        for name, share in spec["faults"].items():
            assert (name in small) == (share is not None), spec
        for name in small.keys() & {"reads", "chatty", "logging", "host_before", "host_after"}:
            assert small[name] <= large[name]


def test_each_cause_once(drawn):
    for spec in drawn:
        causes = [grammar.FAULTS[name].causes[:1] for name in spec["faults"]]
        named = [cause for cause in causes if cause]
        assert len(set(named)) == len(named), spec


# ---- jobs, with real processes on the CPU ----

ARMS = """
import json, os, pathlib, sys
sys.path[:0] = BENCH, BENCH + "/drawn", BENCH + "/planted"
import lane, torch
from arms import Arm, Together
for path in map(pathlib.Path, json.loads(sys.argv[1])):
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(lane.free_port()), "WORLD_SIZE": "2"}
    arm = Together([Arm.forked(lane.python_arm(path, "ranks", {**job, "RANK": str(rank), "LOCAL_RANK": str(rank)}), f"{path}.{rank}") for rank in (0, 1)])
    try:
        print(json.dumps([arm.hear(120), arm.turn("2 4 1", 120)]), flush=True)
    finally:
        arm.end(30)
"""
JOBS = {"synced_parts": "ddp", "late_items": "ddp", "late_layers": "pipeline", "late_sleep": "tensor"}


def job(name):
    """A small one with this inefficiency alone."""
    spec = next(spec for spec in map(grammar_jobs.draw, range(10000)) if [*spec["faults"]] == [name] and spec["loop"] == JOBS[name] and spec["model"] == "mlp")
    small = {"width": 64, "depth": 4, "batch": 32, "length": 8, "precision": "tf32", "optimizer": "SGD", "parts": min(spec["parts"], 4)}
    return grammar.sized({**spec, **{key: value for key, value in small.items() if key in spec}}, 0.002, 0.001)


def test_jobs_of_two_processes(torch_python, tmp_path):
    """As each is, and fixed: all ranks take the steps that they are told to."""
    paths, units = [], []
    for name in JOBS:
        spec = job(name)
        for fixed in (frozenset(), frozenset({name})):
            paths.append(tmp_path / f"{name}-{bool(fixed)}.py")
            paths[-1].write_text(writers.source(spec, fixed))
            units.append(spec["batch"] * (1 if spec["loop"] != "ddp" else 2 * spec["parts"]))
    done = subprocess.run([torch_python[0], "-c", f"BENCH = {str(BENCH)!r}\n{ARMS}", json.dumps([str(path) for path in paths])], cwd=tmp_path,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=HANGS_S)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(ready["units"], turn["steps"], turn["units"]) for ready, turn in answers] == [(each, 4, each) for each in units]
    assert all(turn["begin"] < turn["enqueued"] <= turn["end"] for _, turn in answers)
