"""What the planted programs share: the registry, the amount of work, and small models."""
import dataclasses

import torch
from torch import nn

PROGRAMS = {}
CAUSES = {}  # name -> cause, GPUs


@dataclasses.dataclass
class Setup:
    """How a program is to run. `n(size)` is the size, or a tiny one to try the logic on a CPU."""
    fixed: bool
    device: str
    tiny: bool
    fix: str = None  # of a program with two causes: the one that is fixed

    def fixes(self, cause):
        return self.fixed or self.fix == cause

    def n(self, size, tiny=8):
        return tiny if self.tiny else size

    @property
    def cuda(self):
        return self.device.startswith("cuda")

    def random(self, *shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device=self.device, dtype=dtype)

    def host(self, tensor):
        """Page-locked memory, where there is a GPU: copies from it need not be waited for."""
        return tensor.pin_memory() if self.cuda else tensor

    def graphed(self, step):
        """The same step as one CUDA graph."""
        if not self.cuda:
            return step
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph.replay


def planted(cause, kind, work, gpus=1):
    """Register a program. It returns its step and the units of work that a step does; `work` units are done in all,
    planted or fixed, so that joules compare. The runner reads these arguments from the source: constants only. Two causes
    are written "data+sync"."""
    def register(function):
        PROGRAMS[function.__name__] = (function, work)
        CAUSES[function.__name__] = (cause, gpus)
        return function
    return register


def mlp(p, width, depth, dtype=torch.bfloat16):
    layers = [layer for _ in range(p.n(depth, 2)) for layer in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(*layers).to(p.device, dtype)


def convnet(p, width=64, stages=4, dtype=torch.bfloat16):
    """Convolutions as in a ResNet: at each stage half the side and twice the channels."""
    def unit(inputs, outputs, stride):
        return [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    layers = unit(3, width, 2)
    for _ in range(stages - 1):
        layers += unit(width, width, 1) + unit(width, 2 * width, 2)
        width *= 2
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 16)).to(p.device, dtype)
    return model.to(memory_format=torch.channels_last)  # else each program would have layout's inefficiency too


def transformer(p, width, depth, heads):
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, p.n(depth, 1), enable_nested_tensor=False).to(p.device, torch.bfloat16)


def trainer(model, **options):
    """A training step on inputs; the loss is a stand-in that keeps the weights bounded."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, **options)

    def train(inputs):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return train
