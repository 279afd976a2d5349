"""Programs whose device waits for the host: data, host, launch, sync, copy, alloc, checkpoint, idle."""
import os
import random
import tempfile
import time
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from common import convnet, mlp, planted, trainer, transformer


class Images(Dataset):
    """Compressed images in memory, decoded when asked for, then given to `transform`."""

    def __init__(self, side, transform):
        generator = torch.Generator().manual_seed(1)
        raw = torch.randint(0, 16, (32, 3 * side * side), dtype=torch.uint8, generator=generator)
        self.packed = [zlib.compress(bytes(image.tolist()), 1) for image in raw]
        self.side, self.transform = side, transform

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        raw = bytearray(zlib.decompress(self.packed[index % len(self.packed)]))  # planted
        return self.transform(torch.frombuffer(raw, dtype=torch.uint8).view(3, self.side, self.side))


def fed_training(p, side, transform, prepare, workers):
    loader = DataLoader(Images(side, transform), batch_size=p.n(64, 2), num_workers=workers, pin_memory=p.cuda)
    batches, train = iter(loader), trainer(convnet(p))
    return (lambda: train(prepare(next(batches).to(p.device, non_blocking=True)))), loader.batch_size  # planted


@planted("data", "training", work=2688)
def data_decode(p):
    """Images are decoded in the loop's own process, one after the other."""
    workers = p.n(14, 2) if p.fixed else 0  # planted
    return fed_training(p, p.n(384, 32), lambda image: image[:, ::2, ::2], lambda batch: batch.bfloat16() / 255, workers)


@planted("data", "training", work=1920)
def data_transform(p):
    """Workers there are, but they blur each image on the CPU; fixed: the device blurs the batch."""
    kernel = torch.hann_window(17, periodic=False)[1:-1]
    kernel = (kernel[:, None] * kernel / kernel.sum() ** 2).expand(3, 1, -1, -1).contiguous()
    on_device = kernel.to(p.device)

    def blur(images, weights):
        return nn.functional.conv2d(images.float() / 255, weights, padding=7, groups=3).bfloat16()

    def on_host(image):
        return blur(image, kernel)  # planted

    if p.fixed:
        return fed_training(p, p.n(224, 32), lambda image: image, lambda batch: blur(batch, on_device), p.n(4, 1))
    return fed_training(p, p.n(224, 32), on_host, lambda batch: batch, p.n(4, 1))


@planted("host", "training", work=250)
def host_python(p):
    """Each step counts its tokens in plain Python."""
    train, inputs = trainer(mlp(p, p.n(1024), 16)), p.random(p.n(8192), p.n(1024))
    tokens = torch.randint(0, 1000, (p.n(262144, 64),))

    def step():
        train(inputs)
        if p.fixed:
            return torch.bincount(tokens, minlength=1000)
        counts = {}
        for token in tokens.tolist():  # planted
            counts[token] = counts.get(token, 0) + 1  # planted
        return counts

    return step, 1


@planted("host", "inference", work=280)
def host_tokenise(p):
    """Texts become tokens one character at a time, in the serving loop."""
    letters = "abcdefghijklmnopqrstuvwxyz ,."
    texts = ["".join(random.Random(i).choices(letters, k=p.n(2048, 16))) for i in range(p.n(64, 2))]
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    table = torch.tensor([vocabulary.get(chr(i), 0) for i in range(256)])
    embedding = nn.Embedding(64, p.n(512)).to(p.device, torch.bfloat16)
    model = mlp(p, p.n(512), 12)

    def tokenise():
        if p.fixed:
            return table[torch.frombuffer(bytearray("".join(texts).encode()), dtype=torch.uint8).long()].view(len(texts), -1)
        return torch.tensor([[vocabulary.get(letter, 0) for letter in text] for text in texts])  # planted

    @torch.no_grad()
    def step():
        model(embedding(p.host(tokenise()).to(p.device, non_blocking=True)))

    return step, 1


@planted("launch", "training", work=1000)
def launch_train(p):
    """A small model and an optimiser that takes parameter after parameter: hundreds of launches of microseconds."""
    train, inputs = trainer(mlp(p, p.n(256), 32), momentum=0.9, foreach=False), p.random(64, p.n(256))
    if p.fixed:
        return p.graphed(lambda: train(inputs)), 1
    return (lambda: train(inputs)), 1  # planted


@planted("launch", "inference", work=2000)
def launch_decode(p):
    """A token at a time through a small model, launch after launch."""
    model, token = transformer(p, p.n(256), 12, 4).train(), p.random(1, 1, p.n(256))

    @torch.no_grad()
    def step():
        return model(token)  # planted

    return (p.graphed(step) if p.fixed else step), 1


@planted("sync", "training", work=1000)
def sync_item(p):
    """The norms of every gradient and weight are read at every step; fixed: kept on the device, read every 50 steps."""
    model, inputs, log = mlp(p, p.n(2048), 16), p.random(p.n(4096), p.n(2048)), []
    train, weights = trainer(model), list(model.parameters())

    def step():
        train(inputs)
        if not p.fixed:
            log.append([weight.grad.norm().item() / weight.norm().item() for weight in weights])  # planted
            return
        grads = torch.stack(torch._foreach_norm([weight.grad for weight in weights]))
        log.append(grads / torch.stack(torch._foreach_norm(weights)))
        if len(log) % 50 == 0:
            log[-50:] = torch.stack(log[-50:]).tolist()

    return step, 1


@planted("sync", "inference", work=1000)
def sync_mask(p):
    """Each layer picks the rows that need it with a mask, whose size the host must wait for."""
    model, inputs = mlp(p, p.n(1024), 24), p.random(p.n(16384), p.n(1024))
    mask = torch.rand(len(inputs), 1, device=p.device) < 0.9

    @torch.no_grad()
    def step():
        hidden = inputs
        for layer in model:
            if p.fixed:
                hidden = torch.where(mask, layer(hidden), hidden)
            else:
                rows = mask.squeeze(1).nonzero().squeeze(1)  # planted
                hidden = hidden.index_copy(0, rows, layer(hidden[rows]))
        return hidden

    return step, 1


@planted("sync", "inference", work=1500)
def sync_layers(p):
    """A synchronisation after each layer, left from the time when somebody measured layers."""
    model, inputs = mlp(p, p.n(1024), 32), p.random(p.n(12288), p.n(1024))

    @torch.no_grad()
    def step():
        hidden = inputs
        for layer in model:
            hidden = layer(hidden)
            if p.cuda and not p.fixed:
                torch.cuda.synchronize()  # planted
        return hidden

    return step, 1


@planted("copy", "training", work=128000)
def copy_pageable(p):
    """Each batch is copied from ordinary memory."""
    train, size = trainer(convnet(p, 16, 2)), p.n(256, 2)
    batches = [torch.randn(size, 3, p.n(128, 32), p.n(128, 32)) for _ in range(2)]
    if p.fixed:
        batches = [p.host(batch) for batch in batches]
    done = []

    def step():
        done.append(1)
        images = batches[len(done) % 2].to(p.device, non_blocking=p.fixed)  # planted
        train(images.bfloat16())

    return step, size


@planted("copy", "inference", work=400)
def copy_chatty(p):
    """The rows of a batch go to the device one at a time."""
    model, rows = mlp(p, p.n(1024), 8), list(torch.randn(p.n(1024), p.n(1024)))

    @torch.no_grad()
    def step():
        if p.fixed:
            inputs = torch.stack(rows).to(p.device)
        else:
            inputs = torch.stack([row.to(p.device) for row in rows])  # planted
        return model(inputs.bfloat16())

    return step, 1


@planted("copy", "inference", work=220)
def copy_roundtrip(p):
    """Features visit the host between two halves of a model."""
    encoder, head, inputs = mlp(p, p.n(1024), 16), mlp(p, p.n(1024), 16), p.random(p.n(16384), p.n(1024))

    @torch.no_grad()
    def step():
        features = encoder(inputs)
        if not p.fixed:
            features = features.cpu()  # planted
            features = features.to(p.device)  # planted
        return head(features)

    return step, 1


@planted("alloc", "training", work=700)
def alloc_empty_cache(p):
    """The allocator's cache is given back at each step, and taken again."""
    train, inputs = trainer(mlp(p, p.n(2048), 16)), p.random(p.n(4096), p.n(2048))

    def step():
        train(inputs)
        if not p.fixed:
            torch.cuda.empty_cache()  # planted

    return step, 1


@planted("alloc", "inference", work=1500)
def alloc_uncached(p):
    """A setting for debugging was forgotten: each tensor is a cudaMalloc and a cudaFree."""
    if not p.fixed:
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # planted
    model, inputs = mlp(p, p.n(1024), 16), p.random(p.n(8192), p.n(1024))

    @torch.no_grad()
    def step():
        return model(inputs)

    return step, 1


@planted("checkpoint", "training", work=160)
def checkpoint_often(p):
    """Weights are written every 10 steps, and training waits; fixed: every 100 steps."""
    model, inputs = mlp(p, p.n(4096), 8), p.random(p.n(4096), p.n(4096))
    train, every = trainer(model), p.n(100, 2) if p.fixed else p.n(10, 1)
    folder = tempfile.TemporaryDirectory()
    done = []

    def step():
        train(inputs)
        done.append(1)
        if len(done) % every == 0:
            torch.save(model.state_dict(), os.path.join(folder.name, "weights.pt"))  # planted

    return step, 1


@planted("idle", "inference", work=1)
def idle_hold(p):
    """One job, and the device is kept for seconds after it."""
    model, inputs = mlp(p, p.n(4096), 8), p.random(p.n(8192), p.n(4096))

    @torch.no_grad()
    def step():
        for _ in range(p.n(100, 1)):
            model(inputs)
        if p.cuda:
            torch.cuda.synchronize()
        if not p.fixed:
            time.sleep(p.n(5.0, 0.0))  # planted

    return step, 1
