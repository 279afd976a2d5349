"""Marks for HEC: steps, phases, units of work and knobs of a Python program.

    import hec

    batch = hec.knob("batch", 64, 16, 512)
    for x, y in data:
        with hec.phase("train"):
            train(x, y)
        hec.step(samples=batch)

Run by ``hec run -- python train.py``, the program reports to HEC what work it does, so that energy is given per sample.
Run alone, the same program does the same: importing this package then imports nothing else, and every call returns
at once. No mark raises because of HEC, even if something is missing or broken; marks are dropped rather than waited for.

``hec.report("run.hec")`` is a run file as a notebook shows it, and as data.

Functions may be called from any thread, and in forked children, which are seen as processes of their own.
"""

import os
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union, overload

from ._version import __version__

if TYPE_CHECKING:
    from ._report import Report

__all__ = ["active", "knob", "phase", "report", "step", "units", "__version__"]

_F = TypeVar("_F", bound=Callable[..., Any])

# The binding to libhec.so, made at the first mark: None until then, and False when there is nothing to bind to.
# Without HEC it is False from the start, and ctypes is never imported.
_library: Any = None if os.environ.get("HEC_SOCKET") or os.environ.get("HEC_KNOBS") else False


def _bind() -> Any:
    global _library
    try:
        from . import _ctypes

        _library = _ctypes.load() or False
    except Exception:  # a broken installation must not reach the program
        _library = False
    return _library


def active() -> bool:
    """Whether marks are being recorded now."""
    library = _library
    if library is None:
        library = _bind()
    return bool(library and library.active())


def step(units: Optional[float] = None, **named: float) -> None:
    """A step ends now, and did so many units of work.

    ``step(128)`` counts 128 of the unit called "unit"; ``step(samples=128)`` counts 128 of the unit "sample" (one
    plural "s" at the end of the keyword is taken off; any name will do). ``step(samples=128, tokens=65536)`` ends
    one step, of samples, and adds to the tokens as :func:`units` does. ``step()`` counts 1 "unit".

    Counts are finite and not negative; others are dropped. Call it once at the end of each step.
    """
    library = _library
    if library is False:
        return
    if library is None:
        library = _bind()
        if library is False:
            return
    library.step(units, named)


def units(name: str, count: float = 1) -> None:
    """Add ``count`` to the run's unit of that name (in the singular: "token"), without ending a step."""
    library = _library
    if library is False:
        return
    if library is None:
        library = _bind()
        if library is False:
            return
    library.units(name, count)


class phase:
    """A phase of the calling thread, as a context manager or a decorator; phases nest.

        with hec.phase("data"):
            batch = next(loader)

        @hec.phase("data")
        def load(): ...

    One object may be used again and by several threads. Decorated coroutine functions are marked from their first
    to their last instruction, waiting included: phases of coroutines that run by turns in one thread overlap, and
    HEC then sees them as if nested. Decorated generator functions are marked while they are created only.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "phase":
        library = _library
        if library is None:
            library = _bind()
        if library:
            library.phase_begin(self.name)
        return self

    def __exit__(self, *exception: object) -> None:
        library = _library
        if library:
            library.phase_end(self.name)

    def __call__(self, function: _F) -> _F:
        if _library is False:
            return function
        from ._decorate import decorate

        return decorate(self, function)


@overload
def knob(name: str, default: bool) -> bool: ...
@overload
def knob(name: str, default: int, least: int, most: int) -> int: ...
@overload
def knob(name: str, default: float, least: float, most: float) -> float: ...
@overload
def knob(name: str, default: int) -> int: ...
@overload
def knob(name: str, default: float) -> float: ...
@overload
def knob(name: str, default: str) -> str: ...


def knob(name: str, default: Any, least: Any = None, most: Any = None) -> Any:
    """The value of a knob: what ``hec run --knob NAME=VALUE`` sets (or HEC_KNOBS="NAME=VALUE;..."), else ``default``.

    The type is the default's: bool (``true``, ``false``, ``1``, ``0``), int (64 bits), float or str. A value that is
    not of that type is not used, and HEC says so. Each read is recorded with the value used.

    ``least`` and ``most`` say what an int or a float may be, the two among it: ``hec.knob("batch", 128, 32, 512)``.
    Then ``hec try`` looks for the value that takes the fewest joules a unit of work, and a value that is set outside is
    not used, which HEC says. A range needs both; one that is none (``least`` above ``most``, the default outside, a
    nan) counts as not given, and HEC says so.
    """
    library = _library
    if library is None:
        library = _bind()
    return library.knob(name, default, least, most) if library else default


def report(file: "Union[str, os.PathLike[str]]") -> "Report":
    """The report of a run file: ``.data`` (as ``hec report --json``), ``str()`` (as on a terminal), and what Jupyter shows.

    It runs the command ``hec``: the one in the environment variable HEC_BIN, the one that was installed with this package,
    or the one on the PATH. A file that cannot be read is a RuntimeError in hec's words.
    """
    from ._report import Report

    return Report(file)
