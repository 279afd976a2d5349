"""Findings, scale-out and what a trace would add, in the reports of runs on the simulated GPU."""
import re
import sys

import jsonschema
import pytest

from conftest import BINARY, SIMULATED_GPU, Hec, schema

SCHEMA = schema("report")


def record(folder, case, *options):
    hec = Hec(BINARY, folder)
    done = hec.ok("run", "--sim", "h200", *options, "-o", f"{case}.hec", "--", hec.path, "sim", case, "--seconds", "6", "--marks",
                  "--seed", "2", env={"LC_ALL": "C.UTF-8"})
    report = hec.report(folder / f"{case}.hec")
    jsonschema.validate(report, SCHEMA)
    return report, hec("report", folder / f"{case}.hec").stdout, done.stderr, hec("report", "-v", folder / f"{case}.hec").stdout


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    return record(tmp_path_factory.mktemp("starved"), "data-starved", "--trace=full")


@pytest.fixture(scope="module")
def untraced(tmp_path_factory):
    return record(tmp_path_factory.mktemp("untraced"), "data-starved", "--trace=off")


def test_two_programs_are_not_told_of_each_other(hec):
    both = " & ".join(f"{hec.path} sim {case} --seconds 1.5 --device {device} {marks}"
                      for device, (case, marks) in enumerate([("data-starved", "--marks"), ("small-kernels", "")]))
    done = hec.ok("run", "--sim", "h200x2", "--trace=full", "-o", "two.hec", "--", "sh", "-c", f"{both} & wait", env={"LC_ALL": "C.UTF-8"})
    report = hec.report("two.hec")
    jsonschema.validate(report, SCHEMA)
    first, second = report["devices"]
    assert first["steps"] == report["steps"] and report["steps"]["source"] == "marked" and report["steps"]["count"] > 5
    assert second["steps"]["count"] == 0, "this program makes none"
    for finding in report["findings"]:
        assert finding["device"] == 0 or not [fact for fact in finding["evidence"] if fact["unit"].endswith("/step")], finding
    unit = report["units"]
    assert unit["devices"] == [0]
    assert unit["joules_per_unit"] == pytest.approx(first["energy"]["joules"] / unit["count"])
    assert "per unit, of GPU 0" in done.stderr
    text = hec("report", "two.hec", env={"LC_ALL": "C.UTF-8"}).stdout
    table, ledger, chapter = (text.index(part) for part in ("\nGPUs         2 used: NVIDIA H200\n", "\nLedger ", "\nGPU 0 "))
    assert table < ledger < chapter < text.index("\nGPU 1 ") and "  differs    GPU " in text[table:ledger] and "  energy   power    busy" in text
    assert ", 2 GPUs" in " ".join(done.stderr.split())


def test_a_starved_run_is_told_what_starves_it(starved):
    report, text, brief, _ = starved
    first = report["findings"][0]
    assert first["cause"] == "data" and first["device"] == 0 and first["confidence"] >= 0.5 and first["lever"]
    low, best, high = first["predicted"]["joules_fraction"]
    assert 0 <= low <= best <= high <= 1 and best >= 0.05
    assert report["scale_out"]["verdict"] == "optimise" and report["latency"] is None
    for shown in (text, brief):
        assert "  found      starved for data: the H200 idled " in shown
        assert "  do         load ahead, in parallel: DataLoader(" in shown and max(map(len, shown.splitlines())) <= 80
        assert "would add" not in shown and "A trace" not in shown, "there is one"
    assert len(brief.splitlines()) <= 16
    asked = brief[brief.index("\n  prove      hec try --sim h200 -- "):]
    assert re.search(r"\n  more       hec report \S+", asked) and "\n  more       hec explain data; hec report -v" in text, "what to type next"
    ledger, findings, scale = (text.index(part) for part in ("\nLedger ", "\nFindings  1  starved for data", "\nScale out?"))
    assert ledger < findings < scale < text.index("\nGPU 0 ") < text.index("\nKernels ")
    assert "hec explain data" in text 


def test_without_a_trace_it_is_said_once_what_one_would_add(untraced):
    report, text, brief, whole = untraced
    assert all(finding["confidence"] <= 0.7 for finding in report["findings"]), "telemetry alone proves no cause"
    assert all(finding["source"] == [] for finding in report["findings"])
    for shown in (text, brief):
        words = " ".join(shown.split())
        assert words.count("would add") == 1
        assert "hec run --sim h200 --trace auto -- " in words
        assert "(without a trace, confidence 0." in words
    assert "- engine active " in " ".join(whole.split()) and "\nLedger" not in text


@pytest.mark.parametrize("case, tells", [("fp32", "miss the tensor cores"), ("memory-bound", "can be fused")])
def test_no_health_where_no_kernel_was_seen(hec, case, tells):
    """Counters show that the device is busy, and not what with: the headline says what they show, and what a trace would."""
    hec.ok("run", "-q", "--sim", "h200", "--trace=off", "-o", "busy.hec", "--", hec.path, "sim", case, "--seconds", "3")
    report = hec.report("busy.hec")
    assert "healthy" not in report["headline"] and "tensor pipes 0 %" in report["headline"]
    assert "--trace full" in report["headline"] and tells in report["headline"]
    assert report["scale_out"]["verdict"] == "unknown" and not any(f["cause"] == "none" for f in report["findings"])
    text = hec.ok("report", "busy.hec").stdout
    assert "healthy" not in text and "Scale out?" not in text


@pytest.mark.parametrize("trace", ["auto", "full"])
def test_a_device_that_is_held_between_two_works(hec, trace):
    """As a notebook holds it: named, with its watts and clocks. A command that fails on its own is told so instead."""
    step = "gemm_bf16:40000x50,wait_host:30000000,gemm_bf16:1000x1"
    hec.ok("run", "-q", "--sim", "h200", f"--trace={trace}", "-o", "held.hec", "--", hec.path, "sim", step, "--seconds", "32.05")
    report = hec.report("held.hec")
    finding = report["findings"][0]
    assert (finding["cause"], finding["actionable"]) == ("idle", True)
    assert re.match(r"held without use: 30\.0 s at once between two works of it, 9\d % of the run", report["headline"]), report["headline"]
    facts = {fact["what"]: fact["value"] for fact in finding["evidence"]}
    assert facts["held_power"] == pytest.approx(120, abs=3) and facts["held_sm_clock"] == 1980
    hec("run", "-q", "-f", "--sim", "h200", f"--trace={trace}", "-o", "held.hec", "--", "sh", "-c",
        f"{hec.path} sim gemm_bf16:40000x50,wait_host:6000000 --seconds 8; exit 3")
    assert hec.report("held.hec")["headline"] == "the command failed: exit code 3"


NOTEBOOK = SIMULATED_GPU + '''
import time
def work(times):
    for _ in range(times):
        ok(cuda.cuLaunchKernel(function, 100, 1, 1, 128, 1, 1, 0, stream, parameters, None))
        ok(cuda.cuStreamSynchronize(stream))

def computes(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.01)
        work(1)

def waits(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.05)

work(2000)
computes(5)
waits(20)
work(10)
'''


@pytest.mark.parametrize("trace", ["auto", "full"])
def test_where_it_is_held(hec, trace):
    """The line is of that time, not of other code of the program, and what that other code costs is its own."""
    (hec.folder / "notebook.py").write_text(NOTEBOOK)
    hec.ok("run", "-q", "--sim", "h200", f"--trace={trace}", "-o", "held.hec", "--", sys.executable, "notebook.py")
    held, *others = hec.report("held.hec")["findings"]
    assert held["cause"] == "idle" and [line["function"] for line in held["source"]] == ["waits"]
    assert held["predicted"]["seconds_fraction"][1] == pytest.approx(0.95 * 20 / 26, abs=0.05)
    host, = (finding for finding in others if finding["cause"] == "host")
    assert host["predicted"]["seconds_fraction"][1] < 0.25
