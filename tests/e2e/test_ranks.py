"""A job of two ranks on two simulated GPUs, whose collectives end together: who waits for whom, and whose line it is."""
import json
import sys

import pytest

from conftest import SIMULATED_GPU

# Each rank works for 10 ms, and is in a collective from then on until 2 ms after the late one is ready.
RANK = SIMULATED_GPU.replace("ctypes.byref(device), 0)", "ctypes.byref(device), RANK % 2)") + '''
ok(cuda.cuModuleLoadData(ctypes.byref(module), b"gemm - train_tf32 40 2048\\nncclDevKernel_AllReduce_Sum_bf16_RING_LL - comm 96 1024\\n"))
collective = ctypes.c_void_p()
ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"gemm"))
ok(cuda.cuModuleGetFunction(ctypes.byref(collective), module, b"ncclDevKernel_AllReduce_Sum_bf16_RING_LL"))

def launch(what, ns):
    arguments[0].value = ns
    ok(cuda.cuLaunchKernel(what, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))

def log():
    time.sleep(LATE)

for step in range(STEPS):
    os.write(to, b".")  # steps begin at once
    os.read(other_end, 1)
    if LATE:
        log()
    launch(function, 10_000_000)
    launch(collective, 2_000_000 + (20_000_000 if LATE_RANK == 1 - RANK else 0))
    ok(cuda.cuStreamSynchronize(stream))
'''
JOB = '''
import os, subprocess, sys, time
LATE_RANK, STEPS = map(int, sys.argv[1:3])
if len(sys.argv) == 3:
    pipes = [os.pipe(), os.pipe()]
    ranks = []
    for rank in (0, 1):
        ends = (pipes[rank][1], pipes[1 - rank][0])
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", TORCHELASTIC_RUN_ID="x")
        ranks.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:], *map(str, ends)], pass_fds=ends))
    sys.exit(max(rank.wait() for rank in ranks))
to, other_end = map(int, sys.argv[3:])
RANK = int(os.environ["RANK"])
LATE = 0.02 * (RANK == LATE_RANK)
''' + RANK

# The same with collectives of the host, in a file whose path ends as PyTorch's: the device idles meanwhile.
ON_HOST = JOB[:JOB.index("for step in")] + '''
path = os.path.abspath(os.path.join("torch", "distributed", "distributed_c10d.py"))
gloo = {}
exec(compile("import os\\ndef all_reduce(to, other):\\n    os.write(to, b'.')\\n    os.read(other, 1)\\n", path, "exec"), gloo)

def reduce_gradients():
    gloo["all_reduce"](to, other_end)

for step in range(STEPS):
    if LATE:
        log()
    launch(function, 10_000_000)
    ok(cuda.cuStreamSynchronize(stream))
    reduce_gradients()
'''


@pytest.fixture(params=[JOB])
def job(hec, request):
    (hec.folder / "job.py").write_text(request.param)

    def run(late, steps, *options):
        hec.ok("run", "-q", "-f", "--sim", "h200x2", "-o", "job.hec", *options, "--", sys.executable, "job.py", late, steps)
        return hec.report("job.hec")
    return run


def ranks_of(report):
    return {rank["rank"]: rank for rank in report["job"]["ranks"]}


@pytest.mark.parametrize("trace, steps", [("full", 40), ("auto", 250)])
def test_a_rank_that_is_late(job, trace, steps):
    """By 20 of each 32 ms; its line is named, and the joules of the other are charged to it."""
    report = job(1, steps, f"--trace={trace}")
    ranks, first = ranks_of(report), report["findings"][0]
    assert report["job"]["size"] == 2 and report["job"]["missing"] is None
    assert [(r["local_rank"], r["launcher"], r["devices"]) for r in ranks.values()] == [(0, "torchrun", [0]), (1, "torchrun", [1])]
    assert ranks[1]["came_last"] == ranks[1]["collectives"] > 16
    assert ranks[1]["held_seconds"] == pytest.approx(ranks[0]["waited_seconds"], rel=0.05)
    assert ranks[0]["waited_seconds"] == pytest.approx(steps * 0.02, rel=0.2) and ranks[1]["waited_seconds"] < 0.05
    assert ranks[1]["held_joules"] > 50
    assert first["cause"] == "straggler" and first["devices"] == [0, 1] and first["lever_id"] == "slow_host"
    assert "rank 1 (GPU 1)" in report["headline"]
    assert first["source"][0]["function"] == "log"
    low, best, high = first["predicted"]["step"]["seconds_fraction"]
    assert low < 20 / 32 < high and abs(best - 20 / 32) < 0.15


def test_ranks_that_are_not(job):
    report = job(-1, 40, "--trace=full")
    assert all(f["cause"] != "straggler" for f in report["findings"] if f["actionable"])
    assert sum(rank["waited_seconds"] for rank in report["job"]["ranks"]) < 0.05


# Two ranks that report steps and losses as the hooks do. The second one's losses fall, or stay.
LOSSES = '''
import ctypes, os, subprocess, sys, time
if len(sys.argv) == 2:
    ranks = [subprocess.Popen([sys.executable, *sys.argv, str(rank)],
                              env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"})
             for rank in (0, 1)]
    sys.exit(max(rank.wait() for rank in ranks))
hec = ctypes.CDLL(os.environ["HEC_LIB"])
hec.hec_hook_step.argtypes = [ctypes.c_char_p, ctypes.c_double, ctypes.c_uint32, ctypes.c_int64]
hec.hec_hook_value.argtypes = [ctypes.c_char_p, ctypes.c_double, ctypes.c_int64]
stays = sys.argv[1:] == ["stays", "1"]
for step in range(40 if sys.argv[2] == "0" else 39):  # the first one is the one with most steps
    time.sleep(0.05)
    hec.hec_hook_value(b"loss", 4 if stays else 4 - step / 16, time.monotonic_ns())
    hec.hec_hook_step(b"sample", 8, 1, time.monotonic_ns())
'''


def test_losses_of_all_ranks_are_compared(hec):
    """A change that spoils the second rank alone fails the quality gate."""
    (hec.folder / "losses.py").write_text(LOSSES)
    verdicts = {}
    for other in ("falls", "stays"):
        command = [sys.executable, "losses.py"]
        done = hec("ab", "--sim", "h200x2", "--in-place", "-n", 4, "--json", "--", *command, "falls", ":::", *command, other)
        assert done.returncode == 0, done.stderr
        verdicts[other] = json.loads(done.stdout)["verdict"]["quality"]
    assert verdicts["falls"]["verdict"] == "pass", verdicts
    assert verdicts["stays"]["verdict"] == "fail", verdicts


@pytest.mark.parametrize("job", [ON_HOST], indirect=True)
def test_a_rank_that_is_late_in_collectives_of_the_host(job):
    """By 20 of each 30 ms: the other's device idles while its program is in the collective, which is no code of its own."""
    steps = 100
    report = job(1, steps, "--trace=full")
    ranks, first, ledgers = ranks_of(report), report["findings"][0], {
        d["index"]: {row["state"]: row["seconds"] for row in d["ledger"]} for d in report["devices"]}
    assert ledgers[0]["peers"] == pytest.approx(steps * 0.02, rel=0.15) and ledgers[0].get("host", 0) < 0.1 * ledgers[0]["peers"]
    assert ledgers[1]["host"] == pytest.approx(steps * 0.02, rel=0.15) and ledgers[1].get("peers", 0) < 0.1 * ledgers[1]["host"]
    assert ranks[0]["waited_seconds"] == pytest.approx(steps * 0.02, rel=0.15) == ranks[1]["held_seconds"] and ranks[1]["held_joules"] > 50
    assert first["cause"] == "straggler" and first["devices"] == [0, 1] and first["source"][0]["function"] == "log"
    assert "rank 1 (GPU 1) holds up the others: rank 0 (GPU 0) waits" in report["headline"]
    place = next(fact for fact in first["evidence"] if fact["what"] == "in_host_collectives")
    assert "reduce_gradients" in place["text"] or "all_reduce" in place["text"]
    assert all(f["cause"] != "host" or f["devices"] == [1] for f in report["findings"] if f["actionable"])
    assert "collectives of the host" in report["job"]["words"]


@pytest.mark.parametrize("job", [ON_HOST], indirect=True)
def test_ranks_that_are_not_in_collectives_of_the_host(job):
    report = job(-1, 60, "--trace=full")
    assert all(f["cause"] != "straggler" for f in report["findings"] if f["actionable"])
