"""Levers that are switched while the program runs (docs/try.md).

HEC_LIVE names a file of one page that HEC writes: the number of its order, and the set of levers that it wants (launch/orders.h). At the
next boundary that set takes the place of the one before, and a phase of the timeline says when. Levers with LIVE are armed at the start:
they change nothing until they are asked for, and nothing again once they are not. The others are in from the start, as ever.

A boundary is the first call of an outermost module after a step: the optimizer has stepped, and the next pass has not begun. In a program
that does not train each call is a step.

The ranks of a job switch at the same step: each says on the page which order it has read, and at which step; when all of one host have, HEC
says from which step on. None waits for another. A job of more hosts than one has no such page, and does not switch.

Before a set is put in for the first time, the call that is about to be made is made under it and without it, beside the program
(shadow.py). A set that computes something else stays out, and the phase says so. When a lever of a set fails, the set goes, and a phase says
of which order it was. A rank of a job goes on with it, as the others do."""

import functools
import mmap
import os
import struct
import sys
from typing import Any, Callable, Dict, List, Optional

from . import core, finished, ranks, shadow

SIZE = 4096
CHANGES, FROM, WANTED, WANTED_MAX = 8, 16, 64, 1024
RANKS, RANK_SIZE, RANKS_MAX = 2048, 16, 128

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
            self.on = self.applied = False
            self.lever.broke(error, self.module.revert)

    def end(self) -> None:
        if self.applied:
            self.applied = self.on = False
            self.module.revert()


class Switcher:
    """Of this process: carries out orders."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self.page = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        self.armed: "Dict[str, Armed]" = {}
        self.acknowledged = 0
        self.steps = 0
        self.read = bytes(8)  # of the number: the last that was carried out
        self.on = False  # any lever
        self.measured = False  # an order was carried out: steps are of a block
        self.finished = finished.Finished(core.hooks.library.step)
        self.pid = os.getpid()
        self.judged: "Dict[str, Optional[shadow.Wrong]]" = {}  # by the set
        self.unfit = ""  # why a set was not compared

    def has_work(self) -> bool:
        """An order has come, or a lever of the set that is on may have failed."""
        return bool(self.page[:8] != self.read or self.on)

    def boundary(self, module: Any, inner: Any, args: tuple, kwargs: dict) -> None:
        """Before a call of an outermost module, after a step."""
        if any(armed.on and armed.lever.state == "failed" for armed in self.armed.values()) and self._is_alone():
            self._failed()
        if self.page[:8] == self.read:
            return
        number = self._number()
        if number == 0 or os.getpid() != self.pid:
            return
        (changes,) = struct.unpack_from("=I", self.page, CHANGES)
        wanted = self.page[WANTED : WANTED + WANTED_MAX].partition(b"\0")[0].decode("utf-8", "replace")
        if self._number() != number:  # it is being written: the next boundary sees it
            return
        if not self._is_agreed(number):
            return
        self.finished.wait()  # what comes after the switch is of the new set
        began_ns = core.hooks.now_ns()
        names = [word.partition("=")[0] for word in wanted.split(",") if word]
        if names and wanted not in self.judged:
            call = functools.partial(_outermost.beside, module, inner)
            self.judged[wanted] = self._judge(names, changes, lambda: shadow.Beside(module, call, args, kwargs))
        wrong = self.judged.get(wanted)
        failed = self._is_alone() and any(name in self.armed and self.armed[name].lever.state == "failed" for name in names)
        self._switch([] if wrong or failed else names)
        self.read = struct.pack("=Q", number)
        self.measured = True
        answer = "wrong/%d/%s/%.3g" % (number, wrong.what, wrong.difference) if wrong else "failed/%d" % number if failed else "switch/%d" % number
        core.hooks.library.interval(answer.encode(), began_ns, core.hooks.now_ns())

    def _failed(self) -> None:
        """A lever of the set that is on: none of it is from now on, and HEC hears of the order."""
        began_ns = core.hooks.now_ns()
        (number,) = struct.unpack("=Q", self.read)
        self._switch([])
        core.hooks.library.interval(b"failed/%d" % number, began_ns, core.hooks.now_ns())

    def _is_alone(self) -> bool:
        """Else the other ranks go on with the set, and what it changes of communication has to be the same in all."""
        job = ranks.distributed()
        return job is None or bool(job.get_world_size() == 1)

    def _is_agreed(self, number: int) -> bool:
        """Whether all ranks carry this order out before this step, or one after it."""
        job = ranks.distributed()
        if job is None or job.get_world_size() == 1:
            return True
        rank = job.get_rank()
        if job.get_world_size() > RANKS_MAX:
            return False
        if self.acknowledged != number:
            struct.pack_into("=Q", self.page, RANKS + rank * RANK_SIZE + 8, self.steps)
            struct.pack_into("=Q", self.page, RANKS + rank * RANK_SIZE, number)
            self.acknowledged = number
        (since,) = struct.unpack_from("=Q", self.page, FROM)
        return 0 < since <= self.steps and self._number() == number

    def _judge(self, names: "List[str]", changes: int, beside: "Callable[[], shadow.Beside]") -> "Optional[shadow.Wrong]":
        """None: nothing is wrong, or nothing can be compared. Afterwards some of them are in."""
        self._switch([])
        try:
            job = ranks.distributed()
            if job is not None and job.get_world_size() > 1:  # one that finds its pass unfit would leave the others waiting for it
                raise shadow.Unfit("its passes are those of several ranks")
            compared = beside()
            bits = [armed.module.BITS for name, armed in self.armed.items() if name in names and hasattr(armed.module, "BITS")]
            compared.measure(min(bits, default=0))
            if not (compared.dropouts and self._compiled(names, changes, compared)):
                self._compare(names, changes, compared)
        except shadow.Wrong as wrong:
            wrong.__traceback__ = None  # it holds all that was compared
            return wrong
        except shadow.Unfit as why:
            self.unfit = str(why)
        except BaseException as error:
            if not isinstance(error, Exception) or core.of_a_signal(error):
                self._switch([])
                raise
            self.unfit = core.words_of(error)
        if self.unfit:
            core.hooks.library.fact("shadow.unfit", self.unfit)
        return None

    def _compare(self, names: "List[str]", changes: int, compared: shadow.Beside) -> None:
        self._switch(names)
        passes = [getattr(self.armed[name].module, "PASSES", 1) for name in names if name in self.armed]
        compared.judge(changes, max(passes, default=1))

    def _compiled(self, names: "List[str]", changes: int, compared: shadow.Beside) -> bool:
        """A set with a compiler is compared in two steps: without the compiler, and no dropout; then with the compiler, against the set
        without it, both with dropout. False: it has no compiler, or the second step found a difference, as where a compiler's dropout draws
        other numbers: then the whole set is to be compared without dropout."""
        first = [name for name in names if not (name in self.armed and getattr(self.armed[name].module, "COMPILES", False))]
        if len(first) == len(names):
            return False
        text = ",".join(first)
        if text not in self.judged:
            self._compare(first, changes, compared)
            self.judged[text] = None
        if self.judged[text] is not None:
            return False
        still = compared.dropouts
        self._switch(first)
        try:
            compared.with_dropout()
            self._compare(names, changes, compared)
            return True
        except (shadow.Wrong, shadow.Unfit):
            self._switch([])
            compared.without_dropout(still)
            return False

    def _number(self) -> int:
        return int(struct.unpack_from("=Q", self.page, 0)[0])

    def _switch(self, wanted: "List[str]") -> None:
        """Off comes first, in the other order: a lever finds what it found when it was put in."""
        with core.shielded():
            for name, armed in reversed(list(self.armed.items())):
                armed.switch(armed.on and name in wanted)
            for name, armed in self.armed.items():
                armed.switch(name in wanted)
        self.on = any(armed.on for armed in self.armed.values())


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
    hooks, library = core.hooks, core.hooks.library
    inner = _inner = library.step
    optimizer = core.optimizers.library.OPTIMIZER

    def step(unit: bytes, units: float, source: int, t_ns: int) -> int:
        """One has ended: of the optimizer, where there is one. The next call is at a boundary."""
        if source == optimizer or not hooks.optimizer_seen:
            switcher.steps += 1
            _outermost.before_call = before_call
        else:
            _outermost.before_call = None
        if switcher.measured:
            return switcher.finished.step(unit, units, source, t_ns)
        return int(inner(unit, units, source, t_ns))

    def before_call(module: Any, inner: Any, args: tuple, kwargs: dict) -> None:
        _outermost.before_call = None
        if not switcher.has_work():
            return
        try:
            switcher.boundary(module, inner, args, kwargs)
        except Exception as error:
            if core.of_a_signal(error):
                raise
            library.step = _inner
            core.hooks.failed("live levers", error)

    library.step = step


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
