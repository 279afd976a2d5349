"""Gradients of a DistributedDataParallel travel in half precision: what ddp_fp16_hook and ddp_bf16_hook share."""

import functools
import sys
import weakref
from importlib import import_module
from typing import Any, Callable, Dict, List, Optional

from . import core, ranks, tally, wrappers

BF16_NCCL, BF16_GLOO = (2, 10), (2, 11)  # of NCCL, as PyTorch says, and the PyTorch whose gloo is known to take it

_all: "List[Compressed]" = []


def has(module: Any) -> bool:
    """Its gradients are ours to compress: no hook of the program does something else."""
    return any(one.is_ours(module) for one in _all)


def wire(module: Any, kind: Any) -> Any:
    """In what its gradients travel, that are of this kind."""
    return next((one.kind() for one in _all if one.is_ours(module)), kind)


class Compressed:
    """One lever's. PyTorch takes a hook once: ours goes on to the program's where that comes later."""

    def __init__(self, name: str, hook: str) -> None:
        self.name, self.hook = name, hook
        self.lever: "Optional[core.Lever]" = None
        self.built: "Optional[wrappers.Built]" = None
        self.tally: "Optional[tally.Tally]" = None
        self.patches = core.Patches(self._patches)
        self.owns: "weakref.WeakKeyDictionary[Any, Own]" = weakref.WeakKeyDictionary()

    def is_ours(self, module: Any) -> bool:
        own = self.owns.get(module)
        return own is not None and own.hook is None

    def kind(self) -> Any:
        return core.hooks.torch.float16 if self.name == "fp16" else core.hooks.torch.bfloat16

    def apply(self, lever: core.Lever) -> None:
        self.lever = lever
        self.built = wrappers.Built(lever, wrappers.DDP, self._fit, self._made)
        self.tally = tally.Tally(lever, lambda n: "%d buckets of gradients sent in %s" % (n["buckets"], self.name))
        self.built.put()
        self.patches.install()
        _all.append(self)

    def revert(self) -> None:
        if self.built is not None:
            self.built.take()
        self.patches.remove()
        if self in _all:
            _all.remove(self)
        if self.tally is not None:
            self.tally.close()

    def _fit(self, arguments: dict) -> "Dict[str, Any]":
        torch, dist = core.hooks.torch, ranks.distributed()
        kinds = {weight.dtype for weight in arguments["module"].parameters() if weight.requires_grad}
        if arguments.get("mixed_precision") is not None:
            raise wrappers.Unfit("the program has a mixed precision of its own")
        if kinds != {torch.float32}:
            raise wrappers.Unfit("gradients are %s" % ", ".join(sorted(str(kind).rpartition(".")[2] for kind in kinds)))
        if self.name == "bf16":
            backend = dist.get_backend(arguments.get("process_group"))
            nccl = torch.cuda.nccl.version() if backend == "nccl" else (0,)
            version = tuple(int(part) for part in torch.__version__.split(".")[:2])
            if not (backend == "nccl" and nccl >= BF16_NCCL or backend == "gloo" and version >= BF16_GLOO):
                raise wrappers.Unfit("%s is not known to sum bf16" % backend)
        return {}

    def _made(self, module: Any) -> None:
        hooks = import_module("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
        group, compress, own = module.process_group, getattr(hooks, self.hook), Own()

        def compressed(state: Any, bucket: Any) -> Any:
            if own.hook is not None:
                return own.hook(own.state, bucket)
            if self.tally is not None:
                self.tally.add("buckets")
            return compress(group, bucket)

        compressed.__annotations__.clear()  # PyTorch wants its own there, or none
        module.register_comm_hook(None, compressed)
        module.__dict__.get("_comm_hooks", [0]).pop()  # which would be in its pickles
        self.owns[module] = own

    def _patches(self) -> "list[core.Patch]":
        owner = getattr(sys.modules[wrappers.DDP.module], wrappers.DDP.name)
        return [core.Patch(owner, "register_comm_hook", self._make), core.Patch(owner, "_register_builtin_comm_hook", self._make_builtin)]

    def _taken(self, module: Any, state: Any, hook: "Callable[[Any, Any], Any]") -> bool:
        """Whether the program's hook was put behind ours."""
        if not self.is_ours(module):
            return False
        module._check_comm_hook(hook)
        self.owns[module].state, self.owns[module].hook = state, hook
        if self.lever is not None:
            self.lever.nothing("the program has a hook of its own")
        return True

    def _make(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def register_comm_hook(module: Any, state: Any, hook: Any) -> Any:
            return None if self._taken(module, state, hook) else inner(module, state, hook)

        return register_comm_hook

    def _make_builtin(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def _register_builtin_comm_hook(module: Any, comm_hook_type: Any) -> Any:
            hooks = sys.modules.get("torch.distributed.algorithms.ddp_comm_hooks.default_hooks")
            kind = "fp16_compress_hook" if "FP16" in str(comm_hook_type) else "allreduce_hook"
            if hooks is not None and self._taken(module, module.process_group, getattr(hooks, kind)):
                return None
            return inner(module, comm_hook_type)

        return _register_builtin_comm_hook


class Own:
    """The program's hook, once it has one."""

    def __init__(self) -> None:
        self.state: Any = None
        self.hook: "Optional[Callable[[Any, Any], Any]]" = None
