"""Levers that are switched while the program runs: what HEC asks for, on its page, is carried out between two steps."""

import pathlib
import re

import pytest

from conftest import SOURCE

LIVE = """
import mmap, os, struct
path = "orders"
with open(path, "wb") as file:
    file.write(bytes(4096))
os.environ["HEC_LIVE"] = path
page = mmap.mmap(os.open(path, os.O_RDWR), 4096)
number = 0

def order(names):
    global number
    number += 1
    struct.pack_into("=Q", page, 0, 0)
    page[64:64 + len(names) + 1] = names.encode() + bytes(1)
    struct.pack_into("=Q", page, 0, number)

def armed():
    return {name for name, one in sys.modules["_hec_levers.live"]._switcher.armed.items() if one.on}

def switched(names, orders, make=sgd, model=cnn, steps=4, **more):
    '''As `trained`, with an order after every step, in turn.'''
    module = model()
    seen = []
    with levers(names) as said:
        optimizer = make(module)
        def call(images):
            result = module(images)
            seen.append(armed())
            order(orders[len(seen) % len(orders)])
            return result
        losses, outputs = train(module, optimizer, steps=steps, call=call, **more)
    return losses, [value.clone() for value in module.state_dict().values()] + [torch.rand(3)], said, seen
"""


@pytest.fixture
def run(observe, torch_python, source):
    if torch_python[1] < (2, 2):
        pytest.skip("PyTorch before 2.2 has no place for it")

    def run(code):
        done = observe.start(torch_python[0], "from levers_common import *\n" + LIVE + code, HEC_LEVERS="none",
                             PYTHONPATH=str(source / "tests/python"))  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = max(observe.listener.found(), key=lambda found: len(found.steps))  # others are the compiler's, or forked
        assert "hooks_off" not in found.facts, found.facts
        return found, done.stdout

    return run


def test_switched_between_steps(run):
    """An order is carried out before the next step's first call; without one nothing of an armed lever is in."""
    found, _ = run("""
plain = trained("none", set_to_none=False, steps=12)
losses, values, said, seen = switched("set_to_none,keep_memory", ["", "set_to_none", "", "keep_memory,set_to_none"], set_to_none=False, steps=12)
assert same(plain, (losses, values)), "exact levers leave all bits"
assert seen[0] == set() and {frozenset(one) for one in seen} == {frozenset(), frozenset({"set_to_none"}), frozenset({"set_to_none", "keep_memory"})}, seen
assert said["set_to_none"][0] == "on", said
""")
    switches = [name for name, _, _ in found.intervals if name.startswith("switch/")]
    assert switches and all(re.fullmatch(r"switch/\d+", name) for name in switches), switches


def test_off_is_as_if_it_had_never_been(run):
    """Each of them on and off three times: then the program computes what it does without, and its state is what it would be."""
    run("""
for name in ("bf16_autocast", "channels_last", "tf32", "cudnn_benchmark", "inference_mode", "set_to_none", "keep_memory", "fused_optimizer"):
    for make in (sgd, adamw):
        module = cnn()
        with levers(name) as said:
            optimizer = make(module)
            for turn in ("", name, "", name, "", name, ""):
                order(turn)
                train(module, optimizer, steps=3)
                assert armed() == ({name} if turn else set()), (name, armed())
            strides = [weight.stride() for weight in module.parameters()]
            kept = [value.stride() for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value) and value.dim() == 4]
            after = train(module, optimizer, steps=2)[0]
        assert said[name][0] in ("", "on", "already", "nothing"), (name, said)
        assert strides == [weight.stride() for weight in cnn().parameters()], name
        assert all(one in strides for one in kept), (name, kept)
        assert all(value == value for value in after)
""")


@pytest.mark.skipif(not pathlib.Path("/usr/bin/g++").exists(), reason="no C++ compiler for Inductor")
def test_compiled_code_is_kept(run):
    """A compiler that is switched on again compiles nothing anew."""
    run("""
module = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 5))
with levers("compile") as said:
    optimizer = sgd(module)
    def go(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            F.cross_entropy(module(torch.randn(8, 16)), torch.randint(0, 5, (8,))).backward()
            optimizer.step()
    import _hec_levers.compile as compiler
    go(2)
    order("compile"); go(3)
    graphs = sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"]
    assert graphs == 1, graphs
    order(""); go(3)
    order("compile"); go(3)
    assert sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"] == graphs
assert said["compile"][0] == "on", said
""")


def test_a_lever_that_fails_ends_nothing(run):
    run("""
sys.modules["_hec_levers.live"]
with levers("set_to_none") as said:
    module, = [cnn()]
    optimizer = sgd(module)
    train(module, optimizer, steps=2)
    lever = sys.modules["_hec_levers.set_to_none"]
    lever.apply = lambda lever: 1 / 0
    order("set_to_none")
    train(module, optimizer, steps=3)
assert said["set_to_none"] == ("failed", "ZeroDivisionError: division by zero"), said
""")


def test_a_fork_and_a_missing_page(run):
    """A child goes on without orders; a page that is not there costs the levers, not the program."""
    run("""
os.environ["HEC_LIVE"] = "nowhere"
with levers("set_to_none") as said:
    module = cnn()
    train(module, sgd(module), steps=2)
assert said["set_to_none"][0] == "failed" and "FileNotFoundError" in said["set_to_none"][1], said
os.environ["HEC_LIVE"] = path
with levers("set_to_none") as said:
    module = cnn()
    optimizer = sgd(module)
    train(module, optimizer, steps=2)
    pid = os.fork()
    order("set_to_none")
    if pid == 0:
        train(module, optimizer, steps=2)
        os._exit(bool(armed()))
    assert os.waitpid(pid, 0)[1] == 0
    train(module, optimizer, steps=2)
    assert armed() == {"set_to_none"}
""")


def test_the_table_and_the_modules_agree():
    """`live` of hec levers is LIVE of the module."""
    rows = re.findall(r'HEC_LEVER_ROW\(\w+, "(\w+)", TORCH.*?"[^"]*",\s*([A-Z0-9()_| \n]*?),\s*"', (SOURCE / "src/act/levers.def").read_text(), re.S)
    assert len(rows) > 20
    for name, answers in rows:
        module = SOURCE / "python/hec/levers" / f"{name}.py"
        live = module.exists() and "\nLIVE = True\n" in module.read_text()
        assert live == ("LIVE" in answers.split(" | ")), (name, answers)
