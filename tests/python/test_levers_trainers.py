"""Levers that give the Trainer of a framework other numbers, with the framework itself where it is installed, and with a stand-in
(trainers/) everywhere."""

import subprocess

import pytest

from listener import OPTIMIZER


@pytest.fixture(params=["stand-in", "itself"])
def run(request, observe, torch_python, source):
    """Runs a program that trains by a framework; what the listener found."""

    def run(framework, code, names="none", cold=False):
        path = [str(source / "tests/python")]
        if request.param == "stand-in":
            path.append(str(source / "tests/python/trainers"))
        elif subprocess.run([torch_python[0], "-c", "import " + framework], capture_output=True).returncode:
            pytest.skip("no %s in %s" % (framework, torch_python[0]))
        done = observe.start(torch_python[0], code, options=(), HEC_LEVERS=names, PYTHONPATH=":".join(path), CUDA_VISIBLE_DEVICES="",
                             ACCELERATE_USE_CPU="1", HEC_HOOKS_LOSSES="all", cold=cold)  # fmt: skip
        assert done.returncode == 0, done.stderr
        (found,) = observe.listener.found()
        assert "hooks_off" not in found.facts, found.facts
        return found

    return run


TRANSFORMERS = """
from trainers_common import *
import glob, json, sys
from transformers import Trainer, TrainingArguments

def trained(names, model=Net, data=even, kind=Trainer, more={}, **options):
    with levers(names) as said:
        given = dict(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=4, num_train_epochs=2, learning_rate=0.1,
                     optim="sgd", report_to=[], save_strategy="no", disable_tqdm=True, remove_unused_columns=False)
        args = TrainingArguments(**{**given, **options})
        trainer = kind(model(), args, data_collator=padded, train_dataset=data() if callable(data) else data, **more)
        trainer.train()
        now = args.per_device_train_batch_size, args.gradient_accumulation_steps
        assert now == tuple({**given, **options}[name] for name in ("per_device_train_batch_size", "gradient_accumulation_steps"))
    weights = [weight.detach().clone() for weight in trainer.model.parameters()] + [torch.rand(3)]
    return weights, said, trainer.state.global_step

def seen(words):  # accelerate takes a batch ahead, so that some steps seem to have none, or two
    left, _, steps = words.rpartition(", seen in ")
    assert 4 <= int(steps.split()[0]) <= 10, words
    return left

ON = "passes of 8 samples instead of 2, 1 a step instead of 4"
"""


def test_transformers_trains_the_same_by_larger_passes(run):
    run(
        "transformers",
        TRANSFORMERS
        + """
def alike(names, says, **case):
    plain, _, steps = trained("none", **case)
    joined, said, joined_steps = trained(names, **case)
    assert said["micro_batch"][0] == "on" and seen(said["micro_batch"][1]) == says, said
    assert joined_steps == steps and apart(joined, plain) < 1e-5, (apart(joined, plain), steps, joined_steps)
    assert torch.equal(joined[-1], plain[-1])  # the random numbers of the program
    return joined

alike("micro_batch=8", ON)
alike("micro_batch", ON)  # memory has room for it
alike("micro_batch=4", "passes of 4 samples instead of 2, 2 a step instead of 4")
# tokens are counted over all passes of a step, also of the last one, which has fewer samples
alike("micro_batch=8", ON, model=Counted, data=uneven)
alike("micro_batch=8", ON, model=Counted, data=lambda: uneven(37))
# a mean over passes: the last step has one of 2, one of 2, and one of 1
weights, said, _ = trained("micro_batch=8", data=lambda: even(37))
assert seen(said["micro_batch"][1]) == ON + "; the last step of an epoch has fewer samples, and may weigh them otherwise", said
# what is compared has no dropout
assert seen(trained("micro_batch=8", model=with_dropout())[1]["micro_batch"][1]) == ON
# a checkpoint has the program's number, so that a training goes on from it without the lever
trained("micro_batch=8", save_strategy="epoch")
(path,) = glob.glob("out/checkpoint-10/trainer_state.json")
assert json.load(open(path))["train_batch_size"] == 2
""",
    )


def test_transformers_keeps_its_numbers_where_passes_are_not_alike(run):
    run(
        "transformers",
        TRANSFORMERS
        + """
def refused(why, names="micro_batch=8", says="nothing", **case):
    plain = trained("none", **case)[0]
    weights, said, _ = trained(names, **case)
    assert said["micro_batch"][0] == says and why in said["micro_batch"][1], said
    assert all(torch.equal(a, b) for a, b in zip(weights, plain))

refused("its loss is of the samples of a pass", data=uneven)  # a mean over tokens
refused("its loss is of the samples of a pass", model=Contrasted)
refused("BatchNorm1d takes its mean over the samples of a pass", model=with_norm(nn.BatchNorm1d))
refused("a step has one pass: no gradients are accumulated", gradient_accumulation_steps=1)
refused("4 passes of 2 samples cannot become passes of 6", names="micro_batch=6")
refused("4 passes of 2 samples cannot become passes of 16", names="micro_batch=16")
refused("passes have 2 samples", names="micro_batch=2", says="already")
refused("an epoch would have fewer steps", data=lambda: even(42), dataloader_drop_last=True)

class Own(Trainer):
    def compute_loss(self, *args, **kwargs):
        return super().compute_loss(*args, **kwargs)
refused("Own has a compute_loss of its own", kind=Own)

class Once(Data):
    def __init__(self):
        super().__init__(40, lambda i: 12)
        self.more = iter([])
refused("no sample can be read once more: it holds an iterator", data=Once)

from torch.utils.data import SequentialSampler
class Ordered(Trainer):
    def _get_train_sampler(self, *args):
        return SequentialSampler(self.train_dataset)
refused("Ordered has a _get_train_sampler of its own", kind=Ordered)
refused("it is trained with auto_find_batch_size", auto_find_batch_size=True)

class Uncopied(Net):
    def __deepcopy__(self, memo):
        raise TypeError("there is one of it")
refused("a pass beside the program fails: TypeError: there is one of it", model=Uncopied)

# numbers that do not reach the loader are taken back
kept = torch.utils.data.DataLoader.__init__
def make(self, *args, **kwargs):
    return kept(self, *args, **{name: 2 if name == "batch_size" else value for name, value in kwargs.items()})
torch.utils.data.DataLoader.__init__ = make
refused("this Trainer makes its loader otherwise")
torch.utils.data.DataLoader.__init__ = kept

# memory that holds passes of 4 samples, and none of more than 2
import _hec_levers
for samples, says in ((5, "passes of 4 samples instead of 2, 2 a step instead of 4, seen"), (3, "memory has no room")):
    with levers("micro_batch"):
        module = _hec_levers.micro_batch
        kept = module._room_bytes
        look = module.joined.look
        module.joined.look = lambda training: look(training) and 1000.0
        module._room_bytes = lambda model: samples * 1000.0 * module.WORKING
    said = trained("micro_batch")[1]["micro_batch"]
    module._room_bytes, module.joined.look = kept, look
    assert says in said[1], said
assert 0 < kept(Net()) < 1 << 50

# another training, only where it is named
weights, said, steps = trained("batch=4")
assert seen(said["batch"][1]) == "passes of 4 samples instead of 2: another training" and steps == 6, (said, steps)
assert trained("batch=2")[1]["batch"] == ("already", "passes have 2 samples")
""",
    )


def test_losses_are_those_of_the_programs_passes(run):
    """The gate of quality compares them, pass by pass."""
    code = """
from trainers_common import *
from transformers import Trainer, TrainingArguments
args = TrainingArguments(output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps=4, num_train_epochs=2, learning_rate=0.1,
                         optim="sgd", report_to=[], save_strategy="no", disable_tqdm=True, remove_unused_columns=False)
Trainer(Net(), args, data_collator=padded, train_dataset=even()).train()
"""
    means = {}
    for names in ("none", "micro_batch=8"):
        found = run("transformers", code, names)
        losses = [value for name, value in found.values if name == "loss"]
        # what was compared is no step, and a batch that was taken ahead is of the next one
        assert found.steps == [(8, OPTIMIZER)] * 10
        means[names] = len(losses), sum(losses) / len(losses)
    assert found.facts["lever.micro_batch.on"].startswith("passes of 8 samples instead of 2, 1 a step instead of 4")
    assert means["none"][0] == 40 and means["micro_batch=8"] == (10, pytest.approx(means["none"][1], rel=1e-5))


LIGHTNING = """
from trainers_common import *
import warnings
import pytorch_lightning as pl
from torch.utils.data import DataLoader
warnings.simplefilter("ignore")

class Module(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net, self.passes = net, 0
    def training_step(self, batch, number):
        loss = self.net(**batch)[0]
        self.passes += 1
        self.log("loss", loss)
        return {"loss": loss}
    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3), "interval": "step"}]

def trained(names, net=Net, data=even, module=Module, drop_last=False, passes=4, sampler=None, **more):
    with levers(names) as said:
        torch.manual_seed(3)
        loader = DataLoader(data(), batch_size=2, shuffle=sampler is None, collate_fn=padded, drop_last=drop_last, sampler=sampler)
        trainer = pl.Trainer(max_epochs=2, accumulate_grad_batches=passes, accelerator="cpu", logger=False, enable_checkpointing=False,
                             enable_progress_bar=False, enable_model_summary=False, **more)
        model = module(net())
        trainer.fit(model, loader)
        assert trainer.accumulate_grad_batches == passes and loader.batch_size == 2 and len(loader) == len(loader.batch_sampler)
    return [weight.detach().clone() for weight in model.parameters()] + [torch.rand(3)], said, trainer.global_step, model.passes
"""


def test_lightning_trains_the_same_by_larger_passes(run):
    run(
        "pytorch_lightning",
        LIGHTNING
        + """
for names, says, count in (("micro_batch=8", "8 samples instead of 2, 1", 10), ("micro_batch", "8 samples instead of 2, 1", 10),
                           ("micro_batch=4", "4 samples instead of 2, 2", 20)):
    plain, _, steps, passes = trained("none")
    joined, said, joined_steps, joined_passes = trained(names)
    assert said["micro_batch"] == ("on", "passes of %s a step instead of 4, seen in 10 steps" % says), said
    assert apart(joined, plain) < 1e-5 and torch.equal(joined[-1], plain[-1])
    assert (steps, passes, joined_steps, joined_passes) == (10, 40, 10, count)  # a pass beside the program is none of its module's
weights, said, steps, passes = trained("batch=4")
assert said["batch"] == ("on", "passes of 4 samples instead of 2: another training, seen in 6 steps") and (steps, passes) == (6, 20), said
""",
    )


def test_lightning_keeps_its_numbers_where_passes_are_not_alike(run):
    run(
        "pytorch_lightning",
        LIGHTNING
        + """
def refused(why, names="micro_batch=8", **case):
    plain = trained("none", **case)[0]
    weights, said, *_ = trained(names, **case)
    assert said["micro_batch"][0] == "nothing" and why in said["micro_batch"][1], said
    assert all(torch.equal(a, b) for a, b in zip(weights, plain))

refused("its loss is of the samples of a pass", data=uneven)
refused("its loss is of the samples of a pass", net=Contrasted)
refused("BatchNorm1d takes its mean over the samples of a pass", net=with_norm(nn.BatchNorm1d))
refused("a step has one pass: no gradients are accumulated", passes=1)
refused("an epoch would have fewer steps", data=lambda: even(42), drop_last=True)
refused("limits or validation are counted in batches", limit_train_batches=12)

class Backwards(torch.utils.data.Sampler):
    def __init__(self):
        pass
    def __len__(self):
        return 40
    def __iter__(self):
        return iter(range(39, -1, -1))
refused("its loader has a sampler of its own, Backwards", sampler=Backwards())

class Frequent(Module):
    def configure_optimizers(self):
        optimizers, (scheduler,) = super().configure_optimizers()
        return optimizers, [{**scheduler, "frequency": 4}]
refused("a scheduler counts batches", module=Frequent)

class Own(Module):
    def training_step(self, batch, number):
        assert self.trainer.training
        return super().training_step(batch, number)
refused("a pass beside the program fails: RuntimeError", module=Own)
""",
    )


def test_a_loop_of_the_program_counts_its_own_batches(run):
    """Also where it is a framework that imports PyTorch first."""
    found = run("transformers", "from transformers import Trainer\nassert Trainer.train.__wrapped__\n", "micro_batch", cold=True)
    assert found.facts["lever.micro_batch.nothing"] == "no Trainer of transformers or Lightning trains: a loop of the program counts its batches itself"
