"""Real traces of the PyTorch profiler (tests/data/kineto) through `hec import` and `hec report`: the figures of
tests/golden/import.json, of which window, busy, compute and idle were computed by bench/import/oracle.py and by
Holistic Trace Analysis as well (bench/import/run).

HEC_GOLDEN_UPDATE=1 writes the expectations anew instead (tests/golden/README.md)."""
import gzip
import json
import os

import pytest

from conftest import GOLDEN, ROOT

FIGURES_FILE = GOLDEN / "import.json"
NAMES = ["alexnet", "event_sync_multi_stream", "mi250"]
FIGURES = ["window_us", "busy_us", "idle_us", "compute_us", "non_compute_us", "comm_us", "copy_us", "comm_overlap", "kernels",
           "copies", "memsets", "graphs", "streams", "kernel_sum_us", "memset_bytes", "copied"]


def figures(report):
    assert len(report["devices"]) == 1
    device = report["devices"][0]
    return {
        "device": device["name"],
        "timeline": {name: device["timeline"][name] for name in FIGURES},
        "launches_joined": device["timeline"]["launch_delay_us"]["count"],
        "steps": {name: report["steps"][name] for name in ("count", "source", "median_ms")} if report["steps"] else None,
        "first_kernels": [{name: kernel[name] for name in ("name", "count", "time_us")} for kernel in report["kernels"][:3]],
    }


@pytest.mark.parametrize("name", NAMES)
def test_figures(hec, name):
    hec.ok("import", "-q", "-o", "t.hec", ROOT / "tests" / "data" / "kineto" / f"{name}.json.gz")
    report = hec.report("t.hec")
    found = figures(report)
    if os.environ.get("HEC_GOLDEN_UPDATE"):
        expected = json.loads(FIGURES_FILE.read_text()) if FIGURES_FILE.exists() else {}
        expected[name] = found
        FIGURES_FILE.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
    assert found == json.loads(FIGURES_FILE.read_text())[name]
    for device in report["devices"]:  # a trace has time only: missing is never zero
        assert not device["energy"]["valid"] and device["energy"]["joules"] is None


def test_one_rank_in_two_files(hec):
    """Two files of rank 0 are two looks at the same GPU, here an hour apart."""
    name = NAMES[0]
    first = ROOT / "tests" / "data" / "kineto" / f"{name}.json.gz"
    trace = json.loads(gzip.decompress(first.read_bytes()))
    for event in trace["traceEvents"]:
        if "ts" in event:
            event["ts"] += 3600 * 1_000_000
    (hec.folder / "later.json").write_text(json.dumps(trace))
    assert hec("import", "-q", "-o", "t.hec", first, "later.json").returncode == 0
    expected = json.loads(FIGURES_FILE.read_text())
    (device,) = hec.report("t.hec")["devices"]
    for figure in ("kernels", "busy_us", "compute_us", "kernel_sum_us"):
        assert device["timeline"][figure] == pytest.approx(2 * expected[name]["timeline"][figure])
