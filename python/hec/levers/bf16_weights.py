"""Modules that are only used, never trained, keep their matrices and filters in bf16, and run under bf16 autocast, which takes care of
all that stays in fp32: embeddings, recurrent layers, normalisation, vectors, buffers. The originals wait in the host's memory, and go
back when the program calls with gradients, makes an optimizer or asks for the weights (state_dict)."""

import functools
import weakref
from typing import Any, Dict, Optional, Tuple

from . import bf16_autocast, calls, core, inference_mode

FRAMEWORK = "torch"
BITS = 7  # of the mantissa (shadow.py)
_put: "Optional[calls.Calls]" = None
_patched: "Tuple[core.Patches, ...]" = ()
_lever: "Optional[core.Lever]" = None
_originals: "Dict[int, Tuple[weakref.ref[Any], Any]]" = {}  # by the weight's id: the weight, its values


def apply(lever: core.Lever) -> None:
    global _put, _patched, _lever
    _lever = lever
    _put = calls.Calls(lever, 10, lambda module: _fit(lever, module), _restore)
    if _put.put():
        _saves.install()
        _patched = (inference_mode.inference_only(lever, _put), _saves)


def revert() -> None:
    if _put is not None:
        _put.take()
    for patches in _patched:
        patches.remove()


def _matrices(module: Any) -> "list[Any]":
    """The weights that are multiplied with, once each."""
    torch = core.hooks.torch
    kept = (torch.nn.Embedding, torch.nn.EmbeddingBag, torch.nn.RNNBase, torch.nn.LayerNorm)
    found = {}
    for part in module.modules():
        if not isinstance(part, kept):
            for weight in part.parameters(recurse=False):
                if weight.dim() >= 2 and weight.dtype == torch.float32:
                    found[id(weight)] = weight
    return list(found.values())


def _is_ours(weight: Any) -> bool:
    ref, _ = _originals.get(id(weight), (None, None))
    return ref is not None and ref() is weight


def _restore(module: Any) -> None:
    for part in module.modules():
        if isinstance(part.__dict__.get(calls.outermost.PLACE), Part):
            del part.__dict__[calls.outermost.PLACE]
        for weight in part.parameters(recurse=False):
            ref, values = _originals.pop(id(weight), (None, None))
            if ref is not None and ref() is weight:
                weight.data = values.to(weight.device)


def _fit(lever: core.Lever, module: Any) -> "Optional[calls.Run]":
    kinds = {weight.dtype for weight in module.parameters() if weight.is_floating_point() and not _is_ours(weight)}
    state, why = bf16_autocast.why_not(module, kinds or {core.hooks.torch.float32})
    if state == "" and calls.is_sharded(module):
        state, why = "nothing", "the module's weights are sharded (FSDP)"
    if state == "" and (module.training or core.hooks.torch.is_grad_enabled()):
        state, why = "nothing", "the module is called for training, or with gradients"
    if state:
        if any(_is_ours(weight) for weight in module.parameters()):  # of another module that it is part of, or has as a part
            _restore(module)
            lever.failed(why)
        (lever.already if state == "already" else lever.nothing)(why)
        return None
    weights = _matrices(module)
    size = sum(4 * weight.numel() for weight in weights)
    ours = any(_is_ours(weight) for weight in module.parameters())
    if not (weights or ours) or not all(calls.owns(weight) for weight in weights):
        lever.nothing("no matrices of its own")
        return None
    if size > _available_bytes() // 2:
        lever.nothing("the host has no room for the original weights")
        return None
    return _run(lever, module, weights, size)


def _available_bytes() -> int:
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))


def _run(lever: core.Lever, module: Any, weights: "list[Any]", size: int) -> "calls.Run":
    torch, device = core.hooks.torch, calls.device_of(module)
    ref = weakref.ref(module)
    for weight in weights:
        _originals[id(weight)] = weakref.ref(weight), weight.data.cpu()
        weight.data = weight.data.to(torch.bfloat16)
    del weights[:]
    for part in module.modules():
        if calls.outermost.PLACE not in part.__dict__ and any(_is_ours(weight) for weight in part.parameters(recurse=False)):
            part.__dict__[calls.outermost.PLACE] = Part(part, device)
    count = 0

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        nonlocal count
        if torch.is_grad_enabled():
            _leave(ref(), "the program calls the module with gradients")
            return call(args, kwargs)
        result = bf16_autocast.under(device, call, args, kwargs)
        count += 1
        if core.seldom(count):
            lever.on("%.1f MB of weights are half of that in bf16; %d calls" % (size / 1e6, count))
        return bf16_autocast.as_before(result)

    return run


class Part:
    """In the place of a part whose weights are in bf16: the program may call it by itself, with fp32."""

    __slots__ = ("ref", "device", "compiled")

    def __init__(self, part: Any, device: str) -> None:
        self.ref, self.device, self.compiled = weakref.ref(part), device, None

    def __reduce__(self) -> Any:
        return type(None), ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.ref()._call_impl
        if calls.is_autocast(self.device):
            return call(*args, **kwargs)
        return bf16_autocast.as_before(bf16_autocast.under(self.device, lambda args, kwargs: call(*args, **kwargs), args, kwargs))


def _leave(module: Any, why: str) -> None:
    """Out of it, and not again."""
    before = len(_originals)
    if _put is not None:
        _put.forget(module)
    if _lever is not None and len(_originals) < before:
        _lever.failed(why)


def _make_state(inner: Any) -> Any:
    @functools.wraps(inner)
    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _originals:
            try:
                for module in _put.modules() if _put is not None else []:
                    if _shares(self, module):
                        _leave(module, "the program reads the weights: they are as they were")
            except Exception as error:
                if _lever is not None:
                    _lever.broke(error, revert)
        return inner(self, *args, **kwargs)

    return state_dict


def _shares(one: Any, other: Any) -> bool:
    mine = {id(weight) for weight in one.parameters()}
    return any(id(weight) in mine for weight in other.parameters())


_saves = core.Patches(lambda: [core.Patch(core.hooks.torch.nn.Module, "state_dict", _make_state)])
