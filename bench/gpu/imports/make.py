"""Traces of real profilers on a real GPU, each of a loop whose waits are known, and the loop without them measured beside it.

usage: make.py OUT [NAME...]     the functions at the end; JAX in a process of its own, since CUPTI has one user in each

Writes OUT/*.json.gz, and OUT/truth.json: for each the seconds of a step with the inefficiency and without, measured without a
profiler, and what is right to find first. `judge` imports them.
"""
import gzip
import json
import os
import shutil
import subprocess
import sys
import time

OUT = sys.argv[1]
TRUTH = {}


class Imported:
    """PyTorch when it is first used: JAX's process has none."""
    def __getattr__(self, name):
        global torch
        import torch
        return getattr(torch, name)


torch = Imported()


def seconds_of(step, steps, sync=None):
    sync = sync or torch.cuda.synchronize
    for i in range(3):
        step(i)
    sync()
    begin = time.perf_counter()
    for i in range(steps):
        step(i)
    sync()
    return (time.perf_counter() - begin) / steps


def keep(name, cause, slow, fast, path):
    """A trace as OUT/NAME.json.gz; seconds a step with what it has, and without."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as given, gzip.open(f"{OUT}/{name}.json.gz", "wb") as kept:
        shutil.copyfileobj(given, kept)
    TRUTH[name] = {"cause": cause, "slow_s": slow, "fast_s": fast, "saves": 1 - fast / slow}


def profiled(step, steps, path, skip=5):
    from torch.profiler import ProfilerActivity, profile, schedule
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=skip - 2, warmup=2, active=steps, repeat=1),
                 on_trace_ready=lambda p: p.export_chrome_trace(path)) as profiler:
        for i in range(skip + steps):
            step(i)
            profiler.step()


def network():
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda().bfloat16()
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def training(wait_s):
    model, optimizer = network()
    batch = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)

    class Slow(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                if wait_s:
                    time.sleep(wait_s)
                yield torch.zeros(1)

    loader = iter(torch.utils.data.DataLoader(Slow(), batch_size=None))

    def step(_):
        next(loader)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
    return step


def windows():
    slow, fast = seconds_of(training(0.02), 60), seconds_of(training(0), 60)
    for steps in (5, 6, 60):
        profiled(training(0.02), steps, "window.json")
        keep(f"window-of-{steps}", "data", slow, fast, "window.json")


def recompiling():
    """A new length each step: torch.compile with dynamic=False compiles anew each time."""
    torch._dynamo.config.cache_size_limit = torch._dynamo.config.accumulated_cache_size_limit = 1000
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512)).cuda()
    compiled = torch.compile(model, dynamic=False)

    def run(length):
        with torch.no_grad():
            compiled(torch.randn(length, 512, device="cuda"))
        torch.cuda.synchronize()
    begin = time.perf_counter()
    profiled(lambda i: run(64 + i), 8, "recompile.json", skip=2)
    slow = (time.perf_counter() - begin) / 10
    keep("recompile", "compile", slow, seconds_of(lambda i: run(70), 20), "recompile.json")


def graph():
    """A large graph, and the program's own 20 ms between its launches."""
    x = torch.randn(64, 64, device="cuda")

    def work():
        y = x
        for _ in range(2000):
            y = y + 1
        return y
    work()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        work()

    def step(wait):
        captured.replay()
        torch.cuda.synchronize()
        until = time.perf_counter() + (0.02 if wait else 0)
        while time.perf_counter() < until:
            pass
    slow, fast = seconds_of(lambda i: step(True), 30), seconds_of(lambda i: step(False), 30)
    profiled(lambda i: step(True), 10, "graph.json")
    keep("graph-launch", "host", slow, fast, "graph.json")


def lightning():
    import lightning as L
    from lightning.pytorch.profilers import PyTorchProfiler

    ends = []

    class Slow(torch.utils.data.Dataset):
        def __init__(self, wait):
            self.wait = wait

        def __len__(self):
            return 40

        def __getitem__(self, i):
            time.sleep(self.wait)
            return torch.randn(1024, 2048)

    class Model(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)])

        def training_step(self, batch, i):
            if i == 0:
                ends.clear()
            ends.append(time.perf_counter())
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    def fit(wait, profiler=None):
        trainer = L.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, profiler=profiler)
        trainer.fit(Model(), torch.utils.data.DataLoader(Slow(wait), batch_size=1))
        torch.cuda.synchronize()
        return (ends[-1] - ends[4]) / (len(ends) - 5)
    fit(0)
    slow, fast = fit(0.03), fit(0)
    fit(0.03, PyTorchProfiler(dirpath=".", filename="lightning", export_to_chrome=True,
                              schedule=torch.profiler.schedule(wait=2, warmup=2, active=20, repeat=1)))
    found = [f for f in os.listdir(".") if f.startswith("fit-lightning") and f.endswith(".json")]
    keep("lightning", "data", slow, fast, found[0])


def jax_trace():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import glob

    import jax
    import jax.numpy as jnp
    weights = [jax.random.normal(jax.random.key(i), (2048, 2048), jnp.bfloat16) for i in range(8)]
    batch = jnp.ones((4096, 2048), jnp.bfloat16)

    @jax.jit
    def train_step(weights, x):
        def loss(ws):
            y = x
            for w in ws:
                y = jnp.tanh(y @ w)
            return (y.astype(jnp.float32) ** 2).mean()
        return [w - 1e-3 * g for w, g in zip(weights, jax.grad(loss)(weights))]

    def step(wait):
        nonlocal weights
        time.sleep(0.02 if wait else 0)
        weights = train_step(weights, batch)
        jax.block_until_ready(weights)
    slow = seconds_of(lambda i: step(True), 40, lambda: None)
    fast = seconds_of(lambda i: step(False), 40, lambda: None)
    with jax.profiler.trace("jax"):
        for i in range(20):
            with jax.profiler.StepTraceAnnotation("train", step_num=i):
                step(True)
    keep("jax", "host", slow, fast, glob.glob("jax/**/*.trace.json.gz", recursive=True)[0])


MAKERS = {make.__name__: make for make in (windows, recompiling, graph, lightning, jax_trace)}
names = sys.argv[2:]
if not names:
    for name in MAKERS:
        subprocess.run([sys.executable, __file__, OUT, name], check=False)
for name in names:
    MAKERS[name]()
    path = f"{OUT}/truth.json"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            TRUTH = {**json.load(file), **TRUTH}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(TRUTH, file, indent=1)
    print(name, "made", flush=True)
