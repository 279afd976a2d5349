"""A pass of the program's module under a set of levers, beside the same pass without it, at a boundary (live.py): the same inputs, random
numbers and buffers, and the same gradient of what it gives. What comes out is compared, by the class of the levers and by how far two
passes without them differ; then all is put back. So a set that computes something else never computes for the program.

Nothing is judged, which is said, where the program's module cannot be called twice: it keeps what cannot be put back, is given what is no
tensor, draws numbers that nobody can set, or its gradients have hooks; or where a lever draws others by its class."""

import collections
import random
import sys
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from . import calls, core, tensors

# As enum hec_lever_risk has them (act/levers.h).
EXACT, LAST_BITS, DRAWS, NUMERICS = range(4)

# Relative differences (Euclidean) that are allowed of what a module gives, of all its gradients, and of the gradient of one parameter
# that is no small part of them. Measured on the CPU, a convolutional net, a transformer and twelve linear layers: torch.compile in fp32 is off
# by 2e-7 to 2e-6, bf16 autocast by 0.3 to 2.6 % in outputs, 0.4 to 4.1 in gradients, 0.8 to 4.6 in the worst one. Gradients of some models
# are worse conditioned: of ResNet-18 on an H200 those of honest autocast were off by 29 % (2026-11-28-h200-live), of a small ResNet on the
# CPU by 32. So fewer bits may also be off by twice what the same pass is off by whose modules give numbers, and gradients, of so many bits:
# 28 % of that small ResNet, 0.83 to 0.92 times what autocast is off by in three states of it.
LIMITS = {EXACT: (0.0, 0.0, 0.0), LAST_BITS: (1e-3, 2e-3, 0.01), NUMERICS: (0.1, 0.25, 0.5)}
LIMITS_COARSE = (0.05, 0.1, 0.25)  # last bits, where the program itself computes with fewer
ROUNDED = 2.0  # times what a pass of rounded numbers is off by
HALF_BITS = 9  # and fewer: of types of two bytes
REPEATS = 4.0  # times what two passes without levers differ by
PART_LEAST = 0.02  # of the norm of all gradients; smaller ones are rounding, as of a bias before a normalisation
OUTPUTS, GRADIENTS = "outputs", "gradients"


class Unfit(Exception):
    """Why nothing can be compared here."""


class Wrong(Exception):
    """What is off, and by how much."""

    def __init__(self, what: str, difference: float) -> None:
        super().__init__("its %s differ by %.3g of themselves" % (what, difference))
        self.what, self.difference = what, difference


class Passed:
    """What a pass gave."""

    def __init__(self, outputs: "List[Any]", gradients: "List[Any]") -> None:
        self.outputs, self.gradients = outputs, gradients


class Differences:
    """Of one pass from another: of outputs, of all gradients, of the worst gradient of a parameter."""

    def __init__(self, one: Passed, other: Passed) -> None:
        if [value.shape for value in one.outputs] != [value.shape for value in other.outputs]:
            raise Wrong(OUTPUTS, float("inf"))
        self.outputs = _off(_norms(one.outputs), _norms(_less(one.outputs, other.outputs)))
        norms, off = _norms(one.gradients), _norms(_less(one.gradients, other.gradients))
        self.gradients = _off(norms, off)
        least = PART_LEAST * sum(norm * norm for norm in norms) ** 0.5
        self.part = max((_off([norm], [o]) for norm, o in zip(norms, off) if norm >= least and norm > 0), default=0.0)


class Beside:
    """The program's call at a boundary, made again and again."""

    def __init__(self, module: Any, call: "calls.Call", args: tuple, kwargs: dict) -> None:
        self.module, self.call, self.args, self.kwargs = module, call, args, kwargs
        self.torch = core.hooks.torch
        self.parameters = [weight for weight in module.parameters() if weight.requires_grad]
        self.draws = False
        self.still = False
        self.dropouts: "List[Any]" = []  # of a pass that is to draw nothing
        _check(module, self.parameters, args, kwargs)
        self.state = Kept(module)

    def measure(self, bits: int = 0) -> None:
        """Without the levers, twice: what is right, and how far from itself the module is anyway. bits of the levers' mantissas, where they
        have fewer than the program: then also how far off it is by that. Dropout may leave out other elements in half precision, as a
        thread of a GPU draws for more of them (a GPT's gradients were off by 51 %; two draws of a tenth differ by 47): there it is off."""
        if 0 < bits <= HALF_BITS:
            kind = self.torch.nn.modules.dropout._DropoutNd
            self.dropouts = [part for part in self.module.modules() if isinstance(part, kind) and part.training]
            self.still = True
        self._repeat()
        self.rounded = self._rounded(bits) if bits else None

    def with_dropout(self) -> None:
        """From now on the right result is that of the levers that are on now, with dropout. Where only a compiler is added, dropout draws the
        same on both sides; without dropout it would compile other code, which the program never runs."""
        self.dropouts, self.still = [], False
        self._repeat()

    def without_dropout(self, dropouts: "List[Any]") -> None:
        """Again as `measure` left it, with these dropouts off."""
        self.dropouts, self.still = dropouts, True
        self._repeat()

    def _repeat(self) -> None:
        """What is right, and how far from itself the module is anyway."""
        self.draws = False
        self.base = self._pass()
        self._check_room()
        if not all(bool(self.torch.isfinite(value).all()) for value in self.base.outputs):
            raise Unfit("what the module gives is not finite")
        most = LIMITS[NUMERICS]
        try:
            self.own = Differences(self.base, self._pass())
        except Wrong as wrong:  # of another shape
            raise Unfit("the module does not repeat itself") from wrong
        if not (self.own.outputs <= most[0] and self.own.gradients <= most[1]):
            raise Unfit("the module does not repeat itself")

    def _rounded(self, bits: int) -> "Optional[Differences]":
        """None: its modules cannot be called so, and the limits alone hold. What the program compiled would be compiled anew."""
        hooks: "List[Any]" = []
        if calls.is_compiled(self.module):
            return None
        try:
            rounds = _rounding(bits)
            for part in self.module.modules():
                if not any(True for _ in part.children()):
                    hooks.append(part.register_forward_hook(rounds))
            return Differences(self.base, self._pass())
        except Exception as error:
            if core.of_a_signal(error):
                raise
            return None
        finally:
            with core.shielded():
                for hook in hooks:
                    hook.remove()

    def judge(self, changes: int, passes: int) -> None:
        """Under the levers, which raises Wrong. changes: the class of the set; passes: so many calls until the levers are what they will be."""
        if self.draws and (changes == DRAWS or self.still):
            raise Unfit("its levers draw other random numbers")
        for _ in range(passes):
            passed = self._pass()
        off = Differences(self.base, passed)
        limits = LIMITS.get(changes, LIMITS[LAST_BITS])
        if changes in (LAST_BITS, DRAWS) and _is_coarse(self.module):
            limits = LIMITS_COARSE
        for what, of, limit in ((OUTPUTS, "outputs", limits[0]), (GRADIENTS, "gradients", limits[1]), (GRADIENTS, "part", limits[2])):
            rounded = getattr(self.rounded, of) if self.rounded and changes == NUMERICS else 0.0
            if not getattr(off, of) <= max(limit, REPEATS * getattr(self.own, of), ROUNDED * rounded):
                raise Wrong(what, getattr(off, of))

    def _pass(self) -> Passed:
        torch, shield = self.torch, core.shielded()
        try:
            args, kwargs = tensors.replaced([self.args, self.kwargs], _copy)
            drawn = self.state.drawn()
            for part in self.dropouts:
                part.training = False  # put back with all that modules keep
            given = self.call(args, kwargs)
            self.draws |= not all(torch.equal(a, b) for a, b in zip(drawn, self.state.drawn()))
            outputs = [value for value in tensors.each(given) if value.is_floating_point()]
            if not outputs:
                raise Unfit("the module gives no numbers")
            gradients: "List[Any]" = []
            roots = [value for value in outputs if value.requires_grad]
            if roots and self.parameters and torch.is_grad_enabled():
                weights = [_weight(value, i) for i, value in enumerate(roots)]
                gradients = list(torch.autograd.grad(roots, self.parameters, weights, allow_unused=True))
            return Passed([value.detach().clone() for value in outputs], gradients)
        finally:
            try:
                shield.__enter__()
            finally:
                self.state.restore()
                shield.__exit__()

    def _check_room(self) -> None:
        """For what another pass gives, and as much again."""
        device, cuda = next(self.module.parameters()).device, self.torch.cuda
        if device.type != "cuda":
            return
        needed = 2 * sum(value.numel() * value.element_size() for value in self.base.outputs + self.base.gradients if value is not None)
        left = cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device)
        if needed > left / 2:
            raise Unfit("there is no memory for it")


class Kept(calls.State):
    """What a call may change, and is put back: also what lies in attributes of the modules, in containers and objects there."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        torch = core.hooks.torch
        self.python = random.getstate()
        numpy = sys.modules.get("numpy")
        self.numpy = (numpy.random, numpy.random.get_state()) if numpy is not None and hasattr(numpy, "random") else None
        self.containers: "Dict[int, Tuple[Any, Any]]" = {}
        values: "Dict[int, calls.Value]" = {}
        registered = {id(tensor) for tensor in [*module.parameters(), *module.buffers()]}
        for _, names in self.attributes:
            for value in names.values():
                found = _container(value)
                if found is not None:
                    self.containers[id(found)] = (found, found.copy())
                for tensor in tensors.each(value if found is None else found):
                    if type(tensor) is torch.Tensor and id(tensor) not in registered:
                        values[id(tensor)] = calls.Value(tensor)
        self.buffers += values.values()

    def restore(self) -> None:
        for value, before in self.containers.values():
            if not _alike(value, before):
                value.clear()
                value.extend(before) if isinstance(value, (list, collections.deque)) else value.update(before)
        super().restore()
        random.setstate(self.python)
        if self.numpy is not None:
            self.numpy[0].set_state(self.numpy[1])

    def drawn(self) -> "List[Any]":
        torch = core.hooks.torch
        return [torch.get_rng_state()] + ([torch.cuda.get_rng_state(self.device)] if self.cuda is not None else [])


def _container(value: Any) -> Any:
    """A list, dictionary or set; an object's attributes; None: it keeps nothing."""
    if isinstance(value, (list, dict, set, collections.deque)):
        return value
    of_torch = isinstance(value, (core.hooks.torch.Tensor, core.hooks.torch.nn.Module))
    if of_torch or isinstance(value, (type, types.FunctionType, types.ModuleType)):
        return None
    attributes = getattr(value, "__dict__", None)
    return attributes if type(attributes) is dict else None


def _check(module: Any, parameters: "List[Any]", args: tuple, kwargs: dict) -> None:
    if any(weight._backward_hooks for weight in parameters):
        raise Unfit("its gradients have hooks")
    for value in _leaves([args, kwargs]):
        if not (value is None or isinstance(value, (bool, int, float, str, core.hooks.torch.Tensor, core.hooks.torch.dtype))):
            raise Unfit("it is given a %s" % type(value).__name__)


def _leaves(value: Any) -> "List[Any]":
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _copy(tensor: Any) -> Any:
    """Laid out as it is: a compiler makes other code for another layout."""
    torch, one = core.hooks.torch, tensor.detach()
    if type(tensor) is torch.Tensor and tensor.layout is torch.strided:
        for dim, stride in enumerate(tensor.stride()):
            if stride == 0 and tensor.shape[dim] > 1:
                one = one.narrow(dim, 0, 1)
        made = torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device=one.device).copy_(one)
        made = made.expand(tensor.shape)
    else:
        made = one.clone()
    return made.requires_grad_(tensor.requires_grad)


def _round(value: Any, bits: int) -> Any:
    """The nearest numbers of so many bits of the mantissa, of 23; infinite ones stay."""
    torch, cut = core.hooks.torch, 23 - bits
    numbers = value.contiguous().view(torch.int32)
    return ((numbers + (1 << (cut - 1))) & ~((1 << cut) - 1)).view(torch.float32)


def _rounding(bits: int) -> "Callable[[Any, Any, Any], Any]":
    """A forward hook: what the module gives, and the gradients that come back there, have so many bits."""
    torch = core.hooks.torch

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return _round(value, bits)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return _round(gradients[0], bits)

    def one(value: Any) -> Any:
        return Rounded.apply(value) if value.dtype is torch.float32 else value

    return lambda module, args, given: tensors.replaced(given, one)


def _weight(value: Any, number: int) -> Any:
    """The gradient of an output: drawn, always the same, and not from the program's random numbers."""
    torch = core.hooks.torch
    drawn = torch.Generator(device=value.device)
    drawn.manual_seed(number + 1)
    return torch.randn(value.shape, generator=drawn, device=value.device, dtype=torch.float32).to(value.dtype)


def _norms(values: "Iterable[Any]") -> "List[float]":
    """0 where there is none."""
    return [0.0 if value is None else float(value.float().norm()) for value in values]


def _less(one: "List[Any]", other: "List[Any]") -> "Iterator[Any]":
    return (b if a is None else a if b is None else a.float() - b.float() for a, b in zip(one, other))


def _off(norms: "List[float]", off: "List[float]") -> float:
    size, difference = (sum(norm * norm for norm in norms) ** 0.5 for norms in (norms, off))
    if difference == 0:
        return 0.0
    return difference / size if size > 0 and difference == difference else float("inf")


def _is_coarse(module: Any) -> bool:
    """The program computes with fewer bits than fp32 has, or may."""
    torch = core.hooks.torch
    device = calls.device_of(module)
    autocast = calls.is_autocast(device)
    tf32 = device == "cuda" and (torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)
    return autocast or tf32 or bool(calls.floating(module) - {torch.float32, torch.float64})


def _alike(one: Any, other: Any) -> bool:
    """By identity: to compare tensors gives tensors."""
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        return all(a is b and one[a] is other[b] for a, b in zip(one, other))
    if isinstance(one, set):
        return bool(one == other)
    return all(a is b for a, b in zip(one, other))
