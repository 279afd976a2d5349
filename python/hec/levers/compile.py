"""Outermost modules are compiled, in place: the program keeps its module, and the names of its weights. What cannot be compiled runs as
it did; a module that is compiled again and again is left alone."""

import copy
import importlib
import sys
import time
import types
import warnings
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import calls, core, rewriters

FRAMEWORK = "torch"
LIVE = True
COMPILES = True
COMPILED_MAX = 8  # calls of a module in which something was compiled: with and without gradients, a last batch ...
ORDER = 90  # the innermost of all levers around calls: what is compiled is the module itself
LIBRARIES = r"torch\.(_inductor|_dynamo|_functorch|fx)\b"

_mine: "Optional[Compiling]" = None


def apply(lever: core.Lever) -> None:
    global _mine
    # the random numbers of dropout are those that the program has without it
    _mine = Compiling(lever, {"fallback_random": True})


def revert() -> None:
    if _mine is not None:
        _mine.take()


def switch(on: bool) -> None:
    if _mine is not None:
        _mine.put.awake = on


def _attest(lever: core.Lever, module: Any, words: str) -> None:
    breaks = sum(sys.modules["torch._dynamo.utils"].counters["graph_break"].values())
    lever.on("%s; graph breaks: %d" % (words, breaks))


class Around:
    """Of one module: what is done around its compiled calls."""

    def __init__(self, module: Any) -> None:
        pass

    def before(self) -> None:
        pass

    def after(self, result: Any, compiled: bool) -> Any:
        """What the program gets. compiled: something was, in this call."""
        return result


class Compiling:
    """One lever's, put in. Also for cuda_graphs: attest says what it saw."""

    def __init__(self, lever: core.Lever, options: "Dict[str, Any]", attest: Any = _attest, around: Any = Around) -> None:
        self.filter: "Optional[tuple]" = None
        self.put = calls.Calls(lever, ORDER, lambda module: _fit(lever, module, self.put, options, attest, around), compiles=True)
        if self.put.put():
            before = list(warnings.filters)
            warnings.filterwarnings("ignore", module=LIBRARIES)  # of what could be faster still: `-W error` would end the program
            self.filter = next((entry for entry in warnings.filters if entry not in before), None)

    def take(self) -> None:
        self.put.take()
        if self.filter is not None and self.filter in warnings.filters:
            warnings.filters.remove(self.filter)  # type: ignore[attr-defined]
        self.filter = None


def will_compile(module: Any) -> bool:
    """Whether such a lever has this module, or will have at its first call."""
    for other in calls._chain:
        entry = other._entry(module)
        if other.order == ORDER and other.awake and (entry is None or entry.run is not None):
            return True
    return False


class Compiler:
    """Inductor, as torch.compile calls it, for one module."""

    def __init__(self, options: "Dict[str, Any]") -> None:
        self.options = options
        self.graphs = 0
        self.faults: "List[str]" = []
        self.rewritings: "Any" = None

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        return self.rewritings.of(graph, tuple(inputs), lambda graph: self.make(graph, inputs))

    def make(self, graph: Any, inputs: Any) -> Any:
        """What runs for a graph."""
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(graph, inputs, inner_compile=self._inner, config_patches=dict(self.options))

    def _inner(self, graph: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """One graph, forward or backward. The backward one is compiled when the program's loss.backward() wants it: a fault must not
        reach that; then the graph runs as it is."""
        from torch._functorch.aot_autograd import make_boxed_func
        from torch._inductor.compile_fx import compile_fx_inner

        kept = core.hooks.torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
        try:
            return compile_fx_inner(graph, inputs, *args, **kwargs)
        except Exception as error:
            self.faults.append(core.words_of(error))
            return make_boxed_func(kept.forward)


def _function(module: Any) -> Any:
    """What is compiled for a module, which is its first argument: so nothing of it keeps the module alive. As Module.compile does it,
    which finds nothing to compile in the containers of torch.nn, whose code is PyTorch's own. Each of those gets a function with code of
    its own, since PyTorch counts recompilations by that."""
    rules = importlib.import_module("torch._dynamo.trace_rules")
    if not rules.check(module.forward):
        return type(module)._call_impl

    def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
        return module._call_impl(*args, **kwargs)

    code = forward.__code__.replace(co_name="forward_%d" % id(module))
    return types.FunctionType(code, globals(), "forward", None, forward.__closure__)


def _fit(lever: core.Lever, module: Any, put: "calls.Calls", options: "Dict[str, Any]", attest: Any, around: Any) -> "Optional[calls.Run]":
    torch = core.hooks.torch
    if calls.is_compiled(module):
        lever.already("the program compiles the module, or a part of it")
        return None
    if calls.is_sharded(module):
        lever.nothing("the module's weights are sharded (FSDP)")
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch._inductor.compile_fx")
    beside, ref = around(module), weakref.ref(module)
    variants: "Dict[Tuple[rewriters.Rewriter, ...], Variant]" = {}

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        awake = rewriters.awake()
        variant = variants.get(awake)
        if variant is None:
            variant = variants[awake] = Variant(ref(), Compiler(options), awake)
        beside.before()
        result = beside.after(variant.call(ref(), args, kwargs), variant.fresh)
        if variant.fresh or core.seldom(variant.count):
            variant.rewritings.say()
        faults = variant.compiler.faults
        if faults or variant.gave_up() or not variant.compiler.graphs:
            put.forget(ref())
            (lever.failed if variant.compiler.graphs else lever.nothing)(faults[0] if faults else variant.words())
        elif variant.fresh or core.seldom(variant.count):
            attest(lever, ref(), variant.words())
        return result

    return run


class Variant:
    """A module compiled, with those levers that change its graph and were awake then."""

    def __init__(self, module: Any, compiler: Compiler, awake: "Tuple[rewriters.Rewriter, ...]") -> None:
        self.compiler = compiler
        self.rewritings = compiler.rewritings = rewriters.Rewritings(weakref.ref(module), awake)
        self.compiled = core.hooks.torch.compile(_function(module), backend=compiler)
        self.count = self.compiled_in = 0
        self.seconds = 0.0
        self.fresh = False  # something was compiled in the last call

    def call(self, module: Any, args: tuple, kwargs: dict) -> Any:
        graphs, started = self.compiler.graphs, time.monotonic()
        result = self.compiled(module, *args, **kwargs)
        self.count += 1
        self.fresh = self.compiler.graphs != graphs
        if self.fresh:
            self.compiled_in += 1
            self.seconds += time.monotonic() - started
        return result

    def gave_up(self) -> bool:
        """It is compiled again and again."""
        return self.compiled_in > COMPILED_MAX

    def words(self) -> str:
        return "graphs: %d, compiled in %d of %d calls, %.1f s" % (self.compiler.graphs, self.compiled_in, self.count, self.seconds)
