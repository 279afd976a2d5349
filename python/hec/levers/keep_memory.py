"""torch.cuda.empty_cache() keeps the memory, while a share of the device's is free."""

import functools
from typing import Any

from . import core
from .tally import Tally

FRAMEWORK = "torch"
LIVE = True
_FREE = 0.1  # of the device's memory; below that the program's call does what it says

_tally: Any = None


def _room() -> bool:
    cuda = core.hooks.torch.cuda
    if not cuda.is_initialized():
        return False
    free, total = cuda.mem_get_info()
    return bool(free > _FREE * total)


def _make(inner: Any) -> Any:
    @functools.wraps(inner)
    def empty_cache() -> None:
        try:
            keep = _room()
            _tally.add("kept" if keep else "given back")
        except Exception:
            keep = False
        if not keep:
            inner()

    return empty_cache


def _patches() -> "list[Any]":
    """torch.cuda.empty_cache is torch.cuda.memory.empty_cache, and stays it."""
    first = core.Patch(core.hooks.torch.cuda.memory, "empty_cache", _make)
    return [first, core.Patch(core.hooks.torch.cuda, "empty_cache", lambda inner: first.wrapper)]


_patched = core.Patches(_patches)


def _text(numbers: "dict[str, int]") -> str:
    kept, given = numbers.get("kept", 0), numbers.get("given back", 0)
    return "%d of %d calls of empty_cache() kept the memory" % (kept, kept + given)


def apply(lever: core.Lever) -> None:
    global _tally
    _tally = Tally(lever, _text)
    _patched.install()


def revert() -> None:
    _patched.remove()
    if _tally is not None:
        _tally.close()
