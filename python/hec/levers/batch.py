"""Passes of N samples, as many a step as before, where the Trainer of a framework has the number as an argument. A step is then of other
samples: it is another training, and never tried unless it is named."""

from typing import Optional, Tuple

from . import core, trainers

FRAMEWORK = "torch"

_lever: "Optional[core.Lever]" = None
_trainers: "Optional[trainers.Trainers]" = None


def apply(lever: core.Lever) -> None:
    global _lever, _trainers
    _lever, _trainers = lever, trainers.Trainers(lever, _plan, _text)
    _trainers.put()


def revert() -> None:
    if _trainers is not None:
        _trainers.take()


def _plan(training: trainers.Training) -> "Tuple[int, int]":
    assert _lever is not None
    wanted = int(_lever.value)
    if wanted == training.batch:
        raise trainers.Already("passes have %d samples" % wanted)
    if training.samples() < training.ranks * wanted:
        raise trainers.Refused("its data set has %d samples" % training.samples())
    return wanted, training.passes


def _text(training: trainers.Training) -> str:
    return "passes of %d samples instead of %d: another training" % (training.now[0], training.batch)
