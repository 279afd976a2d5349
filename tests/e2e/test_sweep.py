"""`hec sweep` on the simulated GPU: a program whose throughput saturates and whose memory ends, and what may go wrong."""
import json
import os
import signal
import sys
import time

import jsonschema
import pytest

from conftest import BINARY, HANGS_S, PROGRAMS, ROOT, schema

SCHEMA = schema("sweep")
PROGRAM = PROGRAMS / "cuda_program"
# Steps of 40 ms up to a batch of 128, from there in proportion; 1.2 s in all. 512 does not fit. Of shorter steps a busy host is a large part.
TRAIN = f"""
[ $1 -ge 512 ] && echo "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB" >&2 && exit 1
ns=$(($1 > 128 ? 40000000 * $1 / 128 : 40000000))
exec {PROGRAM} batch=1 mark=$1 ns=$ns kernels=$((1200000000 / ns))
"""
# Reads knobs; one value breaks, one hangs.
KNOBS = """
import hec, signal, sys, time
mode, size = hec.knob("mode", "none"), hec.knob("size", 1)
if mode == "broken":
    sys.exit("no such mode")
if mode == "hangs":
    time.sleep(100)
for n in range(30):
    time.sleep(0.01)
    hec.step(size * (8 if mode == "fast" else 1))
"""


def sweep(hec, *words, **options):
    return hec("sweep", "--seed", 1, "--in-place", *words, **options)


def read(path):
    result = json.loads(path.read_text())
    jsonschema.validate(result, SCHEMA)
    return result


def test_plateau_cliff_and_advice(hec):
    """128 fills the device, 256 takes as much, 512 is out of memory: 128 is recommended."""
    done = sweep(hec, "--sim", "h200", "--rounds", 2, "-o", "sweep.json", "batch=32..512*4,256", "--", "sh", "-c", TRAIN, "sh",
                 "{batch}")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "advice batch=128: 7" in text and "less energy a" in text and "batch=32" in text, done.stdout
    assert "512 out of device memory" in text and "batch=512: out of device memory" in done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
    result = read(hec.folder / "sweep.json")
    labels = [setting["label"] for setting in result["settings"]]
    assert labels == ["batch=32", "batch=128", "batch=512", "batch=256"]
    assert labels[result["result"]["recommended"]] == "batch=128" and not result["result"]["kept"]
    line, = result["lines"]
    assert labels[line["plateau_from"]] == "batch=128" and labels[line["plateau_to"]] == "batch=256"
    assert line["cliff"] == "end" and labels[line["cliff_at"]] == "batch=512"
    assert [setting["end"] for setting in result["settings"]] == ["ran", "ran", "device_memory", "ran"]
    low, ratio, high = result["settings"][1]["figures"][1]["to_first"]
    assert low <= ratio <= high and 0.24 < ratio < 0.27  # a quarter of the time at the same power
    rounds = [(trial["round"], trial["setting"]) for trial in result["trials"]]
    assert len(rounds) == 7 and rounds.count((1, 2)) == 0  # what does not fit is run once
    assert {"steps_for_p99", "headroom", "tie", "tolerance"} <= {limit["name"] for limit in result["plan"]["limits"]}


def test_knobs_failures_and_hangs(hec):
    """Without a device, by time: a mode that breaks and one that hangs are left out, and their output is shown. The driver that does
    not start is a simulated one, so that its time is simulated too."""
    env = {"PYTHONPATH": str(ROOT / "python")}
    done = sweep(hec, "--sim", "h200,fail=nvmlInit_v2", "-n", 3, "--trial-limit", 3, "-k", "mode", "-k", "size=3", "--json", "mode=slow,broken,fast,hangs", "--",
                 sys.executable, "-c", KNOBS, env=env)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, SCHEMA)
    assert [setting["end"] for setting in result["settings"]] == ["ran", "failed", "ran", "hung"]
    assert "no such mode" in done.stderr and "mode=hangs: did not end" in done.stderr
    assert result["settings"][1]["output"].strip() == "no such mode"
    assert result["result"]["recommended"] == 2 and result["result"]["objective"] == "time"
    assert any("joules are not known" in note for note in result["result"]["notes"])
    assert not result["lines"]  # no numbers
    low, ratio, high = result["settings"][2]["figures"][0]["to_first"]
    assert 7 < ratio < 9
    units = [trial["run"]["units"] for trial in result["trials"] if trial["end"] == "ran"]
    assert sorted(set(units)) == [90, 720]


def test_power_limits(hec):
    """A cap slows the simulated device: with no more than 5 % of slowdown allowed the low one is passed over."""
    done = sweep(hec, "--sim", "h200", "-n", 2, "--max-slowdown", "5%", "--json", "power=700,300", "--", BINARY, "sim", "healthy-gemm",
                 "--marks", "--seconds", 1)
    assert done.returncode == 0, done.stderr
    full, capped = json.loads(done.stdout)["settings"]
    watts = [setting["figures"][2]["value"][1] for setting in (full, capped)]
    assert watts[1] < 320 < 600 < watts[0], watts
    assert capped["passed_over"] == "slow" and json.loads(done.stdout)["result"]["recommended"] == 0
    assert "no other that may be recommended is shown to take less" in json.loads(done.stdout)["result"]["sentence"]


def test_effective_batch_and_markdown(hec):
    """{accumulate} follows; whole runs are compared where nobody counts work; what is fastest is the first: it is kept."""
    done = sweep(hec, "-n", 2, "--effective-batch", 64, "--md", "batch=8,16", "--", "sh", "-c",
                 "echo $1 >>seen; sleep 0.0$2", "sh", "{batch}x{accumulate}", "{batch}")
    assert done.returncode == 0, done.stderr
    assert sorted((hec.folder / "seen").read_text().split()) == ["16x4"] * 2 + ["8x8"] * 2
    assert "| batch=16 |" in done.stdout and "whole runs" in done.stdout


@pytest.mark.parametrize("words, sentence", [
    (["batch=1,2"], "no command after --"),
    (["--", "true"], "no NAME=VALUE"),
    (["batch=1,2", "--", "true"], "batch changes nothing"),
    (["batch", "--", "true"], "is no NAME=VALUE"),
    (["a=0..9", "b=0..9", "--", "echo", "{a}{b}"], "at most 64 are tried"),
    (["a=0..100", "--", "echo", "{a}"], "more than 64 values"),
    (["power=300,lots", "--", "true"], "power_cap"),
    (["a=1,2", "-k", "b", "--", "echo", "{a}"], "no parameter b"),
    (["a=1,2", "--html", "-o", "page.html", "--", "echo", "{a}"], "the page goes to standard output"),
    (["a=1,2", "--objective", "speed", "--", "echo", "{a}"], "joules, time, edp or cost"),
    (["a=1,2", "--max-p99", "20", "--", "echo", "{a}"], "such as 20ms"),
    (["a=1,2", "--max-slowdown", "0", "--", "echo", "{a}"], "needs percent"),
    (["a=1,2", "--effective-batch", "8", "--", "echo", "{a}{accumulate}"], "no such parameter"),
    (["a=3,4", "--effective-batch", "8", "--batch", "a", "--", "echo", "{a}{accumulate}"], "a=3 does not divide"),
])
def test_wrong_words(hec, words, sentence):
    done = sweep(hec, *words)
    assert done.returncode == 2, done
    assert sentence in done.stderr, done.stderr


def test_nothing_runs(hec):
    done = sweep(hec, "a=1,2", "--", "no-such-command", "{a}")
    assert done.returncode == 127 and "command not found" in done.stderr
    done = sweep(hec, "a=1,2", "--", "sh", "-c", "exit 3", "{a}")
    assert done.returncode == 1 and "nothing: 2 of 2 settings: failed: exit status 3" in " ".join(done.stdout.split())
    assert "cliff a: none is known: no value ran" in " ".join(done.stdout.split())
    done = sweep(hec, "-n", 1, "--steps", 10, "a=1,2", "--", "sh", "-c", "true", "{a}")
    assert done.returncode == 0 and "whole runs" in " ".join(done.stdout.split())  # they ended before


def test_budget_and_interrupt(hec):
    """What is known is reported."""
    done = sweep(hec, "--sim", "h200,fail=nvmlInit_v2", "--budget-seconds", 10, "-n", 50, "a=1,2", "--", "sleep", "4", "{a}e-9")
    assert done.returncode == 0 and "its budget was spent" in " ".join(done.stdout.split())
    assert done.stderr.count("hec: round") == 3, done.stderr  # the third begins after 8 s, and what hec waits for itself
    child = hec.popen("sweep", "--in-place", "-n", "50", "a=1,2", "--", "sh", "-c", "[ -e stop ] && exec sleep 100; sleep 0.1", "{a}",
                      stdout=-1, stderr=-1)
    for line in child.stderr:
        if "round 1" in line:
            (hec.folder / "stop").touch()
            break
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=HANGS_S)
    assert child.returncode == -signal.SIGINT and "it ended before its rounds were done" in " ".join(out.split())
