"""The weights of a part of a sharded model stay whole from its forward pass to its backward pass: each is gathered once a step, not twice.
FullyShardedDataParallel has a strategy for it, fully_shard (FSDP2) an argument."""

from typing import Any, Dict, List, Optional

from . import core, wrappers

FRAMEWORK = "torch"
WHOLE = {"FULL_SHARD": "SHARD_GRAD_OP", "HYBRID_SHARD": "_HYBRID_SHARD_ZERO2"}

_lever: "Optional[core.Lever]" = None
_built: "List[wrappers.Built]" = []
_parts = {"kept": 0, "given up": 0}


def apply(lever: core.Lever) -> None:
    global _lever
    _lever = lever
    _parts.update({"kept": 0, "given up": 0})
    _built[:] = [wrappers.Built(lever, wrappers.FSDP, _strategy, _made), wrappers.Built(lever, wrappers.FSDP2, _argument, _made)]
    lost = [built.wrapper.name for built in _built if not _put(built)]
    lever.nothing("%s does not load" % " and ".join(lost) if len(lost) == len(_built) else "the program shards no model")


def _put(built: wrappers.Built) -> bool:
    try:
        built.put()
    except Exception:  # this PyTorch has none, or the Python is too new for it
        return False
    return True


def revert() -> None:
    for built in _built:
        built.take()


def _strategy(arguments: dict) -> "Dict[str, Any]":
    from torch.distributed.fsdp import ShardingStrategy

    strategy = arguments.get("sharding_strategy") or ShardingStrategy.FULL_SHARD
    if strategy.name in WHOLE.values():
        raise wrappers.Already("parts stay whole until the backward pass")
    if not hasattr(ShardingStrategy, WHOLE.get(strategy.name, "")):
        raise wrappers.Unfit("parts are not sharded, by %s" % strategy.name)
    return {"sharding_strategy": ShardingStrategy[WHOLE[strategy.name]]}


def _argument(arguments: dict) -> "Dict[str, Any]":
    if "reshard_after_forward" not in arguments:
        raise wrappers.Unfit("this PyTorch has no reshard_after_forward")
    if arguments["reshard_after_forward"] is False:
        raise wrappers.Already("parts stay whole until the backward pass")
    return {"reshard_after_forward": False}


def _made(module: Any) -> None:
    """FullyShardedDataParallel says it itself; of fully_shard a look after each part's first forward pass does."""
    import torch

    def look(part: Any, *_: Any) -> None:
        handle.remove()
        if torch.is_grad_enabled():  # a DTensor is a weight that is sharded
            _say(not any(hasattr(weight, "to_local") for weight in part.parameters()))

    if hasattr(module, "sharding_strategy"):
        _say(module.sharding_strategy.name in WHOLE.values())
    else:
        handle = (module[0] if isinstance(module, list) else module).register_forward_hook(look)


def _say(whole: bool) -> None:
    assert _lever is not None
    _parts["kept" if whole else "given up"] += 1
    text = "%d parts stay whole until the backward pass" % _parts["kept"]
    if _parts["given up"]:
        text += ", %d do not" % _parts["given up"]
    (_lever.on if _parts["kept"] else _lever.nothing)(text)
