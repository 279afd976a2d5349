"""The write that is under way behind the program, and what waits for it: the program sees its file as if it had been written at once.

Only while a write is under way do functions of `os` and a few others stand behind wrappers, which wait where they are about to look
at that path, to end or replace this process, to start another, or to meet other ranks."""

import atexit
import functools
import os
import sys
import threading
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from . import core

_lock = threading.Lock()
_thread: Any = None
_write: Any = None
_error: Optional[BaseException] = None
_waited = False
_inside = threading.local()
_patches: "list[Any]" = []
ended: Any = lambda error, waited: None

# What looks at the path itself; at it or a folder that it is in; what reaches beyond this process.
_PATH = {
    "os": ("stat", "lstat", "access", "chmod", "utime", "truncate", "link", "symlink"),
    "builtins": ("open",),
    "io": ("open",),
}
_ABOVE = {"os": ("open", "rename", "replace", "remove", "unlink", "rmdir", "listdir", "scandir")}
_BEYOND = {
    "os": ("_exit", "execv", "execve", "system", "posix_spawn", "posix_spawnp", "fork", "forkpty", "kill", "abort"),
    "_posixsubprocess": ("fork_exec",),
    "subprocess": ("_fork_exec",),
}
_RANKS = ("barrier", "monitored_barrier", "broadcast", "allreduce", "allgather", "_allgather_base", "gather", "scatter", "reduce",
          "reduce_scatter", "alltoall", "alltoall_base", "send", "recv")  # fmt: skip


def _places() -> "list[tuple[str, Any, str]]":
    """What waits, the module or class that has it, and its name there."""
    found = [
        (kind, sys.modules.get(module), name)
        for kind, table in (("path", _PATH), ("above", _ABOVE), ("beyond", _BEYOND))
        for module, names in table.items()
        for name in names
    ]
    groups = getattr(sys.modules.get("torch._C._distributed_c10d"), "ProcessGroup", None)
    found += [("beyond", groups, name) for name in _RANKS]
    return [(kind, owner, name) for kind, owner, name in found if owner is not None and name in owner.__dict__]


def plain(function: Any) -> Any:
    """Without the wrapper of the hooks: the phase is reported here."""
    while hasattr(function, "__wrapped__") and function.__code__.co_filename.startswith(core.hooks._here):
        function = function.__wrapped__
    return function


def phase(start_ns: int) -> None:
    """The program was in a checkpoint until now."""
    try:
        if core.hooks.may("checkpoints"):
            core.hooks.library.interval(b"checkpoint", start_ns, core.hooks.now_ns())
    except Exception:
        pass


@contextmanager
def opened(folder: str) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield number
    finally:
        os.close(number)


def start(write: Any) -> None:
    global _thread, _write, _waited
    # not a daemon: Python waits for it at the end of the program
    thread = threading.Thread(target=_run, args=(write,), name="checkpoint")
    _write, _thread, _waited = write, thread, False
    _watch()
    try:
        thread.start()
    except BaseException:
        _unwatch()
        _write = _thread = None
        raise


def _run(write: Any) -> None:
    global _error
    _inside.on = True  # its own calls wait for nothing
    try:
        write.run()
    except BaseException as error:
        _error = error
        sys.stderr.write("hec: the checkpoint %s could not be written: %s: %s\n" % (write.path, type(error).__name__, error))
    finally:
        _unwatch()
        ended(_error, _waited)


def wait(give: bool) -> None:
    """Until what is under way is done; give: an error of it is raised here."""
    global _thread, _write, _error, _waited
    thread = _thread
    if thread is not None and thread is not threading.current_thread():
        if thread.is_alive():
            _waited = True
        thread.join()
        _thread = _write = None
    if give and _error is not None:
        error, _error = _error, None
        raise error


def _same(value: Any, above: bool) -> bool:
    write = _write
    if write is None or not isinstance(value, (str, bytes, os.PathLike)):
        return False
    path = os.path.realpath(os.fsdecode(value))
    return bool(path == write.path or (above and (write.path + "/").startswith(path.rstrip("/") + "/")))


def _make(kind: str) -> Any:
    def make(inner: Any) -> Any:
        @functools.wraps(inner)
        def waiting(*args: Any, **kwargs: Any) -> Any:
            if _write is not None and not getattr(_inside, "on", False):
                _inside.on = True
                try:
                    values = args[:2] + tuple(kwargs.values()) or (".",)
                    if kind == "beyond" or any(_same(value, kind == "above") for value in values):
                        wait(False)
                except Exception:
                    pass
                finally:
                    _inside.on = False
            return inner(*args, **kwargs)

        return waiting

    return make


def make_waiting(inner: Any) -> Any:
    """For torch.load, whatever it reads."""

    @functools.wraps(inner)
    def load(*args: Any, **kwargs: Any) -> Any:
        wait(True)
        return inner(*args, **kwargs)

    return load


def _watch() -> None:
    with _lock:
        for kind, owner, name in _places():
            patch = core.Patch(owner, name, _make(kind))
            patch.install()
            _patches.append(patch)


def _unwatch() -> None:
    with _lock:
        while _patches:
            _patches.pop().remove()


def _forked() -> None:
    """The child has no such thread, and the file is whole: the fork waited."""
    global _thread, _write, _error, _lock
    _lock = threading.Lock()
    _thread = _write = _error = None
    _unwatch()


os.register_at_fork(after_in_child=_forked)
atexit.register(wait, False)
