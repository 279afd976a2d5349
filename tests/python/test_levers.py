"""Levers in PyTorch: what they change, what they say of it, and that they can be taken out again. Each program runs many cases: most
of its time is the import of PyTorch."""

import pytest


@pytest.fixture
def run(observe, torch_python, source):
    """Runs a program under levers: its only process as the listener found it, and what it printed. Its levers come from
    HEC_LEVERS, or from `with levers(...)` in it."""

    def run(code, names="none", **environment):
        done = observe.start(torch_python[0], "from levers_common import *\n" + code,
                             HEC_LEVERS=names, PYTHONPATH=str(source / "tests/python"), **environment)  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = observe.listener.found()
        assert len(found) == 1
        assert "hooks_off" not in found[0].facts, found[0].facts
        return found[0], done.stdout

    return run


@pytest.fixture
def placed(torch_python):
    """For levers around the calls of modules: whether this PyTorch has a place for them."""
    return torch_python[1] >= (2, 2)


TF32 = """
import torch
flags = lambda: (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)
assert flags() == (True, True)
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
assert flags() == (True, True), "the program's own setting holds"
torch.set_float32_matmul_precision("highest")
with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
    assert flags() == (True, True)
if hasattr(torch.backends, "fp32_precision"):  # a second interface, which must not contradict the first
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    assert flags() == (True, True) and torch.get_float32_matmul_precision() == "high"
import _hec_levers
_hec_levers.revert()
assert flags() == (False, True)
assert torch.get_float32_matmul_precision() == "highest"
torch.backends.cudnn.allow_tf32 = False
assert flags() == (False, False)
torch.ones(3, requires_grad=True).sum().backward()
"""


def test_tf32_is_put_in_held_and_taken_out(run):
    found, _ = run(TF32, "numa,tf32,no_such,threads=2")  # the others are of any program, or none
    said = {key: text for key, text in found.facts.items() if key.startswith("lever.")}
    assert said == {"lever.tf32.nothing": "no weights in fp32 on a GPU"}  # on a CPU there is nothing of it


EXACT = """
import copy
plain = trained("none")
again = trained("none")
assert same(plain, again) and plain[0][0] != plain[0][1]

# gradients are dropped: since PyTorch 2.0 without the lever
zeros = trained("none", set_to_none=False)
dropped = trained("set_to_none", set_to_none=False)
assert same(zeros, dropped) and dropped[2]["set_to_none"] == ("on", "2 calls of zero_grad()"), dropped[2]
default = trained("set_to_none")
assert same(plain, default) and default[2]["set_to_none"][0] == ("already" if VERSION >= (2, 0) else "on")

# a weight that gets no gradient in a step goes on with its momentum, where the program asked for zeros
class Turns(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other, self.calls = nn.Linear(768, 5), nn.Linear(768, 5), 0
    def forward(self, images):
        self.calls += 1
        return (self.one if self.calls < 3 else self.other)(images.flatten(1))
def turns():
    torch.manual_seed(0)
    return Turns()
zeros, nothing = (trained("none", model=turns, set_to_none=none) for none in (False, True))
assert not same(zeros, nothing)
dropped = trained("set_to_none", model=turns, set_to_none=False)
assert same(zeros, dropped)

# gradients that are part of a larger buffer stay where they are
def flat(model):
    buffer = torch.zeros(sum(weight.numel() for weight in model.parameters()))
    at = 0
    for weight in model.parameters():
        weight.grad = buffer[at : at + weight.numel()].view_as(weight)
        at += weight.numel()
    return sgd(model)
kept = trained("set_to_none", make=flat, set_to_none=False)
assert kept[2]["set_to_none"][0] == "nothing" and kept[0] == trained("none", set_to_none=False)[0]

# optimizers
for make in (sgd, adamw):
    plain = trained("none", make=make)
    fused = trained("fused_optimizer", make=make)
    assert close(plain, fused, 1e-5), (plain[0], fused[0])
    state, text = fused[2]["fused_optimizer"]
    if VERSION >= (2, 3):
        assert (state, text) == ("on", "4 fused steps of %s" % {sgd: "SGD", adamw: "AdamW"}[make]), text
    else:
        assert state == "nothing", text
if VERSION >= (2, 3):
    def chosen(**words):
        return trained("fused_optimizer", make=lambda model: torch.optim.Adam(model.parameters(), **words))[2]["fused_optimizer"]
    assert chosen(fused=False) == ("nothing", "the program says itself which kernel Adam uses")
    assert chosen(foreach=True)[0] == "nothing" and chosen(foreach=False)[0] == "on"
    assert chosen(fused=True) == ("already", "Adam is fused")
    own = trained("fused_optimizer", make=lambda model: torch.optim.RMSprop(model.parameters()))
    assert own[2]["fused_optimizer"] == ("nothing", "RMSprop has no fused kernel")

    # a checkpoint made under the lever is one made without, and goes on either way
    def halves(first, second):
        model = cnn()
        optimizer = adamw(model)
        with levers(first) as said:
            train(model, optimizer)
            kept = copy.deepcopy(optimizer.state_dict())
        assert optimizer.param_groups[0]["fused"] is None
        other = adamw(model)
        other.load_state_dict(kept)
        with levers(second) as said:
            losses = train(model, other)[0]
        return losses, list(model.parameters()), kept, said
    plain = halves("none", "none")
    for first, second in (("fused_optimizer", "none"), ("none", "fused_optimizer"), ("fused_optimizer", "fused_optimizer")):
        found = halves(first, second)
        assert close(plain, found, 1e-5)
        assert repr(found[2]["param_groups"]) == repr(plain[2]["param_groups"])
        assert found[2]["state"][0]["step"].device.type == "cpu"

    # gradients in another order than their weights: the fused kernel would refuse them
    class Turned(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight):
            return weight.clone()
        @staticmethod
        def backward(ctx, gradient):
            return gradient
    weight = nn.Parameter(torch.randn(4, 6))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with levers("fused_optimizer") as said:
        for _ in range(2):
            weight.grad = torch.randn(6, 4).t()
            optimizer.step()
    assert said["fused_optimizer"] == ("nothing", "gradients or states differ from their weights in type or order")

# what there is only on a GPU
said = trained("cudnn_benchmark,tf32")[2]
assert said["cudnn_benchmark"][0] == said["tf32"][0] == "nothing" and not torch.backends.cudnn.benchmark
torch.backends.cudnn.benchmark = True
assert VERSION < (2, 2) or trained("cudnn_benchmark")[2]["cudnn_benchmark"][0] == "already"
assert torch.backends.cudnn.benchmark
"""


def test_optimizers_and_gradients(run):
    found, _ = run(EXACT)
    assert "lever.set_to_none.on" in found.facts


OLD = """
names = "bf16_autocast,channels_last,cudnn_benchmark,compile,cuda_graphs,attention,inference_mode,bf16_weights"
plain, found = trained("none"), trained(names)
assert same(plain, found)
for name in names.split(","):
    assert found[2][name][0] == "nothing" and "needs 2." in found[2][name][1], found[2][name]
"""

MODULES = """
import copy, io, pickle, warnings
plain = trained("none")
x = torch.randn(4, 3, 16, 16)

# bf16: products are, the loss and what the program gets is not
found = trained("bf16_autocast")
assert not same(plain, found) and close(plain, found, 0.05), found[0]
assert found[2]["bf16_autocast"] == ("on", "3 products of a call in bf16, 0 others; 4 calls"), found[2]
def own(model):
    def call(images):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(images)
    return call
with levers("bf16_autocast") as said:
    model = cnn()
    train(model, sgd(model), call=own(model))
assert said["bf16_autocast"] == ("already", "the program calls its module under autocast")
with levers("bf16_autocast") as said:
    cnn().bfloat16()(x.bfloat16())
assert said["bf16_autocast"] == ("already", "weights are bfloat16")

# what a module gives keeps its kind
from typing import NamedTuple
class Pair(NamedTuple):
    logits: torch.Tensor
    others: list
class Giver(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
    def forward(self, x, module=None, call=None):
        y = self.inner(x)
        return {"pair": Pair(y, [y, 3]), "shape": x.shape, "none": None, "half": y.half()}
giver = Giver()
with levers("bf16_autocast") as said:
    given = giver(torch.ones(2, 4), module=1, call=2)
assert type(given["pair"]) is Pair and given["pair"].others[1] == 3 and given["shape"] == torch.Size([2, 4])
assert given["pair"].logits.dtype == given["pair"].others[0].dtype == torch.float32 and given["half"].dtype == torch.float16
assert said["bf16_autocast"][0] == "on"

# channels_last
found = trained("channels_last")
assert close(plain, found, 1e-5)
assert found[2]["channels_last"] == ("on", "2 filters, 2 of 2 convolutions kept it; 4 calls"), found[2]
model = cnn()
with levers("channels_last") as said:
    features = model[:2]
    assert features(x).is_contiguous()
    assert model[0].weight.stride() == (27, 1, 9, 3)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    assert modules.PLACE not in pickle.loads(pickle.dumps(features)).__dict__
assert model[0].weight.stride() == (27, 9, 3, 1)
cnn().load_state_dict(torch.load(io.BytesIO(buffer.getvalue())))
with levers("channels_last") as said:
    cnn().to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))
assert said["channels_last"][0] == "already"
with levers("channels_last") as said:
    nn.Linear(3, 3)(torch.ones(1, 3))
assert said["channels_last"] == ("nothing", "no 2-d convolutions")
class Turner(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = cnn()
    def forward(self, x):
        return self.inner(x.contiguous())
with levers("channels_last") as said:
    Turner()(x)
assert said["channels_last"][1].startswith("2 filters, 1 of 2 convolutions"), said  # the filters turn it again
class Viewer(nn.Module):  # an error under the lever, none without
    def __init__(self):
        super().__init__()
        self.inner = nn.Conv2d(3, 4, 3)
    def forward(self, x):
        return self.inner(x).view(-1)
viewer = Viewer()
expected = viewer(x)
with levers("channels_last") as said:
    assert torch.equal(viewer(x), expected) and viewer.inner.weight.is_contiguous()
assert said["channels_last"][0] == "failed" and "view" in said["channels_last"][1]
flat = cnn()
buffer = torch.zeros(1000)
with torch.no_grad():
    flat[0].weight.data = buffer[:216].view(8, 3, 3, 3).copy_(flat[0].weight)
with levers("channels_last") as said:
    flat(x)
assert said["channels_last"][0] == "nothing" and flat[0].weight.data_ptr() == buffer.data_ptr()

# a state that was loaded for contiguous filters
model = cnn()
optimizer = sgd(model)
train(model, optimizer)
kept = copy.deepcopy(optimizer.state_dict())
with levers("channels_last,fused_optimizer") as said:
    train(model, optimizer)
    assert optimizer.state[model[0].weight]["momentum_buffer"].stride() == model[0].weight.stride()
assert said["channels_last"][0] == "on" and (VERSION < (2, 3) or said["fused_optimizer"][0] == "on"), said

# inference
model = cnn().eval()
with torch.no_grad():
    expected = model(x)
def infer(names, mode=torch.no_grad, times=2, model=model):
    with levers(names) as said:
        with mode():
            for _ in range(times):
                y = model(x)
        assert not y.is_inference() or mode is torch.inference_mode
        kept = next(model.parameters()).dtype
    return y, said, kept
y, said, _ = infer("inference_mode")
assert torch.equal(y, expected) and said["inference_mode"] == ("on", "2 calls")
y.add_(1)
_, said, _ = infer("inference_mode", torch.inference_mode)
assert said["inference_mode"][0] == "already"
_, said, _ = infer("inference_mode", torch.enable_grad)
assert said["inference_mode"] == ("nothing", "the module is called with gradients")
class Keeper(nn.Module):  # what it keeps of a call without gradients is used in one with
    def __init__(self):
        super().__init__()
        self.inner, self.kept = nn.Linear(2, 2), None
    def forward(self, x):
        if self.kept is None:
            self.kept = torch.arange(2.0)
        return self.inner(x) * self.kept
keeper = Keeper()
with levers("inference_mode") as said:
    with torch.no_grad():
        keeper(torch.ones(1, 2))
    keeper(torch.ones(1, 2)).sum().backward()
assert keeper.inner.weight.grad is not None
keeper = Keeper()
with levers("inference_mode") as said:
    with torch.no_grad():
        keeper(torch.ones(1, 2))
    assert keeper.kept.is_inference()
    torch.optim.SGD(keeper.parameters(), lr=0.1)
    assert not keeper.kept.is_inference()

# bf16 weights
y, said, kind = infer("bf16_weights")
assert kind == torch.bfloat16 and y.dtype == torch.float32 and 0 < (y - expected).abs().max() < 0.01
assert said["bf16_weights"][0] == "on"
with torch.no_grad():
    assert torch.equal(model(x), expected) and model[0].weight.dtype == torch.float32
for leave in (lambda: model(x).sum().backward(), lambda: nn.Sequential(model).state_dict(), lambda: sgd(model)):
    with levers("bf16_weights") as said:
        with torch.no_grad():
            model[3](model[:3](x))
            assert model[3].weight.dtype == torch.bfloat16 and model[7].weight.dtype == torch.float32
            model(x)  # the whole of what was called in parts, and a part of it
            assert (model[0](x).float() - model[0].weight.new_zeros(1)).dtype == torch.float32
        assert model[0].weight.dtype == model[7].weight.dtype == torch.bfloat16
        leave()
        assert model[0].weight.dtype == torch.float32
        with torch.no_grad():
            assert torch.equal(model(x), expected)
        assert model[0].weight.dtype == torch.float32
    model.zero_grad()
with levers("bf16_weights") as said:
    with torch.no_grad():
        cnn()(x)
assert said["bf16_weights"] == ("nothing", "the module is called for training, or with gradients")
_, said, _ = infer("bf16_weights,channels_last,inference_mode")
assert {state for state, _ in said.values()} == {"on"}, said
assert model[0].weight.is_contiguous()

# attention
layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
for value in ("", "=math", "=flash"):
    with levers("attention" + value) as said:
        layer(torch.randn(2, 7, 32)).sum().backward()
    state, text = said["attention"]
    # on a CPU the order is PyTorch's own
    assert state == {"": "already", "=math": "nothing", "=flash": "already"}[value] if VERSION >= (2, 6) else "nothing", said
if VERSION >= (2, 6):
    kept, torch._fused_sdp_choice = torch._fused_sdp_choice, lambda *args, **kwargs: torch._C._get_sdp_priority_order()[0]
    order = torch._C._get_sdp_priority_order()
    with levers("attention=efficient") as said:
        layer(torch.randn(2, 7, 32)).sum().backward()
    torch._fused_sdp_choice = kept
    assert said["attention"] == ("on", "efficient instead of flash; calls in a forward pass: 1"), said
    assert torch._C._get_sdp_priority_order() == order and F.scaled_dot_product_attention.__module__ != "attention"
with levers("attention=fastest") as said:
    pass
assert said["attention"][0] == ("failed" if VERSION >= (2, 6) else "nothing")

# what others make of a module has nothing of a lever in it
with levers("bf16_autocast,channels_last") as said:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, x)
    assert "bfloat16" not in str(traced.graph) and "autocast" not in str(traced.graph)
    assert torch.equal(torch.func.functional_call(model, dict(model.named_parameters()), (x,)).isnan().any(), torch.tensor(False))
    assert torch.allclose(copy.deepcopy(model)(x), model(x), atol=0.1)

# DDP lays its buckets out in the order that the filters have then, and would warn of another one later
import tempfile
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
for views in (False, True):
    with levers("channels_last,bf16_autocast,fused_optimizer") as said:
        parallel = nn.parallel.DistributedDataParallel(cnn(), gradient_as_bucket_view=views)
        train(parallel, sgd(parallel))
        assert parallel.module[0].weight.grad.stride() == parallel.module[0].weight.stride() == (27, 1, 9, 3)
    assert {state for state, _ in said.values()} == {"on"} or VERSION < (2, 3), said
    assert parallel.module[0].weight.is_contiguous()
dist.destroy_process_group()

# the weights are the only thing that keeps a module alive
import gc, weakref
for names in ("bf16_autocast,channels_last", "bf16_weights,inference_mode"):
    with levers(names) as said:
        model = cnn().eval()
        with torch.no_grad():
            model(x)
        ref = weakref.ref(model)
        del model
        gc.collect()
        assert ref() is None
"""


def test_calls_of_modules(run, placed):
    run(MODULES if placed else OLD)


FAILING = """
import _hec_levers
from importlib import import_module
part = lambda name: import_module("_hec_levers." + name)
plain = trained("none")

# a lever that fails when it is put in, at the first call, with what a module gives, at an optimizer's step
exec(compile("def broken(*args, **kwargs): raise KeyError('broken on purpose')", part("core").__file__, "exec"))
for names, file, function in (("tf32", "tf32", "_hold"), ("bf16_autocast", "bf16_autocast", "why_not"),
                              ("bf16_autocast", "bf16_autocast", "as_before"), ("bf16_autocast", "calls", "is_autocast"),
                              ("channels_last", "channels_last", "_filters"), ("fused_optimizer", "fused_optimizer", "_kernel"),
                              ("fused_optimizer", "fused_optimizer", "_tell"), ("set_to_none", "set_to_none", "_drop")):
    if file != "set_to_none" and VERSION < (2, 2):
        continue
    module = part(file)
    kept = getattr(module, function)
    setattr(module, function, broken)
    try:
        found = trained(names, **({"set_to_none": False} if file == "set_to_none" else {}))
    finally:
        setattr(module, function, kept)
    assert close(plain, found, 0.05), (function, found[0])
    assert found[2][names][0] == "failed" and "broken on purpose" in found[2][names][1], (function, found[2])

if VERSION >= (2, 2):
    # a module that cannot take it runs without, with the random numbers and the buffers that it would have had
    class Picky(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.calls = cnn(), 0
        def forward(self, x):
            self.calls += 1
            y = self.inner(x)
            if y.dtype != torch.float32:
                raise RuntimeError("fp32 only")
            return y
    def picky():
        torch.manual_seed(0)
        return Picky()
    plain = trained("none", model=picky)
    found = trained("bf16_autocast", model=picky)
    assert same(plain, found), (plain[0], found[0])
    assert found[2]["bf16_autocast"] == ("failed", "RuntimeError: fp32 only")

    # what a program raises itself is not tried again for ever, and is no fault of the lever
    class Raises(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.calls = nn.Linear(2, 2), 0
        def forward(self, x):
            self.calls += 1
            self.inner(x)
            raise ValueError("of the program")
    model = Raises()
    with levers("bf16_autocast") as said:
        for _ in range(5):
            try:
                model(torch.ones(1, 2))
            except ValueError:
                pass
    assert model.calls <= 6 and said["bf16_autocast"][0] != "failed", (model.calls, said)
"""


def test_a_failing_lever_never_reaches_the_program(run):
    run(FAILING)


MEMORY = """
import _hec_levers
from importlib import import_module
graphs = import_module("_hec_levers.cuda_graphs")
memory, static = torch.zeros(3, 4), torch.ones(4, 4)  # as of graphs: each call writes it again
lies_at = {memory.data_ptr(), static.data_ptr()}
graphs.addresses = lambda device: lies_at

class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.mask, self.cache, self.given = nn.Linear(4, 4), None, {"keys": []}, torch.ones(4)
        self.register_buffer("seen", torch.zeros(4))
    def forward(self, x, keep):
        memory.copy_(self.linear(x).detach()[:3])
        if keep:
            self.mask = memory[0]
            self.cache["keys"] = [memory[1]]
            self.seen = memory[2]
        return memory

model = Keeps()
given, beside = model.given, graphs.Memory(model)
def call(keep, compiled):
    beside.before()
    return beside.after(model(torch.randn(3, 4), keep), compiled)
first = call(keep=False, compiled=True)
assert model.mask is None and beside.keepers == [] and first.data_ptr() != memory.data_ptr()
for k in range(3):
    result = call(keep=True, compiled=k == 0)  # later calls of one that keeps are looked at too
    held = [model.mask, model.cache["keys"][0], model.seen]
    assert all(torch.equal(tensor, part) and tensor.data_ptr() != part.data_ptr() for tensor, part in zip(held, memory))
    assert torch.equal(result, memory)
    result = call(keep=False, compiled=False)
    assert all(a is b for a, b in zip(held, (model.mask, model.cache["keys"][0], model.seen)))
assert model.given is given and [keeper() for keeper in beside.keepers] == [model]

# gradients of several backward passes; not those that are parts of the program's own memory
weight, flat = model.linear.weight, torch.zeros(9)
weight.grad = static  # as autograd takes what a graph gives
model.linear.bias.grad = flat[3:7]
own = model.linear.bias.grad
with torch.no_grad():
    beside.before()
assert weight.grad is static
beside.before()
copied = weight.grad
assert copied is not static and torch.equal(copied, static) and model.linear.bias.grad is own
static.fill_(7)
model.linear(torch.ones(1, 4)).sum().backward()
beside.before()
assert weight.grad is copied and torch.equal(copied, torch.full((4, 4), 2.0)) and model.linear.bias.grad is own and flat.sum() == 4
lies_at.clear()
weight.grad = static
assert beside.after(model(torch.randn(3, 4), True), True) is not memory and model.mask.data_ptr() == memory.data_ptr()
beside.before()
assert weight.grad is static
torch.ones(1, requires_grad=True).sum().backward()
"""


def test_what_outlasts_a_call_is_not_in_the_memory_of_graphs(run):
    run(MEMORY)


COMPILE = """
import gc, os, weakref
import _hec_levers
from importlib import import_module
part = lambda name: import_module("_hec_levers." + name)
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch._dynamo
    import torch._inductor.compile_fx as fx
from torch._functorch.aot_autograd import make_boxed_func
graphs = []
def eager(graph, inputs, *args, **kwargs):
    graphs.append(bool(kwargs.get("is_backward")))
    return make_boxed_func(graph.forward)
def no_forward(graph, inputs, *args, **kwargs):
    raise RuntimeError("no compiler\\nat all")
def no_backward(graph, inputs, *args, **kwargs):
    if kwargs.get("is_backward"):
        raise RuntimeError("no compiler")
    return make_boxed_func(graph.forward)
plain = trained("none")

fx.compile_fx_inner = eager
found = trained("compile")
assert close(plain, found, 1e-4), (plain[0], found[0])
assert torch.equal(plain[1][-1], found[1][-1])
assert graphs == [False, True], graphs
state, text = found[2]["compile"]
assert state == "on" and text.startswith("graphs: 1, compiled in 1 of 4 calls, ") and text.endswith(" s; graph breaks: 0"), text

for inner in (no_forward, no_backward):
    torch._dynamo.reset()
    fx.compile_fx_inner = inner
    found = trained("compile")
    text = "RuntimeError: no compiler" + " at all" * (inner is no_forward)
    assert close(plain, found, 1e-4) and found[2]["compile"] == ("failed", text), found[2]

# a module of the program's own, and one that is compiled for ever
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = nn.Linear(768, 5), 0
    def forward(self, x):
        self.calls += self.forever
        return self.inner(x.flatten(1)) + self.calls
    forever = 0
def own(forever):
    torch.manual_seed(0)
    model = Own()
    model.forever = forever
    return model
fx.compile_fx_inner = eager
for forever in (0, 1):
    torch._dynamo.reset()
    with torch._dynamo.config.patch({limit: 100 for limit in ("cache_size_limit", "recompile_limit")
                                     if hasattr(torch._dynamo.config, limit)}):
        plain = trained("none", model=lambda: own(forever), steps=12)
        with torch._dynamo.config.patch(automatic_dynamic_shapes=False, specialize_int=True):
            found = trained("compile", model=lambda: own(forever), steps=12)
    assert close(plain, found, 1e-4)
    state, text = found[2]["compile"]
    assert state == ("failed" if forever else "on"), text
    assert text.startswith("graphs: 9, compiled in 9 of 9 calls" if forever else "graphs: 1, compiled in 1 of "), text

# with others, and where the program compiles itself
torch._dynamo.reset()
plain = trained("none")
found = trained("bf16_autocast,compile,channels_last")
assert close(plain, found, 0.05) and {state for state, _ in found[2].values()} == {"on"}, found[2]
torch._dynamo.reset()
for compiled in (lambda model: torch.compile(model, backend="eager"), lambda model: model.compile(backend="eager") or model):
    model = cnn()
    with levers("compile,bf16_autocast") as said:
        train(compiled(model), sgd(model))
    assert said["compile"][0] == "already" and said["bf16_autocast"][0] == "on", said
torch._dynamo.reset()
found = trained("cuda_graphs")
assert close(trained("none"), found, 1e-4) and found[2]["cuda_graphs"][0] == "nothing", found[2]
assert "no CUDA graph was captured" in found[2]["cuda_graphs"][1]

# graphs that write the same memory in each call: gradients of several backward passes, and a mask that the module keeps
lies_at = set()
def static(graph, inputs, *args, **kwargs):
    memory = {}
    def call(given):
        outputs = graph.forward(*given)
        for i, output in enumerate(outputs):
            if isinstance(output, torch.Tensor):
                memory.setdefault((i, output.shape), torch.empty_like(output)).copy_(output)
                lies_at.add(memory[i, output.shape].data_ptr())
        return [memory[i, o.shape].detach() if isinstance(o, torch.Tensor) else o for i, o in enumerate(outputs)]
    return make_boxed_func(lambda *given: call(given))

class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.mask = nn.Linear(8, 8), None
    def forward(self, x):
        if self.mask is None or self.mask.size(0) != x.size(0):
            self.mask = torch.arange(x.size(0), dtype=torch.float32).unsqueeze(1) * 0.1 + 1
        return self.linear(x) * self.mask

def accumulated(names):
    torch.manual_seed(0)
    model, seen = Masked(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with levers(names) as said:
        for step in range(6):
            for micro in range(3):
                x = torch.randn(4 if step != 3 else 2, 8)
                model(x).square().mean().backward()
            seen.append(model.linear.weight.grad.clone())
            optimizer.step()
            optimizer.zero_grad(set_to_none=step % 2 == 0)
    return seen, said

part("cuda_graphs").addresses = lambda device: lies_at
fx.compile_fx_inner = static
plain = accumulated("none")[0]
torch._dynamo.reset()
found, said = accumulated("compile")
assert not all(torch.allclose(a, b, atol=1e-5) for a, b in zip(plain, found)), "the memory of graphs shows"
torch._dynamo.reset()
found, said = accumulated("cuda_graphs")
assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(plain, found)), said
assert said["cuda_graphs"][0] == "nothing" and "compiled (graphs: " in said["cuda_graphs"][1], said
fx.compile_fx_inner = eager

# names of weights, and no more life for a module than it has by itself
part("cuda_graphs").addresses = lambda device: set()
for name in ("compile", "cuda_graphs"):
    for make in (cnn, lambda: own(0)):
        torch._dynamo.reset()
        with levers(name) as said:
            model = make()
            names = list(model.state_dict())
            model(torch.randn(1, 3, 16, 16))
            assert list(model.state_dict()) == names
            ref = weakref.ref(model)
            del model
            torch._dynamo.reset()
            gc.collect()
            assert ref() is None
    assert said[name][0] == {"compile": "on", "cuda_graphs": "nothing"}[name], said
"""


def test_compile(run, placed):
    if placed:  # else test_calls_of_modules says what is said of it
        run(COMPILE)
