"""Attention that a program writes out by hand: softmax(q @ k.T * scale + mask) @ v, with dropout, becomes scaled_dot_product_attention.

A mask is causal where its values are seen to be the triangle: they are numbers, or a tensor that the module keeps, which is looked at again
when it has been written. Any other mask goes with it as it is."""

import math
from typing import Any, Dict, List, Optional, Tuple

from . import calls, core, graphs

NOTHING_LEFT = -1000.0  # added to a score: what becomes of it is 0
PASSES_MAX = 12  # operations between a product and its softmax
# what follows may have another order in memory than the product would give: these take any
ANY_ORDER = frozenset("transpose permute contiguous reshape movedim flatten matmul bmm linear".split())


class Unfit(Exception):
    """It is not attention, or not as the function computes it."""


class Scores:
    """q @ k.T as it goes to a softmax."""

    def __init__(self) -> None:
        self.scale = 1.0
        self.dropped: "List[Tuple[Any, float]]" = []  # where a mask is true, and what is there then
        self.kept: "List[Tuple[Any, float]]" = []  # where one is false
        self.added: "List[Tuple[Any, float]]" = []  # tensors, and by what they are multiplied
        self.nodes: "List[Any]" = []
        self.product: Any = None


class Finder:
    """Of one graph, in which nothing is written in place (graphs.without_writes)."""

    def __init__(self, owner: Any, constants: graphs.Constants) -> None:
        self.graph, self.constants = owner.graph, constants
        self.watched: "List[graphs.Watched]" = []
        self.segments = graphs.segments(owner.graph)

    def replace_all(self) -> "Dict[str, int]":
        found: "Dict[str, int]" = {}
        for node in list(self.graph.nodes):
            if graphs.kind(node) == "softmax":
                try:
                    name = self._replace(node)
                except Unfit:
                    continue
                found[name] = found.get(name, 0) + 1
        return found

    def _replace(self, softmax: Any) -> str:
        self._softmax_of_rows(softmax)
        dropout, product, after = self._after(softmax)
        scores = self._before(softmax.args[0])
        nodes = [scores.product, *reversed(scores.nodes), softmax, *after, product]
        if len({self.segments[node] for node in nodes}) != 1:
            raise Unfit
        q, k = _factors(scores.product, transposed=True)
        weights, v = _factors(product, transposed=False)
        self._same_kind(q.node, k.node, v.node, scores.product)
        watched: "List[graphs.Watched]" = []
        causal = self._is_causal(scores, watched)
        self.constants.forget()
        mask = None if causal else self._mask_of(scores)
        with self.graph.inserting_before(product):
            made = self._made(q, k, v, self._put_mask(mask), dropout, causal, scores, product)
        self.segments[made] = self.segments[product]
        made.meta = dict(product.meta)
        product.replace_all_uses_with(made)
        for node in reversed(nodes):
            self.graph.erase_node(node)
        self.watched += watched if causal else []
        return "causal attention" if causal else "attention"

    def _made(self, q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, scores: Scores, product: Any) -> Any:
        graph, F = self.graph, core.hooks.torch.nn.functional
        given = [one.put(graph) for one in (q, k, v)]
        flat = len(graphs.example(scores.product).shape) == 3  # the kernels want heads
        if flat:
            given = [graph.call_method("unsqueeze", (one, 1)) for one in given]
            if mask is not None and len(graphs.example(mask).shape) == 3:
                mask = graph.call_method("unsqueeze", (mask, 1))
        words = {"attn_mask": mask, "dropout_p": dropout, "is_causal": causal, "scale": scores.scale}
        made = graph.call_function(F.scaled_dot_product_attention, tuple(given), words)
        if flat:
            made = graph.call_method("squeeze", (made, 1))
        made = graph.call_method("to", (made, graphs.dtype(product)))
        order = _order_out(product)
        if order is not None:
            made = graph.call_method("permute", (made, order))
        if order is not None or not all(graphs.kind(user) in ANY_ORDER for user in product.users):
            made = graph.call_method("contiguous", (made,))
        return made

    # ---- around the softmax ----

    @staticmethod
    def _softmax_of_rows(softmax: Any) -> None:
        value, torch = graphs.example(softmax), core.hooks.torch
        dim = graphs.argument(softmax, 1, "dim")
        if value is None or value.dim() not in (3, 4) or not isinstance(dim, int) or dim % value.dim() != value.dim() - 1:
            raise Unfit
        if value.dtype not in (torch.float16, torch.bfloat16, torch.float32):  # double precision has no kernel
            raise Unfit

    def _after(self, node: Any) -> "Tuple[float, Any, List[Any]]":
        """The probability of dropout, the product with the values, and what is between."""
        dropout, between = None, []
        while True:
            if len(node.users) != 1:
                raise Unfit
            user = next(iter(node.users))
            name = graphs.kind(user)
            if name in ("matmul", "bmm", "einsum"):
                if name != "einsum" and (user.args[0] is not node or user.args[1] is node):
                    raise Unfit
                return dropout or 0.0, user, between
            if name == "dropout":
                p, training = graphs.argument(user, 1, "p", 0.5), graphs.argument(user, 2, "training", True)
                if dropout is not None or not isinstance(p, (int, float)) or not isinstance(training, bool) or graphs.writes(user):
                    raise Unfit
                dropout = float(p) if training else 0.0
            elif name not in (*graphs.CASTS, "contiguous") or user.args[0] is not node or not _is_float(user):
                raise Unfit
            between.append(user)
            node = user

    def _before(self, node: Any) -> Scores:
        """From the softmax back to the product of queries and keys."""
        scores = Scores()
        for _ in range(PASSES_MAX):
            name = graphs.kind(node)
            if len(node.users) != 1 or graphs.example(node) is None:
                raise Unfit
            if name in ("matmul", "bmm", "einsum"):
                scores.product = node
                return scores
            scores.nodes.append(node)
            inner = self._pass(node, name, scores)
            if graphs.example(inner) is None or graphs.example(inner).shape != graphs.example(node).shape:
                raise Unfit  # a mask made it larger
            node = inner
        raise Unfit

    def _pass(self, node: Any, name: str, scores: Scores) -> Any:
        """The operand of an operation in which the product is."""
        args = node.args
        if node.kwargs and name not in graphs.CASTS:
            raise Unfit
        if name in graphs.CASTS or name == "contiguous":
            if not _is_float(node):
                raise Unfit
            return args[0]
        if name in ("div", "mul"):
            for one, other in ((0, 1), (1, 0)) if name == "mul" else ((0, 1),):
                number = self.constants.number(args[other])
                if number and graphs.is_node(args[one]) and math.isfinite(number):
                    scores.scale *= number if name == "mul" else 1 / number
                    return args[one]
            raise Unfit
        if name == "add":
            for one, other in ((0, 1), (1, 0)):
                if self._leads_to_product(args[one], node) and graphs.is_node(args[other]):
                    scores.added.append((args[other], scores.scale))
                    return args[one]
            raise Unfit
        if name == "masked_fill":
            number = self._fill(args[2])
            scores.dropped.append((args[1], number * scores.scale))
            return args[0]
        if name == "where" and len(args) == 3:
            inside = 1 if self._leads_to_product(args[1], node) else 2
            number = self._fill(args[3 - inside])
            (scores.kept if inside == 1 else scores.dropped).append((args[0], number * scores.scale))
            return args[inside]
        raise Unfit

    def _fill(self, value: Any) -> float:
        number = self.constants.number(value)
        if number is None or not number < 0:
            raise Unfit
        return number

    def _leads_to_product(self, node: Any, sum: Any) -> bool:
        if not graphs.is_node(node) or graphs.example(node) is None or graphs.example(node).shape != graphs.example(sum).shape:
            return False
        try:
            self._before(node)
        except Unfit:
            return False
        return True

    @staticmethod
    def _same_kind(q: Any, k: Any, v: Any, product: Any) -> None:
        """What the kernels take."""
        torch = core.hooks.torch
        values = [graphs.example(one) for one in (q, k, v)]
        if any(value is None or not value.is_floating_point() or value.dim() != values[0].dim() for value in values):
            raise Unfit
        types = {value.dtype for value in values}
        if len(types) > 1 and graphs.dtype(product) not in (torch.float16, torch.bfloat16):  # autocast makes them one
            raise Unfit

    # ---- masks ----

    def _is_causal(self, scores: Scores, watched: "List[graphs.Watched]") -> bool:
        """Whether what is masked is just what comes later."""
        torch = core.hooks.torch
        size = graphs.shape(scores.product)
        masks = [*scores.dropped, *scores.kept, *scores.added]
        if size is None or size[-1] != size[-2] or len(masks) != 1 or size[-1] < 2:
            return False
        node, number = masks[0]
        if not scores.added and not number <= NOTHING_LEFT:
            return False
        value = self.constants.of(node, watched)
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[-2:] != torch.Size(size[-2:]):
            return False
        later = torch.ones(size[-2:], dtype=torch.bool, device=value.device).triu(1)
        with torch.no_grad():
            if scores.added:
                least = value.float() * number
                return bool(torch.where(later, least <= NOTHING_LEFT, least == 0).all())
            masked = value.bool() if scores.dropped else ~value.bool()
            return bool((masked == later).all())

    def _mask_of(self, scores: Scores) -> "Optional[Tuple[str, Any, float]]":
        """What becomes of the mask: an operation of it, and a number."""
        torch = core.hooks.torch
        masks = [*scores.dropped, *scores.kept, *scores.added]
        if not masks:
            return None
        node, number = masks[0]
        if len(masks) > 1 or graphs.example(node) is None or graphs.example(node).dim() < 2:
            raise Unfit
        if scores.added:
            product = graphs.example(scores.product)
            if graphs.dtype(node) != product.dtype or calls.is_autocast(product.device.type):
                raise Unfit  # it would be rounded
            return ("" if number == 1.0 else "mul"), node, number
        if graphs.dtype(node) != torch.bool or number != -math.inf:  # else a row of which nothing is left would be another
            raise Unfit
        return ("logical_not" if scores.dropped else ""), node, number

    def _put_mask(self, mask: "Optional[Tuple[str, Any, float]]") -> Any:
        """As the function takes one: true where a score counts, or what is added to it."""
        if mask is None or not mask[0]:
            return mask[1] if mask is not None else None
        name, node, number = mask
        made = self.graph.call_method(name, (node, number) if name == "mul" else (node,))
        made.meta = dict(node.meta)
        return made


class Factor:
    """A tensor of a product, and how its dimensions have to lie: heads, rows, numbers of a row."""

    def __init__(self, node: Any, order: "Optional[List[int]]", transposed: bool = False) -> None:
        self.node, self.order, self.transposed = node, order, transposed

    def put(self, graph: Any) -> Any:
        if self.order is not None and self.order != sorted(self.order):
            return graph.call_method("permute", (self.node, self.order))
        if not self.transposed:
            return self.node
        if graphs.kind(self.node) == "transpose" and len(self.node.args) == 3:
            rank = len(graphs.example(self.node).shape)
            if {dim % rank for dim in self.node.args[1:]} == {rank - 1, rank - 2}:
                return self.node.args[0]
        return graph.call_method("transpose", (self.node, -2, -1))


def _factors(product: Any, transposed: bool) -> "Tuple[Factor, Factor]":
    """Of scores (transposed: the second is turned), or of weights and values."""
    if graphs.kind(product) != "einsum":
        left, right = product.args[:2]
        if len(product.args) != 2 or product.kwargs or not (graphs.is_node(left) and graphs.is_node(right)):
            raise Unfit
        sizes = [graphs.example(one) for one in (left, right)]
        if any(size is None for size in sizes) or sizes[0].shape[:-2] != sizes[1].shape[:-2]:
            raise Unfit
        return Factor(left, None), Factor(right, None, transposed)
    equation, operands = product.args[0], product.args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not isinstance(equation, str) or len(operands) != 2 or not all(graphs.is_node(one) for one in operands):
        raise Unfit
    (left, right), out = _terms(equation)
    batch = [letter for letter in out if letter in left and letter in right]
    summed = [letter for letter in left if letter in right and letter not in out]
    rows = [letter for letter in left if letter not in right and letter in out]
    columns = [letter for letter in right if letter not in left and letter in out]
    if len(batch) not in (1, 2) or [len(one) for one in (summed, rows, columns)] != [1, 1, 1] or len(left) != len(right):
        raise Unfit
    if transposed and out != "".join(batch + rows + columns):
        raise Unfit  # the softmax goes over the last
    first = [left.index(letter) for letter in batch + rows + summed]
    second = [right.index(letter) for letter in batch + (columns + summed if transposed else summed + columns)]
    if not transposed and left != "".join(batch + rows + summed):
        raise Unfit
    if any(a != b and 1 in (a, b) for a, b in zip(*([graphs.example(one).shape[place] for place in order[: len(batch)]]
                                                     for one, order in zip(operands, (first, second))))):  # fmt: skip
        raise Unfit
    return Factor(operands[0], first), Factor(operands[1], second)


def _terms(equation: str) -> "Tuple[Tuple[str, str], str]":
    given, arrow, out = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if not arrow or len(terms) != 2 or any(not term.isalpha() or len(set(term)) != len(term) for term in (*terms, out)):
        raise Unfit
    return (terms[0], terms[1]), out


def _order_out(product: Any) -> "Optional[List[int]]":
    """How the result of the function is turned, where the program's product says another order."""
    if graphs.kind(product) != "einsum":
        return None
    (left, right), out = _terms(product.args[0])
    batch = [letter for letter in out if letter in left and letter in right]
    made = batch + [letter for letter in left if letter not in right] + [letter for letter in right if letter not in left]
    order = [made.index(letter) for letter in out]
    return order if order != sorted(order) else None


def _is_float(node: Any) -> bool:
    value = graphs.example(node)
    return value is not None and value.is_floating_point()
