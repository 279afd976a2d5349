"""Batches of data loaders on their way to the device: which tensors they have, and what the program's .to() and .cuda() do with them.
Shared by pin_memory and copy_ahead."""

import collections
import functools
import sys
import weakref
from typing import Any, Callable, Optional

from . import core
from .dataset import each_tensor

DEVICE = "cuda"
STAGED_BYTES = 1 << 20  # below that a copy costs less than what is done about it

_given: "dict[int, weakref.ref[Any]]" = {}  # pinned tensors of batches, by address
_copied: "list[tuple[weakref.ref[Any], int]]" = []  # those that were copied without waiting, and their version then
_shadowed: "dict[str, Any]" = {}
_users: "list[User]" = []
moving: "list[Callable[[Any, Any], Any]]" = []  # asked first; a tensor in answer is the copy


class User:
    """A lever that is in."""

    def __init__(self, lever: Any, revert: "Callable[[], None]") -> None:
        self.lever, self.revert = lever, revert

    def batch(self, iterator: Any, data: Any) -> Any:
        """What the program gets of a batch."""
        return data

    def given(self) -> None:
        """A batch with pinned tensors was given."""

    def moved(self) -> None:
        """A copy was made without waiting."""

    def written(self) -> None:
        self.lever.failed("the program wrote to a batch after it had copied it to the device")
        self.revert()

    def broke(self, error: Exception) -> None:
        self.lever.broke(error, self.revert)


def is_pinned(tensor: Any) -> bool:
    return bool(tensor.is_pinned())


def pin(tensor: Any) -> Any:
    return tensor.pin_memory()


def original(name: str) -> Any:
    """The method of tensors that is written in C."""
    return getattr(core.hooks.torch._C._TensorBase, name)


def capturing() -> bool:
    return bool(core.hooks.torch.cuda.is_current_stream_capturing())


def used() -> bool:
    """Whether this process has begun to use the device."""
    return bool(core.hooks.torch.cuda.is_initialized())


def plain(tensor: Any) -> bool:
    """One whose bytes alone make it up."""
    torch = core.hooks.torch
    return type(tensor) is torch.Tensor and tensor.layout == torch.strided and not tensor.requires_grad and tensor.numel() > 0


def pinned(data: Any, known: "Optional[dict[int, Any]]" = None, depth: int = 0) -> Any:
    """The batch with its tensors in pinned memory; what is not known to be a plain container stays as it is."""
    known = {} if known is None else known
    kind = type(data)
    if kind is core.hooks.torch.Tensor:
        if id(data) not in known:
            wanted = data.device.type == "cpu" and plain(data) and not is_pinned(data)
            known[id(data)] = pin(data) if wanted else data
        return known[id(data)]
    if depth == 6:
        return data
    if kind in (list, tuple):
        return kind([pinned(item, known, depth + 1) for item in data])
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*[pinned(item, known, depth + 1) for item in data])
    if kind in (dict, collections.OrderedDict):
        return kind((key, pinned(item, known, depth + 1)) for key, item in data.items())
    if isinstance(data, collections.UserDict):
        changed = data.copy() if kind is collections.UserDict else data.__copy__()
        changed.data = pinned(data.data, known, depth + 1)
        return changed
    return data


def give(data: Any) -> int:
    """A batch is handed to the program; returns how many pinned tensors it has."""
    count = 0
    for tensor in each_tensor(data):
        if plain(tensor) and tensor.device.type == "cpu" and is_pinned(tensor):
            key = id(tensor)
            _given[key] = weakref.ref(tensor, functools.partial(_gone, key))
            count += 1
    return count


def _gone(key: int, found: Any) -> None:
    if _given.get(key) is found:
        del _given[key]


def check() -> None:
    """At the next batch: none of the tensors that were copied without waiting has been written to."""
    for found, version in _copied:
        tensor = found()
        if tensor is not None and tensor._version != version:
            for user in list(_users):
                user.written()
            break
    _copied.clear()


def _target(name: str, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> Any:
    """The device of .to(device) and .cuda(device), also with non_blocking= but with nothing else, else None."""
    torch, kwargs = core.hooks.torch, _without_wait(kwargs)
    if len(args) + len(kwargs) > 1:
        return None
    device = args[0] if args else kwargs.get("device") if kwargs else None
    if device is None:
        return torch.device(DEVICE, torch.cuda.current_device()) if name == "cuda" and not kwargs else None
    if isinstance(device, int) and not isinstance(device, bool):
        device = torch.device(DEVICE, device)
    elif isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device) or device.type != DEVICE:
        return None
    return device if device.index is not None else torch.device(DEVICE, torch.cuda.current_device())


def _without_wait(kwargs: "dict[str, Any]") -> "dict[str, Any]":
    return {name: value for name, value in kwargs.items() if name != "non_blocking"}


def _staged(name: str, inner: Any, tensor: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> Any:
    """A large tensor in ordinary memory, from wherever: copied to pinned memory at once, and from there without waiting. The program
    may write to its own as soon as it has this, as ever."""
    try:
        pinned_copy = None
        if (
            plain(tensor)
            and tensor.numel() * tensor.element_size() >= STAGED_BYTES
            and tensor.device.type == "cpu"
            and used()
            and not core.hooks.in_mode()
            and not capturing()
            and _target(name, args, kwargs) is not None
            and not is_pinned(tensor)
        ):
            pinned_copy = pin(tensor)
    except Exception as error:
        for user in list(_users):
            user.broke(error)
    if pinned_copy is None:
        return inner(tensor, *args, **kwargs)
    for user in _users:
        user.moved()
    return inner(pinned_copy, *args, non_blocking=True, **_without_wait(kwargs))


def _make(name: str, inner: Any) -> Any:
    overrides = core.hooks.torch.overrides

    @functools.wraps(inner)
    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        if overrides.has_torch_function_unary(self):  # lazy parameters, fake tensors, modes: they know PyTorch's own method, not this
            return overrides.handle_torch_function(inner, (self,), self, *args, **kwargs)
        found = _given.get(id(self)) if _given else None
        if found is None or found() is not self:
            return inner(self, *args, **kwargs) if self.is_cuda else _staged(name, inner, self, args, kwargs)
        try:
            device = _target(name, args, kwargs)
            if device is not None:
                for ask in moving:
                    copy = ask(self, device)
                    if copy is not None:
                        _copied.append((found, self._version))
                        return copy
        except Exception as error:
            device = None
            for user in list(_users):
                user.broke(error)
        if device is None or not _users:
            return inner(self, *args, **kwargs)
        copy = inner(self, *args, non_blocking=True, **_without_wait(kwargs))
        _copied.append((found, self._version))
        for user in _users:
            user.moved()
        return copy

    return moved


def install(user: User) -> None:
    """torch.Tensor has these methods from its base: ours hide them."""
    tensor = core.hooks.torch.Tensor
    _users.append(user)
    for name in ("to", "cuda"):
        if name not in tensor.__dict__:
            _shadowed[name] = _make(name, original(name))
            setattr(tensor, name, _shadowed[name])
    _patched.install()


def remove(user: Optional[User]) -> None:
    if user in _users:
        _users.remove(user)  # type: ignore[arg-type]
    if _users:
        return
    tensor = core.hooks.torch.Tensor
    for name, wrapper in _shadowed.items():
        if tensor.__dict__.get(name) is wrapper:
            delattr(tensor, name)
    _shadowed.clear()
    _patched.remove()
    _given.clear()
    _copied.clear()


def _make_next(inner: Any) -> Any:
    @functools.wraps(inner)
    def __next__(self: Any) -> Any:
        data = inner(self)
        try:
            check()
            for user in list(_users):
                data = user.batch(self, data)
            if used() and give(data):
                for user in _users:
                    user.given()
        except Exception as error:
            for user in list(_users):
                user.broke(error)
        return data

    return __next__


_patched = core.Patches(
    lambda: [core.Patch(sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter, "__next__", _make_next)]
)
