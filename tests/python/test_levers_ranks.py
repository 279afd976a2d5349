"""Levers that act in all ranks of a job or in none: two ranks on gloo, in forks of one program."""

import pytest


@pytest.fixture
def run(observe, torch_python, source):
    """Runs a program of ranks_common.py; what its ranks told."""

    def run(code):
        done = observe.start(torch_python[0], "from ranks_common import *\n" + code, options=("-W", "ignore"),
                             HEC_LEVERS="none", PYTHONPATH=str(source / "tests/python"))  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == "done\n", done.stderr
        return observe.listener.found()

    return run


SYNC_ONCE = """
import _hec_hooks.parts as parts
from torch.nn.parallel import distributed as module_of_ddp
before = DDP.__init__, DDP.forward

def locals_of(module, step):  # between passes: whether the ranks have other gradients, without a look at weight.grad
    held = torch._C._TensorBase.grad.__get__(next(module.parameters())).flatten()[:1].clone()
    both = [torch.zeros(1), torch.zeros(1)]
    dist.all_gather(both, held)
    differ.setdefault(step, set()).add(bool(both[0] != both[1]))

def work(rank):
    global differ
    plain, _ = ddp("none", accumulate(between=lambda module, step: None))
    differ = {}
    once, said = ddp("sync_once", accumulate(between=locals_of))
    assert near(once, plain) and len(once[0]) == 32
    # four steps to learn, one to compare, three with it
    assert differ == {0: {False}, 1: {False}, 2: {False}, 3: {False}, 4: {False}, 5: {True}, 6: {True}, 7: {True}}, differ
    state, text = said["sync_once"]
    assert state == "on" and text.startswith("9 of 12 passes kept their gradients in their rank; gradients of a step, compared"), text
    assert float(text.rpartition(" ")[2]) < 1e-6, text
    assert "grad" not in nn.Parameter.__dict__ and (DDP.__init__, DDP.forward) == before
    assert parts.keeps is parts.keeps_none

    # the last step has fewer passes: the ranks' gradients become the mean before they are clipped, or used
    clip = lambda module: nn.utils.clip_grad_norm_(module.parameters(), 0.1)
    for before_step in (None, clip):
        plain, _ = ddp("none", accumulate(last=2, before_step=before_step))
        once, said = ddp("sync_once", accumulate(last=2, before_step=before_step))
        assert near(once, plain) and said["sync_once"][0] == "on" and "8 of 10 passes" in said["sync_once"][1], said

    # a step is left out, as by a scaler that finds no scale: while it is learned, and later
    plain, _ = ddp("none", accumulate(steps=10, skip=(2, 7)))
    once, said = ddp("sync_once", accumulate(steps=10, skip=(2, 7)))
    assert near(once, plain) and said["sync_once"][0] == "on" and said["sync_once"][1].startswith("12 of 16 passes"), said
    return [weight.tolist() for weight in once[1]]

one, other = in_ranks(work)
assert one == other
print("done")
"""


def test_passes_that_accumulate_are_synchronised_once(run):
    run(SYNC_ONCE)


REFUSED = """
def read(module, step):
    next(module.parameters()).grad.norm()

def read_by_one(module, step):
    dist.get_rank() == 1 and read(module, step)

def uneven(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(8):
        for part in range(2 + step % 2):
            module(torch.ones(4, 64)).mean().backward()
        optimizer.step()

def own(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(8):
        with module.no_sync():
            module(torch.ones(4, 64)).mean().backward()
        module(torch.ones(4, 64)).mean().backward()
        optimizer.step()

def squared(module):  # what the program makes of each pass is no sum
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(8):
        for part in range(2):
            module(torch.randn(4, 64)).mean().backward()
            raw = [torch._C._TensorBase.grad.__get__(weight) for weight in module.parameters()]
            for grad in raw:
                grad.mul_(0.5)
        optimizer.step()
        optimizer.zero_grad()

def hooked(module):
    module.register_comm_hook(None, lambda state, bucket: made(bucket))
    return accumulate()(module)

def made(bucket):
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future

def frozen(module):  # PyTorch itself raises then, as it would without the lever
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for step in range(10):
        if step == 7:
            next(module.parameters()).requires_grad_(False)
        for part in range(2):
            try:
                module(torch.ones(4, 64)).mean().backward()
            except RuntimeError:
                return step
        optimizer.step()

CASES = (
    (accumulate(between=read), {}, "the program reads gradients between passes"),
    (accumulate(between=read_by_one), {}, "the program reads gradients between passes (rank 1)", "the program reads gradients between passes"),
    (uneven, {}, "steps have 2 and 3 passes"),
    (squared, {}, "gradients come out otherwise: by "),
    (hooked, {}, "the program has a hook of its own for its gradients"),
    (accumulate(steps=3), {}, "the program makes no DistributedDataParallel"),
    (accumulate(), {"static_graph": True}, "its DistributedDataParallel is made with static_graph"),
    (accumulate(), {"find_unused_parameters": True}, "its DistributedDataParallel is made with find_unused_parameters"),
)

def work(rank):
    for case, options, *why in CASES:
        found, said = ddp("sync_once", case, **options)
        assert said["sync_once"][0] == "nothing" and said["sync_once"][1].startswith(why[rank % len(why)]), (said, why)
    for case in (own, accumulate(passes=1)):
        assert ddp("sync_once", case)[1]["sync_once"] == ("already", "gradients are synchronised once a step")
    assert ddp("none", frozen)[0] == 7 == ddp("sync_once", frozen)[0]
    # one rank alone reads, once it is on: that is what it gets, and no rank waits for ever
    def late(module, step):
        step == 6 and dist.get_rank() == 0 and read(module, step)
    sys.modules["_hec_levers.sync_once"].READ_WAIT_S = 0.05
    plain, _ = ddp("none", accumulate(steps=14, between=late))
    once, said = ddp("sync_once", accumulate(steps=14, between=late))
    assert near(once, plain)
    assert said["sync_once"][0] == "failed" and said["sync_once"][1].startswith("a rank read gradients between passes"), said

in_ranks(work)
print("done")
"""


def test_sync_once_is_refused_in_all_ranks(run):
    run(REFUSED)


CONSTRUCTED = """
wide = lambda: net(layers=40, width=128)  # 2.5 MB in 80 weights
small = {"bucket_cap_mb": 0.1}

def asked(names, **options):
    return ddp(names, accumulate(passes=1, steps=4, width=128), model=wide, **options)

def work(rank):
    plain, _ = asked("none", **small)
    found, said = asked("ddp_bucket", **small)
    assert near(found, plain)
    state, text = said["ddp_bucket"]
    buckets, without = int(text.split()[0]), int(text.split()[-3])
    assert state == "on" and text.endswith(" without it") and "at most 25 MB" in text and buckets <= 2 and without >= 10, said
    assert asked("ddp_bucket=25")[1]["ddp_bucket"] == ("already", "buckets of 25 MB")
    assert asked("ddp_bucket=100")[1]["ddp_bucket"][0] == ("nothing" if VERSION < (2, 1) else "on")
    assert asked("ddp_bucket=100", bucket_cap_mb=50)[1]["ddp_bucket"][1].endswith("either way")

    found, said = asked("ddp_bucket_view", **small)
    assert same(found, plain) and said["ddp_bucket_view"] == ("on", "80 of 80 gradients lie in buckets"), said
    assert asked("ddp_bucket_view", gradient_as_bucket_view=True)[1]["ddp_bucket_view"][0] == "already"

    # all or none: other values
    found, said = asked(("ddp_bucket=1", "ddp_bucket=2")[rank], **small)
    assert same(found, plain)
    assert said["ddp_bucket"] == ("nothing", "ranks differ: bucket_cap_mb=1 in rank 0, bucket_cap_mb=2 in rank 1"), said
    # one that cannot: the other does not either
    options = {"gradient_as_bucket_view": rank == 1}
    said = asked("ddp_bucket_view", **options)[1]["ddp_bucket_view"]
    assert said == (("nothing", "gradients lie in the buckets (rank 1)"), ("already", "gradients lie in the buckets"))[rank], said
    # several together
    found, said = asked("ddp_bucket,ddp_bucket_view,sync_once", **small)
    assert near(found, plain) and [said[name][0] for name in said] == ["on", "on", "already"], said

    # half precision on the way
    found, said = asked("ddp_fp16_hook", **small)
    assert not same(found, plain) and near(found, plain, 1e-3)
    assert said["ddp_fp16_hook"][0] == "on" and said["ddp_fp16_hook"][1].endswith(" buckets of gradients sent in fp16"), said
    said = asked("ddp_bf16_hook", **small)[1]["ddp_bf16_hook"]
    assert said[0] == ("on" if VERSION >= (2, 11) else "nothing"), said
    half = lambda: wide().double()
    assert ddp("ddp_fp16_hook", lambda module: None, model=half)[1]["ddp_fp16_hook"] == ("nothing", "gradients are float64")

    # the program's own hook comes later: it is the one
    def hooked(module):
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        module.register_comm_hook(module.process_group, default_hooks.allreduce_hook)
        return accumulate(passes=1, steps=4, width=128)(module)
    found, said = ddp("ddp_fp16_hook", hooked, model=wide, **small)
    assert near(found, plain) and said["ddp_fp16_hook"] == ("nothing", "the program has a hook of its own"), said
    # a rank that was not asked for it at all: the other waits once
    ranks = sys.modules["_hec_levers.ranks"]
    ranks.agree.__defaults__ = (*ranks.agree.__defaults__[:-1], 0.2)
    for turn in range(2):
        found, said = asked(("ddp_bucket", "none")[rank], **small)
        assert same(found, plain) and said == ({"ddp_bucket": ("nothing", ranks.APART)}, {})[rank], said
        dist.barrier()
        ranks.agree.__defaults__ = (*ranks.agree.__defaults__[:-1], 60)
    return (DDP.__init__ is made, DDP.register_comm_hook is hook)

made, hook = DDP.__init__, DDP.register_comm_hook
assert in_ranks(work) == [(True, True)] * 2
print("done")
"""


def test_levers_of_the_constructor(run):
    run(CONSTRUCTED)


FSDP = """
import copy

def work(rank):
    try:
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    except Exception:
        for name in ("forward_prefetch", "limit_all_gathers"):
            with levers(name) as said:
                pass
            assert said[name][0] == "nothing" and said[name][1].startswith("FullyShardedDataParallel does not load: "), said
        return
    def train(names, **options):
        model = net()
        with levers(names) as said:
            for at in (1, 3):
                model[at] = FSDP(model[at], device_id=torch.device("cpu"), **options)
            module = FSDP(model, device_id=torch.device("cpu"), **options)
            result = accumulate(passes=1, steps=3)(module)
        return result, said
    plain, _ = train("none")
    for name, options in (("forward_prefetch", {}), ("limit_all_gathers", {"limit_all_gathers": False})):
        found, said = train(name, **options)
        assert same(found, plain) and said[name][0] == "on" and said[name][1].endswith(", in 3 modules"), said
        assert train(name, **{name: True})[1][name][0] == "already"

in_ranks(work)
print("done")
"""


def test_levers_of_fsdp(run, torch_python):
    if torch_python[1] >= (2, 0) and torch_python[1] < (2, 2):
        pytest.skip("its FSDP needs a GPU")
    run(FSDP)


KEPT = """
def work(rank):
    try:
        from torch.distributed import fsdp
        FSDP, whole = fsdp.FullyShardedDataParallel, fsdp.ShardingStrategy.SHARD_GRAD_OP
    except Exception:
        with levers("keep_gathered") as said:
            pass
        assert said["keep_gathered"][0] == "nothing" and "does not load" in said["keep_gathered"][1], said
        return
    def by_class(model, **options):
        for at in (1, 3):
            model[at] = FSDP(model[at], device_id=torch.device("cpu"), **options)
        return FSDP(model, device_id=torch.device("cpu"), **options)
    def by_function(model, **options):
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.device_mesh import init_device_mesh
        mesh = init_device_mesh("cpu", (2,))
        for at in (1, 3):
            fully_shard(model[at], mesh=mesh, **options)
        return fully_shard(model, mesh=mesh, **options)
    def train(names, way, **options):
        with levers(names) as said:
            module = way(net(), **options)
            result = accumulate(passes=1, steps=3)(module)
        return result, said
    def check(way, has, given_up):
        plain, _ = train("none", way, **given_up)
        found, said = train("keep_gathered", way, **given_up)
        assert same(found, plain) and said["keep_gathered"] == ("on", "3 parts stay whole until the backward pass"), said
        assert train("keep_gathered", way, **has)[1]["keep_gathered"][0] == "already"
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if not (2, 0) <= version < (2, 2):  # whose class needs a GPU
        check(by_class, {"sharding_strategy": whole}, {})
    if hasattr(fsdp, "fully_shard"):
        made = fsdp.fully_shard
        check(by_function, {"reshard_after_forward": False}, {"reshard_after_forward": True})
        assert fsdp.fully_shard is made and made.state
    with levers("keep_gathered") as said:
        pass
    assert said["keep_gathered"] == ("nothing", "the program shards no model"), said

in_ranks(work)
print("done")
"""


def test_lever_keep_gathered(run):
    run(KEPT)
