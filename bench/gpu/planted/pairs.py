"""Programs with two planted inefficiencies each. Written after the rules and used for no figure of theirs."""
import os
import tempfile

import torch
from torch import nn

from common import convnet, mlp, planted, trainer, transformer
from starved import Images
from torch.utils.data import DataLoader


def batches(p, side, size):
    """Decoded in the loop's own process, or by workers ahead of it."""
    loader = DataLoader(Images(p.n(side, 32), lambda image: image), batch_size=p.n(size, 2), num_workers=p.n(12, 2) if p.fixes("data") else 0,
                        pin_memory=p.cuda)
    return iter(loader)


def to_device(p, batch):
    return batch.to(p.device, non_blocking=True).bfloat16() / 255


def read_norms(p, weights, log):
    """A number a parameter, each waited for; fixed: kept on the device."""
    if p.fixes("sync"):
        log[:] = [torch.stack(torch._foreach_norm([weight.grad for weight in weights]))]
        return
    log[:] = [weight.grad.norm().item() for weight in weights]  # planted


def count(p, tokens):
    if p.fixes("host"):
        return torch.bincount(tokens, minlength=1000)
    counts = {}
    for token in tokens.tolist():  # planted
        counts[token] = counts.get(token, 0) + 1  # planted
    return counts


def tokens_of(p, number):
    return torch.randint(0, 1000, (p.n(number, 64),))


def saver(p, model, every):
    folder, done = tempfile.TemporaryDirectory(), []

    def save():
        done.append(1)
        if len(done) % (p.n(200, 2) if p.fixes("checkpoint") else every) == 0:
            torch.save(model.state_dict(), os.path.join(folder.name, "weights.pt"))  # planted

    return save


@planted("data+sync", "training", work=60)
def pair_data_sync(p):
    """Images decoded in the loop, and the norms of all gradients read."""
    model, log, ahead = convnet(p), [], batches(p, 128, 64)
    train, weights = trainer(model), list(model.parameters())

    def step():
        train(to_device(p, next(ahead)))  # planted
        for _ in range(4):
            read_norms(p, weights, log)

    return step, 1


@planted("host+sync", "training", work=60)
def pair_host_sync(p):
    """Counting in Python, and a norm a parameter read."""
    model, log, inputs, tokens = mlp(p, p.n(2048), 24), [], p.random(p.n(4096), p.n(2048)), tokens_of(p, 60000)
    train, weights = trainer(model), list(model.parameters())

    def step():
        train(inputs)
        read_norms(p, weights, log)
        count(p, tokens)

    return step, 1


@planted("host+launch", "inference", work=60)
def pair_host_launch(p):
    """A small model, launch by launch, and counting in Python."""
    model, inputs, tokens = transformer(p, p.n(256), 8, 4).train(), p.random(1, 16, p.n(256)), tokens_of(p, 40000)
    forward = torch.no_grad()(lambda: model(inputs))
    forward = p.graphed(forward) if p.fixes("launch") else forward

    def step():
        forward()  # planted
        count(p, tokens)

    return step, 1


@planted("copy+host", "training", work=60)
def pair_copy_host(p):
    """Batches from ordinary memory, and counting in Python."""
    train, tokens = trainer(convnet(p, 16, 2)), tokens_of(p, 100000)
    images = [torch.randn(p.n(256, 2), 3, p.n(128, 32), p.n(128, 32)) for _ in range(2)]
    images = [p.host(batch) for batch in images] if p.fixes("copy") else images
    done = []

    def step():
        done.append(1)
        train(images[len(done) % 2].to(p.device, non_blocking=p.fixes("copy")).bfloat16())  # planted
        count(p, tokens)

    return step, 1


@planted("checkpoint+host", "training", work=60)
def pair_checkpoint_host(p):
    """Weights written every 5 steps, and counting in Python."""
    model, inputs, tokens = mlp(p, p.n(2048), 8), p.random(p.n(4096), p.n(2048)), tokens_of(p, 120000)
    train, save = trainer(model), saver(p, model, 5)

    def step():
        train(inputs)
        count(p, tokens)
        save()

    return step, 1


@planted("checkpoint+data", "training", work=60)
def pair_checkpoint_data(p):
    """Images decoded in the loop, and weights written every 5 steps."""
    model, ahead = convnet(p, 128), batches(p, 96, 64)
    train, save = trainer(model), saver(p, model, 5)

    def step():
        train(to_device(p, next(ahead)))  # planted
        save()

    return step, 1


@planted("precision+data", "training", work=60)
def pair_precision_data(p):
    """Matrix products in full fp32, of batches that are made in the loop."""
    torch.set_float32_matmul_precision("high" if p.fixes("precision") else "highest")  # planted
    ahead, width = batches(p, 96, 64), p.n(4096)
    train, weights = trainer(mlp(p, width, 6, torch.float32)), p.random(p.n(27648, 3072), width, dtype=torch.float32) / 100

    def step():
        rows = to_device(p, next(ahead)).float().flatten(1) @ weights  # planted
        train(rows.repeat(p.n(32, 1), 1))

    return step, 1


@planted("precision+sync", "training", work=60)
def pair_precision_sync(p):
    """Matrix products in full fp32, and a norm a parameter read."""
    torch.set_float32_matmul_precision("high" if p.fixes("precision") else "highest")  # planted
    model, log, inputs = mlp(p, p.n(2048), 24, torch.float32), [], p.random(p.n(512), p.n(2048), dtype=torch.float32)
    train, weights = trainer(model), list(model.parameters())

    def step():
        train(inputs)
        read_norms(p, weights, log)

    return step, 1


@planted("alloc+host", "training", work=60)
def pair_alloc_host(p):
    """The allocator's cache given back at each step, and counting in Python."""
    train, inputs, tokens = trainer(mlp(p, p.n(2048), 16)), p.random(p.n(4096), p.n(2048)), tokens_of(p, 60000)

    def step():
        train(inputs)
        count(p, tokens)
        if p.cuda and not p.fixes("alloc"):
            torch.cuda.empty_cache()  # planted

    return step, 1


@planted("memory+host", "inference", work=60)
def pair_memory_host(p):
    """A GELU written by hand, and counting in Python."""
    inputs, tokens = p.random(p.n(8192), p.n(16384)), tokens_of(p, 60000)

    @torch.no_grad()
    def step():
        for _ in range(4):
            if p.fixes("memory"):
                nn.functional.gelu(inputs, approximate="tanh")
            else:
                0.5 * inputs * (1 + torch.tanh(0.79788456 * (inputs + 0.044715 * inputs * inputs * inputs)))  # planted
        count(p, tokens)

    return step, 1


@planted("copy+sync", "training", work=60)
def pair_copy_sync(p):
    """Batches from ordinary memory, and a norm a parameter read."""
    model, log, done = convnet(p, 16, 4), [], []
    train, weights = trainer(model), list(model.parameters())
    images = [torch.randn(p.n(256, 2), 3, p.n(128, 32), p.n(128, 32)) for _ in range(2)]
    images = [p.host(batch) for batch in images] if p.fixes("copy") else images

    def step():
        done.append(1)
        train(images[len(done) % 2].to(p.device, non_blocking=p.fixes("copy")).bfloat16())  # planted
        for _ in range(4):
            read_norms(p, weights, log)

    return step, 1


@planted("layout+data", "training", work=60)
def pair_layout_data(p):
    """Convolutions on NCHW tensors, of images decoded in the loop."""
    layout = torch.channels_last if p.fixes("layout") else torch.contiguous_format  # planted
    train, ahead = trainer(convnet(p).to(memory_format=layout)), batches(p, 64, 64)

    def step():
        images = to_device(p, next(ahead)).repeat(p.n(8, 1), 1, p.n(2, 1), p.n(2, 1))  # planted
        train(images.to(memory_format=layout))

    return step, 1
