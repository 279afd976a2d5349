"""Programs that keep HEC's Python hooks out at their start: the hooks come when CUDA starts, or the report says what is missing."""
import os
import subprocess
import sys

import pytest

from conftest import SIMULATED_GPU, rows

# A loop of training on the CPU, with the work of a simulated GPU beside it; the loader takes most of a step.
PROGRAM = """
import ctypes, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 8 * 40
    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.ones(4), i % 2

""" + SIMULATED_GPU + """names, meta = set(globals()), len(sys.meta_path)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in DataLoader(Slow(), batch_size=8):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    for _ in range(20):
        ok(cuda.cuLaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, parameters, None))
    ok(cuda.cuStreamSynchronize(stream))
    optimizer.step()
left = set(globals()) - names - {"names", "meta", "model", "optimizer", "x", "y", "_"}
print("done", sorted(left), len(sys.meta_path) - meta, [entry for entry in sys.path if "hec/python" in entry])
"""
CALLS_CUDA = '''
import ctypes
try:
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    for _ in range(100000):
        pass
    print("went on")
except BaseException as error:
    print("got", type(error).__name__)
'''
LATE = "HEC's hooks came when CUDA started"
MISSING = "without HEC's hooks loaders, steps and lines are unknown"


@pytest.fixture(scope="module")
def python():
    path = os.environ.get("HEC_TORCH_PYTHON", sys.executable)
    if subprocess.run([path, "-c", "import torch"], capture_output=True).returncode != 0:
        pytest.skip(f"no PyTorch in {path}")
    return path


@pytest.fixture
def train(hec, python):
    (hec.folder / "train.py").write_text(PROGRAM)

    def run(script, *arguments, trace="auto"):
        """As a launching script starts it."""
        done = hec("run", "-q", "-f", "-o", "t.hec", "--sim", "h200", f"--trace={trace}", *arguments, "--", "sh", "-c",
                   f"{script.format(python=python)} train.py", env={"OMP_NUM_THREADS": "1"})
        assert done.returncode == 0 and done.stderr == "", done.stderr
        run.output = done.stdout
        return hec.report("t.hec")
    return run


@pytest.mark.parametrize("error, printed", [("ValueError", "went on"), ("ImportError", "went on"), ("MemoryError", "went on"),
                                            ("KeyboardInterrupt", "got KeyboardInterrupt"), ("SystemExit", "got SystemExit")])
def test_what_comes_while_hooks_are_loaded(hec, error, printed):
    """An error of the hooks ends there, in silence; Ctrl-C and what a handler of the program raises are the program's."""
    (hec.folder / "_hec_hooks_start.py").write_text(f"def late():\n    raise {error}\n")
    (hec.folder / "program.py").write_text(CALLS_CUDA)
    done = hec("run", "-q", "-f", "-o", "t.hec", "--sim", "h200", "--", "sh", "-c",
               f"HEC_HOOKS_FOLDER={hec.folder} {sys.executable} -I program.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, printed + "\n", "")


def caveats(report, words):
    return [text for text in report["caveats"] if words in text]


def kinds(hec):
    return [kind for kind, in rows(hec.folder / "t.hec", "select kind from event where kind like 'hooks_%' order by kind")]


@pytest.mark.parametrize("script", ["PYTHONPATH=/nowhere {python}", "unset PYTHONPATH; exec {python}", "exec {python} -E", "exec {python} -I"])
def test_hooks_come_when_cuda_starts(hec, train, script):
    report = train(script)
    assert train.output == "done [] 0 []\n", "nothing is left in what the program sees"
    assert kinds(hec) == ["hooks_late", "hooks_out"]
    assert report["steps"]["source"] == "optimizer" and report["steps"]["count"] >= 39
    assert report["steps"]["data_share"] > 0.2
    assert report["caveats"][0] == caveats(report, LATE)[0] and not caveats(report, MISSING)


def test_hooks_that_came_by_themselves_come_once(hec, train):
    report = train("{python}")
    assert train.output.startswith("done [] 0 ")
    assert kinds(hec) == [] and report["steps"]["count"] >= 39 and not caveats(report, "PYTHONPATH")


def test_what_is_missing_is_said(hec, train):
    report = train("PYTHONPATH=/nowhere HEC_HOOKS_FOLDER=/nowhere {python}")
    assert train.output == "done [] 0 []\n"
    assert kinds(hec) == ["hooks_out"] and report["steps"]["source"] != "optimizer"
    assert report["caveats"][0] == caveats(report, MISSING)[0]
    text = hec("report", "t.hec").stdout
    assert "note       a Python reads another PYTHONPATH" in text
    for finding in report["findings"]:
        assert finding["cause"] != "host" or finding["confidence"] <= 0.6


@pytest.mark.parametrize("script", ["PYTHONPATH=/nowhere HEC_HOOKS=0 {python}"])
def test_a_program_that_wants_no_hooks_gets_none(hec, train, script):
    report = train(script)
    assert kinds(hec) == [] and not caveats(report, "PYTHONPATH") and report["steps"]["source"] != "optimizer"


def test_without_the_option_nothing_comes(hec, train):
    train("PYTHONPATH=/nowhere {python}", "--hooks", "off")
    assert kinds(hec) == []
