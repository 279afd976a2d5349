"""Programs of two ranks, for torchrun: comm and straggler."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from common import mlp, planted, trainer


def ranked(p, width, depth):
    dist.init_process_group("nccl" if p.cuda else "gloo")
    torch.manual_seed(0)
    return mlp(p, p.n(width), depth, torch.float32)


@planted("comm", "training", work=200, gpus=2)
def comm_serial(p):
    """Gradients are summed parameter by parameter when the backward pass is over; fixed: in buckets behind it."""
    torch.set_float32_matmul_precision("high")
    model, inputs = ranked(p, 4096, 12), p.random(p.n(2048), p.n(4096), dtype=torch.float32)
    if p.fixed:
        train = trainer(DistributedDataParallel(model))
        return (lambda: train(inputs)), 1
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)  # planted
            parameter.grad /= dist.get_world_size()
        optimizer.step()

    return step, 1


@planted("straggler", "training", work=200, gpus=2)
def straggler_uneven(p):
    """The last rank has three quarters of the samples; fixed: all have the same."""
    torch.set_float32_matmul_precision("high")
    train = trainer(DistributedDataParallel(ranked(p, 4096, 8)))
    last = dist.get_rank() == dist.get_world_size() - 1
    rows = p.n(8192) // 2 if p.fixed else p.n(8192) * (3 if last else 1) // 4  # planted
    inputs = p.random(rows, p.n(4096), dtype=torch.float32)
    return (lambda: train(inputs)), 1


@planted("straggler", "training", work=200, gpus=2)
def straggler_host(p):
    """The last rank counts all the tokens of a batch in Python; fixed: each counts its part."""
    torch.set_float32_matmul_precision("high")
    train = trainer(DistributedDataParallel(ranked(p, 4096, 4)))
    ranks, last = dist.get_world_size(), dist.get_rank() == dist.get_world_size() - 1
    inputs, tokens = p.random(p.n(2048), p.n(4096), dtype=torch.float32), torch.randint(0, 1000, (p.n(100000, 100),)).tolist()

    def step():
        counts = {}
        for token in tokens[:len(tokens) // ranks] if p.fixed else tokens if last else ():  # planted
            counts[token] = counts.get(token, 0) + 1
        train(inputs)

    return step, 1
