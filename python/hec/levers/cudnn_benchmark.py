"""cuDNN measures which of its algorithms is fastest, once for each shape of a convolution. A program that switches it off itself has
its reasons (the same bits in each run): that stays."""

from typing import Any, Optional

from . import calls, core

FRAMEWORK = "torch"
LIVE = True
_set = False
_lever: "Optional[core.Lever]" = None
_put: "Optional[calls.Calls]" = None


def apply(lever: core.Lever) -> None:
    global _set, _lever, _put
    cudnn = core.hooks.torch.backends.cudnn
    _lever = lever
    if cudnn.benchmark:
        lever.already("torch.backends.cudnn.benchmark is on")
        return
    _put = calls.Calls(lever, 30, _look)
    if _put.put():
        cudnn.benchmark = _set = True
        lever.nothing("no convolutions seen on a GPU")


def revert() -> None:
    global _set
    if _put is not None:
        _put.take()
    if _set:
        core.hooks.torch.backends.cudnn.benchmark = _set = False


def _look(module: Any) -> "Optional[calls.Run]":
    torch = core.hooks.torch
    convolutions = sum(isinstance(part, torch.nn.modules.conv._ConvNd) for part in module.modules())
    if not convolutions or calls.device_of(module) != "cuda":
        return None
    device = calls.device_of(module)
    count = 0

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        nonlocal count
        result = call(args, kwargs)
        count += 1
        if core.seldom(count) and _lever is not None:
            if not torch.backends.cudnn.benchmark:
                _lever.nothing("the program switches torch.backends.cudnn.benchmark off itself")
            elif not torch.backends.cudnn.enabled:
                _lever.nothing("the program switches cuDNN off")
            else:
                _lever.on("%d convolutions on %s; %d calls" % (convolutions, device, count))
        return result

    return run
