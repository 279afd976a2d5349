"""Calls of the outermost modules: the batch each was given, and the steps of inference.

No module but the outermost ones is touched for longer than it takes to find those. PyTorch 2.2 and newer look at an
attribute of each module, `_compiled_call_impl` (the place of `Module.compile`), before they call it: a callable there
is called instead. It is left out of pickles and copies, and torch.compile does not look at it when it traces through a
module. For a few calls at the start the class has one, which finds the outermost modules and gives those their own;
then the class's is taken away again. Older versions of PyTorch have no such place: there nothing is found here."""

import contextlib
import functools
import sys
import threading
import weakref
from sys import _getframe
from threading import get_ident
from time import monotonic_ns
from typing import Any, Callable, Iterator, Optional

from . import batches, core, flops, later, library, optimizers, parts, process, sizes
from .later import LATEST_NS, note
from .steps import Cycle

NAME = "calls of modules"
PLACE = "_compiled_call_impl"

# While looking for outermost modules: it ends after so many of their calls, or of calls inside them.
OUTER_MAX = 12
INNER_MAX = 5000
SEARCHES_MAX = 200


def _give(t_ns: int, taken: Optional[int]) -> None:
    flops.stepped(optimizer=False)
    core.library.step(b"sample", library.UNKNOWN if taken is None else taken, library.MODULE, t_ns)


cycle = Cycle(_give)
calls = 0  # of outermost modules

# Of levers: each is called as around(module, call, args, kwargs), where call(args, kwargs) goes on inwards. The first is the
# outermost of them.
arounds: "list[Callable[[Any, Callable[[tuple, dict], Any], tuple, dict], Any]]" = []
# Of levers: before_call(module, inner, args, kwargs) is called before each call, when nothing of it has begun, and may make it itself, by
# `beside` with the same arguments. None: no lever asks.
before_call: "Optional[Callable[[Any, Any, tuple, dict], None]]" = None

_local = threading.local()  # .inside: an outermost module is being called
_is_traced: Callable[[], bool] = core.is_traced
_flag: Any = None  # has `_is_compiling_flag`, which PyTorch itself reads; None: this PyTorch has none, and no call is noted
_tracing_state: Callable[[], Any] = lambda: None
_is_grad_enabled: Callable[[], bool] = lambda: True
_thread = 0  # calls of this one are noted (later.py), where they are as those before: that of the first
_noting = False  # it is in such a call
_Module: Any = None
_searching = False
_searches = _outer = _inner = 0
_named = ""  # the class of the module whose calls are steps, as it was reported
_unknown = 0  # steps whose samples nobody knew
_roots: "list[RootCall]" = []  # also while the hooks are out
sizes.roots = _roots


class RootCall:
    """Stands in the place of an outermost module. Holds no strong reference to it: that would be a cycle."""

    __slots__ = ("ref", "name", "compiled", "sequences", "levers", "tallies", "left", "grad")

    def __init__(self, module: Any, compiled: Any = None) -> None:
        self.ref = weakref.ref(module)
        self.name = type(module).__name__
        # So many of the next calls are noted (later.py), with gradients or without as the last one.
        self.left, self.grad = 0, False
        self.sequences = batches.sequence_first(module)
        self.compiled = compiled  # what Module.compile put there
        self.levers: "dict[Any, Any]" = {}  # what those of `arounds` know of this module
        self.tallies = flops.Tally(), flops.Tally()  # of calls without gradients, and with

    def __reduce__(self) -> Any:
        """In a pickle or copy of a module's raw dictionary: None, as if it had never been there."""
        return type(None), ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        global _noting
        # the caller is Module._wrapped_call_impl; a replica made by copying the dictionary is not the module of ref
        module = _getframe(1).f_locals.get("self")
        left = self.left - 1
        if (
            left >= 0
            and module is self.ref()
            and core.notes
            and not _noting
            and not _flag._is_compiling_flag
            and get_ident() == _thread
            and _is_grad_enabled() == self.grad
            and _tracing_state() is None
        ):
            self.left = left
            start_ns = monotonic_ns()
            _noting = True
            try:
                result = (self.compiled or module._call_impl)(*args, **kwargs)
            finally:
                _noting = False
            t_ns = monotonic_ns()
            try:
                grad = self.grad
                size = None if _needs_no_size(grad) else batches.of_arguments(args, kwargs, self.sequences)
                note((NAME, _ended, self, size, start_ns, t_ns, grad, grad and module.training))
                if t_ns - later.since_ns > LATEST_NS:
                    later.work_off(t_ns)
            except Exception as error:
                core.failed(NAME, error)
            return result
        if _is_traced():
            return (self.compiled or self.ref()._call_impl)(*args, **kwargs)
        if not isinstance(module, _Module):
            module = self.ref()
        inner = self.compiled or module._call_impl
        if not core.installed or _is_inside():
            return inner(*args, **kwargs)
        if before_call is not None:
            before_call(module, inner, args, kwargs)
        core.guard(NAME, _work_off)
        start_ns = core.now_ns()
        grad = core.torch.is_grad_enabled()
        tally = self.tallies[grad]
        if grad and sizes.due:
            sizes.calling()
        _local.inside = True
        try:
            if tally.calls + 1 >= tally.next and flops.due(tally, module, grad):
                result = flops.count(tally, grad, lambda: _through(module, inner, args, kwargs))
            else:
                result = _through(module, inner, args, kwargs) if arounds else inner(*args, **kwargs)
        finally:
            _local.inside = False
        _called(self, module, args, kwargs, start_ns, grad)
        return result


def _work_off() -> None:
    later.work_off(core.now_ns())


def _is_inside() -> bool:
    return getattr(_local, "inside", False) or (_noting and get_ident() == _thread)


def _through(module: Any, inner: Any, args: tuple, kwargs: dict) -> Any:
    def call(args: tuple, kwargs: dict) -> Any:
        return inner(*args, **kwargs)

    for around in reversed(arounds):
        call = functools.partial(around, module, call)
    return call(args, kwargs)


def beside(module: Any, inner: Any, args: tuple, kwargs: dict) -> Any:
    """A call that the program did not make."""
    _local.inside = True
    try:
        return _through(module, inner, args, kwargs)
    finally:
        _local.inside = False


@contextlib.contextmanager
def aside() -> "Iterator[None]":
    """Calls in it are none of the program's, of whatever module: nothing of them is seen."""
    before, _local.inside = getattr(_local, "inside", False), True
    if _searching:
        setattr(core.torch.nn.Module, PLACE, None)
    try:
        yield
    finally:
        _local.inside = before
        if _searching:
            setattr(core.torch.nn.Module, PLACE, _search)


def _needs_no_size(grad: bool) -> bool:
    """Steps are the optimizer's, whose samples are those of loaders, or of calls with gradients."""
    return core.optimizer_seen and (not grad or optimizers.samples.by_loaders)


def _called(root: RootCall, module: Any, args: tuple, kwargs: dict, start_ns: int, grad: bool) -> None:
    """A call that is not noted has returned."""
    global _thread
    t_ns = core.now_ns()
    try:
        if grad:
            parts.passed(module)
        parts.look()
        size = None if _needs_no_size(grad) or NAME in core.off else batches.of_arguments(args, kwargs, root.sequences)
        _ended(root, size, start_ns, t_ns, grad, grad and module.training)
        _thread = _thread or get_ident()
        plain = core.notes and _flag is not None and parts.SYNC not in module.__dict__ and "_hec_levers" not in sys.modules
        root.left, root.grad = root.tallies[grad].next - root.tallies[grad].calls - 1 if plain else 0, grad
        core.spent(t_ns)
    except Exception as error:
        core.failed(NAME, error)


def _ended(root: RootCall, size: Optional[int], start_ns: int, t_ns: int, grad: bool, trains: bool) -> None:
    """A call of an outermost module: a step of inference, or the forward pass of one of training."""
    global calls
    calls += 1
    if _searching:
        _count_outer()
    trained = core.optimizer_seen
    tally = root.tallies[grad]
    tally.calls += 1
    if grad:
        flops.called(tally)
        if trained:
            parts.took(parts.FORWARD, start_ns, t_ns)
    if _needs_no_size(grad) or NAME in core.off:
        return
    if grad:
        optimizers.samples.called(root.ref, size)
    if not trained and not trains:
        if not core.steady:
            process.wake_if_rank(stepped=False)
            if not core.may(NAME):
                return
        cycle.ended(root.ref, t_ns, lambda: _size_of(root, size))


def _size_of(root: RootCall, size: Optional[int]) -> Optional[int]:
    """Of a call that ends a step: its module's name says what the steps are."""
    global _named
    if root.name != _named:
        _named = root.name
        core.library.fact("step_module", root.name)
    return size


def _search(self: Any, *args: Any, **kwargs: Any) -> Any:
    """In the place of the class, while searching."""
    found = None
    if not _is_traced():
        try:
            if _is_inside():
                _count_inner()
                sizes.given(self, args)
            elif next(self.parameters(), None) is not None:  # a loss or an activation is not what is trained or run
                found = _adopt(self)
        except Exception as error:
            core.failed(NAME, error)
    return (found or self._call_impl)(*args, **kwargs)


def _adopt(module: Any, compiled: Any = None) -> RootCall:
    """A module that was one before, also before the hooks were taken out, is counted on."""
    call = module.__dict__[PLACE] = RootCall(module, compiled)
    for before in _roots:
        if before.ref() is module:
            call.levers, call.tallies = before.levers, before.tallies
    _roots[:] = [root for root in _roots if root.ref() is not None and root.ref() is not module]
    _roots.append(call)
    return call


def _count_outer() -> None:
    global _outer
    _outer += 1
    if _outer >= OUTER_MAX:
        _stop_search()


def _count_inner() -> None:
    global _inner
    _inner += 1
    if _inner >= INNER_MAX:
        _stop_search()


def search() -> None:
    """Look for outermost modules during the next calls."""
    global _searching, _searches, _outer, _inner
    if _searching or not core.installed or NAME in core.off or _searches >= SEARCHES_MAX:
        return
    if not hasattr(core.torch.nn.Module, PLACE):
        return
    _searching = True
    _searches += 1
    _outer = _inner = 0
    setattr(core.torch.nn.Module, PLACE, _search)


def samples_unknown() -> None:
    """A step's samples were not known: its module may be a new one. Looked for less and less often."""
    global _unknown
    _unknown += 1
    if _unknown & (_unknown - 1) == 0:
        search()


def _stop_search() -> None:
    global _searching
    if _searching:
        _searching = False
        setattr(core.torch.nn.Module, PLACE, None)


def _take_from(module: Any) -> "list[tuple[Any, RootCall]]":
    """Remove what is in the places of a module and its parts; what the program put there goes back."""
    taken = []
    for part in module.modules():
        found = part.__dict__.get(PLACE)
        if isinstance(found, RootCall):
            taken.append((part, found))
            if found.compiled is None:
                del part.__dict__[PLACE]
            else:
                part.__dict__[PLACE] = found.compiled
    return taken


def _make_compile(inner: Any) -> Any:
    """torch.compile of a module compiles the very function that looks at the place, with a guard on what is there:
    None of its own keeps that guard true regardless of what the class has."""

    @functools.wraps(inner)
    def compile(*args: Any, **kwargs: Any) -> Any:
        flops.compiled()
        try:
            model = args[0] if args else kwargs.get("model")
            if isinstance(model, core.torch.nn.Module):
                _take_from(model)
                model.__dict__.setdefault(PLACE, None)
                search()  # the compiled module is another one
        except Exception as error:
            core.failed(NAME, error)
        return inner(*args, **kwargs)

    return compile


def _make_module_compile(inner: Any) -> Any:
    @functools.wraps(inner)
    def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
        flops.compiled()
        result = inner(self, *args, **kwargs)
        try:
            _adopt(self, self.__dict__[PLACE])
            search()
        except Exception as error:
            core.failed(NAME, error)
        return result

    return compile


def _make_export(inner: Any) -> Any:
    """An exported program names parameters by the way that led to them: there must be nothing on it."""

    @functools.wraps(inner)
    def export(*args: Any, **kwargs: Any) -> Any:
        taken: "list[tuple[Any, RootCall]]" = []
        try:
            _stop_search()
            model = args[0] if args else kwargs.get("mod")
            if isinstance(model, core.torch.nn.Module):
                taken = _take_from(model)
        except Exception as error:
            core.failed(NAME, error)
        try:
            return inner(*args, **kwargs)
        finally:
            for module, call in taken:
                module.__dict__[PLACE] = call

    return export


def _make_init(inner: Any) -> Any:
    """A new optimizer: often of a new model, which has not been called yet."""

    @functools.wraps(inner)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        inner(self, *args, **kwargs)
        core.guard(NAME, search)

    return __init__


def _patches() -> "list[core.Patch]":
    torch = core.torch
    found = [core.Patch(torch.optim.Optimizer, "__init__", _make_init)]
    if "compile" in torch.nn.Module.__dict__:
        found.append(core.Patch(torch.nn.Module, "compile", _make_module_compile))
    if "compile" in torch.__dict__:
        found.append(core.Patch(torch, "compile", _make_compile))
    export = sys.modules.get("torch.export")
    for name in ("export", "export_for_training"):
        if export is not None and name in export.__dict__:
            found.append(core.Patch(export, name, _make_export))
    return found


_patched = core.Patches(_patches)


def _jit_ignores() -> Any:
    """Names of attributes that torch.jit.script passes over."""
    return getattr(sys.modules.get("torch.jit._recursive"), "ignored_attributes", [])


def install() -> None:
    global _is_traced, _flag, _tracing_state, _is_grad_enabled, _Module
    _Module, _is_grad_enabled = core.torch.nn.Module, core.torch.is_grad_enabled
    if not hasattr(_Module, PLACE):
        return
    batches.install()
    _is_traced, _flag, _tracing_state = core.find_is_traced(), core.compiling_flag(), core.find_tracing_state()
    _patched.install()
    _jit_ignores().append(PLACE)
    for root in list(_roots):
        module = root.ref()
        if module is not None and PLACE not in module.__dict__:
            _adopt(module)
    if not any(root.ref() is not None for root in _roots):
        search()


optimizers.on_unknown = samples_unknown


def remove() -> None:
    _stop_search()
    for root in _roots:
        module = root.ref()
        if module is not None and isinstance(module.__dict__.get(PLACE), RootCall):
            if module.__dict__[PLACE].compiled is None:
                del module.__dict__[PLACE]
    if PLACE in _jit_ignores():
        _jit_ignores().remove(PLACE)
    _patched.remove()
