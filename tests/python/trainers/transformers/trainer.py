import inspect
import json
import os
import types

import torch
from torch.utils.data import DataLoader, RandomSampler


class TrainingArguments:
    n_gpu = 0
    world_size = 1

    def __init__(self, output_dir, per_device_train_batch_size=8, gradient_accumulation_steps=1, num_train_epochs=3, learning_rate=5e-5, optim="",
                 seed=42, dataloader_drop_last=False, group_by_length=False, auto_find_batch_size=False, save_strategy="no", **others):  # fmt: skip
        self.__dict__.update({name: value for name, value in locals().items() if name not in ("self", "others")}, **others)

    @property
    def train_batch_size(self):
        return self.per_device_train_batch_size


class TrainerState:
    train_batch_size = None
    global_step = 0

    def save_to_json(self, json_path):
        with open(json_path, "w") as file:
            json.dump({"train_batch_size": self.train_batch_size, "global_step": self.global_step}, file)


class Trainer:
    is_deepspeed_enabled = False

    def __init__(self, model, args, data_collator=None, train_dataset=None, compute_loss_func=None):
        torch.manual_seed(args.seed)
        self.model, self.args, self.data_collator, self.train_dataset = model, args, data_collator, train_dataset
        self.compute_loss_func, self.state = compute_loss_func, TrainerState()
        self.accelerator = types.SimpleNamespace(split_batches=False)
        parameters = inspect.signature(model.forward).parameters.values()
        self.model_accepts_loss_kwargs = any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters)

    def _get_collator_with_removed_columns(self, data_collator, description=None):
        return data_collator

    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=self._train_batch_size, collate_fn=self.data_collator,
                          sampler=self._get_train_sampler(), drop_last=self.args.dataloader_drop_last)  # fmt: skip

    def _get_train_sampler(self, train_dataset=None):
        return RandomSampler(self.train_dataset)

    def set_initial_training_values(self, args, dataloader):
        steps = max(-(-len(dataloader) // args.gradient_accumulation_steps), 1)
        return steps, steps * args.num_train_epochs

    def get_batch_samples(self, epoch_iterator, num_batches):
        batches = [batch for _, batch in zip(range(num_batches), epoch_iterator)]
        counts = (self.model_accepts_loss_kwargs or self.compute_loss_func is not None) and "labels" in batches[0]
        return batches, sum(batch["labels"].ne(-100).sum() for batch in batches) if counts else None

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if self.compute_loss_func is not None:
            labels = inputs.pop("labels")
            return self.compute_loss_func(model(**inputs), labels, num_items_in_batch=num_items_in_batch)
        if self.model_accepts_loss_kwargs and num_items_in_batch is not None:
            inputs = {**inputs, "num_items_in_batch": num_items_in_batch}
        return model(**inputs)[0]

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        if (not self.model_accepts_loss_kwargs or num_items_in_batch is None) and self.compute_loss_func is None:
            loss = loss / self.current_gradient_accumulation_steps
        loss.backward()

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None, **kwargs):
        self._train_batch_size = self.args.train_batch_size
        return self._inner_training_loop()

    def _inner_training_loop(self):
        args, loader = self.args, self.get_train_dataloader()
        steps, _ = self.set_initial_training_values(args, loader)
        self.state.train_batch_size, self.state.global_step = self._train_batch_size, 0
        optimizer = torch.optim.SGD(self.model.parameters(), lr=args.learning_rate)
        for epoch in range(args.num_train_epochs):
            torch.manual_seed(args.seed + epoch)
            iterator = iter(loader)
            for _ in range(steps):
                batches, items = self.get_batch_samples(iterator, args.gradient_accumulation_steps)
                self.current_gradient_accumulation_steps = len(batches)
                for batch in batches:
                    self.training_step(self.model, batch, items)
                optimizer.step()
                optimizer.zero_grad()
                self.state.global_step += 1
        if args.save_strategy == "epoch":
            folder = os.path.join(args.output_dir, "checkpoint-%d" % self.state.global_step)
            os.makedirs(folder)
            self.state.save_to_json(os.path.join(folder, "trainer_state.json"))
