"""What a program waits for, by its stacks: requests, a compiler, or a kernel that does not end. On the simulated GPU, by calls of the
driver as a framework makes them."""
import re
import sys

import pytest

from conftest import ROOT, SIMULATED_GPU

GPU = "import warp\n" + SIMULATED_GPU + '''
def launch(count, us=500):
    arguments[0].value = us * 1000
    for _ in range(count):
        ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))

def sync():
    ok(cuda.cuStreamSynchronize(stream))
'''

# A request each 30 ms, of 4 ms.
QUEUE = '''
import queue, threading, time
requests = queue.Queue()

def clients():
    for _ in range(300):
        time.sleep(0.03)
        requests.put(1)
    requests.put(None)

threading.Thread(target=clients, daemon=True).start()
while requests.get():
    launch(8)
    sync()
'''

# Events of 4 ms, for which an event loop waits in select().
LOOP = '''
import asyncio

async def serve():
    for _ in range(300):
        await asyncio.sleep(0.03)
        launch(8)
        sync()

asyncio.run(serve())
'''

# Compiles N times for SECONDS, in a file whose path ends as Dynamo's.
COMPILE = '''
import os
import time
import hec
path = os.path.abspath(os.path.join("torch", "_dynamo", "convert_frame.py"))
compiler = {}
exec(compile("import time\\ndef _compile(seconds):\\n    time.sleep(seconds)\\n", path, "exec"), compiler)
for step in range(40):
    if step < N:
        compiler["_compile"](SECONDS)
    launch(10)
    sync()
    hec.step()
'''

HANG = '''
import os, signal, threading, time
for _ in range(20):
    launch(20)
    sync()
launch(1, us=3600 * 10**6)
threading.Thread(target=lambda: (time.sleep(12), os.kill(os.getpid(), signal.SIGKILL)), daemon=True).start()
WAIT
'''


def run(hec, program, trace):
    (hec.folder / "warp.py").write_text("")  # a package that uses CUDA: with it the samples begin
    (hec.folder / "program.py").write_text(GPU + program)
    done = hec("run", "-q", "--sim", "h200", f"--trace={trace}", "-o", "run.hec", "--", sys.executable, "program.py",
               env={"PYTHONPATH": str(ROOT / "python")})
    return done, hec.report("run.hec")


def states(report):
    return {row["state"]: row["seconds"] for row in report["devices"][0]["ledger"]}


@pytest.mark.parametrize("trace", ["auto", "full"])
@pytest.mark.parametrize("program", [QUEUE, LOOP], ids=["queue", "event loop"])
def test_a_server_without_work(hec, program, trace):
    done, report = run(hec, program, trace)
    assert done.returncode == 0, done.stderr
    first, ledger = report["findings"][0], states(report)
    assert first["cause"] == "quiet" and report["headline"].startswith("no work to do:")
    assert first["predicted"]["joules_fraction"] is None and first["predicted"]["seconds_fraction"] is None
    assert ledger["requests"] > 7 and ledger.get("host", 0) < 0.1 * ledger["requests"]
    assert not [f for f in report["findings"] if f["cause"] == "host"]


@pytest.mark.parametrize("times, seconds", [(40, 0.1), (1, 8)], ids=["again and again", "once"])
def test_a_compiler(hec, times, seconds):
    done, report = run(hec, COMPILE.replace("N:", f"{times}:").replace("SECONDS", str(seconds)), "full")
    assert done.returncode == 0, done.stderr
    first = report["findings"][0]
    assert first["cause"] == "compile"
    if times > 1:
        assert first["actionable"] and any(line["file"].endswith("_dynamo/convert_frame.py") for line in first["source"])
    else:
        assert not first["actionable"] and first["title"].startswith("compiling took 8.")
        words = " ".join(hec.ok("report", "run.hec").stdout.split())
        assert re.search(r"outside the run [^;]*, [78]\.\d+ s of it compiling", words), words


@pytest.mark.parametrize("trace", ["auto", "full"])
@pytest.mark.parametrize("wait", ["sync()", "while True: time.sleep(0.1)"], ids=["in a call", "polling"])
def test_a_kernel_that_does_not_end(hec, trace, wait):
    _, report = run(hec, HANG.replace("WAIT", wait), trace)
    first, ledger = report["findings"][0], states(report)
    assert first["cause"] == "hang" and first["actionable"]
    assert any("program.py" in fact["text"] for fact in first["evidence"])
    assert ledger["compute"] > 11 and ledger.get("tail", 0) < 0.5
    assert not [f for f in report["findings"] if f["cause"] in ("idle", "none")]
    assert report["scale_out"]["verdict"] == "unknown"
