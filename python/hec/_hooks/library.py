"""The binding to the functions of libhec.so.0 that are for the hooks (src/mark/hooks.h)."""

import _ctypes
import ctypes
import os
from typing import Any, Optional

OPTIMIZER, MODULE = 1, 2
STACKS_UNKNOWN, STACKS_OUTSIDE, STACKS_INSIDE = 0, 1, 2
UNKNOWN = float("nan")


class Library:
    def __init__(self, path: str) -> None:
        # PyDLL keeps the GIL: the calls take less time than giving it up and taking it back
        bound = ctypes.PyDLL(path)
        text, number, i64, u32 = ctypes.c_char_p, ctypes.c_double, ctypes.c_int64, ctypes.c_uint32

        def function(name: str, *arguments: Any) -> Any:
            found = getattr(bound, name)
            found.restype, found.argtypes = ctypes.c_int, arguments
            return found

        self.active = function("hec_mark_active")
        self.step = function("hec_hook_step", text, number, u32, i64)
        self._value = function("hec_hook_value", text, number, i64)
        self._interval = function("hec_hook_interval", text, i64, i64)
        self._frame = function("hec_hook_frame", u32, u32, u32, text, text, u32)
        self.stack = function("hec_hook_stack", u32, u32, u32, u32)
        self._fact = function("hec_hook_fact", text, text)
        self.window = function("hec_hook_window")
        self.stacks = function("hec_hook_stacks")

    def value(self, name: bytes, value: float, t_ns: int) -> None:
        self._value(name, value, t_ns)

    def interval(self, name: bytes, start_ns: int, end_ns: int) -> None:
        self._interval(name, start_ns, end_ns - start_ns)

    def frame(self, window: int, node: int, parent: int, file: str, function: str, line: int) -> int:
        return self._frame(window, node, parent, _bytes(file), _bytes(function), line)

    def fact(self, key: str, text: str) -> None:
        self._fact(_bytes(key), _bytes(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").replace(b"\0", b"?")


def has_cuda() -> bool:
    """Whether this process has loaded the CUDA driver."""
    try:
        handle = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)._handle
    except OSError:
        return False
    _ctypes.dlclose(handle)  # looking took a reference
    return True


def load() -> Optional[Library]:
    """HEC_LIB, which `hec run` sets, or nothing. Nothing is reported yet of this process."""
    try:
        return Library(os.environ["HEC_LIB"])
    except (KeyError, OSError, AttributeError):
        return None
