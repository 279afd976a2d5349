"""hec try of a program in which levers are switched while it runs, from its first trial to the receipt. By the common clock (tests/clock):
the program's steps take what it sleeps, which hangs on the levers."""

import json
import os
import pathlib
import subprocess

import pytest

from warm_python import HANGS_S

PROGRAM = """
import os, sys, time, torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)

    def forward(self, x):
        half = torch.is_autocast_cpu_enabled()
        if half and "fails" in sys.argv and "HEC_LIVE" not in os.environ:
            raise RuntimeError("not in half precision")
        time.sleep((0.02 if half else 0.04) + 0.02 * max(0, rows - 8) + (0.01 if self.layer.weight.grad is None else 0.03))
        return self.layer(x)

if "slowly" in sys.argv:
    time.sleep(12)
rows = 4
if "knob" in sys.argv:
    import hec
    rows = hec.knob("rows", 4, 2, 16)
torch.manual_seed(0)
module = Net()
optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
while True:
    optimizer.zero_grad(set_to_none=False)
    module(torch.ones(rows, 16)).mean().backward()
    optimizer.step()
"""


@pytest.fixture
def tried(torch_python, tmp_path):
    if torch_python[1] < (2, 2):
        pytest.skip("PyTorch before 2.2 has no place for it")
    hec = os.environ["HEC"]
    clock = pathlib.Path(hec).resolve().parents[1] / "tests/lib/libtest_clock.so"
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*arguments, budget_s=300, levers="bf16_autocast,set_to_none"):
        """What it printed meanwhile, and its receipt."""
        env = {**os.environ, "LD_PRELOAD": str(clock), "HEC_STATE_DIR": str(tmp_path / "state"), "OMP_NUM_THREADS": "1"}
        env["PYTHONPATH"] = str(pathlib.Path(os.environ["HEC_SOURCE_DIR"]) / "python")
        done = subprocess.run([hec, "try", "--sim", "h200", "-f", "-o", "receipt.json", "--budget-seconds", str(budget_s), "--levers",
                               levers, "--", torch_python[0], "program.py", *arguments],
                              env=env, cwd=tmp_path, text=True, capture_output=True, timeout=HANGS_S)  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stderr, json.loads((tmp_path / "receipt.json").read_text())

    return run


def speed_of(receipt):
    return next(row for row in receipt["verdict"]["quantities"] if row["name"] == "units_per_second")["ratio"][1]


def test_what_is_found_in_the_running_program_is_proven_at_once(tried):
    said, receipt = tried()
    assert "blocks of one program" in said and "as it is:" not in said, said
    assert receipt["commands"]["levers"] == ["bf16_autocast", "set_to_none"]
    assert speed_of(receipt) == pytest.approx(0.07 / 0.03, rel=0.01)


def test_what_does_not_act_from_the_start_on_goes(tried):
    said, receipt = tried("fails")
    assert "hec: try: from the start on: bf16_autocast failed: RuntimeError: not in half precision\n" in said, said
    assert receipt["commands"]["levers"] == ["set_to_none"]
    assert speed_of(receipt) == pytest.approx(0.07 / 0.05, rel=0.01)


def test_it_ends_in_its_time(tried):
    """Of a start of 12 s a trial takes most. The search would go on with levers that save nothing; much is expected: two pairs prove it."""
    others = ",tf32,fused_optimizer,cudnn_benchmark,keep_memory,channels_last,pad_products"
    said, receipt = tried("slowly", budget_s=120, levers="bf16_autocast,set_to_none" + others)
    assert min(trial["run"]["seconds"] for trial in receipt["trials"]) > 12
    assert receipt["verdict"]["cost"]["seconds"] < 120 and len(receipt["tried"]) < 9, said
    assert receipt["verdict"]["verdict"] == "faster" and receipt["verdict"]["pairs"] == 2, said
    assert receipt["plan"]["expected_speed"] == pytest.approx(0.07 / 0.03, rel=0.02)


def test_a_knob_is_tried_beside_what_was_found_in_the_running_program(tried):
    """In processes of their own. Up to eight rows of a batch take no more time than four, then each takes its own."""
    said, receipt = tried("knob", levers="bf16_autocast,set_to_none,knob.rows")
    assert "blocks of one program" in said and "hec: bf16_autocast,set_to_none, knob rows=8 (was 4): 4.67 of the speed" in said, said
    assert receipt["commands"]["levers"] == ["bf16_autocast", "set_to_none", "knob.rows=8"]
    assert {row["levers"]: row["outcome"] for row in receipt["tried"]}["bf16_autocast,set_to_none,knob.rows=16"] != "kept"
    assert speed_of(receipt) == pytest.approx(2 * 0.07 / 0.03, rel=0.01)
