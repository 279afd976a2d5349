"""TensorFlow compiles with XLA what it can of its functions (autoclustering), by its own switch."""

import functools
import sys
from typing import Any

from . import core
from .tally import Tally

FRAMEWORK = "tensorflow"
_MODE = "autoclustering"

_lever: Any = None
_tally: Any = None
_before: Any = None


def _switch() -> Any:
    return sys.modules["tensorflow"].config.optimizer


def _make(inner: Any) -> Any:
    """Of a function of TensorFlow's that is called: its graph is what XLA gets."""

    @functools.wraps(inner)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _switch().get_jit() != _MODE:
            _lever.nothing("the program switched it off")
        elif not sys.modules["tensorflow"].config.list_physical_devices("GPU"):
            _lever.nothing("no GPU: on CPUs TensorFlow does not cluster by itself")
        else:
            _tally.add("calls")
        return inner(self, *args, **kwargs)

    return __call__


_patched = core.Patches(
    lambda: [core.Patch(sys.modules["tensorflow.python.eager.polymorphic_function.polymorphic_function"].Function, "__call__", _make)]
)


def apply(lever: core.Lever) -> None:
    global _lever, _tally, _before
    _lever = lever
    there = _switch().get_jit()
    if there:
        lever.already("tf.config.optimizer has jit %s" % there)
        return
    _before = there
    _tally = Tally(lever, lambda numbers: "%d calls of functions that XLA may compile" % numbers.get("calls", 0))
    _switch().set_jit(_MODE)
    _patched.install()


def revert() -> None:
    if _tally is None:
        return
    _patched.remove()
    if _switch().get_jit() == _MODE:
        _switch().set_jit(_before)
    _tally.close()
