"""Helpers of the end-to-end tests: the real binary, on the simulated GPU and on a machine with none."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("HEC", str(ROOT / "build" / "bin" / "hec"))

# Whatever a call of hec simulates goes by a virtual clock that is common to hec and to what runs on the machine (tests/clock):
# no figure depends on how busy this one is, and played seconds cost none.
CLOCK = str(pathlib.Path(BINARY).resolve().parents[1] / "tests" / "lib" / "libtest_clock.so")


class Hec:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *arguments, timeout=60, env=None, **options):
        return subprocess.run([self.path, *map(str, arguments)], text=True, capture_output=True, timeout=timeout,
                              cwd=self.folder, env={**os.environ, "LD_PRELOAD": CLOCK, **(env or {})}, **options)

    def popen(self, *arguments, **options):
        """In real time: for who talks to hec while it runs."""
        return subprocess.Popen([self.path, *map(str, arguments)], text=True, cwd=self.folder, **options)

    def report(self, path, *arguments):
        done = self("report", "--json", *arguments, path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


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
