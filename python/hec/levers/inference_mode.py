"""Calls of outermost modules that need no gradients run under inference_mode. What they give is copied outside of it: the program may
do with it what it likes. In a program that trains there is nothing of it."""

import functools
import weakref
from typing import Any, Optional

from . import calls, core, tensors

FRAMEWORK = "torch"
LIVE = True
_put: "Optional[calls.Calls]" = None
_patched: "Optional[core.Patches]" = None


def apply(lever: core.Lever) -> None:
    global _put, _patched
    _put = calls.Calls(lever, 40, lambda module: _fit(lever, module), _wash)
    if _put.put():
        _patched = inference_only(lever, _put)


def revert() -> None:
    if _put is not None:
        _put.take()
    if _patched is not None:
        _patched.remove()


def inference_only(lever: core.Lever, put: "calls.Calls") -> core.Patches:
    """From the first optimizer on the lever is out."""

    def make(inner: Any) -> Any:
        @functools.wraps(inner)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            inner(self, *args, **kwargs)
            if put.is_in():
                _out(lever, put)

        return __init__

    found = core.Patches(lambda: [core.Patch(core.hooks.torch.optim.Optimizer, "__init__", make)])
    found.install()
    return found


def _out(lever: core.Lever, put: "calls.Calls") -> None:
    try:
        put.take()
        (lever.failed if lever.state == "on" else lever.nothing)("the program trains: it has an optimizer")
    except Exception as error:
        lever.broke(error, lambda: None)


def _fit(lever: core.Lever, module: Any) -> "Optional[calls.Run]":
    if calls.is_sharded(module):
        lever.nothing("the module's weights are sharded (FSDP)")
        return None
    if calls.is_compiled(module):
        lever.nothing("the program compiled the module: it has no such overhead")
        return None
    torch, ref = core.hooks.torch, weakref.ref(module)
    count = 0

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        nonlocal count
        if torch.is_inference_mode_enabled():
            lever.already("the program calls its module under inference_mode")
            return call(args, kwargs)
        if torch.is_grad_enabled():
            if _put is not None:
                _put.forget(ref())
            lever.nothing("the module is called with gradients")
            return call(args, kwargs)
        with torch.inference_mode():
            result = call(args, kwargs)
        made = core.seldom(count + 1) and any(tensor.is_inference() for tensor in tensors.each(result))
        count += 1
        if core.seldom(count):
            if made:
                lever.on("%d calls" % count)
            else:
                lever.nothing("the module gives no tensors of its own")
        return _usual(result)

    return run


def _usual(value: Any) -> Any:
    """Its tensors as ordinary ones."""
    return tensors.replaced(value, lambda tensor: tensor.clone() if tensor.is_inference() else tensor)


def _wash(module: Any) -> None:
    """What the module kept of its calls becomes ordinary."""
    for part in module.modules():
        for names in (part._buffers, part.__dict__):
            for name, value in list(names.items()):
                if name not in ("_parameters", "_buffers", "_modules"):
                    usual = _usual(value)
                    if usual is not value:
                        names[name] = usual
