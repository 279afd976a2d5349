"""Device time of the parts of a step, and what the hooks counted of a model, on the simulated GPU."""
import sqlite3

import pytest

from conftest import PROGRAMS

PROGRAM = PROGRAMS / "cuda_program"
PARTS = {"forward": 20, "backward": 16, "optimizer": 4}  # launches of a step, of 50 us each


def step_parts(hec, *mode):
    done = hec("run", "-q", "--sim", "h200", "-f", "-o", "r.hec", *mode, "--", PROGRAM, "parts=1", "batch=40", "ns=50000", "sleep_us=2000",
               "seconds=8")
    assert done.returncode == 0, done.stderr
    report = hec.report("r.hec")
    device = next(each for each in report["devices"] if each["used"])
    return report, device, {each["part"]: each for each in device["parts"]}


def test_device_time_of_the_parts_of_a_step(hec):
    """Kernels belong to the part that launched them; the joules of parts are those of the watts of their kernels."""
    report, device, parts = step_parts(hec, "--trace", "full")
    assert not device["parts_glimpse"] and device["parts_steps"] == pytest.approx(report["steps"]["count"], abs=1)
    for part, launches in PARTS.items():
        assert parts[part]["step_seconds"] == pytest.approx(launches * 50e-6, rel=0.02), part
    joules = sum(each["step_joules"] or 0 for each in parts.values())
    compute = next(row for row in device["ledger"] if row["state"] == "compute")
    assert joules == pytest.approx(compute["joules"] / device["parts_steps"], rel=0.1)
    assert not [phase for phase in report["phases"] if phase["name"].startswith("part/")]
    assert "forward 1.00 ms" in " ".join(hec("report", "r.hec").stdout.split())


def test_parts_of_a_glimpse(hec):
    _, device, parts = step_parts(hec)
    assert device["parts_glimpse"] and device["parts_steps"] > 1
    for part, launches in PARTS.items():
        assert parts[part]["step_seconds"] == pytest.approx(launches * 50e-6, rel=0.1), part
    assert "as of the glimpse" in " ".join(hec("report", "r.hec").stdout.split())


def test_flops_that_the_hooks_counted(hec):
    """A bound of MFU by them, in the loop and for the device; the reason where there are none."""
    report, device, _ = step_parts(hec, "--trace", "full")
    assert report["flops"]["step"] is None and device["mfu"] is None

    def with_facts(**facts):
        with sqlite3.connect(hec.folder / "r.hec") as file:
            for key, text in facts.items():
                file.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"python.{key}", text))
        told = hec.report("r.hec")
        return told, next(each for each in told["devices"] if each["used"])["mfu"], " ".join(hec("report", "-v", "r.hec").stdout.split())

    loop = report["loop"]
    rate = loop["steps"] / loop["loop"]["seconds"]
    told, mfu, text = with_facts(flops="6 0.04 fp16=4e11")
    assert told["flops"]["fp16"] == told["flops"]["step"] == 4e11 and told["flops"]["counted"] == 6
    assert mfu == pytest.approx(4e11 * rate / 989.4e12, rel=0.01)
    assert "MFU at least" in text and "400 GFLOP a step by PyTorch's" in text and "(6 calls counted, +-8 %)" in text
    assert "or more" in next(row["text"] for row in told["screen"] if row["row"] == "loop")
    told, mfu, text = with_facts(flops="", flops_why="torch.compile: what it compiles is not counted")
    assert mfu is None and "FLOPs are not counted: torch.compile" in text
