"""Levers that act where DistributedDataParallel or FullyShardedDataParallel is made, or fully_shard is called: one patch of a constructor, or
of that function, for all of them. Ranks wait for each other in it anyway: there they agree (ranks.py)."""

import functools
import inspect
import sys
from importlib import import_module
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import core, ranks


class Unfit(Exception):
    """From a fit: why it can do nothing."""


class Already(Unfit):
    """The program has it."""


class Wrapper:
    """A class of PyTorch whose constructor levers change, or a function that takes a module and gives one; `also` has it by its name too."""

    def __init__(self, module: str, name: str, also: "Tuple[str, ...]" = ()) -> None:
        self.module, self.name, self.also = module, name, also
        self.chain: "List[Built]" = []
        self.patches = core.Patches(self._places)
        self.depth = 0  # of constructors that are running: FSDP makes those of its parts

    def put(self, built: "Built") -> None:
        import_module(self.module)
        self.chain.append(built)
        self.patches.install()

    def take(self, built: "Built") -> None:
        if built in self.chain:
            self.chain.remove(built)
        if not self.chain:
            self.patches.remove()

    def _places(self) -> "List[core.Patch]":
        made = getattr(sys.modules[self.module], self.name)
        if inspect.isclass(made):
            return [core.Patch(made, "__init__", self._make)]
        having = [sys.modules[place] for place in (self.module, *self.also) if getattr(sys.modules.get(place), self.name, None) is made]
        return [core.Patch(place, self.name, self._make) for place in having]

    def _make(self, inner: Any) -> Any:
        signature = inspect.signature(inner)

        @functools.wraps(inner)
        def make(module: Any, *args: Any, **kwargs: Any) -> Any:
            on: "List[Built]" = []
            if not self.depth and self.chain and ranks.distributed() is not None:
                args, kwargs, on = self._changed(signature, module, args, kwargs)
            self.depth += 1
            try:
                result = inner(module, *args, **kwargs)
            finally:
                self.depth -= 1
            for built in on:
                built.made(module)
            return result

        return make

    def _changed(self, signature: Any, module: Any, args: tuple, kwargs: dict) -> "Tuple[tuple, dict, List[Built]]":
        on: "List[Built]" = []
        try:
            bound = signature.bind(module, *args, **kwargs)
        except TypeError:  # which the constructor will raise
            return args, kwargs, on
        given = dict(list(bound.arguments.items())[1:])  # without the module itself
        bound.apply_defaults()
        arguments, changed = dict(bound.arguments), {}
        for built in list(self.chain):
            changes = built.asked({**arguments, **changed})
            if changes is not None:
                on.append(built)
                changed.update(changes)
        return ((), {**given, **changed}, on) if on else (args, kwargs, on)


class Built:
    """One lever's. fit(arguments) returns what it changes of the constructor's arguments, which are all there, by their names; it raises
    Unfit where it cannot. made(module) is called with each that was made so, in every rank."""

    def __init__(self, lever: core.Lever, wrapper: Wrapper, fit: "Callable[[dict], Dict[str, Any]]",
                 made: "Callable[[Any], None]") -> None:  # fmt: skip
        self.lever, self.wrapper, self.fit, self.after = lever, wrapper, fit, made

    def put(self) -> None:
        self.wrapper.put(self)
        self.lever.nothing("the program makes no %s" % self.wrapper.name)

    def take(self) -> None:
        self.wrapper.take(self)

    def asked(self, arguments: dict) -> "Optional[Dict[str, Any]]":
        """What changes; None: nothing, which is said."""
        changes: "Dict[str, Any]" = {}
        why: "Optional[Unfit]" = None
        group, mesh = arguments.get("process_group"), arguments.get("mesh")
        if arguments.get("device_mesh") is not None or isinstance(group, tuple) or (mesh is not None and mesh.ndim > 1):
            self.lever.nothing("its %s is made for a mesh of devices" % self.wrapper.name)
            return None
        group = mesh.get_group() if mesh is not None else group
        try:
            changes = self.fit(arguments)
        except Unfit as error:
            why = error
        except Exception as error:
            self.lever.broke(error, self.take)
            why = Unfit("the lever failed")
        try:
            text = ", ".join("%s=%s" % item for item in sorted(changes.items()))
            against = ranks.agree(self.lever.name, str(why or ""), text, group)
        except Exception as error:
            self.lever.broke(error, self.take)
            return None
        if not against:
            return changes
        if isinstance(why, Already):
            self.lever.already(str(why))
        else:
            self.lever.nothing(str(why or against))
        return None

    def made(self, module: Any) -> None:
        try:
            self.after(module)
        except Exception as error:
            self.lever.broke(error, self.take)


DDP = Wrapper("torch.nn.parallel.distributed", "DistributedDataParallel")
FSDP = Wrapper("torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel")
FSDP2 = Wrapper("torch.distributed.fsdp", "fully_shard",
                ("torch.distributed.fsdp._fully_shard", "torch.distributed.fsdp._fully_shard._fully_shard",
                 "torch.distributed._composable.fsdp", "torch.distributed._composable.fsdp.fully_shard"))  # fmt: skip


def default_of(wrapper: Wrapper, name: str) -> Any:
    """Of an argument of the constructor, None also where there is none."""
    owner = getattr(sys.modules[wrapper.module], wrapper.name)
    parameter = inspect.signature(owner.__init__).parameters.get(name)
    return None if parameter is None else parameter.default


class Flag:
    """A lever that is one argument of a constructor, which says it again as an attribute of what it makes."""

    def __init__(self, wrapper: Wrapper, name: str, words: str) -> None:
        self.wrapper, self.name, self.words = wrapper, name, words
        self.built: "Optional[Built]" = None
        self.made = 0

    def apply(self, lever: core.Lever) -> None:
        self.made = 0
        self.built = Built(lever, self.wrapper, self._fit, self._made)
        try:
            self.built.put()
        except Exception as error:  # the Python is too new for this PyTorch's FSDP, for instance
            lever.nothing("%s does not load: %s" % (self.wrapper.name, type(error).__name__))

    def revert(self) -> None:
        if self.built is not None:
            self.built.take()

    def _fit(self, arguments: dict) -> "Dict[str, Any]":
        if self.name not in arguments:
            raise Unfit("this PyTorch has no %s" % self.name)
        if arguments[self.name]:
            raise Already(self.words)
        return {self.name: True}

    def _made(self, module: Any) -> None:
        assert self.built is not None
        if getattr(module, self.name, False) is True:
            self.made += 1
            self.built.lever.on("%s, in %d modules" % (self.words, self.made))
        else:
            self.built.lever.nothing("%s of the module is not set" % self.name)
