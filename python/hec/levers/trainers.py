"""Loops of training that belong to a framework, and take both the samples of a pass and the passes of a step as arguments: the Trainer of
Hugging Face (transformers), and of Lightning. There a lever can give other numbers: the framework counts by them.

A loop that the program writes itself (Accelerate's too) counts its batches by numbers of its own; nothing is changed there."""

import copy
import functools
import inspect
import sys
from typing import Any, Callable, Dict, List, Tuple

from . import core, ranks, tally

imports: Any = sys.modules["_hec_hooks.imports"]
NONE = "no Trainer of transformers or Lightning trains: a loop of the program counts its batches itself"


class Refused(Exception):
    """Why the numbers stay as they are."""


class Already(Refused):
    """The program has them."""


class Training:
    """One training that is about to begin. batch: samples of a pass of one rank; passes: of a step; now: both, where a lever changed it."""

    batch = passes = 0
    now = 0, 0
    ranks = 1  # that share a pass out
    drop_last = False
    weighs_last = False  # a step with fewer samples weighs each of them as the others do
    dataset: Any = None
    collate: Any = None
    model: Any = None

    def samples(self) -> int:
        """Of an epoch, in all ranks."""
        if isinstance(self.dataset, core.hooks.torch.utils.data.IterableDataset) or not hasattr(self.dataset, "__len__"):
            raise Refused("its data set has no length")
        return len(self.dataset)

    def loss(self, model: Any, batches: "List[Any]") -> Any:
        """What one step starts its backward passes from, all together, with a copy of the model, of so many batches."""
        raise NotImplementedError

    def change(self, batch: int, passes: int) -> None:
        """Before the loop begins, and back after it."""
        raise NotImplementedError

    def undo(self) -> None:
        self.change(self.batch, self.passes)

    def steps(self, batch: int, passes: int) -> int:
        """Of an epoch."""
        samples, each = self.samples(), self.ranks * batch
        batches = samples // each if self.drop_last else -(-samples // each)
        return -(-batches // passes)


def _check_own(thing: Any, base: type, names: "List[str]") -> None:
    """Refused where its class has another one of what the loop is made of."""
    for name in names:
        if getattr(type(thing), name, None) is not getattr(base, name, None) or name in vars(thing):
            raise Refused("%s has a %s of its own" % (type(thing).__name__, name))


def _check_sampler(sampler: Any) -> None:
    """Those of PyTorch give one sample after the other, whatever the batches are."""
    if sampler is not None and not type(sampler).__module__.startswith("torch.utils.data"):
        raise Refused("its loader has a sampler of its own, %s" % type(sampler).__name__)


# ---- transformers ----


class OfTransformers(Training):
    """By a Trainer of transformers, as it is since 4.51: the last step of an epoch has the passes that are left."""

    LOOP = ["_inner_training_loop", "get_train_dataloader", "_get_dataloader", "_get_train_sampler", "get_batch_samples", "training_step",
            "compute_loss", "set_initial_training_values"]  # fmt: skip

    def __init__(self, trainer: Any, base: type, given: "Dict[str, Any]") -> None:
        self.trainer, self.args, self.model = trainer, trainer.args, trainer.model
        self.batch, self.passes = self.args.per_device_train_batch_size, self.args.gradient_accumulation_steps
        if not hasattr(base, "set_initial_training_values"):
            raise Refused("transformers before 4.51")
        _check_own(trainer, base, self.LOOP)
        if any(given.get(name) for name in ("resume_from_checkpoint", "trial", "kwargs")):
            raise Refused("it goes on from a checkpoint, or searches for its own arguments")
        for name in ("group_by_length", "auto_find_batch_size"):
            if getattr(self.args, name, False):
                raise Refused("it is trained with %s" % name)
        if trainer.is_deepspeed_enabled:
            raise Refused("it is trained with DeepSpeed, which has the numbers too")
        if self.args.n_gpu > 1:
            raise Refused("several devices in one process")
        if trainer.accelerator.split_batches:
            raise Refused("its batches are split among the ranks")
        _check_sampler(trainer._get_train_sampler(trainer.train_dataset))
        self.ranks, self.drop_last = self.args.world_size, self.args.dataloader_drop_last
        self.dataset, self.collate = trainer.train_dataset, trainer.data_collator
        datasets = sys.modules.get("datasets")
        if datasets is not None and isinstance(self.dataset, datasets.Dataset):
            self.dataset = trainer._remove_unused_columns(self.dataset, description="training")
        else:
            self.collate = trainer._get_collator_with_removed_columns(self.collate, description="training")

    def loss(self, model: Any, batches: "List[Any]") -> Any:
        trainer, device = self.trainer, next(model.parameters()).device
        batches = [_moved(batch, device) for batch in batches]
        items = None
        if (trainer.model_accepts_loss_kwargs or trainer.compute_loss_func is not None) and "labels" in batches[0]:
            items = sum(batch["labels"].ne(-100).sum() for batch in batches)
        self.weighs_last = items is not None
        losses = [trainer.compute_loss(model, batch, num_items_in_batch=items) for batch in batches]
        divides = (not trainer.model_accepts_loss_kwargs or items is None) and trainer.compute_loss_func is None
        return sum(losses) / (len(batches) if divides else 1)

    def change(self, batch: int, passes: int) -> None:
        self.args.per_device_train_batch_size, self.args.gradient_accumulation_steps = batch, passes
        self.trainer._train_batch_size = batch
        _saved.clear()
        if batch != self.batch:
            _saved[batch] = self.batch


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, core.hooks.torch.Tensor):
        return value.to(device)
    if hasattr(value, "items"):
        return {key: _moved(one, device) for key, one in value.items()}
    return type(value)(_moved(one, device) for one in value) if type(value) in (list, tuple) else value


_saved: "Dict[int, int]" = {}  # samples of a pass that a lever gave, and the program's, which checkpoints have


def _make_save(inner: Any) -> Any:
    """A Trainer that goes on from the checkpoint takes the samples of a pass from it."""

    @functools.wraps(inner)
    def save_to_json(state: Any, *args: Any, **kwargs: Any) -> Any:
        now = state.train_batch_size
        state.train_batch_size = _saved.get(now, now)
        try:
            return inner(state, *args, **kwargs)
        finally:
            state.train_batch_size = now

    return save_to_json


# ---- Lightning ----


class OfLightning(Training):
    """By a Trainer of Lightning, before it has begun to read from this loader."""

    def __init__(self, trainer: Any, loader: Any) -> None:
        data = core.hooks.torch.utils.data
        self.trainer, self.loader, self.theirs, self.model = trainer, loader, loader, trainer.lightning_module
        self.passes = trainer.accumulate_grad_batches
        callbacks = [type(callback).__name__ for callback in trainer.callbacks]
        if type(loader) is not data.DataLoader or type(loader.batch_sampler) is not data.BatchSampler:
            raise Refused("its batches are not those of a DataLoader with a batch_size")
        self.batch, self.drop_last = loader.batch_size, loader.drop_last
        self.dataset, self.collate = loader.dataset, loader.collate_fn
        _check_sampler(loader.sampler)
        if trainer.world_size > 1:
            raise Refused("several ranks of Lightning")
        if not self.model.automatic_optimization:
            raise Refused("its module steps by itself")
        if "GradientAccumulationScheduler" in callbacks or "StochasticWeightAveraging" in callbacks:
            raise Refused("a callback changes how many passes a step has")
        if trainer.limit_train_batches != 1.0 or trainer.overfit_batches or trainer.val_check_interval != 1.0:
            raise Refused("limits or validation are counted in batches")
        if trainer.reload_dataloaders_every_n_epochs:
            raise Refused("it makes its loader anew")
        if trainer.ckpt_path:
            raise Refused("it goes on from a checkpoint")
        if not trainer.optimizers:
            raise Refused("it asks for the number of its steps before it has an optimizer")
        if any(config.interval == "step" and config.frequency != 1 for config in trainer.lr_scheduler_configs):
            raise Refused("a scheduler counts batches")

    def samples(self) -> int:
        super().samples()
        return len(self.loader.sampler)

    def loss(self, model: Any, batches: "List[Any]") -> Any:
        device = next(model.parameters()).device
        losses = []
        for number, batch in enumerate(batches):
            given = model.training_step(model._apply_batch_transfer_handler(batch, device=device, dataloader_idx=0), number)
            losses.append(given["loss"] if isinstance(given, dict) else given)
        return sum(losses) / len(batches)

    def change(self, batch: int, passes: int) -> None:
        """The program's own loader stays as it is."""
        self.trainer.accumulate_grad_batches = passes
        if batch == self.batch:
            self.loader = self.theirs
            return
        self.loader = copy.copy(self.theirs)
        sampler = core.hooks.torch.utils.data.BatchSampler(self.loader.sampler, batch, self.drop_last)
        self.loader.__dict__.update(batch_size=batch, batch_sampler=sampler, _iterator=None)


# ---- both ----


class Trainers:
    """A lever's patches of them. plan(training) gives the samples of a pass and the passes of a step that the training is to have; it raises
    Refused or Already. began and ended are called around each training that was changed; text(training) says what became of it."""

    def __init__(self, lever: core.Lever, plan: "Callable[[Training], Tuple[int, int]]", text: "Callable[[Training], str]",
                 began: "Callable[[Training], None]" = lambda training: None, ended: "Callable[[], None]" = lambda: None) -> None:  # fmt: skip
        self.lever, self.plan, self.began, self.ended = lever, plan, began, ended
        self.tally = tally.Tally(lever, lambda numbers: "%s, seen in %d steps" % (self.words, numbers["steps"]))
        self.text, self.words = text, ""
        self.patches: "List[core.Patch]" = []
        self.asking: "List[Any]" = []  # loops of Lightning that ask for their loader now
        self.changed: "Dict[int, Training]" = {}  # that go on, by their loop

    def put(self) -> None:
        self.lever.nothing(NONE)
        imports.after("transformers.trainer", self._take_transformers)
        for name in ("lightning.pytorch.loops.fit_loop", "pytorch_lightning.loops.fit_loop"):
            imports.after(name, self._take_lightning)
        core.optimizers.around_steps(None, self._stepped)

    def take(self) -> None:
        core.optimizers.leave_steps(self._stepped)
        self.tally.close()
        for patch in reversed(self.patches):
            patch.remove()
        for waiting in (self._take_transformers, self._take_lightning):
            imports.leave(waiting)
        self.patches.clear()

    def _patch(self, owner: Any, name: str, make: "Callable[[Any], Any]") -> None:
        patch = core.Patch(owner, name, make)
        patch.install()
        self.patches.append(patch)

    def _take_transformers(self, module: Any) -> None:
        self._patch(module.Trainer, "train", functools.partial(self._make_train, module.Trainer))
        self._patch(module.Trainer, "get_train_dataloader", self._make_loader)
        self._patch(module.TrainerState, "save_to_json", _make_save)

    def _take_lightning(self, module: Any) -> None:
        self._patch(module._FitLoop, "setup_data", self._make_setup)
        self._patch(module._FitLoop, "run", self._make_run)
        self._patch(module, "_request_dataloader", self._make_request)

    def _make_train(self, base: type, inner: Any) -> Any:
        signature = inspect.signature(inner)

        @functools.wraps(inner)
        def train(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            self._begin(id(trainer), lambda: OfTransformers(trainer, base, signature.bind(trainer, *args, **kwargs).arguments))
            try:
                return inner(trainer, *args, **kwargs)
            finally:
                self._end(id(trainer))

        return train

    def _make_loader(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def get_train_dataloader(trainer: Any) -> Any:
            """The loop reads the number of passes later than this, so that a loader of another size ends the change."""
            loader, training = inner(trainer), self.changed.get(id(trainer))
            if training is None or getattr(getattr(loader, "batch_sampler", None), "batch_size", None) == training.now[0]:
                return loader
            self._end(id(trainer))
            self.lever.nothing("this Trainer makes its loader otherwise")
            return inner(trainer)

        return get_train_dataloader

    def _make_setup(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def setup_data(loop: Any, *args: Any, **kwargs: Any) -> Any:
            self.asking.append(loop)
            try:
                return inner(loop, *args, **kwargs)
            finally:
                self.asking.pop()

        return setup_data

    def _make_request(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def _request_dataloader(*args: Any, **kwargs: Any) -> Any:
            loader = inner(*args, **kwargs)
            if not self.asking:
                return loader
            loop = self.asking[-1]
            changed = self._begin(id(loop), lambda: OfLightning(loop.trainer, loader))
            return loader if changed is None else changed.loader

        return _request_dataloader

    def _make_run(self, inner: Any) -> Any:
        @functools.wraps(inner)
        def run(loop: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return inner(loop, *args, **kwargs)
            finally:
                self._end(id(loop))

        return run

    def _begin(self, key: int, make: "Callable[[], Any]") -> Any:
        """The training, where all ranks of the job change it; else None."""
        plan, refused = (0, 0), None
        try:
            training = make()
            plan = self.plan(training)
        except Refused as why:
            refused = why
        except Exception as error:
            self.lever.broke(error, self.take)
            refused = Refused("the lever failed")
        try:
            why = str(refused or "")
            against = ranks.agree(self.lever.name, why, "%d samples a pass" % plan[0]) if ranks.distributed() is not None else why
            if not against:
                training.now = plan
                training.change(*plan)
                self.words, self.changed[key] = self.text(training), training
                self.began(training)
                return training
            (self.lever.already if isinstance(refused, Already) else self.lever.nothing)(why or against)
        except Exception as error:
            self.lever.broke(error, self.take)
        return None

    def _end(self, key: int) -> None:
        training = self.changed.pop(key, None)
        if training is not None:
            training.undo()
            self.ended()
            self.tally.report()

    def _stepped(self, optimizer: Any) -> None:
        """By what the loaders gave."""
        batches, sizes = core.optimizers.samples.newest()
        if any(batches and sizes == batches * training.now[0] for training in self.changed.values()):
            self.tally.add("steps")
