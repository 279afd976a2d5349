"""The loss of each step: the scalar that a backward pass starts from."""

import functools
import weakref
from typing import Any, Optional

from . import core, later, optimizers, parts, sizes, values

NAME = "the loss"

INTERVAL_NS = 0 if values.ALL else 100_000_000  # between two losses of a fast loop

joined = 1  # by a lever: so many of the program's passes are one, whose loss is their sum; theirs is what is recorded

_last_ns = 0
_losses = values.Values([b"loss"])
_left: "list[Any]" = []  # in a forked child
_scaled: Optional[tuple] = None  # weak reference to a loss that GradScaler scaled, the loss itself


def _value_of(tensors: Any) -> Optional[Any]:
    """The scalar, detached; None when there is none, or it is of a kind that nobody should touch."""
    torch = core.torch
    loss = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors
    if type(loss) is not torch.Tensor or loss.numel() != 1 or not loss.is_floating_point():
        return None
    if _scaled is not None and _scaled[0]() is loss:
        loss = _scaled[1]
    return loss.detach()


def _note(tensors: Any) -> None:
    global _last_ns
    t_ns = core.now_ns()
    later.work_off(t_ns)
    optimizers.passed_back(t_ns)
    if not core.steady and not core.may(NAME):
        return
    if t_ns - _last_ns >= INTERVAL_NS and not core.in_mode():
        with core.torch._C.DisableTorchFunction():
            loss = _value_of(tensors)
            if loss is not None and joined > 1:
                loss = loss / joined
        if loss is not None:
            _last_ns = t_ns
            _losses.take(loss, t_ns)
    _losses.flush(t_ns)
    core.spent(t_ns)


def forked() -> None:
    """What belongs to CUDA is not even freed in a forked child."""
    global _scaled
    _left.append(_scaled)
    _scaled = None


def _make_backward(inner: Any) -> Any:
    @functools.wraps(inner)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        start_ns = core.now_ns()
        noted = core.notes and start_ns - _last_ns < INTERVAL_NS and sizes.before is None
        if noted and _flag is not None and not _flag._is_compiling_flag:
            later.note((NAME, optimizers.passed_back, start_ns))
            result = inner(tensors, *args, **kwargs)
            t_ns = core.now_ns()
            later.note((NAME, parts.took, parts.BACKWARD, start_ns, t_ns))
            if t_ns - later.since_ns > later.LATEST_NS:
                try:
                    later.work_off(t_ns)
                except Exception as error:
                    core.failed(NAME, error)
            return result
        if _is_traced():
            return inner(tensors, *args, **kwargs)
        try:
            _note(tensors)
        except Exception as error:
            core.failed(NAME, error)
        start_ns = core.now_ns()
        result = inner(tensors, *args, **kwargs)
        parts.look()
        parts.took(parts.BACKWARD, start_ns, core.now_ns())
        return result

    return backward


def _make_scale(inner: Any) -> Any:
    @functools.wraps(inner)
    def scale(self: Any, outputs: Any) -> Any:
        global _scaled
        result = inner(self, outputs)
        try:
            if isinstance(outputs, core.torch.Tensor) and result is not outputs and outputs.numel() == 1:
                _scaled = (weakref.ref(result), outputs.detach())
        except Exception as error:
            core.failed(NAME, error)
        return result

    return scale


_is_traced = core.is_traced
_flag: Any = None  # as in modules.py


def _patches() -> "list[core.Patch]":
    torch = core.torch
    found = [core.Patch(torch.autograd, "backward", _make_backward)]
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
    if "scale" in scaler.__dict__:
        found.append(core.Patch(scaler, "scale", _make_scale))
    return found


_patched = core.Patches(_patches)


def install() -> None:
    global _is_traced, _flag
    _is_traced, _flag = core.find_is_traced(), core.compiling_flag()
    _patched.install()


remove = _patched.remove
