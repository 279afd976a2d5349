"""Starts HEC's hooks; called by sitecustomize once a package that uses CUDA was imported and, with PyTorch 2.5 and newer, by
its entry point of group torch.backends, whichever comes first. The hooks are loaded by path under a name of their own: a package `hec` that
the program has is neither used nor hidden."""

import os
import sys


def start(name="torch"):
    """name: the package that was imported. Never raises: an exception here would make its import fail."""
    try:
        if "_hec_hooks" in sys.modules:
            sys.modules["_hec_hooks"].start(name)
            return
        if not os.environ.get("HEC_SOCKET") or os.environ.get("HEC_HOOKS") == "0":
            return
        from importlib.util import module_from_spec, spec_from_file_location

        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hec", "_hooks")
        spec = spec_from_file_location(
            "_hec_hooks", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        module = module_from_spec(spec)
        sys.modules["_hec_hooks"] = module
        spec.loader.exec_module(module)
        module.start(name)
    except Exception:
        pass
