"""FLOPs of a step, as the hooks count them by the shapes of a few calls, against PyTorch's own FlopCounterMode and by hand."""

import pytest

MODELS = """
    import copy, sys, torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, attend, wide=32, heads=4):
            super().__init__()
            self.attend, self.heads = attend, heads
            self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
            self.mlp = nn.Sequential(nn.Linear(wide, 4 * wide), nn.GELU(), nn.Linear(4 * wide, wide))

        def forward(self, x):
            batch, long, wide = x.shape
            q, k, v = [part.view(batch, long, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)]
            x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, long, wide))
            return x + self.mlp(x)

    def explicit(q, k, v):
        return (q @ k.transpose(-1, -2)).softmax(-1) @ v

    def einsum(q, k, v):
        return torch.einsum("bhqk,bhkd->bhqd", torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1), v)

    def text(attend):
        return nn.Sequential(nn.Embedding(50, 32), Block(attend), Block(attend), nn.Linear(32, 50))

    def images():
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ConvTranspose2d(8, 4, 2),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))

    def tokens(batch=4):
        return torch.randint(0, 50, (batch, 16))

    def backward(model, x):
        model(x).square().mean().backward()

    def train(model, batch, steps=20):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        for i in range(steps):
            optimizer.zero_grad()
            backward(model, batch(i))
            optimizer.step()
"""

TRAINED = """
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as counter:
        backward(copy.deepcopy(model), batch(0))
    train(model, batch)
    print(counter.get_total_flops())
"""


def amounts(parts):
    return {name: float(number) for name, number in (part.split("=") for part in parts)}


@pytest.fixture
def counted(observe, torch_python):
    """What a program that ends in `last` has: (calls counted, their error, FLOPs of a step by precision), and what it prints."""
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("calls of modules are found from PyTorch 2.2 on")

    def run(last, models=MODELS):
        found = observe.one(python, models + last)
        calls, error, *parts = found.facts["flops"].split()
        run.products = amounts(found.facts["products"].split())
        return int(calls), float(error), amounts(parts), observe.last.stdout.split()

    return run


@pytest.mark.parametrize("model", ["text(explicit), lambda i: tokens()", "images(), lambda i: torch.randn(4, 3, 16, 16)"])
def test_as_pytorch_counts(counted, model):
    calls, error, flops, printed = counted(f"    model, batch = {model}\n" + TRAINED)
    assert calls == 3 and error == 0  # of 20: the fourth, the eighth, the sixteenth
    assert flops == {"fp32": pytest.approx(float(printed[0]), rel=1e-5)}


def test_attention_is_the_same_in_all_its_forms(counted):
    """scaled_dot_product_attention, which FlopCounterMode leaves out on a CPU, and einsum, as two products."""
    explicit = counted("    train(text(explicit), lambda i: tokens())\n")[2]["fp32"]
    for attend in ("F.scaled_dot_product_attention", "einsum"):
        assert counted(f"    train(text({attend}), lambda i: tokens())\n")[2]["fp32"] == pytest.approx(explicit, rel=1e-5), attend


def test_by_hand(counted):
    """A layer of PyTorch's own, whose input needs no gradient; a recurrent one; weights that are not trained; autocast; inference."""
    long, batch, wide = 10, 4, 32
    attention = 2 * batch * long * (3 * wide * wide * 2 + (wide * wide + 2 * long * wide) * 3)
    mlp = 2 * batch * long * (2 * wide * 64) * 3
    program = "    train(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0), lambda i: torch.randn(4, 10, 32))\n"
    assert counted(program)[2]["fp32"] == pytest.approx(attention + mlp, rel=1e-5)
    program = """
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(8, 16, batch_first=True)
        def forward(self, x):
            return self.lstm(x)[0]
    train(Last(), lambda i: torch.randn(4, 10, 8))
"""
    assert counted(program)[2]["fp32"] == pytest.approx(2 * 4 * 10 * (64 * 8 + 64 * 16) * 2, rel=1e-5)
    program = """
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 16)).to(torch.bfloat16)
    model[0].requires_grad_(False)
    train(model, lambda i: torch.randn(8, 32, dtype=torch.bfloat16))
"""
    assert counted(program)[2] == {"fp16": pytest.approx(2 * 8 * (32 * 64 + 64 * 16 * 2), rel=1e-5)}
    program = """
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 16))
    for i in range(20):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            model(torch.randn(8, 32))
"""
    assert counted(program)[2] == {"fp16": pytest.approx(2 * 8 * (32 * 64 + 64 * 16), rel=1e-5)}


def test_hooks_that_come_back_count_on(counted):
    """They know what was counted before they were taken out: no call is counted again for it."""
    program = """
    model, hooks = nn.Linear(32, 32), sys.modules.get("_hec_hooks")  # none in the run that is compared with
    for _ in range(5):
        train(model, lambda i: torch.randn(8, 32), steps=4)
        if hooks:
            hooks.pause(), hooks.resume()
"""
    assert counted(program)[0] == 3  # of 20: the fourth, the eighth, the sixteenth


def test_calls_that_differ(counted):
    """More of them are counted, and how far the mean may be off is said. Gradients of several backward passes are of one step."""
    program = """
    model, optimizer = nn.Linear(32, 32), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for i in range(600):
        for rows in (8, 8 + 8 * (i % 3)):
            backward(model, torch.randn(rows, 32))
        optimizer.step()
"""
    calls, error, flops, _ = counted(program)
    mean = 2 * (8 + 16) * 32 * 32 * 2
    assert 5 <= calls < 20 and 0.01 < error < 0.3
    assert abs(flops["fp32"] / mean - 1) < 3 * error


@pytest.mark.parametrize("program,why", [
    ("    train(torch.compile(nn.Linear(8, 8), backend='eager'), lambda i: torch.randn(4, 8))\n", "torch.compile"),
    ("    from torch.utils.checkpoint import checkpoint\n    class Again(nn.Linear):\n        def forward(self, x):\n"
     "            return checkpoint(super().forward, x.requires_grad_(), use_reentrant=True)\n"
     "    train(Again(8, 8), lambda i: torch.randn(4, 8))\n", "without gradients"),
])  # fmt: skip
def test_what_is_not_counted(observe, torch_python, program, why):
    """A mode would have torch.compile compile again; what is computed again in the backward pass is not known from the forward one."""
    python, version = torch_python
    if version < (2, 2):
        pytest.skip("calls of modules are found from PyTorch 2.2 on")
    found = observe.one(python, MODELS + program, options=())
    assert not found.facts.get("flops") and why in found.facts["flops_why"]


def test_no_fast_path_is_left_for_it(observe, torch_python):
    """Inference of a layer that computes otherwise under a mode is not counted; what it gives is the same bit by bit."""
    program = """
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    x = torch.randn(4, 10, 32)
    with torch.no_grad():
        print([layer(x).double().sum().item().hex() for i in range(10)])
"""
    found = observe.one(torch_python[0], MODELS + program)
    assert "flops" not in found.facts


def test_products(counted):
    """Those of rows that fast loads cannot fetch, forward and backward; weights in fp32, and the gradients made of them."""
    counted("    train(nn.Sequential(nn.Linear(32, 61), nn.Linear(61, 16), nn.Linear(16, 8)), lambda i: torch.randn(8, 32))\n")
    flops = 2 * 8 * (32 * 61 * 2 + 61 * 16 * 3)  # the first needs no gradient of its input
    assert counted.products == {"fp32": pytest.approx(flops, rel=1e-5), "weights": pytest.approx(2 * (32 * 61 + 61 * 16 + 16 * 8), rel=1e-5)}
    program = """
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 16)).to(torch.bfloat16)
    train(model, lambda i: torch.randn(8, 32, dtype=torch.bfloat16))
"""
    counted(program)
    assert counted.products == {}
    program = """
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 15))
    for i in range(20):
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            model(torch.randn(8, 32))
"""
    counted(program)
    assert counted.products == {"fp16": pytest.approx(2 * 8 * 64 * 15, rel=1e-5), "weights": pytest.approx(32 * 64 + 64 * 15, rel=1e-5)}
