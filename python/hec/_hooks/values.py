"""Numbers that a program computes, losses above all: reported in the order in which they came.

Nothing waits for the device. One on the CPU is read at once. Those on a GPU are kept, and a few times a second stacked and
copied to pinned memory behind the work already queued; they are reported when an event says that the copy is there."""

import os
from typing import Any, Optional

from . import core

ALL = os.environ.get("HEC_HOOKS_LOSSES") == "all"  # an experiment compares them step by step
FLUSH_NS = 100_000_000 if ALL else 500_000_000  # what an experiment ends loses the last of them
KEPT_MAX = 512 if ALL else 64

_all: "list[Values]" = []


class Values:
    """As many numbers at a time as there are names, of one device, stream and type at a time."""

    def __init__(self, names: "list[bytes]") -> None:
        self.names = names
        self._last_flush_ns = 0
        self._kept: "list[tuple[int, Any]]" = []  # time, tensor on a GPU
        self._of: Optional[tuple] = None
        self._flight: Optional[tuple] = None  # times, pinned memory, event
        self._buffers: "dict[Any, Any]" = {}
        self._left: "list[Any]" = []  # in a forked child: what must not be freed there
        _all.append(self)

    def take(self, value: Any, t_ns: int) -> None:
        """A detached tensor with an element for each name. One on a device that is being captured is passed over: its memory belongs to
        the graph."""
        kind = value.device.type
        if kind == "cpu":
            self._report(value.reshape(-1).tolist(), t_ns)
        elif kind == "cuda" and not core.torch.cuda.is_current_stream_capturing():
            of = (value.device.index, _stream(value.device.index), value.dtype)
            if of != self._of:
                self._kept.clear()
                self._of = of
            if len(self._kept) < KEPT_MAX:
                self._kept.append((t_ns, value.reshape(-1)))

    def _report(self, numbers: "list[float]", t_ns: int) -> None:
        for name, number in zip(self.names, numbers):
            core.library.value(name, number, t_ns)

    def _land(self) -> bool:
        """Report those whose copy has arrived. False: one is still on its way."""
        if self._flight is None:
            return True
        times, memory, event = self._flight
        if not event.query():
            return False
        self._flight = None
        for t_ns, numbers in zip(times, memory.tolist()):
            self._report(numbers, t_ns)
        return True

    def flush(self, t_ns: int, force: bool = False) -> None:
        """Not while the stream is captured for a CUDA graph: to ask for an event would end the program's capture with an error."""
        torch = core.torch
        if (not self._kept and not self._flight) or (not force and t_ns - self._last_flush_ns < FLUSH_NS):
            return
        if torch.cuda.is_current_stream_capturing():
            return
        self._last_flush_ns = t_ns
        if not self._land() or not self._kept or core.profiling or self._of is None:
            return
        device, stream, dtype = self._of
        if torch.cuda.current_device() != device or _stream(device) != stream or core.in_mode():
            return
        buffer = self._buffers.get(dtype)
        if buffer is None:
            buffer = self._buffers[dtype] = torch.empty(
                (KEPT_MAX, len(self.names)), dtype=dtype, device="cpu", pin_memory=True
            )
        with torch.no_grad(), torch._C.DisableTorchFunction():
            memory = buffer[: len(self._kept)]
            memory.copy_(torch.stack([value for _, value in self._kept]), non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._flight = ([kept_ns for kept_ns, _ in self._kept], memory, event)
        self._kept.clear()

    def finish(self) -> None:
        if not self._kept and self._flight is None:
            return
        import time

        t_ns = core.now_ns()
        for _ in range(2):
            while not self._land() and core.now_ns() - t_ns < 20_000_000:
                time.sleep(0.0005)
            if self._flight is None:
                self.flush(t_ns, force=True)

    def forked(self) -> None:
        self._left.extend([list(self._kept), self._flight, dict(self._buffers)])
        self._kept.clear()
        self._buffers.clear()
        self._flight = self._of = None


def _stream(device: int) -> int:
    return core.torch._C._cuda_getCurrentRawStream(device)


def finish() -> None:
    """At the end of the program: the last ones, if they come within 20 ms each."""
    for values in _all:
        values.finish()


def forked() -> None:
    """CUDA is of no use in a forked child; its objects are not even freed there."""
    for values in _all:
        values.forked()
