"""The graph of a module, as torch.compile hands it to a backend: what each node does, whether it writes, what it gives in every call."""

import copy
import operator
import weakref
from typing import Any, Callable, Dict, List, Optional, Set

from . import core

READ = (
    "abs add bmm contiguous div einsum eq erf exp expand expand_as eye full full_like ge getitem gt le linear logical_and logical_not "
    "logical_or lt masked_fill matmul mean mul ne neg ones ones_like permute pow arange reciprocal reshape rsqrt sigmoid sqrt square "
    "squeeze std sub sum swapaxes t tanh tensor transpose tril triu unsqueeze var view where zeros zeros_like softmax dropout clone "
    "movedim flatten swapdims"
).split()
ALIASES = {
    "truediv": "div", "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg", "inv": "invert",
    "bitwise_not": "invert", "logical_not": "invert", "itruediv": "div_", "imul": "mul_", "iadd": "add_", "isub": "sub_", "bitwise_and": "and_",
    "logical_and": "and_", "iand": "and__", "bitwise_or": "or_", "logical_or": "or_", "ior": "or__", "special_erf": "erf", "and": "and_", "or": "or_",
    "swapdims": "transpose", "swapaxes": "transpose",
}  # fmt: skip
OPERATORS = "add sub mul truediv pow neg matmul getitem eq ne lt le gt ge and_ or_ invert inv iadd isub imul itruediv iand ior".split()
CASTS = ("to", "float", "half", "bfloat16", "type_as", "type")
# what gives the same in every call, of what does
PURE = frozenset(
    "full ones zeros arange eye tensor ones_like zeros_like full_like tril triu bool int long getitem unsqueeze squeeze view reshape "
    "expand expand_as transpose permute t contiguous clone eq ne lt le gt ge invert and_ or_ add sub mul div neg pow sqrt rsqrt "
    "masked_fill where".split()
) | frozenset(CASTS)  # fmt: skip
FRESH = frozenset(
    "matmul bmm einsum mul div add sub masked_fill where full ones zeros ones_like zeros_like full_like tril triu clone".split()
)  # whose memory is nobody else's
SAFE_IN_PLACE = {"masked_fill_", "div_", "mul_", "add_", "sub_", "tril_", "triu_"}
MODES = ("_set_grad_enabled", "_enter_autocast", "_exit_autocast", "_enter_inference_mode", "_exit_inference_mode")
CONSTANT_MAX = 1 << 25  # elements

_names: "Dict[Any, str]" = {}


def _functions() -> "Dict[Any, str]":
    """The name of each function that is read, by itself: another library's may have the same name."""
    if not _names:
        torch = core.hooks.torch
        for name in OPERATORS:
            _names[getattr(operator, name)] = ALIASES.get(name, name)
        for place in (torch, torch.nn.functional, torch._C._nn, torch._C._special):
            for name in (*READ, *ALIASES):
                function = getattr(place, name, None)
                if callable(function):
                    _names.setdefault(function, ALIASES.get(name, name))
    return _names


def kind(node: Any) -> str:
    """What it does, "" of what is not read."""
    if node.op == "call_method":
        name = node.target[2:-2] if node.target.startswith("__") else node.target
        return ALIASES.get(name, name)
    if node.op == "call_function":
        try:
            return _functions().get(node.target, "")
        except TypeError:  # not hashable
            return ""
    return ""


def attribute_of(node: Any) -> Any:
    """Of a get_attr."""
    part = node.graph.owning_module
    for name in node.target.split("."):
        part = getattr(part, name, None)
    return part


def argument(node: Any, place: int, name: str, default: Any = None) -> Any:
    """One of a call, by its place (that of a method counts its tensor) or its name."""
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def example(node: Any) -> Any:
    """A tensor without values, of its shape and type; None: it is no plain tensor."""
    torch = core.hooks.torch
    value = node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None
    if type(value) in (torch.Tensor, torch.nn.Parameter) or type(value).__name__ == "FakeTensor":
        return value
    return None


def shape(node: Any) -> "Optional[tuple]":
    """None: of no tensor, or one that differs from call to call."""
    value = example(node)
    sizes = tuple(value.shape) if value is not None else None
    return sizes if sizes is not None and all(type(size) is int for size in sizes) else None


def dtype(node: Any) -> Any:
    value = example(node)
    return value.dtype if value is not None else None


def is_node(value: Any) -> bool:
    return isinstance(value, core.hooks.torch.fx.Node)


def is_cast_of_nothing(node: Any) -> bool:
    """A cast to the type and device that its tensor has already."""
    if kind(node) not in CASTS or not is_node(node.args[0]):
        return False
    before, after = example(node.args[0]), example(node)
    return before is not None and after is not None and before.dtype == after.dtype and before.device == after.device


def writes(node: Any) -> bool:
    """Whether it may write a tensor that was there."""
    if node.op == "call_module":  # of what PyTorch does not trace through
        return True
    if node.op not in ("call_method", "call_function") or kind(node) in ("and_", "or_"):
        return False
    if node.op == "call_function" and node.target in (operator.setitem, operator.delitem):
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is not None:
        return bool(schema.is_mutable)
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if kind(node).endswith("_") or (name.endswith("_") and not name.endswith("__")):
        return True
    code = getattr(node.target, "__code__", None)
    words = code.co_varnames[: code.co_argcount] if code is not None else ()
    place = words.index("inplace") if "inplace" in words else 99
    return node.kwargs.get("out") is not None or bool(argument(node, place, "inplace", False))


def copied(graph: Any) -> Any:
    """A graph that may take its place: PyTorch's own copy leaves out what torch.compile has written at the nodes (_dynamo_source), without
    which it takes no graph."""
    made = copy.deepcopy(graph)
    for node, other in zip(graph.nodes, made.nodes):
        for name, value in vars(node).items():
            if name not in vars(other):
                setattr(other, name, value)
    return made


def segments(graph: Any) -> "Dict[Any, int]":
    """Nodes between which autocast or the making of gradients is switched have other numbers."""
    found, number = {}, 0
    for node in graph.nodes:
        number += node.op == "call_function" and getattr(node.target, "__name__", "") in MODES
        found[node] = number
    return found


def without_writes(graph: Any) -> None:
    """Writes into tensors that nobody else has seen become operations that give a new one, so that the graph says what is computed."""
    order = {node: place for place, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        name = kind(node)
        if name not in SAFE_IN_PLACE or not node.args or not is_node(node.args[0]):
            continue
        written = node.args[0]
        others = [user for user in written.users if user is not node]
        if kind(written) not in FRESH or any(order[user] < order[node] for user in others):
            continue
        if any(is_node(other) and example(other) is None for other in node.args[1:]) or node.kwargs:
            continue
        tensors = [other for other in node.args[1:] if is_node(other)]
        if name != "masked_fill_" and any(dtype(other) != dtype(written) for other in tensors):
            continue  # the result would have another type
        if dtype(written) is None or dtype(node) != dtype(written):
            continue
        with graph.inserting_before(node):
            made = graph.call_method(name[:-1], node.args)
        made.meta = dict(node.meta)
        order[made] = order[node]
        written.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)
        node.replace_all_uses_with(made)
        graph.erase_node(node)


class Watched:
    """A tensor of the module that was looked at: a mask. holds: it is still the one that the graph was made for, and nobody wrote it."""

    def __init__(self, place: "Optional[int]", tensor: Any) -> None:
        self.place, self.ref, self.version = place, weakref.ref(tensor), tensor._version

    def holds(self, inputs: "tuple") -> bool:
        tensor = self.ref()
        return tensor is not None and (self.place is None or inputs[self.place] is tensor) and tensor._version == self.version


class Constants:
    """What nodes give that is the same in every call: made of numbers, or of tensors that the module keeps (a mask)."""

    def __init__(self, owner: Any, inputs: "tuple", module: Any) -> None:
        torch = core.hooks.torch
        self.owner, self.inputs = owner, inputs
        self.places = {node: place for place, node in enumerate(node for node in owner.graph.nodes if node.op == "placeholder")}
        # DistributedDataParallel writes the first rank's buffers into all before each call
        sent = getattr(module, "broadcast_buffers", False)
        self.kept: "Set[int]" = set() if sent else {id(buffer) for buffer in module.buffers()}
        for part in module.modules():
            self.kept.update(id(value) for value in part.__dict__.values() if type(value) is torch.Tensor)
        self.written = self._written()
        self.values: "Dict[Any, Any]" = {}
        self.looked: "Dict[Any, List[Watched]]" = {}  # at what, for a node's value

    def _written(self) -> "Set[Any]":
        """Inputs that the graph itself may write."""
        found: "Set[Any]" = set()
        for node in self.owner.graph.nodes:
            if writes(node):
                ahead = [argument for argument in node.all_input_nodes[:1]]
                while ahead:
                    last = ahead.pop()
                    if last not in found:
                        found.add(last)
                        ahead += last.all_input_nodes
        return found

    def of(self, node: Any, watched: "List[Watched]") -> Any:
        """A tensor or a number; None: it may differ. watched: what has to hold for it."""
        if not is_node(node):
            return node if isinstance(node, (int, float, bool)) else None
        if node not in self.values:
            self.looked[node] = []
            self.values[node] = self._made(node, self.looked[node])
        watched.extend(self.looked[node])
        return self.values[node]

    def _made(self, node: Any, watched: "List[Watched]") -> Any:
        torch = core.hooks.torch
        if node.op in ("placeholder", "get_attr"):
            return self._leaf(node, watched)
        if node.op not in ("call_function", "call_method") or kind(node) not in PURE or node in self.written:
            return None
        size = shape(node)
        if size is None or _count(size) > CONSTANT_MAX:
            return None
        values = {}
        for other in node.all_input_nodes:
            values[other] = self.of(other, watched)
            if values[other] is None:
                return None
        with torch.no_grad():
            return call(node, values.__getitem__)

    def _leaf(self, node: Any, watched: "List[Watched]") -> Any:
        torch = core.hooks.torch
        place = self.places.get(node)
        if place is not None:
            tensor = self.inputs[place] if place < len(self.inputs) else None
        else:
            tensor = attribute_of(node)
        if type(tensor) is not torch.Tensor or tensor.requires_grad or node in self.written or tensor.is_inference():
            return None
        if id(tensor) not in self.kept and place is not None:
            return None
        watched.append(Watched(place, tensor))
        return tensor

    def forget(self) -> None:
        """Masks take memory, often the device's."""
        self.values.clear()

    def number(self, node: Any) -> "Optional[float]":
        """That of a constant of one value, which does not hang on what the module keeps."""
        watched: "List[Watched]" = []
        value = self.of(node, watched)
        if isinstance(value, core.hooks.torch.Tensor):
            value = value.item() if value.numel() == 1 and not watched else None
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _count(size: "tuple") -> int:
    count = 1
    for one in size:
        count *= one
    return count


def call(node: Any, value: "Callable[[Any], Any]") -> Any:
    """What a node gives for what value(node) says of its inputs."""
    torch = core.hooks.torch
    args = torch.fx.node.map_arg(node.args, value)
    kwargs = torch.fx.node.map_arg(node.kwargs, value)
    if node.op == "call_method":
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    return node.target(*args, **kwargs)


def drop_unused(graph: Any) -> None:
    """What only made what was replaced: a mask."""
    for node in reversed(list(graph.nodes)):
        if not node.users and node.op in ("call_function", "call_method") and kind(node) in PURE:
            graph.erase_node(node)
