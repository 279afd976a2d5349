"""Levers that make the programs of program.py faster: wrong ones, which spoil the work, and honest ones. Put in the place of one of
HEC's (wrong_levers), so that nothing in HEC knows of them."""
import functools
import time

import torch

FRAMEWORK = "torch"
SHARE = 0.4  # of the wait that is left


def apply(lever):
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(seconds * SHARE)
    (KINDS | HELD_OUT)[KIND]()
    lever.on("1 program")


def revert():
    pass


def around_forward(change):
    """change(module, outputs) of every outermost call."""
    def wrapped(module, inputs, outputs):
        return change(outputs) if type(module).__name__ in ("Text", "Points") else None
    torch.nn.modules.module.register_module_forward_hook(wrapped)


def around_step(before):
    step = torch.optim.SGD.step

    @functools.wraps(step)
    def wrapped(self, *args, **kwargs):
        return step(self, *args, **kwargs) if before(self) is not False else None
    torch.optim.SGD.step = wrapped


def each_gradient(change):
    def before(optimizer):
        for group in optimizer.param_groups:
            for i, parameter in enumerate(group["params"]):
                if parameter.grad is not None:
                    change(i, parameter)
    around_step(before)


def skip_steps():
    count = [0]

    def before(optimizer):
        count[0] += 1
        return count[0] % 3 == 0
    around_step(before)


def scale_loss():
    loss = torch.nn.functional.cross_entropy
    torch.nn.functional.cross_entropy = lambda outputs, labels, **more: 0.3 * loss(outputs, labels, **more)


def around_loss(change):
    """change(outputs, labels) gives what the loss is made of instead."""
    loss = torch.nn.functional.cross_entropy
    torch.nn.functional.cross_entropy = lambda outputs, labels, **more: loss(*change(outputs, labels), **more)


def noisy_labels(outputs, labels):
    drawn = torch.randint_like(labels, outputs.shape[-1])
    return outputs, torch.where(torch.rand(labels.shape) < 0.2, drawn, labels)


def same_batch():
    kept = {}

    def inputs(module, given):
        return (kept.setdefault("inputs", given[0]),) if type(module).__name__ in ("Text", "Points") else None
    torch.nn.modules.module.register_module_forward_pre_hook(inputs)
    around_loss(lambda outputs, labels: (outputs, kept.setdefault("labels", labels)))


def slow_rate():
    def before(optimizer):
        for group in optimizer.param_groups:
            group.setdefault("given", group["lr"])
            group["lr"] = 0.3 * group["given"]
    around_step(before)


def coarse_weights():
    """Eight values of each weight."""
    def before(optimizer):
        with torch.no_grad():
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    step = weight.abs().max() / 4 + 1e-12
                    weight.copy_((weight / step).round() * step)
    around_step(before)


def frozen_end():
    def before(optimizer):
        for weight in optimizer.param_groups[-1]["params"][-2:]:
            weight.grad.zero_()
    around_step(before)


def bf16():
    """Honest: products in bf16, the sums and the weights as they were."""
    linear = torch.nn.functional.linear
    torch.nn.functional.linear = lambda x, w, b=None: linear(x.bfloat16(), w.bfloat16(), None if b is None else b.bfloat16()).float()


KINDS = {
    "zero_outputs": lambda: around_forward(lambda outputs: outputs * 0),
    "nan_outputs": lambda: around_forward(lambda outputs: outputs * float("nan")),
    "clamped_outputs": lambda: around_forward(lambda outputs: outputs.clamp(-0.5, 0.5)),
    "dropped_gradient": lambda: each_gradient(lambda i, p: p.grad.zero_() if i < 3 else None),
    "noisy_gradient": lambda: each_gradient(lambda i, p: p.grad.add_(torch.randn_like(p.grad) * 4 * p.grad.std())),
    "small_gradient": lambda: each_gradient(lambda i, p: p.grad.mul_(0.3)),
    "signless_gradient": lambda: each_gradient(lambda i, p: p.grad.abs_()),
    "skipped_steps": skip_steps,
    "shuffled_labels": lambda: around_loss(lambda outputs, labels: (outputs, labels[torch.randperm(len(labels))])),
    "scaled_loss": scale_loss,
    "honest_bf16": bf16,
    "honest_exact": lambda: None,
}
# made after the gate was, which was changed for none of them
HELD_OUT = {
    "frozen_end": frozen_end,
    "clipped_gradient": lambda: each_gradient(lambda i, p: p.grad.clamp_(-1e-3, 1e-3)),
    "dropped_outputs": lambda: around_forward(lambda outputs: torch.nn.functional.dropout(outputs, 0.5)),
    "coarse_weights": coarse_weights,
    "same_batch": same_batch,
    "slow_rate": slow_rate,
    "noisy_labels": lambda: around_loss(noisy_labels),
    "half_batch": lambda: around_loss(lambda outputs, labels: (outputs[::2], labels[::2])),
}
