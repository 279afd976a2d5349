"""Outermost modules are compiled, and their kernels launched as CUDA graphs (torch.compile's mode reduce-overhead). What they give is
copied out of the graphs' memory, which the next call writes again."""

import sys
from typing import Any

from . import compile as compiler
from . import core, tensors

FRAMEWORK = "torch"


def apply(lever: core.Lever) -> None:
    options = {"fallback_random": True, "triton.cudagraphs": True}
    compiler.put(lever, options, _attest, lambda result: tensors.replaced(result, lambda tensor: tensor.clone()))


revert = compiler.revert


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
