"""Passes that accumulate gradients keep them in their rank, as within no_sync(), and the last one before the optimizer steps synchronises
them: the mean of sums is the sum of means, but for its last bits.

Which pass is the last one is learned from the first steps; that the gradients come out the same is seen in the next one, which
synchronises each pass as ever, beside the sums that the ranks would have kept. Both are agreed among all ranks (ranks.py). Where gradients
that are still this rank's own are about to be read after all (the last batches of an epoch are fewer, say), they are synchronised first."""

import functools
import sys
import weakref
from typing import Any, Dict, List, Optional

from . import compress, core, ddp_bucket_view, ranks, tally, wrappers

FRAMEWORK = "torch"
LEARNED = 3  # steps, after the first
TRIES = 8  # to see a whole step of as many passes, all of whose gradients are finite
READ_WAIT_S = 20.0  # for all ranks, to read gradients that are not synchronised
ODD_MOST = 0.25  # of steps whose passes were fewer
SLACK = 4  # of the bound of rounding

parts: Any = sys.modules["_hec_hooks.parts"]
_lever: "Optional[core.Lever]" = None
_built: "Optional[wrappers.Built]" = None
_tally: "Optional[tally.Tally]" = None
_equal = ""  # how the gradients came out
_cycles: "weakref.WeakKeyDictionary[Any, Cycle]" = weakref.WeakKeyDictionary()


def apply(lever: core.Lever) -> None:
    global _lever, _built, _tally
    _lever, _built = lever, wrappers.Built(lever, wrappers.DDP, _fit, _made)
    _tally = tally.Tally(lever, lambda n: "%d of %d passes kept their gradients in their rank; %s" % (n["kept"], n.get("passes", 1), _equal))
    _built.put()
    _patched.install()
    core.optimizers.around_steps(_before_step, _after_step)
    parts.keeps = _keeps


def revert() -> None:
    for cycle in list(_cycles.values()):
        cycle.leave()
    _cycles.clear()
    core.optimizers.leave_steps(_before_step, _after_step)
    _patched.remove()
    Reads.of(None)
    parts.keeps = parts.keeps_none
    if _built is not None:
        _built.take()
    if _tally is not None:
        _tally.close()


def _fit(arguments: dict) -> "Dict[str, Any]":
    for name in ("static_graph", "find_unused_parameters", "mixed_precision", "delay_all_reduce_named_params"):
        if arguments.get(name):
            raise wrappers.Unfit("its DistributedDataParallel is made with %s" % name)
    return {}


def _made(module: Any) -> None:
    if not getattr(module, "_use_python_reducer", False):  # else torch.compile synchronises the gradients
        _cycles[module] = Cycle(module)


def _keeps(module: Any) -> bool:
    """For the hooks: the last pass of this module synchronises nothing."""
    cycle = _cycles.get(module)
    return cycle is not None and cycle.kept


class Cycle:
    """The passes of one module between two steps of its optimizer. A pass is over when its backward pass is."""

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.weights = [weight for weight in module.parameters() if weight.requires_grad]
        self.ids = {id(weight) for weight in self.weights}
        self.group = module.process_group
        self.seen = [self.weights[at] for at in sorted({0, len(self.weights) // 2, len(self.weights) - 1})]
        self.handles = [weight.register_hook(self._graded) for weight in self.seen]
        self.phase: "Any" = Learning(self)
        self.queued = False
        self.passes = 0  # since the last step
        self.synced = True  # the pass that goes on
        self.kept = False  # by the lever
        self.local = False  # the gradients are this rank's own, by the lever

    def leave(self) -> None:
        """In all ranks at once."""
        if self.local:
            self.settle()
        self.phase = Out()
        for handle in self.handles:
            handle.remove()
        self.handles = []
        Reads.of(self, False)

    def forward(self, module: Any) -> bool:
        """Before a forward pass that makes gradients: whether they stay in the rank."""
        self.synced = module.require_backward_grad_sync
        self.kept = self.synced and self.phase.keeps() and not module._join_config.enable and not is_capturing()
        if self.kept and not all(weight.requires_grad for weight in self.seen):
            self.kept, self.phase.why = False, "the program keeps some weights from being trained"
        return self.kept

    def _graded(self, gradient: Any) -> None:
        """In a backward pass. What is queued last comes when DistributedDataParallel has the gradients synchronised."""
        if not self.queued:
            self.queued = True
            queue(lambda: queue(self._passed))
            if self.kept:
                self.local = True
                Reads.of(self, True)

    def _passed(self) -> None:
        self.queued = False
        self.passes += 1
        try:
            if self.synced and not self.kept and self.local:
                self.local = False
                Reads.of(self, False)
            self.phase.passed()
        except Exception as error:
            _broke(error)

    def settle(self) -> None:
        """All ranks are here, before the gradients are used: what the ranks have becomes the mean of all."""
        self.local = False
        Reads.of(self, False)
        dist = ranks.distributed()
        size = len(ranks.members(self.group))
        with core.hooks.torch.no_grad():
            for weight in self.weights:
                if weight.grad is None:
                    weight.grad = core.hooks.torch.zeros_like(weight)
                weight.grad.div_(size)
                dist.all_reduce(weight.grad, group=self.group)

    def agree(self, what: str, why: str, same: str = "", wait_s: float = ranks.WAIT_S) -> str:
        return ranks.agree("sync_once.%s" % what, why, same, self.group, wait_s)


class Out:
    """Nothing is kept any more."""

    why = ""  # what is against it

    def keeps(self) -> bool:
        return False

    def passed(self) -> None:
        pass

    def read(self) -> None:
        pass

    def stepped(self) -> None:
        pass


class Learning(Out):
    """How many passes there are to a step, and whether the program looks at gradients between them."""

    def __init__(self, cycle: Cycle) -> None:
        self.cycle = cycle
        self.counts: "List[int]" = []
        self.syncs: "List[int]" = []
        self.synced = 0
        self.was_read = self.between = False
        Reads.of(cycle, True)

    def passed(self) -> None:
        self.between = self.between or self.was_read
        self.synced += self.cycle.synced

    def read(self) -> None:
        self.was_read = self.was_read or self.cycle.passes > 0

    def stepped(self) -> None:
        self.counts.append(self.cycle.passes)
        self.syncs.append(self.synced)
        self.synced, self.was_read = 0, False
        if len(self.counts) <= LEARNED:
            return
        why, passes = self._against(), min(self.counts[1:])
        against = self.cycle.agree("learned", why, "%d passes" % passes)
        if against:
            _out(self.cycle, why or against, already=set(self.syncs[1:]) == {1})
        else:
            self.cycle.phase = Checking(self.cycle, passes)

    def _against(self) -> str:
        counts, syncs, weights = self.counts[1:], self.syncs[1:], self.cycle.weights
        module = self.cycle.module()
        if self.why:
            return self.why
        if set(syncs) == {1}:
            return "gradients are synchronised once a step"
        if min(counts) == 1 or any(count % min(counts) for count in counts):  # a scaler leaves out a step: as many passes again
            return "steps have %s passes" % " and ".join(map(str, sorted(set(counts))))
        if syncs != counts:
            return "the program leaves out some itself"
        if self.between:
            return "the program reads gradients between passes"
        if any(weight.grad is None or type(weight.grad) is not core.hooks.torch.Tensor or weight.grad.is_sparse for weight in weights):
            return "weights without gradients, or with sparse ones"
        if not module.gradient_as_bucket_view and any(ddp_bucket_view.shares_memory(weight.grad) for weight in weights):
            return "gradients are parts of larger buffers"
        if any(getattr(weight, "_post_accumulate_grad_hooks", None) for weight in weights):
            return "gradients are used as soon as they are there"
        if module.__dict__.get("_comm_hooks") or module._get_ddp_logging_data().get("comm_hook") and not compress.has(module):
            return "the program has a hook of its own for its gradients"
        return ""


class Checking(Out):
    """A step that synchronises each pass, and sums up beside it what the rank would have kept."""

    def __init__(self, cycle: Cycle, passes: int) -> None:
        self.cycle, self.of = cycle, passes
        self.tries = 0
        self.was_read = False
        self._begin()
        self.handles = [weight.register_hook(functools.partial(self._add, at)) for at, weight in enumerate(cycle.weights)]

    def _begin(self) -> None:
        self.sums: "Dict[int, Any]" = {}
        self.norms: "Dict[int, Any]" = {}

    def _add(self, at: int, gradient: Any) -> None:
        try:
            with core.hooks.torch.no_grad():
                norm = gradient.float().norm()
                self.norms[at] = self.norms[at] + norm if at in self.norms else norm
                self.sums[at] = self.sums[at].add_(gradient) if at in self.sums else gradient.clone()
        except Exception as error:  # no memory for a second set of them, for instance
            self.why = self.why or "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:100])

    def read(self) -> None:
        self.was_read = self.was_read or self.cycle.passes > 0

    def passed(self) -> None:
        if self.was_read:
            self.why = "the program reads gradients between passes"
        if self.cycle.passes == self.of:
            self._compare()

    def stepped(self) -> None:
        self.was_read = False
        self._begin()
        self.tries += 1
        if self.cycle.phase is self and self.tries == TRIES:
            self._end("no step in %d had %d passes and finite gradients" % (TRIES, self.of))

    def _compare(self) -> None:
        """All ranks are at the end of the same backward pass."""
        global _equal
        cycle, torch, dist = self.cycle, core.hooks.torch, ranks.distributed()
        if not self.why and len(self.sums) != len(cycle.weights):
            self.why = "weights without gradients"
        against = cycle.agree("summed", self.why)
        if against:
            self._end(self.why or against)
            return
        size = len(ranks.members(cycle.group))
        with torch.no_grad():
            norms = torch.stack([self.norms[at] for at in range(len(cycle.weights))])
            dist.all_reduce(norms, group=cycle.group)
            found = []
            for at, weight in enumerate(cycle.weights):
                mean = self.sums.pop(at).div_(size)
                dist.all_reduce(mean, group=cycle.group)
                grad = Reads.raw(weight)
                found.append(torch.stack([(mean.float() - grad.float()).norm(), grad.float().norm()]))
            differ, length = torch.stack(found).unbind(1)
            if not bool(torch.isfinite(norms).all() and torch.isfinite(length).all()):
                return  # a scaler that has yet to find its scale: the next step
            kinds = [torch.finfo(compress.wire(cycle.module(), weight.dtype)).eps for weight in cycle.weights]
            bound = SLACK * (self.of + size) * torch.tensor(kinds, device=norms.device) * norms / size
            fits = bool((differ <= bound).all())
            share = float(differ.norm() / length.norm()) if bool(length.norm() > 0) else 0.0
        why = "" if fits else "gradients come out otherwise: by %.2g of them" % share
        against = cycle.agree("equal", why)
        if against:
            self._end(why or against)
            return
        _equal = "gradients of a step, compared in all ranks: equal to %.1g" % share
        self._leave(Keeping(cycle, self.of))

    def _end(self, why: str) -> None:
        self._leave(Out())
        _out(self.cycle, why)

    def _leave(self, phase: Any) -> None:
        for handle in self.handles:
            handle.remove()
        self._begin()
        Reads.of(self.cycle, False)
        self.cycle.phase = phase


class Keeping(Out):
    """All but the last of so many passes keep their gradients."""

    def __init__(self, cycle: Cycle, passes: int) -> None:
        self.cycle, self.of = cycle, passes
        self.at = passes  # since the gradients were synchronised; those of the step that was compared are
        self.steps = self.odd = 0
        self.alone = False  # this rank has read gradients that the others have not

    def keeps(self) -> bool:
        return self.at % self.of < self.of - 1

    def passed(self) -> None:
        self.at += 1
        if _tally is not None:
            _tally.add("kept", int(self.cycle.kept))
            _tally.add("passes")

    def read(self) -> None:
        """The program is about to read gradients of this rank alone. Where all ranks do, they are synchronised first."""
        if not self.cycle.local or self.alone:
            return
        where = "read/%d/%d" % (self.steps, self.at)
        if self.cycle.agree(where, "", wait_s=READ_WAIT_S):
            self.alone, self.why = True, "a rank read gradients between passes, and others did not"
        else:
            self.cycle.settle()
            self.odd += 1
            self.at = 0

    def stepping(self) -> None:
        if self.cycle.local:
            self.cycle.settle()
            self.odd += 1

    def stepped(self) -> None:
        self.steps += 1
        self.at = 0
        if not core.seldom(self.steps):
            return
        if not self.why and self.odd > max(2, ODD_MOST * self.steps):
            self.why = "%d of %d steps had other than %d passes" % (self.odd, self.steps, self.of)
        against = self.cycle.agree("review", self.why)
        if against and _lever is not None:
            self.cycle.leave()
            _lever.failed(self.why or against)


def _out(cycle: Cycle, why: str, already: bool = False) -> None:
    cycle.leave()
    if _lever is not None:
        (_lever.already if already else _lever.nothing)(why)


def _broke(error: BaseException) -> None:
    """Not taken out by this rank alone: it goes with the others, at the next review."""
    for cycle in _cycles.values():
        cycle.phase.why = core.words_of(error)


class Reads:
    """Who reads `weight.grad` while that has to be seen: a property of Parameter, which is taken away when nobody has to know."""

    watching: "List[Cycle]" = []
    reading = False

    @classmethod
    def of(cls, cycle: "Optional[Cycle]", on: bool = False) -> None:
        owner = core.hooks.torch.nn.Parameter
        cls.watching = [other for other in cls.watching if other is not cycle and cycle is not None] + [cycle] * on
        if cls.watching and "grad" not in owner.__dict__:
            owner.grad = property(cls._get, cls._set, cls._delete)
        elif not cls.watching and "grad" in owner.__dict__:
            del owner.grad

    @classmethod
    def raw(cls, weight: Any) -> Any:
        return core.hooks.torch._C._TensorBase.grad.__get__(weight)

    @staticmethod
    def _get(weight: Any) -> Any:
        if not Reads.reading:
            Reads.reading = True
            try:
                for cycle in list(Reads.watching):
                    if id(weight) in cycle.ids:
                        cycle.phase.read()
            except Exception as error:
                _broke(error)
            finally:
                Reads.reading = False
        return Reads.raw(weight)

    @staticmethod
    def _set(weight: Any, value: Any) -> None:
        core.hooks.torch._C._TensorBase.grad.__set__(weight, value)

    @staticmethod
    def _delete(weight: Any) -> None:
        core.hooks.torch._C._TensorBase.grad.__delete__(weight)


def queue(function: Any) -> None:
    core.hooks.torch.autograd.Variable._execution_engine.queue_callback(function)


def is_capturing() -> bool:
    cuda = core.hooks.torch.cuda
    return bool(cuda.is_initialized() and cuda.is_current_stream_capturing())


def _of_step(optimizer: Any) -> "List[Cycle]":
    firsts = {id(group["params"][0]) for group in optimizer.param_groups if group["params"]}
    return [cycle for cycle in list(_cycles.values()) if cycle.passes and not firsts.isdisjoint(cycle.ids)]


def _before_step(optimizer: Any) -> None:
    for cycle in _of_step(optimizer) if Reads.watching else ():
        if isinstance(cycle.phase, Keeping):
            cycle.phase.stepping()


def _after_step(optimizer: Any) -> None:
    try:
        for cycle in _of_step(optimizer):
            cycle.phase.stepped()
            cycle.passes = 0
    except Exception as error:
        _broke(error)


def _make(inner: Any) -> Any:
    @functools.wraps(inner)
    def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
        cycle = _cycles.get(module)
        if cycle is None or not core.hooks.torch.is_grad_enabled() or not cycle.forward(module):
            return inner(module, *args, **kwargs)
        shared = module.require_forward_param_sync
        module.require_backward_grad_sync = False
        try:
            return inner(module, *args, **kwargs)
        finally:
            module.require_backward_grad_sync = True
            module.require_forward_param_sync = shared  # its buffers are those of the first rank before each pass, as ever

    return forward


_patched = core.Patches(lambda: [core.Patch(getattr(sys.modules[wrappers.DDP.module], wrappers.DDP.name), "forward", _make)])
