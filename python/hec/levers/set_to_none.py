"""zero_grad() drops gradients, instead of filling them with zeros, also where the program asks for zeros. An optimizer that steps finds
zeros where nothing was computed since: it does with them what it would have done."""

import functools
import inspect
import weakref
from typing import Any, Dict, Optional

from . import core

FRAMEWORK = "torch"
LIVE = True
_lever: "Optional[core.Lever]" = None
_dropped: "Dict[int, weakref.ref[Any]]" = {}  # weights whose gradient the program believes to be zeros
_stepping = False  # a closure of the program may ask for zeros in the middle of a step
_calls = 0


def apply(lever: core.Lever) -> None:
    global _lever, _calls
    _lever, _calls = lever, 0
    _patched.install()
    core.optimizers.around_steps(_before_step, _after_step)
    lever.nothing("no call of zero_grad() seen")


def revert() -> None:
    _patched.remove()
    core.optimizers.leave_steps(_before_step, _after_step)
    for ref in list(_dropped.values()):
        weight = ref()
        if weight is not None:
            _fill(weight)
    _dropped.clear()


def _fill(weight: Any) -> None:
    if _dropped.pop(id(weight), lambda: None)() is weight and weight.grad is None:
        weight.grad = core.hooks.torch.zeros_like(weight)


def _before_step(optimizer: Any) -> None:
    global _stepping
    _stepping = True
    try:
        for group in optimizer.param_groups if _dropped else ():
            for weight in group["params"]:
                _fill(weight)
    except Exception as error:
        if _lever is not None:
            _lever.broke(error, revert)


def _after_step(optimizer: Any) -> None:
    global _stepping
    _stepping = False


def _drop(weights: "list[Any]") -> bool:
    """Whether it did: not where a gradient is part of a larger buffer, or leads on to others."""
    global _calls
    weights = [weight for weight in weights if weight.grad is not None]
    if any(weight.grad.is_sparse or weight.grad.requires_grad or weight.grad._is_view() for weight in weights):
        return False
    for weight in weights:
        weight.grad = None
        _dropped[id(weight)] = weakref.ref(weight)
    _calls += bool(weights)
    return True


def _make(inner: Any) -> Any:
    default = _default(inner)

    @functools.wraps(inner)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if not _stepping and _lever is not None:
                if kwargs.get("set_to_none", args[0] if args else default):
                    for weight in _weights(self) if _dropped else ():
                        _dropped.pop(id(weight), None)
                    _lever.already("zero_grad() drops gradients without it")
                elif _drop(_weights(self)):
                    if _calls and core.seldom(_calls):
                        _lever.on("%d calls of zero_grad()" % _calls)
                    return None
                else:
                    _lever.nothing("gradients are views of a larger buffer, or sparse")
        except Exception as error:
            if _lever is not None:
                _lever.broke(error, revert)
        return inner(self, *args, **kwargs)

    return zero_grad


def _make_capture(inner: Any) -> Any:
    """A graph writes gradients to where they were when it was captured."""

    @functools.wraps(inner)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            revert()
            if _lever is not None:
                _lever.failed("the program captures CUDA graphs, in which gradients have their places")
        except Exception as error:
            if _lever is not None:
                _lever.broke(error, revert)
        return inner(self, *args, **kwargs)

    return capture_begin


def _weights(owner: Any) -> "list[Any]":
    groups = getattr(owner, "param_groups", None)
    return list(owner.parameters()) if groups is None else [weight for group in groups for weight in group["params"]]


def _default(function: Any) -> bool:
    """What zero_grad() does when it is asked for nothing: since PyTorch 2.0 it drops them."""
    return bool(inspect.signature(function).parameters["set_to_none"].default)


def _patches() -> "list[core.Patch]":
    torch = core.hooks.torch
    found = [core.Patch(owner, "zero_grad", _make) for owner in (torch.optim.Optimizer, torch.nn.Module)]
    if "capture_begin" in torch.cuda.CUDAGraph.__dict__:
        found.append(core.Patch(torch.cuda.CUDAGraph, "capture_begin", _make_capture))
    return found


_patched = core.Patches(_patches)
