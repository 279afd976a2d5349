"""The loops of PyTorch Lightning and of Hugging Face's Trainer around the same models."""
import models_torch
from parts import filled, indented, reported

IMPORTS = {"lightning": "import pytorch_lightning as pl\n", "trainer": "import transformers\n"}

COMPILED = {"launch": "torch.compile(@MODEL@, mode=\"reduce-overhead\")", "memory": "torch.compile(@MODEL@)"}  # by what is measured

LIGHTNING = '''class Task(pl.LightningModule):
    def __init__(self, progress):
        super().__init__()
        self.progress = progress
        self.model = @MODEL@

    def training_step(self, batch, number):
        x, y = batch
        losses = F.cross_entropy(self.model(x).float(), y, reduction="none")
@INSIDE@        self.values = losses.detach()
        return losses.mean()

    def on_train_batch_end(self, outputs, batch, number):
        work_beside(self.model, self.values, self.global_step)
        if not self.progress.step(BATCH):
            self.trainer.should_stop = True

    def configure_optimizers(self):
        model = self.model
@OPTIMIZER@        return optimizer


def main(progress):
    torch.manual_seed(@SEED@)
    trainer = pl.Trainer(accelerator="gpu" if DEVICE == "cuda" else "cpu", devices=1, max_steps=10_000_000, precision="@PRECISION@", logger=False,
                         enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Task(progress), torch.utils.data.DataLoader(Items(), batch_size=BATCH, num_workers=WORKERS, pin_memory=DEVICE == "cuda"))
'''
TRAINER = '''class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = @MODEL@

    def forward(self, x, labels):
        output = self.model(x)
        losses = F.cross_entropy(output.float(), labels, reduction="none")
@INSIDE@        self.values = losses.detach()
        return {"loss": losses.mean(), "logits": output}


class Beside(transformers.TrainerCallback):
    def __init__(self, task, progress):
        self.task, self.progress = task, progress

    def on_step_end(self, args, state, control, **others):
        work_beside(self.task.model, self.task.values, state.global_step)
        control.should_training_stop = not self.progress.step(BATCH)


def named(items):
    return {"x": torch.stack([x for x, _ in items]), "labels": torch.stack([y for _, y in items])}


def main(progress):
    torch.manual_seed(@SEED@)
    task = Task()
    arguments = transformers.TrainingArguments(
        output_dir="trained", max_steps=10_000_000, per_device_train_batch_size=BATCH, learning_rate=1e-4, bf16=@BF16@, report_to=[],
        save_strategy="no", logging_strategy="no", optim="adamw_torch", dataloader_num_workers=WORKERS, remove_unused_columns=False,
        disable_tqdm=True, use_cpu=DEVICE == "cpu")
    trainer = transformers.Trainer(model=task, args=arguments, train_dataset=Items(), data_collator=named, callbacks=[Beside(task, progress)])
    trainer.train()
'''


def main(flags, host_setup, places, around, optimizer):
    """The framework's loop; what the program does beside it is work_beside, at the end of each step."""
    setup, before, after = around
    body = places.get("host_before", "") + before + places.get("host_after", "") + places.get("logging", "") + after
    beside = "def work_beside(model, values, step):\n" + indented(
        body + reported(flags, "shown.append(values.mean().item())\n"))
    text = TRAINER if flags["framework"] == "trainer" else LIGHTNING
    layout = ".to(memory_format=torch.channels_last)" if flags["model"] == "cnn" and not flags.has("layout") else ""
    return (setup + host_setup + "shown = []\n\n\n" + beside + "\n\n"
            + filled(text, MODEL=filled(COMPILED.get(flags.probe, "@MODEL@"), MODEL=f"{models_torch.NAMES[flags['model']]}(){layout}"), SEED=flags["style"] % 1000,
                     PRECISION="bf16-mixed" if flags.precision == "autocast" else "32-true", BF16=flags.precision == "autocast",
                     INSIDE=indented(places.get("host_inside", ""), 8), OPTIMIZER=indented(optimizer, 8)))
