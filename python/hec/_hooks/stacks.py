"""Samples of the main thread's stack, taken by libhec.so (src/mark/stacks.c).

Its sampler is not one of `threading`: programs that list or join their threads do not see it. It handles no signals, and
it ends before the process forks, since Python warns of forks with threads; the next event of the program starts it
again."""

import ctypes
import os
import sys
import time
from typing import Any

from . import core

NAME = "stack samples"

HZ = 50.0
COST_MAX_NS = 20_000  # of one sample, 0.1 % of the time at 50 Hz: beyond it there are fewer

_ticks = 0
_calls_seen = 0
_callback: Any = None  # what the sampler calls once a second, kept alive
_library: Any = None  # in which a sampler runs


def _rate() -> float:
    try:
        return min(1000.0, max(0.0, float(os.environ.get("HEC_HOOKS_HZ", HZ))))
    except ValueError:
        return HZ


def start() -> None:
    global _callback, _library
    core.awake = True
    core.tell_facts()
    hz = _rate()
    if hz == 0 or NAME in core.off or not core.library.active():
        return
    if _callback is None:
        _callback = ctypes.CFUNCTYPE(None)(_second)
    unlocked = hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()
    _library = core.library
    if not _library.stacks_start(hz, COST_MAX_NS, not unlocked, _callback):
        core.switch_off(NAME, "in versions of Python before 3.9")


def stop() -> None:
    """Ends the sampler, and waits until the system has forgotten it (for 20 ms at most)."""
    if not core.awake:
        return
    core.awake = core.steady = False
    tid = _library.stacks_stop() if _library else 0
    if tid:
        deadline_ns = core.now_ns() + 20_000_000
        while os.path.exists("/proc/self/task/%d" % tid) and core.now_ns() < deadline_ns:
            time.sleep(0.0002)


def forked() -> None:
    """In the child: it has no such thread, and its ring knows no frames."""
    core.awake = core.steady = False
    if _library:
        _library.stacks_forget()


def counts() -> "tuple[int, int]":
    """Samples, and what they cost in all, ns."""
    cost = ctypes.c_int64()
    samples = _library.stacks_samples(ctypes.byref(cost)) if _library else 0
    return samples, cost.value


def _second() -> None:
    try:
        _tick()
    except Exception as error:
        try:
            core.failed(NAME, error, most=1)
        except Exception:
            pass


def _tick() -> None:
    """Look again for outermost modules where none is being called, and tell the cost now and then."""
    global _ticks, _calls_seen
    from . import modules

    elapsed_s = (core.now_ns() - core.started_ns) // 1_000_000_000
    if elapsed_s <= _ticks:
        return
    if not core.optimizer_seen and modules.calls == _calls_seen:
        modules.search()
    _calls_seen = modules.calls
    if any(_ticks < at <= elapsed_s for at in (10, 60)) or _ticks // 600 < elapsed_s // 600:
        core.tell_cost()
    _ticks = elapsed_s
