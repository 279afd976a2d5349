"""Steps are reported when the device has finished them (live.py).

A program runs ahead of its device by a step or more, and by how many differs from block to block. An event on the stream marks the end of
each step. The step is reported at the end of a later one, with the time of its event. Only the first event is waited for: it gives the
difference between the clocks of host and device (elapsed_time resolves half a microsecond)."""

import collections
import os
from typing import Any, Callable, Deque, Optional, Tuple

from . import calls, core

WAITING_MOST = 1000  # steps that the device has not finished; then the oldest is waited for, as the driver does after about as many launches


class Finished:
    """report: the library's function for a step."""

    def __init__(self, report: "Callable[[bytes, float, int, int], int]") -> None:
        self.report = report
        self.waiting: "Deque[Tuple[bytes, float, int, int, Any]]" = collections.deque()
        self.device = -1  # of the events
        self.first: Any = None  # the event at which it was first_ns
        self.first_ns = 0
        self.result = 1
        self.pid = os.getpid()

    def step(self, unit: bytes, units: float, source: int, t_ns: int) -> int:
        """One has ended on the host at t_ns."""
        if os.getpid() != self.pid:  # a child has neither the device nor these events
            return int(self.report(unit, units, source, t_ns))
        self.waiting.append((unit, units, source, t_ns, self._mark()))
        if len(self.waiting) > WAITING_MOST and self.waiting[0][4] is not None:
            self.waiting[0][4].synchronize()
        while self.waiting and (self.waiting[0][4] is None or self.waiting[0][4].query()):
            self._report_next()
        return self.result

    def wait(self) -> None:
        """Until all are finished and reported."""
        while self.waiting:
            if self.waiting[0][4] is not None:
                self.waiting[0][4].synchronize()
            self._report_next()

    def _report_next(self) -> None:
        unit, units, source, t_ns, event = self.waiting.popleft()
        if event is not None:  # never before the host has asked for all of it
            t_ns = max(t_ns, min(self.first_ns + int(self.first.elapsed_time(event) * 1e6), core.hooks.now_ns()))
        self.result = int(self.report(unit, units, source, t_ns))

    def _mark(self) -> "Optional[Any]":
        """None: there is no device, or none whose stream can be marked now; the host's time stands for it."""
        cuda = core.hooks.torch.cuda
        if not cuda.is_initialized() or calls.is_capturing():
            return None
        if self.first is None:
            self.device = cuda.current_device()
            self.first = cuda.Event(enable_timing=True)
            self.first.record()
            self.first.synchronize()
            self.first_ns = core.hooks.now_ns()
        if cuda.current_device() != self.device:
            return None
        event = cuda.Event(enable_timing=True)
        event.record()
        return event


__all__ = ["Finished"]
