"""`hec run --trace`: what the tracer sends from real processes on the simulated GPU ends in the run file, all of it."""
import json
import os
import sys

import pytest

from conftest import PROGRAMS, counts, rows

PROGRAM = PROGRAMS / "cuda_program"


# the program ends like most do: it frees nothing
NO_LEAKS = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def run(hec, *arguments, program=(PROGRAM, "kernels=800", "batch=4", "h2d=65536"), env=None):
    done = hec("run", "-q", "-f", "-o", "t.hec", "--sim", "h200x2", *arguments, "--", *program, env={**NO_LEAKS, **(env or {})})
    assert done.returncode == 0 and done.stderr == "", done.stderr
    run.truth = json.loads(done.stdout) if done.stdout.count("\n") == 1 else None
    return hec.folder / "t.hec"


def test_every_record_is_kept_once(hec):
    path = run(hec, "--trace=full")
    kept = counts(path)
    assert (kept["kernel"], kept["copy"], kept["sync"]) == (800, 200, 200) == (run.truth["kernels"], run.truth["copies"], 200)
    assert rows(path, "select sum(amount) from activity_block where kind = 'copy'") == [(run.truth["h2d_pinned"],)]
    # launches are told by their kernels; the rest: 200 copies, which may block, and what set things up
    assert kept["api"] == 200 + 3
    assert rows(path, "select count(*) from activity_block b join track t on t.id = b.track where b.kind = 'kernel' and t.kind != 'stream'") == [(0,)]
    (pid, mode, lost, bad, why), = rows(path, "select pid, mode, lost, bad, why from tracer")
    assert (mode, lost, bad, why) == ("full", 0, 0, None)
    assert rows(path, "select device_index from track where kind = 'stream'") == [(0,)]
    assert rows(path, "select distinct pid from track") == [(pid,)]
    names = dict(rows(path, "select k.id, n.text from kernel k join trace_name n on n.id = k.name"))
    assert sorted(names.values()) == ["_Z3addPfS_l", "_Z6squarePfl"]


def test_processes_and_devices(hec):
    """Each process arrives, with its rank; CUDA's device 0 of a process that sees only GPU 1 is GPU 1."""
    both = f"RANK=0 {PROGRAM} kernels=300 device=1 & RANK=1 {PROGRAM} kernels=300 device=0; wait"
    path = run(hec, "--trace=full", program=("sh", "-c", both), env={"WORLD_SIZE": "2"})
    assert counts(path)["kernel"] == 600
    assert sorted(rows(path, "select device_index, rank from track where kind = 'stream'")) == [(0, 1), (1, 0)]
    assert len(rows(path, "select pid from tracer")) == 2
    path = run(hec, "--trace=full", program=(PROGRAM, "kernels=50"), env={"CUDA_VISIBLE_DEVICES": "1"})
    assert rows(path, "select device_index, rank from track where kind = 'stream'") == [(1, None)]


@pytest.mark.parametrize("how", ["fork=1", "fork=2", "exec=1"])
def test_forks_and_execs(hec, how):
    path = run(hec, "--trace=full", program=(PROGRAM, "kernels=100", how))
    assert counts(path)["kernel"] == 100
    assert rows(path, "select pid from tracer where records > 0") == [(run.truth["pid"],)]


def test_graphs_by_node_and_as_a_whole(hec):
    program = (PROGRAM, "kernels=20", "graph=10")
    kept = counts(run(hec, "--trace=full", program=program))
    assert kept["kernel"] == 200 and "graph" not in kept
    kept = counts(run(hec, "--trace=graph", program=program))
    assert kept["graph"] == 20 and "kernel" not in kept


@pytest.mark.parametrize("mode", ["auto", "graph", "full"])
def test_modes(hec, mode):
    """auto looks at the device 2 s after the first launch, the others from the first call on."""
    path = run(hec, "--trace", mode, program=(PROGRAM, "seconds=4", "batch=4", "ns=100000"))
    assert rows(path, "select mode from tracer") == [(mode,)]
    assert counts(path)["window"] == 1


def test_off_loads_nothing(hec):
    path = run(hec, "--trace=off")
    assert rows(path, "select mode, why from tracer") == [("off", "switched off by --trace off")]
    assert counts(path) == {}
    done = hec("run", "-q", "--trace=off", "--", "env", env={"CUDA_INJECTION64_PATH": ""})
    assert "HEC_TRACE" not in done.stdout and "libhectrace" not in done.stdout


def test_another_tool_keeps_its_injection(hec):
    done = hec("run", "-q", "-o", "t.hec", "--", "env", env={"CUDA_INJECTION64_PATH": "/opt/nsight/libToolsInjection64.so"})
    assert "CUDA_INJECTION64_PATH=/opt/nsight/libToolsInjection64.so\n" in done.stdout and "HEC_TRACE" not in done.stdout
    (mode, why), = rows(hec.folder / "t.hec", "select mode, why from tracer")
    assert mode == "auto" and why == "CUDA_INJECTION64_PATH is taken by /opt/nsight/libToolsInjection64.so"
    events = rows(hec.folder / "t.hec", "select text from event where kind = 'source_unavailable'")
    assert any(text.startswith("trace: CUDA_INJECTION64_PATH is taken by") for text, in events)


def told(hec, path, why):
    """The report says why there are no kernels, and gives no advice to do what was done."""
    assert hec.report(path)["trace"]["why"] == why
    words = " ".join(hec("report", path).stdout.split())
    assert why in words and "would add" not in words and "no process of the command used CUDA" not in words, words


def test_another_profiler_in_the_place_of_the_tracer(hec):
    """As nsys does: the variable that the driver reads is another's, in the command itself."""
    path = run(hec, "--trace=full", program=("env", "-u", "CUDA_INJECTION64_PATH", PROGRAM, "kernels=50", "seconds=1"))
    told(hec, path, "the command used a GPU and did not load HEC's tracer: another profiler may have its place")


def test_a_trace_of_nothing_is_one(hec):
    path = run(hec, "--trace=full", program=(hec.path, "sim", "idle-allocated", "--seconds", "1"))
    words = " ".join(hec("report", path).stdout.split())
    assert "would add" not in words and "kernels not recorded" not in words, words
    assert "nothing ran on the GPU" in words


def test_a_run_in_a_run_reports_to_the_inner_one(hec):
    inner = (hec.path, "run", "-q", "-o", "inner.hec", "--trace=full", "--", PROGRAM, "kernels=50")
    path = run(hec, "--trace=full", program=inner)
    assert counts(hec.folder / "inner.hec")["kernel"] == 50
    assert "kernel" not in counts(path)
    told(hec, path, "another hec run inside of this one has taken over the tracing of its command")
    inner = (hec.path, "run", "-q", "-f", "-o", "inner.hec", "--trace=off", "--", PROGRAM, "kernels=50")
    path = run(hec, "--trace=full", program=inner)
    assert "kernel" not in counts(path) and "kernel" not in counts(hec.folder / "inner.hec")
    told(hec, path, "another hec run inside of this one has taken over the tracing of its command")


def test_no_cuda_no_trace(hec):
    path = run(hec, program=("true",))
    assert rows(path, "select why from tracer") == [("no process of the command used CUDA",)]


@pytest.mark.parametrize("arguments, sentence", [
    (["--trace", "some"], "--trace needs auto, full, graph or off"),
    (["--hooks", "maybe"], "--hooks needs on or off"),
    (["--no-trace"], "unknown option"),
])
def test_wrong_usage(hec, arguments, sentence):
    done = hec("run", *arguments, "--", "true")
    assert done.returncode == 2 and sentence in done.stderr


def test_hooks_are_in_the_path_of_python_unless_off(hec):
    """The folder comes first, and what the user has there stays."""
    show = ("run", "-q", "-f", "-o", "t.hec", "--", sys.executable, "-S", "-c", "import os; print(os.environ.get('PYTHONPATH'), os.environ.get('HEC_HOOKS'))")
    done = hec(*show, env={"PYTHONPATH": "/mine"})
    path, hooks = done.stdout.split()
    assert path.split(":")[0].endswith("share/hec/python/hooks") and path.split(":")[1:] == ["/mine"] and hooks == "1"
    done = hec(*show[:2], "--hooks", "off", *show[2:], env={"PYTHONPATH": "/mine"})
    assert done.stdout.split() == ["/mine", "None"]
    for more in (("--hooks", "on"), ()):
        done = hec(*show[:2], *more, *show[2:], env={"HEC_HOOKS": "0"})
        assert done.stdout.split()[-1] == ("1" if more else "0"), "the option counts for more than the variable"


# uses CUDA, and lives until hec has seen it
USES_CUDA = """
import ctypes, sqlite3, time
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
for i in range(600):
    with sqlite3.connect("t.hec") as file:
        if file.execute("select count(*) from tracer where driver_version > 0").fetchone()[0]:
            break
    time.sleep(0.05)
"""


def test_a_python_that_keeps_the_hooks_out_is_told(hec):
    path = run(hec, program=(sys.executable, "-W", "ignore", "-uI", "-c", USES_CUDA))
    notes = [text for (text,) in rows(path, "select text from event where kind = 'hooks_out'")]
    assert len(notes) == 1 and "is a python -I, which reads no PYTHONPATH" in notes[0]
    assert "reads no PYTHONPATH" in " ".join(hec("report", path).stdout.split())
