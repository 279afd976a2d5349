"""FullyShardedDataParallel asks for the weights of the next part while this one computes, in the forward pass too."""

from . import core, wrappers

FRAMEWORK = "torch"
_flag = wrappers.Flag(wrappers.FSDP, "forward_prefetch", "the next part's weights are asked for ahead")


def apply(lever: core.Lever) -> None:
    _flag.apply(lever)


def revert() -> None:
    _flag.revert()
