"""How long the program itself was in each part of a step of training: the forward pass (calls of outermost modules),
the backward pass and the optimizer. Time of the host: what the device is given there it does meanwhile or later."""

from . import core

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
SKIPPED = 3  # of each: they hold what comes once, as compiling

_total_ns = {FORWARD: 0, BACKWARD: 0, OPTIMIZER: 0}
_times = {FORWARD: 0, BACKWARD: 0, OPTIMIZER: 0}


def took(part: str, start_ns: int, end_ns: int) -> None:
    _times[part] += 1
    if _times[part] > SKIPPED:
        _total_ns[part] += end_ns - start_ns


def report() -> None:
    """Nanoseconds in all, and times, of each part that was seen."""
    for part, times in _times.items():
        if times > SKIPPED:
            core.library.fact(part, "%d %d" % (_total_ns[part], times - SKIPPED))


def forget() -> None:
    """Of the parent: a forked child begins anew."""
    for part in _times:
        _total_ns[part] = _times[part] = 0
