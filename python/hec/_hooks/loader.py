"""Time inside the data loader, and the size of the batches it gives."""

import functools
import sys
from typing import Any, Optional

from . import batches, core, later, optimizers
from .steps import Deliveries

NAME = "the data loader"
_workers: Optional[int] = None  # that the loaders have; -1: not all the same number


def _note(iterator: Any, batch: Any, start_ns: int) -> None:
    if NAME in core.off:
        return
    end_ns = core.now_ns()
    known, size = None, None
    # without a batch size of its own the loader passes on what the data set gives: a batch, or a single sample
    if batch is not None and getattr(iterator, "_auto_collation", True):
        known = iterator.__dict__.get("_hec_hooks")
        if known is None:
            known = iterator.__dict__["_hec_hooks"] = Deliveries()
        wanted = getattr(getattr(iterator, "_index_sampler", None), "batch_size", None)
        size, known.as_list = batches.of_batch(batch, wanted, known.as_list)
    if core.notes:
        later.note((NAME, _delivered, known, size, start_ns, end_ns))
        if end_ns - later.since_ns > later.LATEST_NS:
            later.work_off(end_ns)
        return
    later.work_off(end_ns)
    if core.steady or core.may(NAME):
        _delivered(known, size, start_ns, end_ns)
    elif known is not None:
        optimizers.samples.delivered(known, size)
    core.spent(end_ns)


def _delivered(known: Optional[Deliveries], size: Optional[int], start_ns: int, end_ns: int) -> None:
    core.library.interval(b"data", start_ns, end_ns)
    if known is not None:
        optimizers.samples.delivered(known, size)


def _report_workers(loader: Any) -> None:
    """How many workers there are: what is needed is counted from that."""
    global _workers
    count = loader.num_workers
    if _workers in (count, -1) or not (core.steady or core.may(NAME)):
        return
    _workers = count if _workers is None else -1
    core.library.fact("loader_workers", "%d" % _workers)


def _make_next(inner: Any) -> Any:
    @functools.wraps(inner)
    def __next__(self: Any) -> Any:
        start_ns = core.now_ns()
        batch = None
        try:
            batch = inner(self)
            return batch
        finally:
            try:
                _note(self, batch, start_ns)
            except Exception as error:
                core.failed(NAME, error)

    return __next__


def _make_iter(inner: Any) -> Any:
    @functools.wraps(inner)
    def __iter__(self: Any) -> Any:
        start_ns = core.now_ns()
        iterator = inner(self)
        try:
            _note(self, None, start_ns)
            _report_workers(self)
        except Exception as error:
            core.failed(NAME, error)
        return iterator

    return __iter__


def _patches() -> "list[core.Patch]":
    module = sys.modules["torch.utils.data.dataloader"]
    return [
        core.Patch(module._BaseDataLoaderIter, "__next__", _make_next),
        core.Patch(module.DataLoader, "__iter__", _make_iter),
    ]


_patched = core.Patches(_patches)
install, remove = _patched.install, _patched.remove
