"""Whether one pass over more samples gives the gradients that several passes over fewer give together.

They do where the loss is a mean over the samples, each of which counts the same in any company, or a sum over what is counted in all passes.
They do not where a loss is a mean over tokens of which passes have unlike numbers, compares the samples of a pass with each other, or has
a part of its own for each pass. No name tells that, so both are computed, with a copy of the model in fp32 that drops nothing, of a few
samples from all over the data set. The program's model, random numbers and data are as they were."""

import contextlib
import copy
import random
import sys
from typing import Any, Iterator, List, Tuple

from . import core, dataset
from .trainers import Refused, Training

modules: Any = sys.modules["_hec_hooks.modules"]
ROUNDS = 4  # of other samples each
PARTS = 2  # passes that become one
SIZE_MOST = 4  # samples of each
WEIGHTS_MOST = 1 << 20  # numbers of which gradients are compared, the smallest weights first
# Of the gradient, in fp32. Measured on the CPU with a GPT-2 of two layers and sequences of 8 to 24 tokens: counted over all passes it is the
# same to 1.5e-7, as a mean of passes it is off by 0.08.
SAME = 1e-3


def look(training: Training) -> float:
    """Bytes that a sample keeps for the backward pass, in fp32. Refused where the gradients are others."""
    norm = core.hooks.torch.nn.modules.batchnorm._BatchNorm
    names = {type(part).__name__ for part in training.model.modules() if isinstance(part, norm) or "BatchNorm" in type(part).__name__}
    if names:
        raise Refused("%s takes its mean over the samples of a pass" % sorted(names)[0])
    size = min(training.batch, SIZE_MOST)
    if training.samples() < PARTS * size:
        raise Refused("its data set has %d samples" % training.samples())
    why = dataset.Look(training.dataset, training.collate).why
    if why:
        raise Refused("no sample can be read once more: " + why)
    try:
        with _kept_numbers(), modules.aside(), core.quietly():
            return _compare(training, size)
    except Refused:
        raise
    except Exception as error:
        if core.of_a_signal(error):
            raise
        raise Refused("a pass beside the program fails: " + core.words_of(error)) from error


def _compare(training: Training, size: int) -> float:
    torch = core.hooks.torch
    model = copy.deepcopy(training.model).float().eval()
    weights = _weights(model)
    drawn = random.Random(0)  # the same in all ranks
    with torch.enable_grad():
        for _ in range(ROUNDS):
            whole, parts = _batches(training, size, drawn)
            saved = Saved(model)
            with torch.autograd.graph.saved_tensors_hooks(saved.pack, lambda value: value):
                loss = training.loss(model, [whole])
            one = _gradient(loss, weights)
            several = _gradient(training.loss(model, parts), weights)
            length = float(several.norm())
            if not 0 < length < float("inf"):
                raise Refused("there is no gradient to compare")
            difference = float((one - several).norm()) / length
            if not difference <= SAME:
                raise Refused("its loss is of the samples of a pass: gradients of larger ones differ by %.2g of themselves" % difference)
    return saved.bytes / (PARTS * size)


class Saved:
    """What a forward pass keeps for the backward pass, but for the weights."""

    def __init__(self, model: Any) -> None:
        self.known = {weight.data_ptr() for weight in model.parameters()}
        self.bytes = 0

    def pack(self, value: Any) -> Any:
        if value.data_ptr() not in self.known:
            self.known.add(value.data_ptr())
            self.bytes += value.numel() * value.element_size()
        return value


def _weights(model: Any) -> "List[Any]":
    found: "List[Any]" = []
    for weight in sorted((weight for weight in model.parameters() if weight.requires_grad), key=lambda weight: weight.numel()):
        if found and sum(one.numel() for one in found) + weight.numel() > WEIGHTS_MOST:
            break
        found.append(weight)
    return found


def _gradient(loss: Any, weights: "List[Any]") -> Any:
    torch = core.hooks.torch
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    return torch.cat([(torch.zeros_like(w) if g is None else g).reshape(-1) for g, w in zip(gradients, weights)])


def _batches(training: Training, size: int, drawn: random.Random) -> "Tuple[Any, List[Any]]":
    """All samples in one, and the same in several. Where collating them draws random numbers they are not collated a second time."""
    count, data = PARTS * size, training.dataset
    indices = drawn.sample(range(len(data)), count)
    items = list(data.__getitems__(indices)) if hasattr(data, "__getitems__") else [data[index] for index in indices]
    before = dataset.random_states()
    whole = training.collate(copy.deepcopy(items))
    ranges = [(first, first + size) for first in range(0, count, size)]
    if dataset.random_states() != before:
        return whole, [_sliced(whole, *of) for of in ranges]
    return whole, [training.collate(copy.deepcopy(items[first:end])) for first, end in ranges]


def _sliced(value: Any, first: int, end: int) -> Any:
    if isinstance(value, core.hooks.torch.Tensor):
        return value[first:end]
    if hasattr(value, "items"):
        return {key: _sliced(one, first, end) for key, one in value.items()}
    return type(value)(_sliced(one, first, end) for one in value) if type(value) in (list, tuple) else value


@contextlib.contextmanager
def _kept_numbers() -> "Iterator[None]":
    """The program's random numbers afterwards are those that it had."""
    torch, numpy = core.hooks.torch, sys.modules.get("numpy")
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    python, arrays = random.getstate(), numpy.random.get_state() if numpy is not None else None
    try:
        with torch.random.fork_rng(devices=list(devices)):
            yield
    finally:
        random.setstate(python)
        if numpy is not None:
            numpy.random.set_state(arrays)
