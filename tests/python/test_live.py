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

def order(names, changes=3):
    global number
    number += 1
    struct.pack_into("=QIxxxxQ", page, 0, 0, changes, 0)
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


@pytest.mark.skipif(not pathlib.Path("/usr/bin/g++").exists(), reason="no C++ compiler for Inductor")
def test_half_precision_with_dropout_is_compiled_once(run):
    """Compared without dropout it would be compiled for that, and again for the program. Where its dropout draws otherwise it is compared so
    all the same; what is wrong stays out."""
    run("""
def play(sets, spoil=None):
    torch._dynamo.reset()
    sys.modules["torch._dynamo.utils"].counters.clear()
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Dropout(0.3), nn.Linear(64, 64), nn.Dropout(0.3), nn.Linear(64, 5))
    with levers("bf16_autocast,compile") as said:
        live = sys.modules["_hec_levers.live"]._switcher
        optimizer = sgd(module)
        on = []
        for names in sets:
            order(names)
            for _ in range(3):
                optimizer.zero_grad()
                F.cross_entropy(module(torch.randn(64, 16)), torch.randint(0, 5, (64,))).backward()
                optimizer.step()
            on.append(armed())
            compiler = sys.modules["_hec_levers.compile"]
            inner = compiler.Variant.call if names == sets[0] else inner
            if spoil:
                compiler.Variant.call = lambda variant, module, args, kwargs: spoil(inner(variant, module, args, kwargs), module)
    compiler.Variant.call = inner
    return on, live, sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"]

both = {"bf16_autocast", "compile"}
for sets in (["bf16_autocast", "bf16_autocast,compile"], ["bf16_autocast,compile"]):
    on, live, graphs = play(sets)
    assert on[-1] == both and not live.unfit and graphs == 1, (on, live.unfit, graphs, {k: str(v) for k, v in live.judged.items()})
# its dropout draws otherwise: only without it the two are the same
torch.manual_seed(1)
on, live, graphs = play(["bf16_autocast", "bf16_autocast,compile"], lambda y, module: y * (1.5 if module[2].training else 1))
assert on[-1] == both and graphs == 2, (on, graphs, {k: str(v) for k, v in live.judged.items()})
on, live, graphs = play(["bf16_autocast", "bf16_autocast,compile"], lambda y, module: y * 1.5)
assert on[-1] == set() and live.judged["bf16_autocast,compile"].what == "outputs", (on, live.judged)
""")


def test_a_lever_that_fails_ends_nothing(run):
    """It is told in which order it failed, at once or later, and that no set with it is put in afterwards."""
    found, _ = run("""
sys.modules["_hec_levers.live"]
with levers("set_to_none,keep_memory") as said:
    module, = [cnn()]
    optimizer = sgd(module)
    train(module, optimizer, steps=2)
    lever = sys.modules["_hec_levers.set_to_none"]
    lever.apply = lambda lever: 1 / 0
    order("set_to_none")
    train(module, optimizer, steps=3)
    order("")
    train(module, optimizer, steps=2)
    order("keep_memory")
    train(module, optimizer, steps=2)
    sys.modules["_hec_levers.live"]._switcher.armed["keep_memory"].lever.failed("later")
    train(module, optimizer, steps=2)
    assert not armed()
    order("set_to_none,keep_memory")
    train(module, optimizer, steps=2)
    assert not armed()
    # one of several ranks does as the others do, whatever failed in it alone
    sys.modules["_hec_levers.live"]._switcher._is_alone = lambda: False
    order("keep_memory")
    train(module, optimizer, steps=2)
    assert armed() == {"keep_memory"}
assert said["set_to_none"] == ("failed", "ZeroDivisionError: division by zero"), said
""")
    answers = [name for name, _, _ in found.intervals if name.startswith(("switch/", "failed/"))]
    assert answers == ["failed/1", "switch/2", "switch/3", "failed/3", "failed/4", "switch/5"], answers


WRONG = """
class Kind:
    '''In the place of a lever: changes outputs or gradients of the module.'''
    def __init__(self, change):
        self.change = change
    def apply(self, lever):
        lever.on("1 module")
        self.handle = self.change(module)
    def revert(self):
        self.handle and self.handle.remove()
        self.handle = None

def outputs(change):
    return lambda module: module.register_forward_hook(lambda module, inputs, given: change(given))

def gradients(change):
    class Changed(torch.autograd.Function):
        @staticmethod
        def forward(context, value):
            return value.clone()
        @staticmethod
        def backward(context, gradient):
            return change(gradient)
    return outputs(Changed.apply)

def play(kind, changes, names="tf32", make=cnn, steps=6):
    '''A training in which a set is ordered after two steps: what it comes to, and whether the set was put in.'''
    global module
    module = make()
    struct.pack_into("=Q", page, 0, 0)
    with levers(names):
        if kind:
            fake = Kind(kind)
            lever = sys.modules["_hec_levers." + names]
            lever.apply, lever.revert = fake.apply, fake.revert
        optimizer = sgd(module)
        losses = train(module, optimizer, steps=2)[0]
        order(names, changes)
        losses += train(module, optimizer, steps=steps)[0]
        switcher = sys.modules["_hec_levers.live"]._switcher
        return (losses, [value.clone() for value in module.state_dict().values()] + [torch.rand(3)]), armed(), switcher

def plain(make=cnn, steps=6):
    global module
    module = make()
    optimizer = sgd(module)
    losses = train(module, optimizer, steps=2)[0] + train(module, optimizer, steps=steps)[0]
    return losses, [value.clone() for value in module.state_dict().values()] + [torch.rand(3)]
"""


def test_a_set_that_computes_something_else_is_never_put_in(run):
    found, _ = run(WRONG + """
EXACT, LAST_BITS, DRAWS, NUMERICS = range(4)
right = plain()
kinds = [
    (outputs(lambda y: y * 0), NUMERICS, "outputs"),
    (outputs(lambda y: y * float("nan")), NUMERICS, "outputs"),
    (outputs(lambda y: y.clamp(-0.1, 0.1)), NUMERICS, "outputs"),
    (outputs(lambda y: y * 1.2), NUMERICS, "outputs"),
    (outputs(lambda y: y * 1.01), LAST_BITS, "outputs"),
    (outputs(lambda y: y * (1 + 1e-6)), EXACT, "outputs"),
    (outputs(lambda y: y.flip(0)), NUMERICS, "outputs"),
    (outputs(lambda y: F.dropout(y, 0.5)), NUMERICS, "outputs"),
    (outputs(lambda y: y + torch.randn_like(y)), NUMERICS, "outputs"),
    (outputs(lambda y: y[:2]), NUMERICS, "outputs"),
    (outputs(lambda y: y.detach() + 0 * y), NUMERICS, "gradients"),
    (outputs(lambda y: y.detach().requires_grad_()), NUMERICS, "gradients"),
    (gradients(lambda g: 0.7 * g), NUMERICS, "gradients"),
    (gradients(lambda g: 1.01 * g), LAST_BITS, "gradients"),
    (gradients(lambda g: g.abs()), NUMERICS, "gradients"),
    (gradients(lambda g: g.clamp(-1e-3, 1e-3)), NUMERICS, "gradients"),
    (gradients(lambda g: g * 2 * torch.rand_like(g)), NUMERICS, "gradients"),  # one that drops a third of 20 numbers may drop the small ones
    (lambda module: module[7].weight.register_hook(lambda g: 0 * g), NUMERICS, "gradients"),
    (lambda module: module[0].register_forward_hook(lambda m, i, y: y.detach()), NUMERICS, "gradients"),
    (lambda module: module[3].register_forward_hook(lambda m, i, y: y.round()), NUMERICS, "gradients"),
]
for i, (kind, changes, what) in enumerate(kinds):
    result, on, switcher = play(kind, changes)
    wrong = switcher.judged["tf32"]
    assert wrong is not None and wrong.what == what, (i, wrong, switcher.unfit)
    assert not on and same(right, result), i
    assert wrong.__traceback__ is None and not switcher.unfit
""")
    answers = [name for name, _, _ in found.intervals if name.startswith(("wrong/", "switch/"))]
    assert len(answers) == 20 and all(re.fullmatch(r"wrong/\d+/(outputs|gradients)/(inf|[0-9.e+-]+)", name) for name in answers), answers


def test_honest_sets_are_put_in(run):
    run(WRONG + """
for names, changes in (("tf32", 3), ("bf16_autocast", 3), ("channels_last", 2), ("set_to_none", 0), ("keep_memory", 0), ("cudnn_benchmark", 1)):
    result, on, switcher = play(None, changes, names)
    assert switcher.judged == {names: None} and on == {names}, (names, switcher.judged, switcher.unfit)
    assert switcher.unfit == ("its levers draw other random numbers" if names == "channels_last" else ""), (names, switcher.unfit)
""")


def test_fewer_bits_in_a_badly_conditioned_net(run):
    """Honest autocast is off by more there than a wrong lever is elsewhere: as far as rounding alone is, by so many bits. What is off by more
    is not put in, nor is what claims to be of more bits."""
    run(WRONG + """
def deep():
    torch.manual_seed(0)
    parts = [part for i in range(16) for part in (nn.Conv2d(16 if i else 3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))

for names, kind, put_in in (
    ("bf16_autocast", None, True),
    ("bf16_autocast", gradients(lambda g: g.abs()), False),
    ("tf32", lambda module: torch.nn.modules.module.register_module_forward_hook(
        lambda m, i, y: y.bfloat16().float() if isinstance(m, nn.Conv2d) else None), False),
):
    result, on, switcher = play(kind, 3, names, make=deep)
    wrong = switcher.judged[names]
    assert (wrong is None) == put_in and not switcher.unfit and on == ({names} if put_in else set()), (names, str(wrong), switcher.unfit)
shadow = sys.modules["_hec_levers.shadow"]
shadow.ROUNDED = 0
assert play(None, 3, "bf16_autocast", make=deep)[2].judged["bf16_autocast"].what == "gradients"
""")


def test_dropout_that_draws_elsewhere_in_half_precision(run):
    """As on a GPU: what it keeps is by chance, and not of the lever. Where it cannot be left out nothing is compared."""
    run(WRONG + """
class Elsewhere(nn.Dropout):
    def forward(self, x):
        return x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) > 0.3) / 0.7 if self.training and drawn else super().forward(x)

class By(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.3, self.training)

class Handle:
    def remove(self):
        global drawn
        drawn = False

def elsewhere(module):
    global drawn
    drawn = True
    return Handle()

def net():
    module = cnn()
    module[6] = kept()
    return module

drawn = False
for names, kept, wrong, unfit in (("bf16_autocast", lambda: Elsewhere(0.3), "", ""), ("tf32", lambda: Elsewhere(0.3), "outputs", ""),
                                  ("bf16_autocast", By, "", "its levers draw other random numbers")):
    result, on, switcher = play(elsewhere, 3, names, make=net)
    judged = switcher.judged[names]
    assert (judged.what if judged else "") == wrong and switcher.unfit == unfit, (names, str(judged), switcher.unfit)
    assert on == (set() if wrong else {names}) and module.training and module[6].training
""")


KEEPS = """
import random, collections
import numpy
class Keeps(nn.Module):
    '''Keeps all that a module may keep from call to call.'''
    class Box:
        pass
    def __init__(self):
        super().__init__()
        self.net = cnn()
        self.calls, self.seen, self.by_name, self.ids, self.box = 0, [], {"n": 0}, set(), Keeps.Box()
        self.queue = collections.deque()
        self.ordered = collections.OrderedDict(a=1)
        self.box.count, self.box.last = 0, torch.zeros(4)
        self.mean = torch.zeros(())
        self.register_buffer("total", torch.zeros(()))
    def forward(self, images):
        self.calls += 1
        self.seen.append(self.calls)
        self.queue.append(self.calls)
        self.by_name["n"] += 1
        self.ordered[self.calls] = 1
        self.ids.add(self.calls)
        self.box.count += 1
        self.box.last.copy_(images.sum((1, 2, 3)).detach())
        self.mean.mul_(0.9).add_(images.mean().detach())
        self.total += 1
        self.fresh = self.calls
        images += random.random() + numpy.random.rand() + torch.rand(())
        return self.net(images)
    def state(self):
        return (self.calls, self.seen, list(self.queue), self.by_name, self.ordered, self.ids, self.box.count, self.box.last.tolist(),
                self.mean.item(), self.total.item(), self.fresh, random.random(), numpy.random.rand())

def keeps():
    random.seed(0), numpy.random.seed(0)
    return Keeps()
"""


def test_all_is_put_back(run):
    """The program's module was called some times more, and nothing shows it."""
    run(WRONG + KEEPS + """
right = plain(keeps), module.state()
for kind, changes in ((None, 0), (outputs(lambda y: y * 2), 3)):
    result, on, switcher = play(kind, changes, "tf32", keeps)
    assert same(right[0], result) and right[1] == module.state(), (right[1], module.state())
    assert bool(kind) == bool(switcher.judged["tf32"]) and not switcher.unfit, switcher.unfit
    assert module.calls == 8
""")


def test_what_cannot_be_compared_is_not(run):
    """It goes on as it would without a comparison, and says why there was none."""
    run(WRONG + """
class Given(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.net, self.change = cnn(), change
    def forward(self, images, more=None):
        return self.change(self.net(images))
state = {"n": 0}
def drifts(y):
    state["n"] += 1
    return y * state["n"]
def raises(y):
    state["n"] += 1
    if state["n"] == 12:
        raise IndexError("called too often")
    return y
for change, why in ((drifts, "does not repeat itself"), (raises, "IndexError: called too often"), (lambda y: y + float("inf") * 0, "not finite")):
    state["n"] = 2 if change is drifts else 9
    result, on, switcher = play(None, 3, "tf32", lambda: Given(change))
    assert switcher.judged == {"tf32": None} and why in switcher.unfit and on == {"tf32"}, (why, switcher.unfit)
def hooked():
    module = cnn()
    module[7].weight.register_hook(lambda gradient: None)
    return module
result, on, switcher = play(None, 3, "tf32", hooked)
assert switcher.unfit == "its gradients have hooks" and on == {"tf32"}
""")


def test_an_exception_of_the_programs_handler_reaches_it(run):
    """Also where it comes in a call that the program did not make."""
    run(WRONG + """
import signal
class Late(Exception):
    pass
def late(number, frame):
    raise Late
signal.signal(signal.SIGALRM, late)
state = {"n": 0}
class Alarm(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = cnn()
    def forward(self, images):
        state["n"] += 1
        if state["n"] == 4:  # of the comparison: the program makes its own third call after it
            signal.raise_signal(signal.SIGALRM)
        return self.net(images)
try:
    play(None, 3, "tf32", Alarm)
    print("went on")
except Late:
    print("late")
sys.modules["_hec_levers"].revert()
assert state["n"] == 4
""")


INTERRUPTED = """
import random, signal
class Late(Exception):
    pass
def late(number, frame):
    raise Late
signal.signal(signal.SIGALRM, late)

class Interrupts:
    '''A signal at the n-th line that levers run.'''
    def __init__(self, at):
        self.at, self.lines = at, 0
    def __call__(self, frame, event, argument):
        if "/hec/levers/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                signal.raise_signal(signal.SIGALRM)
        return self

def play(names, at):
    '''A training that is interrupted in a switch or in the comparison before it, and goes on: what it comes to, and how many lines ran.'''
    module = cnn()
    struct.pack_into("=Q", page, 0, 0)
    seen, interrupts = 0, Interrupts(at)
    with levers(names) as said:
        optimizer = adamw(module)
        train(module, optimizer, steps=2, set_to_none=False)
        order(names, 0)
        sys.settrace(interrupts)
        try:
            train(module, optimizer, steps=1, set_to_none=False)
        except Late:
            seen = 1
        finally:
            sys.settrace(None)
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()), at
        for group in optimizer.param_groups:  # as a watchdog would go on: from what it knows
            group["lr"] = 0.01
        module.load_state_dict(cnn().state_dict())
        optimizer.load_state_dict(adamw(module).state_dict())
        order("")
        losses = train(module, optimizer, steps=3, set_to_none=False)[0]
        order(names, 0)
        losses += train(module, optimizer, steps=3, set_to_none=False)[0]
        on = armed()
    return (losses, [value.clone() for value in module.state_dict().values()] + [torch.rand(3)]), seen, interrupts.lines, on, said
"""


def test_an_interruption_at_any_line_is_the_programs(run):
    """A handler's exception reaches the program from every line of a switch and of the comparison; then all goes on as if it had not come."""
    run(INTERRUPTED + """
names = "set_to_none,keep_memory"
module = cnn()
optimizer = adamw(module)
train(module, optimizer, steps=3, set_to_none=False)
module.load_state_dict(cnn().state_dict())
optimizer.load_state_dict(adamw(module).state_dict())
losses = train(module, optimizer, steps=3, set_to_none=False)[0] + train(module, optimizer, steps=3, set_to_none=False)[0]
right = losses, [value.clone() for value in module.state_dict().values()] + [torch.rand(3)]
result, seen, lines, on, said = play(names, 0)
assert same(right, result) and not seen and on == set(names.split(",")) and lines > 200, (seen, on, lines)
drawn = random.Random(1)
for at in sorted({1, 2, 3, *(drawn.randrange(1, lines - 50) for _ in range(40))}):
    result, seen, _, on, said = play(names, at)
    assert seen and same(right, result) and on == set(names.split(",")), (at, seen, on)
    assert all(state != "failed" for state, _ in said.values()), (at, said)
    assert not modules.arounds and modules.before_call is None
""")


DEVICE = """
class Event:
    '''Of a device that takes a millisecond for each step, and a host that does not wait for it.'''
    clock = free_ns = 0
    def __init__(self, enable_timing):
        pass
    def record(self):
        Event.free_ns = self.ns = max(Event.free_ns, Event.clock) + 1000000
    def query(self):
        return Event.clock >= self.ns
    def synchronize(self):
        Event.clock = max(Event.clock, self.ns)
    def elapsed_time(self, other):
        return (other.ns - self.ns) * 1e-6

class Torch:
    class cuda:
        device, capturing = 0, False
        is_initialized = staticmethod(lambda: True)
        current_device = staticmethod(lambda: Torch.cuda.device)
        is_current_stream_capturing = staticmethod(lambda: Torch.cuda.capturing)
Torch.cuda.Event = Event

with levers("set_to_none"):
    pass
core, finished = (sys.modules["_hec_levers." + name] for name in ("core", "finished"))
real, told = (core.hooks.torch, core.hooks.now_ns), []
steps = finished.Finished(lambda unit, units, source, t_ns: told.append(t_ns) or 1)
def step(host_ns):
    Event.clock += host_ns
    steps.step(b"sample", 4.0, 1, Event.clock)
"""


def test_steps_are_told_when_the_device_has_finished_them(run):
    """However far the host is ahead; in their order; by the host's time where a stream cannot be marked."""
    run(DEVICE + """
core.hooks.torch, core.hooks.now_ns = Torch, lambda: Event.clock
try:
    for _ in range(20):  # ten times as fast as the device, which has been waited for once
        step(100000)
    at = steps.first.ns + 1000000
    assert told == [at] and steps.first_ns == steps.first.ns == 1100000, told
    steps.wait()
    assert told == [at + 1000000 * i for i in range(20)], told
    del told[:]
    for _ in range(5):  # slower than the device: it has been idle
        step(3000000)
    steps.wait()
    assert [b - a for a, b in zip(told, told[1:])] == [3000000] * 4, told
    del told[:]
    Torch.cuda.capturing = True
    step(500000)
    Torch.cuda.capturing, Torch.cuda.device = False, 1
    step(500000)
    assert told == [Event.clock - 500000, Event.clock]
    Torch.cuda.device, finished.WAITING_MOST = 0, 10
    for _ in range(100):
        step(1000)
    assert len(steps.waiting) <= 10 and sorted(told) == told and len(told) > 80
    pid = os.fork()
    if pid == 0:
        del told[:]
        step(1000)
        os._exit(told != [Event.clock])
    assert os.waitpid(pid, 0)[1] == 0
finally:
    core.hooks.torch, core.hooks.now_ns = real
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


def test_ranks_switch_before_the_same_step(run):
    """Each says what it has read; none waits; what they compute is what they compute without."""
    run("from ranks_common import *\n" + """
import random, threading, time
RANKS, FROM, DONE, END = 2048, 16, 4000, 4095
names = "set_to_none,keep_memory"
def hec():
    '''As src/act/live.c does it: it says from which step on, when all have read the order.'''
    turn = 0
    while not page[END]:
        order("" if turn % 3 == 2 else names if turn % 3 else "keep_memory", 0)
        said = [(0, 0)] * 2
        while any(read != number for read, _ in said) and not page[END]:
            time.sleep(0.001)
            said = [struct.unpack_from("=QQ", page, RANKS + 16 * rank) for rank in range(2)]
        since = max(step for _, step in said) + 2
        struct.pack_into("=Q", page, FROM, since)
        while min(page[DONE : DONE + 2]) <= since and not page[END]:  # the next order comes when this one was carried out
            time.sleep(0.001)
        turn += 1

def work(names, steps=120):
    drawn = random.Random(dist.get_rank())
    with levers(names) as said:
        module = DDP(net())
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
        generator, seen = torch.Generator().manual_seed(7 + dist.get_rank()), []
        for step in range(steps):
            optimizer.zero_grad(set_to_none=False)
            module(torch.randn(4, 64, generator=generator)).square().mean().backward()
            seen.append(sorted(armed()) if names else None)
            page[DONE + dist.get_rank()] = step
            optimizer.step()
            time.sleep(drawn.uniform(0, 0.004))
    return [weight.tolist() for weight in module.parameters()], seen

import time
plain = in_ranks(lambda rank: work(""))
hecs = threading.Thread(target=hec)
hecs.start()
one, other = in_ranks(lambda rank: work(names))
page[END] = 1
hecs.join()
assert one[1] == other[1], [(i, a, b) for i, (a, b) in enumerate(zip(one[1], other[1])) if a != b]
assert len({str(on) for on in one[1]}) == 3 and one[0] == other[0] == plain[0][0]
""")


def test_the_table_and_the_modules_agree():
    """`live` of hec levers is LIVE of the module."""
    rows = re.findall(r'HEC_LEVER_ROW\(\w+, "(\w+)", TORCH.*?"[^"]*",\s*([A-Z0-9()_| \n]*?),\s*"', (SOURCE / "src/act/levers.def").read_text(), re.S)
    assert len(rows) > 20
    for name, answers in rows:
        module = SOURCE / "python/hec/levers" / f"{name}.py"
        live = module.exists() and "\nLIVE = True\n" in module.read_text()
        assert live == ("LIVE" in answers.split(" | ")), (name, answers)
