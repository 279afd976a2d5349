"""XLA launches more of a program as CUDA graphs: also those of few kernels."""

from .xla import Flag

FRAMEWORK = "jax"
_flag = Flag("--xla_gpu_graph_min_graph_size=1")
apply, revert = _flag.apply, _flag.revert
