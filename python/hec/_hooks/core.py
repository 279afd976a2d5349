"""What the hooks share: whether they record, the guard around each of them, and the accounts of what they cost."""

import os
import sys
import time
from typing import Any, Callable, Dict, Optional

ERRORS_MAX = 8  # a hook that failed so often switches itself off
NOTED_FROM = 256  # events: what ends abruptly before, as a forked child does, loses nothing

torch: Any = None
library: Any = None  # library.Library, once there is one
installed = False
# A process that may be a mere helper (a worker of a data loader) records nothing until an optimizer steps in it.
dormant = False
profiling = False  # torch.profiler is on: launch nothing on the device
optimizer_seen = False  # calls of modules are no steps any more

facts: Dict[str, str] = {}
_facts_reported: "set[str]" = set()
_ranks_reported = False
_errors: Dict[str, int] = {}
off: Dict[str, str] = {}  # hooks that switched themselves off, and why

awake = False  # the sampler of stacks runs, or would if it had a rate
steady = False  # recording, awake, and no hook is off: then a hook asks nothing more
notes = False  # steady, and there were many events: what is seen of the next ones is noted, and worked off later (later.py)
started_ns = time.monotonic_ns()
events = 0  # calls of hooks, samples of stacks not among them
timed = 0  # of those, the ones whose time was taken: every eighth, and all that were worked off together
timed_ns = 0

_package = __name__.rpartition(".")[0]
_here = os.path.dirname(os.path.abspath(__file__))
now_ns = time.monotonic_ns


def guard(name: str, function: Callable[[], None]) -> None:
    try:
        function()
    except Exception as error:
        failed(name, error)


def failed(name: str, error: Exception, most: int = ERRORS_MAX) -> None:
    """Called in the `except` of a hook. An exception that a signal handler of the program raised while the hook ran is
    the program's, and goes on its way."""
    global steady, notes
    if not is_ours(error):
        raise error
    count = _errors[name] = _errors.get(name, 0) + 1
    if count < most or name in off:
        return
    off[name] = "%s: %s" % (type(error).__name__, error)
    steady = notes = False
    try:
        library.fact("hooks_off", "%s is off after %d errors (the last: %s)" % (name, count, off[name]))
    except Exception:
        pass


def is_ours(error: Exception) -> bool:
    """Whether it arose in the hooks or levers, or in what they called in PyTorch or Python's library."""
    known = (os.path.dirname(_here), os.path.dirname(torch.__file__ if torch else __file__))
    standard = (os.path.dirname(os.__file__), "<frozen")
    traceback = error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not name.startswith(known) and (not name.startswith(standard) or "-packages" in name):
            return False
        traceback = traceback.tb_next
    return True


def may(name: str) -> bool:
    """Whether a hook may record; asked unless `steady`. An event of the program: what it needs is started."""
    wake()
    return not dormant and name not in off


def wake() -> None:
    global steady, notes
    if dormant or not installed:
        return
    if not awake:
        stacks.start()
    steady = not off
    notes = steady and events >= NOTED_FROM


def report_facts() -> None:
    """Those that were not reported yet: PyTorch may come after another framework."""
    for key, text in list(facts.items()):
        if key not in _facts_reported:
            _facts_reported.add(key)
            library.fact(key, text)


def forget_facts() -> None:
    """Somebody else reads now."""
    global _ranks_reported
    _facts_reported.clear()
    _ranks_reported = False


def spent(start_ns: int) -> None:
    """At the end of a hook that began at start_ns."""
    global timed, timed_ns, events, notes
    events += 1
    if events == NOTED_FROM:
        notes = steady
    if not events & 7:
        timed += 1
        timed_ns += now_ns() - start_ns


def spent_on(count: int, ns: int) -> None:
    """On so many calls of hooks that were worked off together."""
    global timed, timed_ns, events
    events += count
    timed += count
    timed_ns += ns


def report_ranks() -> None:
    """How many processes the job of this one has, and which of them it is, once PyTorch knows."""
    global _ranks_reported
    distributed = sys.modules.get("torch.distributed")
    if not _ranks_reported and distributed is not None and distributed.is_available() and distributed.is_initialized():
        _ranks_reported = True
        size = distributed.get_world_size()
        local = os.environ.get("LOCAL_RANK", "")
        library.fact("world_size", "%d" % size)
        if size > 1:
            library.fact("rank", "%d %s %d" % (distributed.get_rank(), local if local.isdigit() else "-1", size))


def report_cost() -> None:
    """What the hooks themselves took, of the main thread's time, so far."""
    elapsed_ns = max(1, now_ns() - started_ns)
    event_ns = timed_ns / max(1, timed)
    share = (event_ns * events + stacks.cost_ns) / elapsed_ns
    library.fact("hook_ppm", "%.0f" % (1e6 * share))
    library.fact(
        "hook_cost",
        "%.4f%% (%d events of %.1f us, %d stack samples of %.1f us, in %.1f s)"
        % (
            100.0 * share,
            events,
            event_ns / 1e3,
            stacks.samples,
            stacks.cost_ns / 1e3 / max(1, stacks.samples),
            elapsed_ns / 1e9,
        ),
    )


def reset_after_fork() -> None:
    global timed, timed_ns, events, started_ns, profiling, notes
    forget_facts()
    profiling = notes = False
    timed = timed_ns = events = 0
    started_ns = now_ns()


class Patch:
    """One function of PyTorch replaced by a wrapper of it, and put back."""

    def __init__(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self.owner, self.name = owner, name
        self.original = owner.__dict__[name]
        self.wrapper = make(self.original)

    def install(self) -> None:
        if self.owner.__dict__[self.name] is self.original:
            setattr(self.owner, self.name, self.wrapper)

    def remove(self) -> None:
        if self.owner.__dict__[self.name] is self.wrapper:  # else somebody wrapped it again: leave it
            setattr(self.owner, self.name, self.original)


class Patches:
    """The patches of one hook, made when they are first installed."""

    def __init__(self, make: "Callable[[], list[Patch]]") -> None:
        self._make = make
        self._made: "Optional[list[Patch]]" = None

    def install(self) -> None:
        if self._made is None:
            self._made = self._make()
        for patch in self._made:
            patch.install()

    def remove(self) -> None:
        for patch in reversed(self._made or []):
            patch.remove()


def in_mode() -> bool:
    """Whether the program watches each operation by a mode of its own: then ours would be among them."""
    length = getattr(torch._C, "_len_torch_dispatch_stack", None)
    return length is not None and length() > 0


def is_traced() -> bool:
    """Until PyTorch is there: find_is_traced."""
    return False


def compiling_flag() -> Any:
    """What has `_is_compiling_flag`, which PyTorch itself reads; None where it has none."""
    compiler = sys.modules.get("torch.compiler")
    return compiler if hasattr(compiler, "_is_compiling_flag") else None


def find_tracing_state() -> "Callable[[], Any]":
    """What torch.jit.trace keeps while it traces: whoever looks at a tensor then is in the graph. None: it does not."""
    return getattr(torch._C, "_get_tracing_state", lambda: None)


def find_is_traced() -> "Callable[[], bool]":
    """Whether torch.compile or torch.jit.trace traces what is called. Reads PyTorch's flag without the two calls around it."""
    compiler, tracing_state = sys.modules.get("torch.compiler"), find_tracing_state()
    if compiling_flag() is not None:
        return lambda: compiler._is_compiling_flag or tracing_state() is not None  # type: ignore[union-attr]
    compiling = getattr(compiler, "is_compiling", is_traced)
    return lambda: compiling() or tracing_state() is not None


def keep_from_compiling(package: str = _package) -> None:
    """The frames of the hooks, or of another package of ours, run as they are, also where torch.compile is on: it compiles what they call, as ever."""
    frames = getattr(torch._C._dynamo, "eval_frame", None) if hasattr(torch._C, "_dynamo") else None
    skip = getattr(frames, "skip_code", None)  # until PyTorch 2.6
    if skip is None and hasattr(frames, "set_code_exec_strategy"):
        strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.DEFAULT)

        def skip(code: Any) -> None:
            frames.set_code_exec_strategy(code, strategy)

    if skip is None:
        return
    for name, module in list(sys.modules.items()):
        if name.startswith(package + "."):
            for value in list(module.__dict__.values()):
                if getattr(value, "__module__", None) == name:
                    _each_code(value, skip)


def _each_code(value: Any, do: Callable[[Any], None]) -> None:
    if isinstance(value, type):
        for method in value.__dict__.values():
            _each_code(getattr(method, "__func__", method), do)
    code = getattr(value, "__code__", value)
    if hasattr(code, "co_consts"):
        do(code)
        for constant in code.co_consts:
            if hasattr(constant, "co_consts"):
                _each_code(constant, do)


from . import stacks  # noqa: E402  (which uses this module)
