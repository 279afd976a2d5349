"""Loaders give batches in pinned memory, from which the program's copies to the device do not wait; other large tensors pass through
pinned memory on their way.

With workers, the thread of the loader's that PyTorch has for it pins them. What the program pinned itself is copied as it says: it
may be about to write to that."""

import functools
import queue
import sys
from typing import Any

from . import core, moves
from .tally import Tally

FRAMEWORK = "torch"

_LOOK_S = 5  # how often the thread that pins looks whether it is to end

_lever: Any = None
_tally: Any = None
_user: Any = None


class _User(moves.User):
    def batch(self, iterator: Any, data: Any) -> Any:
        return moves.pinned(data) if iterator.__dict__.get("_hec_pin") and moves.used() else data

    def given(self) -> None:
        _tally.add("batches")

    def moved(self) -> None:
        _tally.add("copies")


def _make_single(inner: Any) -> Any:
    @functools.wraps(inner)
    def __init__(self: Any, loader: Any) -> None:
        inner(self, loader)
        _note(loader)
        if not self._pin_memory:
            self._hec_pin = True

    return __init__


def _pin_memory_loop(arrived: Any, ready: Any, device: int, done: Any, *others: Any) -> None:
    """As PyTorch's, which makes lists of tuples; what cannot be pinned is passed on as it is."""
    core.hooks.torch.set_num_threads(1)
    core.hooks.torch.cuda.set_device(device)
    while not done.is_set():
        try:
            index, data = arrived.get(timeout=_LOOK_S)
        except queue.Empty:
            continue
        try:
            data = moves.pinned(data)
        except Exception:
            pass
        while not done.is_set():
            try:
                ready.put((index, data), timeout=_LOOK_S)
                break
            except queue.Full:
                continue
        del data


def _make_several(inner: Any) -> Any:
    @functools.wraps(inner)
    def __init__(self: Any, loader: Any) -> None:
        _note(loader)
        if loader.pin_memory or loader.pin_memory_device or not moves.used():
            inner(self, loader)
            return
        module = sys.modules["torch.utils.data._utils.pin_memory"]
        loop = module._pin_memory_loop
        loader.pin_memory, module._pin_memory_loop = True, _pin_memory_loop
        try:
            inner(self, loader)
        finally:
            loader.pin_memory, module._pin_memory_loop = False, loop

    return __init__


def _note(loader: Any) -> None:
    if loader.pin_memory:
        _lever.already("a loader with pin_memory")
    elif not moves.used():
        _lever.nothing("no device is in use when loaders start")


def _patches() -> "list[Any]":
    loader = sys.modules["torch.utils.data.dataloader"]
    return [
        core.Patch(loader._SingleProcessDataLoaderIter, "__init__", _make_single),
        core.Patch(loader._MultiProcessingDataLoaderIter, "__init__", _make_several),
    ]


_patched = core.Patches(_patches)


def _text(numbers: "dict[str, int]") -> str:
    return "%d pinned batches, %d copies to the device that did not wait" % (
        numbers.get("batches", 0),
        numbers.get("copies", 0),
    )


def inactive() -> bool:
    return _tally is None


def lever() -> Any:
    return _lever


def apply(lever: core.Lever) -> None:
    global _lever, _tally, _user
    if not inactive():  # as a part of copy_ahead
        revert()
    _lever = lever
    if not core.hooks.torch.cuda.is_available():
        lever.nothing("no CUDA device")
        return
    _tally = Tally(lever, _text)
    _patched.install()
    _user = _User(lever, revert)
    moves.install(_user)


def revert() -> None:
    global _tally
    moves.remove(_user)
    _patched.remove()
    if _tally is not None:
        _tally.close()
    _tally = None
