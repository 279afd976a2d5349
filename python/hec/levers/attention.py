"""Which kernel scaled_dot_product_attention uses: the one that was asked for (without a value cuDNN's, else flash) comes first, the
others remain for what it cannot take."""

import functools
from typing import Any, List, Optional

from . import calls, core, watch

FRAMEWORK = "torch"
LIVE = True
BACKENDS = {"math": 0, "flash": 1, "efficient": 2, "cudnn": 3}
_before: "List[int]" = []
_put: "Optional[calls.Calls]" = None


def apply(lever: core.Lever) -> None:
    global _put
    torch = core.hooks.torch
    if not hasattr(torch._C, "_set_sdp_priority_order"):
        lever.nothing("PyTorch %s: needs 2.6" % torch.__version__)
        return
    if lever.value and lever.value not in BACKENDS:
        lever.failed("no such kernel: %s" % lever.value)
        return
    _before[:] = [int(backend) for backend in torch._C._get_sdp_priority_order()]
    torch._C._set_sdp_priority_order(_order(lever.value))
    _put = calls.Calls(lever, 30, lambda module: _fit(lever, module))
    _put.put()
    lever.nothing("no call of scaled_dot_product_attention seen")


def revert() -> None:
    if _put is not None:
        _put.take()
    if _before:
        core.hooks.torch._C._set_sdp_priority_order(_before)
        _before.clear()


def _order(value: str) -> "list[int]":
    first = [BACKENDS[value]] if value else [BACKENDS["cudnn"], BACKENDS["flash"]]
    return first + [backend for backend in _before if backend not in first]


def _fit(lever: core.Lever, module: Any) -> "Optional[calls.Run]":
    if not watch.may(module):
        return _compiled(lever)
    seen: "dict[tuple[str, str], int]" = {}  # the kernel without the lever and with it: calls
    looked = False

    def make(inner: Any) -> Any:
        @functools.wraps(inner)
        def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
            chosen = tuple(_chosen(order, args, kwargs) for order in (_before, _order(lever.value)))
            seen[chosen] = seen.get(chosen, 0) + 1  # type: ignore[index, arg-type]
            return inner(*args, **kwargs)

        return scaled_dot_product_attention

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        nonlocal looked
        if looked or not _before:
            return call(args, kwargs)
        looked = True
        looks = core.Patch(core.hooks.torch.nn.functional, "scaled_dot_product_attention", make)
        looks.install()
        try:
            result = call(args, kwargs)
        finally:
            looks.remove()
        for (without, used), count in seen.items():
            if used != without:
                lever.on("%s instead of %s; calls in a forward pass: %d" % (used, without, count))
            elif used == lever.value or not lever.value:
                lever.already("PyTorch uses %s without it" % used)
            else:
                lever.nothing("%s is of no use for these tensors: %s is used" % (lever.value, used))
        return result

    return run


def _compiled(lever: core.Lever) -> "calls.Run":
    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        lever.nothing("the module is compiled: whether it calls scaled_dot_product_attention was not seen")
        return call(args, kwargs)

    return run


def _chosen(order: "list[int]", args: tuple, kwargs: dict) -> str:
    """The kernel for these arguments, as PyTorch itself chooses."""
    torch = core.hooks.torch
    given = {**dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args)), **kwargs}
    device = given["query"].device.type
    now = torch._C._get_sdp_priority_order()
    torch._C._set_sdp_priority_order(order)
    try:
        with torch._C.DisableTorchFunction():
            if torch.is_autocast_enabled(device):  # the kernel gets them in its type
                for name in ("query", "key", "value"):
                    given[name] = given[name].to(torch.get_autocast_dtype(device))
            chosen = torch._fused_sdp_choice(**given)
    finally:
        torch._C._set_sdp_priority_order(now)
    return next((name for name, number in BACKENDS.items() if number == chosen), "another")
