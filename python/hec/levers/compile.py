"""Outermost modules are compiled, in place: the program keeps its module, and the names of its weights. What cannot be compiled runs as
it did; a module that is compiled again and again is left alone."""

import copy
import importlib
import sys
import time
import types
import warnings
from typing import Any, Dict, List, Optional

from . import calls, core

FRAMEWORK = "torch"
LIVE = True
COMPILED_MAX = 8  # calls of a module in which something was compiled: with and without gradients, a last batch ...
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
        self.put = calls.Calls(lever, 90, lambda module: _fit(lever, module, self.put, options, attest, around))
        if self.put.put():
            before = list(warnings.filters)
            warnings.filterwarnings("ignore", module=LIBRARIES)  # of what could be faster still: `-W error` would end the program
            self.filter = next((entry for entry in warnings.filters if entry not in before), None)

    def take(self) -> None:
        self.put.take()
        if self.filter is not None and self.filter in warnings.filters:
            warnings.filters.remove(self.filter)  # type: ignore[attr-defined]
        self.filter = None


class Compiler:
    """Inductor, as torch.compile calls it, for one module."""

    def __init__(self, options: "Dict[str, Any]") -> None:
        self.options = options
        self.graphs = 0
        self.faults: "List[str]" = []

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
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
            self.faults.append("%s: %s" % (type(error).__name__, (str(error).strip().splitlines() or [""])[0][:200]))
            return make_boxed_func(kept.forward)


def _function(module: Any) -> Any:
    """What is compiled for a module: as Module.compile does it, which finds nothing to compile in the containers of torch.nn, whose
    code is PyTorch's own. Each of those gets a function with code of its own, since PyTorch counts recompilations by that."""
    inner = module._call_impl
    rules = importlib.import_module("torch._dynamo.trace_rules")
    if not rules.check(module.forward):
        return inner

    def forward(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

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
    compiler = Compiler(options)
    compiled = torch.compile(_function(module), backend=compiler)
    beside = around(module)
    count = compiled_in = 0
    seconds = 0.0

    def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
        nonlocal count, compiled_in, seconds
        graphs, started = compiler.graphs, time.monotonic()
        beside.before()
        result = beside.after(compiled(*args, **kwargs), compiler.graphs != graphs)
        count += 1
        if compiler.graphs != graphs:
            compiled_in += 1
            seconds += time.monotonic() - started
        words = "graphs: %d, compiled in %d of %d calls, %.1f s" % (compiler.graphs, compiled_in, count, seconds)
        if compiler.faults or compiled_in > COMPILED_MAX or not compiler.graphs:
            put.forget(module)
            (lever.failed if compiler.graphs else lever.nothing)(compiler.faults[0] if compiler.faults else words)
        elif compiler.graphs != graphs or core.seldom(count):
            attest(lever, module, words)
        return result

    return run
