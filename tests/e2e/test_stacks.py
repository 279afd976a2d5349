"""Stacks of Python programs, read from outside: the lines that the interpreters themselves would name, of every thread and process, and
what comes where they cannot be read. HEC_TEST_PYTHONS: more interpreters, separated by colons (bench/stacks)."""
import collections
import csv
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import SIMULATED_GPU, rows


def is_python(path):
    return path and subprocess.run([path, "-c", "import functools"], capture_output=True).returncode == 0


PYTHONS = sorted({os.path.realpath(path) for path in [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(8, 15)),
                                                      *os.environ.get("HEC_TEST_PYTHONS", "").split(":")] if is_python(path)})

# By the virtual clock, in which only waits take time: 31.1 ms on one line, 10.7 ms on the other (in no step with the samples), called by C.
# Before 3.11 Python waits in select(), which that clock does not know.
LINES = '''
import functools, time
def long():
    time.sleep(0.0311)

class Program:
    def short(self):
        list(map(time.sleep, [0.0107]))

    def step(self):
        functools.reduce(lambda _, function: function(), [long, self.short], None)

for _ in range(50):
    Program().step()
'''

# What launches is no main thread, and waits on one line of its own.
WORKER = SIMULATED_GPU + '''
import threading, time
def work():
    ok(cuda.cuCtxSetCurrent(context))
    for _ in range(60):
        time.sleep(0.03)
        for _ in range(8):
            ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))
        ok(cuda.cuStreamSynchronize(stream))
thread = threading.Thread(target=work)
thread.start()
thread.join()
'''

# Python alone, for as long as it takes, then a call: with the interpreter's lock it would be seen in the call.
BUSY = SIMULATED_GPU + '''
def busy():
    total = 0
    for number in range(400000):
        total += number % 7
    return total
for _ in range(12):
    busy()
    ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))
    ok(cuda.cuStreamSynchronize(stream))
'''

CHILDREN = '''
import multiprocessing, time
def child():
    time.sleep(1)
if __name__ == "__main__":
    context = multiprocessing.get_context("HOW")
    children = [context.Process(target=child) for _ in range(3)]
    for process in children:
        process.start()
    for process in children:
        process.join()
'''

# As torchrun: who starts the ranks has the driver, too; the workers that it forks cannot use it. All wait, for as long.
RANK = SIMULATED_GPU + '''
import os, subprocess, sys, time
def rank():
    for _ in range(60):
        time.sleep(0.05)
        ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))
        ok(cuda.cuStreamSynchronize(stream))
def worker():
    time.sleep(4)
    os._exit(0)
if sys.argv[1:]:
    rank()
else:
    for _ in range(WORKERS):
        if os.fork() == 0:
            worker()
    time.sleep(0.5)
    subprocess.run([sys.executable, __file__, "rank"], check=True)
    for _ in range(WORKERS):
        os.wait()
'''


def run(hec, program, *options, python=sys.executable, **more):
    (hec.folder / "program.py").write_text(program)
    done = hec("run", "-q", "-f", "--sim", "h200", "-o", "run.hec", *options, "--", python, "program.py", **more)
    assert (done.returncode, done.stderr) == (0, "")
    return samples_of(hec)


def samples_of(hec):
    """{(pid, thread): {"file:line": samples}} of the run."""
    out = collections.defaultdict(collections.Counter)
    for row in csv.DictReader(hec.ok("export", "--csv", "-o", "-", "run.hec").stdout.splitlines()):
        if row["kind"] == "stack":
            out[int(row["pid"]), int(row["tid"])][re.search(r"\(([^()]+:\d+)\)$", row["name"])[1]] += 1
    return out


def fact(hec, key):
    return dict(rows(hec.folder / "run.hec", "select key, value from meta")).get(key)


@pytest.mark.parametrize("python", PYTHONS)
def test_lines_of_an_interpreter(hec, python):
    found = run(hec, LINES, python=python)
    assert len(found) == 1 and all(pid == tid for pid, tid in found)
    lines = sum(found.values(), collections.Counter())
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info[1])"], text=True, capture_output=True, check=True).stdout
    if int(version) >= 11:
        assert lines["program.py:4"] == pytest.approx(155, abs=8) and lines["program.py:8"] == pytest.approx(53, abs=6), lines
    assert lines["program.py:4"] > 0 and lines["program.py:8"] > 0, lines
    assert lines["program.py:4"] + lines["program.py:8"] > 0.9 * sum(lines.values()) - 5, lines
    assert fact(hec, "stacks.outside").endswith(" 0 dropped")


def test_python_that_gives_up_no_lock(hec):
    # in real time: what only computes takes none of the other
    (hec.folder / "program.py").write_text(BUSY)
    subprocess.run([hec.path, "run", "-q", "--sim", "h200", "-o", "run.hec", "--", sys.executable, "program.py"], cwd=hec.folder, check=True)
    lines = sum(samples_of(hec).values(), collections.Counter())
    loop = sum(lines[f"program.py:{line}"] for line in range(18, 23))
    last = sum(lines[f"program.py:{line}"] for line in range(23, 30))
    assert loop > last, lines


def test_the_thread_that_launches_explains(hec):
    run(hec, WORKER)
    device, = hec.report("run.hec")["devices"]
    sources = [line for line in hec.report("run.hec")["findings"][0]["source"]]
    assert (sources[0]["line"], sources[0]["function"]) == (23, "work") and sources[0]["share"] > 0.9, sources
    assert device


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children(hec, how):
    found = run(hec, CHILDREN.replace("HOW", how))
    asleep = [lines["program.py:4"] for lines in found.values() if lines["program.py:4"]]
    assert len(asleep) == 3 and min(asleep) > 5, found


def test_a_rank_is_read_each_time(hec):
    workers = 16
    found = run(hec, RANK.replace("WORKERS", str(workers)))
    at = {function: 1 + RANK.split("\n").index(line) for function, line in
          (("rank", "        time.sleep(0.05)"), ("worker", "    time.sleep(4)"))}
    rank = max(lines[f"program.py:{at['rank']}"] for lines in found.values())
    others = sorted(lines[f"program.py:{at['worker']}"] for lines in found.values() if lines[f"program.py:{at['worker']}"])
    assert len(others) == workers and rank > 4 * others[-1], (rank, others)


def test_an_interpreter_that_is_not_known_is_sampled_from_inside(hec, tmp_path):
    """This one, which says that it is of a version to come."""
    python = os.path.realpath(sys.executable)
    symbols = subprocess.run(["readelf", "-sW", python], text=True, capture_output=True).stdout
    at = re.search(r"([0-9a-f]{16}) +8 OBJECT .* Py_Version$", symbols, re.MULTILINE)
    if not at or sys.version_info < (3, 11):
        pytest.skip("its version lies in a library")
    image = bytearray(open(python, "rb").read())
    version = sys.hexversion.to_bytes(8, "little")
    sections = subprocess.run(["readelf", "-SW", python], text=True, capture_output=True).stdout
    address, offset = (int(part, 16) for part in re.search(r"\.rodata +PROGBITS +(\w+) (\w+)", sections).groups())
    place = int(at[1], 16) - address + offset
    assert image[place:place + 8] == version
    image[place:place + 8] = (0x03630000).to_bytes(8, "little")
    (tmp_path / "python3").write_bytes(image)
    (tmp_path / "python3").chmod(0o755)
    program = "import warp\n" + SIMULATED_GPU + "import time\nfor _ in range(40):\n    time.sleep(0.1)\n"
    (hec.folder / "warp.py").write_text("")
    found = run(hec, program, python=tmp_path / "python3", env={"PYTHONHOME": sys.base_prefix})
    assert fact(hec, "stacks.outside") is None
    # 50 a second at most, and fewer where one takes long (docs/hooks.md)
    assert sum(found.values(), collections.Counter())["program.py:21"] >= 5, found
    note = [line for line in hec.ok("report", "-v", "run.hec").stdout.splitlines() if "not known how to read" in line]
    assert note
