"""What the programs of test_levers.py share: levers put in and taken out in one process, and small models on the CPU."""

import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
hooks = sys.modules["_hec_hooks"]
modules = sys.modules["_hec_hooks.modules"]


class levers:
    """with levers("a,b") as said: the levers are in; afterwards said has the state and text of each, and they are out."""

    def __init__(self, names):
        self.names, self.said = names, {}

    def __enter__(self):
        os.environ["HEC_LEVERS"] = self.names
        hooks.start("torch")
        modules.search()  # for the modules that a case makes
        return self.said

    def __exit__(self, *error):
        package = sys.modules["_hec_levers"]
        self.said.update({name: (lever.state, lever.text) for name, (lever, _) in package._started.items()})
        package.revert()
        assert not modules.arounds
        return False


def cnn():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 5),
    )  # fmt: skip


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, steps=4, call=None, **zero):
    """The losses, and the last outputs."""
    torch.manual_seed(1)
    losses = []
    for _ in range(steps):
        images, targets = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
        optimizer.zero_grad(**zero)
        outputs = (call or model)(images)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, outputs


def trained(names, make=sgd, model=cnn, **more):
    """The losses of a training under levers, the model's values after it, and what the levers said."""
    module = model()
    with levers(names) as said:
        losses, outputs = train(module, make(module), **more)
        assert outputs.dtype == torch.float32 and outputs.is_contiguous()
    # the random numbers are those that they would be
    return losses, [value.clone() for value in module.state_dict().values()] + [torch.rand(3)], said


def same(one, other):
    return one[0] == other[0] and all(torch.equal(a, b) for a, b in zip(one[1], other[1]))


def close(one, other, by):
    return all(abs(a - b) < by for a, b in zip(one[0], other[0]))
