"""`hec explain parallelism`: what is predicted of ways to share training out to two devices, against what PyTorch holds and sends with two
ranks; and how a report shows it, and what is missing."""
import json
import os
import sqlite3
import subprocess
import sys

import pytest

from conftest import BINARY, HANGS_S, Hec, PROGRAMS

SIZES = {
    "model": "parameters=250000000 trained=250000000 bytes=1000000000 gradient_bytes=1000000000 held_bytes=1000000000 "
             "held_gradient_bytes=1000000000 sharing=none bucket_view=0",
    "optimizer": "kind=AdamW bytes=2000000000 held_bytes=2000000000",
    "layers": "count=8 bytes=100000000 input_bytes=10000000 matrices=4 matrix_bytes=90000000",
    "memory": "allocated=9500000000 reserved=10000000000 activations=5000000000",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """One of two simulated H200 works, in steps, as a program does of which the hooks told nothing."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("parallelism"))
    hec.ok("run", "-q", "-f", "--sim", "h200x2", "--trace=full", "-o", "r.hec", "--", PROGRAMS / "cuda_program", "parts=1", "batch=40", "ns=50000",
           "sleep_us=2000", "seconds=4")
    return hec


@pytest.fixture
def explain(program):
    def run(facts, *options, command=None):
        told = program.folder / "told.hec"
        told.write_bytes((program.folder / "r.hec").read_bytes())
        with sqlite3.connect(told) as file:
            for what, text in facts.items():
                file.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"sizes.42.{what}", text))
            if command:
                file.execute("INSERT OR REPLACE INTO meta VALUES ('command', ?)", (command,))
        done = program("explain", "parallelism", "told.hec", *options)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return json.loads(done.stdout) if "--json" in options else done.stdout
    return run


def rows_of(told):
    return {row["strategy"]: row for row in told["strategies"]}


def test_figures_and_words(program, explain):
    told = explain(SIZES, "--json")
    rows, report = rows_of(told), program.report("told.hec")
    assert told["lacks"] == [] and told["devices"] == 2 and told["as_run"] is None and told["bus"] == "nvlink"
    assert list(rows) == ["ddp", "zero1", "zero2", "fsdp", "tensor", "pipeline"]
    assert told["best"] == min(rows, key=lambda way: rows[way]["seconds"][1])
    assert told["model"]["parameters"] == 250e6 and told["model"]["optimizer"] == "AdamW"
    loop = report["loop"]
    assert told["step_seconds"] == pytest.approx(loop["loop"]["seconds"] / loop["steps"])
    for row in rows.values():
        low, best, high = row["seconds"]
        assert told["step_seconds"] < low <= best <= high and row["lacks"] == [] and row["fits"] == "yes" and row["command"] is None
        assert row["joules"][1] > told["step_joules"]
    assert rows["fsdp"]["state_bytes"] == rows["ddp"]["state_bytes"] / 2 == 1e9
    assert report["parallelism"]["strategies"] == told["strategies"]
    text = " ".join(explain(SIZES).split())
    assert "2 x NVIDIA H200" in text and "predicted, until it is tried" in text and "this run" in text and " best " in text
    assert "250 M parameters" in text and "fully_shard(layer)" in text and "NVLink as the vendor states it" in text
    assert "Parallelism" in program("report", "-v", "told.hec").stdout and "Parallelism" not in program("report", "told.hec").stdout
    assert "| FSDP |" in program("report", "--md", "told.hec").stdout


def test_what_is_missing_is_said(program, explain):
    told = explain({}, "--json")
    assert told["strategies"] == [] and told["lacks"] == ["model"] and told["best"] is None
    assert "the size of the model is not known" in " ".join(explain({}).split())
    assert program.report("told.hec")["parallelism"] is None
    told = explain({**SIZES, "memory": "x"}, "--json")
    assert rows_of(told)["fsdp"]["memory_bytes"] is None and rows_of(told)["fsdp"]["lacks"] == ["peak"] and told["best"] is None
    assert "missing the most that PyTorch's allocator held" in " ".join(explain({**SIZES, "memory": "x"}).split())
    told = explain({**SIZES, "experts": "count=4 bytes=500000000 top=0"}, "--json")
    assert rows_of(told)["expert"]["lacks"] == ["top"] and rows_of(told)["expert"]["seconds"] is None


def test_the_command_that_tries_it(explain):
    command = {row["strategy"]: row["command"] for row in explain(SIZES, "--json", command="accelerate launch train.py --lr 1")["strategies"]}
    assert command["fsdp"] == ("hec ab -- accelerate launch train.py --lr 1 ::: accelerate launch --num_processes 2 --use_fsdp --fsdp_version 2 "
                               "--fsdp_reshard_after_forward true train.py --lr 1")  # fmt: skip
    assert command["zero1"].endswith("accelerate launch --num_processes 2 --use_deepspeed --zero_stage 1 train.py --lr 1")
    assert command["tensor"] is None
    rows = explain(SIZES, "--json", command="accelerate launch --config_file my.yaml train.py")["strategies"]
    assert all(row["command"] is None for row in rows)
    assert "hec ab -- accelerate launch a.py :::" in explain(SIZES, command="accelerate launch a.py")


def test_without_a_run(hec):
    done = hec("explain", "parallelism")
    assert done.returncode == 0 and "FSDP" in done.stdout and "hec explain parallelism RUN" in " ".join(done.stdout.split())
    assert hec("explain", "parallelism", "--json").returncode == 2
    missing = hec("explain", "parallelism", "none.hec")
    assert missing.returncode != 0 and "none.hec" in missing.stderr


# ---- against PyTorch ----

MODEL = """
import json, sys, torch
from torch import nn

class Block(nn.Module):
    def __init__(self, wide=16):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(wide), nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)
    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())

def held(tensors):
    return sum(t.numel() * t.element_size() for t in (getattr(t, "_local_tensor", t) for t in tensors))

def train(model, optimizer, before_last=lambda: None):
    for i in range(6):
        optimizer.zero_grad()
        if i == 5:
            before_last()
        model(torch.ones(4, 8, 16)).square().mean().backward()
        optimizer.step()

model = nn.Sequential(*[Block() for _ in range(4)])
"""
RANKS = MODEL + """
import torch.distributed as dist
dist.init_process_group("gloo")
sent = 0
if sys.argv[1] == "ddp":
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    model = nn.parallel.DistributedDataParallel(model)
    def hook(group, bucket):  # an all-reduce sends 2 (N - 1)/N of it
        global sent
        sent += bucket.buffer().numel() * bucket.buffer().element_size()
        return default_hooks.allreduce_hook(group, bucket)
    model.register_comm_hook(None, hook)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    def counted(name, which):  # (N - 1)/N of the whole
        real = getattr(dist, name)
        def call(*args, **kwargs):
            global sent
            tensors = dict(zip(("output", "input"), args), **kwargs)
            whole = tensors[which] if which in tensors else tensors["output_tensor" if which == "output" else "input_tensor"]
            sent += whole.numel() * whole.element_size() // 2
            return real(*args, **kwargs)
        setattr(dist, name, call)
    counted("all_gather_into_tensor", "output")
    counted("reduce_scatter_tensor", "input")
    mesh = init_device_mesh("cpu", (2,))
    for part in (*model, model):
        fully_shard(part, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
def forget():
    global sent
    sent = 0
train(model, optimizer, forget)
states = [s for state in optimizer.state.values() for s in state.values() if isinstance(s, torch.Tensor) and s.numel() > 1]
truth = dict(parameter_bytes=held(model.parameters()), gradient_bytes=held(p.grad for p in model.parameters()), state_bytes=held(states), sent_bytes=sent)
dist.barrier()
if dist.get_rank() == 0:
    print(json.dumps(truth))
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def python():
    path = os.environ.get("HEC_TORCH_PYTHON", sys.executable)
    done = subprocess.run([path, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no PyTorch in {path}")
    return path, tuple(int(part) for part in done.stdout.split(".")[:2])


@pytest.fixture(scope="module")
def told(tmp_path_factory, python):
    """What the hooks report of one process."""
    hec = Hec(BINARY, tmp_path_factory.mktemp("alone"))
    (hec.folder / "alone.py").write_text(MODEL + "train(model, torch.optim.AdamW(model.parameters()))\n")
    hec.ok("run", "-q", "-f", "--sim", "h200x2", "-o", "alone.hec", "--", python[0], "alone.py", env={"OMP_NUM_THREADS": "1"})
    with sqlite3.connect(hec.folder / "alone.hec") as file:
        return {key.rpartition(".")[2]: text for key, text in file.execute("SELECT key, value FROM meta WHERE key LIKE 'sizes.%'")}


@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_bytes_against_two_ranks(hec, python, told, explain, how):
    """What one process told is predicted for two: what each of them holds, and sends in a step."""
    path, version = python
    if how == "fsdp" and version < (2, 6):
        pytest.skip("this PyTorch has no fully_shard")
    predicted = rows_of(explain(told, "--json"))[how]
    (hec.folder / "ranks.py").write_text(RANKS)
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH")}
    done = subprocess.run([path, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "ranks.py", how],
                          cwd=hec.folder, env={**environment, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=HANGS_S)  # fmt: skip
    if done.returncode and version < (2, 2):
        pytest.skip("this PyTorch's launcher does not run with this Python")
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout)
    for what in ("parameter_bytes", "gradient_bytes", "sent_bytes"):
        assert predicted[what] == truth[what] > 0, what
    assert predicted["state_bytes"] == pytest.approx(truth["state_bytes"], abs=4 * 24)  # AdamW has a number of steps for each parameter
