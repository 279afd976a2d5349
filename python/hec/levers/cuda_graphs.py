"""Outermost modules are compiled, and their kernels launched as CUDA graphs (torch.compile's mode reduce-overhead).

The graphs write the same memory in each call. What is to outlast a call is copied out of it: what the module gives, what it keeps for
itself (a mask, a cache), and gradients to which a second backward pass is added."""

import sys
import weakref
from typing import Any, Optional

from . import compile as compiler
from . import core, tensors

FRAMEWORK = "torch"
LIVE = True
COMPILES = True
PASSES = 3  # it warms up, captures, and launches what it captured
_mine: "Optional[compiler.Compiling]" = None


def apply(lever: core.Lever) -> None:
    global _mine
    _mine = compiler.Compiling(lever, {"fallback_random": True, "triton.cudagraphs": True}, _attest, Memory)


def revert() -> None:
    if _mine is not None:
        _mine.take()


def switch(on: bool) -> None:
    if _mine is not None:
        _mine.put.awake = on


def manager_of(device: Any) -> Any:
    """PyTorch's own, of the graphs of a device; None: it has captured none."""
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    return trees.get_manager(device.index, create_if_none_exists=False) if trees and device.type == "cuda" else None


def addresses(device: Any) -> "set[int]":
    """Where what the graphs of this step gave lies, as far as it is still held."""
    manager = manager_of(device)
    node = manager.current_node if manager is not None else None
    return {storage.data_ptr() for storage in node.path_live_weakrefs()} if node is not None else set()


class Memory(compiler.Around):
    """What of one module would otherwise lie in the graphs' memory."""

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)  # nothing of it keeps the module alive
        self.parameters = [weakref.ref(parameter) for parameter in module.parameters()]
        self.device = next(module.parameters()).device
        self.own = set(core.hooks.torch.nn.Module().__dict__)
        self.keepers: "list[weakref.ref[Any]]" = []  # parts that were seen to keep something

    def before(self) -> None:
        """Gradients that are there when a call begins: of an earlier backward pass, to which more is added, or which the program drops
        later. Those in memory of the program's own stay where they are."""
        torch = core.hooks.torch
        living = [ref() for ref in self.parameters] if torch.is_grad_enabled() else []
        found = [parameter for parameter in living if parameter is not None and parameter.grad is not None]
        held = addresses(self.device) if found else set()
        found = [parameter for parameter in found if held and _lies_in(held, parameter.grad)]
        if found:
            with torch.no_grad():
                copies = torch._foreach_mul([parameter.grad for parameter in found], 1)
            for parameter, copy in zip(found, copies):
                parameter.grad = copy

    def after(self, result: Any, compiled: bool) -> Any:
        """A module keeps something for the first time in a call in which its code is compiled; then it is looked at in each."""
        keepers = [ref() for ref in self.keepers]
        parts = list(self.module().modules()) if compiled else [part for part in keepers if part is not None]
        held = addresses(self.device) if parts else set()
        if held:
            kept = [part for part in parts if self._copy_kept(part, held)]
            self.keepers += [weakref.ref(part) for part in kept if all(part is not keeper for keeper in keepers)]
        return tensors.replaced(result, lambda tensor: tensor.clone())

    def _copy_kept(self, part: Any, held: "set[int]") -> bool:
        found = False
        for place in (part.__dict__, part._buffers):
            for name, value in list(place.items()):
                if name in self.own or isinstance(value, core.hooks.torch.nn.Module):
                    continue
                if any(_lies_in(held, tensor) for tensor in tensors.each(value)):
                    place[name] = tensors.replaced(value, lambda tensor: tensor.clone() if _lies_in(held, tensor) else tensor)
                    found = True
        return found


def _lies_in(held: "set[int]", tensor: Any) -> bool:
    """By the beginning of its storage."""
    torch = core.hooks.torch
    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and tensor.data_ptr() - tensor.storage_offset() * tensor.element_size() in held
    )


def _attest(lever: core.Lever, module: Any, words: str) -> None:
    manager = manager_of(next(module.parameters()).device)
    recorded = sum(len(roots) for roots in manager.roots.values()) if manager is not None else 0
    skipped = sys.modules["torch._dynamo.utils"].counters["inductor"]["cudagraph_skips"]
    if recorded:
        lever.on("%s; trees of CUDA graphs: %d, not captured: %d" % (words, recorded, skipped))
    else:
        lever.nothing("compiled (%s), but no CUDA graph was captured yet; could not be: %d" % (words, skipped))
