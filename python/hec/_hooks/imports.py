"""Modules that a program may import later: calls a function once such a module has run."""

import sys
from importlib.machinery import ModuleSpec
from typing import Any, Callable, Dict, List

_waiting: "Dict[str, List[Callable[[Any], None]]]" = {}


class _Finder:
    """In sys.meta_path while somebody waits for a module; finds nothing itself."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        try:
            after = sys.meta_path[sys.meta_path.index(_Finder) + 1 :]  # type: ignore[arg-type]
            for finder in after:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    _watch(name, spec.loader)
                    return spec
        except Exception:
            pass
        return None


class _Running(ModuleSpec):
    """Of a module that runs: the import system says in it when the module has run."""

    def __setattr__(self, key: str, value: Any) -> None:
        super().__setattr__(key, value)
        if key == "_initializing" and not value:
            self.__class__ = ModuleSpec  # type: ignore[assignment]
            _ran(self.name, sys.modules.get(self.name))


def _watch(name: str, loader: Any) -> None:
    run = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        run(module)
        _ran(name, module)

    # Python leaves frames of the import system out of tracebacks; this one belongs to it
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    loader.exec_module = exec_module


def _ran(name: str, module: Any) -> None:
    for do in _waiting.pop(name, []) if module is not None else []:
        try:
            do(module)
        except Exception:
            pass
    _look()


def _look() -> None:
    """The finder is there as long as somebody waits."""
    if _waiting and _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
    elif not _waiting and _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)  # type: ignore[arg-type]


def after(name: str, do: "Callable[[Any], None]") -> None:
    """Call do(module) once the module has run: now where it has."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        do(module)
        return
    _waiting.setdefault(name, []).append(do)
    if module is None:
        _look()
    elif type(spec) is ModuleSpec:
        spec.__class__ = _Running


def leave(do: "Callable[[Any], None]") -> None:
    """It is not called any more."""
    for name in list(_waiting):
        _waiting[name] = [other for other in _waiting[name] if other != do]
        if not _waiting[name]:
            del _waiting[name]
    _look()
