"""What the programs of test_levers_ranks.py share: ranks of one job in forks of the program, on gloo."""

import os
import pickle
import tempfile

from levers_common import *  # noqa: F401,F403
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP



def in_ranks(work, count=2):
    """[work(rank), ...], each in a process of its own."""
    meet = tempfile.mktemp()
    ends = []
    for rank in range(count):
        read, write = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                dist.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=count)
                result = work(rank)
                with open(write, "wb") as file:
                    pickle.dump(result, file)
                dist.barrier()
                code = 0
            finally:
                if code:
                    import traceback

                    traceback.print_exc()
                os._exit(code)
        os.close(write)
        ends.append(read)
    results = []
    for read in ends:
        with open(read, "rb") as file:
            results.append(pickle.loads(file.read() or pickle.dumps("failed")))
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return results


def net(layers=6, width=64):
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])


def ddp(names, work, model=net, **options):
    """What work(module) returns under levers that are there when DistributedDataParallel is made, and what they said."""
    with levers(names) as said:  # noqa: F405
        result = work(DDP(model(), **options))
    return result, said


def accumulate(passes=4, steps=8, rank=None, between=None, before_step=None, last=None, width=64, skip=()):
    """A loop of so many passes a step (the last one has `last`), of which some are left out, that returns losses and weights."""

    def work(module):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
        generator = torch.Generator().manual_seed(7 + dist.get_rank())
        losses = []
        for step in range(steps):
            count = last if last and step == steps - 1 else passes
            for part in range(count):
                loss = module(torch.randn(4, width, generator=generator)).square().mean() / passes
                loss.backward()
                losses.append(loss.item())
                if between and part < count - 1:
                    between(module, step)
            if before_step:
                before_step(module)
            if step not in skip:
                optimizer.step()
            optimizer.zero_grad()
        return losses, [weight.detach().clone() for weight in module.parameters()]

    return work


def near(one, other, by=1e-6):
    return all(abs(a - b) <= by * max(1, abs(b)) for a, b in zip(one[0], other[0])) and all(
        torch.allclose(a, b, atol=by, rtol=1e-4) for a, b in zip(one[1], other[1])
    )
