"""Outermost modules are compiled, and their kernels launched as CUDA graphs (torch.compile's mode reduce-overhead).

The graphs write the same memory in each call. What is to outlast a call is copied out of it: what the module gives, what it keeps for
itself (a mask, a cache), and gradients to which a second backward pass is added."""

import sys
import weakref
from typing import Any

from . import compile as compiler
from . import core, tensors

FRAMEWORK = "torch"

KEPT_MAX = 4  # calls after which a module may have kept something new: one that does in every call is left alone


def apply(lever: core.Lever) -> None:
    compiler.put(lever, {"fallback_random": True, "triton.cudagraphs": True}, _attest, Memory)


revert = compiler.revert


def on_device(tensor: Any) -> bool:
    return bool(tensor.is_cuda)


class Memory(compiler.Around):
    """What of one module would otherwise lie in the graphs' memory."""

    def __init__(self, module: Any) -> None:
        self.module = module
        buckets = getattr(module, "gradient_as_bucket_view", False)  # DistributedDataParallel: gradients are parts of its own memory
        self.parameters = [] if buckets else list(module.parameters())
        self.gradients: "dict[int, int]" = {}  # addresses of those that were copied
        self.own = set(core.hooks.torch.nn.Module().__dict__)
        self.kept = {key: _references(held) for key, held in self._look(module.modules()).items()}
        self.keepers: "list[Any]" = []  # parts that were seen to keep something
        self.copied_in = 0

    def before(self) -> None:
        """Gradients that are there when a call begins, and not copied yet: of an earlier backward pass, to which more is added, or which
        the program drops later."""
        torch = core.hooks.torch
        if not torch.is_grad_enabled():
            return
        found = [
            parameter
            for parameter in self.parameters
            if parameter.grad is not None
            and type(parameter.grad) is torch.Tensor
            and parameter.grad.layout is torch.strided
            and on_device(parameter.grad)
            and self.gradients.get(id(parameter)) != parameter.grad.data_ptr()
        ]
        if found:
            with torch.no_grad():
                copies = torch._foreach_mul([parameter.grad for parameter in found], 1)
            for parameter, copy in zip(found, copies):
                parameter.grad = copy
                self.gradients[id(parameter)] = copy.data_ptr()

    def after(self, result: Any, compiled: bool) -> Any:
        if compiled or self.keepers:
            self._keep(compiled)
        return tensors.replaced(result, lambda tensor: tensor.clone())

    def _look(self, parts: Any) -> "dict[tuple[int, str], tuple[Any, ...]]":
        """The tensors on the device that modules have, but for their weights, by module and name."""
        found = {}
        for part in parts:
            for name, value in [*part.__dict__.items(), *part._buffers.items()]:
                if name not in self.own and not isinstance(value, core.hooks.torch.nn.Module):
                    held = tuple(tensor for tensor in tensors.each(value) if on_device(tensor))
                    if held:
                        found[id(part), name] = held
        return found

    def _keep(self, compiled: bool) -> None:
        parts = list(self.module.modules()) if compiled else self.keepers
        found = self._look(parts)
        changed = False
        for part in parts:
            for place in (part.__dict__, part._buffers):
                for name in list(place):
                    known = [reference() for reference in self.kept.get((id(part), name), ())]
                    new = {id(tensor) for tensor in found.get((id(part), name), ()) if all(tensor is not other for other in known)}
                    if not new:
                        continue
                    place[name] = tensors.replaced(place[name], lambda tensor, new=new: tensor.clone() if id(tensor) in new else tensor)
                    self.kept[id(part), name] = _references(tensor for tensor in tensors.each(place[name]) if on_device(tensor))
                    if part not in self.keepers:
                        self.keepers.append(part)
                    changed = True
        self.copied_in += changed
        if self.copied_in > KEPT_MAX:
            self.fault = "the module keeps tensors of each call for the next"


def _references(held: Any) -> "tuple[Any, ...]":
    """What the module drops is not to live on here."""
    return tuple(weakref.ref(tensor) for tensor in held)


def _attest(lever: core.Lever, module: Any, words: str) -> None:
    trees = sys.modules.get("torch._inductor.cudagraph_trees")
    device = next(module.parameters()).device
    manager = trees.get_manager(device.index, create_if_none_exists=False) if trees and device.type == "cuda" else None
    recorded = sum(len(roots) for roots in manager.roots.values()) if manager is not None else 0
    skipped = sys.modules["torch._dynamo.utils"].counters["inductor"]["cudagraph_skips"]
    if recorded:
        lever.on("%s; trees of CUDA graphs: %d, not captured: %d" % (words, recorded, skipped))
    else:
        lever.nothing("compiled (%s), but no CUDA graph was captured yet; could not be: %d" % (words, skipped))
