"""Keras layers compute in bf16, by Keras's own policy; their weights stay fp32."""

import functools
import sys
from typing import Any

from . import core
from .tally import Tally

FRAMEWORK = "keras"
_POLICY = "mixed_bfloat16"

_tally: Any = None
_before: Any = None


def _make(inner: Any) -> Any:
    @functools.wraps(inner)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        inner(self, *args, **kwargs)
        if getattr(self, "compute_dtype", None) == "bfloat16":
            _tally.add("layers")

    return __init__


_patched = core.Patches(lambda: [core.Patch(sys.modules["keras"].layers.Layer, "__init__", _make)])


def _policies() -> Any:
    return sys.modules["keras"].mixed_precision


def _now() -> Any:
    module = _policies()
    return (module.global_policy if hasattr(module, "global_policy") else module.dtype_policy)()


def apply(lever: core.Lever) -> None:
    global _tally, _before
    _before = _now()
    if _before.name != "float32":
        lever.already("Keras's policy is %s" % _before.name)
        _before = None
        return
    _tally = Tally(lever, lambda numbers: "%d layers compute in bfloat16" % numbers.get("layers", 0))
    _patched.install()
    _policies().set_global_policy(_POLICY)


def revert() -> None:
    if _before is None:
        return
    _patched.remove()
    if _now().name == _POLICY:
        _policies().set_global_policy(_before)
    _tally.close()
