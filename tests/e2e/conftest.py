"""Helpers of the end-to-end tests: the real binary, on the simulated GPU and on a machine with none."""
import contextlib
import functools
import itertools
import json
import os
import pathlib
import pty
import sqlite3
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HEC", str(ROOT / "build" / "bin" / "hec"))
BUILD = pathlib.Path(os.environ.get("HEC_BINARY_DIR", ROOT / "build"))
PROGRAMS = pathlib.Path(BINARY).resolve().parents[1] / "tests" / "bin"
GOLDEN = ROOT / "tests" / "golden"
HANGS_S = 600  # what takes longer hangs: at no load does a test wait so long for what comes

# Whatever a call of hec simulates goes by a virtual clock that is common to hec and to what runs on the machine (tests/clock):
# no figure depends on how busy this one is, and played seconds cost none.
CLOCK = str(pathlib.Path(BINARY).resolve().parents[1] / "tests" / "lib" / "libtest_clock.so")


# The head of a Python program that makes the driver's calls itself: a context, a stream and a kernel of arguments[0] ns.
SIMULATED_GPU = '''
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")

def ok(result):
    assert result == 0, result

ok(cuda.cuInit(0))
device, context, module, function, stream = ctypes.c_int(), *(ctypes.c_void_p() for _ in range(4))
ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
ok(cuda.cuCtxSetCurrent(context))
ok(cuda.cuModuleLoadData(ctypes.byref(module), b"_Z6squarePfl - train_tf32 40 2048\\n"))
ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"_Z6squarePfl"))
ok(cuda.cuStreamCreate(ctypes.byref(stream), 1))
arguments = [ctypes.c_int64(500000), ctypes.c_int64(0)]
parameters = (ctypes.c_void_p * 2)(*map(ctypes.addressof, arguments))
'''


class Hec:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *arguments, timeout=HANGS_S, env=None, **options):
        return subprocess.run([self.path, *map(str, arguments)], text=True, capture_output=True, timeout=timeout,
                              cwd=self.folder, env={**os.environ, "LD_PRELOAD": CLOCK, **(env or {})}, **options)

    def popen(self, *arguments, **options):
        """In real time: for who talks to hec while it runs."""
        return subprocess.Popen([self.path, *map(str, arguments)], text=True, cwd=self.folder, **options)

    def ok(self, *arguments, **options):
        """A call that has to succeed."""
        done = self(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done

    def report(self, path, *arguments):
        return json.loads(self.ok("report", "--json", *arguments, path).stdout)

    def imported(self, name, trace):
        """The run file NAME.hec of a trace, given as its text or its object, which is kept as NAME.json."""
        (self.folder / f"{name}.json").write_text(trace if isinstance(trace, str) else json.dumps(trace))
        self.ok("import", "-q", "-o", f"{name}.hec", f"{name}.json")
        return f"{name}.hec"


class Play:
    """One `hec run --sim SPEC -- hec sim CASE`, its truth and its report."""
    numbers = itertools.count()

    def __init__(self, hec, case, *options, seconds, spec="h200", trace="auto", env=None):
        self.hec, self.path = hec, hec.folder / f"{case}-{next(self.numbers)}.hec"
        done = hec.ok("run", "--sim", spec, f"--trace={trace}", "-q", "-f", "-o", self.path, "--", hec.path, "sim", case, "--seconds", seconds,
                      "--json", *options, env=env)
        assert done.stderr == ""
        self.truth, self.report = json.loads(done.stdout), hec.report(self.path)
        self.devices = self.report["devices"]

    @functools.cached_property
    def text(self):
        return self.hec.ok("report", self.path).stdout


def cases():
    """The simulated programs, by name."""
    listed = subprocess.run([BINARY, "sim", "--list", "--json"], capture_output=True, check=True).stdout
    return {case["name"]: case for case in json.loads(listed)["cases"]}


def schema(name):
    found = json.loads((ROOT / "docs" / f"{name}.schema.json").read_text(encoding="utf-8"))
    found.pop("$id")  # jsonschema 3.2, Ubuntu 22.04's, would look there for what "#/$defs/..." means
    return found


def until(condition, why=lambda: None):
    end = time.monotonic() + HANGS_S
    while not condition():
        assert time.monotonic() < end, why()
        time.sleep(0.01)


def rows(path, query):
    with sqlite3.connect(path) as file:
        return file.execute(query).fetchall()


def counts(path):
    return dict(rows(path, "select kind, sum(n) from activity_block group by kind"))


def assert_sound(path):
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def messages_of(text):
    """hec's own, each of which is one line; no crash and no sanitizer report among them."""
    for word in ("Sanitizer", "runtime error", "Segmentation", "assert", "core dumped", "(null)", "nan"):
        assert word not in text, text
    return [line for line in text.splitlines() if line.startswith("hec: ")]


class Screen:
    """A pseudo terminal, and all that was written to it."""

    def __init__(self):
        self.leader, self.fd = pty.openpty()
        self.name, self.got = os.ttyname(self.fd), b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError):
            while chunk := os.read(self.leader, 65536):
                self.got += chunk

    def end(self):
        os.close(self.fd)
        self.reader.join(20)
        os.close(self.leader)
        return self.got


@pytest.fixture
def hec(tmp_path):
    return Hec(BINARY, tmp_path)


@pytest.fixture(autouse=True, scope="module")
def own_state_of_modules(tmp_path_factory):
    """The same for fixtures that a whole module shares: they are made before any test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEC_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """What one test's programs die of is no matter of another's, nor of the user's own runs."""
    monkeypatch.setenv("HEC_STATE_DIR", str(tmp_path / "state"))
