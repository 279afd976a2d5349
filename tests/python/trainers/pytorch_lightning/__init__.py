"""A stand-in for Lightning 2: of its Trainer and loop what a lever reads and changes, with the arithmetic of the real one."""

import copy
import types

import torch

from .loops.fit_loop import _FitLoop


class LightningModule(torch.nn.Module):
    automatic_optimization = True
    _trainer = None

    def __deepcopy__(self, memo):
        """A copy belongs to no trainer."""
        made = memo[id(self)] = self.__class__.__new__(self.__class__)
        made.__dict__.update({key: None if key == "_trainer" else copy.deepcopy(value, memo) for key, value in self.__dict__.items()})
        return made

    @property
    def trainer(self):
        if self._trainer is None:
            raise RuntimeError("not attached to a `Trainer`")
        return self._trainer

    def log(self, name, value):
        pass

    def _apply_batch_transfer_handler(self, batch, device=None, dataloader_idx=0):
        return {key: value.to(device) for key, value in batch.items()}


class Trainer:
    world_size = 1
    overfit_batches = 0.0
    val_check_interval = 1.0
    reload_dataloaders_every_n_epochs = 0
    ckpt_path = None
    callbacks = ()
    training = True

    def __init__(self, max_epochs, accumulate_grad_batches=1, limit_train_batches=1.0, **others):
        self.max_epochs, self.accumulate_grad_batches, self.limit_train_batches = max_epochs, accumulate_grad_batches, limit_train_batches
        self.global_step, self.fit_loop = 0, _FitLoop(self)

    def fit(self, model, train_dataloaders):
        self.lightning_module = model
        object.__setattr__(model, "_trainer", self)
        self.optimizers, schedulers = model.configure_optimizers()
        given = [{"frequency": 1, **scheduler} for scheduler in schedulers]
        self.lr_scheduler_configs = [types.SimpleNamespace(**each) for each in given]
        self.fit_loop._data_source = types.SimpleNamespace(dataloader=lambda: train_dataloaders)
        self.fit_loop.run()
