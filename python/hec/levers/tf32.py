"""Products and convolutions of fp32 tensors in TF32. One of PyTorch's two interfaces alone is used: mixing them raises."""

from typing import Any

from . import core

FRAMEWORK = "torch"
_before: "dict[str, Any]" = {}


def apply(lever: core.Lever) -> None:
    torch = core.hooks.torch
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if matmul.allow_tf32 and cudnn.allow_tf32:
        lever.already("torch.backends allows TF32 for products and convolutions")
        return
    _before.update(matmul=matmul.allow_tf32, cudnn=cudnn.allow_tf32)
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    if not (matmul.allow_tf32 and cudnn.allow_tf32):
        lever.failed("torch.backends does not keep the setting")
        return
    lever.on("products %s before, convolutions %s" % tuple("on" if on else "off" for on in _before.values()))


def revert() -> None:
    torch = core.hooks.torch
    if _before:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = _before["matmul"], _before["cudnn"]
        _before.clear()
