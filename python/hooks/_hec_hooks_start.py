"""Starts HEC's hooks; called by sitecustomize once a package that uses CUDA was imported. The hooks are loaded by path under a name
of their own: a package `hec` that the program has is neither used nor hidden."""

import os
import sys


def _hooks():
    """The package of the hooks; None: they are not wanted."""
    if "_hec_hooks" in sys.modules:
        return sys.modules["_hec_hooks"]
    if not os.environ.get("HEC_SOCKET") or os.environ.get("HEC_HOOKS") == "0":
        return None
    from importlib.util import module_from_spec, spec_from_file_location

    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hec", "_hooks")
    spec = spec_from_file_location(
        "_hec_hooks", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = module_from_spec(spec)
    sys.modules["_hec_hooks"] = module
    spec.loader.exec_module(module)
    return module


def start(name="torch"):
    """name: the package that was imported. Never raises: an exception here would make its import fail."""
    try:
        hooks = _hooks()
        if hooks is not None:
            hooks.start(name)
    except Exception:
        pass


def late():
    """Called by the tracer when CUDA starts, in a process whose Python read no sitecustomize of HEC's. A package that was
    imported before is hooked now; what comes is waited for as ever."""
    from importlib.util import module_from_spec, spec_from_file_location

    if sys.version_info < (3, 8):
        return
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sitecustomize.py")
    spec = spec_from_file_location("_hec_hooks_finder", path)
    finder = module_from_spec(spec)
    spec.loader.exec_module(finder)
    found = [name for name in ["torch"] + sorted(finder._others) if _is_imported(name)]
    hooks = _hooks() if found else None
    if hooks is not None:
        hooks.start_late(found[0])
    if "torch" not in found:
        sys.meta_path.insert(0, finder._Finder)


def _is_imported(name):
    """To its end: one that is being imported is not whole."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name in sys.modules and not getattr(spec, "_initializing", False)
