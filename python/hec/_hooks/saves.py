"""Phases "checkpoint": torch.save, torch.distributed.checkpoint.save and safetensors, where they are imported."""

import functools
import threading
from typing import Any

from . import core, imports

NAME = "checkpoints"

_inside = threading.local()  # one of them may call another


def _make(inner: Any) -> Any:
    @functools.wraps(inner)
    def save(*args: Any, **kwargs: Any) -> Any:
        outer = getattr(_inside, "on", False)
        start_ns = core.now_ns()
        _inside.on = True
        try:
            return inner(*args, **kwargs)
        finally:
            _inside.on = outer
            try:
                if not outer and core.may(NAME):
                    core.library.interval(b"checkpoint", start_ns, core.now_ns())
            except Exception as error:
                core.failed(NAME, error)

    return save


# Modules that a program may import later, and their functions.
_LATER = {
    "safetensors.torch": ("save_file", "save_model"),
    "torch.distributed.checkpoint.state_dict_saver": ("save", "save_state_dict"),
}
_patches: "dict[str, list[core.Patch]]" = {}


def _take(module: Any) -> None:
    made = [core.Patch(module, function, _make) for function in _LATER[module.__name__] if function in module.__dict__]
    _patches[module.__name__] = made
    if core.installed:
        for patch in made:
            patch.install()


def _both() -> "list[core.Patch]":
    """torch.save is torch.serialization.save, and stays it: one wrapper under both names."""
    first = core.Patch(core.torch.serialization, "save", _make)
    return [first, core.Patch(core.torch, "save", lambda inner: first.wrapper)]


def install() -> None:
    if "torch" not in _patches:
        _patches["torch"] = _both()
    for made in _patches.values():
        for patch in made:
            patch.install()
    for name in _LATER:
        if name not in _patches:
            imports.after(name, _take)


def remove() -> None:
    imports.leave(_take)
    for made in _patches.values():
        for patch in made:
            patch.remove()
