"""hec attach: a report of a program that runs already, which does not notice."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import BINARY, HANGS_S, rows, SIMULATED_GPU, until

# 40 ms of waiting on one line, then 8 ms of a device.
PROGRAM = SIMULATED_GPU + '''
import time
def prepare():
    time.sleep(0.0411)
for _ in range(ROUNDS):
    prepare()
    for _ in range(16):
        ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))
    ok(cuda.cuStreamSynchronize(stream))
'''


def on_the_machine(hec, rounds, *options, trace="off"):
    """Both on one simulated machine, by its clock: the program, and hec that attaches to it half a second later."""
    (hec.folder / "program.py").write_text(PROGRAM.replace("ROUNDS", str(rounds)))
    script = f'{sys.executable} program.py & program=$!; sleep 0.5; {BINARY} attach {" ".join(options)} $program; code=$?; wait $program || exit 99; exit $code'
    return hec("run", "-q", "--sim", "h200", f"--trace={trace}", "--hooks=off", "-o", "outer.hec", "--", "sh", "-c", script)


def test_a_program_that_runs(hec):
    done = on_the_machine(hec, 120, "-s", "3", "-o", "run.hec", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    run = json.loads(done.stdout)
    assert run["run"]["stopped"] == "attached" and run["run"]["seconds"] == pytest.approx(3, abs=0.2)
    first = run["lines"][0]
    assert (os.path.basename(first["file"]), first["function"], first["line"]) == ("program.py", "prepare", 21)
    assert first["share"] == pytest.approx(0.84, abs=0.05)
    device, = run["devices"]
    assert device["used"] and device["energy"]["valid"] and device["energy"]["joules"] > 100
    assert any("hec run" in caveat for caveat in run["caveats"])
    text = hec.ok("report", "run.hec").stdout
    assert "attached to it while it ran" in text and "program.py:21 prepare" in text and "exit code" not in text
    assert "no process of the command used CUDA" not in text


def test_a_program_that_ends(hec):
    done = on_the_machine(hec, 30, "-s", "60", "-o", "run.hec", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    run = json.loads(done.stdout)
    assert run["run"]["stopped"] == "ended" and 0.5 < run["run"]["seconds"] < 3
    assert run["lines"][0]["line"] == 21


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import time\nprint(1, flush=True)\ntime.sleep(300)"], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process
    assert process.poll() is None  # nobody ended it
    process.kill()
    process.wait()


def catches(pid, number):
    """hec does, and not what it was started from."""
    if not os.path.samefile(f"/proc/{pid}/exe", BINARY):
        return False
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(re.search(r"SigCgt:\s+(\w+)", status.read())[1], 16) >> (number - 1) & 1


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_it_reports(hec, sleeper, with_signal):
    """But for what it is started to ignore, as under nohup."""
    attached = hec.popen("attach", "-s", "600", "-o", "run.hec", sleeper.pid, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # fmt: skip
    until(lambda: catches(attached.pid, with_signal))
    attached.send_signal(signal.SIGHUP)
    assert not catches(attached.pid, signal.SIGHUP)
    attached.send_signal(with_signal)
    out, err = attached.communicate(timeout=HANGS_S)
    assert (attached.returncode, err) == (0, "")
    assert "attached" in out and (hec.folder / "run.hec").exists()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs namespaces")
def test_a_program_in_a_container(hec):
    (hec.folder / "program.py").write_text("import time\nwhile True:\n    time.sleep(0.01)\n")
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "program.py"], cwd=hec.folder)
    try:
        children = f"/proc/{outer.pid}/task/{outer.pid}/children"
        until(lambda: open(children).read().split())
        pid, = open(children).read().split()
        until(lambda: b"program.py" in open(f"/proc/{pid}/cmdline", "rb").read() and "unshare" not in os.readlink(f"/proc/{pid}/exe"))
        done = subprocess.run([hec.path, "attach", "-s", "2", "-o", "run.hec", "--json", pid], cwd=hec.folder, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")
        run = json.loads(done.stdout)
        assert run["lines"] and run["lines"][0]["line"] in (2, 3)
        assert {tid for (tid,) in rows(hec.folder / "run.hec", "select stream from track where kind = 'thread'")} == {int(pid)}
    finally:
        outer.kill()
        outer.wait()


def refused(hec, *arguments, **options):
    done = subprocess.run([hec.path, "attach", *map(str, arguments)], text=True, capture_output=True, cwd=hec.folder, **options)
    message, = done.stderr.splitlines()
    assert done.stdout == "" and message.startswith("hec: ")
    return done.returncode, message


def test_what_is_refused(hec, sleeper):
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert refused(hec, gone.pid) == (66, f"hec: attach: there is no process {gone.pid}")
    assert refused(hec, "x")[0] == refused(hec, "-5")[0] == refused(hec)[0] == refused(hec, 1, 2)[0] == 2
    (hec.folder / "there").write_text("mine")
    assert refused(hec, "-o", "there", sleeper.pid)[0] == 2
    assert (hec.folder / "there").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_another_users_program_is_refused(hec, sleeper, tmp_path):
    shutil.copytree(os.path.dirname(os.path.dirname(BINARY)) + "/bin", tmp_path / "bin")
    for folder in [tmp_path, *tmp_path.parents][:4]:
        if os.stat(folder).st_uid == os.getuid() and folder != "/":
            os.chmod(folder, os.stat(folder).st_mode | 0o755)
    done = subprocess.run([tmp_path / "bin/hec", "attach", str(sleeper.pid)], text=True, capture_output=True, cwd="/", user=65534, group=65534,
                          extra_groups=[])
    assert (done.returncode, done.stdout) == (77, "")
    assert done.stderr == f"hec: attach: process {sleeper.pid} is of another user (root): run hec as that user, or as root\n"
