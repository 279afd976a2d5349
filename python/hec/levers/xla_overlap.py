"""XLA orders communication behind compute."""

from .xla import Flag

FRAMEWORK = "jax"
_flag = Flag("--xla_gpu_enable_latency_hiding_scheduler=true")
apply, revert = _flag.apply, _flag.revert
