"""Data loaders without workers, or with few, get worker processes.

A loader without workers keeps its iterator, which draws the random numbers of the main process and of the sampler as ever. The first
batch of its first pass is fetched in the main process: it shows whether workers may do that (docs/lever-hazards.md says when not). The
others come from workers in the same order. What fails in a worker is fetched again in the main process: an error of the program's is
raised there, as without workers; one that only workers have takes the lever out."""

import collections
import copy
import gc
import os
import sys
import traceback
import weakref
from typing import Any, Optional

from . import core, cpus
from .dataset import Look, each_tensor, random_states, refusal
from .tally import Tally

FRAMEWORK = "torch"
WORKERS_MAX = 8
_AHEAD = 2  # batches each worker works ahead, as PyTorch has it

_lever: Any = None
_tally: Any = None
_workers = 0
_known: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # loaders: their _Pool, or "" where there is none
_loader: Any = None  # torch.utils.data.dataloader


def _nobody() -> None:
    return None


class _Rest:
    """The sampler of the workers: what the iterator of the main process has not asked for yet."""

    def __init__(self) -> None:
        self.iterator: Any = _nobody  # whose pass it is
        self.pending: "collections.deque[Any]" = collections.deque()
        self.error: Optional[BaseException] = None

    def begin(self, iterator: Any) -> None:
        self.iterator, self.error = weakref.ref(iterator), None
        self.pending.clear()

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        iterator = self.iterator()
        if iterator is None or self.error is not None:
            raise StopIteration
        try:
            index = iterator._next_index()
        except StopIteration:
            raise
        except Exception as error:  # raised when its turn comes
            self.error = error
            raise StopIteration from None
        self.pending.append(index)
        return index


class _Pool:
    """The workers of one loader. They stay from pass to pass, while the data set does not change."""

    def __init__(self, loader: Any, count: int) -> None:
        self.rest = _Rest()
        self.workers: Any = None
        self.state: Any = None
        self.as_loader = copy.copy(loader)
        started = loader.worker_init_fn

        def start(worker: int) -> None:
            gc.freeze()  # what the main process has is not freed here: it may be on a device
            if started is not None:
                started(worker)

        self.as_loader.__dict__.update(
            {
                "num_workers": count,
                "prefetch_factor": _AHEAD,
                "persistent_workers": True,
                "worker_init_fn": start,
                "_DataLoader__multiprocessing_context": core.hooks.torch.multiprocessing.get_context("fork"),
                "batch_sampler" if loader.batch_sampler is not None else "sampler": self.rest,
            }
        )

    def begin(self, iterator: Any, state: Any) -> None:
        self.rest.begin(iterator)
        if self.workers is not None and (state is None or state != self.state):
            self.close()
        self.state = state
        if self.workers is not None:
            self.workers._reset(self.as_loader)
            return
        # random numbers that belong to the workers alone
        self.as_loader.__dict__["generator"] = core.hooks.torch.Generator().manual_seed(iterator._base_seed)
        signals = _loader._utils.signal_handling
        installed, signals._SIGCHLD_handler_set = signals._SIGCHLD_handler_set, True
        try:
            # a worker that dies is found when its batch is due: PyTorch's handler would raise anywhere in the program
            with core.quietly():
                self.workers = _loader._MultiProcessingDataLoaderIter(self.as_loader)
            signals._remove_worker_pids(id(self.workers))
            self.workers._worker_pids_set = False
        finally:
            signals._SIGCHLD_handler_set = installed
        core.hooks.library.fact("loader_workers", "%d" % self.as_loader.num_workers)

    def close(self) -> None:
        workers, self.workers = self.workers, None
        if workers is not None:
            workers._shutdown_workers()


class _Pass:
    """One pass over a loader, in place of the _next_data of its iterator."""

    def __init__(self, loader: Any, iterator: Any) -> None:
        self.loader, self.iterator = loader, weakref.ref(iterator)  # the program may drop the loader
        self.pool: Optional[_Pool] = _known.get(loader)
        self.first = True
        self.watched = (loader.dataset, loader.collate_fn)

    def next_data(self) -> Any:
        iterator = self.iterator()
        if self.first:
            self.first = False
            if self.pool is None:
                return self._first(iterator)
            self._again(iterator)
        if self.pool is None or self.pool.workers is None:
            return self._here(iterator)
        failure = failed_sampler = None
        try:
            data = self.pool.workers._next_data()
        except StopIteration:
            rest, self.pool = self.pool.rest, None
            rest.iterator = _nobody
            if rest.error is None:
                raise
            failed_sampler, rest.error = rest.error, None
        except Exception as error:
            if not _of_workers(error):
                raise
            failure = error.with_traceback(None)
        if failed_sampler is not None:
            try:
                raise failed_sampler
            finally:
                del failed_sampler  # and with it the frames, which would keep the iterator
        if failure is not None:
            data = self._here(iterator)  # an error of the program's is raised once more, as its own
            self._failed(failure)
            return data
        self.pool.rest.pending.popleft()
        _tally.add("batches")
        return data

    def _again(self, iterator: Any) -> None:
        """Another pass. Not before its first batch is asked for: until then the sampler draws no random numbers."""
        pool, self.pool = self.pool, None
        if pool is None or pool.rest.iterator() is not None:  # another pass is under way
            return
        look = Look(*self.watched)
        try:
            if look.why:
                pool.close()
                _refuse(self.loader, look.why)
            else:
                pool.begin(iterator, look.state)
                self.pool = pool
        except Exception as error:
            self._failed(error)

    def _here(self, iterator: Any) -> Any:
        pending = self.pool.rest.pending if self.pool is not None else None
        return self._fetch(iterator, pending.popleft() if pending else iterator._next_index())

    @staticmethod
    def _fetch(iterator: Any, index: Any) -> Any:
        data = iterator._dataset_fetcher.fetch(index)
        if iterator._pin_memory:
            data = _loader._utils.pin_memory.pin_memory(data, iterator._pin_memory_device)
        return data

    def _first(self, iterator: Any) -> Any:
        index = iterator._next_index()
        look, states = Look(*self.watched), random_states()
        on_device = core.hooks.torch.cuda.is_initialized()
        data = self._fetch(iterator, index)
        loader, draws = self.loader, states != random_states()
        try:
            if look.why:
                why = look.why
            elif Look(*self.watched).known != look.known:
                why = "its data set changes as it is read"
            elif core.hooks.torch.cuda.is_initialized() != on_device:
                why = "its data set uses a device"
            elif any(tensor.device.type != "cpu" for tensor in each_tensor(data)):
                why = "its batches are on a device"
            else:
                why = self._start(loader, iterator, data, look)
                if draws and not why:
                    _tally.add("draws")
            if why:
                _refuse(loader, why)
        except Exception as error:
            self._failed(error)
        return data

    def _start(self, loader: Any, iterator: Any, data: Any, look: Look) -> str:
        try:
            count = min(_workers, len(loader) - 1)
        except TypeError:
            count = _workers
        if count < 1:
            return "passes of a single batch"
        size = sum(tensor.numel() * tensor.element_size() for tensor in each_tensor(data))
        room = cpus.shared_memory_bytes() // 2
        count = min(count, int((room // max(1, size) - 1) // _AHEAD))
        if count < 1:
            return "/dev/shm has no room for two batches of %d MB" % (size >> 20)
        pool = _Pool(loader, count)
        pool.begin(iterator, look.state)
        _known[loader] = self.pool = pool
        _tally.numbers["workers"] = max(count, _tally.numbers.get("workers", 0))
        _tally.add("loaders")
        return ""

    def _failed(self, error: Exception) -> None:
        text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
        _lever.failed("in workers: %s" % (text[-1] if text else type(error).__name__))
        revert()


def _of_workers(error: BaseException) -> bool:
    """Not one that a signal handler of the program raised while this process waited."""
    here, standard = os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.__file__)
    folders = (here, os.path.dirname(core.hooks.torch.__file__))
    step = error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if not name.startswith(folders) and (not name.startswith(standard) or "-packages" in name):
            return False
        step = step.tb_next
    return True


def _refuse(loader: Any, why: str) -> None:
    _known[loader] = ""
    _lever.nothing(why)


def _begin(loader: Any, iterator: Any) -> None:
    if loader not in _known:
        why = refusal(loader)
        if why or not hasattr(iterator, "_dataset_fetcher"):
            _refuse(loader, why or "a loader of another kind")
    if _known.get(loader) != "":
        iterator._next_data = _Pass(loader, iterator).next_data


def _make_get_iterator(inner: Any) -> Any:
    def _get_iterator(self: Any) -> Any:
        if sys.modules["multiprocessing"].current_process().daemon:  # cannot have children
            return inner(self)
        if self.num_workers >= _workers:
            _lever.already("a loader with %d workers" % self.num_workers)
            return inner(self)
        if self.num_workers > 0:
            return _more(self, inner)
        iterator = inner(self)
        try:
            _begin(self, iterator)
        except Exception as error:
            _lever.broke(error, revert)
        return iterator

    return _get_iterator


def _more(loader: Any, inner: Any) -> Any:
    """A loader that has workers: it is the program's, with more of them."""
    had = loader.num_workers
    if refusal(loader):
        _lever.nothing(refusal(loader) or "")
        return inner(loader)
    try:
        loader.num_workers = _workers
        with core.quietly():
            iterator = inner(loader)
    finally:
        loader.num_workers = had
    _tally.numbers["workers"] = _workers
    _tally.add("loaders")
    return iterator


def _text(numbers: "dict[str, int]") -> str:
    text = "%d loaders with up to %d workers" % (numbers.get("loaders", 0), numbers.get("workers", 0))
    if numbers.get("batches"):  # not of those that had some
        text += ", %d batches from them" % numbers["batches"]
    return text + ("; samples draw random numbers: others than in one process" if numbers.get("draws") else "")


def _patches() -> "list[Any]":
    return [core.Patch(_loader.DataLoader, "_get_iterator", _make_get_iterator)]


_patched = core.Patches(_patches)


def apply(lever: core.Lever) -> None:
    global _lever, _tally, _workers, _loader
    _lever, _loader = lever, sys.modules["torch.utils.data.dataloader"]
    _workers = int(lever.value) if lever.value else min(WORKERS_MAX, int(cpus.usable() / cpus.local_ranks()) - 1)
    if _workers < 1:
        lever.nothing("no CPU is free for a worker")
        return
    _tally = Tally(lever, _text)
    _patched.install()


def revert() -> None:
    _patched.remove()
    for pool in list(_known.values()):
        if isinstance(pool, _Pool):
            pool.close()  # a pass under way goes on in the main process, with what it has not got yet
    _known.clear()
    if _tally is not None:
        _tally.close()
