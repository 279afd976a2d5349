"""The loss of each step: the scalar that a backward pass starts from.

Nothing waits for the device. A loss on the CPU is read at once. One on a GPU is kept, detached, and a few times a second
those kept are stacked and copied to pinned memory behind the work already queued; they are reported when an event says
that the copy is there, at a later backward pass."""

import functools
import os
import weakref
from typing import Any, Optional

from . import core, optimizers

NAME = "the loss"

ALL = os.environ.get("HEC_HOOKS_LOSSES") == "all"  # an experiment compares them step by step
INTERVAL_NS = 0 if ALL else 100_000_000  # between two losses of a fast loop
FLUSH_NS = 100_000_000 if ALL else 500_000_000  # what an experiment ends loses the last of them
KEPT_MAX = 512 if ALL else 64

_last_ns = 0
_last_flush_ns = 0
_kept: "list[tuple[int, Any]]" = []  # time, scalar on a GPU: all of one device, stream and type
_kept_of: Optional[tuple] = None
_flight: Optional[tuple] = None  # times, pinned memory, event
_buffers: "dict[Any, Any]" = {}
_scaled: Optional[tuple] = None  # weak reference to a loss that GradScaler scaled, the loss itself
_left: "list[Any]" = []  # in a forked child: what must not be freed there


def _value_of(tensors: Any) -> Optional[Any]:
    """The scalar, detached; None when there is none, or it is of a kind that nobody should touch."""
    torch = core.torch
    loss = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors
    if type(loss) is not torch.Tensor or loss.numel() != 1 or not loss.is_floating_point():
        return None
    if _scaled is not None and _scaled[0]() is loss:
        loss = _scaled[1]
    return loss.detach()


def _note(tensors: Any) -> None:
    global _last_ns
    t_ns = core.now_ns()
    optimizers.passed_back(t_ns)
    if not core.steady and not core.may(NAME):
        return
    if t_ns - _last_ns >= INTERVAL_NS and not core.in_mode():
        with core.torch._C.DisableTorchFunction():
            loss = _value_of(tensors)
        if loss is not None:
            _last_ns = t_ns
            kind = loss.device.type
            if kind == "cpu":
                core.library.value(b"loss", loss.item(), t_ns)
            elif kind == "cuda":
                _keep(loss, t_ns)
    if _kept or _flight:
        _flush(t_ns)
    core.spent(t_ns)


def _stream(device: int) -> int:
    return core.torch._C._cuda_getCurrentRawStream(device)


def _keep(loss: Any, t_ns: int) -> None:
    global _kept_of
    if core.torch.cuda.is_current_stream_capturing():
        return  # its memory belongs to the graph
    of = (loss.device.index, _stream(loss.device.index), loss.dtype)
    if of != _kept_of:
        _kept.clear()
        _kept_of = of
    if len(_kept) < KEPT_MAX:
        _kept.append((t_ns, loss.reshape(())))


def _land() -> bool:
    """Report the losses whose copy has arrived. False: one is still on its way."""
    global _flight
    if _flight is None:
        return True
    times, memory, event = _flight
    if not event.query():
        return False
    _flight = None
    for t_ns, value in zip(times, memory.tolist()):
        core.library.value(b"loss", value, t_ns)
    return True


def _flush(t_ns: int, force: bool = False) -> None:
    global _flight, _last_flush_ns
    torch = core.torch
    if not force and t_ns - _last_flush_ns < FLUSH_NS:
        return
    _last_flush_ns = t_ns
    if not _land() or not _kept or core.profiling or _kept_of is None:
        return
    device, stream, dtype = _kept_of
    if (
        torch.cuda.current_device() != device
        or _stream(device) != stream
        or torch.cuda.is_current_stream_capturing()
        or core.in_mode()
    ):
        return
    buffer = _buffers.get(dtype)
    if buffer is None:
        buffer = _buffers[dtype] = torch.empty(KEPT_MAX, dtype=dtype, device="cpu", pin_memory=True)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        memory = buffer[: len(_kept)]
        memory.copy_(torch.stack([loss for _, loss in _kept]), non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    _flight = ([kept_ns for kept_ns, _ in _kept], memory, event)
    _kept.clear()


def finish() -> None:
    """At the end of the program: the last ones, if they come within 20 ms."""
    if not _kept and _flight is None:
        return
    import time

    t_ns = core.now_ns()
    for _ in range(2):
        while not _land() and core.now_ns() - t_ns < 20_000_000:
            time.sleep(0.0005)
        if _flight is None:
            _flush(t_ns, force=True)


def forked() -> None:
    """CUDA is of no use in a forked child; its objects are not even freed there."""
    global _flight, _kept_of, _scaled
    _left.extend([list(_kept), _flight, dict(_buffers), _scaled])
    _kept.clear()
    _buffers.clear()
    _flight = _kept_of = _scaled = None


def _make_backward(inner: Any) -> Any:
    @functools.wraps(inner)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_compiling():
            try:
                _note(tensors)
            except Exception as error:
                core.failed(NAME, error)
        return inner(tensors, *args, **kwargs)

    return backward


def _make_scale(inner: Any) -> Any:
    @functools.wraps(inner)
    def scale(self: Any, outputs: Any) -> Any:
        global _scaled
        result = inner(self, outputs)
        try:
            if isinstance(outputs, core.torch.Tensor) and result is not outputs and outputs.numel() == 1:
                _scaled = (weakref.ref(result), outputs.detach())
        except Exception as error:
            core.failed(NAME, error)
        return result

    return scale


_is_compiling = core.is_compiling


def _patches() -> "list[core.Patch]":
    torch = core.torch
    found = [core.Patch(torch.autograd, "backward", _make_backward)]
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
    if "scale" in scaler.__dict__:
        found.append(core.Patch(scaler, "scale", _make_scale))
    return found


_patched = core.Patches(_patches)


def install() -> None:
    global _is_compiling
    _is_compiling = core.find_is_compiling()
    _patched.install()


remove = _patched.remove
