"""Programs whose device is busy, with the wrong thing or the right one: precision, memory, batch, layout, compile, none."""
import math
import os

import torch
from torch import nn

from common import convnet, mlp, planted, trainer, transformer


@planted("precision", "training", work=80)
def precision_train(p):
    """PyTorch's default: matrix products in full fp32, tensor cores idle."""
    torch.set_float32_matmul_precision("high" if p.fixed else "highest")  # planted
    train = trainer(mlp(p, p.n(4096), 8, torch.float32))
    inputs = p.random(p.n(4096), p.n(4096), dtype=torch.float32)
    return (lambda: train(inputs)), 1


@planted("precision", "inference", work=110)
def precision_infer(p):
    """A model served in fp32, as it was saved."""
    dtype = torch.bfloat16 if p.fixed else torch.float32  # planted
    model, inputs = mlp(p, p.n(4096), 8, dtype), p.random(p.n(8192), p.n(4096), dtype=dtype)
    return torch.no_grad()(lambda: model(inputs)), 1


@planted("precision", "inference", work=280)
def precision_shapes(p):
    """A width of 4095: rows are not aligned as the fast tensor-core kernels need them."""
    width = p.n(4096) if p.fixed else p.n(4095, 7)  # planted
    model, inputs = mlp(p, width, 8), p.random(p.n(8192), width)
    return torch.no_grad()(lambda: model(inputs)), 1


@planted("memory", "inference", work=3000)
def memory_chain(p):
    """A GELU written by hand: eight passes over memory."""
    inputs = p.random(p.n(8192), p.n(16384))

    @torch.no_grad()
    def step():
        if p.fixed:
            return nn.functional.gelu(inputs, approximate="tanh")
        inner = math.sqrt(2 / math.pi) * (inputs + 0.044715 * inputs * inputs * inputs)  # planted
        return 0.5 * inputs * (1 + torch.tanh(inner))  # planted

    return step, 1


@planted("memory", "training", work=300)
def memory_attention(p):
    """Attention that writes its scores to memory, softmax and all."""
    q, k, v = (p.random(8, 16, p.n(2048), 64).requires_grad_() for _ in range(3))

    def step():
        if p.fixed:
            out = nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            out = torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v  # planted
        torch.autograd.grad(out.square().mean(), (q, k, v))

    return step, 1


@planted("batch", "inference", work=19200)
def batch_one(p):
    """Images one by one (in CUDA graphs: launching is not what it waits for)."""
    size = p.n(64, 4) if p.fixed else 1  # planted
    model = convnet(p).eval().to(memory_format=torch.channels_last)
    images = p.random(size, 3, p.n(128, 32), p.n(128, 32)).to(memory_format=torch.channels_last)
    return p.graphed(torch.no_grad()(lambda: model(images))), size


@planted("batch", "training", work=163840)
def batch_small(p):
    """64 samples a step, through layers that would take thousands in little more time."""
    size = p.n(4096, 16) if p.fixed else p.n(64, 8)  # planted
    train, inputs = trainer(mlp(p, p.n(8192), 8)), p.random(size, p.n(8192))
    return (lambda: train(inputs)), size


@planted("layout", "training", work=120)
def layout_nchw(p):
    """Convolutions in bf16 on NCHW tensors, which are transposed for each kernel and back."""
    layout = torch.channels_last if p.fixed else torch.contiguous_format  # planted
    train = trainer(convnet(p).to(memory_format=layout))
    images = p.random(p.n(256, 2), 3, p.n(224, 32), p.n(224, 32)).to(memory_format=layout)
    return (lambda: train(images)), 1


@planted("compile", "inference", work=16)
def compile_shapes(p):
    """torch.compile for a fixed shape, and each batch has another; fixed: compiled for any."""
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # else the second run finds what the first compiled
    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    setattr(torch._dynamo.config, limit, 64)
    model = torch.compile(mlp(p, p.n(2048), 2), dynamic=p.fixed, backend="inductor" if p.cuda else "eager")  # planted
    inputs, done = p.random(p.n(16384), p.n(2048)), []

    @torch.no_grad()
    def step():
        done.append(1)
        batch = inputs[:len(inputs) - len(done) * p.n(64, 1) % len(inputs)]
        for _ in range(p.n(100, 1)):
            model(batch)  # planted

    return step, 1


@planted("none", "training", work=28)
def none_train(p):
    """Healthy: a wide transformer in bf16, large batches, fused attention."""
    train = trainer(transformer(p, p.n(4096), 4, p.n(32, 2)), fused=p.cuda)
    inputs = p.random(p.n(16, 2), p.n(1024), p.n(4096))
    return (lambda: train(inputs)), 1


@planted("none", "inference", work=300)
def none_infer(p):
    """Healthy: large matrix products in bf16, back to back."""
    model, inputs = mlp(p, p.n(8192), 8), p.random(p.n(8192), p.n(8192))
    return torch.no_grad()(lambda: model(inputs)), 1
