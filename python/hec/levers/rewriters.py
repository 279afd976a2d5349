"""Levers that change the graph which torch.compile makes of a module: what is registered here, is asked for each graph. Where a lever
compiles modules, the compiler gets the changed graph; else it runs as it is (rewriting.py)."""

import copy
from typing import Any, Callable, Dict, List, Tuple

from . import calls, core, graphs

Changes = Tuple[Dict[str, int], "List[graphs.Watched]"]  # how many of what; what has to hold for it in a call


class Rewriter:
    """One lever's. change(owner, constants) changes owner.graph; text(counts) says it."""

    def __init__(self, lever: core.Lever, change: "Callable[[Any, graphs.Constants], Changes]", text: "Callable[[Dict[str, int]], str]",
                 nothing: str) -> None:  # fmt: skip
        self.lever, self.change, self.text, self.nothing = lever, change, text, nothing
        self.awake = True


_all: "List[Rewriter]" = []


def put(rewriter: Rewriter) -> None:
    _all.append(rewriter)


def take(rewriter: Rewriter) -> None:
    if rewriter in _all:
        _all.remove(rewriter)


def awake() -> "Tuple[Rewriter, ...]":
    return tuple(rewriter for rewriter in _all if rewriter.awake)


class Rewritings:
    """Of one module, by those levers that were awake when it was compiled."""

    def __init__(self, module: Any, rewriters: "Tuple[Rewriter, ...]") -> None:
        self.module, self.rewriters = module, rewriters  # module: a weak reference
        self.found: "Dict[Rewriter, Dict[str, int]]" = {rewriter: {} for rewriter in rewriters}
        self.open = True  # graphs of the first call are counted; others are the same operations for other sizes
        self.calls = self.plain = 0  # of changed graphs, and of those as the program wrote them

    def any(self) -> bool:
        return any(self.found.values())

    def of(self, owner: Any, inputs: "tuple", make: "Callable[[Any], Callable[..., Any]]") -> "Callable[..., Any]":
        """What runs for a graph: make(owner) of the changed one, as long as all holds that it was made for."""
        watched: "List[graphs.Watched]" = []
        changed = False
        if not self.rewriters:
            return make(owner)
        kept = copy.deepcopy(owner.graph)
        for rewriter in self.rewriters:
            changed = self._ask(rewriter, owner, inputs, watched) or changed
        if not changed:
            return make(owner)
        plain = core.hooks.torch.fx.GraphModule(owner, kept)
        made = make(owner)

        broken = False

        def run(*inputs: Any) -> Any:
            nonlocal broken
            if broken or not all(one.holds(inputs) for one in watched):
                self.plain += 1
                return plain.forward(*inputs)
            self.calls += 1
            try:
                return made(*inputs)
            except calls.FAULTS as error:
                fault = error
            result = plain.forward(*inputs)  # where it fails too, that is the program's own affair
            broken = True
            for rewriter, found in self.found.items():
                if found:
                    rewriter.lever.broke(fault, lambda: None)
            return result

        return run

    def _ask(self, rewriter: Rewriter, owner: Any, inputs: "tuple", watched: "List[graphs.Watched]") -> bool:
        module = self.module()
        before = graphs.copied(owner.graph)
        found: "Dict[str, int]" = {}
        try:
            graphs.without_writes(owner.graph)
            found, looked = rewriter.change(owner, graphs.Constants(owner, inputs, module))
            if found:
                graphs.drop_unused(owner.graph)
                owner.graph.lint()
                owner.recompile()
        except Exception as error:
            found = {}
            rewriter.lever.broke(error, lambda: take(rewriter))
        if not found:
            owner.graph = before
            owner.recompile()
            return False
        watched.extend(looked)
        if self.open:
            for name, count in found.items():
                self.found[rewriter][name] = self.found[rewriter].get(name, 0) + count
        return True

    def say(self) -> None:
        """After a call."""
        self.open = False
        for rewriter, found in self.found.items():
            if rewriter.lever.state == "failed" or not rewriter.awake:
                continue
            if not found:
                rewriter.lever.nothing(rewriter.nothing)
            elif self.calls:
                other = ", %d with a mask that was changed and so as written" % self.plain if self.plain else ""
                rewriter.lever.on("%s; graphs run: %d%s" % (rewriter.text(found), self.calls, other))
