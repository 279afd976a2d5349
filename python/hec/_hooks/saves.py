"""Phases "checkpoint": torch.save, torch.distributed.checkpoint.save and safetensors, where they are imported."""

import functools
import sys
import threading
from typing import Any

from . import core

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


class _Finder:
    """In sys.meta_path while some of those modules have not been imported; finds nothing itself."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _LATER or name in _patches:
            return None
        try:
            after = sys.meta_path[sys.meta_path.index(_Finder) + 1 :]  # type: ignore[arg-type]
            for finder in after:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    _watch(name, spec.loader)
                    return spec
        except Exception:
            pass
        return None


def _watch(name: str, loader: Any) -> None:
    run = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        run(module)
        try:
            _take(name, module)
        except Exception:
            pass

    # Python leaves frames of the import system out of tracebacks; this one belongs to it
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    loader.exec_module = exec_module


def _take(name: str, module: Any) -> None:
    made = [core.Patch(module, function, _make) for function in _LATER[name] if function in module.__dict__]
    _patches[name] = made
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
    for name in _LATER:
        if name in sys.modules and name not in _patches:
            _take(name, sys.modules[name])
    for made in _patches.values():
        for patch in made:
            patch.install()
    if _Finder not in sys.meta_path and len(_patches) <= len(_LATER):
        sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]


def remove() -> None:
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)  # type: ignore[arg-type]
    for made in _patches.values():
        for patch in made:
            patch.remove()
