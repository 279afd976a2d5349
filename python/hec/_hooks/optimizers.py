"""Steps of training: an optimizer's step returned. A program that updates its weights by itself has none: there each
backward pass is a step, once there were more of them than anybody accumulates gradients over."""

import functools
import sys
import weakref
from typing import Any, Callable, Optional

from . import core, flops, later, library, parts, process, sizes
from .steps import Cycle, Samples

NAME = "the optimizer's step"

BACKWARDS_MAX = 100  # without an optimizer's step

# Of levers: called with each optimizer before it steps, and afterwards.
befores: "list[Callable[[Any], None]]" = []
afters: "list[Callable[[Any], None]]" = []

samples = Samples()
_backwards = 0
_optimizer = False  # one has stepped
_began_ns = 0  # the step that goes on


def on_unknown() -> None:
    """Called after a step whose samples are not known; replaced by modules.py."""


def _give(t_ns: int, taken: Optional[int]) -> None:
    flops.stepped(optimizer=True)
    if taken is None:
        core.library.step(b"sample", library.UNKNOWN, library.OPTIMIZER, t_ns)
        on_unknown()
    else:
        core.library.step(b"sample", taken, library.OPTIMIZER, t_ns)
        if "samples_by" not in core.facts:
            core.facts["samples_by"] = "loader" if samples.by_loaders else "calls"
            core.report_facts()


cycle = Cycle(_give)
_handles: "list[Any]" = []


def passed_back(t_ns: int) -> None:
    """A backward pass begins."""
    global _backwards
    samples.backward()
    flops.passed_back()
    parts.passed_back()
    sizes.passed_back()
    if _optimizer:
        return
    _backwards += 1
    if _backwards > BACKWARDS_MAX and (core.steady or core.may(NAME)):
        core.optimizer_seen = True
        samples.optimized()
        cycle.ended(samples, t_ns, samples.take)


def _steps(optimizer: Any, args: Any = None, kwargs: Any = None) -> None:
    global _began_ns
    for before in befores:
        before(optimizer)
    _began_ns = core.now_ns()


def _stepped(optimizer: Any, args: Any = None, kwargs: Any = None) -> None:
    global _optimizer, _began_ns
    t_ns = core.now_ns()
    began_ns, _began_ns = _began_ns, 0  # 0: one that wraps another is not counted a second time
    if core.notes and core.optimizer_seen and _optimizer and not afters:
        try:
            later.note((NAME, _ended, weakref.ref(optimizer), began_ns, t_ns))
            if t_ns - later.since_ns > later.LATEST_NS:
                later.work_off(t_ns)
        except Exception as error:
            core.failed(NAME, error)
        return
    core.guard(NAME, lambda: later.work_off(t_ns))
    for after in afters:
        after(optimizer)
    try:
        _optimizer = True
        if not core.steady:
            process.wake_if_rank(stepped=True)
            if not core.may(NAME):
                return
        core.optimizer_seen = True
        parts.look()
        _ended(weakref.ref(optimizer), began_ns, t_ns)
        core.spent(t_ns)
    except Exception as error:
        core.failed(NAME, error)


def _ended(ref: "weakref.ref[Any]", began_ns: int, t_ns: int) -> None:
    if began_ns:
        parts.took(parts.OPTIMIZER, began_ns, t_ns)
    samples.optimized()
    cycle.ended(ref, t_ns, samples.take)
    optimizer = ref()
    if optimizer is not None:
        sizes.stepped(optimizer)


def _patch_old() -> "list[core.Patch]":
    """PyTorch 1.13 has no global hook, but prepares the class of each new optimizer: then `step` is wrapped."""
    Optimizer = core.torch.optim.Optimizer

    def make(prepare: Any) -> Any:
        @functools.wraps(prepare)
        def _hook_for_profile(self: Any) -> Any:
            result = prepare(self)
            step = type(self).step
            if not getattr(step, "_hec_hooked", False):

                @functools.wraps(step)
                def wrapper(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                    if core.installed:
                        _steps(optimizer)
                    value = step(optimizer, *args, **kwargs)
                    if core.installed:
                        _stepped(optimizer)
                    return value

                wrapper._hec_hooked = wrapper.hooked = True  # type: ignore[attr-defined]
                type(self).step = wrapper
            return result

        return _hook_for_profile

    return [core.Patch(Optimizer, "_hook_for_profile", make)]


_old = core.Patches(_patch_old)


def install() -> None:
    remove()
    module: Any = sys.modules["torch.optim.optimizer"]
    if not hasattr(module, "register_optimizer_step_post_hook"):
        _old.install()
        return
    _handles.append(module.register_optimizer_step_pre_hook(_steps))
    _handles.append(module.register_optimizer_step_post_hook(_stepped))


def remove() -> None:
    while _handles:
        _handles.pop().remove()
    _old.remove()


def around_steps(before: "Optional[Callable[[Any], None]]", after: "Optional[Callable[[Any], None]]" = None) -> None:
    """Of a lever, until it leaves them."""
    if before is not None:
        befores.append(before)
    if after is not None:
        afters.append(after)
    if core.installed:
        install()


def leave_steps(*hooks: "Callable[[Any], None]") -> None:
    befores[:] = [hook for hook in befores if hook not in hooks]
    afters[:] = [hook for hook in afters if hook not in hooks]
