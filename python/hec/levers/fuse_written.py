"""Attention, normalisation and activations that a program writes out by hand become PyTorch's fused functions, in the graph that
torch.compile makes of a module. Its weights, their names and its code stay as they are."""

from typing import Any, Dict, Optional

from . import core, graphs, rewriters, rewriting, written, written_attention

FRAMEWORK = "torch"
LIVE = True
_mine: "Optional[rewriting.Rewriting]" = None


def apply(lever: core.Lever) -> None:
    global _mine
    _mine = rewriting.Rewriting(lever, 80, _change, _text, "nothing written out by hand that PyTorch has as one function")


def revert() -> None:
    if _mine is not None:
        _mine.take()


def switch(on: bool) -> None:
    if _mine is not None:
        _mine.switch(on)


def _change(owner: Any, constants: graphs.Constants) -> "rewriters.Changes":
    attention = written_attention.Finder(owner, constants)
    found = {} if core.hooks.torch.are_deterministic_algorithms_enabled() else attention.replace_all()
    found.update(written.Finder(owner, constants).replace_all())
    return found, attention.watched


def _text(found: "Dict[str, int]") -> str:
    return "replaced in a call: " + ", ".join("%d x %s" % (count, name) for name, count in sorted(found.items()))
