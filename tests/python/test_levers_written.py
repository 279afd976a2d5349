"""Levers that change the graph of a module: what a program writes out by hand becomes PyTorch's fused functions, odd products are padded."""

import pathlib

import pytest


@pytest.fixture
def run(observe, torch_python, source):
    def run(code):
        done = observe.start(torch_python[0], "from written_common import *\n" + code, HEC_LEVERS="none",
                             PYTHONPATH=str(source / "tests/python"))  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def placed(torch_python):
    """Whether this PyTorch has a place for levers around calls."""
    return torch_python[1] >= (2, 5)


FUSED = """
plain = learned("none")
found = learned("fuse_written")
assert near(plain, found), (plain[0], found[0])
state, text = found[2]["fuse_written"]
assert state == "on", text
assert text.startswith("replaced in a call: 3 x GELU (tanh), 7 x LayerNorm, 3 x causal attention; graphs run: "), text

# out again: bit for bit what it was
model, tokens = language().eval(), torch.randint(0, 67, (2, 16))
before, code = model(tokens), {type(part): type(part).forward for part in model.modules()}
with levers("fuse_written") as said:
    inside = model(tokens)
assert said["fuse_written"][0] == "on" and torch.allclose(before, inside, atol=1e-5) and torch.equal(before, model(tokens))
assert code == {type(part): type(part).forward for part in model.modules()}
"""


def test_a_model_written_out_by_hand(run, placed):
    if placed:
        run(FUSED)
    else:
        run("""
said = learned("fuse_written")[2]["fuse_written"]
assert said[0] == "nothing" and "needs 2." in said[1], said
""")


FORMS = """
class Form(nn.Module):
    '''x and what a form makes of it; `w`, `b` are weights, the others are kept tensors.'''
    def __init__(self, form, x, **kept):
        super().__init__()
        torch.manual_seed(2)
        width = x[-1]
        self.inner = nn.Linear(width, width)
        self.w, self.b = nn.Parameter(torch.randn(width)), nn.Parameter(torch.randn(width))
        self.bias = nn.Parameter(torch.randn(x[-2], x[-2]))
        self.plain = torch.ones(x[-2], x[-2]).tril()  # kept, no buffer
        self.register_buffer("mask", torch.ones(x[-2], x[-2]).tril())
        self.register_buffer("band", torch.ones(x[-2], x[-2]).tril() * torch.ones(x[-2], x[-2]).triu(-2))
        self.form = form
    def forward(self, x, *more):
        return self.form(self, self.inner(x), *more)

def outcome(form, size, lever, more=()):
    torch.manual_seed(3)
    model, x = Form(form, size), torch.randn(*size, requires_grad=True)
    torch._dynamo.reset() if lever != "none" else None
    with levers(lever) as said:
        for _ in range(2):
            y = model(x, *more)
        model.zero_grad()
        y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(4)))
    return y.detach(), [x.grad] + [weight.grad for weight in model.parameters()], said

def check(form, size, expected, more=()):
    plain, found = outcome(form, size, "none", more), outcome(form, size, "fuse_written", more)
    state, text = found[2]["fuse_written"]
    if expected:
        assert (state, text.split("; ")[0]) == ("on", "replaced in a call: " + expected), (form.__name__, text)
    else:
        assert (state, text) == ("nothing", "nothing written out by hand that PyTorch has as one function"), (form.__name__, text)
    assert plain[0].shape == found[0].shape and plain[0].dtype == found[0].dtype, form.__name__
    assert not plain[0].is_contiguous() or found[0].is_contiguous(), form.__name__
    assert torch.allclose(plain[0], found[0], rtol=1e-4, atol=1e-5), (form.__name__, (plain[0] - found[0]).abs().max())
    for a, b in zip(plain[1], found[1]):
        assert (a is None and b is None) or torch.allclose(a, b, rtol=1e-3, atol=1e-4), (form.__name__, (a - b).abs().max())

import torch._dynamo
inf = float("inf")
heads = (2, 3, 6, 8)

# ---- attention ----
def nanogpt(m, x):
    scores = (x @ x.transpose(-2, -1)) * (1.0 / math.sqrt(x.size(-1)))
    return F.softmax(scores.masked_fill(m.mask[None, None, :6, :6] == 0, -inf), dim=-1) @ x
def added(m, x):
    later = torch.full((6, 6), -inf).triu(1)
    return torch.matmul(torch.softmax(torch.matmul(x, x.permute(0, 1, 3, 2)) / 3 + later, -1), x).transpose(1, 2).reshape(2, 6, 24)
def added_in_place(m, x):
    scores = x @ x.mT
    scores *= 0.3
    scores += torch.zeros(6, 6).masked_fill_(m.mask == 0, -1e9)
    return scores.softmax(-1) @ x
def where(m, x):
    scores = x @ x.mT
    least = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype)
    return F.softmax(torch.where(m.plain.bool(), scores, least), dim=-1) @ x
def finite(m, x):
    return ((x @ x.mT).masked_fill(m.plain == 0, -1e9) / 2.5).softmax(dim=3) @ x
def upcast(m, x):
    return F.softmax((x @ x.mT).masked_fill(m.mask == 0, -inf).float(), dim=-1, dtype=torch.float32).type_as(x) @ x
for form in (nanogpt, added, added_in_place, where, finite, upcast):
    check(form, heads, "1 x causal attention")

def batched(m, x):
    return torch.bmm(torch.softmax(torch.bmm(x, x.transpose(1, 2)) / 3, dim=2), x)
check(batched, (4, 6, 8), "1 x attention")
def einsum(m, x):
    weights = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", x, x) * 0.4, dim=-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, x)
check(einsum, (2, 6, 6, 8), "1 x attention")
def banded(m, x):  # no triangle: it goes with it
    return F.dropout((x @ x.mT).masked_fill(m.band == 0, -inf).softmax(-1), 0.5, False) @ x
def learned_bias(m, x):
    return ((x @ x.mT + m.bias) * 0.5).softmax(-1) @ x
def given(m, x, keep):
    return torch.where(keep, x @ x.mT, -inf).softmax(-1) @ x
check(banded, heads, "1 x attention")
check(learned_bias, heads, "1 x attention")
keep = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(5)) < 0.5
check(given, heads, "1 x attention", (keep | torch.eye(6, dtype=torch.bool),))

# what is not that, or not provably
def over_heads(m, x):
    return (x @ x.mT).softmax(1) @ x
def looked_at(m, x):
    weights = (x @ x.mT).softmax(-1)
    return weights @ x + weights.sum(-1, keepdim=True)
def finite_given(m, x, keep):  # a row of which nothing is left would be another
    return (x @ x.mT).masked_fill(~keep, -1e9).softmax(-1) @ x
def cut(m, x):
    return (x @ x.mT).softmax(-1).detach() @ x
def twice(m, x):
    return (x @ x.mT).masked_fill(m.mask == 0, -inf).masked_fill(m.band == 0, -inf).softmax(-1) @ x
def before(m, x):
    return (x @ x.mT).softmax(-1) @ x if False else x @ (x.mT @ x).softmax(-1)
for form in (over_heads, looked_at, cut, twice, before):
    check(form, heads, "")
check(finite_given, heads, "", (keep,))

# ---- normalisation ----
def by_hand(m, x):
    mean = x.sum(-1, keepdim=True) / 8
    return (x - mean) * torch.rsqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
def scaled_first(m, x):
    return m.w * (x - x.mean(-1, True)) / torch.sqrt(torch.var(x, dim=-1, unbiased=False, keepdim=True) + 1e-6) + m.b
def two_lines(m, x):
    centred = x - x.mean(-1, keepdim=True)
    return m.b + centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-3) ** 0.5 * m.w
for form in (by_hand, scaled_first, two_lines):
    check(form, (2, 6, 8), "1 x LayerNorm")
def llama(m, x):
    return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x) * m.w
def gemma(m, x):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * (1 + m.w)
if hasattr(torch.ops.aten, "_fused_rms_norm"):
    for form in (llama, gemma):
        check(form, (2, 6, 8), "1 x RMSNorm")
def unbiased(m, x):
    return m.w * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)
def outside(m, x):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + 1e-3)
def over_rows(m, x):
    return (x - x.mean(1, keepdim=True)) / torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
def detached(m, x):
    return (x - x.mean(-1, keepdim=True).detach()) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
def without_gradients(m, x):
    with torch.no_grad():
        mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
def written_between(m, x):
    x = x * 1
    mean = x.mean(-1, keepdim=True)
    x.add_(1)
    return (x - mean) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
def seen(m, x):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5) + mean
for form in (unbiased, outside, over_rows, detached, without_gradients, written_between, seen):
    check(form, (2, 6, 8), "")

# ---- activations ----
def gelu(m, x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
def gelu_new(m, x):
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * x * (1 + 0.044715 * x * x)))
def silu(m, x):
    return x * torch.sigmoid(x)
def swiglu(m, x):
    return (x / (1 + torch.exp(-x))) * m.w
check(gelu, (2, 6, 8), "1 x GELU")
check(gelu_new, (2, 6, 8), "1 x GELU (tanh)")
for form in (silu, swiglu):
    check(form, (2, 6, 8), "1 x SiLU")
def quick(m, x):
    return x * torch.sigmoid(1.702 * x)
def nearly(m, x):
    return 0.5 * x * (1 + torch.tanh(0.7979 * (x + 0.0447 * x ** 3)))
for form in (quick, nearly):
    check(form, (2, 6, 8), "")
"""


def test_forms(run, placed):
    if placed:
        run(FORMS)


WITH_OTHERS = """
fx = inductor()
WORDS = "replaced in a call: 3 x GELU (tanh), 7 x LayerNorm, 3 x causal attention; "
plain = learned("none")

# the compiler gets the changed graph
found = learned("compile,fuse_written")
assert near(plain, found) and found[2]["compile"][0] == "on" and found[2]["fuse_written"][1].startswith(WORDS), found[2]
assert found[2]["compile"][1].startswith("graphs: 1, "), found[2]

# where the compiler fails, it runs without it
torch._dynamo.reset()
kept, fx.compile_fx_inner = fx.compile_fx_inner, lambda *args, **kwargs: 1 / 0
found = learned("compile,fuse_written")
fx.compile_fx_inner = kept
assert near(plain, found) and found[2]["compile"][0] == "failed" and found[2]["fuse_written"][0] == "on", found[2]

# autocast: in bf16, as without the lever
torch._dynamo.reset()
half, found = learned("bf16_autocast"), learned("bf16_autocast,fuse_written")
assert near(half, found, 0.03) and found[2]["fuse_written"][1].startswith(WORDS), (half[0], found[0], found[2])

# dropout draws others; what is evaluated has none
torch._dynamo.reset()
model = language(dropout=0.3)
with levers("fuse_written") as said:
    learn(model, adamw(model))
    tokens = torch.randint(0, 67, (2, 16))
    model.eval()
    with torch.no_grad():
        found = model(tokens)
        for length in (5, 6, 7):  # text that grows
            grown = model(tokens[:, :length])
            assert torch.allclose(grown, found[:, :length], atol=1e-5)
with torch.no_grad():
    assert torch.allclose(model(tokens), found, atol=1e-5)
assert said["fuse_written"][1].startswith(WORDS), said

# a mask that is written, or another one
for change in (lambda part: part.mask.zero_(), lambda part: setattr(part, "mask", torch.ones(16, 16).triu(3))):
    torch._dynamo.reset()
    model = language().eval()
    with levers("fuse_written") as said, torch.no_grad():
        model(tokens), model(tokens)
        change(model.blocks[1].attention)
        found = [model(tokens) for _ in range(2)]
    with torch.no_grad():
        assert all(torch.allclose(model(tokens), one, atol=1e-5) for one in found)
    assert said["fuse_written"][1].startswith(WORDS), said

# a program that wants the same bits each time; hooks of the program's own; a lever that breaks
torch._dynamo.reset()
torch.use_deterministic_algorithms(True)
found = learned("fuse_written")
torch.use_deterministic_algorithms(False)
assert near(plain, found) and found[2]["fuse_written"][1].startswith("replaced in a call: 3 x GELU (tanh), 7 x LayerNorm; "), found[2]
torch._dynamo.reset()
model, outputs = language(), []
handle = model.blocks[0].one.register_forward_hook(lambda module, args, output: outputs.append(output.detach()))
with levers("fuse_written") as said:
    learn(model, adamw(model), steps=3)
assert len(outputs) == 3 and said["fuse_written"][0] == "on", said
from importlib import import_module
written = import_module("_hec_levers.written")
exec(compile("def broken(*args, **kwargs): raise KeyError('broken on purpose')", written.__file__, "exec"))
kept, written.Finder.replace_all = written.Finder.replace_all, broken
torch._dynamo.reset()
found = learned("fuse_written")
written.Finder.replace_all = kept
assert near(plain, found, 1e-6) and found[2]["fuse_written"] == ("failed", "KeyError: 'broken on purpose'"), found[2]

# DDP writes buffers before each call: the mask goes with it
import tempfile
import torch.distributed as dist
torch._dynamo.reset()
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
parallel = nn.parallel.DistributedDataParallel(language())
with levers("fuse_written") as said:
    found = learn(parallel, adamw(parallel))
dist.destroy_process_group()
assert near(plain, found) and "3 x attention; graphs run: " in said["fuse_written"][1] and "mask" not in said["fuse_written"][1], said

# nothing of it, and a module that the program compiles
torch._dynamo.reset()
assert same(trained("none"), trained("fuse_written")) and trained("fuse_written")[2]["fuse_written"][0] == "nothing"
compiled = torch.compile(cnn(), backend="eager")
with levers("fuse_written") as said:
    train(compiled, sgd(compiled), steps=2)
assert said["fuse_written"] == ("nothing", "the program compiles the module, or a part of it"), said

# no more life for a module than it has by itself
import gc, weakref
torch._dynamo.reset()
with levers("fuse_written") as said:
    model = language()
    model(tokens)
    ref = weakref.ref(model)
    del model
    torch._dynamo.reset()
    gc.collect()
    assert ref() is None
"""


def test_with_other_levers(run, placed):
    if placed:
        run(WITH_OTHERS)


SWITCHED = """
plain = learned("none", steps=10)
model = language()
optimizer = adamw(model)

seen = []
with levers("fuse_written") as said:
    torch.manual_seed(1)
    losses = []
    for step in range(10):
        order("" if step % 4 < 2 else "fuse_written")
        tokens = torch.randint(0, 67, (2, 17))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        seen.append(bool(armed()))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    graphs = sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"]
assert True in seen and False in seen[seen.index(True):], seen
assert near((losses, []), (plain[0], [])), (losses, plain[0])
assert graphs == 1 and said["fuse_written"][0] == "on", (graphs, said)
"""


def test_switched_between_steps(run, placed):
    """Off and on again makes no graph anew."""
    if placed:
        from test_live import LIVE

        run(LIVE + SWITCHED)


PADDED = """
import torch._dynamo
from importlib import import_module
import _hec_levers
pads = import_module("_hec_levers.pad_products")
NOTHING = ("nothing", "no linear layer of an odd size is large enough")

# 50257 words and the like: a head of 67 words, layers of 33 numbers
assert learned("pad_products", steps=1, width=33, heads=3)[2]["pad_products"] == NOTHING
pads.ROWS_LEAST, pads.WIDTH_LEAST = 32, 16
for lever in ("pad_products", "pad_products,fuse_written"):
    torch._dynamo.reset()
    plain, found = learned("none"), learned(lever)
    assert near(plain, found), (plain[0], found[0])
    assert found[2]["pad_products"][1].startswith("padded in a call: 1 of 67 x 32 as 72 x 32; graphs run: "), found[2]
assert found[2]["fuse_written"][0] == "on", found[2]
torch._dynamo.reset()
plain, found = learned("none", width=33, heads=3), learned("pad_products", width=33, heads=3)
assert near(plain, found), (plain[0], found[0])
words = "padded in a call: 3 of 132 x 33 as 136 x 40, 3 of 33 x 132 as 40 x 136, 12 of 33 x 33 as 40 x 40, 1 of 67 x 33 as 72 x 40; "
assert found[2]["pad_products"][1].startswith(words), found[2]
torch._dynamo.reset()
assert learned("pad_products", steps=1, words=72, width=32)[2]["pad_products"] == NOTHING

# tiles of half precision; what the module gives has the order that it has without
torch._dynamo.reset()
model = language(words=67)
optimizer = adamw(model)
with levers("bf16_autocast,pad_products") as said:
    learn(model, optimizer, steps=2)
    assert model(torch.zeros(2, 16, dtype=torch.long)).is_contiguous() and model.head.weight.shape == (67, 32)
assert "67 x 32 as 128 x 32" in said["pad_products"][1], said
assert all(state["exp_avg"].shape == weight.shape for weight, state in optimizer.state.items())

# few rows, and lengths that change
torch._dynamo.reset()
pads.ROWS_LEAST = 20
model = language().eval()
with levers("pad_products") as said, torch.no_grad():
    tokens = torch.randint(0, 67, (2, 16))
    found = [model(tokens[:, :length]) for length in (16, 3, 5, 12)]
with torch.no_grad():
    assert all(torch.allclose(one, model(tokens[:, :one.shape[1]]), atol=1e-6) for one in found)
assert said["pad_products"][0] == "on", said
"""


def test_padded_products(run, placed):
    if placed:
        run(PADDED)


MAX = """
fx = inductor()
import torch._inductor.config as config
import torch._inductor.select_algorithm as select
seen, kept = [], fx.compile_fx_inner
def eager(graph, inputs, *args, **kwargs):
    seen.append((config.max_autotune, config.triton.cudagraphs, select.PRINT_AUTOTUNE))
    return kept(graph, inputs)
fx.compile_fx_inner = eager
plain, found = trained("none"), trained("compile_max")
assert close(plain, found, 1e-4) and torch.equal(plain[1][-1], found[1][-1]), (plain[0], found[0])
state, text = found[2]["compile_max"]
assert state == "on" and text.startswith("graphs: 1, compiled in 1 of 4 calls, "), text
assert seen == [(True, False, False)] * 2, seen
assert not config.max_autotune and select.PRINT_AUTOTUNE
"""


def test_compile_max(run, placed):
    if placed:
        run(MAX)


FAILING = """
import torch._dynamo
from importlib import import_module
import _hec_levers
part = lambda name: import_module("_hec_levers." + name)

# a fused function that fails when it runs: the graph runs as the program wrote it, and has the program's random numbers
plain = learned("none")
kept = F.scaled_dot_product_attention
def broken(*args, **kwargs):
    raise RuntimeError("no kernel")
F.scaled_dot_product_attention = broken
found = learned("fuse_written")
F.scaled_dot_product_attention = kept
assert near(plain, found) and found[2]["fuse_written"] == ("failed", "RuntimeError: no kernel"), found[2]

# what fails in the compiler, with frames of anybody in it
torch._dynamo.reset()
def failing(self, *args):
    raise torch._dynamo.exc.InternalTorchDynamoError("of the compiler")
kept, rewriters = part("rewriters").Rewritings.of, part("rewriters").Rewritings
exec(compile("def of(self, *args): return failing(self, *args)", "<string>", "exec"))
rewriters.of = of
found = learned("fuse_written")
rewriters.of = kept
assert near(plain, found, 1e-6) and found[2]["fuse_written"][0] == "failed", found[2]

# an exception of the program's own is the program's, and once
torch._dynamo.reset()
class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = Norm(8), 0
    def forward(self, x):
        self.calls += 1
        if self.calls == 3:
            raise ValueError("of the program")
        return self.inner(x)
model = Raises()
with levers("fuse_written") as said:
    raised = 0
    for _ in range(5):
        try:
            model(torch.randn(3, 8))
        except ValueError:
            raised += 1
assert (raised, model.calls) == (1, 5) and said["fuse_written"][0] == "on", (raised, model.calls, said)
"""


def test_what_fails_never_reaches_the_program(run, placed):
    if placed:
        run(FAILING)


COPIED = """
import torch._dynamo
from importlib import import_module
import _hec_levers
graphs, lost = import_module("_hec_levers.graphs"), []

def backend(owner, inputs):
    made = graphs.copied(owner.graph)
    lost.extend(set(vars(node)) - set(vars(other)) for node, other in zip(owner.graph.nodes, made.nodes))
    return owner.forward

torch.compile(torch.nn.Linear(4, 4), backend=backend)(torch.ones(2, 4))
assert lost and not any(lost), lost
"""


def test_a_graph_that_is_put_back(run, placed):
    """It has what torch.compile wrote at its nodes, without which newer ones refuse it."""
    if placed:
        run(COPIED)
