"""The precision of JAX's products that name none."""

import functools
import sys
from typing import Any

from . import core
from .tally import Tally

FRAMEWORK = "jax"
_PRECISION = "tensorfloat32"

_tally: Any = None
_value = ""


def _config() -> Any:
    return sys.modules["jax"].config


def _make(inner: Any) -> Any:
    @functools.wraps(inner)
    def canonicalize_precision(precision: Any) -> Any:
        if precision is None and _config().jax_default_matmul_precision == _value:
            _tally.add("products")
        return inner(precision)

    return canonicalize_precision


_patched = core.Patches(lambda: [core.Patch(sys.modules["jax._src.lax.lax"], "canonicalize_precision", _make)])


def apply(lever: core.Lever) -> None:
    global _tally, _value
    there = _config().jax_default_matmul_precision
    if there is not None:
        lever.already("jax_default_matmul_precision is %s" % there)
        return
    _value = lever.value or _PRECISION
    _tally = Tally(lever, lambda numbers: "%d products traced in %s" % (numbers.get("products", 0), _value))
    _patched.install()
    _config().update("jax_default_matmul_precision", _value)


def revert() -> None:
    if _tally is None:
        return
    _patched.remove()
    if _config().jax_default_matmul_precision == _value:
        _config().update("jax_default_matmul_precision", None)
    _tally.close()
