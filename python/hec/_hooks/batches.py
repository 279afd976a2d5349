"""How many samples are in a batch, by its shape only: nothing is read from a device."""

import sys
from typing import Any, Callable, Optional

from . import core

_Tensor: Any = None
_Proxy: Any = ()  # what torch.fx traces with: it takes each question for a call of the program
_modes: Callable[[], int] = lambda: 1  # how many modes of the program are active; 1 where nobody knows

_ITEMS_MAX = 8
_DEPTH_MAX = 4


def install() -> None:
    global _Tensor, _Proxy, _modes
    _Tensor = core.torch.Tensor
    _Proxy = getattr(sys.modules.get("torch.fx"), "Proxy", ())
    _modes = getattr(core.torch._C, "_len_torch_function_stack", _modes)


def _shaped(value: Any) -> Optional[int]:
    """The first dimension of a tensor or an array; None for anything else, and for scalars. An object that answers to any name
    is not asked: only what its type has."""
    shape = getattr(value, "shape", None) if hasattr(type(value), "shape") else None
    return int(shape[0]) if isinstance(shape, tuple) and shape and isinstance(shape[0], int) else None


def first_dimension(value: Any, depth: int = 0) -> Optional[int]:
    """Of the first tensor found in nested lists, tuples and dicts."""
    if isinstance(value, core.torch.Tensor):
        return _shaped(value)
    if depth == _DEPTH_MAX or isinstance(value, (str, bytes)) or isinstance(value, _Proxy):
        return None
    if isinstance(value, (list, tuple)):
        items: Any = value[:_ITEMS_MAX]
    elif isinstance(value, dict) or (hasattr(type(value), "keys") and hasattr(type(value), "values")):
        items = list(value.values())[:_ITEMS_MAX]
    else:
        return _shaped(value)
    for item in items:
        size = first_dimension(item, depth + 1)
        if size is not None:
            return size
    return None


def list_length(value: Any, depth: int = 0) -> Optional[int]:
    """Of the first innermost list: the samples of a collate function that does not stack them."""
    if not isinstance(value, (list, tuple)) or not value or depth == _DEPTH_MAX:
        return None
    inner = list_length(value[0], depth + 1)
    return len(value) if inner is None else inner


def sequence_first(module: Any) -> bool:
    """Whether a part of it takes (sequence, batch, ...), as nn.LSTM and nn.Transformer do unless asked otherwise."""
    return any(getattr(part, "batch_first", None) is False for part in module.modules())


def of_arguments(args: tuple, kwargs: dict, sequences: bool = False) -> Optional[int]:
    """sequences: the first dimension may be the sequence's length; then only that of images (four dimensions) counts."""
    if args and type(args[0]) is _Tensor and not _modes():  # nobody else sees us look at such a tensor
        shape = args[0].shape
        if shape:
            return None if sequences and len(shape) < 4 else shape[0]
    if sequences:
        return None
    with core.torch._C.DisableTorchFunction():  # a mode of the program does not see us look
        for value in args[:_ITEMS_MAX]:
            size = first_dimension(value, 1)
            if size is not None:
                return size
        return first_dimension(kwargs, 1) if kwargs else None


def of_batch(batch: Any, wanted: Any, as_list: Optional[bool]) -> "tuple[Optional[int], Optional[bool]]":
    """The size, and whether batches of this loader are lists of samples; wanted: its batch size, None unknown."""
    with core.torch._C.DisableTorchFunction():
        size = first_dimension(batch)
    if as_list is None and isinstance(wanted, int) and size != wanted:
        as_list = list_length(batch) == wanted
    return (list_length(batch) if as_list else size), as_list
