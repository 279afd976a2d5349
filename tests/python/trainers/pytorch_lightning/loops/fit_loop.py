def _request_dataloader(data_source):
    return data_source.dataloader()


class _FitLoop:
    def __init__(self, trainer):
        self.trainer = trainer

    def setup_data(self):
        self._loader = _request_dataloader(self._data_source)
        limit = self.trainer.limit_train_batches
        self.max_batches = limit if isinstance(limit, int) else len(self._loader)

    def run(self):
        self.setup_data()
        for _ in range(self.trainer.max_epochs):
            self.advance()

    def advance(self):
        trainer, model = self.trainer, self.trainer.lightning_module
        (optimizer,) = trainer.optimizers
        for number, batch in zip(range(self.max_batches), self._loader):
            (model.training_step(batch, number)["loss"] / trainer.accumulate_grad_batches).backward()
            if (number + 1) % trainer.accumulate_grad_batches == 0 or number + 1 == self.max_batches:
                optimizer.step()
                optimizer.zero_grad()
                trainer.global_step += 1
                for config in trainer.lr_scheduler_configs:
                    if (number + 1) % config.frequency == 0:
                        config.scheduler.step()
