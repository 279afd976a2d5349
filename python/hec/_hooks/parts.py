"""How long the program itself was in each part of a step of training: the forward pass (calls of outermost modules),
the backward pass and the optimizer. Time of the host: what the device is given there it does meanwhile or later.

While CUPTI records the device, the beginning and end of each are recorded as well: a kernel belongs to the part in which it was
launched, and so device time has parts too. And it is counted how often the ranks of a job make their gradients the same
(DistributedDataParallel)."""

import ctypes
from typing import Any, Optional

from . import core, profiler

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
SKIPPED = 3  # of each: they hold what comes once, as compiling

_total_ns = {FORWARD: 0, BACKWARD: 0, OPTIMIZER: 0}
_times = {FORWARD: 0, BACKWARD: 0, OPTIMIZER: 0}
_names = {part: b"part/" + part.encode() for part in _times}
_records: Any = None  # of libhectrace.so: whether CUPTI records the device just now
_recorded = False  # it did at the last look
_tells = False  # or now: parts that were over since then are recorded
_passes = _syncs = 0  # backward passes of a DistributedDataParallel, and those that synchronise gradients
_waiting: "Optional[bool]" = None  # whether the backward pass of what was called will
_held = ""
SYNC = "require_backward_grad_sync"  # DistributedDataParallel's: false within no_sync()


def keeps_none(module: Any) -> bool:
    return False


keeps = keeps_none  # whether a lever kept the gradients of the last pass from being synchronised; replaced by sync_once


def passed(module: Any) -> None:
    """A forward pass of an outermost module, which is trained."""
    global _waiting, _held
    sync = module.__dict__.get(SYNC)
    if sync is None:
        return
    _waiting = bool(sync) and not keeps(module)
    if not _held:
        held = sum(p.numel() * p.element_size() for p in module.parameters() if p.requires_grad)
        _held = "%d %d" % (held, getattr(module, "bucket_bytes_cap", 0))


def passed_back() -> None:
    """A backward pass begins: of several calls together, as of two inputs that are compared, there is one."""
    global _waiting, _passes, _syncs
    if _waiting is None:
        return
    _passes += 1
    _syncs += _waiting
    _waiting = None


def took(part: str, start_ns: int, end_ns: int) -> None:
    _times[part] += 1
    if _times[part] > SKIPPED:
        _total_ns[part] += end_ns - start_ns
        if _tells and not core.dormant:
            core.library.interval(_names[part], start_ns, end_ns)
    elif _times[part] == SKIPPED:  # CUDA has begun by now, or there is none
        core.guard("the parts of a step", _find_tracer)


def _find_tracer() -> None:
    global _records
    tracer = profiler.tracer(ctypes.PyDLL)  # which keeps the GIL: the call takes less time than giving it up
    _records = None if tracer is None else getattr(tracer, "hec_trace_records", None)


def look() -> None:
    """Before parts are worked off that were over since the last look. One in which recording began or ended counts: some of its kernels
    were seen."""
    global _recorded, _tells
    if _records is not None:
        before, _recorded = _recorded, bool(_records())
        _tells = before or _recorded


def report() -> None:
    """Nanoseconds in all, and times, of each part that was seen; synchronisations, passes and steps."""
    for part, times in _times.items():
        if times > SKIPPED:
            core.library.fact(part, "%d %d" % (_total_ns[part], times - SKIPPED))
    if _passes and _times[OPTIMIZER]:
        core.library.fact("gradients", _held)
        core.library.fact("gradient_syncs", "%d %d %d" % (_syncs, _passes, _times[OPTIMIZER]))


def forget() -> None:
    """Of the parent: a forked child begins anew."""
    global _records, _recorded, _tells, _passes, _syncs, _waiting
    _records, _recorded, _tells = None, False, False
    _passes = _syncs = 0
    _waiting = None
    for part in _times:
        _total_ns[part] = _times[part] = 0
