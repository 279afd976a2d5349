"""Gradients of a DistributedDataParallel lie in its buckets, and are not copied there and back."""

from typing import Any, Dict, Optional

from . import core, tally, wrappers

FRAMEWORK = "torch"
LOOK_STEPS = 3

_lever: "Optional[core.Lever]" = None
_built: "Optional[wrappers.Built]" = None


def apply(lever: core.Lever) -> None:
    global _lever, _built
    _lever, _built = lever, wrappers.Built(lever, wrappers.DDP, _fit, _made)
    _built.put()


def revert() -> None:
    if _built is not None:
        _built.take()


def _fit(arguments: dict) -> "Dict[str, Any]":
    if arguments["gradient_as_bucket_view"]:
        raise wrappers.Already("gradients lie in the buckets")
    if any(weight.grad is not None for weight in arguments["module"].parameters()):
        raise wrappers.Unfit("weights have gradients already")
    return {"gradient_as_bucket_view": True}


def _made(module: Any) -> None:
    def look() -> None:
        held = [weight.grad for weight in module.parameters() if weight.grad is not None]
        inside = [grad for grad in held if shares_memory(grad)]
        if inside:
            lever.on("%d of %d gradients lie in buckets" % (len(inside), len(held)))
        else:
            lever.nothing("no gradient lies in a bucket")

    lever = _lever
    assert lever is not None
    tally.after_steps(LOOK_STEPS, look)


def shares_memory(tensor: Any) -> bool:
    """Whether it is a part of something larger."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return bool(storage.nbytes() > tensor.numel() * tensor.element_size())
