"""Jobs that report to the agent of their node: windows of them on the simulated GPU against the truth of what is played there, and what
becomes of both where one is killed or hostile. The agent is its registry of jobs alone (jobs_registry.c)."""
import array
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from attacks import ABI, MAGIC, MARKS, REQUEST, REQUEST_MAGIC, TRACE
from conftest import BINARY, CLOCK, HANGS_S, Hec

KEEPER = pathlib.Path(BINARY).parent.parent / "tests" / "bin" / "jobs_registry"
PLANTED = {"data-starved": ("data", "data"), "host-bound": ("host", "host"), "healthy-train": ("none", "compute")}  # cause, state
SHARE_WITHIN = 0.1  # kernels are not seen in a window of two seconds
ALSO = {"host": ("launch",)}  # in one window of five, 0.16 of the host's time before a launch counts as that of the launch


class Keeper:
    """A registry, and what it said so far."""

    def __init__(self, folder, window=0.0, period=60.0, env=os.environ, spec="h200x2"):
        self.socket = str(folder / "agent.sock")
        self.lines, self.env = [], dict(env)
        self.process = subprocess.Popen([KEEPER, BINARY, self.socket, spec, str(window), str(period)], text=True, env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for line in iter(lambda: self.process.stdout.readline().strip(), ""):
            name, value = line.split("=", 1)
            self.env[name] = value
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):  # cut off where it was killed
                self.lines.append(json.loads(line))

    def until(self, seen):
        """The first line of which it holds, from now on or before."""
        deadline, at = time.monotonic() + HANGS_S, 0
        while time.monotonic() < deadline:
            for line in self.lines[at:]:
                at += 1
                if seen(line):
                    return line
            assert self.process.poll() is None, "the registry has ended"
            time.sleep(0.02)
        raise AssertionError(self.lines[-2:])

    def state(self, holds):
        """The state, once it is so."""
        begun = len(self.lines)
        return self.until(lambda line: "jobs" in line and line in self.lines[begun:] and holds(line))

    def job(self, *command, **options):
        return subprocess.Popen([BINARY, "run", f"--agent={self.socket}", "--", *map(str, command)], text=True,
                                env=self.env, stdout=subprocess.PIPE, **options)

    def close(self):
        self.process.stdin.close()
        self.process.wait(HANGS_S)
        self.reader.join()
        return self.process.returncode


@contextlib.contextmanager
def registry(folder, **options):
    kept = Keeper(folder, **options)
    try:
        yield kept
        assert kept.close() == 0
    finally:
        kept.process.kill()
        kept.reader.join()


def windows_of(case, folder):
    """Every window of a case that plays to its end, and its truth."""
    (folder / case).mkdir()
    with registry(folder / case, window=2.2, period=2.6, env={**os.environ, "LD_PRELOAD": CLOCK}) as kept:
        job = kept.job(BINARY, "sim", case, "--device", 1, "--seconds", 6.8, "--marks", "--json")
        truth = json.loads(job.communicate(timeout=HANGS_S)[0])
        assert job.returncode == 0
        kept.state(lambda line: not line["jobs"])
    return truth, [line for line in kept.lines if "window" in line and line["seconds"] > 2.1]


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    with concurrent.futures.ThreadPoolExecutor(len(PLANTED)) as pool:
        return dict(zip(PLANTED, pool.map(windows_of, PLANTED, [folder] * len(PLANTED))))


@pytest.mark.parametrize("case", PLANTED)
def test_windows_say_what_was_planted(observed, case):
    (truth, windows), (cause, state) = observed[case], PLANTED[case]
    assert len(windows) == 2  # what was defined in the first one is known in the second
    played = sum(state["seconds"] for state in truth["states"].values())
    watts = sum(state["joules"] for state in truth["states"].values()) / played
    for window in windows:
        assert window["cause"] == cause, window
        assert window["recoverable"] == 0 if cause == "none" else 0.05 < window["recoverable"] < 0.9, window
        (device,) = window["devices"]
        assert device["uuid"].startswith("GPU-51a1ed01-")
        # the window's length is read at its ends, the ledger's is the recording's: on a busy machine they are not at one moment
        assert sum(device["seconds"].values()) == pytest.approx(window["seconds"], abs=0.06)
        assert sum(device["joules"].values()) == pytest.approx(watts * window["seconds"], rel=0.08)
        share = truth["states"][state]["seconds"] / played
        known = device["seconds"][state] / window["seconds"]
        unknown = sum(device["seconds"][other] for other in ("unknown", *ALSO.get(state, ()))) / window["seconds"]
        # a step that the window cuts at its ends is unknown
        assert known - SHARE_WITHIN <= share <= known + unknown + SHARE_WITHIN and unknown < 0.3, device
        assert device["seconds"]["startup"] == device["seconds"]["tail"] == 0
        assert window["units"]["unit"] > 0 and window["lost"] == 0


def test_a_job_is_killed_in_its_window(tmp_path):
    with registry(tmp_path, window=20, period=1) as kept:
        job = kept.job(BINARY, "sim", "data-starved", "--seconds", 60)
        kept.state(lambda line: line["jobs"] and line["jobs"][0]["rings"])
        time.sleep(1)
        job.send_signal(signal.SIGKILL)
        window = kept.until(lambda line: "window" in line)
        assert 0 < window["seconds"] < 20
        kept.state(lambda line: not line["jobs"])
        assert job.wait() == -signal.SIGKILL


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_the_agent_is_restarted(tmp_path, killed):
    """The job goes on, finds the new agent, and tells it the same; killed: in a window."""
    hec = Hec(BINARY, tmp_path)
    first = Keeper(tmp_path, window=1, period=1)
    job = first.job(BINARY, "sim", "healthy-train", "--seconds", HANGS_S, "--marks")
    first.until(lambda line: "window" in line and line["units"])
    (before,) = first.state(lambda line: line["jobs"])["jobs"]
    first.process.kill() if killed else first.close()
    first.reader.join()
    with registry(tmp_path) as second:
        (after,) = second.state(lambda line: line["jobs"] and line["jobs"][0]["rings"] == 2)["jobs"]
        assert (after["id"], after["pid"], after["processes"]) == (before["id"], job.pid, 1)
        records, seconds = 0, 1.5
        while records <= 100 and seconds < HANGS_S:  # on a busy machine the job may have done little in a short window
            hec.ok("record", f"--agent={second.socket}", "--job", job.pid, "-s", seconds, "-f", "-o", "after.hec")
            report = hec.report("after.hec")  # of calls and marks: the simulated driver of the first agent has gone with it
            records, seconds = report["trace"]["records"], 2 * seconds
        assert report["trace"]["lost"] == 0 and report["steps"]["count"] > 10
        memory = [line for line in pathlib.Path(f"/proc/{job.pid}/maps").read_text().splitlines() if "hec-ring" in line]
        assert len(memory) == before["rings"] == 2, memory
        assert not [fd for fd in pathlib.Path(f"/proc/{job.pid}/fd").iterdir() if "hec-ring" in os.readlink(fd)]
        job.kill()
        job.wait()


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def comm(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def test_who_lets_them_in_is_killed(tmp_path):
    """Another one takes its place: jobs stay, and others come in."""
    with registry(tmp_path) as kept:
        job = kept.job(BINARY, "sim", "idle-allocated", "--seconds", 60, stderr=subprocess.DEVNULL)
        kept.state(lambda line: line["jobs"])
        (door,) = [pid for pid in children(kept.process.pid) if comm(pid) == "hec-door"]
        os.kill(door, signal.SIGKILL)
        fd = ring()
        while True:  # a connection of the moment is lost
            hand_over(kept.socket, TRACE, fd)
            if len(kept.state(lambda line: True)["jobs"]) == 2:
                break
        assert door not in children(kept.process.pid)
        os.close(fd)
        job.kill()
        job.wait()


def test_what_records_a_window_is_killed(tmp_path):
    """It counts as failed, and the next one is recorded."""
    with registry(tmp_path, window=1.5, period=2) as kept:
        job = kept.job(BINARY, "sim", "healthy-train", "--seconds", 60)
        deadline = time.monotonic() + HANGS_S
        helper = None
        while not helper and time.monotonic() < deadline:
            helper = next((pid for pid in children(kept.process.pid) if comm(pid) == "hec"), None)
        os.kill(int(helper), signal.SIGKILL)
        kept.state(lambda line: line["jobs"] and line["jobs"][0]["failed"] == 1)
        assert kept.until(lambda line: "window" in line)["seconds"] > 1
        job.kill()
        job.wait()


def test_a_long_window_makes_way(tmp_path):
    """Four users record for minutes; the fifth waits for a turn."""
    if os.geteuid() != 0:
        pytest.skip("only root can be five users")
    with tempfile.TemporaryDirectory(dir="/tmp") as place, registry(pathlib.Path(place)) as kept:
        os.chmod(place, 0o1777)
        rings, long = [], []

        def as_user(number, seconds):
            def become():
                os.setresuid(*[7000 + number] * 3)
                rings.append(hand_over(kept.socket, TRACE, ring()))
            return subprocess.Popen([BINARY, "record", f"--agent={kept.socket}", "--job", f"run-{7000 + number}-7", "-s",
                                     str(seconds), "-o", f"{place}/{number}.hec"], stderr=subprocess.PIPE, text=True,
                                    cwd=place, preexec_fn=become)
        for number in range(4):
            long.append(as_user(number, 300))
        kept.state(lambda line: len(line["jobs"]) == 4)
        until, ended = time.monotonic() + HANGS_S, []
        while not ended and time.monotonic() < until:  # the four may not all have begun when the fifth asks first
            pathlib.Path(place, "4.hec").unlink(missing_ok=True)
            last = as_user(4, 0.2)
            assert last.communicate(timeout=HANGS_S) == (None, "") and last.returncode == 0
            ended = [number for number in range(4) if long[number].poll() is not None]
        for process in long:
            process.kill()
        said = [process.communicate()[1] for process in long]
        assert ended, said  # whose window began first; which one that is, their starts decide
        number = ended[0]
        assert long[number].returncode == 0 and "of the 300 s asked for: others wait for theirs" in said[number], said
        assert 0 < Hec(BINARY, pathlib.Path(place)).report(f"{number}.hec")["run"]["seconds"] < 300


def connect(path):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect(path)
    return peer


def hello(role, magic=MAGIC):
    return struct.pack("<QIIII", magic, ABI, role, os.getpid(), 7)


def hand_over(path, role, fd, magic=MAGIC):
    with connect(path) as peer:
        peer.sendmsg([hello(role, magic)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])


def ring(role=TRACE, records=64, seal=True):
    """As base/ring.h has it; its reader trusts nothing in it."""
    import fcntl

    fd = os.memfd_create("ring", os.MFD_ALLOW_SEALING)
    os.truncate(fd, 4096 + 64 * records)
    os.pwrite(fd, struct.pack("<QIIIIII", MAGIC, ABI, 4096, 64, records, role, 1), 0)
    if seal:
        fcntl.fcntl(fd, 1033, 0x7)  # F_ADD_SEALS: seal, shrink, grow
    return fd


def test_hostile_peers(tmp_path):
    with registry(tmp_path) as kept:
        job = kept.job(BINARY, "sim", "idle-allocated", "--seconds", 60, stderr=subprocess.DEVNULL)
        before = kept.state(lambda line: line["jobs"])
        silent = [connect(kept.socket) for _ in range(100)]
        read, write = os.pipe()
        for fd in (ring(seal=False), read, os.open("/dev/null", os.O_RDONLY)):
            hand_over(kept.socket, TRACE, fd)
        hand_over(kept.socket, MARKS, ring(TRACE))  # it is not what the hello says
        hand_over(kept.socket, 99, ring(99))
        hand_over(kept.socket, TRACE, ring(), magic=1)
        with connect(kept.socket) as peer:
            peer.send(b"x" * 60000)
        for request in (b"", b"x", struct.pack("<Q352sd", REQUEST_MAGIC, b"j" * 352, 5.0),
                        struct.pack("<Q352sd", REQUEST_MAGIC, b"nobody", float("nan"))):
            mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            mine.send(request)
            hand_over(kept.socket, REQUEST, theirs.fileno())
        hand_over(kept.socket, REQUEST, write)
        for _ in range(300):  # of one process: four of a role are kept
            fd = ring()
            hand_over(kept.socket, TRACE, fd)
            os.close(fd)
        # on a busy machine some come faster than one user's may, and are refused
        after = kept.state(lambda line: line["silent"] >= 100 and line["refused"] >= 6 and
                           line["rings"] + line["refused"] >= before["rings"] + 306)
        assert sorted(entry["rings"] for entry in after["jobs"]) in ([1, 4], [2, 4])
        flood = next(entry for entry in after["jobs"] if entry["rings"] == 4)
        assert flood["processes"] == 1
        assert len(os.listdir(f"/proc/{kept.process.pid}/fd")) < 60
        for peer in silent:
            peer.close()
        job.kill()
        job.wait()


def headers(kept):
    """(role, head, dropped, window) of the rings that it keeps (base/ring.h)."""
    found = []
    for entry in pathlib.Path(f"/proc/{kept.process.pid}/fd").iterdir():
        if os.readlink(entry).startswith("/memfd:hec-ring"):
            with open(entry, "rb") as file:
                header = file.read(4096)
            found.append((*struct.unpack_from("<I", header, 24), *struct.unpack_from("<Q", header, 64),
                          *struct.unpack_from("<Q", header, 192), *struct.unpack_from("<I", header, 260)))
    return sorted(found)


def settled(kept):
    """Headers that stay for 0.3 s: the tracer's thread looks every 0.1 s, on a busy machine more rarely."""
    found = headers(kept)
    while True:
        time.sleep(0.3)
        before, found = found, headers(kept)
        if before == found and all(window % 2 for *_, window in found):
            return found


def test_nothing_is_written_while_nobody_reads(tmp_path):
    hec = Hec(BINARY, tmp_path)
    with registry(tmp_path) as kept:
        job = kept.job(BINARY, "sim", "small-kernels", "--seconds", 60, "--marks")
        kept.state(lambda line: line["jobs"] and line["jobs"][0]["rings"] == 2)
        before = settled(kept)
        assert [role for role, *_ in before] == [MARKS, TRACE], before
        time.sleep(0.5)
        assert headers(kept) == before
        after, windows = before, 0
        while windows == 0 or (windows < 20 and not all(now[1] > then[1] for now, then in zip(after, before))):
            # on a busy machine the job may have no turn in half a second
            assert hec("record", f"--agent={kept.socket}", "--job", job.pid, "-s", 0.5, "-f", "-o", "x.hec").returncode == 0
            after, windows = settled(kept), windows + 1
        assert all(now[1] > then[1] and now[3] == then[3] + 2 * windows for now, then in zip(after, before)), (before, after)
        time.sleep(0.5)
        assert headers(kept) == after
        job.kill()
        job.wait()


def test_a_run_file_of_a_window(tmp_path):
    hec = Hec(BINARY, tmp_path)
    with registry(tmp_path) as kept:
        agent = f"--agent={kept.socket}"
        job = kept.job(BINARY, "sim", "data-starved", "--seconds", 60, "--marks")
        (entry,) = kept.state(lambda line: line["jobs"] and line["jobs"][0]["rings"] == 2)["jobs"]
        listed = hec("record", agent)
        assert listed.returncode == 0 and listed.stdout.startswith(f"{entry['id']}: process {job.pid},")
        done = hec("record", agent, "--job", entry["id"], "-s", 2, "-o", "window.hec")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        report = hec.report("window.hec")
        assert report["run"]["seconds"] == pytest.approx(2, abs=0.5) and report["findings"][0]["cause"] == "data"
        assert report["devices"][0]["energy"]["valid"]
        assert "a window of it" in hec("report", "window.hec").stdout
        assert hec("record", agent, "--job", job.pid, "-o", "window.hec").returncode == 2  # it is there
        none = hec("record", agent, "--job", "slurm-1", "-o", "none.hec")
        assert none.returncode != 0 and "no such job" in none.stderr and not (tmp_path / "none.hec").exists()
        job.kill()
        job.wait()
    gone = hec("record", agent, "--job", "1", "-o", "none.hec")
    assert gone.returncode != 0 and "no agent listens" in gone.stderr


def test_without_an_agent_the_command_runs_as_without_hec(hec):
    agent = f"--agent={hec.folder}/nobody"
    script = "env | grep -c -e ^HEC_SOCKET= -e ^CUDA_INJECTION64_PATH= ; exit 7"
    done = hec("run", agent, "--", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (7, "0\n", "")
    assert hec("run", agent, "--", "hec-no-such-command").returncode == 127
    wrong = hec("run", agent, "-o", "x.hec", "--", "true")
    assert wrong.returncode == 2 and "--output" in wrong.stderr


def test_stacks_of_every_window(tmp_path):
    """The hooks define the tree of stacks anew for each reader, and the facts of the program too."""
    hec = Hec(BINARY, tmp_path)
    (tmp_path / "jax.py").write_text("import ctypes\n\ndef device_put():\n    ctypes.CDLL('libcuda.so.1')\n")
    (tmp_path / "program.py").write_text("import jax, time\n\ndef busy():\n    time.sleep(0.05)\n\njax.device_put()\n"
                                         "while True:\n    busy()\n")
    with registry(tmp_path) as kept:
        job = kept.job(sys.executable, tmp_path / "program.py")
        kept.state(lambda line: line["jobs"] and line["jobs"][0]["rings"] == 1)
        for window in ("first.hec", "second.hec"):
            names, seconds = set(), 0.7
            while not names and seconds < HANGS_S:  # on a busy machine the sampler may not come to it in a short one
                hec.ok("record", f"--agent={kept.socket}", "--job", job.pid, "-s", seconds, "-f", "-o", window)
                with contextlib.closing(sqlite3.connect(tmp_path / window)) as run:
                    names, seconds = {name for name, in run.execute("select text from trace_name")}, 2 * seconds
            with contextlib.closing(sqlite3.connect(tmp_path / window)) as run:
                assert {"busy", str(tmp_path / "program.py")} <= names, names
                assert run.execute("select value from meta where key = 'python.framework'").fetchall() == [("jax",)]
                assert not run.execute("select text from event where kind = 'note'").fetchall()
        job.kill()
        job.wait()
