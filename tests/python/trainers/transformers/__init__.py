"""A stand-in for transformers 4.57: of its Trainer what a lever reads and changes, with the arithmetic of the real one."""

from .trainer import Trainer, TrainingArguments  # noqa: F401
