"""torch.profiler: libhectrace.so stands down while it is on, and no other hook launches anything on the device."""

import ctypes
import functools
import os
from typing import Any

from . import core

NAME = "torch.profiler"


def tracer(bind: Any = ctypes.CDLL) -> Any:
    """libhectrace.so, when it is loaded in this process; never loads it."""
    path = os.environ.get("CUDA_INJECTION64_PATH", "")
    if os.path.basename(path) != "libhectrace.so":
        return None
    try:
        return bind(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def _stand_down() -> None:
    if not core.profiling:
        core.profiling = True
        loaded = tracer()
        if loaded is not None:
            loaded.hec_trace_stand_down(b"torch.profiler")


def _come_back() -> None:
    if core.profiling:
        core.profiling = False
        loaded = tracer()
        if loaded is not None:
            loaded.hec_trace_come_back()


def _before(inner: Any) -> Any:
    @functools.wraps(inner)
    def start(*args: Any, **kwargs: Any) -> Any:
        core.guard(NAME, _stand_down)
        return inner(*args, **kwargs)

    return start


def _after(inner: Any) -> Any:
    @functools.wraps(inner)
    def stop(*args: Any, **kwargs: Any) -> Any:
        try:
            return inner(*args, **kwargs)
        finally:
            core.guard(NAME, _come_back)

    return stop


def _patches() -> "list[core.Patch]":
    module = core.torch.autograd.profiler
    return [
        core.Patch(module, "_prepare_profiler", _before),
        core.Patch(module, "_enable_profiler", _before),
        core.Patch(module, "_disable_profiler", _after),
    ]


_patched = core.Patches(_patches)
install, remove = _patched.install, _patched.remove
