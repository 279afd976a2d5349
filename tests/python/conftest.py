"""libhec.so for the tests: the build's, or one compiled here when there is none."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest

from listener import Listener
from warm_python import HANGS_S, WarmPython

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def source():
    return SOURCE


@pytest.fixture(scope="session")
def libhec(tmp_path_factory):
    """Path of a libhec.so.0 that an ordinary python3 can load (one built with sanitizers cannot be)."""
    compiler = os.environ.get("CC", "cc")
    if not shutil.which(compiler.split()[0]):
        pytest.fail(f"no C compiler ({compiler})")
    path = tmp_path_factory.mktemp("lib") / "libhec.so.0"
    marks = sorted(str(p) for p in (SOURCE / "src/mark").glob("*.c"))
    subprocess.run(
        [*compiler.split(), "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-fvisibility=hidden", "-shared", f"-I{SOURCE}/src", f"-I{SOURCE}/include", *marks,
         str(SOURCE / "src/base/ring.c"), f"-Wl,--version-script={SOURCE}/src/mark/hec.map",
         "-Wl,-soname,libhec.so.0", "-o", str(path), "-lpthread"],
        check=True,
    )  # fmt: skip
    return str(path)


class TorchPython(str):
    """The path of a Python with PyTorch. Programs begin with it imported, unless they are to be cold (warm_python.py)."""


@pytest.fixture(scope="session")
def torch_python():
    """An interpreter that has PyTorch, and PyTorch's version: this one, or the one named by HEC_TORCH_PYTHON."""
    python = os.environ.get("HEC_TORCH_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no PyTorch in {python} (Debian and Ubuntu: python3-torch)")
    version = tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", done.stdout).groups())
    if version < (1, 13):
        pytest.skip(f"PyTorch {done.stdout.strip()}: the hooks are for 1.13 and newer")
    return TorchPython(python), version


@pytest.fixture
def observe(libhec, tmp_path):
    """Runs programs with and without the hooks."""
    with tempfile.TemporaryDirectory(prefix="hec-") as folder:  # a short path: a Unix socket has 107 bytes
        yield Observer(libhec, tmp_path, folder)


class Observer:
    plain_runs = {}  # by all that they were given: tests that differ in what becomes of the hooks share them

    def __init__(self, libhec, folder, socket_folder):
        self.libhec, self.folder = libhec, folder
        self.listener = Listener(socket_folder)

    def environment(self, hooked, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HEC_") and k != "PYTHONPATH"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        environment.setdefault("OMP_NUM_THREADS", "1")
        path = []
        if hooked:
            path.append(str(SOURCE / "python/hooks"))
            environment.update(HEC_SOCKET=self.listener.path, HEC_LIB=self.libhec, HEC_HOOKS="1")
        if "PYTHONPATH" in more:
            path.append(more.pop("PYTHONPATH"))
        if path:
            environment["PYTHONPATH"] = os.pathsep.join(path)
        environment.update(more)
        return environment

    def start(self, python, program, hooked=True, options=("-W", "error"), arguments=(), cold=False, **environment):
        """The finished process; program: text, kept as program.py, or a list of words."""
        environment, words = self.environment(hooked, **environment), program
        if isinstance(program, str):
            (self.folder / "program.py").write_text(textwrap.dedent(program))
            words = ["program.py"]
            if isinstance(python, TorchPython) and not cold and not arguments:
                return WarmPython.of(python, options, self.environment(False)).run(self.folder, environment)
        return subprocess.run(
            [python, *options, *words, *arguments], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=HANGS_S,
        )  # fmt: skip

    def plain(self, python, program, **more):
        """The finished process without the hooks, for which nothing of HEC's is read."""
        more = {key: value for key, value in more.items() if not key.startswith("HEC_")}
        files = sorted((str(path.relative_to(self.folder)), hash(path.read_bytes())) for path in self.folder.rglob("*")
                       if path.is_file() and path.name != "program.py")  # fmt: skip
        key = repr((type(python), python, program, sorted(more.items()), files))
        if key not in self.plain_runs:
            self.plain_runs[key] = self.start(python, program, hooked=False, **more)
        return self.plain_runs[key]

    def both(self, python, program, cold=False, **more):
        """What the hooks found; the program must do and print the same with and without them."""
        plain = self.plain(python, program, **more)
        hooked = self.start(python, program, cold=cold, **more)
        assert self.shown(hooked) == self.shown(plain)
        self.last = hooked
        return self.listener.found()

    @staticmethod
    def shown(done):
        # PyTorch 2.5 warns of a temporary folder of its own; Python's resource tracker now and then of what a worker left
        stderr = re.sub(r"\S*resource_tracker\.py:.*\n  warnings\.warn.*\n", "", done.stderr)
        return done.returncode, done.stdout, re.sub(r"/tmp/tmp\w+", "/tmp/tmp", stderr)

    def one(self, python, program, code=0, **more):
        found = self.both(python, program, **more)
        assert self.last.returncode == code, self.last.stderr
        assert len(found) == 1
        assert "hooks_off" not in found[0].facts, found[0].facts
        return found[0]
