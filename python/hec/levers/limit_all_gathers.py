"""FullyShardedDataParallel has the weights of at most two parts on their way: less memory, fewer allocations."""

from . import core, wrappers

FRAMEWORK = "torch"
_flag = wrappers.Flag(wrappers.FSDP, "limit_all_gathers", "the weights of at most two parts are on their way")


def apply(lever: core.Lever) -> None:
    _flag.apply(lever)


def revert() -> None:
    _flag.revert()
