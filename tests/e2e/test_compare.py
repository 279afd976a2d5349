"""`hec compare` on runs of the simulated GPU, whose truth is known, and on what cannot be compared."""
import concurrent.futures
import json
import os

import jsonschema
import pytest

from conftest import BINARY, Hec, schema

SECONDS = 5
SCHEMA = schema("compare")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of two cases, two of one and one of the other; what is known of each."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("compare"))
    os.environ["HEC_STATE_DIR"] = str(hec.folder / "state")

    def play(name, case, seed, *options):
        done = hec.ok("run", "-q", "--sim", "h200", "-o", f"{name}.hec", "--", BINARY, "sim", case, "--seed", seed,
                      "--seconds", SECONDS, "--json", *options)
        return json.loads(done.stdout)

    plays = {"a1": ("healthy-train", 1, "--marks"), "a2": ("healthy-train", 2, "--marks"), "b1": ("fp32", 1, "--marks"),
             "bare": ("healthy-gemm", 1)}
    with concurrent.futures.ThreadPoolExecutor(len(plays)) as at_once:
        truth = dict(zip(plays, at_once.map(lambda name: play(name, *plays[name]), plays)))
    del os.environ["HEC_STATE_DIR"]
    return hec, truth


def compare(hec, *arguments):
    done = hec.ok("compare", "--json", *arguments)
    result = json.loads(done.stdout)
    jsonschema.validate(result, SCHEMA)
    return result, {q["name"]: q for q in result["quantities"]}


def per_unit(truth):
    """Of the steps: what came before them is in no steady part."""
    startup = truth["states"]["startup"]["joules"]
    return (truth["joules"] - startup) / truth["units"]


def test_known_difference_and_swapped(runs):
    hec, truth = runs
    ratio = per_unit(truth["b1"]) / per_unit(truth["a1"])
    assert ratio > 1.1
    there, q = compare(hec, "a1.hec", "b1.hec")
    low, best, high = q["joules_per_unit"]["ratio"]
    assert there["verdict"] == "lost" and there["sentence"].startswith("lost in these two runs: B took")
    assert 0.99 * low < ratio < 1.01 * high and abs(best / ratio - 1) < 0.05
    assert q["joules_per_unit"]["shown"] == "worse" and q["units_per_second"]["shown"] == "worse"
    back, p = compare(hec, "b1.hec", "a1.hec")
    assert back["verdict"] == "saved" and back["sentence"].startswith("saved in these two runs: B took")
    assert p["joules_per_unit"]["ratio"] == pytest.approx([1 / high, 1 / best, 1 / low], rel=1e-6)


def test_two_runs_of_one_program_are_not_shown_to_differ(runs):
    hec, _ = runs
    result, q = compare(hec, "a1.hec", "a2.hec")
    assert result["verdict"] == "not_shown"
    low, _, high = q["joules_per_unit"]["ratio"]
    assert 0.8 < low < 1 < high < 1.25
    assert any("one run a side" in note for note in result["notes"])
    a = result["a"][0]["steady"]
    assert 10 <= a["blocks"] <= 60 and a["units"] == 512 * a["steps"]


def test_runs_of_each_side(runs):
    hec, _ = runs
    result, q = compare(hec, "a1.hec", "a2.hec", "--", "b1.hec")
    assert [len(result[side]) for side in "ab"] == [2, 1]
    assert q["joules_per_unit"]["between_runs"] and q["joules_per_unit"]["runs_a"] == 2
    for words, said in ((("a1.hec",), "two run files"), (("a1.hec", "a2.hec", "b1.hec"), "two run files"),
                        (("a1.hec", "--"), "after --"), (("--", "a1.hec"), "before --"), (("a1.hec", "a1.hec"), "twice"),
                        (("a1.hec", "--", "b1.hec", "--", "a2.hec"), "once")):
        done = hec("compare", *words)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_terminal_and_markdown(runs):
    hec, _ = runs
    page = hec("compare", "a1.hec", "b1.hec", env={"COLUMNS": "80"}).stdout
    assert "lost in these two runs: B took" in page and "Ledger" in page and max(map(len, page.splitlines())) <= 80
    text = hec("compare", "--md", "a1.hec", "b1.hec").stdout
    assert text.startswith("**lost in these two runs: B took") and "| energy |" in text


def test_unlike_runs_are_refused_unless_asked_for(runs):
    hec, _ = runs
    done = hec("compare", "a1.hec", "bare.hec")
    assert done.returncode == 2 and done.stdout == ""
    assert "the unit of work: unit in A, none in B" in done.stderr and "--unlike" in done.stderr
    result, q = compare(hec, "--unlike", "a1.hec", "bare.hec")
    assert result["verdict"] == "not_shown" and q["joules"]["ratio"][1] > 0
    assert {d["what"] for d in result["differs"] if d["must_be_alike"]} == {"unit", "steps"}
    assert "unlike" in result["notes"][0]


def test_without_steps_one_run_shows_nothing(runs):
    hec, _ = runs
    (hec.folder / "bare2.hec").write_bytes((hec.folder / "bare.hec").read_bytes())
    result, _ = compare(hec, "bare.hec", "bare2.hec")
    assert result["verdict"] == "not_shown" and result["unit"] is None
    assert "one run a side does not tell" in result["sentence"]


def test_files_that_cannot_be_compared(runs):
    hec, _ = runs
    whole = (hec.folder / "a1.hec").read_bytes()
    (hec.folder / "half.hec").write_bytes(whole[:len(whole) // 2])
    (hec.folder / "other.hec").write_bytes(b"no run at all")
    for name in ("missing.hec", "other.hec"):
        done = hec("compare", "a1.hec", name)
        assert done.returncode not in (0, 2) and name in done.stderr and done.stdout == ""
    assert hec("compare", "a1.hec", "half.hec").returncode != 0


def trace_of(step_us):
    events = [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 0, "dur": 5,
               "args": {"correlation": 1}}]
    for k in range(40):
        at = 1000 + k * step_us + k * k % 7
        events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{k}", "pid": 1, "tid": 1, "ts": at,
                    "dur": step_us - 10},
                   {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 20, "dur": step_us // 2,
                    "args": {"device": 0, "stream": 7, "correlation": k + 2}}]
    return {"schemaVersion": 1, "traceEvents": events}


def test_imported_runs_are_compared_in_time(hec):
    result, q = compare(hec, hec.imported("slow", trace_of(500_000)), hec.imported("fast", trace_of(400_000)))
    assert result["verdict"] == "faster" and "joules are not known" in result["sentence"]
    assert q["joules_per_unit"]["shown"] == "unknown" and q["joules_per_unit"]["a"] is None
    assert q["units_per_second"]["ratio"][1] == pytest.approx(1.25, rel=0.001)
    assert any("no joules of A" in note for note in result["notes"])


def test_run_in_progress_is_refused(hec):
    going = hec.popen("run", "-q", "--sim", "h200", "-o", "going.hec", "--", BINARY, "sim", "healthy-train", "--seconds", "60",
                      "--marks")
    try:
        while not ((hec.folder / "going.hec").exists() and hec("report", "going.hec").returncode == 0):
            assert going.poll() is None
        (hec.folder / "copy.hec").write_bytes((hec.folder / "going.hec").read_bytes())
        done = hec("compare", "going.hec", "copy.hec")
        assert done.returncode == 2 and done.stdout == "" and "still in progress in A" in done.stderr, done.stderr
    finally:
        going.terminate()
        going.wait()
