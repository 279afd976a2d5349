"""Loaders copy the next batch to the device, in a stream of their own, while this one is used.

For loaders with workers and pinned batches. Once all tensors of two batches in a row went to one device, the next batch is
taken as soon as it has come and copied; the program's .to() gets that copy. The stream of .to() waits for the copy, and the caching
allocator knows of its use there. The first copies are compared with the program's own."""

import functools
import sys
import weakref
from typing import Any, Optional

from . import core, moves, pin_memory
from .dataset import each_tensor
from .tally import Tally

FRAMEWORK = "torch"
_LEARNED = 2  # batches that went to one device as a whole
_COMPARED = 4  # tensors

_lever: Any = None
_tally: Any = None
_user: Any = None
_streams: "dict[Any, Any]" = {}
_watched: "dict[int, tuple[Any, _Batch]]" = {}  # tensors of the batch that the program has, by address: reference, batch


class _Batch:
    """Tensors that the program got together."""

    def __init__(self, state: "_State", data: Any) -> None:
        self.state, self.device = state, None
        self.copies: "dict[int, tuple[Any, Any, Any, int]]" = {}
        self.tensors = [weakref.ref(tensor) for tensor in each_tensor(data)]
        self.left = {id(tensor) for tensor in each_tensor(data)}

    def watch(self) -> None:
        for found in self.tensors:
            tensor = found()
            if tensor is not None:
                _watched[id(tensor)] = found, self

    def forget(self) -> None:
        """When the next one is given: whether all of it went to one device."""
        self.copies.clear()
        for key, (_, batch) in list(_watched.items()):
            if batch is self:
                del _watched[key]
        whole = self.tensors and not self.left and self.device not in (None, False)
        if not whole or self.device != self.state.device:
            self.state.whole, self.state.device = 0, self.device or None
        if whole:
            self.state.whole += 1


class _State:
    """Of one pass over a loader."""

    def __init__(self) -> None:
        self.whole = 0
        self.device: Any = None
        self.given: Optional[_Batch] = None
        self.held: "Optional[_Held]" = None


class _Held:
    """A batch, or the error in its place, that was taken before the program asked for it."""

    def __init__(self, due: int, data: Any = None, batch: Optional[_Batch] = None, error: Any = None) -> None:
        self.due, self.data, self.batch, self.error = due, data, batch, error


def copy(tensor: Any, device: Any) -> "tuple[Any, Any]":
    """The copy, and what tells that it is there."""
    cuda = core.hooks.torch.cuda
    if device not in _streams:
        _streams[device] = cuda.Stream(device)
    with cuda.stream(_streams[device]):
        found = _to(tensor, device, non_blocking=True)
        event = cuda.Event()
        event.record(_streams[device])
    return found, event


def take(found: Any, event: Any) -> None:
    """It is used in the current stream from here on."""
    stream = core.hooks.torch.cuda.current_stream(found.device)
    stream.wait_event(event)
    found.record_stream(stream)


def _moving(tensor: Any, device: Any) -> Any:
    found, batch = _watched.get(id(tensor), (None, None))
    if found is None or batch is None or found() is not tensor:
        return None
    batch.left.discard(id(tensor))
    batch.device = device if batch.device in (None, device) else False
    made = batch.copies.pop(id(tensor), None)
    if made is None:
        return None
    copied, event, there, version = made
    if version != tensor._version or there != device or moves.capturing():
        return None
    take(copied, event)
    if _tally.numbers.get("compared", 0) < _COMPARED:
        own = _to(tensor, device)
        if not _same(own, copied):
            _lever.failed("a copy made ahead differs from the program's")
            revert()
            return own
        _tally.add("compared")
    _tally.add("copies")
    return copied


def _same(one: Any, other: Any) -> bool:
    torch = core.hooks.torch
    if one.shape != other.shape or one.stride() != other.stride() or one.dtype != other.dtype:
        return False
    return bool(torch.equal(one.contiguous().reshape(-1).view(torch.uint8), other.contiguous().reshape(-1).view(torch.uint8)))


def _ready(iterator: Any) -> bool:
    """Whether the next batch is here: to take it does not wait."""
    due = iterator._rcvd_idx
    if len(iterator._task_info.get(due, ())) == 2:
        return True
    waiting = getattr(iterator._data_queue, "queue", None)  # of the thread that pins, which puts; nobody else takes
    return bool(waiting) and waiting[0][0] == due


def _ahead(iterator: Any, state: _State, inner: Any) -> None:
    torch = core.hooks.torch
    if state.whole < _LEARNED or not iterator._pin_memory or torch.is_inference_mode_enabled():
        return
    if moves.capturing() or not _ready(iterator):
        return
    try:
        data = inner(iterator)
        held = _Held(iterator._rcvd_idx, data, _Batch(state, data))
    except Exception as error:  # its turn comes
        # without the frames, which would keep the iterator: it has to end where the program drops it
        held = _Held(iterator._rcvd_idx, error=error.with_traceback(None))
    state.held = held
    found = weakref.ref(iterator)
    # the iterator's own, so that it is handed out also when the lever has been taken out
    iterator.__dict__["_next_data"] = lambda: _next(found(), inner)
    if held.batch is not None:
        for tensor in each_tensor(held.data):
            if moves.plain(tensor) and moves.is_pinned(tensor):
                held.batch.copies[id(tensor)] = (*copy(tensor, state.device), state.device, tensor._version)


def _next(iterator: Any, inner: Any) -> Any:
    """The next batch, and a look for the one after it."""
    state = iterator.__dict__.setdefault("_hec_ahead", _State())
    held, state.held = state.held, None
    iterator.__dict__.pop("_next_data", None)
    batch = None
    if held is not None and held.due == iterator._rcvd_idx:  # else another pass has begun
        data, batch, error, held = held.data, held.batch, held.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error
    else:
        data = inner(iterator)
    try:
        if state.given is not None:
            state.given.forget()
        state.given = batch or _Batch(state, data)
        if _user is not None:
            state.given.watch()
            _ahead(iterator, state, inner)
    except Exception as failure:
        _lever.broke(failure, revert)
    return data


def _make_next(inner: Any) -> Any:
    @functools.wraps(inner)
    def _next_data(self: Any) -> Any:
        return _next(self, inner)

    return _next_data


class _Silent(core.Lever):
    """That loaders pin is part of this lever."""

    def _say(self, state: str, text: str) -> None:
        if state == "failed":
            _lever.failed(text)


def _patches() -> "list[Any]":
    several = sys.modules["torch.utils.data.dataloader"]._MultiProcessingDataLoaderIter
    return [core.Patch(several, "_next_data", _make_next)]


_patched = core.Patches(_patches)
_to: Any = None


def _text(numbers: "dict[str, int]") -> str:
    return "%d copies made ahead, %d of them compared with the program's" % (
        numbers.get("copies", 0),
        numbers.get("compared", 0),
    )


def apply(lever: core.Lever) -> None:
    global _lever, _tally, _to, _user
    _lever, _to = lever, moves.original("to")
    if not core.hooks.torch.cuda.is_available():
        lever.nothing("no CUDA device")
        return
    _tally = Tally(lever, _text)
    _user = moves.User(lever, revert)
    if pin_memory.inactive():
        pin_memory.apply(_Silent(lever.name))
    _patched.install()
    moves.install(_user)
    moves.moving.append(_moving)


def revert() -> None:
    """A pass that holds a batch hands it out first."""
    global _user
    if _moving in moves.moving:
        moves.moving.remove(_moving)
    moves.remove(_user)
    _user = None
    if isinstance(pin_memory.lever(), _Silent):
        pin_memory.revert()
    _patched.remove()
    _watched.clear()
    if _tally is not None:
        _tally.close()
