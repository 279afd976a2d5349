"""Levers that are switched while the program runs (docs/try.md).

HEC_LIVE names a file of one page that HEC writes: the number of its order, and the set of levers that it wants (launch/orders.h). At the
next boundary that set takes the place of the one before, and a phase of the timeline says when. Levers with LIVE are armed at the start:
they change nothing until they are asked for, and nothing again once they are not. The others are in from the start, as ever.

A boundary is the first call of an outermost module after a step: the optimizer has stepped, and the next pass has not begun. In a program
that does not train each call is a step."""

import mmap
import os
import struct
import sys
from typing import Any, Callable, Dict, List, Optional

from . import core

SIZE = 4096
WANTED, WANTED_MAX = 64, 1024

_outermost: Any = sys.modules["_hec_hooks.modules"]


class Armed:
    """A lever that can be switched."""

    def __init__(self, lever: core.Lever, module: Any) -> None:
        self.lever, self.module = lever, module
        self.on = self.applied = False

    def switch(self, on: bool) -> None:
        if on == self.on:
            return
        self.on = on
        keeps = getattr(self.module, "switch", None)  # what it made stays, as compiled code does
        try:
            if on and not self.applied:
                self.applied = True
                self.module.apply(self.lever)
            elif keeps is not None:
                keeps(on)
            else:
                self.applied = False
                self.module.revert()
        except Exception as error:
            self.lever.broke(error, self.module.revert)

    def end(self) -> None:
        if self.applied:
            self.applied = self.on = False
            self.module.revert()


class Switcher:
    """Of this process: carries out orders."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.page = mmap.mmap(descriptor, SIZE, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
        self.armed: "Dict[str, Armed]" = {}
        self.carried_out = 0
        self.stepped = False
        self.pid = os.getpid()

    def step(self, source: int) -> None:
        """One has ended: of the optimizer, where there is one."""
        self.stepped = source == core.optimizers.library.OPTIMIZER or not core.hooks.optimizer_seen

    def boundary(self) -> None:
        """Before a call of an outermost module."""
        if not self.stepped or os.getpid() != self.pid:
            return
        self.stepped = False
        number = self._number()
        if number in (0, self.carried_out):
            return
        wanted = self.page[WANTED : WANTED + WANTED_MAX].partition(b"\0")[0].decode("utf-8", "replace")
        if self._number() != number:  # it is being written
            self.stepped = True
            return
        began_ns = core.hooks.now_ns()
        self.carried_out = number
        self._switch([word.partition("=")[0] for word in wanted.split(",")])
        core.hooks.library.interval(b"switch/%d" % number, began_ns, core.hooks.now_ns())

    def _number(self) -> int:
        return int(struct.unpack_from("=Q", self.page, 0)[0])

    def _switch(self, wanted: "List[str]") -> None:
        """Off comes first, in the other order: a lever finds what it found when it was put in."""
        for name, armed in reversed(list(self.armed.items())):
            armed.switch(armed.on and name in wanted)
        for name, armed in self.armed.items():
            armed.switch(name in wanted)


_switcher: "Optional[Switcher]" = None
_inner: "Optional[Callable[..., int]]" = None


def arms(lever: core.Lever, module: Any) -> bool:
    """Whether it is switched while the program runs, and so not put in now."""
    global _switcher
    path = os.environ.get("HEC_LIVE", "")
    if not path or not getattr(module, "LIVE", False):
        return False
    if _switcher is None:
        _switcher = Switcher(path)
        _watch(_switcher)
    _switcher.armed[lever.name] = Armed(lever, module)
    return True


def _watch(switcher: Switcher) -> None:
    global _inner
    library = core.hooks.library
    inner = _inner = library.step

    def step(unit: bytes, units: float, source: int, t_ns: int) -> int:
        switcher.step(source)
        return int(inner(unit, units, source, t_ns))

    def before_call() -> None:
        try:
            switcher.boundary()
        except Exception as error:
            _outermost.before_call = None
            core.hooks.failed("live levers", error)

    library.step = step
    _outermost.before_call = before_call


def off() -> None:
    """All of them, for good."""
    global _switcher, _inner
    if _switcher is None:
        return
    _outermost.before_call = None
    core.hooks.library.step = _inner
    for armed in reversed(list(_switcher.armed.values())):
        try:
            armed.end()
        except Exception as error:
            armed.lever.broke(error, lambda: None)
    _switcher = _inner = None


__all__ = ["arms", "off"]
