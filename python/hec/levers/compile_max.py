"""Outermost modules are compiled as by `compile`, and the compiler measures which of several kernels is the fastest for each product (mode
max-autotune-no-cudagraphs). That takes minutes, which are part of the run."""

import importlib
import sys
from typing import Any, Optional

from . import compile as compiler
from . import core

FRAMEWORK = "torch"
LIVE = True
COMPILES = True
PLACE = "torch._inductor.select_algorithm"  # which prints what it measured on the program's stderr
_mine: "Optional[compiler.Compiling]" = None
_printed: Any = None


def apply(lever: core.Lever) -> None:
    global _mine
    options = {"fallback_random": True, "max_autotune": True, "coordinate_descent_tuning": True}
    _mine = compiler.Compiling(lever, options, around=Quiet)


def revert() -> None:
    global _printed
    if _mine is not None:
        _mine.take()
    if _printed is not None:
        sys.modules[PLACE].PRINT_AUTOTUNE = _printed  # type: ignore[attr-defined]
        _printed = None


def switch(on: bool) -> None:
    if _mine is not None:
        _mine.put.awake = on


class Quiet(compiler.Around):
    def __init__(self, module: Any) -> None:
        global _printed
        place = importlib.import_module(PLACE)
        if _printed is None and hasattr(place, "PRINT_AUTOTUNE"):
            _printed = place.PRINT_AUTOTUNE
            place.PRINT_AUTOTUNE = False  # type: ignore[attr-defined]
