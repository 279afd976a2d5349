"""Tensors in what modules are given and give: looked at, or replaced, wherever they lie in it."""

import dataclasses
from typing import Any, Callable, Iterator

from . import core

DEPTH_MAX = 6


def each(value: Any, depth: int = 0) -> "Iterator[Any]":
    """The tensors in it."""
    if isinstance(value, core.hooks.torch.Tensor):
        yield value
    elif depth < DEPTH_MAX:
        if isinstance(value, dict):
            value = value.values()
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = value.__dict__.values()
        elif not isinstance(value, (list, tuple)):
            return
        for part in value:
            yield from each(part, depth + 1)


def replaced(value: Any, replace: "Callable[[Any], Any]", depth: int = 0) -> Any:
    """The same with replace(tensor) for each tensor; itself where that changes nothing. Lists, tuples and plain dictionaries are
    copied; classes of a library (ModelOutput) keep their identity, and get other tensors."""
    if isinstance(value, core.hooks.torch.Tensor):
        return replace(value)
    if depth >= DEPTH_MAX:
        return value
    if isinstance(value, (list, tuple)):
        parts = [replaced(part, replace, depth + 1) for part in value]
        if all(new is old for new, old in zip(parts, value)):
            return value
        if type(value) in (list, tuple):
            return type(value)(parts)
        return type(value)(*parts) if hasattr(value, "_fields") else value
    if isinstance(value, dict):
        changed = {}
        for key, old in value.items():
            new = replaced(old, replace, depth + 1)
            if new is not old:
                changed[key] = new
        if type(value) is dict:
            return {**value, **changed} if changed else value
        for key, new in changed.items():
            value[key] = new
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for key, old in list(value.__dict__.items()):
            new = replaced(old, replace, depth + 1)
            if new is not old:
                object.__setattr__(value, key, new)
    return value
