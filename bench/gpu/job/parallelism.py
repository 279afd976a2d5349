"""Models trained by two ranks, for torchrun: `parallelism.py MODEL HOW --seconds N` as a user's program (HOW: ddp, fsdp);
with --measure it prints seconds, joules and the peak of PyTorch's allocator a step, of both GPUs, in turns.

--tiny: on the CPU, to try the logic (no joules, no peak)."""
import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "planted"))
from serve import Counter, Ranks  # noqa: E402

# width, layers, samples, their length: small gradients, large ones, many activations
MODELS = {"narrow": (1024, 12, 16, 1024), "wide": (4096, 12, 4, 1024), "long": (2048, 16, 2, 4096)}
WARM_STEPS, MEASURED_STEPS, TURNS = 6, 20, 3


class Block(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.heads = max(1, wide // 128)
        self.norm, self.other_norm = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
        self.up, self.down = nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)

    def forward(self, x):
        batch, length, wide = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.other_norm(x))))


def make(name, how, tiny):
    """A step of the model."""
    wide, layers, samples, length = (32, 4, 2, 8) if tiny else MODELS[name]
    device = torch.device("cpu" if tiny else "cuda")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(wide, wide), *[Block(wide) for _ in range(layers)]).to(device, torch.bfloat16)
    if how == "ddp":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        for part in (*model, model):
            fully_shard(part, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    inputs = torch.randn(samples, length, wide, device=device, dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad()
        model(inputs).float().square().mean().backward()
        optimizer.step()

    return step


def finish(tiny):
    if not tiny:
        torch.cuda.synchronize()


def train(step, options):
    begin = time.perf_counter()
    most = torch.tensor([0], device="cpu" if options.tiny else "cuda")
    count = 0
    while not int(most):
        for _ in range(10):
            step()
            count += 1
        most += time.perf_counter() - begin > options.seconds
        dist.all_reduce(most)  # all ranks end at once
    finish(options.tiny)


def measure(step, options):
    ranks = Ranks(dist)
    counter = None if options.tiny else Counter(ranks.rank)

    def work():
        ranks.together()
        start = time.perf_counter()
        for _ in range(MEASURED_STEPS):
            step()
        finish(options.tiny)
        return time.perf_counter() - start

    for _ in range(WARM_STEPS):
        step()
    turns = []
    for _ in range(TURNS):
        seconds, joules = counter.of(work) if counter else (work(), None)
        joules = ranks.summed(joules)
        turns.append([seconds / MEASURED_STEPS, None if joules is None else joules / MEASURED_STEPS / dist.get_world_size()])
    if ranks.rank == 0:
        print(json.dumps({"turns": turns, "peak": None if options.tiny else torch.cuda.max_memory_allocated()}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("how", choices=["ddp", "fsdp"])
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    if not options.tiny:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo" if options.tiny else "nccl")
    step = make(options.model, options.how, options.tiny)
    (measure if options.measure else train)(step, options)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
