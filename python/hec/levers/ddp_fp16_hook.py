"""Gradients of a DistributedDataParallel travel in fp16."""

from . import compress, core

FRAMEWORK = "torch"
_compressed = compress.Compressed("fp16", "fp16_compress_hook")


def apply(lever: core.Lever) -> None:
    _compressed.apply(lever)


def revert() -> None:
    _compressed.revert()
