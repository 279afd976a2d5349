"""The forward pass of outermost modules under bf16 autocast. Their results have the type that they have without it, so that a loss
that is computed outside is computed in fp32."""

from typing import Any, Optional

from . import calls, core, tensors, watch

FRAMEWORK = "torch"
BITS = 7  # of the mantissa (shadow.py)
LIVE = True
_put: "Optional[calls.Calls]" = None


def apply(lever: core.Lever) -> None:
    global _put
    _put = calls.Calls(lever, 10, lambda module: fit(lever, module, watch.may(module)))
    _put.put()


def revert() -> None:
    if _put is not None:
        _put.take()


def why_not(module: Any, kinds: "set[Any]") -> "tuple[str, str]":
    """A state and why, or two empty words; kinds: the types of its weights."""
    torch = core.hooks.torch
    if kinds != {torch.float32}:
        words = "weights are " + ", ".join(sorted(str(kind).rpartition(".")[2] for kind in kinds))
        return "already" if torch.bfloat16 in kinds or torch.float16 in kinds else "nothing", words
    if calls.device_of(module) == "cuda" and torch.cuda.get_device_capability(next(module.parameters()).device) < (8, 0):
        return "nothing", "the GPU computes nothing faster in bf16 (its compute capability is below 8.0)"
    return "", ""


def under(device: str, call: "calls.Call", args: tuple, kwargs: dict) -> Any:
    """The call under autocast. Without its cache: a weight first used without gradients would be kept without them."""
    with core.hooks.torch.autocast(device, dtype=core.hooks.torch.bfloat16, cache_enabled=False):
        return call(args, kwargs)


def as_before(result: Any) -> Any:
    torch = core.hooks.torch
    return tensors.replaced(result, lambda tensor: tensor.float() if tensor.dtype == torch.bfloat16 else tensor)


def fit(lever: core.Lever, module: Any, watches: bool) -> "Optional[calls.Run]":
    state, why = why_not(module, calls.floating(module))
    if state:
        (lever.already if state == "already" else lever.nothing)(why)
        return None
    torch, device = core.hooks.torch, calls.device_of(module)
    count = {"calls": 0, "bf16": 0, "others": 0}

    def see(name: str, args: tuple, kwargs: dict, result: Any) -> None:
        if name in watch.PRODUCTS:
            for tensor in tensors.each(result):
                if tensor.is_floating_point():
                    count["bf16" if tensor.dtype == torch.bfloat16 else "others"] += 1

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        if calls.is_autocast(device):
            lever.already("the program calls its module under autocast")
            return call(args, kwargs)
        count["calls"] += 1
        if count["calls"] > 1:
            result = under(device, call, args, kwargs)
        elif watches:
            result = under(device, lambda args, kwargs: watch.watched(call, args, kwargs, see), args, kwargs)
        else:
            result = under(device, call, args, kwargs)
            count["bf16"] = sum(tensor.dtype == torch.bfloat16 for tensor in tensors.each(result))
        if core.seldom(count["calls"]):
            say(lever, count, watches)
        return as_before(result)

    return run


def say(lever: core.Lever, count: "dict[str, int]", watched: bool) -> None:
    if watched and count["bf16"]:
        lever.on("%d products of a call in bf16, %d others; %d calls" % (count["bf16"], count["others"], count["calls"]))
    elif watched and count["others"]:
        lever.already("products of a call are in other types of the program's own")
    elif watched:
        lever.nothing("no product or convolution seen in a call")
    elif count["bf16"]:
        lever.on("a compiled module gives results in bf16; %d calls" % count["calls"])
    else:
        lever.on("a compiled module called under autocast, its operations not looked at; %d calls" % count["calls"])
