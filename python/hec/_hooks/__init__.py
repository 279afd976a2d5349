"""HEC's hooks in a PyTorch program: what `hec run` learns of it without a change to the script.

Loaded as the module ``_hec_hooks`` (see python/hooks), never imported by a program. It finds steps, samples, time in
the data loader, losses, checkpoints and what the main thread is doing, and tells HEC through libhec.so. It prints
nothing and raises nothing; results, random numbers and exceptions of the program are what they are without it.

``pause()`` and ``resume()`` take everything out of PyTorch and put it back, for measurements of what it costs.
docs/hooks.md describes all of it.
"""

import atexit
import os
import sys

from . import core, library, loader, losses, modules, optimizers, process, profiler, saves, stacks

# In the order in which they are put in; taken out in the reverse order.
_HOOKS = (profiler, optimizers, losses, modules, loader, saves)


def start() -> None:
    """Once, at the end of `import torch`."""
    torch = sys.modules["torch"]
    core.torch = torch
    found = library.load()
    if found is None:
        return
    core.library = found
    core.dormant = process.starts_dormant()
    core.facts = {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "torch": str(torch.__version__),
        **{name.lower(): os.environ[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE") if os.environ.get(name)},
    }
    os.register_at_fork(before=stacks.stop, after_in_child=process.forked)
    if sys.version_info < (3, 12):  # newer ones count the threads at this point, and warn
        os.register_at_fork(after_in_parent=core.wake)
    atexit.register(_finish)
    core.guard("torch.compile", core.keep_from_compiling)
    resume()


def resume() -> None:
    """Put the hooks into PyTorch."""
    if core.library is None or core.installed:
        return
    core.installed = True
    for hook in _HOOKS:
        core.guard(hook.NAME, hook.install)
    core.wake()


def pause() -> None:
    """Take them out again: PyTorch is as if they had never been there."""
    if not core.installed:
        return
    core.installed = core.steady = False
    stacks.stop()
    for hook in reversed(_HOOKS):
        core.guard(hook.NAME, hook.remove)


def _finish() -> None:
    try:
        stacks.stop()
        if core.installed and not core.dormant:
            losses.finish()
            optimizers.cycle.finish()
            modules.cycle.finish()
            core.tell_cost()
    except Exception:
        pass
