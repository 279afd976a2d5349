"""The variable is set before the program starts; here it is seen whether the allocator's segments are of that kind."""

import atexit
from typing import Any

from . import core
from .tally import after_steps

FRAMEWORK = "torch"
_STEPS = 10

_lever: Any = None


def look() -> None:
    cuda = core.hooks.torch.cuda
    if not cuda.is_initialized():
        return
    segments = cuda.memory_snapshot()
    grows = [segment for segment in segments if segment.get("is_expandable")]
    if grows:
        size = sum(segment["total_size"] for segment in grows)
        _lever.on("%d of %d segments grow in place, %d MB" % (len(grows), len(segments), size >> 20))
    elif segments:
        _lever.nothing("none of %d segments grows in place" % len(segments))


def apply(lever: core.Lever) -> None:
    global _lever
    _lever = lever
    atexit.register(_at_exit)
    after_steps(_STEPS, look)


def _at_exit() -> None:
    try:
        look()
    except Exception:
        pass


def revert() -> None:
    """The allocator stays as it is until the process ends."""
    atexit.unregister(_at_exit)
