"""torch.save to a file copies the state, and a thread writes it behind the next steps.

torch.save itself runs as ever, but on a recorder in place of the file: what it would write is kept, with storages of a device copied
to pinned memory behind the work already queued. A thread waits for the copies, writes the same records to a file in a folder beside
the path, and renames it over the path once it is on disk: at the path there is the old file or the new one, each whole. behind.py has
the rest of the program wait where it looks at the path before that."""

import ctypes
import functools
import os
import socket
import threading
from typing import Any, Optional

from . import behind, core, cpus
from .tally import Tally

FRAMEWORK = "torch"

_lever: Any = None
_tally: Any = None
_saving = threading.local()
_serial = 0


class _Unfit(Exception):
    """Of what torch.save does here the recorder knows too little: it is done again, as without the lever."""


def _or_unfit(function: Any) -> Any:
    """What goes wrong here is not the program's."""

    @functools.wraps(function)
    def guarded(*args: Any) -> Any:
        try:
            return function(*args)
        except _Unfit:
            raise
        except Exception as error:
            raise _Unfit("%s: %s" % (type(error).__name__, error)) from None

    return guarded


class Recorder:
    """Takes the records of one torch.save, in place of PyTorchFileWriter."""

    def __init__(self, room: int) -> None:
        self.records: "list[tuple[Any, ...]]" = []
        self.room, self.bytes = room, 0
        self.copies: "dict[int, Any]" = {}  # storages that came from a device, by address
        self.events: "list[Any]" = []

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise _Unfit("torch.save uses %s" % name)

    @_or_unfit
    def write_record(self, name: str, data: Any, size: int) -> None:
        if isinstance(data, (str, bytes)):
            self.records.append((name, data, size))
            return
        address = data if isinstance(data, int) else data.data_ptr()
        kept = self.copies.get(address)
        if kept is None:
            if size and not address:
                raise _Unfit("a storage without data")
            self.take(size)
            kept = _copy_bytes(address, size)
        self.records.append((name, kept, size))

    def take(self, size: int) -> None:
        self.bytes += size
        if self.bytes > self.room:
            raise _Unfit("no memory for a copy of the state")

    @_or_unfit
    def from_device(self, storage: Any) -> Any:
        """In place of storage.cpu(): a copy in pinned memory, not there yet."""
        torch = core.hooks.torch
        size = storage.nbytes()
        self.take(size)
        source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(_untyped(storage))
        target = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        target.copy_(source, non_blocking=True)
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(storage.device))
        self.events.append(event)
        self.copies[target.data_ptr()] = _untyped_of(target)
        return self.copies[target.data_ptr()]

    def write(self, path: str) -> None:
        """The file, as torch.save would have written it."""
        torch = core.hooks.torch
        for event in self.events:
            event.synchronize()
        with torch.serialization._open_zipfile_writer(path) as writer:
            for name, data, size in self.records:
                if not isinstance(data, (str, bytes)) and not _takes_storages():
                    data = data.data_ptr()
                writer.write_record(name, data, size)


def _untyped(storage: Any) -> Any:
    return storage.untyped() if hasattr(storage, "untyped") else storage


def _untyped_of(tensor: Any) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


def _copy_bytes(address: int, size: int) -> Any:
    copy = _untyped_of(core.hooks.torch.empty(size, dtype=core.hooks.torch.uint8))
    ctypes.memmove(copy.data_ptr(), address, size)  # without the GIL
    return copy


@functools.lru_cache(None)
def _takes_storages() -> bool:
    """PyTorch 2.3 and newer; before, the address of one."""
    return "Storage" in (core.hooks.torch._C.PyTorchFileWriter.write_record.__doc__ or "")


class _Write:
    """One save: from the copy of the state to the file at its path."""

    def __init__(self, path: str, recorder: Recorder) -> None:
        global _serial
        _serial += 1
        self.path = os.path.realpath(path)
        folder, name = os.path.split(self.path)
        self.recorder: Optional[Recorder] = recorder
        _drop_left_over(folder)
        # a folder of its own: the names of the records have the file's in them
        self.folder = os.path.join(folder, "%s%d.%d" % (_prefix(), os.getpid(), _serial))
        self.mode = os.stat(self.path).st_mode & 0o7777 if os.path.exists(self.path) else None
        os.mkdir(self.folder, 0o700)
        self.temporary = os.path.join(self.folder, name)

    def run(self) -> None:
        try:
            assert self.recorder is not None
            self.recorder.write(self.temporary)
            self.recorder = None
            with open(self.temporary, "rb") as file:
                os.fsync(file.fileno())
            if self.mode is not None:
                os.chmod(self.temporary, self.mode)
            os.replace(self.temporary, self.path)
            with behind.opened(os.path.dirname(self.path)) as folder:
                os.fsync(folder)
        finally:
            self.recorder = None
            self.drop()

    def drop(self) -> None:
        _drop(self.folder)


def _drop(folder: str) -> None:
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        pass


def _prefix() -> str:
    return ".hec-save.%s." % socket.gethostname()


def _drop_left_over(folder: str) -> None:
    """Of processes of this machine that were killed while they wrote."""
    for name in os.listdir(folder):
        if name.startswith(_prefix()):
            pid = name[len(_prefix()) :].split(".")[0]
            if pid.isdigit() and int(pid) != os.getpid() and not os.path.exists("/proc/" + pid):
                _drop(os.path.join(folder, name))


def _path_of(args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> Optional[str]:
    """Of torch.save(state, path) without anything else, where a file can be renamed to."""
    if len(args) + len(kwargs) != 2 or set(kwargs) - {"obj", "f"}:
        return None
    path = kwargs.get("f", args[1] if len(args) > 1 else args[0] if "obj" in kwargs else None)
    if not isinstance(path, (str, os.PathLike)):
        return None
    path = os.fspath(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not isinstance(path, str) or not os.access(folder, os.W_OK | os.X_OK):
        return None
    if os.path.lexists(path) and not (os.path.isfile(path) and os.stat(path).st_nlink == 1 and os.access(path, os.W_OK)):
        return None
    return path


def _record(inner: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]", path: str) -> Optional[_Write]:
    """torch.save, on a recorder; None where that does not do. What it raises is the program's."""
    found = os.statvfs(os.path.dirname(os.path.realpath(path)))
    _saving.recorder = recorder = Recorder(min(cpus.memory_bytes() // 2, found.f_bavail * found.f_frsize))
    try:
        behind.plain(inner)(*args, **kwargs)
    except _Unfit as why:
        _lever.nothing(str(why))
        return None
    finally:
        _saving.recorder = None
    if not recorder.records:  # nothing went through it
        _lever.nothing("another format than PyTorch's zip file")
        return None
    try:
        return _Write(path, recorder)
    except OSError as why:
        _lever.nothing("no file beside the path: %s" % why)
        return None


def _make_save(inner: Any) -> Any:
    @functools.wraps(inner)
    def save(*args: Any, **kwargs: Any) -> Any:
        start_ns = core.hooks.now_ns()
        behind.wait(True)  # one at a time, in order
        try:
            path = _path_of(args, kwargs) if threading.current_thread() is threading.main_thread() else None
        except Exception:
            path = None
        write = _record(inner, args, kwargs, path) if path is not None else None
        if write is None:
            return inner(*args, **kwargs)
        try:
            behind.start(write)
        except Exception:  # no more threads: the program is about to end
            write.drop()
            return inner(*args, **kwargs)
        _tally.add("saves")
        behind.phase(start_ns)
        return None

    return save


def _make_writer(inner: Any) -> Any:
    @functools.wraps(inner)
    def _open_zipfile_writer(file: Any) -> Any:
        recorder = getattr(_saving, "recorder", None)
        return inner(file) if recorder is None else recorder

    return _open_zipfile_writer


def _make_cpu(inner: Any) -> Any:
    @functools.wraps(inner)
    def cpu(self: Any) -> Any:
        recorder = getattr(_saving, "recorder", None)
        if recorder is None or self.device.type != "cuda":
            return inner(self)
        return recorder.from_device(self)

    return cpu


def _patches() -> "list[Any]":
    torch = core.hooks.torch
    module = torch.serialization
    save, load = core.Patch(module, "save", _make_save), core.Patch(module, "load", behind.make_waiting)
    owner = next(part for part in torch.UntypedStorage.__mro__ if "cpu" in part.__dict__)
    return [
        core.Patch(module, "_open_zipfile_writer", _make_writer),
        core.Patch(owner, "cpu", _make_cpu),
        save,
        core.Patch(torch, "save", lambda inner: save.wrapper),
        load,
        core.Patch(torch, "load", lambda inner: load.wrapper),
    ]


_patched = core.Patches(_patches)


def _text(numbers: "dict[str, int]") -> str:
    return "%d saves written behind, the program waited for %d" % (numbers.get("saves", 0), numbers.get("waited", 0))


def _ended(error: Optional[BaseException], waited: bool) -> None:
    """A write has ended; waited: the program asked for it before."""
    if error is not None:
        _lever.failed("%s: %s" % (type(error).__name__, error))
    if waited:
        _tally.numbers["waited"] = _tally.numbers.get("waited", 0) + 1


def apply(lever: core.Lever) -> None:
    global _lever, _tally
    _lever = lever
    _tally = Tally(lever, _text)
    behind.ended = _ended
    _patched.install()


def revert() -> None:
    behind.wait(False)
    _patched.remove()
    if _tally is not None:
        _tally.close()
