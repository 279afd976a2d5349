"""Jobs of two ranks with one inefficiency each, for torchrun: `program.py CASE [--fixed] --seconds N` trains as a user's program would;
`program.py --measure CASE,CASE --turns N` takes turns of each case as it is and fixed, and prints seconds and joules a step of both GPUs.
Under `hec run --with LEVER`, `program.py CASE --turned` takes turns of the case made with the lever and made without it, in one job, and
prints the losses of the first steps of both as well.

--tiny: on the CPU, to try the logic (no joules)."""
import argparse
import contextlib
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "planted"))
from serve import Counter, Ranks  # noqa: E402

CASES = {}  # name -> function(setup): a step
TURN_S, WARM_STEPS, PROBE_STEPS = 0.7, 6, 10
LOSS_STEPS = 20  # of each arm of --turned, whose losses are compared; it learns no more after them
LEARNS_RATE = 0.02  # divided by the layers: the losses fall to a part, and none diverges


class Setup:
    """learns: weights and rate by which the loss of a deep model moves, so that equal losses say something."""

    def __init__(self, fixed, tiny, learns=False):
        self.fixed, self.tiny, self.learns = fixed, tiny, learns
        self.optimizers = []
        self.rank, self.last = dist.get_rank(), dist.get_rank() == dist.get_world_size() - 1
        self.device = "cpu" if tiny else "cuda"

    def layers(self, width, depth, bias=True):
        torch.manual_seed(0)
        width, depth = (8, 2) if self.tiny else (width, depth)
        layers = [nn.Sequential(nn.Linear(width, width, bias=bias), nn.ReLU()) for _ in range(depth)]
        for layer in layers if self.learns else ():
            nn.init.kaiming_normal_(layer[0].weight, nonlinearity="relu")
        return nn.Sequential(*layers).to(self.device, torch.float32 if self.tiny else torch.bfloat16)

    def model(self, width, depth, bias=True, **options):
        model = DistributedDataParallel(self.layers(width, depth, bias), gradient_as_bucket_view=True, **options)
        return model, self.optimizer(model, depth)

    def optimizer(self, model, depth, fused=True):
        rate = LEARNS_RATE / depth if self.learns else 1e-4
        self.optimizers.append(torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, fused=fused and not self.tiny))
        return self.optimizers[-1]

    def learn_no_more(self):
        for group in (group for optimizer in self.optimizers for group in optimizer.param_groups):
            group["lr"] = 0.0

    def mesh(self):
        from torch.distributed.device_mesh import init_device_mesh

        return init_device_mesh(self.device, (dist.get_world_size(),))

    def inputs(self, rows, width):
        shape = (4, 8) if self.tiny else (rows, width)
        return torch.randn(*shape, device=self.device, dtype=torch.float32 if self.tiny else torch.bfloat16)

    def step(self, model, optimizer, inputs):
        """Of a case that has nothing else in it."""

        def step():
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step


def case(function):
    CASES[function.__name__] = function
    return function


@case
def healthy(p):
    """Large products, gradients in buckets behind the backward pass."""
    model, optimizer = p.model(4096, 8)
    return p.step(model, optimizer, p.inputs(8192, 4096))


@case
def late(p):
    """The last rank sleeps before its optimizer steps; fixed: it does not."""
    model, optimizer = p.model(4096, 8)
    inputs = p.inputs(8192, 4096)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        if p.last and not p.fixed:
            time.sleep(0.02)  # planted
        optimizer.step()

    return step


@case
def sharded(p):
    """Each layer is sharded, and gathered for the forward and for the backward pass; fixed: it stays whole between them."""
    from torch.distributed.fsdp import fully_shard

    model, mesh = p.layers(2048, 24), p.mesh()
    for part in [*model, model]:
        fully_shard(part, mesh=mesh, reshard_after_forward=not p.fixed)
    optimizer = p.optimizer(model, 24, fused=False)  # PyTorch has no fused step of SGD for weights that fully_shard has sharded
    return p.step(model, optimizer, p.inputs(1024, 2048))


@case
def sharded_by_class(p):
    """The same by FullyShardedDataParallel."""
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

    strategy = ShardingStrategy.SHARD_GRAD_OP if p.fixed else ShardingStrategy.FULL_SHARD
    device = torch.device("cpu") if p.tiny else torch.device("cuda", torch.cuda.current_device())

    def shard(part):
        return FullyShardedDataParallel(part, sharding_strategy=strategy, device_id=device)

    model = p.layers(2048, 24)
    for at, part in enumerate(model):
        model[at] = shard(part)
    model = shard(model)
    return p.step(model, p.optimizer(model, 24), p.inputs(1024, 2048))


class Samples(torch.utils.data.Dataset):
    """Each sample is counted, on one rank ten times as long."""

    def __init__(self, p):
        self.times = 60 if p.last and not p.fixed else 2
        self.p, self.rows = p, torch.randint(0, 1000, (2000,)).tolist()

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        total = 0
        for _ in range(self.times):
            for token in self.rows:  # planted
                total += token  # planted
        return torch.full((4,), float(total))


@case
def data(p):
    """The last rank makes its batches in more work; fixed: it does as much as the others."""
    model, optimizer = p.model(4096, 8)
    inputs = p.inputs(8192, 4096)
    batches = iter(torch.utils.data.DataLoader(Samples(p), batch_size=4, num_workers=0))

    def step():
        batch = next(batches)
        optimizer.zero_grad()
        (model(inputs).square().mean() * float(batch[0, 0] > -1)).backward()
        optimizer.step()

    return step


@case
def accumulate(p):
    """Sixteen backward passes a step synchronise all gradients each time; fixed: the last one alone does."""
    model, optimizer = p.model(4096, 8)
    inputs, parts = p.inputs(1024, 4096), 16

    def step():
        optimizer.zero_grad()
        for part in range(parts):
            local = p.fixed and part < parts - 1
            with model.no_sync() if local else contextlib.nullcontext():
                model(inputs).square().mean().backward()  # planted
        optimizer.step()

    return step


@case
def uneven(p):
    """Steps of two and of three backward passes in turn; not for --measure."""
    model, optimizer = p.model(4096, 8)
    inputs, count = p.inputs(1024, 4096), [0]

    def step():
        optimizer.zero_grad()
        for _ in range(2 + count[0] % 2):
            model(inputs).square().mean().backward()
        count[0] += 1
        optimizer.step()

    return step


@case
def buckets(p):
    """Many small layers, a collective each; fixed: DistributedDataParallel's own buckets."""
    model, optimizer = p.model(512, 200, bias=False, bucket_cap_mb=25 if p.fixed else 0.1)  # planted
    return p.step(model, optimizer, p.inputs(2048, 512))


def finish(tiny):
    if not tiny:
        torch.cuda.synchronize()


def train(name, options):
    """As a user's program: nothing waits for the device but every fiftieth step, and at the end."""
    step = CASES[name](Setup(options.fixed, options.tiny))
    for _ in range(WARM_STEPS):
        step()
    finish(options.tiny)
    begin = time.perf_counter()
    most = torch.tensor([0], device="cpu" if options.tiny else "cuda")
    count = 0
    while not int(most):
        for _ in range(50):
            step()
            count += 1
        most += time.perf_counter() - begin > options.seconds
        dist.all_reduce(most)  # all ranks end at once
    finish(options.tiny)
    seconds = time.perf_counter() - begin
    say(case=name, fixed=options.fixed, steps=count, seconds=seconds)


def in_turns(arms, options):
    """Seconds and joules a step of each arm, in each turn: they change who comes first."""
    ranks = Ranks(dist)
    counter = None if options.tiny else Counter(ranks.rank)

    def work(arm, steps):
        ranks.together()
        start = time.perf_counter()
        for _ in range(steps):
            arm()
        finish(options.tiny)
        return time.perf_counter() - start

    turns = []
    counts = []
    for arm in arms:
        work(arm, WARM_STEPS)
        counts.append(ranks.told(max(5, int(TURN_S / (work(arm, PROBE_STEPS) / PROBE_STEPS)))))
    for number in range(options.turns):
        turn = [None] * len(arms)
        for at in sorted(range(len(arms)), reverse=number % 2):
            arm, steps = arms[at], counts[at]
            seconds, joules = counter.of(lambda arm=arm, steps=steps: work(arm, steps)) if counter else (work(arm, steps), None)
            joules = ranks.summed(joules)
            turn[at] = [seconds / steps, None if joules is None else joules / steps]
        turns.append(turn)
    return turns


def say(**words):
    if dist.get_rank() == 0:
        print(json.dumps(words), flush=True)


def measure(name, options):
    say(measured=name, turns=in_turns([CASES[name](Setup(fixed, options.tiny)) for fixed in (False, True)], options))


def turned(name, options):
    """A lever of this kind is in what it made: once it is taken out, that stays, and what is made then is as the program says."""
    levers, arms, losses = sys.modules["_hec_levers"], [], []
    for lever in (True, False):
        if not lever:
            levers.revert()
        setup = Setup(options.fixed, options.tiny, learns=True)
        arms.append(CASES[name](setup))
        losses.append([arms[-1]().item() for _ in range(LOSS_STEPS)])
        setup.learn_no_more()
    losses.reverse()
    say(turned=name, turns=in_turns(arms[::-1], options), losses=losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", choices=CASES)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--seconds", type=float, default=7)
    parser.add_argument("--measure", metavar="CASES")
    parser.add_argument("--turned", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if not options.tiny:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo" if options.tiny else "nccl")
    if options.measure:
        for name in options.measure.split(","):
            measure(name, options)
            if not options.tiny:
                torch.cuda.empty_cache()
    elif options.turned:
        turned(options.case, options)
    else:
        train(options.case, options)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
