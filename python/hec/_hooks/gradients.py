"""In experiments: norms of the gradients that an optimizer has just used, in its first steps and in every eighth one.

A lever that spoils the gradients may leave the loss as it was for as long as a trial lasts; their norms show it, in the first steps above
all, in which runs of a program have learned nothing different yet. There they are also taken of each sixteenth of the parameters. It is
done after the step, so that what changed gradients on the way is in it. They are read once, and nothing waits for the device."""

from typing import Any, Optional

from . import core, optimizers, values

NAME = "the norms of the gradients"

EVERY = FIRST = 8  # steps: the same ones in every trial
PARTS = 16  # src/prove/quality.h has the same number

_norms = values.Values([b"gradient_norm"])
_parts = values.Values([b"gradient_norm/%d" % part for part in range(PARTS)])
_steps = 0
_is_traced = core.is_traced


def _norms_of(optimizer: Any) -> "Optional[Any]":
    """One for each parameter, in float32, 0 where it has no gradient; None where none has, or they are not of one device, or still scaled,
    or part of a graph."""
    torch = core.torch
    if getattr(optimizer, "grad_scale", None) is not None:
        return None
    grads = [parameter.grad for group in optimizer.param_groups for parameter in group["params"]]
    found = [grad for grad in grads if grad is not None and grad.layout is torch.strided]
    if not found or any(type(grad) is not torch.Tensor or grad.device != found[0].device for grad in found):
        return None
    if found[0].is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    norms = iter(torch._foreach_norm(found) if hasattr(torch, "_foreach_norm") else [grad.norm() for grad in found])
    none = found[0].new_zeros((), dtype=torch.float32)
    return torch.stack([none if grad is None or grad.layout is not torch.strided else next(norms).float() for grad in grads])


def _by_part(norms: Any) -> Any:
    """(PARTS,): of the first sixteenth of the parameters, the second, ..., or of each where there are no more than that."""
    each = -(-len(norms) // PARTS)
    return core.torch.nn.functional.pad(norms, (0, PARTS * each - len(norms))).reshape(PARTS, each).norm(dim=1)


def _take(optimizer: Any, t_ns: int) -> None:
    with core.torch.no_grad(), core.torch._C.DisableTorchFunction():
        norms = _norms_of(optimizer)
        if norms is None:
            return
        _norms.take(norms.norm(), t_ns)
        if _steps <= FIRST:
            _parts.take(_by_part(norms), t_ns)


def _stepped(optimizer: Any) -> None:
    global _steps
    _steps += 1
    if (_steps > FIRST and _steps % EVERY) or not (core.steady or core.may(NAME)) or core.in_mode() or core.profiling:
        return
    try:
        t_ns = core.now_ns()
        if not _is_traced():
            _take(optimizer, t_ns)
        for kept in (_norms, _parts):
            kept.flush(t_ns)
        core.spent(t_ns)
    except Exception as error:
        core.failed(NAME, error)


def install() -> None:
    global _is_traced
    _is_traced = core.find_is_traced()
    if values.ALL and _stepped not in optimizers.afters:
        optimizers.around_steps(None, _stepped)


def remove() -> None:
    optimizers.leave_steps(_stepped)
