"""Levers in a Python program: what `hec run --with` and `hec try` change of it, without a change to the script.

Loaded as the module ``_hec_levers`` by HEC's hooks, never imported by a program. Each lever is a module here, of the name that it has in
`hec levers`, with

    FRAMEWORK           "torch", "jax" or "tensorflow": whose import it waits for
    def apply(lever)    puts it in; lever is a core.Lever, whose value is what followed "=" ("": it chooses)
    def revert()        takes it out again: the framework is as if it had never been there
    LIVE                True: it can be put in and taken out between two steps (live.py)
    def switch(on)      of such a one that keeps something while it is off (compiled code); else apply() and revert() are enough

A lever says whether it took effect by what it saw happen, not by what it set: ``lever.on("3 optimizers")`` when it changed something
that the program uses, ``lever.already(...)`` when the program has it, ``lever.nothing(...)`` why it can do nothing here,
``lever.failed(...)``. One that has said nothing by the end did nothing. An error in a lever never reaches the program: it takes the
lever out and is reported. docs/levers.md describes all of it."""

import os
import sys
from importlib import import_module
from typing import Any, Dict, List, Tuple

from . import live
from .core import Lever, hooks

_started: "Dict[str, Tuple[Lever, Any]]" = {}


def asked() -> "List[Tuple[str, str]]":
    """Names and values, as HEC_LEVERS has them: "tf32,loader_workers=8"."""
    words = [word.partition("=") for word in os.environ.get("HEC_LEVERS", "").split(",") if word]
    return [(name, value) for name, _, value in words]


def start(framework: str) -> None:
    """At the end of the import of a framework: its levers are put in, in the order in which they were asked for."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, value in asked():
        if name in _started or not os.path.exists(os.path.join(here, name + ".py")):  # a lever of any program
            continue
        module = import_module("." + name, __name__)
        if module.FRAMEWORK != framework:
            continue
        lever = Lever(name, value)
        _started[name] = lever, module
        if framework == "torch":
            hooks.guard("torch.compile", lambda: hooks.keep_from_compiling(__name__))
        try:
            if not live.arms(lever, module):
                module.apply(lever)
        except Exception as error:
            lever.broke(error, module.revert)


def revert() -> None:
    """Take all of them out again, the last first."""
    live.off()
    for lever, module in reversed(list(_started.values())):
        try:
            module.revert()
        except Exception as error:
            lever.broke(error, lambda: None)
    _started.clear()


__all__ = ["Lever", "asked", "revert", "start"]
assert sys.version_info >= (3, 8)
