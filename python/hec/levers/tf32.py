"""Products and convolutions of fp32 tensors in TF32, also where the program switches that off.

PyTorch 2.9 has a second interface, fp32_precision. The first one keeps the settings of both alike, the second does not, and PyTorch
raises where it finds that they differ: so the first one is used, and what the program sets by either of them goes the same way."""

import functools
import os
import warnings
from typing import Any, Optional

from . import calls, core

FRAMEWORK = "torch"
BITS = 10  # of the mantissa (shadow.py)
LIVE = True
NEW = (("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn"))  # what fp32_precision knows of it
_before: "Optional[tuple]" = None  # TF32 in products and in convolutions, and the settings of NEW
_lever: "Optional[core.Lever]" = None
_put: "Optional[calls.Calls]" = None
_kept = 0  # times that the program would have switched it off
_said = False


def apply(lever: core.Lever) -> None:
    global _before, _lever, _put, _kept, _said
    _lever, _kept, _said = lever, 0, False
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        lever.nothing("NVIDIA_TF32_OVERRIDE=0 forbids it")
        return
    C = core.hooks.torch._C
    get = getattr(C, "_get_fp32_precision_getter", None)
    _before = C._get_cublas_allow_tf32(), C._get_cudnn_allow_tf32(), [get(*what) for what in NEW] if get else []
    _hold()
    _patched.install()
    core.optimizers.around_steps(_before_step)
    if hasattr(core.hooks.torch.nn.Module, calls.outermost.PLACE):
        _put = calls.Calls(lever, 30, lambda module: _look(list(module.parameters())))
        _put.put()
    lever.nothing("no weights in fp32 on a GPU")


def revert() -> None:
    global _before
    _patched.remove()
    core.optimizers.leave_steps(_before_step)
    if _put is not None:
        _put.take()
    if _before is not None:
        C = core.hooks.torch._C
        for allows, get, set in zip(_before, (C._get_cublas_allow_tf32, C._get_cudnn_allow_tf32), _setters()):
            if get() != allows:
                _quietly(set, allows)
        for what, precision in zip(NEW, _before[2]):
            C._set_fp32_precision_setter(*what, precision)
        _before = None


def _setters() -> "tuple":
    return core.hooks.torch._C._set_cublas_allow_tf32, core.hooks.torch._C._set_cudnn_allow_tf32


def _quietly(set: Any, allows: bool) -> None:
    with warnings.catch_warnings():  # that there is another interface
        warnings.simplefilter("ignore")
        set(allows)


def _hold() -> bool:
    """Switch on what is off. Whether anything was."""
    C = core.hooks.torch._C
    held = False
    for get, set in zip((C._get_cublas_allow_tf32, C._get_cudnn_allow_tf32), _setters()):
        try:
            allows = get()
        except RuntimeError:  # the program set the one interface to something else than the other
            allows = False
        if not allows:
            _quietly(getattr(set, "__wrapped__", set), True)
            held = True
    return held


def _before_step(optimizer: Any) -> None:
    if not _said and _lever is not None:
        try:
            _look([weight for group in optimizer.param_groups for weight in group["params"]])
        except Exception as error:
            _lever.broke(error, revert)


def _look(weights: "list[Any]") -> None:
    """Weights that the program computes with: one product is made, to see whether it is in TF32."""
    global _said
    torch = core.hooks.torch
    found = next((weight for weight in weights if weight.is_cuda and weight.dtype == torch.float32), None)
    if found is None or _said or _before is None or _lever is None or calls.in_mode() or calls.is_capturing():
        return
    _said = True
    if not rounds(found.device):
        _lever.failed("a product of fp32 tensors is not rounded as in TF32 on %s" % torch.cuda.get_device_name(found.device))
    elif _before[0] and _before[1] and not _kept:
        _lever.already("products and convolutions were in TF32 without it")
    else:
        words = tuple("on" if allows else "off" for allows in _before[:2])
        kept = ", and the program would have switched it off" if _kept else ""
        _lever.on("products %s before, convolutions %s%s; a product of fp32 rounds as in TF32" % (*words, kept))


def rounds(device: Any) -> bool:
    """Whether a product loses what TF32's 10 bits do not hold."""
    torch = core.hooks.torch
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        ones = torch.full((256, 256), 1.0 + 2.0**-12, device=device, dtype=torch.float32)
        return bool((ones @ torch.eye(256, device=device))[0, 0].item() == 1.0)


def _make(inner: Any) -> Any:
    @functools.wraps(inner)
    def set(*args: Any) -> Any:
        global _kept
        result = inner(*args)
        try:
            _kept += _hold()
        except Exception as error:
            if _lever is not None:
                _lever.broke(error, revert)
        return result

    return set


def _patches() -> "list[core.Patch]":
    torch = core.hooks.torch
    names = ("_set_float32_matmul_precision", "_set_cublas_allow_tf32", "_set_cudnn_allow_tf32", "_set_fp32_precision_setter")
    found = [core.Patch(torch._C, name, _make) for name in names if name in torch._C.__dict__]
    return found + [core.Patch(type(torch.backends.cudnn).__dict__["allow_tf32"], "setter", _make)]


_patched = core.Patches(_patches)
