"""Passes of more samples, and fewer of them a step, where the Trainer of a framework has both numbers as arguments: each step is of the same
samples. Only where one pass of more gives the gradients that several give together (joined.py)."""

import os
import sys
from typing import Any, Optional, Tuple

from . import core, joined, trainers

FRAMEWORK = "torch"
# A guess: what a pass takes beside what is kept for the backward pass; and what may be used of the memory that is free.
WORKING, ROOM_SHARE = 1.5, 0.8
STATES_BYTES = 8  # of Adam, for each trained number

losses: Any = sys.modules["_hec_hooks.losses"]
_lever: "Optional[core.Lever]" = None
_trainers: "Optional[trainers.Trainers]" = None


def apply(lever: core.Lever) -> None:
    global _lever, _trainers
    _lever, _trainers = lever, trainers.Trainers(lever, _plan, _text, _began, _ended)
    _trainers.put()


def revert() -> None:
    if _trainers is not None:
        _trainers.take()


def _plan(training: trainers.Training) -> "Tuple[int, int]":
    assert _lever is not None
    batch, passes = training.batch, training.passes
    wanted = int(_lever.value or 0)
    if wanted == batch:
        raise trainers.Already("passes have %d samples" % batch)
    if passes == 1:
        raise trainers.Refused("a step has one pass: no gradients are accumulated")
    choices = [joins for joins in range(2, passes + 1) if passes % joins == 0]
    if wanted and wanted not in [joins * batch for joins in choices]:
        raise trainers.Refused("%d passes of %d samples cannot become passes of %d" % (passes, batch, wanted))
    steps = training.steps(batch, passes)
    choices = [joins for joins in choices if training.steps(joins * batch, passes // joins) == steps]
    if not choices or (wanted and wanted // batch not in choices):
        raise trainers.Refused("an epoch would have fewer steps: its last samples are dropped")
    each = joined.look(training) * WORKING
    if not wanted:
        room = _room_bytes(training.model)
        choices = [joins for joins in choices if joins * batch * each <= room]
        if not choices:
            raise trainers.Refused("memory has no room for passes of more samples, by an estimate")
    joins = wanted // batch or max(choices)
    return joins * batch, passes // joins


def _room_bytes(model: Any) -> float:
    """For what passes keep, when gradients and the optimizer have theirs."""
    cuda = core.hooks.torch.cuda
    device = next(model.parameters()).device
    if device.type == "cuda":
        free = cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device)
    else:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return float(ROOM_SHARE * free - sum(weight.numel() * (weight.element_size() + STATES_BYTES) for weight in trained))


def _text(training: trainers.Training) -> str:
    batch, passes = training.now
    text = "passes of %d samples instead of %d, %d a step instead of %d" % (batch, training.batch, passes, training.passes)
    uneven = training.samples() % (training.ranks * training.batch * training.passes)
    if uneven and (training.ranks > 1 or not training.weighs_last):
        text += "; the last step of an epoch has fewer samples, and may weigh them otherwise"
    return text


def _began(training: trainers.Training) -> None:
    losses.joined = training.now[0] // training.batch


def _ended() -> None:
    losses.joined = 1
