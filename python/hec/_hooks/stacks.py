"""Samples of the main thread's stack, taken by a thread of their own where HEC cannot read them from outside.

`hec run` reads stacks out of the process's memory (src/observe/stacks): then this thread only looks after the hooks once a second.

The thread is not one of `threading`: programs that list or join their threads do not see it. It handles no signals, and
it ends before the process forks, since Python warns of forks with threads; the next event of the program starts it
again. It holds no frame of the program while the program can go on: what a frame refers to has to end where the program
ends it, and in its thread. An iterator over workers that ended here did so while the program forked the next ones, and
these hung."""

import gc
import itertools
import operator
import os
import sys
import threading
import time
from _thread import allocate_lock, start_new_thread
from typing import Any, Dict, Optional, Tuple

from . import core, library, parts

NAME = "stack samples"

HZ = 50.0
# Of one sample, 0.075 % of the time at 50 Hz: beyond it there are fewer. On an H100 host one takes 45 to 120 us, and passing
# the interpreter's lock to this thread and back takes the main thread about as long again.
COST_MAX_NS = 15_000
DEPTH_MAX = 100  # frames of a sample that are kept: the outermost, and the innermost
OUTERMOST = 30
WALK_MAX = 1000
NODES_MAX = 60000
PLACES_MAX = 200000
IMPORTS = "<frozen importlib"  # frames of the import system say nothing

OUTSIDE_S = 1.0  # so long HEC may take to say that it reads the stacks from outside; meanwhile it is asked
ASK_S = 0.05
TICK_S = 1.0

END_S = 10.0  # so long the program waits at most for the thread to end, and only where the machine is so busy that it gets no turn

CUDA_S = 0.2  # without PyTorch: how often it looks whether the process uses CUDA; until then it reports nothing

samples = 0
cost_ns = 0  # of the samples: of the main thread's time, when it waits for the interpreter's lock

_stop = allocate_lock()  # held while the thread shall run
_begun: "Optional[Begun]" = None  # of the thread
_pid = os.getpid()  # and thread id of the main thread
# The tree of stacks: (parent, code by its id, line) to node; and, since finding a line is slow, (parent, code by its
# id, instruction) to node. Hashing a code object itself would take microseconds. _codes keeps the ids in use.
_nodes: "Dict[Tuple[int, int, int], int]" = {}
_places: "Dict[Tuple[int, Any, int], int]" = {}
_codes: "Dict[int, Any]" = {}
_next_node = 1
_ticks = 0
_calls_seen = 0
begun = False  # the thread has found something to do
ended = False  # the process ends: no other thread begins
_window = 0  # in which HEC reads; each has a tree of its own


class Begun:
    """Whether a thread runs already, and which it is."""

    def __init__(self) -> None:
        self.tid = 0
        self._waits = allocate_lock()
        self._waits.acquire()

    def told(self) -> None:
        """By the thread."""
        self.tid = threading.get_native_id()
        self._waits.release()

    def wait_for_end(self) -> None:
        """Until the system has forgotten the thread. One that gets its first turn when Python has ended would read what is freed, and
        end the process by a signal."""
        deadline_ns = core.now_ns() + int(END_S * 1e9)
        if self._waits.acquire(timeout=END_S):
            while os.path.exists("/proc/self/task/%d" % self.tid) and core.now_ns() < deadline_ns:
                time.sleep(0.0002)


def _rate() -> float:
    try:
        return min(1000.0, max(0.0, float(os.environ.get("HEC_HOOKS_HZ", HZ))))
    except ValueError:
        return HZ


def start() -> None:
    global _begun
    core.awake = True
    if core.torch is not None:
        core.report_facts()
    hz = _rate()
    if hz == 0 or ended or NAME in core.off or (core.torch is not None and not core.library.active()):
        return
    _stop.acquire(False)
    begun = Begun()
    try:
        start_new_thread(_run, (hz, _stop, begun))
        _begun = begun
    except Exception as error:
        core.failed(NAME, error)


def stop() -> None:
    """Ends the thread, and waits until the system has forgotten it (for END_S at most)."""
    global _stop, _begun
    if not core.awake:
        return
    core.awake = core.steady = False
    thread, _begun = _begun, None
    lock, _stop = _stop, allocate_lock()
    if lock.locked():
        lock.release()
    if thread is not None:
        thread.wait_for_end()


def forked() -> None:
    """In the child: it has no such thread, and its ring knows no frames."""
    global _stop, _begun, _pid, samples, cost_ns
    _pid = os.getpid()
    core.awake = core.steady = False
    _stop = allocate_lock()
    _begun = None
    samples = cost_ns = 0
    _forget_tree()


def _forget_tree() -> None:
    global _next_node
    _next_node = 1
    _nodes.clear()
    _places.clear()
    _codes.clear()


def _pause_s(since_ns: int) -> float:
    """How long this thread has nothing to sample; 0: it has. since_ns: when it began."""
    if os.environ.get("HEC_STACKS") != "outside":
        return 0.0
    told = core.library.stacks()
    if told == library.STACKS_OUTSIDE:
        return TICK_S
    waits = told == library.STACKS_UNKNOWN and core.now_ns() - since_ns < OUTSIDE_S * 1e9
    return ASK_S if waits else 0.0


def _run(hz: float, lock: Any, thread: Begun) -> None:
    global samples, cost_ns, begun
    thread.told()
    try:
        import signal

        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        main = threading.main_thread().ident
        period_s = 1.0 / hz
        mean_ns = 0.0
        while core.torch is None and not library.has_cuda():
            if lock.acquire(timeout=CUDA_S):
                return
        if core.torch is None:
            core.dormant = False  # who uses a GPU is no mere helper
        core.report_facts()
        begun = True
        began_ns = core.now_ns()
        while not lock.acquire(timeout=_pause_s(began_ns) or period_s):
            if not _listened():
                if not core.library.active():
                    break
                continue
            start_ns = core.now_ns()
            if _pause_s(began_ns):
                if not _tick(start_ns):
                    break
                continue
            _sample(main, int(period_s * 1e6))
            took_ns = core.now_ns() - start_ns
            samples += 1
            cost_ns += took_ns
            mean_ns += (took_ns - mean_ns) / 8
            # one that waited for the interpreter's lock in between is no cost: the mean, not the sample, decides
            period_s = max(1.0, mean_ns / COST_MAX_NS) / hz
            if not _tick(start_ns):
                break
    except Exception as error:
        try:
            core.failed(NAME, error, most=1)
        except Exception:
            pass


def _tick(now_ns: int) -> bool:
    """About once a second: look again for outermost modules where none is being called, and report the cost. False when
    HEC has gone."""
    global _ticks, _calls_seen
    elapsed_s = (now_ns - core.started_ns) // 1_000_000_000
    if elapsed_s <= _ticks:
        return True
    _ticks = elapsed_s
    if core.torch is not None:
        from . import later, modules

        if core.now_ns() - later.since_ns > 3 * later.LATEST_NS:  # no step has come since
            later.work_off(core.now_ns())
        if not core.optimizer_seen and modules.calls == _calls_seen:
            modules.search()
        _calls_seen = modules.calls
    core.report_ranks()
    if elapsed_s in (10, 60) or elapsed_s % 600 == 0:
        core.report_cost()
        parts.report()
    return bool(core.library.active())


def _listened() -> bool:
    """Whether somebody reads just now. Who begins to knows nothing of what was reported before."""
    global _window
    window = core.library.window()
    if window >= 0 and window != _window:
        _window = window
        _forget_tree()
        core.forget_facts()
        core.report_facts()
    return window >= 0


_parts = operator.attrgetter("f_code", "f_lasti")
_NEVER = object()


def _once(function: Any) -> Any:
    """Calls it when it is read."""
    return itertools.islice(iter(function, _NEVER), 1)


def _walk(thread: int) -> "list[tuple[Any, int]]":
    """Code and instruction of the frames of a thread, innermost first. Lazy iterators of C, and one call that runs them: the
    interpreter changes threads between instructions of Python alone, so no frame is left when it does.

    To make frames may begin a garbage collection, whose finalizers are Python: before 3.11.5 that lets the program go on while frames
    are listed, so that they dangle, and a fork waits for ever (CPython issue 106883). It is off for the same one call."""
    innermost = map(operator.methodcaller("get", thread), _once(sys._current_frames))
    links = itertools.chain(innermost, itertools.repeat("f_back", WALK_MAX - 1))
    frames = map(_parts, itertools.takewhile(bool, itertools.accumulate(links, getattr)))
    if sys.version_info >= (3, 12):
        return list(frames)
    collects: "list[bool]" = []
    before = itertools.chain(map(collects.append, _once(gc.isenabled)), _once(gc.disable))
    after = itertools.starmap(gc.enable, itertools.compress(((),), collects))
    try:
        found = list(itertools.chain(before, frames, after))
    except BaseException:
        if collects == [True]:
            gc.enable()
        raise
    return found[2 : len(found) - sum(collects)]


def _line(code: Any, instruction: int) -> int:
    """As f_lineno of a frame."""
    if instruction < 0:
        return int(code.co_firstlineno)
    if hasattr(code, "co_lines"):  # Python 3.10
        return next((line for start, end, line in code.co_lines() if start <= instruction < end), 0) or 0
    import dis

    return max((at, line) for at, line in dis.findlinestarts(code) if at <= instruction)[1]


def _sample(thread: Any, period_us: int) -> None:
    stack = _walk(thread)
    if len(stack) > DEPTH_MAX:
        stack[DEPTH_MAX - OUTERMOST : len(stack) - OUTERMOST] = []
    node = 0
    for code, instruction in reversed(stack):
        known = _places.get((node, id(code), instruction))
        if known is None:
            known = _place(node, code, instruction)
            if known is None:
                return
        node = known
    if node:
        core.library.stack(_window, _pid, node, period_us)


def _place(parent: int, code: Any, instruction: int) -> "Optional[int]":
    """The node of a frame that was not seen at this instruction before; None when there is no room for it."""
    if code.co_filename.startswith(IMPORTS):
        node = parent
    elif parent and code.co_name == "<module>" and code.co_filename != getattr(sys.modules["__main__"], "__file__", None):
        # of a module that is being imported the line does not matter, and its code is soon gone (python -m runs the
        # program below frames of runpy)
        place = (parent, code.co_filename, 0)
        node = _places.get(place) or _define(parent, code, 0)
        if node:
            _places[place] = node
        return node or None
    else:
        _codes[id(code)] = code
        node = _define(parent, code, _line(code, instruction))
        if node == 0:
            return None
    if len(_places) < PLACES_MAX:
        _codes[id(code)] = code
        _places[(parent, id(code), instruction)] = node
    return node


def _define(parent: int, code: Any, line: int) -> int:
    """The node, a new one if need be; 0 when there is no room for it."""
    global _next_node
    known = _nodes.get((parent, id(code), line)) if line else None
    if known is not None:
        return known
    if _next_node >= NODES_MAX:
        return 0
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.11
    if not core.library.frame(_window, _next_node, parent, code.co_filename, name, line):
        return 0
    node = _next_node
    _next_node += 1
    if line:
        _nodes[(parent, id(code), line)] = node
    return node
