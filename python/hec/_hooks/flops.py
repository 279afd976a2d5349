"""How much arithmetic a step of the model needs: its matrix products, convolutions and attention, from the shapes that PyTorch's
functions are given in a few calls of the outermost modules.

Such a call runs under a TorchFunctionMode, which sees functions before they are dispatched and calls them as they are: results,
kernels and memory stay the same. It is not used where it would change anything: beside torch.compile (its guards look at modes),
torch.profiler, another mode, tracing, and where modules would leave a fast path for it. What functions of other libraries compute is
not seen, so the sum is a lower bound."""

import math
from typing import Any, Callable, Dict, Optional

from . import core

NAME = "FLOPs"
FIRST = 4  # the call of a module that is counted first: earlier ones set it up
OFTEN = 256  # calls between two that are counted, where they differ
ALIKE = 0.01  # calls that differ by no more are the same
TALLIES_MAX = 64

why = ""  # nothing is counted any more, and why
steps = {False: 0, True: 0}  # of calls of modules, of an optimizer
_tallies: "list[Tally]" = []
_pending: "list[Tally]" = []  # called, and no backward pass came since


class Count:
    """Sums of one call by their names, forward and in the backward pass that may follow."""

    def __init__(self) -> None:
        self.forward: Dict[str, float] = {}
        self.backward: Dict[str, float] = {}

    def add(self, name: str, amount: float, times_back: int) -> None:
        self.forward[name] = self.forward.get(name, 0.0) + amount
        self.backward[name] = self.backward.get(name, 0.0) + times_back * amount

    def take(self, other: "Count") -> None:
        for into, new in ((self.forward, other.forward), (self.backward, other.backward)):
            for name, amount in new.items():
                into[name] = into.get(name, 0.0) + amount


class Seen(Count):
    """FLOPs by precision. Beside them, of products alone: those in rows that fast loads cannot fetch, by precision; and `weights`, the
    elements of parameters in fp32 that are multiplied, which autocast has to convert each time."""

    def __init__(self) -> None:
        super().__init__()
        self.products = Count()


class Tally:
    """Of one outermost module, with gradients or without."""

    __slots__ = ("calls", "next", "counted", "sum", "squares", "least", "most", "pending", "backs", "listed")

    def __init__(self) -> None:
        self.calls = self.counted = self.pending = self.backs = 0
        self.next = FIRST
        self.sum = Seen()
        self.squares = 0.0
        self.least, self.most = math.inf, 0.0
        self.listed = False

    def take(self, count: Seen) -> None:
        total = sum(count.forward.values()) + sum(count.backward.values())
        self.counted += 1
        self.squares += total * total
        self.least, self.most = min(self.least, total), max(self.most, total)
        self.sum.take(count)
        self.sum.products.take(count.products)
        if not self.listed and len(_tallies) < TALLIES_MAX:
            self.listed = True
            _tallies.append(self)


# ---- what is seen of a function: FLOPs and operands, each of which has a product more in the backward pass if it needs a gradient; once
# more so, where it computes several ----


def _elements(shape: Any) -> float:
    return float(math.prod(shape))


def _product(a: Any, b: Any, result: Any) -> tuple:
    """Of a matrix product, whose inner dimension is the last one of the first."""
    return 2.0 * _elements(result.shape) * a.shape[-1], (a, b)


def _convolution(args: tuple, kwargs: dict, result: Any) -> tuple:
    x, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    return 2.0 * _elements(result.shape) * _elements(weight.shape[1:]), (x, weight)


def _transposed(args: tuple, kwargs: dict, result: Any) -> tuple:
    x, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    return 2.0 * _elements(x.shape) * _elements(weight.shape[1:]), (x, weight)


def _linear(args: tuple, kwargs: dict, result: Any) -> tuple:
    return _product(args[0], args[1] if len(args) > 1 else kwargs["weight"], result)


def _added(args: tuple, kwargs: dict, result: Any) -> tuple:
    return _product(args[1], args[2], result)


def _attention(args: tuple, kwargs: dict, result: Any) -> tuple:
    """Query times key, and that times value; a causal mask does not halve it, as usual for MFU."""
    query, key, value = (list(args) + [kwargs.get(name) for name in ("query", "key", "value")[len(args) :]])[:3]
    scores = _elements(query.shape[:-1]) * key.shape[-2]
    return 2.0 * scores * (query.shape[-1] + value.shape[-1]), (query, key)


def _multi_head(args: tuple, kwargs: dict, result: Any) -> tuple:
    """Projections of what it is given, which may need no gradient; attention and the projection of its result, which do."""
    query, key, value, wide, weight, out = args[0], args[1], args[2], args[3], args[5], args[11]
    batch = query.shape[1] if query.dim() == 3 else 1
    given = sum(_elements(each.shape) for each in (query, key, value)) * wide
    rest = _elements(query.shape) * wide + 2.0 * batch * query.shape[0] * key.shape[0] * wide
    return 2.0 * given, (query, out if weight is None else weight), 2.0 * rest, (out, out)


def _einsum(args: tuple, kwargs: dict, result: Any) -> tuple:
    operands = list(args[1]) if isinstance(args[1], (list, tuple)) else list(args[1:])
    letters = [part.strip() for part in args[0].replace(" ", "").partition("->")[0].split(",")]
    if len(operands) != 2 or any("." in part for part in letters):
        raise LookupError
    sizes = {letter: n for part, each in zip(letters, operands) for letter, n in zip(part, each.shape)}
    out = args[0].partition("->")[2]
    if "->" in args[0] and set(out.strip()) >= set(sizes):
        raise LookupError  # nothing is summed
    return 2.0 * _elements(sizes.values()), tuple(operands)


def _recurrent(args: tuple, kwargs: dict, result: Any) -> tuple:
    """Each weight matrix once for each element of the sequence."""
    packed = not isinstance(args[2], (list, tuple))
    weights = args[3] if packed else args[2]
    positions = args[0].shape[0] if packed else args[0].shape[0] * args[0].shape[1]
    return 2.0 * positions * sum(_elements(w.shape) for w in weights if w.dim() == 2), (args[0], weights[0])


_CONVOLUTIONS = {
    **{"conv%dd" % n: _convolution for n in (1, 2, 3)},
    **{"conv_transpose%dd" % n: _transposed for n in (1, 2, 3)},
}
_FORMULAS: "Dict[str, Callable[[tuple, dict, Any], tuple]]" = {
    **_CONVOLUTIONS,
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "__matmul__"), lambda args, kwargs, result: _product(args[0], args[1], result)),
    "__rmatmul__": lambda args, kwargs, result: _product(args[1], args[0], result),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added),
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _multi_head,
    "einsum": _einsum,
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _recurrent),
}


def _autocast(device: str) -> Any:
    """The type that products are computed in on it, or None."""
    torch = core.torch
    if hasattr(torch, "get_autocast_dtype"):
        return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    if device == "cpu":
        return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None
    return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _precision(name: str, operand: Any) -> str:
    """Whose peak counts, as in src/model/part.h."""
    torch = core.torch
    dtype, device = operand.dtype, operand.device.type
    cast = _autocast(device) if dtype != torch.float64 else None
    if cast is not None:
        dtype = cast
    if dtype == torch.float32:
        C = torch._C
        try:
            tf32 = C._get_cudnn_allow_tf32() if name in _CONVOLUTIONS else C._get_cublas_allow_tf32()
        except RuntimeError:  # PyTorch 2.9 has two interfaces for it, and they differ
            raise LookupError
        return "tf32" if tf32 and device == "cuda" else "fp32"
    known = {torch.float16: "fp16", torch.bfloat16: "fp16", torch.float64: "fp64_tensor"}
    return known[dtype]


_MATRICES = {"linear", "matmul", "mm", "bmm", "__matmul__", "__rmatmul__", "addmm", "baddbmm"}
ALIGNED = 4  # elements: rows of a multiple of it are fetched by fast loads in any precision


def _products(count: Seen, precision: str, flops: float, operands: tuple, result: Any, times_back: int) -> None:
    """What is seen of a matrix product beside its FLOPs. A backward pass reads the same rows."""
    if any(each.dim() >= 2 and each.shape[-1] % ALIGNED for each in (*operands, result)):
        count.products.add(precision, flops, times_back)
    for each in operands:
        if isinstance(each, core.torch.nn.Parameter) and each.dtype == core.torch.float32:
            count.products.add("weights", _elements(each.shape), 1 if times_back and each.requires_grad else 0)


def _note(count: Seen, graded: bool, function: Any, args: tuple, kwargs: dict, result: Any) -> None:
    global why
    name = getattr(function, "__name__", "")
    formula = _FORMULAS.get(name)
    if formula is None:
        return
    try:
        found = formula(args, kwargs, result)
        precision = _precision(name, found[1][0])
    except LookupError:  # of a kind that is not known
        return
    for flops, operands in zip(found[::2], found[1::2]):
        back = sum(1 for each in operands if each.requires_grad)
        if graded and back and not core.torch.is_grad_enabled():
            why = "a part of the forward pass is computed without gradients, perhaps to be computed again"
        count.add(precision, flops, back if graded else 0)
        if name in _MATRICES:
            _products(count, precision, flops, operands, result, back if graded else 0)


def _mode_of(count: Seen, graded: bool) -> Any:
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: Optional[dict] = None) -> Any:
            kwargs = kwargs or {}
            result = function(*args, **kwargs)
            try:
                _note(count, graded, function, args, kwargs, result)
            except Exception as error:
                core.failed(NAME, error)
            return result

    return Mode()


# ---- which calls are counted ----


def _may(module: Any, graded: bool) -> bool:
    """Whether a mode changes nothing just now."""
    torch = core.torch
    if why or NAME in core.off or core.profiling or core.in_mode() or torch._C._get_tracing_state() is not None:
        return False
    nn = torch.nn
    return graded or not any(isinstance(part, (nn.MultiheadAttention, nn.TransformerEncoderLayer)) for part in module.modules())


def due(tally: Tally, module: Any, graded: bool) -> bool:
    """Before the call of an outermost module that is the tally's next: whether it is to be counted."""
    varies = tally.counted and tally.most - tally.least > ALIKE * tally.most
    tally.next += min(tally.next, OFTEN) if varies else tally.next
    try:
        return core.installed and not core.dormant and _may(module, graded)
    except Exception as error:
        core.failed(NAME, error)
        return False


def count(tally: Tally, graded: bool, call: "Callable[[], Any]") -> Any:
    found = Seen()
    with _mode_of(found, graded):
        result = call()
    try:
        tally.take(found)
        report()
    except Exception as error:
        core.failed(NAME, error)
    return result


def called(tally: Tally) -> None:
    """With gradients: a backward pass may follow."""
    if tally.pending == 0:
        _pending.append(tally)
    tally.pending += 1


def passed_back() -> None:
    for tally in _pending:
        tally.backs += tally.pending
        tally.pending = 0
    _pending.clear()


def stepped(optimizer: bool) -> None:
    steps[optimizer] += 1
    for tally in _pending:  # nothing went back through them
        tally.pending = 0
    _pending.clear()


def compiled() -> None:
    """torch.compile is in use: a mode would have it compile again."""
    global why
    why = "torch.compile: what it compiles is not counted"


# ---- what is reported ----


def report() -> None:
    """FLOPs of a step by precision, how many calls were counted, and the standard error of a call, of its mean."""
    done = steps[True] or steps[False]
    if why:
        core.library.fact("flops", "")
        core.library.fact("flops_why", why)
    if why or not done or not _tallies:
        return
    counted, error = 0, 0.0
    for tally in _tallies:
        mean = (sum(tally.sum.forward.values()) + sum(tally.sum.backward.values())) / tally.counted
        variance = max(0.0, tally.squares / tally.counted - mean * mean)
        if mean > 0:
            error = max(error, math.sqrt(variance / tally.counted) / mean)
        counted += tally.counted
    core.library.fact("flops", "%d %.4f %s" % (counted, error, _of_a_step(lambda seen: seen, done)))
    core.library.fact("products", _of_a_step(lambda seen: seen.products, done))


def _of_a_step(part: "Callable[[Seen], Count]", steps: int) -> str:
    total: Dict[str, float] = {}
    for tally in _tallies:
        of = part(tally.sum)
        for sums, times in ((of.forward, tally.calls), (of.backward, tally.backs)):
            for name, amount in sums.items():
                total[name] = total.get(name, 0.0) + amount / tally.counted * times / steps
    return " ".join("%s=%.6g" % each for each in sorted(total.items()) if each[1] > 0)


def forget() -> None:
    """Of the parent: a forked child begins anew."""
    _tallies.clear()
    _pending.clear()
    steps[False] = steps[True] = 0
