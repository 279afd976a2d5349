"""One call of a module is watched: which operations of PyTorch run, on what, and what they give."""

from typing import Any, Callable

from . import calls

CONVOLUTIONS = {"convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
PRODUCTS = CONVOLUTIONS | {"addmm", "mm", "bmm", "baddbmm", "linear", "matmul", "einsum", "_cudnn_rnn", "mkldnn_rnn_layer", "lstm", "gru",
                           "scaled_dot_product_attention", "_native_multi_head_attention",
                           "_transformer_encoder_layer_fwd"}  # fmt: skip


def may(module: Any) -> bool:
    """Not where the program compiled it, or HEC does: it would be another program for the compiler."""
    return not calls.is_compiled(module) and not any(other.awake and other.compiles for other in calls._chain)


def watched(call: "calls.Call", args: tuple, kwargs: dict, see: "Callable[[str, tuple, dict, Any], None]") -> Any:
    """The call, with see(name, args, kwargs, result) after each operation."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = operation(*args, **(kwargs or {}))
            see(operation.overloadpacket.__name__, args, kwargs or {}, result)
            return result

    calls.watches += 1
    try:
        with Watch():
            return call(args, kwargs)
    finally:
        calls.watches -= 1
