"""In experiments: the norm of the gradients that an optimizer has just used, in every eighth of its steps.

A lever that spoils the gradients may leave the loss as it was for as long as a trial lasts; their norm shows it. It is taken
after the step, so that what changed them on the way is in it. They are read once, and nothing waits for the device."""

from typing import Any

from . import core, optimizers, values

NAME = "the norm of the gradients"

EVERY = 8  # steps: the same ones in every trial

_norms = values.Values(b"gradient_norm")
_steps = 0
_is_compiling = core.is_compiling


def _norm(optimizer: Any) -> Any:
    """A scalar in float32; None where there is no gradient, or not of one device, or still scaled, or part of a graph."""
    torch = core.torch
    if getattr(optimizer, "grad_scale", None) is not None:
        return None
    found = [
        parameter.grad
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None and parameter.grad.layout is torch.strided
    ]
    if not found or any(type(grad) is not torch.Tensor or grad.device != found[0].device for grad in found):
        return None
    if found[0].is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        norms = torch._foreach_norm(found) if hasattr(torch, "_foreach_norm") else [grad.norm() for grad in found]
        return torch.stack([norm.float() for norm in norms]).norm()


def _stepped(optimizer: Any) -> None:
    global _steps
    _steps += 1
    if _steps % EVERY or not (core.steady or core.may(NAME)) or core.in_mode() or core.profiling:
        return
    try:
        t_ns = core.now_ns()
        norm = None if _is_compiling() else _norm(optimizer)
        if norm is not None:
            _norms.take(norm, t_ns)
        _norms.flush(t_ns)
        core.spent(t_ns)
    except Exception as error:
        core.failed(NAME, error)


def install() -> None:
    global _is_compiling
    _is_compiling = core.find_is_compiling()
    if values.ALL and _stepped not in optimizers.afters:
        optimizers.around_steps(None, _stepped)


def remove() -> None:
    optimizers.leave_steps(_stepped)
