"""Gradients of a DistributedDataParallel travel in bf16."""

from . import compress, core

FRAMEWORK = "torch"
_compressed = compress.Compressed("bf16", "bf16_compress_hook")


def apply(lever: core.Lever) -> None:
    _compressed.apply(lever)


def revert() -> None:
    _compressed.revert()
