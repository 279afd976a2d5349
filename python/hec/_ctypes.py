"""The binding to libhec.so.0; imported only when HEC is running."""

import ctypes
import math
import os
from typing import Any, Callable, Dict, Optional

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def _candidates() -> "list[str]":
    """Where libhec.so.0 may be, best first: HEC_LIB, beside this package, the tree it was installed in, the system."""
    named = os.environ.get("HEC_LIB")
    found = [named] if named else []
    # `make install` links the package, and the build tree links the folder above it
    for file in (os.path.abspath(__file__), os.path.realpath(__file__)):
        package = os.path.dirname(file)
        # PREFIX/share/hec/python/hec and PREFIX/lib
        prefix = os.path.normpath(os.path.join(package, "..", "..", "..", ".."))
        found.append(os.path.join(package, "libhec.so.0"))
        if package == os.path.join(prefix, "share", "hec", "python", "hec"):
            found.append(os.path.join(prefix, "lib", "libhec.so.0"))
    found.append("libhec.so.0")
    return found


def _whole(least: float, most: float) -> "tuple[int, int]":
    """The integers between the two; of a nan none."""
    if least != least or most != most:
        return 1, 0
    inside = math.ceil(max(least, _INT64_MIN)), math.floor(min(most, _INT64_MAX))
    return min(inside[0], _INT64_MAX), max(inside[1], _INT64_MIN)


def _within(knob: "Callable[[bytes, Any], Any]") -> "Callable[..., Any]":
    def read(key: bytes, default: Any, least: Any, most: Any) -> Any:
        value = knob(key, default)
        return default if least <= default <= most and not least <= value <= most else value

    return read


class Library:
    """libhec.so.0 with the argument types declared. No method raises."""

    def __init__(self, path: str) -> None:
        # PyDLL keeps the GIL: the calls take less time than giving it up and taking it back
        library = ctypes.PyDLL(path)
        text, number = ctypes.c_char_p, ctypes.c_double

        def function(name: str, result: Any, *arguments: Any) -> Any:
            bound = getattr(library, name)
            bound.restype = result
            bound.argtypes = arguments
            return bound

        self._active = function("hec_mark_active", ctypes.c_int)
        self._step = function("hec_mark_step", ctypes.c_int, text, number)
        self._units = function("hec_mark_units", ctypes.c_int, text, number)
        self._begin = function("hec_mark_phase_begin", ctypes.c_int, text)
        self._end = function("hec_mark_phase_end", ctypes.c_int, text)
        self._knob_int = function("hec_knob_int", ctypes.c_int64, text, ctypes.c_int64)
        self._knob_double = function("hec_knob_double", number, text, number)
        self._knob_text = function("hec_knob_text", text, text, text)
        try:
            whole = ctypes.c_int64
            self._knob_int_in = function("hec_knob_int_in", whole, text, whole, whole, whole)
            self._knob_double_in = function("hec_knob_double_in", number, text, number, number, number)
        except AttributeError:  # a libhec.so.0 of before: it cannot report a range, which counts all the same
            self._knob_int_in, self._knob_double_in = _within(self._knob_int), _within(self._knob_double)
        self._bytes: Dict[str, bytes] = {}

    def _name(self, name: str) -> bytes:
        """UTF-8 of a name, remembered for the first few hundred: programs use the same ones again and again."""
        known = self._bytes.get(name)
        if known is None:
            known = str(name).encode("utf-8", "replace")
            if len(self._bytes) < 512:
                self._bytes[name] = known
        return known

    def active(self) -> bool:
        return bool(self._active())

    def step(self, count: Optional[float], named: "Dict[str, float]") -> None:
        try:
            if not named:
                self._step(None, 1.0 if count is None else count)
                return
            first = count is None
            if count is not None:
                self._step(None, count)
            for name, value in named.items():
                unit = self._name(name[:-1] if len(name) > 1 and name.endswith("s") else name)
                (self._step if first else self._units)(unit, value)
                first = False
        except Exception:
            pass

    def units(self, name: str, count: float) -> None:
        try:
            self._units(self._name(name), count)
        except Exception:
            pass

    def phase_begin(self, name: str) -> None:
        try:
            self._begin(self._name(name))
        except Exception:
            pass

    def phase_end(self, name: str) -> None:
        try:
            self._end(self._name(name))
        except Exception:
            pass

    def knob(self, name: str, default: Any, least: Any, most: Any) -> Any:
        try:
            key = self._name(name)
            ranged = least is not None and most is not None
            if isinstance(default, bool):
                return bool(self._knob_int(key, int(default)))
            if isinstance(default, int):
                if not _INT64_MIN <= default <= _INT64_MAX:
                    return default
                if not ranged:
                    return self._knob_int(key, default)
                return self._knob_int_in(key, default, *_whole(least, most))
            if isinstance(default, float):
                return self._knob_double_in(key, default, least, most) if ranged else self._knob_double(key, default)
            if isinstance(default, str):
                given = default.encode("utf-8")
                value = self._knob_text(key, given)
                return default if value is None or value == given else value.decode("utf-8", "replace")
        except Exception:
            pass
        return default


def load() -> Optional[Library]:
    """The first library that loads and has every function, else None."""
    for path in _candidates():
        try:
            return Library(path)
        except (OSError, AttributeError):
            continue
    return None
