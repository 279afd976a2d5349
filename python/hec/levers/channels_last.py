"""Modules with 2-d convolutions keep their filters in channels_last, and get their images so. What they give is contiguous, as without."""

import functools
import weakref
from typing import Any, List, Optional

from . import calls, core, tensors, watch

FRAMEWORK = "torch"
LIVE = True
_put: "Optional[calls.Calls]" = None
_lever: "Optional[core.Lever]" = None
_changed: "List[weakref.ref[Any]]" = []  # filters
_stepped: "weakref.WeakSet[Any]" = weakref.WeakSet()  # optimizers whose state has the filters' order


def apply(lever: core.Lever) -> None:
    global _put, _lever
    _lever = lever
    _put = calls.Calls(lever, 20, lambda module: _fit(lever, module), _restore)
    if _put.put():
        core.optimizers.around_steps(_before_step)
        _patched.install()


def revert() -> None:
    if _put is not None:
        _put.take()
    core.optimizers.leave_steps(_before_step)
    _patched.remove()
    _order([weight for weight in (ref() for ref in _changed) if weight is not None], core.hooks.torch.contiguous_format)
    for optimizer in list(_stepped):
        _order_state(optimizer)
    _changed.clear()
    _stepped.clear()


def _filters(module: Any) -> "list[Any]":
    torch = core.hooks.torch
    kinds = (torch.nn.Conv2d, torch.nn.ConvTranspose2d)
    return [part.weight for part in module.modules() if isinstance(part, kinds) and isinstance(part.weight, torch.nn.Parameter)]


def _is_last(tensor: Any) -> bool:
    return tensor.is_contiguous(memory_format=core.hooks.torch.channels_last)


def _order(weights: "list[Any]", order: Any) -> int:
    changed = 0
    with core.hooks.torch.no_grad():
        for weight in weights:
            if not weight.is_contiguous(memory_format=order):
                weight.data = weight.data.contiguous(memory_format=order)
                if weight.grad is not None:
                    weight.grad = weight.grad.contiguous(memory_format=order)
                changed += 1
    return changed


def _put_last(module: Any) -> int:
    weights = [weight for weight in _filters(module) if not _is_last(weight)]
    if any(not calls.owns(weight) for weight in weights):
        return -1
    known = {id(ref()) for ref in _changed}
    _changed.extend(weakref.ref(weight) for weight in weights if id(weight) not in known)
    return _order(weights, core.hooks.torch.channels_last)


def _restore(module: Any) -> None:
    mine = {id(ref()) for ref in _changed}
    _order([weight for weight in _filters(module) if id(weight) in mine], core.hooks.torch.contiguous_format)


def _fit(lever: core.Lever, module: Any) -> "Optional[calls.Run]":
    torch = core.hooks.torch
    uninitialized = getattr(torch.nn.parameter, "UninitializedParameter", ())
    if any(isinstance(weight, uninitialized) for weight in module.parameters()):
        return calls.LATER
    weights = _filters(module)
    mine = {id(ref()) for ref in _changed}  # a wrapper of DDP put them in order when it was made
    known = [weight for weight in weights if not (_is_last(weight) and weight.is_contiguous())]  # a filter of 1 x 1 is both
    if not weights:
        lever.nothing("no 2-d convolutions")
    elif calls.is_sharded(module):
        lever.nothing("the module's weights are sharded (FSDP)")
    elif known and all(_is_last(weight) and id(weight) not in mine for weight in known):
        lever.already("the program's filters are in channels_last")
    elif _put_last(module) < 0:
        lever.nothing("filters are part of a larger buffer, or shared with other processes")
    else:
        return _run(lever, len(weights), watch.may(module))
    return None


def _run(lever: core.Lever, weights: int, watches: bool) -> "calls.Run":
    torch = core.hooks.torch
    count = {"calls": 0, "last": 0, "others": 0}

    def to(tensor: Any) -> Any:
        image = tensor.dim() == 4 and tensor.is_floating_point() and type(tensor) is torch.Tensor and not _is_last(tensor)
        return tensor.contiguous(memory_format=torch.channels_last) if image else tensor

    def see(name: str, args: tuple, kwargs: dict, result: Any) -> None:
        if name in watch.CONVOLUTIONS and args[0].dim() == 4:
            count["last" if _is_last(args[0]) and _is_last(result) else "others"] += 1

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        own = any(tensor.dim() == 4 and not tensor.is_contiguous() and _is_last(tensor) for tensor in tensors.each((args, kwargs)))
        args, kwargs = tensors.replaced(args, to), tensors.replaced(kwargs, to)
        count["calls"] += 1
        first = count["calls"] == 1 and watches
        result = watch.watched(call, args, kwargs, see) if first else call(args, kwargs)
        if core.seldom(count["calls"]):
            looked = "their convolutions are compiled and were not looked at"
            if watches:
                looked = "%d of %d convolutions kept it" % (count["last"], count["last"] + count["others"])
            if watches and not count["last"]:
                lever.nothing("%d convolutions of a call, none of them with images in channels_last" % count["others"])
            else:
                lever.on("%d filters, %s; %d calls" % (weights, looked, count["calls"]))
        return result if own else tensors.replaced(result, _contiguous)

    return run


def _contiguous(tensor: Any) -> Any:
    return tensor.contiguous() if tensor.dim() == 4 and not tensor.is_contiguous() and _is_last(tensor) else tensor


def _before_step(optimizer: Any) -> None:
    """What an optimizer keeps of a filter is in the filter's order, or the fused kernels refuse it (a state that was loaded)."""
    if optimizer in _stepped or not _changed:
        return
    try:
        _order_state(optimizer)
        _stepped.add(optimizer)
    except Exception as error:
        if _lever is not None:
            _lever.broke(error, revert)


def _order_state(optimizer: Any) -> None:
    torch = core.hooks.torch
    mine = {id(ref()) for ref in _changed}
    for weight, state in optimizer.state.items():
        if id(weight) in mine:
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.shape == weight.shape and value.stride() != weight.stride():
                    state[name] = torch.empty_like(weight, dtype=value.dtype, device=value.device).copy_(value)


def _make_parallel(inner: Any) -> Any:
    """DDP lays its buckets out as the weights are when it is made."""

    @functools.wraps(inner)
    def __init__(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        try:
            if calls.strange(module) == "" and not calls.is_sharded(module):
                _put_last(module)
        except Exception as error:
            if _lever is not None:
                _lever.broke(error, revert)
        inner(self, module, *args, **kwargs)

    return __init__


_patched = core.Patches(lambda: [core.Patch(core.hooks.torch.nn.parallel.DistributedDataParallel, "__init__", _make_parallel)])
