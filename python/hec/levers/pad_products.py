"""Linear layers of odd sizes: their weights get zeros at the end for the product, and the result is cut. It happens in the graph that
torch.compile makes of a module; weights, gradients, states of optimizers and checkpoints have the program's sizes."""

from typing import Any, Dict, Optional, Tuple

from . import core, graphs, rewriters, rewriting

FRAMEWORK = "torch"
LIVE = True
ALIGNED = 8  # numbers: rows of so many begin where tensor cores can read them
TILE = 64  # of products in half precision
# Copies of the weight, of its gradient and of the result cost so much more than they bring below that: a copied number takes about
# 3e-12 s of memory, and a product of odd sizes in bf16 about 2e-15 s more for each of its operations, on an H100.
ROWS_LEAST, WIDTH_LEAST = 512, 256
# these read a result wherever its rows lie
ANY_ORDER = frozenset("matmul bmm linear softmax add sub mul div".split())

_mine: "Optional[rewriting.Rewriting]" = None


def apply(lever: core.Lever) -> None:
    global _mine
    _mine = rewriting.Rewriting(lever, 81, _change, _text, "no linear layer of an odd size is large enough")


def revert() -> None:
    if _mine is not None:
        _mine.take()


def switch(on: bool) -> None:
    if _mine is not None:
        _mine.switch(on)


def _change(owner: Any, constants: graphs.Constants) -> "rewriters.Changes":
    found: "Dict[str, int]" = {}
    for node in list(owner.graph.nodes):
        if graphs.kind(node) == "linear" and not node.kwargs:
            sizes = _padded(node)
            if sizes is not None:
                name = _pad(owner.graph, node, *sizes)
                found[name] = found.get(name, 0) + 1
    return found, []


def _padded(node: Any) -> "Optional[Tuple[int, int]]":
    """Columns and rows that its weight lacks; None: it stays as it is."""
    torch = core.hooks.torch
    x, weight, result = node.args[0], node.args[1], graphs.example(node)
    rows, sizes = graphs.shape(x), graphs.shape(weight)
    if rows is None or sizes is None or len(sizes) != 2 or result is None or weight.op not in ("placeholder", "get_attr"):
        return None
    count = 1
    for size in rows[:-1]:
        count *= size
    if count < ROWS_LEAST or min(sizes) < WIDTH_LEAST or not any(size % ALIGNED for size in sizes):
        return None
    if result.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return None
    if result.dtype == torch.float32 and result.device.type == "cuda" and not torch.backends.cuda.matmul.allow_tf32:
        return None  # it does not run on tensor cores
    to = ALIGNED if result.dtype == torch.float32 else TILE
    out, into = (-size % to if size % ALIGNED else 0 for size in sizes)
    return out, into


def _pad(graph: Any, node: Any, out: int, into: int) -> str:
    F = core.hooks.torch.nn.functional
    x, weight, *bias = node.args
    sizes = graphs.shape(weight) or ()
    with graph.inserting_before(node):
        if into:
            x = graph.call_function(F.pad, (x, (0, into)))
        given = [x, graph.call_function(F.pad, (weight, (0, into, 0, out)))]
        if bias and bias[0] is not None:
            given.append(graph.call_function(F.pad, (bias[0], (0, out))) if out else bias[0])
        result = graph.call_function(node.target, tuple(given))
        if out:
            result = graph.call_method("narrow", (result, -1, 0, sizes[0]))
            if not all(graphs.kind(user) in ANY_ORDER for user in node.users):
                result = graph.call_method("contiguous", (result,))
    result.meta = dict(node.meta)
    node.replace_all_uses_with(result)
    graph.erase_node(node)
    return "%d x %d as %d x %d" % (*sizes, sizes[0] + out, sizes[1] + into)


def _text(found: "Dict[str, int]") -> str:
    words = ["%d of %s" % (count, name) for name, count in sorted(found.items())]
    return "padded in a call: " + ", ".join(words[:4]) + (" and others" if len(words) > 4 else "")
