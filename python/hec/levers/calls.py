"""Levers around the calls of outermost modules, in the place that hooks/modules.py has for them."""

import functools
import sys
import weakref
from typing import Any, Callable, List, Optional

from . import core

outermost: Any = sys.modules["_hec_hooks.modules"]
process: Any = sys.modules["_hec_hooks.process"]

Call = Callable[[tuple, dict], Any]
Run = Callable[[Call, tuple, dict], Any]

# What a module raises when a lever is at fault; what a signal's handler raises (TimeoutError) is not among them.
FAULTS = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, Warning)
_chain: "List[Calls]" = []  # those that are in, by their order
watches = 0  # modes of our own that look on (watch.py)


def LATER(call: Call, args: tuple, kwargs: dict) -> Any:
    """From `fit`: the module is not ready (it has no weights yet), ask again."""
    return call(args, kwargs)


class Module:
    """What a lever does with one outermost module."""

    def __init__(self, module: Any, run: "Optional[Run]") -> None:
        self.ref = weakref.ref(module)
        self.run = run
        self.own: "tuple" = ()  # exceptions that it raises without the lever too


class Calls:
    """One lever's. fit(module) is asked once for each outermost module, at its first call; it returns what then runs around each
    call, or None to leave the module alone, having said why. drop(module) undoes what was done to a module."""

    def __init__(self, lever: core.Lever, order: int, fit: "Callable[[Any], Optional[Run]]",
                 drop: "Callable[[Any], None]" = lambda module: None, compiles: bool = False) -> None:  # fmt: skip
        self.lever, self.order, self.fit, self.drop = lever, order, fit, drop
        self.compiles = compiles  # it makes a graph of modules: nobody looks at their operations then
        self.awake = True  # else calls go through it as they are; what it made of modules stays

    def put(self) -> bool:
        """False, and said: this PyTorch has no place for it."""
        if not hasattr(core.hooks.torch.nn.Module, outermost.PLACE):
            self.lever.nothing("PyTorch %s: needs 2.2" % core.hooks.torch.__version__)
            return False
        _chain.append(self)
        _chain.sort(key=lambda calls: calls.order)
        outermost.arounds[:] = [calls.around for calls in _chain]
        _patched.install()
        self.lever.nothing("no call of a module with weights seen")
        return True

    def is_in(self) -> bool:
        return self in _chain

    def take(self) -> None:
        """Out again, with all that it did to modules."""
        if self in _chain:
            _chain.remove(self)
        outermost.arounds[:] = [calls.around for calls in _chain]
        if not _chain:
            _patched.remove()
        for module in self.modules():
            self.forget(module)
            module.__dict__[outermost.PLACE].levers.pop(self, None)

    def modules(self) -> "list[Any]":
        """Those that it has something to do with."""
        found = [root.ref() for root in outermost._roots]
        return [module for module in found if module is not None and self._entry(module) is not None]

    def _entry(self, module: Any) -> "Optional[Module]":
        place = module.__dict__.get(outermost.PLACE)
        entry = place.levers.get(self) if isinstance(place, outermost.RootCall) else None
        return entry if entry is not None and entry.ref() is module else None

    def forget(self, module: Any) -> None:
        """Leave it alone from now on."""
        entry = self._entry(module)
        if entry is not None and entry.run is not None:
            entry.run = None
            self.drop(module)

    def around(self, module: Any, call: Call, args: tuple, kwargs: dict) -> Any:
        if not self.awake:
            return call(args, kwargs)
        entry = self._entry(module)
        if entry is None:
            return self._first(module, call, args, kwargs)
        if entry.run is None or _in_transform():
            return call(args, kwargs)
        return self._guarded(entry, module, call, args, kwargs, None)

    def _first(self, module: Any, call: Call, args: tuple, kwargs: dict) -> Any:
        place = module.__dict__.get(outermost.PLACE)
        if not isinstance(place, outermost.RootCall) or place.ref() is not module:  # a replica of DataParallel, inside its call
            return call(args, kwargs)
        if in_mode() or _in_transform():
            return call(args, kwargs)
        # a graph that is being captured goes on using the memory that the weights have now
        entry = Module(module, None if is_capturing() else self._fit(module))
        if entry.run is LATER:
            return call(args, kwargs)
        place.levers[self] = entry
        if entry.run is None:
            return call(args, kwargs)
        return self._guarded(entry, module, call, args, kwargs, State(module))

    def _fit(self, module: Any) -> "Optional[Run]":
        if process.is_loader_worker():
            return None
        try:
            why = strange(module)
            if why == "":
                return self.fit(module)
            self.lever.nothing(why)
        except Exception as error:
            self.lever.broke(error, lambda: self.drop(module))
        return None

    def _guarded(self, entry: Module, module: Any, call: Call, args: tuple, kwargs: dict, state: "Optional[State]") -> Any:
        """A call that fails with the lever is made without it. Where it fails then too, that is the program's own affair."""
        assert entry.run is not None
        results: "List[Any]" = []
        inside = False

        def counted(args: tuple, kwargs: dict) -> Any:
            nonlocal inside
            inside = True
            results.append(call(args, kwargs))
            inside = False
            return results[-1]

        try:
            return entry.run(counted, args, kwargs)
        except Exception as error:
            if isinstance(error, entry.own) or core.of_a_signal(error) or not (isinstance(error, FAULTS) if inside else _is_ours(error)):
                raise
            fault = error
        if results:  # the lever failed with what the module gave
            self.lever.broke(fault, lambda: self.forget(module))
            return results[-1]
        if state is not None:
            state.restore()
        entry.run = None
        self.drop(module)
        try:
            result = call(args, kwargs)
        except FAULTS as error:
            if type(error) is type(fault):
                entry.own += (type(error),)
                entry.run = self._fit(module)
            raise
        self.lever.broke(fault, lambda: None)
        return result


def _is_ours(error: Exception) -> bool:
    """Also what the compiler says of code that it could not take, whoever's frames it was in: the code has not run then."""
    compilers = ("torch._dynamo.", "torch._inductor.")
    return core.hooks.is_ours(error) or any(kind.__module__.startswith(compilers) for kind in type(error).__mro__)


class Value:
    """Of a tensor, to be put back. One that has it is not written: others may go by that. Its own count of writes does not say it, as kernels
    of normalisation write past that."""

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.value = tensor, tensor.detach().clone()

    def restore(self) -> None:
        if not core.hooks.torch.equal(self.tensor, self.value):
            self.tensor.copy_(self.value)


class State:
    """What a first call that fails may have changed: random numbers, buffers, and attributes of the modules."""

    def __init__(self, module: Any) -> None:
        torch = core.hooks.torch
        self.cpu = torch.get_rng_state()
        self.device = next(module.parameters()).device
        self.cuda = torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None
        with torch.no_grad():
            self.buffers = [Value(buffer) for buffer in module.buffers() if type(buffer) is torch.Tensor]
        self.attributes = [(names, dict(names)) for part in module.modules() for names in (part._buffers, part.__dict__)]

    def restore(self) -> None:
        torch = core.hooks.torch
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda, self.device)
        with torch.no_grad():
            for buffer in self.buffers:
                buffer.restore()
        for names, before in self.attributes:
            for name in [name for name in names if name not in before]:
                del names[name]
            names.update(before)


def is_capturing() -> bool:
    cuda = core.hooks.torch.cuda
    return cuda.is_initialized() and cuda.is_current_stream_capturing()


def in_mode() -> bool:
    """Whether a mode of the program looks on."""
    return core.hooks.in_mode() and core.hooks.torch._C._len_torch_dispatch_stack() > watches


def _in_transform() -> bool:
    """Inside torch.func or torch.jit.trace: what a lever did would become part of what those make."""
    C = core.hooks.torch._C
    functorch = getattr(C, "_functorch", None)
    peek = getattr(functorch, "peek_interpreter_stack", None)
    return C._get_tracing_state() is not None or (peek is not None and peek() is not None)


def is_autocast(device: str) -> bool:
    """Whether the program has it around this call."""
    torch = core.hooks.torch
    if hasattr(torch, "get_autocast_dtype"):  # since PyTorch 2.4, which warns of the others
        return bool(torch.is_autocast_enabled(device))
    return bool(torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled())


def device_of(module: Any) -> str:
    """The type of the device that its first parameter is on."""
    return next(module.parameters()).device.type


def strange(module: Any) -> str:
    """Why no lever touches this module, "" when one may."""
    torch = core.hooks.torch
    if isinstance(module, torch.jit.ScriptModule):
        return "the module is TorchScript"
    device = device_of(module)
    if device != ("cuda" if torch.cuda.is_available() else "cpu"):  # without any GPU the CPU is the device
        return "the module is on the %s" % device
    return ""


def is_sharded(module: Any) -> bool:
    """FSDP: its weights are parts of others', which it puts together during the call."""
    names = ("FullyShardedDataParallel", "FSDPModule", "DeepSpeedEngine")
    torch = core.hooks.torch
    return any(any(kind.__name__ in names for kind in type(part).__mro__) for part in module.modules()) or any(
        type(weight) not in (torch.nn.Parameter, torch.Tensor) for weight in module.parameters()
    )


def is_compiled(module: Any) -> bool:
    """By the program: torch.compile(module), or module.compile() of any part."""
    for part in module.modules():
        place = part.__dict__.get(outermost.PLACE)
        if getattr(place, "compiled", place) is not None or type(part).__name__ == "OptimizedModule":
            return True
    return False


def floating(module: Any) -> "set[Any]":
    """The types of its weights."""
    return {weight.dtype for weight in module.parameters() if weight.is_floating_point()}


def owns(weight: Any) -> bool:
    """Whether its memory is its own: nothing else notices when the values move."""
    torch = core.hooks.torch
    storage = weight.untyped_storage() if hasattr(weight, "untyped_storage") else weight.storage()
    return (
        type(weight) is torch.nn.Parameter
        and type(weight.data) is torch.Tensor
        and weight.storage_offset() == 0
        and storage.nbytes() == weight.numel() * weight.element_size()
        and (weight.is_cuda or not weight.is_shared())
    )


def _make_move(inner: Any) -> Any:
    """A module that is moved to a device is often a new one, which will be called soon."""

    @functools.wraps(inner)
    def move(*args: Any, **kwargs: Any) -> Any:
        core.hooks.guard(outermost.NAME, outermost.search)
        return inner(*args, **kwargs)

    return move


_patched = core.Patches(lambda: [core.Patch(core.hooks.torch.nn.Module, name, _make_move) for name in ("to", "cuda")])
