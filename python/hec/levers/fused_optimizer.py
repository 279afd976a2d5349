"""Optimizers whose class has a fused kernel use it, unless the program says by fused= or foreach=True what it wants (foreach=False saves memory,
of which a fused kernel takes no more). The switch is set for the length of each step: a checkpoint of theirs looks as it does without."""

import functools
import sys
import weakref
from typing import Any, Optional

from . import core

FRAMEWORK = "torch"
LIVE = True
CLASSES = {"SGD": "_fused_sgd_", "Adam": "_fused_adam_", "AdamW": "_fused_adamw_"}
CHECKED = 3  # steps of an optimizer that are looked at, and then those whose number is a power of two

_lever: "Optional[core.Lever]" = None
_known: "weakref.WeakKeyDictionary[Any, Use]" = weakref.WeakKeyDictionary()


class Use:
    """What the lever does with one optimizer."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel  # "": it is left alone
        self.steps = 0
        self.called = 0  # times that the kernel was, in steps that were looked at
        self.groups: "list[dict]" = []  # told to be fused, for this step
        self.counter: "Optional[core.Patch]" = None


def apply(lever: core.Lever) -> None:
    global _lever
    _lever = lever
    if not hasattr(core.hooks.torch, "_fused_adamw_"):
        lever.nothing("PyTorch %s: needs 2.0" % core.hooks.torch.__version__)
        return
    core.optimizers.around_steps(_before_step, _after_step)
    _patched.install()
    lever.nothing("no step of an optimizer seen")


def revert() -> None:
    core.optimizers.leave_steps(_before_step, _after_step)
    _patched.remove()
    for optimizer, use in list(_known.items()):
        _tell(use, None)
        if use.kernel:
            _leave(optimizer, use)
    _known.clear()


def _leave(optimizer: Any, use: Use) -> None:
    """Alone from now on, its counters of steps where they would be without the lever."""
    use.kernel = ""
    for group in optimizer.param_groups:
        if not group.get("capturable"):
            for weight in group["params"]:
                count = optimizer.state.get(weight, {}).get("step")
                if isinstance(count, core.hooks.torch.Tensor):
                    optimizer.state[weight]["step"] = count.cpu()


def _before_step(optimizer: Any) -> None:
    assert _lever is not None
    try:
        use = _known.get(optimizer)
        if use is None:
            use = _known[optimizer] = Use(_kernel(optimizer, _lever))
        if not use.kernel:
            return
        use.steps += 1
        looks = use.steps <= CHECKED or core.seldom(use.steps)
        why = _unfit(optimizer) if looks else ""
        if why:
            _leave(optimizer, use)
            _lever.nothing(why)
            return
        if looks:
            _count(use)
        use.groups = [group for group in optimizer.param_groups if group.get("fused", False) is None]
        for group in use.groups:
            _move_counters(optimizer, group)
        _tell(use, True)
    except Exception as error:
        _lever.broke(error, revert)


def _after_step(optimizer: Any) -> None:
    assert _lever is not None
    try:
        use = _known.get(optimizer)
        if use is None or not use.groups:
            return
        _tell(use, None)
        use.groups = []
        if use.counter is not None:
            use.counter.remove()
            use.counter = None
            words = ", ".join(sorted({type(one).__name__ for one, other in _known.items() if other.called}))
            if words:
                _lever.on("%d fused steps of %s" % (sum(other.steps for other in _known.values() if other.called), words))
            elif use.steps == 1:
                _lever.nothing("a step called no fused kernel")
    except Exception as error:
        _lever.broke(error, revert)


def _tell(use: Use, fused: "Optional[bool]") -> None:
    for group in use.groups:
        group["fused"] = fused


def _kernel(optimizer: Any, lever: core.Lever) -> str:
    """Of the function to use; "" and said why, when there is none, or the program chose."""
    torch = core.hooks.torch
    name = type(optimizer).__name__
    if type(optimizer) is not getattr(torch.optim, name, None) or name not in CLASSES:
        lever.nothing("%s has no fused kernel" % name)
    elif any("fused" not in group for group in optimizer.param_groups):
        lever.nothing("%s has no fused kernel in PyTorch %s" % (name, torch.__version__))
    elif all(group["fused"] for group in optimizer.param_groups):
        lever.already("%s is fused" % name)
    elif any(group["fused"] is not None or group.get("foreach") for group in optimizer.param_groups):
        lever.nothing("the program says itself which kernel %s uses" % name)
    elif any(group.get("differentiable") for group in optimizer.param_groups):
        lever.nothing("%s is differentiable" % name)
    else:
        return CLASSES[name]
    return ""


def _unfit(optimizer: Any) -> str:
    """Why the fused kernel would refuse these weights, or their gradients."""
    torch = core.hooks.torch
    supported = getattr(sys.modules.get("torch.utils._foreach_utils"), "_get_fused_kernels_supported_devices", lambda: ["cuda"])
    kinds = supported()
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if type(weight) not in (torch.nn.Parameter, torch.Tensor):
                return "weights are %s" % type(weight).__name__
            if not weight.is_floating_point() or weight.device.type not in kinds or not weight.numel():
                return "weights are %s on the %s" % (str(weight.dtype).rpartition(".")[2], weight.device.type)
            if weight.device.type != "cuda" and torch.cuda.is_available():
                return "weights are on the %s" % weight.device.type
            others = [weight.grad] if weight.grad is not None else []
            others += [value for value in optimizer.state.get(weight, {}).values() if getattr(value, "shape", ()) == weight.shape]
            for other in others:
                if not isinstance(other, torch.Tensor) or not other.dim():
                    continue  # a counter, of a weight without dimensions
                if other.is_sparse or other.dtype != weight.dtype or other.stride() != weight.stride():
                    return "gradients or states differ from their weights in type or order"
    return ""


def _move_counters(optimizer: Any, group: dict) -> None:
    """Those of steps made before the lever, or loaded, are on the CPU."""
    torch = core.hooks.torch
    for weight in group["params"]:
        state = optimizer.state.get(weight)
        count = state.get("step") if state else None
        if isinstance(count, torch.Tensor):
            if count.device == weight.device:
                return
            state["step"] = count.to(weight.device, torch.float32)


def _count(use: Use) -> None:
    def make(inner: Any) -> Any:
        @functools.wraps(inner)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            use.called += 1
            return inner(*args, **kwargs)

        return kernel

    use.counter = core.Patch(core.hooks.torch, use.kernel, make)
    use.counter.install()


def _make_state(inner: Any) -> Any:
    @functools.wraps(inner)
    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = inner(self, *args, **kwargs)
        try:
            use = _known.get(self)
            if use is not None and use.kernel and not any(group.get("capturable") for group in self.param_groups):
                result = {**result, "state": {key: _on_host(state) for key, state in result["state"].items()}}
        except Exception as error:
            if _lever is not None:
                _lever.broke(error, revert)
        return result

    return state_dict


def _on_host(state: Any) -> Any:
    count = state.get("step") if isinstance(state, dict) else None
    return {**state, "step": count.cpu()} if isinstance(count, core.hooks.torch.Tensor) else state


_patched = core.Patches(lambda: [core.Patch(core.hooks.torch.optim.Optimizer, "state_dict", _make_state)])
