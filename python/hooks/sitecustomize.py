"""Put on PYTHONPATH by `hec run`: waits until PyTorch, or another package that uses CUDA, was imported, then starts HEC's
hooks. A sitecustomize further down sys.path runs as if this one were not there. Without HEC_SOCKET, or with HEC_HOOKS=0, that is all it does, and in any
Python older than 3.8, for which there are no hooks. Every Python that the command starts runs this file: it is valid in
Python 2.7 too."""

import os
import sys


# Through which Python programs use CUDA; of the others than torch, the first is enough, but each may have levers.
_others = {"jax", "tensorflow", "cupy", "numba", "pycuda", "triton", "paddle", "onnxruntime", "tensorrt", "tinygrad", "warp"}
_levers = bool(os.environ.get("HEC_LEVERS"))
if _levers:
    _others.add("keras")


class _Finder:
    """First in sys.meta_path until torch is imported, with levers for ever; finds nothing itself."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch" and name not in _others:
            return None
        try:
            if not _levers and name == "torch":
                sys.meta_path.remove(_Finder)
            elif not _levers:
                _others.clear()
            for finder in sys.meta_path:
                spec = None if finder is _Finder else finder.find_spec(name, path, target)
                if spec is not None:
                    break
            else:
                return None
            _watch(spec.loader, name)
        except Exception:
            return None  # the import system asks the other finders, as it would have without this one
        return spec


def _watch(loader, name):
    """Have the hooks started once the loader has run the module; its loader is as before then."""
    run = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        run(module)
        try:
            import _hec_hooks_start

            _hec_hooks_start.start(name)
        except Exception:
            pass

    # Python leaves frames of the import system out of tracebacks; this one belongs to it
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    loader.exec_module = exec_module


def _chain():
    """Run the sitecustomize that would have been found without this folder, under its own name."""
    here = os.path.dirname(os.path.abspath(__file__))
    there = [entry for entry in sys.path if os.path.abspath(entry) != here]
    if "_frozen_importlib_external" not in sys.modules:
        _chain_before_specs(there)
        return
    spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec("sitecustomize", there)
    if spec is None or spec.loader is None:
        return
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)  # what it raises is reported by site, as ever


def _chain_before_specs(there):
    """The same where the import system is not written in Python (2.7). This folder has nothing else for such a Python,
    so it leaves sys.path. That there is no other sitecustomize is an ImportError, of which site says nothing."""
    mine = sys.modules.pop("sitecustomize")  # kept until the end: a module that is freed loses its globals
    sys.path[:] = there
    __import__("sitecustomize")
    del mine


if __name__ == "sitecustomize":
    if sys.version_info >= (3, 8) and os.environ.get("HEC_SOCKET") and os.environ.get("HEC_HOOKS") != "0":
        sys.meta_path.insert(0, _Finder)
    os.putenv("HEC_HOOKS_PID", str(os.getpid()))  # for the tracer, which loads hooks where this file did not run
    _chain()
