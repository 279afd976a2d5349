"""What a data set holds: whether worker processes may have a copy of it, and whether it changed since the last look."""

import functools
import io
import random
import sys
import threading
import types
import zlib
from typing import Any, Optional

from . import core

_VISITS_MAX = 20000
_ITEMS_MAX = 32  # of a container that are looked into; of the others only which they are
_LENGTH_MAX = 100000
_BYTES_MAX = 1 << 20

_PLAIN = (int, float, complex, bool, str, bytes, type(None), range, slice, type(Ellipsis))
_CODE = (type, types.ModuleType, types.BuiltinFunctionType, type(functools.lru_cache(lambda: 0)))
_MEMORY = ("ImagingCore",)  # cannot be copied by Python, but is memory alone
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Look:
    """state: equal as long as it did not change, None where that cannot be seen; why: workers may not have a copy, "" if they may."""

    def __init__(self, *things: Any) -> None:
        self.why = ""
        self._exact = True
        self._found: "list[Any]" = []
        self._seen: "set[int]" = set()
        self._keep: "list[Any]" = []  # what was made by looking, so that its address is not used again
        waiting = list(things)
        while waiting and not self.why:
            if len(self._seen) > _VISITS_MAX:
                self._exact = False
                break
            waiting.extend(self._visit(waiting.pop()))
        self.known = tuple(self._found)
        self.state = self.known if self._exact and not self.why else None
        self._keep.clear()

    def _visit(self, value: Any) -> "list[Any]":
        """What it holds in turn."""
        kind = type(value)
        if kind in _PLAIN:
            self._found.append(hash(value) if kind in (str, bytes) else value)
            return []
        if id(value) in self._seen:
            return []
        self._seen.add(id(value))
        self._found.append(id(value))
        if isinstance(value, _LOCKS + _CODE):
            return []
        torch, numpy = core.hooks.torch, sys.modules.get("numpy")
        if isinstance(value, torch.Tensor):
            if value.device.type != "cpu":
                self.why = "it holds tensors on a device"
            self._found.append(value._version)
            return []
        if numpy is not None and isinstance(value, numpy.ndarray):
            self._array(value)
            return list(value.flat[:_ITEMS_MAX]) if value.dtype == object else []
        if isinstance(value, (random.Random, torch.Generator)) or (
            numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState))
        ):
            self.why = "it has a random generator of its own, of which all workers would have the same copy"
            return []
        if isinstance(value, io.IOBase):
            return self._file(value)
        if hasattr(kind, "__next__"):
            self.why = "it holds an iterator"
            return []
        return self._inside(value)

    def _inside(self, value: Any) -> "list[Any]":
        if isinstance(value, types.FunctionType):
            return [cell.cell_contents for cell in value.__closure__ or () if _full(cell)] + list(value.__defaults__ or ())
        if isinstance(value, types.MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, functools.partial):
            return [value.func, value.args, value.keywords]
        found: "list[Any]" = []
        if isinstance(value, dict):
            found += self._items(value.keys(), len(value)) + self._items(value.values(), len(value))
        elif isinstance(value, (list, tuple, set, frozenset)):
            found += self._items(value, len(value))
        inside = getattr(value, "__dict__", None)
        slots = [name for part in type(value).__mro__ for name in _words(part.__dict__.get("__slots__", ()))]
        if isinstance(inside, dict):
            found.append(inside)
        found += [getattr(value, name) for name in slots if hasattr(value, name) and name not in ("__dict__", "__weakref__")]
        if not isinstance(inside, dict) and not slots and not isinstance(value, (dict, list, tuple, set, frozenset)):
            self._opaque(value)
        return found

    def _items(self, items: Any, length: int) -> "list[Any]":
        self._found.append(length)
        if length > _LENGTH_MAX:
            self._exact = False
        else:
            self._found.append(hash(tuple(item if type(item) in (int, str) else id(item) for item in items)))
        return [item for _, item in zip(range(_ITEMS_MAX), items)]

    def _array(self, value: Any) -> None:
        step = max(1, value.size // 4096)
        part = value if value.nbytes <= _BYTES_MAX else value.reshape(-1)[::step] if value.flags.c_contiguous else None
        if part is None or value.dtype == object:
            self._exact = False
        else:
            self._found.append(zlib.crc32(part.tobytes()))

    def _file(self, value: Any) -> "list[Any]":
        if isinstance(value, (io.BytesIO, io.StringIO)):
            self._found.append(-1 if value.closed else value.tell())
        elif not value.closed:
            self.why = "it holds an open file, whose place all workers would share"
        return []

    def _opaque(self, value: Any) -> None:
        """Of another language: what it holds is not seen. What cannot be copied is something of this process."""
        self._exact = False
        try:
            value.__reduce_ex__(2)
        except Exception:
            if type(value).__name__ in _MEMORY:
                return
            self.why = "it holds a %s.%s, which processes cannot share" % (type(value).__module__, type(value).__name__)


def _full(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _words(names: Any) -> "tuple[str, ...]":
    return (names,) if isinstance(names, str) else tuple(names)


def random_states() -> "list[Any]":
    """Of the generators that any code may draw from."""
    states: "list[Any]" = [core.hooks.torch.get_rng_state().numpy().tobytes(), random.getstate()]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append(tuple(str(part) if not hasattr(part, "tobytes") else part.tobytes() for part in numpy.random.get_state()))
    return states


def each_tensor(data: Any, depth: int = 0) -> "list[Any]":
    """Those in nested lists, tuples and dicts."""
    if isinstance(data, core.hooks.torch.Tensor):
        return [data]
    if depth == 6 or isinstance(data, (str, bytes)):
        return []
    if isinstance(data, (list, tuple)):
        items: Any = data
    elif hasattr(data, "keys") and hasattr(data, "values"):
        items = list(data.values())
    else:
        return []
    return [tensor for item in items for tensor in each_tensor(item, depth + 1)]


def refusal(loader: Any) -> Optional[str]:
    """Why a loader without workers stays so, whatever its data set holds."""
    data = core.hooks.torch.utils.data
    pipes = tuple(getattr(data, name) for name in ("IterDataPipe", "MapDataPipe") if hasattr(data, name))
    if pipes and isinstance(loader.dataset, pipes):
        return "data pipes share themselves out"
    if isinstance(loader.dataset, data.IterableDataset):
        return "an IterableDataset that does not share itself out"
    if getattr(loader.sampler, "__next__", None) or getattr(loader.batch_sampler, "__next__", None):
        return "a sampler that is an iterator"
    return None
