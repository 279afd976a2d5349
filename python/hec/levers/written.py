"""Normalisation and activations that a program writes out by hand, found by what they compute: a part of the graph between one tensor and
one result is run in double precision on drawn values, and is replaced where a function of PyTorch gives the same."""

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import calls, core, graphs

POINTWISE = frozenset("add sub mul div pow square sqrt rsqrt reciprocal neg tanh erf sigmoid exp".split())
OVER_ROWS = frozenset("mean var sum std".split())
CURVES = frozenset("tanh erf sigmoid exp".split())
ROOTS = frozenset("add mul div".split())
NODES_MAX = 40  # of a part
EPSILON_MAX = 0.1
ROWS = 8
ACTIVATION_BY, NORM_BY = 5e-7, 1e-7  # of single precision: constants are rounded to it
PRODUCTS = ("linear", "matmul", "bmm")


class Part:
    """Of a graph: what is between a tensor and a result."""

    def __init__(self, root: Any, leaf: Any) -> None:
        self.root, self.leaf = root, leaf
        self.nodes: "List[Any]" = []  # in their order, the result last
        self.weights: "List[Any]" = []
        self.numbers: "Dict[Any, float]" = {}  # nodes that are numbers

    def given(self, value: Any, weights: "List[Any]") -> Any:
        """What it computes."""
        numbers = {node: value.new_tensor(number) for node, number in self.numbers.items()}
        values = {self.leaf: value, **numbers, **dict(zip(self.weights, weights))}
        for node in self.nodes:
            values[node] = values[node.args[0]] if graphs.is_cast_of_nothing(node) else graphs.call(node, values.__getitem__)
        return values[self.root]


class Finder:
    """Of one graph."""

    def __init__(self, owner: Any, constants: graphs.Constants) -> None:
        self.graph, self.constants = owner.graph, constants
        nodes = list(self.graph.nodes)
        self.order = {node: place for place, node in enumerate(nodes)}
        self.segments = graphs.segments(self.graph)
        self.written = [0]  # writes in the nodes before each
        for node in nodes:
            self.written.append(self.written[-1] + graphs.writes(node))
        self.known: "Dict[Any, Any]" = {}  # what parts of the same form are

    def replace_all(self) -> "Dict[str, int]":
        """How many of each kind were."""
        found: "Dict[str, int]" = {}
        gone: "Set[Any]" = set()
        for root in reversed(list(self.graph.nodes)):
            if root in gone or graphs.kind(root) not in ROOTS or not _is_real(root):
                continue
            for part in self._parts(root):
                match = self._match(part)
                name = match(part) if match is not None else ""
                if name:
                    found[name] = found.get(name, 0) + 1
                    for node in reversed(part.nodes):
                        self.graph.erase_node(node)
                        gone.add(node)
                    break
        return found

    # ---- parts ----

    def _parts(self, root: Any) -> "List[Part]":
        """Those that end in a node: from each tensor that it uses more than once, the largest first."""
        uses: "Dict[Any, int]" = {}
        seen, ahead = {root}, [root]
        kinds = set()
        while ahead and len(seen) <= NODES_MAX:
            node = ahead.pop(0)
            kinds.add(graphs.kind(node))
            for other in set(_reads(node)):
                uses[other] = uses.get(other, 0) + sum(other is one for one in _reads(node))
                if other not in seen and self._is_inside(other):
                    seen.add(other)
                    ahead.append(other)
        if not kinds & (CURVES | OVER_ROWS):
            return []
        leaves = [node for node, count in uses.items() if count > 1 and _is_real(node) and _rank(node) == _rank(root)]
        parts = [self._cut(root, leaf) for leaf in sorted(leaves, key=lambda node: self.order[node])]
        return [part for part in parts if part is not None]

    @staticmethod
    def _is_inside(node: Any) -> bool:
        return graphs.kind(node) in POINTWISE | OVER_ROWS or graphs.is_cast_of_nothing(node)

    def _cut(self, root: Any, leaf: Any) -> "Optional[Part]":
        part = Part(root, leaf)
        inside: "Set[Any]" = set()
        ahead = [root]
        while ahead:
            node = ahead.pop()
            if node is leaf or node in inside or node in part.weights or node in part.numbers:
                continue
            number = self.constants.number(node)
            if number is not None:
                part.numbers[node] = number
            elif node.op in ("placeholder", "get_attr"):
                part.weights.append(node)
            elif self._is_inside(node) and len(inside) < NODES_MAX:
                inside.add(node)
                ahead += _reads(node)
            else:
                return None
        part.nodes = sorted(inside, key=lambda node: self.order[node])
        part.weights.sort(key=lambda node: self.order[node])
        if len(part.weights) > 2 or len({self.segments[node] for node in part.nodes}) != 1:
            return None
        if any(user not in inside for node in part.nodes if node is not root for user in node.users):
            return None
        first, last = self.order[part.nodes[0]], self.order[root]
        return part if self.written[first] == self.written[last + 1] else None

    # ---- what they are ----

    def _match(self, part: Part) -> "Optional[Callable[[Part], str]]":
        key = self._form(part)
        if key not in self.known:
            self.known[key] = self._probe(part)
        return self.known[key]

    def _form(self, part: Part) -> Any:
        """The same of parts that compute the same."""
        places = {node: place for place, node in enumerate([part.leaf, *part.weights, *part.nodes])}

        def of(value: Any) -> Any:
            if graphs.is_node(value):
                return ("number", part.numbers[value]) if value in part.numbers else places.get(value)
            return value

        torch = core.hooks.torch
        rows = [
            (graphs.kind(node), repr(torch.fx.node.map_aggregate(node.args, of)), repr(torch.fx.node.map_aggregate(node.kwargs, of)))
            for node in part.nodes
        ]
        return repr((rows, [(graphs.shape(node), graphs.dtype(node)) for node in part.weights], _trailing(part)))

    def _probe(self, part: Part) -> "Optional[Callable[[Part], str]]":
        torch = core.hooks.torch
        kinds = {graphs.kind(node) for node in part.nodes}
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            try:
                if kinds & OVER_ROWS and not kinds & CURVES:
                    return self._norm(part)
                if kinds & CURVES and not kinds & OVER_ROWS and not part.weights:
                    return self._activation(part)
            except (RuntimeError, TypeError, ValueError, IndexError):  # these values are not what it is made for
                pass
        return None

    def _activation(self, part: Part) -> "Optional[Callable[[Part], str]]":
        torch, F = core.hooks.torch, core.hooks.torch.nn.functional
        shape = [1] * (_rank(part.leaf) - 1) + [-1]
        x = torch.cat([torch.linspace(-12, 12, 4801, dtype=torch.float64), torch.linspace(-60, 60, 241, dtype=torch.float64)]).view(shape)
        given = part.given(x, [])
        for name, words, function in (
            ("GELU (tanh)", {"approximate": "tanh"}, F.gelu), ("GELU", {}, F.gelu), ("SiLU", {}, F.silu),
        ):  # fmt: skip
            expected = function(x, **words)
            if given.shape == x.shape and bool(((given - expected).abs() <= ACTIVATION_BY * expected.abs().clamp(min=1)).all()):
                return lambda part: self._put_activation(part, name, words, function)
        return None

    def _norm(self, part: Part) -> "Optional[Callable[[Part], str]]":
        torch, F = core.hooks.torch, core.hooks.torch.nn.functional
        sizes = _trailing(part)
        if not sizes or any(graphs.shape(weight) != sizes for weight in part.weights):
            return None
        generator = torch.Generator().manual_seed(1)
        draw = lambda *sizes: torch.randn(*sizes, generator=generator, dtype=torch.float64)  # noqa: E731
        x = draw(ROWS, *sizes)
        for row, (by, more) in enumerate(((1, 0), (1, 3), (1e-3, 0), (1e-2, 0), (10, -5), (1, 0), (1e-4, 0), (0, 1))):
            x[row] = x[row] * by + more
        x = x.view(*[1] * (_rank(part.leaf) - 1 - len(sizes)), ROWS, *sizes)
        weights = [draw(*sizes) + 0.5 for _ in part.weights]
        given = part.given(x, weights)
        dims = tuple(range(-len(sizes), 0))
        for epsilon in _epsilons(part):
            bare = {
                "LayerNorm": F.layer_norm(x, sizes, eps=epsilon),
                "RMSNorm": x * (x.square().mean(dims, keepdim=True) + epsilon).rsqrt(),
            }
            for name, normal in bare.items():
                for scale, more, shift in _roles(len(weights)):
                    expected = normal if scale is None else normal * (weights[scale] + more)
                    expected = expected if shift is None else expected + weights[shift]
                    if given.shape == x.shape and torch.allclose(given, expected, rtol=NORM_BY, atol=NORM_BY):
                        if name == "RMSNorm" and not hasattr(torch.ops.aten, "_fused_rms_norm"):
                            return None  # this PyTorch has no kernel of it
                        roles = scale, more, shift
                        return lambda part: self._put_norm(part, name, roles, epsilon)
        return None

    # ---- what takes their place ----

    def _put_activation(self, part: Part, name: str, words: dict, function: Any) -> str:
        """"": its types are not those of one."""
        torch = core.hooks.torch
        type_of, given = graphs.dtype(part.leaf), graphs.dtype(part.root)
        cast = type_of != given
        if cast and not (type_of in (torch.float16, torch.bfloat16) and given == torch.float32):
            return ""
        if cast and all(graphs.kind(user) in PRODUCTS and self._is_halved(user, type_of) for user in part.root.users):
            cast = False  # products round it to just that
        with self.graph.inserting_before(part.root):
            x = self.graph.call_method("to", (part.leaf, given)) if cast else part.leaf
            result = self.graph.call_function(function, (x,), words)
        self._take_place(part, result)
        return name

    def _is_halved(self, user: Any, type_of: Any) -> bool:
        """A product that autocast makes in this type, from outside of the graph."""
        result = graphs.example(user)
        on = result is not None and calls.is_autocast(result.device.type)
        return on and result.dtype == type_of and self.segments[user] == 0

    def _put_norm(self, part: Part, name: str, roles: "Tuple[Optional[int], int, Optional[int]]", epsilon: float) -> str:
        torch, F = core.hooks.torch, core.hooks.torch.nn.functional
        type_of, given = graphs.dtype(part.leaf), graphs.dtype(part.root)
        if type_of != given and given != torch.float32 or any(graphs.dtype(weight) != given for weight in part.weights):
            return ""
        scale, more, shift = roles
        sizes = list(_trailing(part) or ())
        with self.graph.inserting_before(part.root):
            x = self.graph.call_method("to", (part.leaf, given)) if type_of != given else part.leaf
            weight = None if scale is None else part.weights[scale]
            if more:
                weight = self.graph.call_method("add", (weight, more))
            bias = None if shift is None else part.weights[shift]
            if name == "LayerNorm":
                result = self.graph.call_function(F.layer_norm, (x, sizes, weight, bias, epsilon))
            else:
                result = self.graph.call_function(F.rms_norm, (x, sizes, weight, epsilon))
                if bias is not None:
                    result = self.graph.call_method("add", (result, bias))
            result = self.graph.call_method("to", (result, given))  # autocast gives single precision
        self._take_place(part, result)
        return name

    def _take_place(self, part: Part, result: Any) -> None:
        result.meta = dict(part.root.meta)
        part.root.replace_all_uses_with(result)
        self.order[result] = self.order[part.root]
        self.segments[result] = self.segments[part.root]


def _reads(node: Any) -> "List[Any]":
    """Nodes, each as often as it is used."""
    found: "List[Any]" = []
    core.hooks.torch.fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def _is_real(node: Any) -> bool:
    value = graphs.example(node)
    return value is not None and value.is_floating_point() and value.dim() >= 2


def _rank(node: Any) -> int:
    value = graphs.example(node)
    return value.dim() if value is not None else -1


def _trailing(part: Part) -> "Optional[tuple]":
    """The sizes of the last dimensions, over which all its sums go; None: there are others."""
    sizes = [size if type(size) is int else None for size in graphs.example(part.leaf).shape]
    found = set()
    for node in part.nodes:
        if graphs.kind(node) in OVER_ROWS:
            value = graphs.example(node)
            before = graphs.example(node.args[0])
            if value is None or before is None or value.dim() != len(sizes) or before.dim() != len(sizes):
                return None
            dims = graphs.argument(node, 1, "dim", node.kwargs.get("axis"))
            dims = [dims] if isinstance(dims, int) else dims
            if not isinstance(dims, (list, tuple)) or not all(isinstance(dim, int) for dim in dims):
                return None
            found.add(tuple(sorted(dim % len(sizes) for dim in dims)))
    if len(found) > 1:
        return None
    dims = next(iter(found), ())
    tail = tuple(sizes[len(sizes) - len(dims) :])
    if dims != tuple(range(len(sizes) - len(dims), len(sizes))) or None in tail or len(dims) >= len(sizes):
        return None
    return tail


def _epsilons(part: Part) -> "List[float]":
    """Small numbers in it."""
    found = [value for value in part.numbers.values()]
    for node in part.nodes:
        core.hooks.torch.fx.node.map_aggregate((node.args, node.kwargs), found.append)
    return sorted({float(value) for value in found if isinstance(value, (int, float)) and 0 < value < EPSILON_MAX})


def _roles(count: int) -> "List[Tuple[Optional[int], int, Optional[int]]]":
    """Which weight scales (and what is added to it), and which is added."""
    if count == 0:
        return [(None, 0, None)]
    if count == 1:
        return [(0, 0, None), (0, 1, None), (None, 0, 0)]
    return [(0, 0, 1), (1, 0, 0), (0, 1, 1), (1, 1, 0)]
