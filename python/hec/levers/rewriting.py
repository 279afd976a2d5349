"""One lever that changes graphs, put in: around the calls of modules that no lever compiles, the changed graph runs operation by operation,
as the program would. torch.compile makes the graph, and checks at each call that it is still that of the call."""

import importlib
import warnings
import weakref
from typing import Any, Callable, Dict, Optional

from . import calls, core, graphs, rewriters
from . import compile as compiler


NEEDS = (2, 5)  # since then weights and masks are inputs of the graph


class Rewriting:
    def __init__(self, lever: core.Lever, order: int, change: "Callable[[Any, graphs.Constants], rewriters.Changes]",
                 text: "Callable[[Dict[str, int]], str]", nothing: str) -> None:  # fmt: skip
        self.rewriter = rewriters.Rewriter(lever, change, text, nothing)
        self.put = calls.Calls(lever, order, self._fit, compiles=True)
        version = core.hooks.torch.__version__
        if tuple(int(part) for part in version.split(".")[:2]) < NEEDS:
            lever.nothing("PyTorch %s: needs %d.%d" % (version, *NEEDS))
        elif self.put.put():
            rewriters.put(self.rewriter)

    def take(self) -> None:
        rewriters.take(self.rewriter)
        self.put.take()

    def switch(self, on: bool) -> None:
        self.rewriter.awake = self.put.awake = on

    def _fit(self, module: Any) -> "Optional[calls.Run]":
        lever = self.put.lever
        if calls.is_compiled(module):
            lever.nothing("the program compiles the module, or a part of it")
            return None
        if calls.is_sharded(module):
            lever.nothing("the module's weights are sharded (FSDP)")
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("torch._dynamo")
        ref = weakref.ref(module)
        variants: "Dict[Any, compiler.Variant]" = {}

        def run(call: "calls.Call", args: tuple, kwargs: dict) -> Any:
            module = ref()
            if compiler.will_compile(module):
                return call(args, kwargs)
            awake = rewriters.awake()
            variant = variants.get(awake)
            if variant is None:
                variant = variants[awake] = compiler.Variant(module, Plain(), awake)
            result = variant.call(module, args, kwargs)
            if variant.fresh or core.seldom(variant.count):
                variant.rewritings.say()
            if not variant.rewritings.any() or variant.gave_up():
                self.put.forget(module)
                if variant.rewritings.any():
                    lever.failed(variant.words())
            return result

        return run


class Plain(compiler.Compiler):
    """Runs a graph as it is."""

    def __init__(self) -> None:
        super().__init__({})

    def make(self, graph: Any, inputs: Any) -> Any:
        return graph.forward
