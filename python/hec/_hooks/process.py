"""Which processes are the program's own, and which only help it."""

import os
import sys

from . import core, flops, later, parts, sizes

# Helpers that import PyTorch, by the first words of their command line: children of multiprocessing that were spawned
# (workers of a data loader, but also ranks), compiler processes, and the launcher of the ranks.
_WORDS = (b"--multiprocessing-fork", b"torch._inductor.compile_worker", b"torch.distributed.run", b"torchrun",
          b"torch.distributed.launch")  # fmt: skip
_COMPILER = b"/torch/_inductor/compile_worker/"
_CODE = (b"multiprocessing.forkserver", b"torch._inductor.compile_worker")


def starts_dormant() -> bool:
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read(65536).split(b"\0")[1:6]
    except OSError:
        return False
    names = [word.rsplit(b"/", 1)[-1] for word in words]
    return (
        any(word in names for word in _WORDS)
        or any(code in word for word in words if b"import" in word for code in _CODE)
        or any(_COMPILER in word for word in words)
    )


def is_loader_worker() -> bool:
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None


def wake_if_rank(stepped: bool) -> None:
    """A process did something: a dormant one is one of the program's own if an optimizer stepped in it, or if it is a
    rank of a group; workers of a data loader never are."""
    if not core.dormant or is_loader_worker():
        return
    distributed = sys.modules.get("torch.distributed")
    if stepped or (distributed is not None and distributed.is_available() and distributed.is_initialized()):
        core.dormant = False


def forked() -> None:
    """In the child of a fork."""
    from . import losses, stacks, values

    core.dormant = True
    core.reset_after_fork()
    later.forget()
    parts.forget()
    flops.forget()
    sizes.forget()
    stacks.forked()
    losses.forked()
    values.forked()
