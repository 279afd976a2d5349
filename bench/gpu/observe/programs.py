"""Real programs to observe, as people write them: `python programs.py NAME [SECONDS]`.

Each prints the units of work it did as its last line, "units N".
"""
import sys
import time


def loop(step, seconds, units_per_step, sync):
    for _ in range(5):
        step()
    sync()
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(10):
            step()
            count += 1
        sync()
    print("units", count * units_per_step)


def resnet18(seconds, batch=128, bf16=False):
    """Plain ResNet-18 training, random data on the device, SGD, PyTorch's defaults."""
    import torch
    import torchvision

    device = "cuda"
    model = torchvision.models.resnet18().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_fn = torch.nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, 224, 224, device=device)
    labels = torch.randint(0, 1000, (batch,), device=device)
    if bf16:
        model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            loss = loss_fn(model(images), labels)
        loss.backward()
        optimizer.step()

    loop(step, seconds, batch, torch.cuda.synchronize)


def resnet18_bf16(seconds):
    resnet18(seconds, 512, True)


def resnet18_pageable(seconds, batch=128):
    """The same, each batch copied from pageable host memory, four times as large as it needs to be (float32)."""
    import torch
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()

    loop(step, seconds, batch, torch.cuda.synchronize)


def transformer(seconds, batch=16, length=512):
    """A GPT-like stack of 12 layers, bf16 autocast, AdamW."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, norm_first=True)
    model = torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
                                torch.nn.Linear(768, 32000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs = torch.randn(batch, length, 768, device="cuda")
    labels = torch.randint(0, 32000, (batch * length,), device="cuda")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(inputs).view(-1, 32000), labels)
        loss.backward()
        optimizer.step()

    loop(step, seconds, batch * length, torch.cuda.synchronize)


def gemm(seconds):
    """bf16 matrix products of 8192, back to back: the healthy case."""
    import torch

    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    loop(lambda: a @ b, seconds, 1, torch.cuda.synchronize)


def copies(seconds):
    """Host-to-device copies of 256 MiB with a little work on each: starved by transfers."""
    import torch

    host = torch.randn(64 << 20).pin_memory()
    loop(lambda: host.to("cuda", non_blocking=True).add_(1).sum(), seconds, 1, torch.cuda.synchronize)


def small_kernels(seconds):
    """Element-wise work on tiny tensors: overhead."""
    import torch

    x = torch.randn(1024, device="cuda")

    def step():
        y = x
        for _ in range(100):
            y = y * 1.0001 + 0.5

    loop(step, seconds, 1, torch.cuda.synchronize)


def loader(seconds, batch=128):
    """ResNet-18 fed by a slow data pipeline in the main process: starved for data."""
    import numpy
    import torch
    import torchvision

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, index):
            raw = numpy.random.default_rng(index).integers(0, 255, (3, 224, 224), dtype=numpy.uint8)
            return torch.from_numpy(raw).float().div_(255), index % 1000

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(torch.utils.data.DataLoader(Images(), batch_size=batch, num_workers=0))
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        images, labels = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
        optimizer.step()
        count += batch
    print("units", count)


def idle_context(seconds):
    """A context is held and nothing is done: allocated, unused."""
    import torch

    torch.zeros(1, device="cuda")
    time.sleep(seconds)
    print("units", 1)


def jax_mlp(seconds):
    """A jitted MLP training step in JAX."""
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    weights = [jax.random.normal(k, (4096, 4096), jnp.bfloat16) * 0.01 for k in keys[:4]]
    x = jax.random.normal(keys[4], (4096, 4096), jnp.bfloat16)

    def loss(ws):
        y = x
        for w in ws:
            y = jax.nn.relu(y @ w)
        return jnp.mean(y.astype(jnp.float32) ** 2)

    step_fn = jax.jit(lambda ws: [w - 1e-3 * g for w, g in zip(ws, jax.grad(loss)(ws))])
    state = {"w": weights}

    def step():
        state["w"] = step_fn(state["w"])

    loop(step, seconds, 4096, lambda: state["w"][0].block_until_ready())


PROGRAMS = {f.__name__: f for f in (resnet18, resnet18_bf16, resnet18_pageable, transformer, gemm, copies,
                                    small_kernels, loader, idle_context, jax_mlp)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PROGRAMS:
        sys.exit("usage: programs.py NAME [SECONDS]; names: " + " ".join(PROGRAMS))
    PROGRAMS[sys.argv[1]](float(sys.argv[2]) if len(sys.argv) > 2 else 10.0)
