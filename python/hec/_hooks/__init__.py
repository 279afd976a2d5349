"""HEC's hooks in a Python program that uses a GPU: what `hec run` learns of it without a change to the script.

Loaded as the module ``_hec_hooks`` (see python/hooks), never imported by a program. It finds steps, samples, time in
the data loader, losses, checkpoints and what the main thread is doing (without PyTorch, only that), and reports to HEC through libhec.so. It prints
nothing and raises nothing; results, random numbers and exceptions of the program are what they are without it.

``pause()`` and ``resume()`` take everything out of PyTorch and put it back, for measurements of what it costs.
docs/hooks.md describes all of it.
"""

import atexit
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from . import core, flops, gradients, later, library, loader, losses, modules, optimizers, parts, process, profiler, saves, sizes, stacks, values

# In the order in which they are put in; taken out in the reverse order.
_HOOKS = (profiler, optimizers, gradients, losses, modules, loader, saves)


def start(name: str) -> None:
    """At the end of the import of torch, or of another package that uses CUDA."""
    _start(name)
    if core.library is not None and os.environ.get("HEC_LEVERS"):
        core.guard("levers", lambda: _levers().start(name))


def start_late(name: str) -> None:
    """The same when CUDA starts: what was before was not seen. Levers stay out, they are for programs that have not begun."""
    _start(name)
    if core.library is not None:
        core.facts["late"] = "1"
        if core.awake and core.torch is not None:
            core.report_facts()


def _start(name: str) -> None:
    if core.torch is not None or (core.library is not None and name != "torch"):
        return
    if core.library is None and not _load():
        return
    if name != "torch":
        core.facts["framework"] = name
        core.guard(stacks.NAME, stacks.start)
        return
    core.torch = sys.modules["torch"]
    core.facts["torch"] = str(core.torch.__version__)
    core.guard("torch.compile", core.keep_from_compiling)
    resume()


def _levers() -> Any:
    """The package beside this one, under a name of its own."""
    if "_hec_levers" not in sys.modules:
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "levers")
        spec = spec_from_file_location(
            "_hec_levers", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        sys.modules["_hec_levers"] = module
        spec.loader.exec_module(module)
    return sys.modules["_hec_levers"]


def _load() -> bool:
    found = library.load()
    if found is None:
        return False
    core.library = found
    core.dormant = process.starts_dormant()
    core.facts = {"version": "%d.%d.%d" % sys.version_info[:3]}
    os.register_at_fork(before=stacks.stop, after_in_child=process.forked, after_in_parent=_forked)
    atexit.register(_finish)
    return True


def _forked() -> None:
    """In the parent. Python 3.12 and newer count the threads at this point, and warn; CUDA has threads of its own."""
    if core.torch is None and stacks.begun:
        stacks.start()
    elif sys.version_info < (3, 12):
        core.wake()


def resume() -> None:
    """Put the hooks into PyTorch."""
    if core.torch is None or core.installed:
        return
    core.installed = True
    for hook in _HOOKS:
        core.guard(hook.NAME, hook.install)
    core.wake()
    if core.awake:
        core.report_facts()


def pause() -> None:
    """Take them out again: PyTorch is as if they had never been there."""
    if not core.installed:
        return
    later.work_off(core.now_ns())
    core.installed = core.steady = core.notes = False
    stacks.stop()
    for hook in reversed(_HOOKS):
        core.guard(hook.NAME, hook.remove)


def _finish() -> None:
    try:
        stacks.ended = True
        stacks.stop()
        later.work_off(core.now_ns())
        if core.installed and not core.dormant:
            values.finish()
            optimizers.cycle.finish()
            modules.cycle.finish()
        if (core.installed or stacks.begun) and not core.dormant:
            core.report_ranks()
            core.report_cost()
            parts.report()
            flops.report()
            sizes.report()
    except Exception:
        pass
