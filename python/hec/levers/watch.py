"""One call of a module is watched: which functions of PyTorch are called, with what, and what they give."""

from typing import Any, Callable

from . import calls

PRODUCTS = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "matmul", "bmm", "addmm", "baddbmm", "mm", "lstm", "gru",
            "einsum", "scaled_dot_product_attention", "rnn_tanh", "__matmul__", "multi_head_attention_forward"}  # fmt: skip


def may(module: Any) -> bool:
    """Not where the program compiled it, or HEC does: it would be another program for the compiler."""
    return not calls.is_compiled(module) and not any(other.lever.name in ("compile", "cuda_graphs") for other in calls._chain)


def watched(call: "calls.Call", args: tuple, kwargs: dict, see: "Callable[[str, tuple, dict, Any], None]") -> Any:
    """The call, with see(name, args, kwargs, result) after each function."""
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            see(getattr(function, "__name__", ""), args, kwargs or {}, result)
            return result

    with Watch():
        return call(args, kwargs)
