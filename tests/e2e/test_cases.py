"""Small traces (tests/data/cases), made after what people reported of profilers and of HEC itself: what is right of each."""
import json

import pytest

from conftest import ROOT

CASES = ROOT / "tests" / "data" / "cases"


@pytest.fixture
def imported(hec):
    def of(name):
        done = hec("import", "-q", "-f", "-o", "case.hec", CASES / name)
        assert done.returncode == 0, done.stderr
        return hec.report("case.hec")
    return of


def first(report):
    return report["findings"][0]["cause"] if report["findings"] else None


def states(report):
    """Seconds of each state."""
    return {row["state"]: row["seconds"] for row in report["devices"][0]["ledger"]}


def notes(report):
    return " ".join(event["text"] for event in report["events"])


@pytest.mark.parametrize("name, cause", [
    ("recompile.json.gz", "compile"),  # Dynamo's and Inductor's own annotations
    ("datapipe.json.gz", "data"),
    ("lightning-next.json.gz", "data"),
    ("nvtx-data.sqlite", "data"),
    ("xpu.json.gz", "sync"),  # Unified Runtime's calls
    ("graph-launch.json.gz", "host"),  # 1.5 ms for the launch of a large graph, 20 ms of the program between
    ("ten-decode-steps.json.gz", "host"),
    ("backslash.json.gz", "data"),
    ("quote.json.gz", "data"),
    ("info-line.json.gz", "data"),
])
def test_first_cause(imported, name, cause):
    assert first(imported(name)) == cause


def test_the_launch_of_a_graph_is_no_compilation(imported):
    found = states(imported("graph-launch.json.gz"))
    assert 0.014 < found["launch"] < 0.016 and "startup" not in found  # ten launches of 1.5 ms


@pytest.mark.parametrize("name, count", [("ten-decode-steps.json.gz", 10), ("one-decode-step.json.gz", 1)])
def test_steps_of_a_server(imported, name, count):
    report = imported(name)
    assert report["steps"]["source"] == "range" and report["steps"]["count"] == count


def test_no_health_from_the_layers_of_one_step(imported):
    report = imported("one-decode-step.json.gz")
    assert "healthy" not in report["headline"] and report["scale_out"]["verdict"] != "scale_out"


def test_a_slower_rank_of_four(hec):
    """One rank of four has 1.8 times the work; all have the same process id, as in containers, and the files come in any order."""
    names = [CASES / f"straggler-of-4-rank-{rank}.json.gz" for rank in (2, 1, 3, 0)]
    hec.ok("import", "-q", "-f", "-o", "case.hec", *names)
    report = hec.report("case.hec")
    assert first(report) == "straggler" and "rank 1 (GPU 1)" in report["headline"]
    _, best, _ = report["findings"][0]["predicted"]["seconds_fraction"]
    assert 0.25 < best < 0.4 and "scale_out" != report["scale_out"]["verdict"]
    assert report["steps"]["count"] == 30
    replayed = json.loads(hec.ok("whatif", "--json", "case.hec").stdout)
    assert replayed["steps"] in (28, 29, 30) and abs(replayed["recorded_seconds"] / replayed["steps"] - 0.0202) < 0.0002
    hec.ok("import", "-q", "-f", "-o", "one.hec", names[1])  # the slow one alone: it waits for nobody
    report = hec.report("one.hec")
    assert "healthy" not in report["headline"] and "ranks wait" in report["headline"]
    assert report["scale_out"]["verdict"] == "unknown"


def test_a_trace_of_xla(imported):
    """As jax.profiler wrote it on an H200: twenty steps, each with 20 ms of sleep; without them 92 % less time."""
    report = imported("jax.json.gz")
    assert report["run"]["imported"] == "xla" and first(report) == "host"
    assert report["steps"]["source"] == "annotated" and report["steps"]["count"] == 20
    low, _, high = report["findings"][0]["predicted"]["seconds_fraction"]
    assert low < 0.922 < high


@pytest.mark.parametrize("steps", [5, 6, 60])
def test_the_length_of_a_window_changes_no_answer(imported, steps):
    """The same loop, of which both variants were measured: 72 % less time without the waits."""
    finding = imported(f"window-of-{steps}.json.gz")["findings"][0]
    low, best, high = finding["predicted"]["seconds_fraction"]
    assert finding["cause"] == "data" and low < 0.72 < high and abs(best - 0.72) < 0.05


def test_communication_by_any_name(imported):
    found = states(imported("comm-names.json.gz"))
    assert found["comm"] > 0.64 and found.get("compute", 0) == 0


def test_communication_is_in_no_table_of_compute(imported):
    modules = imported("comm-range.json.gz")["devices"][0]["modules"]
    assert [row["name"] for row in modules] == ["aten::mm"]


def test_a_trace_without_a_device_says_so(imported):
    report = imported("cpu-only.json")
    assert "no activity of a device" in notes(report) and "no activity of a device" in report["headline"]


def test_the_only_device_of_a_trace_has_the_only_name(imported):
    assert [d["name"] for d in imported("rocm-device-2.json.gz")["devices"]] == ["AMD Instinct MI300X"]


def test_a_kernel_ends_before_the_next_of_its_stream_begins(imported):
    report = imported("impossible-duration.json.gz")
    timeline = report["devices"][0]["timeline"]
    assert timeline["busy_us"] < 0.03 * timeline["window_us"] and "it was cut" in notes(report)


@pytest.mark.parametrize("name", ["backslash.json.gz", "quote.json.gz", "info-line.json.gz"])
def test_what_was_repaired_is_counted(imported, name):
    assert "not valid JSON" in notes(imported(name))
