"""Loader workers are N batches ahead each, and stay from one pass to the next while the data set does not change."""

import functools
import sys
import weakref
from typing import Any

from . import core
from .dataset import Look, refusal
from .tally import Tally

FRAMEWORK = "torch"
_AHEAD = 4

_lever: Any = None
_tally: Any = None
_ahead = _AHEAD
_kept: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # loaders: iterator, state of the data set


def _make_init(inner: Any) -> Any:
    @functools.wraps(inner)
    def __init__(self: Any, loader: Any) -> None:
        had = loader.prefetch_factor
        if (had or 0) >= _ahead:
            _lever.already("a loader whose workers are %d batches ahead" % had)
            inner(self, loader)
            return
        loader.prefetch_factor = _ahead
        try:
            inner(self, loader)
        finally:
            loader.prefetch_factor = had
        _tally.numbers["ahead"] = _ahead
        _tally.add("passes")

    return __init__


def _make_reset(inner: Any) -> Any:
    @functools.wraps(inner)
    def _reset(self: Any, loader: Any, first_iter: bool = False) -> None:
        inner(self, loader, first_iter)
        if not first_iter and _kept.get(loader, (None,))[0] is self:
            # as a new iterator does: the random numbers of the main process are those it would have
            core.hooks.torch.empty((), dtype=core.hooks.torch.int64).random_(generator=loader.generator)

    return _reset


def _done(iterator: Any) -> bool:
    """Its pass has come to the end: nobody will ask it for more."""
    return bool(iterator._send_idx and iterator._rcvd_idx >= iterator._send_idx and not iterator._shutdown)


def _make_get_iterator(inner: Any) -> Any:
    @functools.wraps(inner)
    def _get_iterator(self: Any) -> Any:
        if self.num_workers == 0 or self.persistent_workers or refusal(self):
            return inner(self)
        look = Look(self.dataset, self.collate_fn)
        iterator, state = _kept.pop(self, (None, None))
        if iterator is not None and look.state is not None and look.state == state and _done(iterator):
            _kept[self] = iterator, state
            iterator._reset(self)
            _tally.add("again")
            return iterator
        if iterator is not None and _done(iterator):
            iterator._shutdown_workers()
        if look.state is None:
            return inner(self)
        self.__dict__["persistent_workers"] = True
        try:
            iterator = inner(self)
        finally:
            self.__dict__["persistent_workers"] = False
        if hasattr(iterator, "_workers"):
            _kept[self] = iterator, look.state
        return iterator

    return _get_iterator


def _patches() -> "list[Any]":
    module = sys.modules["torch.utils.data.dataloader"]
    return [
        core.Patch(module._MultiProcessingDataLoaderIter, "__init__", _make_init),
        core.Patch(module._BaseDataLoaderIter, "_reset", _make_reset),
        core.Patch(module.DataLoader, "_get_iterator", _make_get_iterator),
    ]


_patched = core.Patches(_patches)


def _text(numbers: "dict[str, int]") -> str:
    return "workers %d batches ahead in %d passes, kept for %d more" % tuple(
        numbers.get(name, 0) for name in ("ahead", "passes", "again")
    )


def apply(lever: core.Lever) -> None:
    global _lever, _tally, _ahead
    _lever, _ahead = lever, int(lever.value) if lever.value else _AHEAD
    _tally = Tally(lever, _text)
    _patched.install()


def revert() -> None:
    _patched.remove()
    _kept.clear()
    if _tally is not None:
        _tally.close()
