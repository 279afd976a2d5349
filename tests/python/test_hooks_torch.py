"""The hooks in real PyTorch programs on the CPU: what they find is right, and the program does not notice."""

import json
import math
import os
import subprocess
import textwrap

import pytest

from conftest import SOURCE
from warm_python import HANGS_S
from listener import MODULE, OPTIMIZER

TRAIN = """
    import hashlib, torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(44, 8), torch.randn(44, 1))
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.2), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.OPTIMIZER(model.parameters(), lr=0.01)

    def digest():
        parts = [p.detach().numpy().tobytes() for p in model.parameters()] + [torch.get_rng_state().numpy().tobytes()]
        return hashlib.sha256(b"".join(parts)).hexdigest()
"""

LOOP = """
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=16, shuffle=True, num_workers=WORKERS):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.item())
    torch.save(model.state_dict(), "model.pt")
    print(digest())
"""


@pytest.mark.parametrize("optimizer,workers", [("SGD", 0), ("Adam", 2)])
def test_a_training_loop(observe, torch_python, optimizer, workers):
    python, _ = torch_python
    program = (TRAIN + LOOP).replace("OPTIMIZER", optimizer).replace("WORKERS", str(workers))
    found = observe.one(python, program, options=(), cold=optimizer == "SGD")
    assert found.steps == [(n, OPTIMIZER) for n in (16.0, 16.0, 12.0)] * 2
    assert found.step_ns == sorted(found.step_ns)
    # each next, the one that ends the pass, and the making of the iterator
    assert len(found.named("data")) == 2 * (3 + 1 + 1)
    assert len(found.named("checkpoint")) == 1
    for _, start_ns, end_ns in found.intervals:
        assert start_ns <= end_ns
    printed = [float(line) for line in observe.last.stdout.split("\n")[:6]]
    told = [value for name, value in found.values if name == "loss"]
    assert told and [value for value in printed if value in told] == told  # a fast loop tells some of them, in order
    assert found.facts["torch"] and found.facts["version"] and "%" in found.facts["hook_cost"]
    assert found.facts["loader_workers"] == str(workers)
    assert found.marks == 0


def test_every_loss_of_a_slow_loop_is_told(observe, torch_python):
    program = """
        import time, torch
        x = torch.ones(1, requires_grad=True)
        for i in range(8):
            time.sleep(0.12)
            (x * float("nan") if i == 5 else x * i).sum().backward()
    """
    found = observe.one(torch_python[0], program)
    values = [value for _, value in found.values]
    assert values[:5] == [0, 1, 2, 3, 4] and math.isnan(values[5]) and values[6:] == [6, 7]
    assert found.steps == []


def test_norms_of_gradients_in_experiments(observe, torch_python):
    """Of the first eight steps and of every eighth, after it, and only in experiments; in the first ones also of each sixteenth of the parameters. A
    lever may change the gradients within a step."""
    program = """
        import torch
        step = torch.optim.SGD.step
        def smaller(self):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(0.5)
            return step(self)
        torch.optim.SGD.step = smaller
        weights = [torch.zeros(n, requires_grad=True) for n in (3, 4, 5) + (1,) * MORE]
        optimizer = torch.optim.SGD(weights, lr=0.1)
        for i in range(17):
            weights[0].grad, weights[2].grad = torch.full((3,), 3.0 * i), torch.full((5,), 2.0 * i)
            weights[-1].grad = torch.ones(weights[-1].shape)
            optimizer.step()
        print([w.sum().item() for w in weights])
    """
    for more in (1, 20):  # 4 parameters, of which the second has no gradient; 23, two a part
        said = []
        for experiment in (False, True):
            found = observe.one(torch_python[0], program.replace("MORE", str(more)), **({"HEC_HOOKS_LOSSES": "all"} if experiment else {}))
            said.append(observe.last.stdout)
            squares = [(27 * i * i / 4, 20 * i * i / 4, 1 / 4) for i in (*range(8), 15)] if experiment else []
            norms = [value for name, value in found.values if name == "gradient_norm"]
            assert norms == pytest.approx([sum(three) ** 0.5 for three in squares], rel=1e-5)
            parts = [(name, value) for name, value in found.values if name.startswith("gradient_norm/")]
            places = (0, 2, 3) if more == 1 else (0, 1, 11)
            wanted = [[0.0] * 16 for _ in squares[:8]]
            for row, three in zip(wanted, squares):
                for place, square in zip(places, three):
                    row[place] = square**0.5
            assert [name for name, _ in parts] == ["gradient_norm/%d" % part for part in range(16)] * len(wanted)
            assert [value for _, value in parts] == pytest.approx([value for row in wanted for value in row], rel=1e-5)
        assert said[0] == said[1]


SGD = TRAIN.replace("OPTIMIZER", "SGD")

SYNTHETIC = """
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    x = torch.randn(24, 4)
"""

SEQUENCE = """
    import torch
    layer = torch.nn.LAYER.eval()
    with torch.no_grad():
        for i in range(20):
            layer(torch.zeros(35, 20, 8))
"""

INFERENCE = SYNTHETIC + """
    model.eval()
    with CONTEXT:
        for i in range(50):
            torch.nn.functional.softmax(model(x[:7]), dim=1)
            model(input=x)
"""


def of_optimizer(*samples):
    return [(count, OPTIMIZER) for count in samples]


# a program, the first PyTorch in which it is understood, the steps that are found and their samples
ANY, WITH_MODULES = (0,), (2, 2)  # the outermost module is found in PyTorch 2.2 and newer
PROGRAMS = {
    "accumulated gradients are one step": (SGD + """
    for index, (x, y) in enumerate(DataLoader(data, batch_size=4)):
        (torch.nn.functional.mse_loss(model(x), y) / 4).backward()
        if index % 4 == 3 or index == 10:
            optimizer.step()
            optimizer.zero_grad()
    """, ANY, of_optimizer(16, 16, 12)),
    "a batch that is taken ahead is of the next step": (SGD + """
    def ahead(loader):
        batches = iter(loader)
        now = next(batches)
        for coming in batches:
            yield now
            now = coming
        yield now
    for epoch in range(2):
        for x, y in ahead(DataLoader(data, batch_size=16)):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
    """, ANY, of_optimizer(16, 16, 12, 16, 16, 12)),
    "a validation in between counts nothing": (SGD + """
    for epoch in range(3):
        model.train()
        for x, y in DataLoader(data, batch_size=22):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, y in DataLoader(data, batch_size=4):
                model(x)
    """, ANY, of_optimizer(*[22] * 6)),
    "two optimizers that step together are one step": ("""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.Adam(two.parameters())]
    for (x,) in DataLoader(TensorDataset(torch.randn(30, 4)), batch_size=6):
        two(one(x)).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    """, ANY, of_optimizer(*[6] * 5)),
    "two networks that take turns are one step": ("""
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    maker, judge = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
    make, judging = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
    for (x,) in DataLoader(TensorDataset(torch.randn(40, 4)), batch_size=8):
        judging.zero_grad()
        (judge(x).mean() - judge(maker(torch.randn(8, 2)).detach()).mean()).backward()
        judging.step()
        make.zero_grad()
        judge(maker(torch.randn(8, 2))).mean().backward()
        make.step()
    """, ANY, of_optimizer(*[8] * 5)),
    "a list of samples is a batch": ("""
    import torch
    from torch.utils.data import DataLoader
    model = torch.nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = [(torch.randn(3, 4 + i % 2, 5), {"boxes": torch.zeros(2, 4)}) for i in range(10)]
    for batch, targets in DataLoader(images, batch_size=4, collate_fn=lambda items: tuple(zip(*items))):
        sum(model(image).mean() for image in batch).backward()
        optimizer.step()
    """, ANY, of_optimizer(4, 4, 2)),
    "a pipeline of models ends with the last": ("""
    import torch
    one, two, three = (torch.nn.Linear(4, 4) for _ in range(3))
    with torch.no_grad():
        for i in range(20):
            three(two(one(torch.zeros(5, 4))))
    """, WITH_MODULES, [(5, MODULE)] * 20),
    **{f"the first dimension of a sequence may be its length: {layer}": (SEQUENCE.replace("LAYER", layer), WITH_MODULES, [(samples, MODULE)] * 20)
       for layer, samples in (("LSTM(8, 8)", None), ("LSTM(8, 8, batch_first=True)", 35))},
    **{f"inference with {context}": (INFERENCE.replace("CONTEXT", context), WITH_MODULES, [(7, MODULE), (24, MODULE)] * 50)
       for context in ("torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()")},
}  # fmt: skip


# What hooks see is noted from the second event on, and worked off 100 ms later, as otherwise after some hundred.
NOTED = """
    import sys, torch
    if "_hec_hooks" in sys.modules:
        sys.modules["_hec_hooks"].core.NOTED_FROM = 1
"""


@pytest.mark.parametrize("noted", (False, True))
@pytest.mark.parametrize("what", PROGRAMS)
def test_steps_and_their_samples(observe, torch_python, what, noted):
    python, version = torch_python
    program, since, steps = PROGRAMS[what]
    if version < since:
        pytest.skip("this PyTorch has no place for the hook of modules")
    assert observe.one(python, NOTED * noted + program).steps == steps


def test_what_is_noted_is_all_reported(observe, torch_python):
    """In order: also where calls raise, go to a replica (as DataParallel makes them), or the hooks are taken out."""
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("the outermost module is found in PyTorch 2.2 and newer")
    program = SYNTHETIC + """
    import sys
    hooks = sys.modules.get("_hec_hooks")
    def replica():
        other = model.__new__(type(model))
        other.__dict__ = model.__dict__.copy()
        return other
    with torch.no_grad():
        for i in range(900):
            called = replica() if i % 100 == 50 else model
            try:
                called(x[: 1 + i % 7] if i % 90 else x[:, :3])
            except RuntimeError:
                pass
            if i == 700 and hooks:
                hooks.pause(), hooks.resume()
    """
    found = observe.one(python, program)
    assert found.samples() == [1 + i % 7 for i in range(900) if i % 90]
    assert found.step_ns == sorted(set(found.step_ns))


def test_what_is_noted_is_reported_soon(observe, torch_python):
    """Where no step follows, within about a second, though the process ends without a word."""
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("the outermost module is found in PyTorch 2.2 and newer")
    program = SYNTHETIC + """
    import os, sys, time
    with torch.no_grad():
        for i in range(400):
            model(x)
    until, later = time.monotonic() + 60, sys.modules.get("_hec_hooks.later")
    while later and later.noted and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(0)
    """
    assert observe.one(python, program).samples() == [24] * 400


def test_batches_that_are_fetched_ahead_are_counted_once(observe, torch_python):
    program = SGD + """
    loader = iter(DataLoader(data, batch_size=4))
    for step in range(3):
        window = [batch for batch, _ in zip(loader, range(3))]
        for x, y in window:
            model(x).mean().backward()
        optimizer.step()
    """
    found = observe.one(torch_python[0], program)
    assert sum(found.samples()) == 44 and len(found.steps) == 3


def test_an_optimizer_after_another_one(observe, torch_python):
    """First one is used, later only the other: all steps count."""
    program = """
        import torch
        model = torch.nn.Linear(4, 4)
        for kind in (torch.optim.SGD, torch.optim.Adam):
            optimizer = kind(model.parameters(), lr=0.1)
            for i in range(5):
                model(torch.randn(3, 4)).mean().backward()
                optimizer.step()
    """
    found = observe.one(torch_python[0], program)
    assert len(found.steps) == 10


def test_samples_without_a_loader_are_what_the_outermost_module_is_given(observe, torch_python):
    python, version = torch_python
    program = SYNTHETIC + """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(40):
        optimizer.zero_grad()
        loss = torch.nn.MSELoss()(model(x[: 8 + i % 3]), torch.zeros(8 + i % 3, 1))
        loss.backward()
        optimizer.step()
    """
    found = observe.one(python, program)
    expected = [8.0 + i % 3 if version >= (2, 2) else None for i in range(40)]
    assert found.steps == [(samples, OPTIMIZER) for samples in expected]


def test_without_an_optimizer_backward_passes_are_the_steps(observe, torch_python):
    """As in pytorch/examples, word_language_model: weights are updated by hand, and validation comes between."""
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("the outermost module is found in PyTorch 2.2 and newer")
    program = SYNTHETIC + """
    for epoch in range(2):
        model.train()
        for i in range(120):
            model.zero_grad()
            model(x[:6]).square().mean().backward()
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-0.1)
        model.eval()
        with torch.no_grad():
            for i in range(50):
                model(x)
    """
    found = observe.one(python, program)
    # the first 100 may be accumulated gradients
    assert found.steps[-130:] == [(6, OPTIMIZER)] * 130 and len(found.steps) < 142


def test_training_after_inference(observe, torch_python):
    program = SYNTHETIC + """
    with torch.no_grad():
        for i in range(3):
            model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        model(x).mean().backward()
        optimizer.step()
        with torch.no_grad():
            model(x[:2])
    """
    found = observe.one(torch_python[0], program)
    assert [source for _, source in found.steps].count(OPTIMIZER) == 4
    assert [source for _, source in found.steps][-4:] == [OPTIMIZER] * 4


def test_the_unscaled_loss_is_told(observe, torch_python):
    program = """
        import sys, torch
        loss = (torch.ones(1, requires_grad=True) * 3).sum()
        scale = lambda self, outputs: outputs * 65536
        hooks = sys.modules.get("_hec_hooks")
        if hooks:  # on the CPU GradScaler does nothing: its wrapper around one that does
            scale = hooks.losses._make_scale(scale)
        scale(None, loss).backward()
    """
    found = observe.one(torch_python[0], program, options=())
    assert found.values == [("loss", 3.0)]


def test_stacks_name_the_line(observe, torch_python):
    program = """
        import time, torch
        def wait():
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                time.sleep(0.01)  # line 6
        wait()
    """
    found = observe.one(torch_python[0], program)
    inner = [found.stack(frame)[-1] for _, frame, _ in found.stacks]
    assert ("wait", 6) in [(function, line) for _, function, line in inner]
    assert {tid for tid, _, _ in found.stacks} == {found.pid}
    outer = {found.stack(frame)[0][0].rsplit("/", 1)[-1] for _, frame, _ in found.stacks}
    assert "program.py" in outer


def test_no_stacks_when_not_wanted(observe, torch_python):
    program = "import time, torch\ntime.sleep(0.2)\n"
    assert observe.one(torch_python[0], program, HEC_HOOKS_HZ="0").stacks == []


COMPILED = """
    import torch
    from torch._dynamo.testing import CompileCounter
    counter = CompileCounter()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    x = torch.randn(6, 4)
    model(x)  # eager first: the module is known
    BUILD
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(20):
        optimizer.zero_grad()
        run(x).sum().backward()
        optimizer.step()
    print(counter.frame_count, sum(p.sum().item() for p in model.parameters()) > -1e9)
"""


@pytest.mark.parametrize(
    "build",
    [
        "run = torch.compile(model, backend=counter, fullgraph=True)",
        "model.compile(backend=counter, fullgraph=True); run = model",
        "run = torch.compile(lambda x: model(x) * 2, backend=counter, fullgraph=True)",
    ],
)
def test_torch_compile_sees_nothing(observe, torch_python, build):
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("torch.compile with Python 3.11 needs PyTorch 2.1, the hook of modules 2.2")
    found = observe.one(python, COMPILED.replace("BUILD", build), options=())
    assert len(found.steps) == 20
    if "lambda" not in build:
        assert found.samples() == [6] * 20


def test_exports_traces_and_copies_are_the_same(observe, torch_python):
    python, version = torch_python
    program = """
        import copy, hashlib, io, pickle, torch, weakref
        torch.manual_seed(0)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(4, 4)
            def forward(self, x):
                return self.inner(x)
        class Raw(Net):
            def __getstate__(self):
                return self.__dict__.copy()
        x = torch.randn(2, 4)
        for kind in (Net, Raw):
            model = kind()
            for i in range(3):
                model(x)
            pickled = pickle.dumps(model)
            print(b"hec" in pickled, pickle.loads(pickled)(x).sum().item(), copy.deepcopy(model)(x).sum().item())
            assert copy.copy(model)(x).equal(model(x))
        model = Net()
        model(x)
        kept = copy.copy(model)
        gone = weakref.ref(model)
        del model
        print(gone() is None)
        model = kept
        model(x)
        other = model._replicate_for_data_parallel()
        other.inner = torch.nn.Linear(4, 4)
        print(other(x).sum().item(), model(x).sum().item())
        print(torch.jit.script(model).code, torch.jit.trace(model, x).code, torch.fx.symbolic_trace(model).code)
        if hasattr(torch, "export") and EXPORT:
            print(torch.export.export(model, (x,), strict=True).graph_module.code)
    """.replace("EXPORT", str(version >= (2, 2)))
    observe.one(python, program, options=())
    assert observe.last.stdout.startswith("False") and "\nTrue\n" in observe.last.stdout


TRANSFORMS = """
    import copy, torch, warnings
    from torch.overrides import TorchFunctionMode
    warnings.simplefilter("ignore")
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(8, 8)
        def forward(self, x):
            return torch.relu(self.linear(x)) + x
    class Takes(Block):
        def forward(self, other, x):
            return super().forward(x)
    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            log.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            log.append(function.__name__)
            return function(*args, **(kwargs or {}))
    class Proxy(torch.fx.Proxy):  # as that of transformers, whose class has what a tensor has
        shape = property(lambda self: self.size())
        def values(self):
            return [self.detach()]
    class Tracer(torch.fx.Tracer):
        def proxy(self, node):
            return Proxy(node, self)
    class Answers:
        def __getattr__(self, name):
            log.append(name)
            return lambda *args, **kwargs: self
    def quantized():
        from torch.ao.quantization import get_default_qconfig_mapping
        from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
        return convert_fx(prepare_fx(copy.deepcopy(model).eval(), get_default_qconfig_mapping("fbgemm"), (x,))).code
    def in_mode():
        with Mode():
            model(x).sum().backward()
    def attempt(what):
        global log
        log = []
        try:
            print(calls, what(), log)
        except Exception as error:
            print(calls, type(error).__name__, log)
    for calls in range(4):
        torch.manual_seed(calls)
        model, takes, x = torch.nn.Sequential(Block(), Block(), torch.nn.Dropout(0.0)), Takes(), torch.randn(2, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(calls and 4 ** calls):
            model(x).sum().backward()
            if calls == 3:
                optimizer.step()
        attempt(lambda: [node.kind() for node in torch.jit.trace(model.eval(), x).inlined_graph.nodes()])
        attempt(lambda: torch.fx.symbolic_trace(model.train()).code)
        attempt(lambda: torch.fx.symbolic_trace(model[0])(x).sum())
        attempt(lambda: Tracer().trace(model))
        attempt(quantized)
        attempt(in_mode)
        attempt(lambda: model(x.as_subclass(Seen)).shape)
        attempt(lambda: [takes(Answers(), x).shape for _ in range(3)])
        if hasattr(torch, "func"):
            attempt(lambda: torch.func.vmap(model[0])(x[:, None]).sum())
            attempt(lambda: torch.func.jacrev(model)(x).shape)
        if hasattr(torch, "export") and hasattr(torch.export, "export"):
            attempt(lambda: len(list(torch.export.export(model, (x,)).graph.nodes)))
"""


@pytest.mark.parametrize("noted", (False, True))
def test_what_looks_at_a_program_finds_it_as_without_hooks(observe, torch_python, noted):
    """Whatever makes another program of it, or looks at each operation: to look at a tensor, or to ask an object that answers to any name,
    would be a part of the program then."""
    python, _ = torch_python
    program = NOTED * noted + TRANSFORMS
    bare = subprocess.run([python, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    observe.one(python, program)
    assert observe.last.stdout == bare.stdout and "Error" not in bare.stdout


def test_pause_leaves_nothing(observe, torch_python):
    python, version = torch_python
    done = observe.start(
        python,
        """
        import sys, torch
        from torch.utils.data import dataloader
        hooks = sys.modules["_hec_hooks"]
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        def run():
            model(torch.ones(5, 2)).sum().backward()
            optimizer.step()
        run(), run()
        def hooked():
            optimizers = getattr(sys.modules["torch.optim.optimizer"], "_global_optimizer_post_hooks", ())
            return ["/hec/_hooks/" in getattr(getattr(f, "__code__", None), "co_filename", "")
                    for f in (torch.save, torch.serialization.save, torch.autograd.backward,
                              dataloader._BaseDataLoaderIter.__next__, dataloader.DataLoader.__iter__,
                              torch.autograd.profiler._enable_profiler)
                    ] + ["_compiled_call_impl" in model.__dict__, len(optimizers) > 0, len(sys.meta_path)]
        on = hooked()
        hooks.pause(), hooks.pause()
        off = hooked()
        run()
        hooks.resume(), hooks.resume()
        assert hooked() == on, (hooked(), on)
        run()
        print(on[:-3], off, on[-1] - off[-1])
        """,
        options=(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str([True] * 6)) and f"{[False] * 8}"[:-1] in done.stdout
    (found,) = observe.listener.found()
    expected = 5.0 if version >= (2, 2) else None
    # in 1.13 the class of the optimizer stays wrapped, and the wrapper does nothing
    assert found.samples()[:3] == [expected] * 3 and len(found.steps) == 3


def test_hec_reports_what_they_found(observe, torch_python):
    hec = os.environ.get("HEC", str(SOURCE / "build/bin/hec"))
    program = (TRAIN + LOOP).replace("OPTIMIZER", "SGD").replace("WORKERS", "0")
    (observe.folder / "program.py").write_text(textwrap.dedent(program))
    plain = observe.environment(False)
    done = subprocess.run([hec, "run", "-o", "run.hec", "--", torch_python[0], "program.py"], env=plain,
                          cwd=observe.folder, capture_output=True, text=True, timeout=HANGS_S)  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = subprocess.run([hec, "report", "--json", "run.hec"], cwd=observe.folder, capture_output=True, text=True)
    report = json.loads(report.stdout)
    assert (report["steps"]["source"], report["steps"]["unit"], report["steps"]["units"]) == ("optimizer", "sample", 88)
    assert sorted((phase["name"], phase["count"]) for phase in report["phases"]) == [("checkpoint", 1), ("data", 10)]


def test_another_model_later_is_found_too(observe, torch_python):
    python, version = torch_python
    program = SYNTHETIC + """
    for size in 24, 9:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(60):
            model(x[:size]).mean().backward()
            optimizer.step()
    """
    found = observe.one(python, program)
    if version >= (2, 2):
        assert found.samples() == [24] * 60 + [9] * 60


def test_parts_of_a_step_and_what_its_samples_are(observe, torch_python):
    """Host time of forward, backward and optimizer, without the first three; by calls where there is no loader."""
    python, version = torch_python
    program = SYNTHETIC + """
    import time

    class Slow(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner
        def forward(self, x):
            time.sleep(0.02)
            return self.inner(x)

    model = Slow(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(20):
        optimizer.zero_grad()
        model(x[:8]).square().mean().backward()
        optimizer.step()
    """
    facts = observe.one(python, program).facts
    found = {part: [int(word) for word in facts[part].split()] for part in ("forward", "backward", "optimizer") if part in facts}
    assert found["backward"][1] == found["optimizer"][1] == 17 and all(ns > 0 for ns, _ in found.values())
    if version >= (2, 2):
        assert facts["samples_by"] == "calls"
        assert found["forward"][0] >= 0.02e9 * found["forward"][1] > 0
        loop = "for i in range(40): model.eval()(x[:4])"
        assert observe.one(python, SYNTHETIC + f"\n    {loop}\n").facts["step_module"] == "Sequential"
    else:
        assert "forward" not in found
