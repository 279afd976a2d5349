"""Gradients of a DistributedDataParallel go in buckets of another size: few large collectives where there were many small ones."""

from typing import Any, Dict, Optional

from . import core, tally, wrappers

FRAMEWORK = "torch"
DEFAULT_MB, LEAST_MB, MOST_MB = 25, 25, 250  # PyTorch's own; of what the lever chooses
APART = 4  # buckets, at the least: the first ones go while the backward pass makes the last ones
LOOK_STEPS = 3  # PyTorch orders its buckets anew in the second pass

_lever: "Optional[core.Lever]" = None
_built: "Optional[wrappers.Built]" = None
_before = 0  # buckets without the lever


def apply(lever: core.Lever) -> None:
    global _lever, _built
    _lever, _built = lever, wrappers.Built(lever, wrappers.DDP, _fit, _made)
    _built.put()


def revert() -> None:
    if _built is not None:
        _built.take()


def _fit(arguments: dict) -> "Dict[str, Any]":
    global _before
    assert _lever is not None
    if arguments.get("bucket_cap_mb_list"):
        raise wrappers.Unfit("the program gives each bucket its size")
    weights = [weight for weight in arguments["module"].parameters() if weight.requires_grad]
    held = sum(weight.numel() * weight.element_size() for weight in weights)
    cap = arguments["bucket_cap_mb"]
    wanted = int(_lever.value) if _lever.value else max(LEAST_MB, min(MOST_MB, held // (APART << 20)))
    if wanted == (DEFAULT_MB if cap is None else cap):
        raise wrappers.Already("buckets of %d MB" % wanted)
    _before, after = (_count(weights, mb) for mb in (cap, wanted))
    if _before == after:
        raise wrappers.Unfit("%d buckets of %.1f MB of gradients, either way" % (after, held / (1 << 20)))
    return {"bucket_cap_mb": wanted}


def _count(weights: "list[Any]", mb: "Optional[float]") -> int:
    """How many buckets they will be, in the order in which their gradients mostly come."""
    dist = core.hooks.torch.distributed
    first = dist._DEFAULT_FIRST_BUCKET_BYTES
    cap = int((DEFAULT_MB if mb is None else mb) * (1 << 20))
    found = dist._compute_bucket_assignment_by_size(weights[::-1], [cap if _is_own(mb) else first, cap])
    return len(found[0] if isinstance(found, tuple) else found)


def _is_own(mb: "Optional[float]") -> bool:
    """Since the size has no default, one that is given is that of the first bucket too."""
    default = wrappers.default_of(wrappers.DDP, "bucket_cap_mb")
    return default is None and mb is not None


def _made(module: Any) -> None:
    def look() -> None:
        found = module._get_ddp_logging_data()
        sizes = found.get("rebuilt_bucket_sizes") or found.get("bucket_sizes") or ""
        lever.on("%d buckets of at most %.0f MB, %d without it" % (len(sizes.split(",")), found["bucket_cap_bytes"] / (1 << 20), _before))

    lever = _lever
    assert lever is not None
    tally.after_steps(LOOK_STEPS, look)
