"""Small complete programs that the judge runs with and without HEC: `programs.py NAME [--seconds S | --steps N]`.

What a program prints does not depend on time: "done NAME" and a checksum of integers made on the device at its end. Its
step times go to the file that HARMLESS_TIMES names. --device cpu --tiny tries the logic without a GPU.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import threading
import time
import warnings

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


class Clock:
    """Says when to stop and times the steps between two reads of the device (a step that is not waited for ends at any
    time). The first quarter of the intervals is warm-up."""

    def __init__(self, options):
        self.steps, self.seconds, self.done, self.marks = options.steps, options.seconds, 0, []
        self.start = time.perf_counter()

    def going(self):
        if self.steps:
            return self.done < self.steps
        return time.perf_counter() - self.start < self.seconds

    def step(self, waited):
        self.done += 1
        if waited:
            self.marks.append((time.perf_counter(), time.process_time(), self.done))

    def times(self):
        pairs = list(itertools.pairwise(self.marks))
        kept = pairs[len(pairs) // 4:]
        if not kept:
            return {"steps": self.done, "ms": None, "ms_mean": None, "ms_cpu": None}
        values = [1e3 * (b[0] - a[0]) / (b[2] - a[2]) for a, b in kept]
        (wall, cpu, done), (wall_end, cpu_end, done_end) = kept[0][0], kept[-1][1]
        return {"steps": self.done, "intervals": len(values), "ms": statistics.median(values),
                "ms_mean": 1e3 * (wall_end - wall) / (done_end - done), "ms_cpu": 1e3 * (cpu_end - cpu) / (done_end - done)}


def memory_kb():
    """At its end: the kernel's sums, and what is resident by what it is of."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {**{name: int(fields[name].split()[0]) for name in ("VmHWM", "VmRSS", "RssAnon")}, "resident": resident_kb()}


KINDS_OF_MAPPING = (("ring", "/memfd:hec"), ("hec", "/libhec"), ("cupti", "/libcupti"), ("nvperf", "/libnvperf"), ("driver", "/libcuda"),
                    ("device", "/dev/"), ("files", "/"), ("heap", "[heap]"))


def resident_kb():
    """{kind of mapping: [resident, of it private and written]}"""
    sums, kind = {}, "other"
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            name = line.split(maxsplit=5)[5] if len(line.split(maxsplit=5)) > 5 else ""
            kind = next((kind for kind, part in KINDS_OF_MAPPING if part in name), "other")
        elif line.startswith(("Rss:", "Private_Dirty:")):
            sums.setdefault(kind, [0, 0])[line[0] == "P"] += int(line.split()[1])
    return sums


def device_gb():
    """At most, by PyTorch's allocator; without the context."""
    torch = sys.modules.get("torch")
    return torch.cuda.max_memory_reserved() / 2**30 if torch and torch.cuda.is_initialized() else None


def write_times(clock):
    path = os.environ.get("HARMLESS_TIMES")
    if path:
        pathlib.Path(path).write_text(json.dumps({**clock.times(), **memory_kb(), "device_gb": device_gb()}))


def checksum(device):
    import torch

    return int((torch.arange(1 << 16, device=device) * 7919 % 1000003).sum().item())


def training(options, step, read_every):
    """Steps until the time is up; the loss is read every so many."""
    clock = Clock(options)
    while clock.going():
        loss = step()
        waited = (clock.done + 1) % read_every == 0
        if waited:
            loss.item()
        clock.step(waited)
    return clock


def classifier(options, name, batch, autocast, read_every):
    import torch
    import torchvision

    batch, side = (4, 32) if options.tiny else (batch, 224)
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)().to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, side, side, device=options.device)
    labels = torch.randint(0, 1000, (batch,), device=options.device)
    lossf = torch.nn.CrossEntropyLoss()

    def step():
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=autocast):
            loss = lossf(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return training(options, step, read_every)


@program
def resnet50(options):
    import torch

    torch.backends.cudnn.benchmark = True
    return classifier(options, "resnet50", 256, True, 2)


@program
def resnet18(options):
    return classifier(options, "resnet18", 128, False, 10)


def encoder(options, depth=12, width=768):
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 12, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    return torch.nn.TransformerEncoder(layer, 1 if options.tiny else depth, enable_nested_tensor=False).to(options.device)


def encoder_step(options, model, shape):
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    inputs = torch.randn(*((2, 8, 768) if options.tiny else shape), device=options.device)

    def step():
        with torch.autocast(options.device, dtype=torch.bfloat16):
            loss = model(inputs).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


@program
def transformer(options):
    return training(options, encoder_step(options, encoder(options), (16, 512, 768)), 10)


def stack(options):
    import torch

    torch.manual_seed(0)
    depth = 2 if options.tiny else 60
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).to(options.device)


@program
def launch(options):
    """About 1 020 launches a step, and nothing to wait for."""
    import torch

    model = stack(options)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    inputs = torch.randn(64, 128, device=options.device)

    def step():
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return training(options, step, 50)


@program
def infer(options):
    import torch

    torch.backends.mha.set_fastpath_enabled(False)  # one kernel an operation, as in most models
    model = encoder(options).eval()
    inputs = torch.randn(1, 64, 768, device=options.device)
    with torch.inference_mode():
        return training(options, lambda: model(inputs).mean(), 1)


def rank_main(rank, options, folder):
    import torch
    import torch.distributed as dist

    cuda = options.device == "cuda"
    if cuda:
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if cuda else "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(encoder(options), device_ids=[rank] if cuda else None)
    step, clock = encoder_step(options, model, (4, 128, 768)), Clock(options)
    going = torch.ones(1, device=options.device)
    while True:
        going.fill_(float(clock.going()))
        dist.broadcast(going, 0)  # both stop at the same step
        if not going.item():
            break
        for _ in range(2 if options.tiny else 16):
            step()
        going.item()
        clock.step(True)
    if rank == 0:
        write_times(clock)
    dist.barrier()
    dist.destroy_process_group()


@program
def ddp(options):
    import torch

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_main, (options, folder), nprocs=2)
    return None


class Samples:
    """Each sample is made by compiled extensions that the worker imports itself."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        import numpy
        import PIL.Image
        import scipy.ndimage
        import torch
        import torchvision

        image = numpy.arange(64 * 64, dtype=numpy.uint8).reshape(64, 64) + numpy.uint8(index)
        image = scipy.ndimage.maximum_filter(image, 3)
        image = numpy.asarray(PIL.Image.fromarray(image).resize((32, 32), PIL.Image.Resampling.NEAREST))
        boxes = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], dtype=torch.float32)
        kept = torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5)
        return torch.from_numpy(image.astype(numpy.int64)).sum() + kept.numel()


@program
def workers(options):
    """Loader workers, forked and spawned while eight threads launch."""
    import torch
    from torch.utils.data import DataLoader

    ended, clock, total = threading.Event(), Clock(options), 0

    def launch_loop():
        x = torch.ones(1024, device=options.device)
        while not ended.is_set():
            for _ in range(50):
                x.mul_(1.0)
            x[0].item()
            time.sleep(0.002)  # else nine threads fight for the interpreter, and by itself the program takes 20 s or minutes

    torch.ones(1024, device=options.device).mul_(1.0)[0].item()  # everything is loaded before the first fork
    threads = [threading.Thread(target=launch_loop) for _ in range(8)]
    for thread in threads:
        thread.start()
    count = 2 if options.tiny else 12
    try:
        for method in ("fork", "spawn", "fork", "fork"):
            loader = DataLoader(Samples(16 * count), batch_size=4, num_workers=count, multiprocessing_context=method,
                                persistent_workers=False)
            for batch in loader:
                total += int(batch.to(options.device).sum().item())
            clock.step(True)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    print("samples", total)
    return clock


@program
def graphs(options):
    """A compiled model whose steps are CUDA graphs, then a graph made by hand."""
    import torch

    inputs = torch.randn(64, 128, device=options.device)
    torch.set_float32_matmul_precision("high")
    with torch.no_grad():
        model = torch.compile(stack(options), mode="reduce-overhead")
        half = argparse.Namespace(steps=options.steps // 2, seconds=options.seconds / 2)
        for _ in range(5):
            model(inputs).sum().item()
        training(half, lambda: model(inputs).sum(), 10)
        if options.device == "cpu":
            return Clock(half)
        plain, result = stack(options), None
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            plain(inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = plain(inputs).sum()

        def replay():
            graph.replay()
            return result

        return training(half, replay, 50)


@program
def jax(options):
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 8)
    weights = [jax.random.normal(key, (512, 512)) * 0.04 for key in keys]
    inputs = jax.random.normal(keys[0], (256, 512))

    def loss(weights):
        x = inputs
        for w in weights:
            x = jax.nn.relu(x @ w)
        return jnp.mean(x**2)

    @jax.jit
    def update(weights):
        value, gradients = jax.value_and_grad(loss)(weights)
        return value, [w - 0.01 * g for w, g in zip(weights, gradients)]

    clock = Clock(options)
    while clock.going():
        value, weights = update(weights)
        waited = (clock.done + 1) % 20 == 0
        if waited:
            value.block_until_ready()
        clock.step(waited)
    print("sum", int(jnp.sum(jnp.arange(1 << 16) * 31 % 1003)))
    return clock


def three_kernels(options):
    import torch

    x = torch.ones(1000, device=options.device)
    y = (x + 1) * 3
    print("sum", int(y.sum().item()), flush=True)


@program
def short(options):
    three_kernels(options)


@program
def short_os_exit(options):
    three_kernels(options)
    os._exit(3)


@program
def short_exit(options):
    three_kernels(options)
    sys.exit(7)


@program
def short_raise(options):
    three_kernels(options)
    raise RuntimeError("not caught")


@program
def short_term(options):
    three_kernels(options)
    os.kill(os.getpid(), signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=0, help="so many steps instead")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    clock = PROGRAMS[options.name](options)
    if clock:
        write_times(clock)
    print("done", options.name, *([] if options.name == "jax" else [checksum(options.device)]), flush=True)


if __name__ == "__main__":
    main()
