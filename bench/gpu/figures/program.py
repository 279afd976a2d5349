"""A training of a transformer or of a ResNet-50 in bf16: `program.py transformer|resnet50 SECONDS [--truth]`.

--truth: it prints as JSON what a step is: FLOPs by PyTorch's FlopCounterMode, milliseconds between torch.cuda.Events at the borders of
the forward pass, the backward pass and the optimizer, and steps a second. Nothing here knows of HEC."""
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WIDE, HEADS, LAYERS, LONG, TEXTS, WORDS, IMAGES = 1024, 16, 12, 1024, 8, 32000, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDE) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDE, 3 * WIDE), nn.Linear(WIDE, WIDE)
        self.mlp = nn.Sequential(nn.Linear(WIDE, 4 * WIDE), nn.GELU(), nn.Linear(4 * WIDE, WIDE))

    def forward(self, x):
        q, k, v = [part.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)]
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norms[1](x))


def transformer():
    words = torch.randint(0, WORDS, (TEXTS, LONG + 1), device="cuda")
    model = nn.Sequential(nn.Embedding(WORDS, WIDE), *(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDE), nn.Linear(WIDE, WORDS)).cuda()
    return model, words[:, :-1], lambda out: F.cross_entropy(out.flatten(0, 1), words[:, 1:].flatten())


def resnet50():
    import torchvision

    labels = torch.randint(0, 1000, (IMAGES,), device="cuda")
    images = torch.randn(IMAGES, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
    return model, images, lambda out: F.cross_entropy(out, labels)


def count(model, x, loss):
    """FLOPs of a step, and those of attention that its backward pass computes again: one of five products."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        with torch.autocast("cuda", torch.bfloat16):
            value = loss(model(x))
        value.backward()
    again = sum(flops / 5 for name, flops in counter.get_flop_counts()["Global"].items() if "attention" in str(name) and "backward" in str(name))
    return {"flops": counter.get_total_flops(), "again": again}


def main():
    name, seconds, truth = sys.argv[1], float(sys.argv[2]), "--truth" in sys.argv
    model, x, loss = {"transformer": transformer, "resnet50": resnet50}[name]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    said = count(model, x, loss) if truth else {}
    marks, begin, steps = [], 0.0, 0
    while steps < 8 or time.monotonic() - begin < seconds:
        if steps == 5:
            torch.cuda.synchronize()
            begin = time.monotonic()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(6)] if truth else []

        def mark(i):
            if truth:
                events[i].record()

        optimizer.zero_grad()
        mark(0)
        with torch.autocast("cuda", torch.bfloat16):
            out = model(x)
            mark(1)
            value = loss(out)
        mark(2)
        value.backward()
        mark(3)
        mark(4)
        optimizer.step()
        mark(5)
        steps += 1
        marks.append(events)
        if steps % 20 == 0:
            value.item()
    torch.cuda.synchronize()
    said["steps_per_s"] = (steps - 5) / (time.monotonic() - begin)
    if truth:
        for part, first in (("forward", 0), ("backward", 2), ("optimizer", 4)):
            times = sorted(events[first].elapsed_time(events[first + 1]) for events in marks[5:])
            said[part] = times[len(times) // 2]
    print(json.dumps(said))


main()
