"""How long the program itself was in each part of a step of training: the forward pass (calls of outermost modules),
the backward pass and the optimizer. Time of the host: what the device is given there it does meanwhile or later.

While CUPTI records the device, each of them is told with its beginning and end: a kernel belongs to the part in which it was
launched, and so device time has parts too."""

import ctypes
from typing import Any

from . import core, profiler

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
SKIPPED = 3  # of each: they hold what comes once, as compiling

_total_ns = {FORWARD: 0, BACKWARD: 0, OPTIMIZER: 0}
_times = {FORWARD: 0, BACKWARD: 0, OPTIMIZER: 0}
_names = {part: b"part/" + part.encode() for part in _times}
_records: Any = None  # of libhectrace.so: whether CUPTI records the device just now
_recorded = False  # it did when a part was over last


def took(part: str, start_ns: int, end_ns: int) -> None:
    _times[part] += 1
    if _times[part] > SKIPPED:
        _total_ns[part] += end_ns - start_ns
        if _records is not None:
            _tell(part, start_ns, end_ns)
    elif _times[part] == SKIPPED:  # CUDA has begun by now, or there is none
        core.guard("the parts of a step", _find_tracer)


def _find_tracer() -> None:
    global _records
    tracer = profiler.tracer(ctypes.PyDLL)  # which keeps the GIL: the call takes less time than giving it up
    _records = None if tracer is None else getattr(tracer, "hec_trace_records", None)


def _tell(part: str, start_ns: int, end_ns: int) -> None:
    """Also of one in which it began or ended: some of its kernels were seen."""
    global _recorded
    before, _recorded = _recorded, bool(_records())
    if (before or _recorded) and not core.dormant:
        core.library.interval(_names[part], start_ns, end_ns)


def report() -> None:
    """Nanoseconds in all, and times, of each part that was seen."""
    for part, times in _times.items():
        if times > SKIPPED:
            core.library.fact(part, "%d %d" % (_total_ns[part], times - SKIPPED))


def forget() -> None:
    """Of the parent: a forked child begins anew."""
    global _records
    _records = None
    for part in _times:
        _total_ns[part] = _times[part] = 0
