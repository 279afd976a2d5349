"""How large what is trained is: parameters, gradients, states of the optimizer, repeated layers and experts, and what the device's memory
holds of it. `hec explain parallelism` says by it how the work could be shared out to devices.

It is looked at where the fourth step of an optimizer ends, when states exist, and later where the number of steps is a power of two; of
the device's memory the counters of PyTorch's allocator are read, and nothing waits for the device. Of a tensor that is sharded (DTensor)
both its whole and what this process holds are reported. What is sharded in other ways (FullyShardedDataParallel, DeepSpeed) is not: the whole
of it would be a guess."""

import weakref
from typing import Any, Dict, Iterable, Optional

from . import core

NAME = "sizes of the model"
FIRST = 4  # the step of an optimizer that is looked at first
SETTLED = 16  # after it only memory is: sizes stay, and all optimizers have stepped
INPUTS_MAX = 10000

due = False  # what the next forward pass leaves in memory is to be looked at
roots: "list[Any]" = []  # outermost modules, each behind a weak reference `ref`; modules.py has them
_optimizers: "list[Any]" = []
_inputs: Dict[int, int] = {}  # bytes of the first tensor that a module was given, by its id, while outermost modules are looked for
_steps = 0
before: Optional[int] = None  # bytes in memory before the forward pass that is looked at
_activations = 0
_input_bytes = 0


# ---- tensors ----


def _bytes(tensor: Any) -> int:
    return tensor.numel() * tensor.element_size()


def _held(tensor: Any) -> int:
    """Of what may be a shard, or several."""
    return _bytes(getattr(tensor, "_local_tensor", tensor))


def _states(value: Any) -> "Iterable[Any]":
    """The tensors of an optimizer's state of a parameter; some are lists of them."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, core.torch.Tensor):
            yield each
        elif isinstance(each, (dict, list, tuple)):
            yield from _states(each)


def _told(key: str, **numbers: Any) -> None:
    core.library.fact("sizes." + key, " ".join("%s=%s" % each for each in numbers.items()))


# ---- the model ----


def _trained_by(optimizers: "list[Any]") -> "Dict[int, Any]":
    return {id(p): p for o in optimizers for group in o.param_groups for p in group["params"] if p.requires_grad}


def _root_of(trained: "Dict[int, Any]") -> Any:
    """The outermost module that has most of what is trained; None: none is known."""
    most, root = 0, None
    for module in (root.ref() for root in roots):
        found = sum(p.numel() for p in module.parameters() if id(p) in trained) if module is not None else 0
        if found > most:
            most, root = found, module
    return root


def _sharing(root: Any, parameters: "Iterable[Any]") -> str:
    """How the ranks of a job share it, by what wraps it; "" where its whole is not known."""
    names = [kind.__name__ for kind in type(root).__mro__]
    if "DistributedDataParallel" in names:
        return "ddp"
    if any(kind.__name__ in ("FullyShardedDataParallel", "DeepSpeedEngine") for module in root.modules() for kind in type(module).__mro__):
        return ""
    if any("FSDPModule" in [kind.__name__ for kind in type(module).__mro__] for module in root.modules()):
        return "fsdp"
    return "tensor" if any(hasattr(p, "_local_tensor") for p in parameters) else "none"


def _size(module: Any) -> int:
    return sum(_bytes(p) for p in module.parameters())


def _repeated(root: Any) -> "list[Any]":
    """The modules of one kind and size, of one parent, that together have most parameters; experts of a layer are none."""
    most, found = 0, []
    for name, parent in root.named_modules():
        alike: "Dict[tuple, list[Any]]" = {}
        for child in parent.children():
            alike.setdefault((type(child), _size(child)), []).append(child)
        for (_, size), children in alike.items():
            if len(children) > 1 and len(children) * size > most and "expert" not in name.rpartition(".")[2].lower():
                most, found = len(children) * size, children
    return found


def _experts(root: Any) -> tuple:
    """How many a layer has, bytes of all of them, and how many of them a token goes to (0: not known)."""
    count = held = top = 0
    for name, module in root.named_modules():
        top = top or next((n for n in (getattr(module, key, 0) for key in ("top_k", "num_experts_per_tok", "moe_top_k"))
                           if isinstance(n, int) and 0 < n < 1000), 0)  # fmt: skip
        if "expert" not in name.rpartition(".")[2].lower() or "shared" in name or _size(module) == 0:
            continue
        kinds = [type(child) for child in module.children()]
        stacked = [p for p in module.parameters(recurse=False) if p.dim() == 3]
        if len(kinds) > 1 and len(set(kinds)) == 1:
            count = max(count, len(kinds))
            held += _size(module)
        elif stacked:  # of all experts in one tensor
            count = max(count, stacked[0].shape[0])
            held += sum(_bytes(p) for p in stacked)
    return count, held, top


def _tell_layers(root: Any) -> None:
    global _input_bytes
    layers = _repeated(root)
    experts, expert_bytes, top = _experts(root)
    _input_bytes = next((n for n in (_inputs.get(id(layer), 0) for layer in layers) if n), _input_bytes)
    if layers:
        weights = list(layers[0].parameters())
        _told("layers", count=len(layers), bytes=_size(layers[0]), input_bytes=_input_bytes,
              matrices=sum(1 for w in weights if w.dim() == 2), matrix_bytes=sum(_bytes(w) for w in weights if w.dim() == 2))  # fmt: skip
    if experts > 1:
        _told("experts", count=experts, bytes=expert_bytes, top=top)


def _tell_sizes(optimizers: "list[Any]") -> None:
    trained = _trained_by(optimizers)
    root = _root_of(trained)
    every = dict(trained)
    if root is not None:
        every.update((id(p), p) for p in root.parameters())
    sharing = _sharing(root, every.values()) if root is not None else "unknown"
    states = [s for o in optimizers for value in o.state.values() for s in _states(value)]
    _told("optimizer", kind="+".join(sorted({type(o).__name__ for o in optimizers}))[:60], bytes=sum(map(_bytes, states)),
          held_bytes=sum(map(_held, states)))  # fmt: skip
    if not sharing:
        return
    _told("model", parameters=sum(p.numel() for p in every.values()), trained=sum(p.numel() for p in trained.values()),
          bytes=sum(map(_bytes, every.values())), gradient_bytes=sum(map(_bytes, trained.values())), held_bytes=sum(map(_held, every.values())),
          held_gradient_bytes=sum(map(_held, trained.values())), sharing=sharing,
          bucket_view=int(getattr(root, "gradient_as_bucket_view", False)))  # fmt: skip
    if root is not None:
        _tell_layers(root)


# ---- memory of the device ----


def _device(optimizers: "list[Any]") -> Any:
    """The CUDA device of what is trained, or None."""
    cuda = core.torch.cuda
    if not (cuda.is_available() and cuda.is_initialized()):
        return None
    return next((p.device for o in optimizers for group in o.param_groups for p in group["params"] if p.device.type == "cuda"), None)


def _living() -> "list[Any]":
    return [o for o in (ref() for ref in _optimizers) if o is not None]


def _allocated() -> Optional[int]:
    device = _device(_living())
    return None if device is None else core.torch.cuda.memory_allocated(device)


def _tell_memory(optimizers: "list[Any]") -> None:
    device = _device(optimizers)
    if device is not None:
        cuda = core.torch.cuda
        _told("memory", allocated=cuda.max_memory_allocated(device), reserved=cuda.max_memory_reserved(device), activations=_activations)


def calling() -> None:
    """A forward pass of an outermost module begins, with gradients, and `due`."""
    global due
    due = False
    core.guard(NAME, _look_before)


def _look_before() -> None:
    global before
    before = _allocated()


def passed_back() -> None:
    """The backward pass begins: what the forward pass left is there for it."""
    if before is not None:
        core.guard(NAME, _look_after)


def _look_after() -> None:
    global _activations, before
    then, before = before, None
    now = _allocated()
    if then is not None and now is not None:
        _activations = max(_activations, now - then)


# ---- when ----


def given(module: Any, args: tuple) -> None:
    """A module in an outermost one is called, while those are looked for."""
    if args and len(_inputs) < INPUTS_MAX and isinstance(args[0], core.torch.Tensor) and core.torch.is_grad_enabled():
        with core.torch._C.DisableTorchFunction():  # a mode of the program, or the tensor's class, does not see us look
            _inputs[id(module)] = _bytes(args[0])


def stepped(optimizer: Any) -> None:
    global _steps, due
    _steps += 1
    if _steps <= SETTLED and all(ref() is not optimizer for ref in _optimizers):
        _optimizers.append(weakref.ref(optimizer))
    if _steps < FIRST or _steps & (_steps - 1) or NAME in core.off:
        return
    due = True
    for root in roots:
        root.left = 0
    core.guard(NAME, _tell)


def _tell() -> None:
    optimizers = _living()
    if _steps in (FIRST, SETTLED):
        with core.torch._C.DisableTorchFunction():
            _tell_sizes(optimizers)
    if _steps == SETTLED:
        _inputs.clear()
    _tell_memory(optimizers)


def report() -> None:
    """The most that memory held, at the end."""
    if _steps >= FIRST:
        _tell_memory(_living())


def forget() -> None:
    """Of the parent: a forked child begins anew."""
    global _steps, due, before, _activations
    _optimizers.clear()
    _inputs.clear()
    _steps = _activations = 0
    due, before = False, None
